"""Decides how many partitions there are: by the cores, by the load (balance), or by the model
``epochs``. A number that a user gave, or a placement of groups, stays.

    --partitions auto            the model, from what there is on; other cores on a cluster first
    --partitions cores           the cores, whatever an epoch takes
    --balance on                 the load (``rebalancing.partition_scaling``); with
                                 ``degree=model`` the model, when there is a reorganization,
                                 and groups go by their weights

In all cases the engine measures the model's answer and shows it; it samples epochs unless the model
decides. The engine asks the model before each epoch and writes the answer into the intention, so an
epoch that runs again has the same number. Measurements stay in this process: a new run measures
anew, and keeps the table of the last run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import msgspec
import numpy as np

from levada.checkpoint.epoch_context import TaskOutcome
from levada.checkpoint.manifest import Costs, Degree, Delayed, EpochIntent, Manifest, Resized
from levada.plan.execution.key_group_table import GroupTable, table_of_partitions
from levada.runtime.cost_model.parallelism_choice import SPREAD
from levada.runtime.cost_model.partition_count_model import (
    EpochSample,
    PartitionCountModel,
    merge_decisions,
)
from levada.runtime.driver.parallelism import ParallelismPolicy
from levada.runtime.executor import Executor
from levada.runtime.rebalancing.executor_core_tracking import ExecutorCoreTracker
from levada.runtime.rebalancing.partition_scaling import spread
from levada.runtime.rebalancing.rebalancer import Balancing
from levada.runtime.warmup_executor import all_here, cores_of, is_here, is_starting

MODEL, CORES, LOAD, FIXED, PLACEMENT = "model", "cores", "load", "fixed", "placement"
FIRST, EACH = 16, 8
"""The first epochs of a run are samples, whose costs are measured, and later each so many-th."""


def chosen_of(last: Manifest | None) -> int:
    """Returns the cores from which the model chose the number of partitions of the last epoch; 0:
    the model did not choose.
    """
    costs = None if last is None else last.epoch_costs
    degree = None if costs is None else costs.partition_policy
    return degree.max_partitions if degree is not None and degree.policy == MODEL else 0


class PartitionCountPolicy:
    """Decides the number of partitions of one run. ``by``: one of the words above. ``cores``: of
    this machine, if tasks run on it (0: executors report theirs). ``known``: the cores from which
    the present number was chosen.
    """

    def __init__(
        self, by: str, cores: int, executor: Executor, clock: Callable[[], int], *,
        balancing: Balancing | None = None, known: int = 0,
    ) -> None:  # fmt: skip
        self.by, self.pace, self.balancing = by, ParallelismPolicy(cores), balancing
        self.always = by == MODEL or balancing is not None
        """Whether each epoch is a sample."""
        self._epochs = 0
        self.news: Resized | None = None
        """What the next intention is to tell; None: nothing."""
        self._model, self._fixed_cores, self._executor = PartitionCountModel(), cores, executor
        self._intake: dict[int, list[float]] = {}
        at = partial(cores_of, executor)
        self._following = ExecutorCoreTracker(at, clock, always=by == CORES, known=known)
        if balancing is not None:
            balancing.wanted = self._resize_by_model if by == MODEL else None

    @property
    def decides(self) -> bool:
        """Whether the number may change during the run, or groups may move."""
        return self.balancing is not None or self.by in (MODEL, CORES)

    @property
    def max_partitions(self) -> int:
        """The largest number of partitions (0: unknown)."""
        return self._fixed_cores or cores_of(self._executor)

    def deal(self, epoch: int, table: GroupTable) -> GroupTable | None:
        """Returns the group table of an epoch if it changes; None: it stays."""
        if self.balancing is not None:
            return self.balancing.deal(epoch, table)
        if self.by not in (MODEL, CORES):
            return None
        if (table_for_cores := self._following.deal(epoch, table)) is not None or self.by == CORES:
            return table_for_cores
        parts = self._resize_by_model(epoch, table.partitions)
        if parts is None:
            return None
        return table_of_partitions(spread(table, np.ones(table.groups), parts[0]), parts[0])

    def _resize_by_model(self, epoch: int, now: int) -> tuple[int, str] | None:
        """Returns and applies the number of partitions that the model proposes for an epoch, with
        the reason.
        """
        most = self.max_partitions
        resized = self._model.propose(epoch, now, most) if most else None
        if resized is None:
            return None
        self._model.changes(resized)
        self.news = resized
        return resized.partitions, resized.reason

    def look(self) -> None:
        """Determines where jobs would run now, on how many cores, and whether the next epoch is a
        sample.
        """
        pace, executor = self.pace, self._executor
        self._epochs += 1
        pace.samples = self.always or self._epochs <= FIRST or self._epochs % EACH == 0
        pace.cores = self.max_partitions
        pace.here, pace.light_here = all_here(executor), is_here(executor)

    def costs(
        self,
        intention: EpochIntent,
        done: Sequence[TaskOutcome],
        last: Manifest,
        delay: Delayed | None,
    ) -> Costs:
        """Records the costs of an epoch; returns them with the report about the number of
        partitions.
        """
        if self.balancing is not None:
            self.balancing.look(cores_of(self._executor))
        usual, known = (
            not intention.reads_static and intention.replacement is None,
            last.epoch_costs,
        )
        if usual:
            self.pace.learn(done)
        if not self.pace.samples and known is not None and intention.partition_decision is None:
            choice = msgspec.structs.replace(self.pace.choice, epoch=intention.epoch)
            return msgspec.structs.replace(known, last_epoch=choice, delay=delay)
        costs, self.news = self.pace.describe_epoch(intention.epoch, delay), None
        if usual and not is_starting(self._executor):
            self._see(costs)
        before = last.epoch_costs.partition_policy if last.epoch_costs is not None else None
        decided = before.decisions if before is not None else []
        costs.partition_policy = Degree(
            self.by,
            self.max_partitions,
            {n: round(mean.mean, 3) for n, mean in sorted(self._model.means.items())},
            {n: list(sums) for n, sums in sorted(self._model.measured.items())},
            {n: list(sums) for n, sums in sorted(self._intake.items())},
            merge_decisions(decided, intention.partition_decision, self._model.judged),
        )
        return costs

    def _see(self, costs: Costs) -> None:
        choice, lines = costs.last_epoch, self.pace.ways(here=self.pace.here)
        expected = choice.predicted_ms.get(choice.mode, 0.0)
        self._model.see(
            EpochSample(
                costs.partitions,
                choice.elements,
                expected,
                choice.measured_ms,
                costs.predicted_ms_by_partitions,
                lines,
            )
        )
        if choice.mode == SPREAD and expected:
            n, guessed, took = self._intake.get(choice.readers, (0, 0.0, 0.0))
            self._intake[choice.readers] = [n + 1, guessed + expected, took + choice.measured_ms]
