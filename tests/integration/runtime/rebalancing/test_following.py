"""Executors come and go while an engine runs: the number of partitions follows, results do not."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from levada.checkpoint.executor_affinity import ExecutorAffinity
from levada.checkpoint.manifest import Manifest
from levada.engine.engine import Engine
from levada.plan.execution.key_group_table import deal_round_robin
from levada.runtime.cost_model import partition_count
from levada.runtime.cost_model.partition_count import FEWER, MORE, ExecutorCoreTracker
from levada.runtime.executor import Job, LocalExecutor
from levada.runtime.rebalancing.rebalancing_options import BalanceOptions
from levada.testing.memory_sink import MemorySink
from levada.testing.stream_builders import write_lines
from support.query_dsl import S, T, element, judge, query, register, step
from support.rebalancing_world import ByRows

LEFT = [element(20 * i, f"a{i % 40} p b{i * 7 % 97}") for i in range(600)]
RIGHT = [element(40 * i, f"b{i * 11 % 97} r {i}") for i in range(300)]
JOIN = query(
    "SELECT ?a ?n",
    "WINDOW :w { ?a :p ?b } WINDOW :v { ?b :r ?n }",
    name="join",
    windows={"w": (S, step(4000, 4000)), "v": (T, step(4000, 4000))},
)
CORES = (1, 1, 4, 4, 3, 0, 2, 2, 5)


class Cluster(LocalExecutor):
    """Runs jobs here, for executors whose cores are others in each epoch."""

    def __init__(self) -> None:
        self.homes, self._jobs = ExecutorAffinity(), 0

    def run(self, job: Job) -> list[bytes]:
        cores = CORES[min(self._jobs, len(CORES) - 1)]
        self._jobs += 1
        self.homes.assign(job.partitions, dict.fromkeys(map(str, range(cores)), 1), one=job.fused)
        return super().run(job)


def run(root: Path, **given_: Any) -> tuple[list[Manifest], MemorySink]:
    told: list[Manifest] = []
    sink = MemorySink()
    balancing = given_.pop("balancing", None)
    with Engine(spark=False, checkpoint=root / "ck", epoch_rows=50, sink=sink, **given_) as engine:
        engine._executor = Cluster
        if balancing is not None:
            engine._balancing = balancing
        for name, elements in ((S, LEFT), (T, RIGHT)):
            engine.stream(name, write_lines(root / f"{name[-1]}.nt", elements))
        register(engine, [JOIN])
        engine._on_epoch(told.append)
        engine.start(once=True)
        engine.await_end()
    return told, sink


def partitions(told: list[Manifest]) -> list[int]:
    return [1 + max(int(key.split(".")[1]) for key in m.state) for m in told]


def test_partitions_follow_the_cores(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(partition_count, "MORE", 0)
    monkeypatch.setattr(partition_count, "FEWER", 0)
    told, sink = run(tmp_path, partitions="cores", master="spark://nowhere:7077")
    judge([JOIN], {S: LEFT, T: RIGHT}, sink.reports)
    assert [m.executors.cores for m in told[:9] if m.executors] == list(CORES)
    # those of the job before, since an epoch is decided before it runs; 0 is not known
    assert partitions(told)[1:10] == [1, 1, 4, 4, 3, 3, 2, 2, 5]


def test_a_given_number_stays(tmp_path: Path) -> None:
    told, sink = run(tmp_path, partitions=3, master="spark://nowhere:7077")
    judge([JOIN], {S: LEFT, T: RIGHT}, sink.reports)
    assert set(partitions(told)) == {3}


def test_balance_follows_too(tmp_path: Path) -> None:
    options = BalanceOptions(reorganize_every=3)
    balancing = ByRows(options, most=4, least=0.0)
    told, sink = run(tmp_path, balancing=balancing, master="local[4]")
    judge([JOIN], {S: LEFT, T: RIGHT}, sink.reports)
    whys = [d.reason for m in told if m.balance is not None for d in m.balance.decisions]
    assert "executors have left: 3 cores are there" in whys, whys


def test_what_is_gone_is_missed_later_than_what_comes_is_used() -> None:
    cores, now = 4, 0
    follow = ExecutorCoreTracker(lambda: now)
    table = deal_round_robin(64, 2)
    assert follow.deal(table, cores) is None
    now = MORE
    more = follow.deal(table, cores)
    assert more is not None and more.partitions == 4
    stay = more.partition[more.partition < 2] == table.partition[more.partition < 2]
    assert stay.all() and np.bincount(more.partition).tolist() == [16] * 4
    cores = 3
    assert follow.deal(more, cores) is None
    now += FEWER - 1
    assert follow.deal(more, cores) is None
    cores = 4
    assert follow.deal(more, cores) is None, "it has been replaced"
    cores, now = 3, now + 2
    assert follow.deal(more, cores) is None
    now += FEWER
    fewer = follow.deal(more, cores)
    assert fewer is not None and fewer.partitions == 3


def test_what_was_chosen_of_as_many_cores_stays_until_there_are_others() -> None:
    """Then all of them are used, until it is known again what is best."""
    cores, now = 4, 0
    follow = ExecutorCoreTracker(lambda: now, always=False, table_cores=4)
    table = deal_round_robin(64, 1)
    assert follow.deal(table, cores) is None
    now = FEWER
    assert follow.deal(table, cores) is None
    cores = 6
    assert follow.deal(table, cores) is None
    now += MORE
    more = follow.deal(table, cores)
    assert more is not None and more.partitions == 6
    assert follow.deal(table, cores) is None, "it has had its say"
