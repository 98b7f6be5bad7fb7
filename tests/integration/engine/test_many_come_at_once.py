"""Very many queries come while an engine runs, in one call and one by one, broken ones among them,
while others of their operators go: each that was let in answers, and none else. 60 of each kind;
``LEVADA_CASES=10000`` lets so many come.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from levada import Engine, Query, QueryRequest
from levada.errors import QueryError, UsageError
from support.polling import until

MANY = int(os.environ.get("LEVADA_CASES", "0")) or 60
TEXT = """SELECT ?x FROM NAMED WINDOW <e:w> ON <e:s> [RANGE PT10S STEP PT10S]
WHERE { WINDOW <e:w> { ?x <e:p> <e:{{c}}> } }"""
pytestmark = pytest.mark.timeout(0)


def text(c: object) -> str:
    return TEXT.replace("{{c}}", str(c))


def said(query: Query) -> list[tuple[int | None, list[str]]]:
    return [(report.time, report.rows["x"].to_list()) for report in query.results()]


def come_one_by_one(engine: Engine, first: int) -> list[Query]:
    """So many, each third of which has a broken one behind it; one that they share goes twice."""
    came = []
    for i in range(MANY):
        shared = [engine.register(text(first + i), name=f"twin-{n}-{i}") for n in range(2)]
        came.append(shared[0])
        shared[1].unregister()
        with pytest.raises(UsageError, match="There is no query twin-1-"):
            shared[1].unregister()
        if i % 3 == 0:
            with pytest.raises(QueryError):
                engine.register(text(first + i).replace("?x <e:p>", "?x <e:p"), name=f"bad-{i}")
    return came


def come_in_one_call(engine: Engine, first: int) -> list[Query]:
    """A table of so many, and a batch with a broken text, of which none is registered."""
    before = engine.queries()
    batch = [QueryRequest(text(c), f"batch-{c}") for c in range(5)]
    with pytest.raises(QueryError):
        engine.register_all([*batch, QueryRequest(text("a b"), "bad")])
    with pytest.raises(UsageError, match="Row 2, column c"):
        engine.register_each(TEXT, [{"c": 1}, {"c": "a b"}], name="bad-{{c}}")
    assert engine.queries() == before
    table = [{"c": c} for c in range(first, first + MANY)]
    return list(engine.register_each(TEXT, table, name="row-{{c}}"))


@pytest.mark.parametrize("sharing", ["exact", "relax"])
def test_each_that_was_let_in_answers(tmp_path: Path, sharing: str) -> None:
    stream = tmp_path / "s.nt"
    stream.write_text("<e:a> <e:p> <e:none> 1 .\n")
    with Engine(spark=False, checkpoint=tmp_path / "c", partitions=1, sharing=sharing) as engine:
        engine.stream("e:s", stream)
        stays = engine.register(text("none"), name="stays")
        engine.start()
        until(lambda: engine.progress().elements > 0)
        came = [*come_one_by_one(engine, 0), *come_in_one_call(engine, MANY)]
        until(lambda: not engine._registry.changed)
        assert len(engine.queries()) == 2 * MANY + 1
        with stream.open("a") as file:
            file.writelines(f"<e:x{c}> <e:p> <e:{c}> 12000 .\n" for c in range(2 * MANY))
            file.write("<e:a> <e:p> <e:none> 30000 .\n")
        until(lambda: engine.progress().elements == 2 * MANY + 2)
        engine.stop()
        assert [said(query) for query in came] == [
            [(20_000, [f"<e:x{c}>"])] for c in range(2 * MANY)
        ]
        assert said(stays)[0] == (10_000, ["<e:a>"])
        assert engine._solutions() == {"stays": 1} | {query.name: 1 for query in came}
