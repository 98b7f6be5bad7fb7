"""Rebalances a run: measures the load of epochs, and decides before each one whether groups move.

There are two clocks, as in the paper: an epoch, and a reorganization after every so many of them.
Tasks report their times in each epoch, and rows by group in some (``measures``), since these are
expensive. Measurements stay in this process: a new run measures anew, with the table of the last
run. The intention of an epoch contains the decision of its reorganization, so a repeated epoch has
the same table and report.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from levada.checkpoint.epoch_context import (
    ROWS,
    TIMES,
    EpochContext,
    TaskOutcome,
    load_groups,
    load_plan,
)
from levada.checkpoint.manifest import RebalanceReport, with_history, with_join_remark
from levada.plan.execution.key_group_table import GroupTable
from levada.plan.execution.splittable_joins import find_divisible_joins
from levada.runtime.rebalancing.partition_load import Round, load_of
from levada.runtime.rebalancing.rebalance_round import RebalanceState, reorganize, resize
from levada.runtime.rebalancing.rebalancing_options import BalanceOptions, Measure

COUNTED = 5
"""One epoch in so many has its rows counted by group."""


class Balancing:
    """Rebalances one engine. ``most``: the largest number of partitions, until executors of a
    cluster report their cores; 0: groups move, and the load does not change the number. ``least``:
    the least seconds between the starts of two epochs.
    """

    def __init__(self, options: BalanceOptions, *, most: int, least: float) -> None:
        self._options, self._most, self._least = options, most, least
        self._round: Round | None = None
        self._standing = RebalanceState()
        self._cores = 0  # the most that executors had in this round
        self._wall = -1  # ms, of the epoch before
        self._was_one_task = False
        self._known: RebalanceReport | None = None
        self._whole: tuple[str, ...] = ()  # why joins of the plan do not divide a group
        self.wanted: Callable[[int, int], tuple[int, str] | None] | None = None
        """Returns the new number of partitions and the reason for the next epoch and the present
        number; None if the number stays. Without this function the load decides (``degree``).
        """
        self.news: RebalanceReport | None = None
        """The report for the next intention; None if there is none."""

    @property
    def resizes(self) -> bool:
        """Whether the load also decides the number of partitions."""
        return bool(self._most)

    @property
    def measures(self) -> int:
        """Returns the measurements that the tasks of the next epoch report."""
        done = self._round.epochs if self._round is not None else 0
        by_group = not done % min(COUNTED, self._options.reorganize_every)
        return ROWS if by_group and not self._was_one_task else TIMES

    def deal(self, epoch: int, table: GroupTable) -> GroupTable | None:
        """Returns the group table from an epoch on, if it changes."""
        now = self._round
        if now is None or now.partitions != table.partitions:
            return None
        if now.epochs < self._options.reorganize_every:
            return None
        measured = now.measure(epoch)
        # an executor that is replaced within the round does not count as missing
        cores, self._cores = min(self._cores, table.groups) if self._most else 0, 0
        if 0 < cores < table.partitions:
            why = f"executors have left: {cores} cores are there"
            decision = resize(measured, table, self._options, cores, why)
        elif self.wanted is not None and (resizing := self.wanted(epoch, table.partitions)):
            decision = resize(measured, table, self._options, *resizing)
        else:
            most = 0 if self.wanted is not None else cores or self._most
            decision = reorganize(measured, table, self._options, self._standing, most)
        report = with_join_remark(decision.report, self._whole)
        self._standing, self.news = decision.standing, with_history(self._known, report)
        new = decision.table or table
        queue = now.queue.copy() if new.partitions == table.partitions else np.zeros(0)
        queue[list(decision.standing.gave | decision.standing.took)] = 0.0
        self._round = Round(new.partitions, now.groups, self._options, queue, joined=now.joined)
        return decision.table

    def look(self, cores: int) -> None:
        """Sets the cores that the executors of a cluster have now; 0: there is no cluster."""
        self._cores = max(self._cores, cores)

    def see(
        self,
        done: Sequence[TaskOutcome],
        context: EpochContext,
        last_report: RebalanceReport | None,
        *,
        hurried: bool,
        spread: bool,
    ) -> None:
        """Records the reports of the tasks and of the manifest of an epoch. ``hurried``: the epoch
        began at once, without waiting for its interval. ``spread``: it ran as many tasks; the
        elapsed times of one task are not those of several executors, and do not count.
        """
        self._known, self.news = last_report, None
        table, before, self._wall = (
            load_groups(context.group_table_file),
            self._wall,
            context.wall_ms,
        )
        if context.load_detail == ROWS:
            self._whole = tuple(find_divisible_joins(load_plan(context.plan)).whole.values())
        if self._round is None or self._round.partitions != table.partitions:
            known = np.zeros(table.groups) if self._round is None else self._round.groups
            self._round = Round(table.partitions, known, self._options)
        self._was_one_task = not spread and self._options.measure == Measure.TIME
        if before >= 0 and not self._was_one_task:  # the first epoch of a process loads kernels
            load = load_of(done, table)
            span = max(context.wall_ms - before, 0) / 1000
            self._round.add(load, span, self._least, hurried=hurried)
