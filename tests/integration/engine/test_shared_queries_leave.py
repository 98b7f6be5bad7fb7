"""A query that others share is taken out, and once more."""

from __future__ import annotations

from pathlib import Path

import pytest

from levada import Engine
from levada.errors import UsageError
from levada.plan.sharing.sharing_modes import Sharing

TEXT = """SELECT ?x FROM NAMED WINDOW <e:w> ON <e:s> [RANGE PT10S STEP PT10S]
WHERE { WINDOW <e:w> { ?x <e:p> <e:c> ; <e:v> ?v } }"""


@pytest.mark.parametrize("sharing", ["off", "exact", Sharing.CONTAINMENT, "relax"])
def test_a_query_that_is_shared_goes_once(tmp_path: Path, sharing: str) -> None:
    (tmp_path / "s.nq").write_text("")
    with Engine(spark=False, partitions=1, sharing=sharing) as engine:
        engine.stream("e:s", tmp_path / "s.nq")
        stays, goes = (engine.register(TEXT, name=name) for name in ("stays", "goes"))
        engine.register(TEXT.replace("<e:c>", "<e:d>"), name="other")
        engine.start(keep_open=True)
        goes.unregister()
        for again in (goes.unregister, lambda: engine.unregister("goes")):
            with pytest.raises(UsageError, match="There is no query goes"):
                again()
        came = engine.register(TEXT, name="goes")
        with pytest.raises(UsageError, match="another one has its name"):
            goes.unregister()
        came.unregister()
        engine.unregister(stays)
        assert [*engine._registry.queries] == ["other"]
