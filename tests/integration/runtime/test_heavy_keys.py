"""A heavy key in several partitions: its pairs are found in all of them, each once; equal triples
stay one occurrence; it costs no row to begin and to end it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from levada.checkpoint.manifest import Manifest
from levada.checkpoint.verify import verify
from levada.core.key_groups import group_of
from levada.engine.engine import Engine
from levada.plan.execution.key_group_table import Division, GroupTable, SplitKeyGroup, divide_groups
from levada.plan.execution.plan import Plan
from levada.plan.execution.splittable_joins import find_divisible_joins
from levada.testing.memory_sink import MemorySink
from levada.testing.stream_builders import write_lines
from support.generators import CaseQuery, Clause
from support.query_dsl import S, T, element, judge, query, register, step

HOT, COLD = (group_of(f"<http://e/b{i}>") for i in (0, 1))
# of every third element the triple has been there before, at times twice at once
LEFT = [element(100 * i, f"a{i % 40} q b0", f"a{i % 3} q b{i % 2}") for i in range(80)]
RIGHT = [element(150 * (i // 2 * 2), f"b{i % 5 // 4} r {i % 30}") for i in range(50)]
WINDOWS = {"w": (S, step(4000, 1000)), "v": (T, Clause("range", 3000))}
JOIN = "WINDOW :w { ?a :q ?b } WINDOW :v { ?b :r ?n }"
PLAIN = query("SELECT ?a ?b ?n", JOIN, name="join", windows=WINDOWS)


def asked(
    root: Path, queries: list[CaseQuery], divisions: dict[int, tuple[int, ...]], rows: int = 8
) -> tuple[list[Manifest], Plan]:
    """The epochs of a run over all there is, and its plan. ``divisions``: who shares the hot group
    from an epoch on.
    """
    told: list[Manifest] = []
    sink = MemorySink()

    def deal(epoch: int, table: GroupTable) -> GroupTable | None:
        parts = divisions.get(epoch)
        if parts is None:
            return None
        home = int(table.partition[HOT])
        others = tuple(p for p in parts if p != home)
        heavy = (SplitKeyGroup(HOT, (home, *others)),) if others else ()
        return divide_groups(table, Division(heavy, table.division.joins))

    with Engine(
        spark=False, checkpoint=root / "ck", epoch_rows=rows, partitions=4, sink=sink, seed=7
    ) as engine:
        engine._open().tables.dealing = deal
        for name, elements in ((S, LEFT), (T, RIGHT)):
            engine.stream(name, write_lines(root / f"{name[-1]}.nt", elements))
        register(engine, queries)
        engine._on_epoch(told.append)
        engine.start(once=True)
        engine.await_end()
        plan = engine._open().load_plan(told[-1].plan)
    judge(queries, {S: LEFT, T: RIGHT}, sink.reports)
    return told, plan


def partitions_of(told: list[Manifest]) -> list[set[str]]:
    """The partitions that had results in each epoch."""
    return [{name.split("/")[1].split("-")[2] for name in m.segments} for m in told]


def test_all_who_share_a_key_find_pairs_of_it(tmp_path: Path) -> None:
    told, _ = asked(tmp_path, [PLAIN], {1: (0, 1, 2, 3)})
    assert set().union(*partitions_of(told)) == set("0123")
    assert not verify(tmp_path / "ck").damaged


def test_it_comes_and_goes(tmp_path: Path) -> None:
    """Divided, among others, whole and divided again, while rows of before are in windows: what is
    whole again is in one partition, whoever found it.
    """
    divisions = {4: (0, 1), 7: (1, 2, 3), 10: (), 16: (0, 1, 2, 3)}
    told, _ = asked(tmp_path, [PLAIN], divisions)
    of_epoch = dict(enumerate(partitions_of(told), 1))
    home = str(HOT % 4)
    others = {i: found - {home, str(COLD % 4)} for i, found in of_epoch.items()}
    assert not any(others[i] for i in (1, 2, 3, *range(10, 16)))
    assert set().union(*(others[i] for i in range(4, 10)))
    assert set().union(*(of_epoch[i] for i in range(16, len(told) + 1))) == set("0123")
    assert len({m.group_table_version for m in told}) == 5, "nothing else makes another table"


@pytest.mark.parametrize(
    ("select", "body", "more", "why"),
    [
        ("SELECT ?a ?b ?n", JOIN, {}, ""),
        ("SELECT ?a ?n", JOIN, {"output": "ISTREAM"}, ""),
        ("SELECT ?b ?n", JOIN, {"output": "ISTREAM"}, "Changes"),
        ("SELECT DISTINCT ?b ?n", JOIN, {}, "Deltas"),
        ("SELECT ?b (COUNT(*) AS ?c)", JOIN, {"tail": " GROUP BY ?b"}, "Deltas"),
    ],
)
def test_who_needs_equal_rows_together_keeps_a_join_whole(
    tmp_path: Path, select: str, body: str, more: dict[str, Any], why: str
) -> None:
    asked_ = query(select, body, name="q", windows=WINDOWS, **more)
    _, plan = asked(tmp_path, [asked_], {2: (0, 1, 2, 3)}, rows=50)
    found = find_divisible_joins(plan)
    assert len(found.joins) == (not why)
    reasons = "; ".join(found.whole.values())
    assert why in reasons and bool(why) == bool(reasons)


def test_distinct_values_that_add_up_keep_a_join_whole(tmp_path: Path) -> None:
    windows = {"w": (S, step(4000, 1000)), "v": (T, step(4000, 1000))}
    counted = query("SELECT (COUNT(DISTINCT ?b) AS ?c)", JOIN, name="q", windows=windows)
    _, plan = asked(tmp_path, [counted], {2: (0, 1, 2, 3)})
    (reason,) = find_divisible_joins(plan).whole.values()
    assert reason == "equal values of it must come to the RGroup above from one task"
