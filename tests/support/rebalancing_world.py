"""A world for balance: groups that weigh what they weigh, partitions that take as long as their
groups weigh, noise; and an engine whose partitions take as long as is drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from levada.checkpoint.epoch_context import EpochContext, TaskOutcome
from levada.checkpoint.manifest import RebalanceReport
from levada.core.array_types import Doubles
from levada.plan.execution.key_group_table import GroupTable
from levada.runtime.rebalancing.partition_load import COST, Load, Round
from levada.runtime.rebalancing.rebalance_round import (
    RebalanceDecision,
    RebalanceState,
    reorganize,
)
from levada.runtime.rebalancing.rebalancer import Balancing
from levada.runtime.rebalancing.rebalancing_options import BalanceOptions


@dataclass
class World:
    """``weight``: seconds an epoch of each group; ``rows``: that come for it; ``noise``: of each
    partition's time in each epoch; ``speed``: of the machine of each partition. ``least``: seconds
    between epochs, if there is no backlog; ``driver``: that an epoch takes beside its stages.
    ``joined``: of the rows, those that joins are given that may divide groups.
    """

    weight: Doubles
    rows: Doubles
    table: GroupTable
    options: BalanceOptions = field(default_factory=BalanceOptions)
    noise: float = 0.1
    speed: Doubles | None = None
    least: float = 0.0
    driver: float = 0.0
    most: int = 0
    seed: int = 1
    joined: Doubles | None = None

    def __post_init__(self) -> None:
        self.rng = np.random.default_rng(self.seed)
        self.standing, self.epoch = RebalanceState(), 0
        self.round = self._next(np.zeros(self.table.groups), np.zeros(0))
        self.found: list[RebalanceDecision] = []

    def _next(self, groups: Doubles, queue: Doubles, joined: Doubles | None = None) -> Round:
        known = np.zeros(0) if joined is None else joined
        return Round(self.table.partitions, groups, self.options, queue, joined=known)

    def true(self) -> Doubles:
        """The seconds of each partition, without noise."""
        own = np.bincount(self.table.partition, self.weight, minlength=self.table.partitions)
        for h in self.table.division.heavy:
            assert self.joined is not None, "what is divided is joined"
            joined, rows = COST * float(self.joined[h.group]), float(self.rows[h.group])
            joined /= joined + rows - float(self.joined[h.group])
            part = joined + (1 - joined) / len(h.parts)
            own[h.parts[0]] -= self.weight[h.group]
            own[list(h.parts)] += self.weight[h.group] * part
        return np.asarray(own / (1.0 if self.speed is None else self.speed), np.float64)

    @property
    def ratio(self) -> float:
        """The busiest partition by the mean one, without noise."""
        return float(self.true().max() / self.true().mean())

    def reorganize(self, times: int = 1) -> None:
        """So many rounds, each with its reorganization."""
        for _ in range(times):
            self._round()

    def _round(self) -> None:
        for i in range(self.options.reorganize_every):
            self.epoch += 1
            seconds = self.true() * np.exp(self.noise * self.rng.standard_normal(len(self.true())))
            counted = self.rng.poisson(self.rows) if i % 5 == 0 else None
            rows = np.bincount(self.table.partition, self.rows, minlength=len(seconds))
            cpu = seconds if self.speed is None else seconds * self.speed
            joined = (
                None
                if counted is None or self.joined is None
                else np.rint(self.joined).astype(np.int64)
            )
            load = Load(seconds, cpu, rows.astype(np.int64), counted, joined)
            span = max(self.least, float(seconds.max()) * 1.2 + self.driver)
            self.round.add(load, span, self.least, hurried=not self.least)
        measured = self.round.measure(self.epoch + 1)
        found = reorganize(measured, self.table, self.options, self.standing, self.most)
        self.found.append(found)
        self.standing, self.table = found.standing, found.table or self.table
        queue = self.round.queue.copy()
        queue = queue if len(queue) == self.table.partitions else np.zeros(self.table.partitions)
        queue[list(found.standing.gave | found.standing.took)] = 0.0
        self.round = self._next(self.round.groups, queue, self.round.joined)

    @property
    def moves(self) -> list[int]:
        """How many moves there were in each reorganization."""
        return [sum(d.action == "move" for d in f.report.decisions) for f in self.found]


class Drawn(Balancing):
    """Balance over loads that are drawn for each epoch: some partitions are idle, some take an
    hour, with a backlog and without.
    """

    def __init__(self, options: BalanceOptions, most: int, seed: int) -> None:
        super().__init__(options, most=most, least=3600.0)
        self._seed = seed
        self.decided: list[str] = []

    def deal(self, epoch: int, table: GroupTable) -> GroupTable | None:
        """The table, as ever; what was decided is kept."""
        found = super().deal(epoch, table)
        if found is not None and self.news is not None:
            self.decided.append(self.news.decisions[-1].action)
        return found

    def see(
        self,
        done: Sequence[TaskOutcome],
        context: EpochContext,
        told: RebalanceReport | None,
        *,
        hurried: bool,
        spread: bool,
    ) -> None:
        """An epoch as it is drawn, also the first of a process."""
        self._wall = max(self._wall, 0)
        rng = np.random.default_rng((self._seed, context.epoch))
        idle = rng.random() < 0.3
        hours = 3600.0 * rng.choice((0.01, 0.1, 1.0, 2.0), context.partitions)
        for d in done:
            d.cpu_seconds = 0.0 if idle else float(hours[d.partition])
        super().see(done, context, told, hurried=bool(rng.integers(2)), spread=True)


class ByRows(Balancing):
    """Balance over loads that are rows: a partition takes a microsecond for each that came."""

    def see(
        self,
        done: Sequence[TaskOutcome],
        context: EpochContext,
        told: RebalanceReport | None,
        *,
        hurried: bool,
        spread: bool,
    ) -> None:
        """An epoch in which time is rows."""
        for d in done:
            d.cpu_seconds = d.input_rows / 1e6
        super().see(done, context, told, hurried=True, spread=True)
