"""Another number of partitions at a start: nothing is read or written for it, results are the
same, and what nothing names any more goes.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from levada.checkpoint import state_files
from levada.checkpoint.manifest import Manifest
from levada.checkpoint.verify import verify
from levada.engine.engine import Engine
from levada.errors import UsageError
from levada.plan.execution.key_group_table import GroupTable
from levada.testing.memory_sink import MemorySink
from levada.testing.stream_builders import write_lines
from support.generators import Clause
from support.query_dsl import S, T, element, judge, query, register, step

LEFT = [element(250 * i, f"a{i % 5} p {i % 4}", f"a{i % 5} q b{i % 3}") for i in range(40)]
RIGHT = [element(400 * i, f"b{i % 3} r {i}") for i in range(25)]
WINDOWS = {"w": (S, step(4000, 1000)), "v": (T, Clause("range", 3000))}
JOIN = "WINDOW :w { ?a :q ?b } WINDOW :v { ?b :r ?n }"
QUERIES = [
    query("SELECT ?a ?n", JOIN, name="join", windows=WINDOWS),
    query("SELECT ?a ?n", JOIN, name="changes", windows=WINDOWS, output="ISTREAM"),
    query(
        "SELECT ?a (MAX(?n) AS ?m) (SUM(?n) AS ?s)",
        "WINDOW :v { ?a :r ?n }",
        tail=" GROUP BY ?a",
        name="best",
        windows={"v": WINDOWS["v"]},
        output="ISTREAM",
    ),
    query(
        "SELECT (COUNT(*) AS ?n)", "WINDOW :w { ?a :p ?b }", name="one", windows={"w": WINDOWS["w"]}
    ),
    query(
        "SELECT ?a ?b",
        "WINDOW :l { ?a :p ?b }",
        name="last",
        windows={"l": (S, Clause("count", count=7))},
    ),
]
LATER, LAST = (
    query("SELECT ?a", "WINDOW :w { ?a :z ?b }", name=name, windows={"w": WINDOWS["w"]})
    for name in ("later", "latest")
)


def run(
    root: Path, sink: MemorySink, until: int, partitions: Any, *more: Any, keep_open: bool = True
) -> list[Manifest]:
    """A start over what came before an instant; its epochs."""
    told: list[Manifest] = []
    with Engine(
        spark=False, checkpoint=root / "ck", epoch_rows=30, partitions=partitions,
        master="local[3]", sink=sink, seed=7,
    ) as engine:  # fmt: skip
        for name, elements in ((S, LEFT), (T, RIGHT)):
            path = root / f"{name[-1]}.nt"
            write_lines(path, [e for e in elements if e.ts < until])
            engine.stream(name, path)
        register(engine, [*QUERIES, *more])
        engine._on_epoch(told.append)
        engine.start(once=True, keep_open=keep_open)
        engine.await_end()
    return told


def partitions_of(manifest: Manifest) -> set[str]:
    return {name.split(".")[1] for name in manifest.state}


def tables(root: Path) -> list[str]:
    return sorted(p.name.split("-")[1] for p in (root / "ck" / "plans").glob("groups-*"))


def test_a_start_over_another_number_goes_on(tmp_path: Path) -> None:
    sink = MemorySink()
    run(tmp_path, sink, 5000, 1)
    (before,) = run(tmp_path, sink, 5000, None, LATER)
    assert partitions_of(before) == {"0"} and before.group_table_version == 1
    (moved,) = run(tmp_path, sink, 5000, 4, LATER, LAST)
    assert partitions_of(moved) == set("0123") and moved.group_table_version == 2
    written = [state_files.map_(str(tmp_path / "ck"), name)[0] for name in moved.state.values()]
    assert not any(written), "a move writes no row"
    assert moved.state_rows == 4 * before.state_rows, "each looks at the instants, as ever"
    assert not verify(tmp_path / "ck").damaged
    last = run(tmp_path, sink, 8000, "auto", LATER, LAST)[-1]
    assert partitions_of(last) == set("012") and last.group_table_version == 3
    same = run(tmp_path, sink, 9000, None, LATER, LAST)[-1]
    assert partitions_of(same) == set("012") and same.group_table_version == 3, (
        "it keeps what it has"
    )
    run(tmp_path, sink, 10**9, 2, LATER, LAST, keep_open=False)
    judge(QUERIES, {S: LEFT, T: RIGHT}, sink.reports)
    assert tables(tmp_path) == ["3", "4"], "what no manifest names is gone"


def test_groups_that_come_back_count_once(tmp_path: Path) -> None:
    """To and fro at each epoch, while pieces of before are left everywhere."""
    sink = MemorySink()

    def deal(epoch: int, table: GroupTable) -> GroupTable:
        every = np.flatnonzero(np.arange(table.groups) % 2 != epoch % 2).astype(np.int32)
        return GroupTable(1, table.groups, 2, every, np.full(len(every), epoch % 2, np.int32))

    with Engine(
        spark=False, checkpoint=tmp_path / "ck", epoch_rows=4, partitions=2, sink=sink, seed=7
    ) as engine:
        engine._open().tables.dealing = deal
        for name, elements in ((S, LEFT), (T, RIGHT)):
            engine.stream(name, write_lines(tmp_path / f"{name[-1]}.nt", elements))
        register(engine, QUERIES)
        engine.start(once=True)
        engine.await_end()
    judge(QUERIES, {S: LEFT, T: RIGHT}, sink.reports)


@pytest.mark.parametrize("wrong", [0, 10_001, "many", True])
def test_what_is_no_number_of_partitions_is_told(wrong: Any) -> None:
    with pytest.raises(UsageError, match=r"partitions is .*whole number from 1 to 10,000"):
        Engine(spark=False, partitions=wrong)
