"""The number of partitions by the model ``epochs``, in a world where it is known what epochs take:
it comes to the best number, stays there, and leaves a number that the model was wrong about.
"""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from levada.checkpoint.epoch_context import TaskOutcome
from levada.checkpoint.manifest import Resized
from levada.connectors.sources.splits import FileSplit
from levada.runtime.cost_model import partition_count
from levada.runtime.cost_model.parallelism_choice import ONE, SPREAD
from levada.runtime.cost_model.partition_count import (
    EpochSample,
    PartitionCountModel,
    merge_decisions,
)
from levada.runtime.driver.parallelism import ParallelismPolicy
from support.call_counter import calls

CORES = 4


class World:
    """Epochs of an engine of one stage: a call takes ``fixed`` ms and ``each`` a row, a job in one
    task 20 and a spread one 40 more; ``lies``: ms that an epoch takes more over a number, which no
    task tells. ``noise``: of what epochs take.
    """

    def __init__(
        self, fixed: float, each: float, *, lies: dict[int, float] | None = None,
        noise: float = 0.1, now: int = CORES, seed: int = 1,
    ) -> None:  # fmt: skip
        self.fixed, self.each, self.lies, self.noise = fixed, each, lies or {}, noise
        self.pace, self.model, self.now = ParallelismPolicy(CORES), PartitionCountModel(), now
        self.rng, self.epoch = np.random.default_rng(seed), 0
        self.decided: list[Resized] = []

    def run(self, epochs: int, elements: int = 10_000) -> None:
        for _ in range(epochs):
            self._epoch(int(elements * (1 + 0.2 * self.rng.standard_normal() ** 2)))

    def true(self, elements: int, parts: int) -> dict[str, float]:
        """What either way takes, without noise."""
        call = self.fixed + self.each * elements / parts
        return {
            ONE: 20 + parts * call + self.lies.get(parts, 0.0),
            SPREAD: 40 + call + self.lies.get(parts, 0.0),
        }

    def _epoch(self, elements: int) -> None:
        self.epoch += 1
        found = self.model.propose(self.epoch, self.now, CORES)
        if found is not None:
            self.model.changes(found)
            self.now = found.partitions
        choice = self.pace.decide(_of(elements), 1, self.now)
        took = self.true(elements, self.now)[choice.mode]
        took *= float(np.exp(self.noise * self.rng.standard_normal()))
        self.pace.took(took / 1e3, here=False)
        rows = elements // self.now
        call = (self.fixed + self.each * rows) / 1e3
        nodes = {"7": 0.8 * call}
        self.pace.learn(
            [
                TaskOutcome(0, 0, cpu_seconds=1e-4),
                *(
                    TaskOutcome(
                        1,
                        p,
                        cpu_seconds=call,
                        seconds=call,
                        cpu_by_node=nodes,
                        rows_by_node={"7": rows},
                    )
                    for p in range(self.now)
                ),
            ]
        )
        costs = self.pace.describe_epoch(self.epoch)
        lines = self.pace.ways(here=False)
        expected = costs.last_epoch.predicted_ms.get(costs.last_epoch.mode, 0.0)
        self.model.see(
            EpochSample(self.now, elements, expected, took, costs.predicted_ms_by_partitions, lines)
        )
        self.decided = merge_decisions(self.decided, found, self.model.judged)


def _of(elements: int) -> list[FileSplit]:
    return [
        FileSplit("s", "p", "f", "/f", "nt", 0, 10 * elements, index=0, document=0,
                  elements=elements)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("fixed", "each", "best"),
    [
        (8.0, 0.0001, {1}),  # calls cost, and not rows
        (0.5, 0.04, {4}),  # 400 ms of rows
    ],
)
def test_the_best_number_is_found_from_wherever_it_begins(
    fixed: float, each: float, best: set[int]
) -> None:
    for now in (1, CORES):
        for seed in range(2):
            world = World(fixed, each, now=now, seed=seed)
            world.run(120)
            assert world.now in best, (now, seed, world.decided)
            assert len(world.decided) <= 3, "it does not swing"


def test_nothing_changes_where_there_is_little_to_win_or_little_is_known() -> None:
    world = World(0.2, 0.0001)
    world.run(300)
    assert world.decided == []
    early = World(8.0, 0.0001)
    early.run(partition_count.SURE)
    assert early.decided == []


def test_a_number_that_is_no_better_is_left_and_tried_more_rarely() -> None:
    """By its calls one partition takes half of the time, and something else makes it slower."""
    world = World(8.0, 0.0001, lies={1: 100.0, 2: 100.0, 3: 100.0})
    world.run(600)
    left = [d for d in world.decided if d.partitions == CORES]
    assert left and "epochs take" in left[0].reason
    tries = [d for d in world.decided if d.partitions == 1]
    assert tries and tries[0].measured_ms is not None and tries[0].measured_ms > tries[0].ms_before
    apart = np.diff([d.epoch for d in tries])
    assert (apart[1:] > apart[:-1]).all(), "each rest is longer than the one before"
    before = len(world.decided)
    world.run(1000)
    assert len(world.decided) <= before + 12


def test_what_a_change_came_to_is_told() -> None:
    world = World(8.0, 0.0001, noise=0.0)
    world.run(100)
    first = world.decided[0]
    assert first.partitions_before == CORES and first.expected_ms < first.ms_before
    assert "predicted to take" in first.reason
    # calls that are gone, but for what the first epochs were guessed to take
    assert first.measured_ms is not None and first.measured_ms < 0.9 * first.ms_before


def test_load_that_comes_later_changes_the_number() -> None:
    world = World(6.0, 0.004, noise=0.05)
    world.run(150, elements=500)
    assert world.now == 1
    world.run(150, elements=200_000)
    assert world.now == CORES


def test_somebody_else_may_change_the_number() -> None:
    world = World(8.0, 0.0001)
    world.run(60)
    assert world.now < CORES
    world.now = 3
    world.run(1)
    assert world.model.propose(world.epoch + 1, 3, CORES) is None, "it is measured first"


def test_what_a_choice_costs_goes_by_numbers_and_not_by_operators() -> None:
    made = []
    for nodes in (1, 1000):
        pace = ParallelismPolicy(16)
        told = {str(i): 1e-5 for i in range(nodes)}
        for _ in range(3):
            pace.decide(_of(5000), 2, 4)
            pace.took(0.03, here=False)
            pace.learn(
                [
                    TaskOutcome(0, 0, cpu_seconds=1e-3),
                    *(TaskOutcome(s, p, cpu_seconds=0.02, cpu_by_node=told,
                                  rows_by_node=dict.fromkeys(told, 10))
                      for s in (1, 2) for p in range(4)),
                ]
            )  # fmt: skip
        model = PartitionCountModel()
        seen = EpochSample(4, 5000, 30.0, 30.0, pace.times_by_partitions(), ())
        made.append(calls(partial(_asked, pace, model, seen)))
    assert made[0] == made[1] < 1500, made


def _asked(pace: ParallelismPolicy, model: PartitionCountModel, seen: EpochSample) -> None:
    """What an epoch asks of the model."""
    pace.times_by_partitions()
    model.see(seen)
    model.propose(9, 4, 16)
