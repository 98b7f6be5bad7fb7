"""What meets in vain below relaxed joins is counted, and a newcomer has a join of its own where
that is more than sharing saves. Results are the same.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from levada import Engine, Query
from levada.engine.status.sharing_status import RelaxedStatus
from levada.engine.status.status import read_status
from levada.engine.suspended_queries import read_suspended
from levada.plan.execution.joins import Join
from levada.plan.sharing import unprofitable_joins
from levada.plan.sharing.unprofitable_joins import HIGH, LOW, MIN_PAIRS, UnprofitableJoins
from levada.testing.stream_builders import lines, write_lines
from support.generators.windows import Clause
from support.polling import until
from support.query_dsl import S, at, query

HOPPING = Clause("step", 4000, 2000)
VAIN = (
    "WINDOW :w { ?a :n ?v . ?a :k ?z . ?b :l ?z . ?b :m ?w "
    "FILTER(?v > %d && ?v < %d + 2 && ?w > %d && ?w < %d + 2) }"
)
CONSTANT = "WINDOW :w { ?a :in :r%d . ?a :k ?z . ?b :l ?z . ?b :at :o%d }"
NUMBERS = "WINDOW :w { ?a :n ?v . ?a :k ?z . ?b :l ?z . ?b :m ?w FILTER(?v = %d && ?w = %d) }"
SAME = "WINDOW :w { ?a :in :r%d . ?a :k ?z . ?b :l ?z . ?b :to :r%d }"
ROUTED = "WINDOW :w { ?a :in :r%d . ?a :k ?z }"
ROOMS = 10


def text(group: str, room: int) -> str:
    """The query of a room."""
    return query("SELECT *", group.replace("%d", str(room)), windows={"w": HOPPING}).text


def second(i: int) -> list[str]:
    """Of each room something on both sides, all with one ?z."""
    found = [
        f":a{r} :in :r{r} ; :k :z ; :n {r + 1} . :b{r} :l :z ; :at :o{r} ; :to :r{r} ; :m {r + 1}"
        for r in range(ROOMS)
    ]
    return [*lines([at(1000 * i + 1, " . ".join(found))])]


def joins(engine: Engine) -> list[bool]:
    """Of each join of the plan whether it is relaxed."""
    assert engine._driver is not None and engine._driver._catalog._topology is not None
    nodes = engine._driver._catalog._topology.graph.nodes.values()
    return [
        node.shape.step.relaxed
        for node in nodes
        if isinstance(node.shape.step, Join)
        for _ in node.members.index
    ]


def wasted(checkpoint: Path) -> bool:
    """Whether a join has been measured as unprofitable."""
    joined = read_status(checkpoint).relaxed_joins
    return any(one.joined_pairs >= MIN_PAIRS and one.work_ratio > HIGH for one in joined)


def run(
    folder: Path, group: str, sharing: str, ready: Callable[[Path], bool] = lambda _: True
) -> tuple[list[object], int, Sequence[RelaxedStatus]]:
    """Returns the results of a query that is added when ``ready``, the number of joins that it
    adds, and what was counted.
    """
    folder.mkdir()
    write_lines(folder / "s.nt", ())
    with Engine(spark=False, checkpoint=folder / "c", partitions=2, sharing=sharing) as engine:
        engine.stream(S, folder / "s.nt")
        for room in range(ROOMS - 1):
            engine.register(text(group, room), name=f"q{room}")
        engine.start()
        with (folder / "s.nt").open("a") as file:
            file.writelines(f"{line}\n" for i in range(40) for line in second(i))
        until(lambda: sum(r.elements for r in engine._records().values()) >= 40 * 7 * ROOMS)
        until(lambda: ready(folder / "c"))
        before = len(joins(engine))
        found: Query = engine.register(text(group, ROOMS - 1), name="newcomer")
        until(lambda: not engine._registry.changed)
        more = len(joins(engine)) - before
        with (folder / "s.nt").open("a") as file:
            file.writelines(f"{line}\n" for i in range(40, 50) for line in second(i))
        until(lambda: sum(r.elements for r in engine._records().values()) >= 50 * 7 * ROOMS)
        told = read_status(folder / "c").relaxed_joins
        engine.stop()
        return [(r.time, sorted(map(str, r.rows))) for r in found.results()], more, told


def test_a_newcomer_stays_apart_where_most_meets_in_vain(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unprofitable_joins, "LEAVING", math.inf)  # a leaver joins twice
    relaxed, more, told = run(tmp_path / "relax", VAIN, "relax", ready=wasted)
    apart, _, none = run(tmp_path / "off", VAIN, "off")
    assert relaxed == apart and relaxed and not none
    dearest = max(told, key=lambda one: one.work_ratio)
    assert dearest.work_ratio > HIGH and dearest.joined_pairs > 5 * dearest.needed_pairs, f"{told}"
    assert dearest.picked_rows == dearest.needed_pairs, "each is one query's"
    assert more >= 1, "it joins what it wants by itself"


@pytest.mark.parametrize("group", [CONSTANT, NUMBERS])
def test_constants_on_two_sides_are_not_relaxed_together(group: str, tmp_path: Path) -> None:
    """A join of all would pair each room with all others; a star of one subject does not."""
    shared, more, told = run(tmp_path / "relax", group, "relax")
    apart, _, _ = run(tmp_path / "off", group, "off")
    assert shared == apart and shared
    assert all(one.joined_pairs == one.needed_pairs for one in told)
    assert more == 1


@pytest.mark.parametrize("group", [ROUTED, SAME])
def test_a_newcomer_shares_what_nothing_meets_in_vain_in(group: str, tmp_path: Path) -> None:
    relaxed, more, told = run(tmp_path / "relax", group, "relax")
    apart, _, _ = run(tmp_path / "off", group, "off")
    assert relaxed == apart and relaxed
    assert (
        not more
        and all(one.joined_pairs == one.needed_pairs and one.work_ratio < LOW for one in told)
        and told
    )


def test_what_is_dear_stays_so_until_it_is_much_less() -> None:
    dear = UnprofitableJoins()
    dear.observe({"3 0": [1000, 3500, 10, 500], "4 0": [10, 900, 1, 1]})
    assert dear.joins == {(3, 0)}, "of few pairs nothing is said"
    dear.observe({"3 0": [1000, 1500, 10, 500]})
    assert dear.joins == {(3, 0)}
    dear.observe({"3 0": [1000, 1000, 10, 500]})
    assert not dear.joins


def test_rows_that_queries_take_of_a_set_count_towards_the_bound(tmp_path: Path) -> None:
    write_lines(tmp_path / "s.nt", [at(1000, f":s{i} :p :o{min(i, 40) % 41}") for i in range(100)])
    grouped = "WINDOW :w { ?s :p ?o FILTER(?o = :o%d) }"
    with (
        Engine(
            spark=False, checkpoint=tmp_path / "c", partitions=1, sharing="relax", max_rows=50
        ) as engine,
        warnings.catch_warnings(),
    ):
        warnings.simplefilter("ignore", UserWarning)
        engine.stream(S, tmp_path / "s.nt")
        for i in (1, 2, 3, 40):
            tail = "GROUP BY ?s"
            asked = query("SELECT ?s (COUNT(*) AS ?n)", grouped % i, tail, windows={"w": HOPPING})
            engine.register(asked.text, name=f"q{i}")
        engine.start(once=True)
        engine.await_end()
    assert set(read_suspended(tmp_path / "c")) == {"q40"}


def test_queries_leave_a_join_that_does_not_pay_while_they_run(tmp_path: Path) -> None:
    """They leave by halves, and each report is what it is without sharing."""
    reports, journal = [], []
    for sharing in ("relax", "off"):
        folder = tmp_path / sharing
        folder.mkdir()
        write_lines(folder / "s.nt", ())
        with Engine(
            spark=False, checkpoint=folder / "c", partitions=2, sharing=sharing, epoch="1ms"
        ) as engine:
            planning = engine._registry.planning
            engine._registry.planning = planning._replace(looks=1)
            engine.stream(S, folder / "s.nt")
            queries = [engine.register(text(VAIN, room), name=f"q{room}") for room in range(ROOMS)]
            engine.start()
            for i in range(40):
                with (folder / "s.nt").open("a") as file:
                    file.writelines(f"{line}\n" for line in second(i))
                seen = (i + 1) * 7 * ROOMS
                until(lambda: sum(r.elements for r in engine._records().values()) >= seen)  # noqa: B023
            assert engine._driver is not None
            topology = engine._driver._catalog._topology
            assert topology is not None
            journal += [what for _, what in topology.sharing.journal.kept.log]
            engine.stop()
            reports.append(
                [[(r.time, sorted(map(str, r.rows))) for r in q.results()] for q in queries]
            )
    assert reports[0] == reports[1] and all(reports[0])
    assert any(
        "begins to go over to a join of its own: more would meet" in what for what in journal
    )
    assert any("has gone over to a join of its own" in what for what in journal)
