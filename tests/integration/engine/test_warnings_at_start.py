"""What a query lacks may be named after it: an engine says so when it starts, or when it runs."""

import warnings
from pathlib import Path

import pytest

import levada

TEXT = """PREFIX : <http://e/>
SELECT ?s ?n FROM NAMED WINDOW :w ON :s [RANGE PT2S]
WHERE { WINDOW :w { ?s :p ?v } ?s :name ?n }"""
LACKS = "there are no static data that it could read"


@pytest.fixture
def engine(tmp_path: Path) -> levada.Engine:
    (tmp_path / "s.nt").write_text('<http://e/a> <http://e/p> "1" 1000 .\n')
    (tmp_path / "names.ttl").write_text('<http://e/a> <http://e/name> "A" .\n')
    found = levada.Engine(spark=False)
    found.stream("http://e/s", tmp_path / "s.nt")
    return found


def test_static_data_that_come_before_the_start_leave_nothing_to_say(
    engine: levada.Engine, tmp_path: Path
) -> None:
    with engine, warnings.catch_warnings():
        warnings.simplefilter("error")
        query = engine.register(TEXT)
        engine.static(tmp_path / "names.ttl")
        engine.start(once=True)
        engine.await_end()
        assert query.to_dicts()[0]["n"] == "A"


def test_what_is_lacking_is_said_at_the_start_once(engine: levada.Engine) -> None:
    with engine:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            engine.register(TEXT, name="hot")
            engine.register(TEXT, name="gone").unregister()
        with pytest.warns(UserWarning, match=f"hot: (.|\n)*{LACKS}") as told:
            engine.start()
        assert [str(w.message).partition(":")[0] for w in told] == ["hot"]
        assert told[0].filename == __file__
        with pytest.warns(UserWarning, match=f"new: (.|\n)*{LACKS}") as told:
            engine.register(TEXT, name="new")
        assert len(told) == 1


def test_what_no_data_change_is_said_at_once(engine: levada.Engine) -> None:
    with engine, pytest.warns(UserWarning, match="STEP is longer than RANGE"):
        engine.register(TEXT.replace("[RANGE PT2S]", "[RANGE PT2S STEP PT5S]"))
