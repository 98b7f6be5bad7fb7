"""Queries that come and go one after the other leave nothing behind: not in the plan, nor in its
files, nor in what the driver knows. 60 of them; ``python -m bench register`` says what one costs,
and ``LEVADA_CASES=10000`` lets so many come.
"""

import os
import shutil
from pathlib import Path

import pytest

from levada import Engine, Query
from levada.plan.execution.persistent_map import MIN_COPIED_ENTRIES, PersistentMap

TURNS = int(os.environ.get("LEVADA_CASES", "0")) or 60
WARM = 10  # turns after which there is all that stays
TEXT = """SELECT ?x FROM NAMED WINDOW <e:w> ON <e:s> [RANGE PT4S STEP PT2S]
WHERE { WINDOW <e:w> { ?x <e:p> <e:{{c}}> . ?x <e:q> ?y FILTER(?y > {{c}}) } }"""
pytestmark = pytest.mark.timeout(0)


def sizes(engine: Engine) -> list[int]:
    """How much there is of what grows with queries."""
    driver = engine._driver
    assert driver is not None
    topology = driver._catalog._topology
    assert topology is not None
    tables = [node.members for node in topology.graph.nodes.values()]
    sealer, common, registry = topology.builder, topology.graph.common, engine._registry
    return [
        len(topology.queries), len(topology.graph.nodes), len(topology.graph.alike),
        sum(len(table.index) for table in tables), len(common.known), len(common._numbers),
        len(sealer._edges), len(sealer._sealed), len(registry.queries), len(registry._folded),
        len(registry.known.queries), len(driver._catalog._lifetime),
        len(topology.sharing.relaxations.alike), len(topology.sharing.relaxations._of),
        len(sealer._columns), len(registry.known.makers),
    ]  # fmt: skip


def follow(engine: Engine) -> None:
    """Waits for the plan of the queries as they are."""
    while engine._registry.changed:
        assert not engine.await_end(0.002), "a plan follows each change"


@pytest.mark.long
@pytest.mark.parametrize("sharing", ["exact", "relax"])
def test_they_leave_nothing_behind(tmp_path: Path, sharing: str) -> None:
    (tmp_path / "s.nt").write_text("<e:a> <e:p> <e:1> 1 .\n")
    with Engine(spark=False, checkpoint=tmp_path / "c", partitions=1, sharing=sharing) as engine:
        engine.stream("e:s", tmp_path / "s.nt")
        engine.register_each(TEXT, [{"c": c} for c in range(20)], name="stays-{{c}}")
        engine.start()
        follow(engine)
        for turn in range(100, 100 + WARM):
            turned(engine, turn)
        before = sizes(engine)
        for turn in range(100 + WARM, 100 + TURNS):
            turned(engine, turn)
        assert sizes(engine) == before
        queries = engine._driver.epochs.plan.queries if engine._driver else None
        assert isinstance(queries, PersistentMap)
        assert len(queries._new) + len(queries._gone) <= MIN_COPIED_ENTRIES, (
            "versions are put together"
        )
        epoch(engine, tmp_path / "s.nt")
        assert len(list((tmp_path / "c" / "plans").iterdir())) < TURNS, "old versions are deleted"


def turned(engine: Engine, turn: int) -> None:
    """A query, or a table of them, comes and goes."""
    if turn % 10 == 5:
        table = [{"c": c} for c in range(turn, turn + 9)]
        came = engine.register_each(TEXT, table, name="row-{{c}}")
    else:
        came = [engine.register(TEXT.replace("{{c}}", str(turn)), name=f"one-{turn}")]
    follow(engine)
    for query in came:
        query.unregister()
    follow(engine)


def epoch(engine: Engine, path: Path) -> None:
    """Waits for an epoch with the plan of now."""
    assert engine._driver is not None
    with path.open("a") as file:
        file.write("<e:a> <e:p> <e:2> 9000 .\n")
    topology = engine._driver._catalog._topology
    assert topology is not None
    while engine._driver.last.plan < topology.version:
        assert not engine.await_end(0.01), "it goes on"


def test_versions_that_no_epoch_had_are_nothing_to_the_next_run(tmp_path: Path) -> None:
    """Versions of the plan that no manifest names, as a killed run leaves them, are never read, and
    deleted as soon as the two last epochs have plans of the next run.
    """
    stream, plans = tmp_path / "s.nt", tmp_path / "c" / "plans"
    stream.write_text("<e:a> <e:p> <e:2> 1 .\n")
    text = TEXT.replace(" . ?x <e:q> ?y FILTER(?y > {{c}})", "")
    found = []
    for run, constants in enumerate(((2,), (2, 5))):
        with Engine(spark=False, checkpoint=tmp_path / "c", partitions=1, epoch_rows=1) as engine:
            engine.stream("e:s", stream)
            for c in constants:
                engine.register(text.replace("{{c}}", str(c)), name=f"q{c}")
            engine.start(once=True, keep_open=run == 0)
            engine.await_end()
            found = [
                [(r.time, r.rows["x"].to_list()) for r in engine_query.results()]
                for engine_query in _handles(engine)
            ]
        if run == 0:
            for path in list(plans.glob("1-*")):
                shutil.copy(path, path.with_name(path.name.replace("1-", "9-", 1)))
            with stream.open("a") as file:
                file.write("<e:b> <e:p> <e:5> 13000 .\n<e:b> <e:p> <e:2> 13000 .\n")
                file.write("<e:b> <e:p> <e:5> 33000 .\n<e:b> <e:p> <e:5> 34000 .\n")
    assert found[1][:2] == [(14_000, ["<e:b>"]), (16_000, ["<e:b>"])]
    assert [row for row in found[0] if row[0] and row[0] > 10_000] == found[1][:2]
    assert not list(plans.glob("9-*"))


def _handles(engine: Engine) -> list[Query]:
    return [Query(query, engine) for query in engine._registry.queries.values()]
