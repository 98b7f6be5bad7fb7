"""Queries of regions share operators with those in their reach alone, and a newcomer has a join of
its own where the common one would have too many rows of state; results are those of each alone.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from levada import Engine, Query
from levada.checkpoint.verify import verify
from levada.cli.main import main
from levada.engine.status.sharing_report import read_sharing_report
from levada.errors import CheckpointError, UsageError
from levada.plan.execution.steps import Join
from levada.plan.topology.topology import Topology
from levada.testing.stream_builders import write_lines
from support.generators.windows import Clause
from support.polling import until_engine
from support.query_dsl import S, at, query

W = {"w": Clause("step", 4000, 2000)}
PAIRS = query("SELECT ?s ?z", "WINDOW :w { ?s :p ?x . ?s :q ?z }", windows=W).text
ELEMENTS = [at(500 * i, f":s{i % 3} :p {i % 4} ; :q {i % 5}") for i in range(40)]


def engine_on(folder: Path, *, region: str | None = None, **options: object) -> Engine:
    """An engine over the elements that are there."""
    if not (folder / "s.nt").exists():
        write_lines(folder / "s.nt", ELEMENTS[:20])
    engine = Engine(spark=False, checkpoint=folder / "c", partitions=1, **options)  # type: ignore
    engine.stream(S, folder / "s.nt", **({} if region is None else {"region": region}))  # type: ignore
    return engine


def planned(engine: Engine) -> Topology:
    """The topology, once it has all queries."""
    until_engine(engine, lambda: not engine._registry.changed)
    assert engine._driver is not None and engine._driver._catalog._topology is not None
    return engine._driver._catalog._topology


def joins(topology: Topology) -> int:
    """How many there are."""
    steps = ((node.shape.step, node.members.index) for node in topology.graph.nodes.values())
    return sum(len(members) for step, members in steps if isinstance(step, Join))


def sites(engine: Engine) -> dict[str, str]:
    """Where each query stands."""
    return {name: one.site for name, one in planned(engine).sharing.sites.chosen.items()}


def reported(found: Query) -> list[object]:
    """Its reports, each with its rows in an order."""
    return [(report.time, sorted(report.rows.rows())) for report in found.results()]


def test_who_is_in_reach_of_each_other_shares(tmp_path: Path) -> None:
    """By the mask: the own region, those that are named, all; and what is everywhere."""
    asked = {
        "east": "east", "west": "west", "again": "west", "wide": "north+east", "all": "north+any",
        "north": "north", "alone": "south",
    }  # fmt: skip
    with engine_on(tmp_path, regions="east,west,north,south") as engine:
        handles = {n: engine.register(PAIRS, name=n, region=said) for n, said in asked.items()}
        engine.start(once=True, keep_open=True)
        engine.await_end()
        assert sites(engine) == {
            "east": "east", "west": "west", "again": "west", "wide": "east", "all": "east",
            "north": "north", "alone": "south",
        }  # fmt: skip
        assert joins(planned(engine)) == 4
        chosen = planned(engine).sharing.sites.chosen
        assert {*chosen["alone"].masked} == {"east", "west", "north"}
        assert not chosen["all"].masked
        told = {name: reported(handle) for name, handle in handles.items()}
        assert told["east"] and all(one == told["east"] for one in told.values())


def test_what_has_no_region_is_in_reach_of_all(tmp_path: Path) -> None:
    with engine_on(tmp_path, regions="east,west") as engine:
        for name, region in (("any", None), ("east", "east"), ("west", "west")):
            engine.register(PAIRS, name=name, **({} if region is None else {"region": region}))  # type: ignore
        engine.start(once=True, keep_open=True)
        engine.await_end()
        assert {*sites(engine).values()} == {""} and joins(planned(engine)) == 1


@pytest.mark.parametrize(("text", "site"), [(PAIRS, "west"), ("few", "east")])
def test_where_the_sink_is_decides_by_what_was_measured(
    tmp_path: Path, text: str, site: str
) -> None:
    """A join's results go from east to west, or the stream's elements: whichever are fewer."""
    few = PAIRS.replace("?x", "3").replace("?z }", "4 }").replace("?s ?z", "?s")
    text = few if text == "few" else text
    with engine_on(tmp_path, region="east", regions="east,west") as engine:
        engine.register(text, name="first", region="east")
        engine.start()
        until_engine(engine, lambda: bool(engine._driver and engine._driver.last.results))
        engine.register(text, name="second", region="west+east")
        assert sites(engine) == {"first": "east", "second": site}
        found = {one.site: one for one in planned(engine).sharing.sites.chosen["second"].candidates}
        assert found["east"].price is not None and found["east"].parts


def test_regions_that_there_are_not(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"in the region esat, and there is none.*west or east"):
        engine_on(tmp_path, region="esat", regions="east,west")
    with engine_on(tmp_path, region="east") as engine:
        with pytest.raises(UsageError, match=r"region esat, and there is none.*mean east"):
            engine.register(PAIRS, region="esat")
        with pytest.raises(UsageError, match=r"names the region wset, and there is none"):
            engine.register(PAIRS, region="east+wset")
        with pytest.raises(UsageError, match=r"is in a region, not region=any"):
            engine.register(PAIRS, region="any")
        with pytest.raises(UsageError, match="in one region, not 'a\\+b'"):
            engine.stream("t", tmp_path / "s.nt", region="a+b")
        assert not engine._registry.queries
    with engine_on(tmp_path) as engine, pytest.raises(UsageError, match="there is no region"):
        engine.register(PAIRS, region="east")
    with pytest.raises(UsageError, match=r"regions is \['east'\]"):
        Engine(spark=False, regions=["east"])  # type: ignore[arg-type]
    with pytest.raises(UsageError, match=r"machine file .*cannot be read"):
        Engine(spark=False, regions="rack.yaml")
    with pytest.raises(UsageError, match="cannot be called ''"):
        Engine(spark=False, regions="east,,west")


def test_what_a_run_shares_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As values, and as a text."""
    with engine_on(tmp_path, sharing="relax", regions="east,west", epoch_rows=10) as engine:
        for i in range(3):
            engine.register(PAIRS.replace("?x", str(i)), name=f"q{i}", region="east")
        engine.register(PAIRS, name="other", region="west")
        engine.start(once=True, keep_open=True)
        engine.await_end()
    told = read_sharing_report(tmp_path / "c")
    assert told.queries == 4 and told.operators < told.unshared_operators
    assert [join.picked_rows > 0 for join in told.relaxed_joins] == [True]
    assert {name: site.site for name, site in told.regions.items()} == {
        "q0": "east", "q1": "east", "q2": "east", "other": "west",
    }  # fmt: skip
    measured = [one for one in told.shared_operators if one.saved_cpu_us_per_element is not None]
    assert measured and all(
        one.queries and one.saved_rows_per_element is not None for one in measured
    )
    assert main(["explain", "--shared", str(tmp_path / "c")]) == 0
    text = capsys.readouterr().out
    assert "relaxed, of late" in text and "other (west): stands in west" in text
    assert "takes its part of a join" in text and " us an element, saves " in text
    assert not verify(tmp_path / "c").damaged, "the journal is whole"
    with pytest.raises(CheckpointError, match="is not a checkpoint"):
        read_sharing_report(tmp_path)


def test_joins_below_a_relaxed_one_are_not_told_as_making_nothing(tmp_path: Path) -> None:
    """Their pairs are picked by nobody, and so not counted."""
    write_lines(
        tmp_path / "s.nt", [at(i, f":s{i % 3} :p {i % 4} ; :q {i} ; :r 1") for i in range(9)]
    )
    wide = query("SELECT *", "WINDOW :w { ?s :p ?x . ?s :q ?z . ?s :r ?y }", windows=W).text
    with engine_on(tmp_path, sharing="relax") as engine:
        for i in range(3):
            engine.register(wide.replace("?x", str(i)), name=f"q{i}")
        engine.start(once=True, keep_open=True)
        engine.await_end()
    told = read_sharing_report(tmp_path / "c")
    joined = [one.operator for one in told.shared_operators if one.operator.startswith("Join")]
    assert len(joined) == 2
    (top,) = told.relaxed_joins
    assert top.joined_pairs and top.join in joined
    assert "of 3 queries" in told.log[-1][1]
