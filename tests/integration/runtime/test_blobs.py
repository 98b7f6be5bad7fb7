"""How many blobs an epoch sends: each source task one to each active partition, whatever the number
of streams, queries, groups and moves (Parallelizing Windowed Stream Joins, section 3.3).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from levada.checkpoint.key_group_tables import GROUPS
from levada.engine.engine import Engine
from levada.engine.query_request import QueryRequest
from levada.plan.execution.key_group_table import GroupTable, deal_round_robin
from levada.runtime.task.ingest_task import IntakeTask
from levada.runtime.task.stage_task import StageTask
from levada.testing.stream_builders import write_lines
from support.query_dsl import S, T, element

P = "PREFIX : <http://e/>\n"
ELEMENTS = [element(250 * i, f"a{i % 9} p b{i % 4}", f"b{i % 4} q a{i % 5}") for i in range(60)]
WINDOW = "FROM NAMED WINDOW :{0} ON <{1}> [RANGE PT2S STEP PT1S] "
QUERIES = (
    f"SELECT ?a ?c {WINDOW.format('w', S)} WHERE {{ WINDOW :w {{ ?a :p ?b . ?b :q ?c }} }}",
    f"SELECT ?a (COUNT(*) AS ?n) {WINDOW.format('w', S)}{WINDOW.format('v', T)} "
    "WHERE { WINDOW :w { ?a :p ?b } WINDOW :v { ?b :q ?c } } GROUP BY ?a",
    f"SELECT ?d {WINDOW.format('w', T)} WHERE {{ WINDOW :w {{ ?a :p ?b . ?b :q ?c . ?c :p ?d }} }}",
)
PARTITIONS = (1, 3, 5, 2)  # from epoch to epoch
Sent = list[tuple[int, int, int, list[int]]]


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Sent:
    """Of each task: epoch, stage, how many blobs it was given, the targets of those it has made."""
    found: Sent = []

    def spy(kind: Any, stage: Any, given: Any) -> None:
        run = kind.run

        def spied(task: Any, got: Any) -> Any:
            made = run(task, got)
            targets = [target for target, _ in made]
            found.append((task.context.epoch, stage(task), given(got), targets))
            return made

        monkeypatch.setattr(kind, "run", spied)

    spy(IntakeTask, lambda _: 0, lambda _: 0)
    spy(StageTask, lambda task: task.stage, len)
    return found


def dealing(epoch: int, table: GroupTable) -> GroupTable | None:
    """Another number of partitions in each epoch, and groups that have moved beside."""
    own = deal_round_robin(GROUPS, PARTITIONS[epoch % len(PARTITIONS)])
    moved = np.arange(epoch % 7, dtype=np.int32)
    return GroupTable(1, own.groups, own.partitions, moved, np.zeros(len(moved), np.int32))


def run(folder: Path, queries: Sequence[str], files: int) -> None:
    """Over two streams of so many files, each read by a task."""
    for i in range(files):
        for name in ("s", "t"):
            (folder / name).mkdir(exist_ok=True)
            write_lines(folder / name / f"{i}.nt", ELEMENTS[i::files])
    with Engine(spark=False, checkpoint=folder / "ck", epoch_rows=24, partitions=5) as engine:
        engine.stream(S, folder / "s", files="parallel")
        engine.stream(T, folder / "t", files="parallel")
        engine.register_all([QueryRequest(P + text, f"q{i}") for i, text in enumerate(queries)])
        engine._open().tables.dealing = dealing
        engine.start(once=True)
        engine.await_end()


@pytest.mark.parametrize(("queries", "files"), [(QUERIES[:1], 1), (QUERIES, 3)])
def test_a_source_task_sends_one_blob_to_each_active_partition(
    tmp_path: Path, sent: Sent, queries: Sequence[str], files: int
) -> None:
    run(tmp_path, queries, files)
    epochs = {epoch for epoch, *_ in sent}
    assert len(epochs) > len(PARTITIONS), "each number of partitions had its epochs"
    seen = set()
    for epoch in epochs:
        active = PARTITIONS[epoch % len(PARTITIONS)]
        stages = sorted({stage for at, stage, *_ in sent if at == epoch})
        senders = 0
        for stage in stages:
            tasks = [(given, to) for at, own, given, to in sent if (at, own) == (epoch, stage)]
            last = stage == stages[-1]
            assert all(given == senders for given, _ in tasks if stage)
            assert all(to == ([-1] if last else [*range(active)]) for _, to in tasks)
            assert stage == 0 or len(tasks) == active
            senders = len(tasks)
            seen.add((stage, senders))
    assert len({senders for stage, senders in seen if stage == 0}) >= min(files, 2)
    assert {senders for stage, senders in seen if stage == 1} == {*PARTITIONS}
