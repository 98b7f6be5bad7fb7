"""Decides which partitions give groups to which: one move from each supplier to one consumer a
reorganization, so that no supplier gives twice before it is measured again (Parallel windowed
joins, W15).

The busiest supplier is paired with the idlest consumer. It gives half of their difference, or less:
then neither is busier than the mean of both was. The weight of a group is its share of its
partition's time, by its part of the arrived work (``Measured.work``). A move is dropped if it
relieves the busier of both by less than a twentieth of the mean. So under even loads nothing moves,
and nothing moves back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from levada.core.array_types import Doubles, Longs
from levada.plan.execution.key_group_table import GroupTable
from levada.runtime.rebalancing.group_selection import choose_groups
from levada.runtime.rebalancing.partition_classes import Kind
from levada.runtime.rebalancing.partition_load import Measured
from levada.runtime.rebalancing.rebalancing_options import BalanceOptions

GAIN = 0.05
"""Of the mean time: what a move must at least bring the busier of its two partitions down by."""


class Move(NamedTuple):
    """The groups that a supplier gives to a consumer, and their weight in seconds an epoch."""

    supplier: int
    consumer: int
    groups: Longs
    seconds: float


def weights_of(measured: Measured, table: GroupTable) -> Doubles:
    """Returns the seconds an epoch of each group: its part of the time of its partition, by work;
    for a divided group the time in each partition.
    """
    parts, work = len(measured.seconds), measured.work
    for h in table.division.heavy:
        work[h.group] = measured.divided_work(np.array([h.group]), float(len(h.parts)))
    whole = np.bincount(table.partition, work, minlength=parts)
    for h in table.division.heavy:
        whole[list(h.parts[1:])] += work[h.group]
    rate = np.divide(measured.seconds, whole, out=np.zeros(parts), where=whole > 0)
    return np.asarray(work * rate[table.partition])


def moves(
    measured: Measured, kinds: Sequence[Kind], weights: Doubles, table: GroupTable,
    options: BalanceOptions,
) -> list[Move]:  # fmt: skip
    """Returns the moves of a reorganization. Divided groups stay."""
    seconds, stays = measured.seconds, np.zeros(table.groups, np.bool_)
    stays[[h.group for h in table.division.heavy]] = True
    order = np.argsort(-seconds, kind="stable").tolist()
    suppliers = [p for p in order if kinds[p] is Kind.SUPPLIER]
    consumers = [p for p in reversed(order) if kinds[p] is Kind.CONSUMER]
    decided_moves = []
    for supplier, consumer in zip(suppliers, consumers, strict=False):
        rng = np.random.default_rng((options.seed, measured.epoch, supplier))
        amount = float(seconds[supplier] - seconds[consumer]) / 2
        (candidates,) = np.nonzero((table.partition == supplier) & ~stays)
        groups = candidates[choose_groups(weights[candidates], amount, options.choice, rng)]
        weight = float(weights[groups].sum())
        busier = max(seconds[supplier] - weight, seconds[consumer] + weight)
        if len(groups) and seconds[supplier] - busier >= GAIN * seconds.mean():
            decided_moves.append(Move(supplier, consumer, groups, weight))
    return decided_moves


def seconds_after(seconds: Doubles, decided_moves: Sequence[Move]) -> Doubles:
    """Returns the expected seconds of each partition after these moves."""
    out = seconds.copy()
    for move in decided_moves:
        out[move.supplier] -= move.seconds
        out[move.consumer] += move.seconds
    return out
