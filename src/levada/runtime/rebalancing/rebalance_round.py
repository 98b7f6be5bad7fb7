"""Decides a reorganization: from the measurements of a round to another group table, or none, with
reasons.

    classes   who gives, who takes
    degree    another number of partitions, and nothing else in that reorganization
    heavy     groups that are divided or united, and nothing else either
    moves     a set of groups from each supplier to a consumer

The decision is a function of its arguments, so it can be repeated from the figures. It changes
where work is done, never its results (Parallel windowed joins, 4.3; W12 to W18, W27, W28, W54).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from levada.checkpoint.manifest import (
    DIVIDE,
    GROW,
    MOST_DECIDED,
    MOST_LOADS,
    MOVE,
    SHRINK,
    STAYS_WHOLE,
    UNITE,
    Decision,
    PartitionLoad,
    RebalanceReport,
)
from levada.core.array_types import Doubles, Longs
from levada.core.count_text import count_text
from levada.core.frozen import frozen
from levada.plan.execution.key_group_table import GroupTable, divide_groups, table_of_partitions
from levada.runtime.rebalancing.heavy_keys import Step, apply_steps, expected_seconds, steps
from levada.runtime.rebalancing.partition_load import Kind, Measured, classes, ratio_of
from levada.runtime.rebalancing.partition_scaling import degree, spread
from levada.runtime.rebalancing.rebalancing_options import BalanceOptions, Choice

# Selects the groups that a supplier gives away: a set that weighs at most so much.
#
# The paper gives one partition-group of some sixty by lot. Here there are 65,536 groups, so a move
# has as many as necessary. A group that weighs more than the amount stays. So a busy key that is a
# group by itself is not passed around.


def choose_groups(weights: Doubles, amount: float, choice: str, rng: np.random.Generator) -> Longs:
    """Chooses the positions of the groups to give away, among those with a weight.

    >>> choose_groups(np.array([5.0, 0.0, 2.0, 4.0, 1.0]), 6.5, "largest", np.random.default_rng(1))
    array([0, 4])
    """
    (there,) = np.nonzero(weights > 0)
    if choice == Choice.RANDOM:
        there = rng.permutation(there[weights[there] <= amount])
        return np.sort(there[np.cumsum(weights[there]) <= amount])
    order = there[np.argsort(-weights[there], kind="stable")]
    return np.sort(_largest(weights, order, amount))


def _largest(weights: Doubles, order: Longs, amount: float) -> Longs:
    """Chooses the heaviest group that fits, then the heaviest that fits into the rest, and so on;
    in runs of neighbours, of which there are few.
    """
    w = weights[order]
    groups, at, left = [order[:0]], 0, amount
    while at < len(order):
        at += int(np.searchsorted(-w[at:], -left))  # the first that fits
        fits = int(np.searchsorted(np.cumsum(w[at:]), left, side="right"))
        if not fits:
            break
        groups.append(order[at : at + fits])
        left -= float(w[at : at + fits].sum())
        at += fits
    return np.concatenate(groups)


# Decides which partitions give groups to which: one move from each supplier to one consumer a
# reorganization, so that no supplier gives twice before it is measured again (Parallel windowed
# joins, W15).
#
# The busiest supplier is paired with the idlest consumer. It gives half of their difference, or
# less: then neither is busier than the mean of both was. The weight of a group is its share of its
# partition's time, by its part of the arrived work (``Measured.work``). A move is dropped if it
# relieves the busier of both by less than a twentieth of the mean. So under even loads nothing
# moves, and nothing moves back.


GAIN = 0.05
"""A move must shorten the busier of its two partitions by at least this share of the mean time."""


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


@frozen
class RebalanceState:
    """The state that a reorganization passes to the next one: the partitions that gave and took in
    it, and the number of reorganizations without a supplier.
    """

    gave: frozenset[int] = frozenset()
    took: frozenset[int] = frozenset()
    quiet: int = 0


@frozen
class RebalanceDecision:
    """The new ``table`` (None: unchanged), the report, and the state for the next
    reorganization.
    """

    table: GroupTable | None
    report: RebalanceReport
    standing: RebalanceState


def reorganize(
    measured: Measured,
    table: GroupTable,
    options: BalanceOptions,
    before: RebalanceState,
    most: int,
) -> RebalanceDecision:
    """Decides about the groups after a round. ``most``: the largest number of partitions (0: the
    present one).
    """
    kinds = classes(measured.occupancy, options, before.gave, before.took)
    quiet = 0 if Kind.SUPPLIER in kinds else before.quiet + 1
    weights = weights_of(measured, table)
    parts = degree(measured, kinds, options, most, quiet)
    report = _report_load(measured, table, kinds, options, most)
    if parts != table.partitions:
        return _regroup(measured, table, weights, report, parts=parts)
    if heavy := steps(measured, weights, table, _suppliers(kinds)):
        return _divide(measured, table, heavy, report, quiet)
    decided_moves = moves(measured, kinds, weights, table, options)
    if not decided_moves:
        remark = _stuck(measured, kinds, weights, table)
        return RebalanceDecision(None, _with(report, [], remark), RebalanceState(quiet=quiet))
    out = table.partition.astype(np.int32)
    for move in decided_moves:
        out[move.groups] = move.consumer
    gave, took = (
        frozenset(m.supplier for m in decided_moves),
        frozenset(m.consumer for m in decided_moves),
    )
    decided = _decisions(measured, decided_moves, kinds, table.partitions)
    standing = RebalanceState(gave, took, quiet)
    new = divide_groups(table_of_partitions(out, table.partitions), table.division)
    return RebalanceDecision(new, _with(report, decided), standing)


def resize(
    measured: Measured, table: GroupTable, options: BalanceOptions, parts: int, why: str
) -> RebalanceDecision:
    """Changes the number of partitions, and nothing else, for a reason other than their load."""
    kinds = classes(measured.occupancy, options, frozenset(), frozenset())
    report = _report_load(measured, table, kinds, options, parts)
    weights = weights_of(measured, table)
    return _regroup(measured, table, weights, report, parts=parts, why=why)


def _suppliers(kinds: Sequence[Kind]) -> set[int]:
    return {p for p, kind in enumerate(kinds) if kind is Kind.SUPPLIER}


def _divide(
    measured: Measured,
    table: GroupTable,
    heavy: Sequence[Step],
    report: RebalanceReport,
    quiet: int,
) -> RebalanceDecision:
    """Divides or unites groups, and changes nothing else."""
    ratio = ratio_of(expected_seconds(measured, table, heavy))
    mean = float(measured.seconds.mean())
    decided = []
    for step in heavy[:MOST_DECIDED]:
        many, share = len(step.parts), step.seconds / mean if mean else 0.0
        why = f"group {step.group} takes {share:.2f} times what a partition does on average"
        sharing = ", ".join(map(str, step.parts))
        then = f"partitions {sharing} share it" if many > 1 else "it is whole again"
        decided.append(
            Decision(
                measured.epoch,
                DIVIDE if many > 1 else UNITE,
                step.parts[0],
                -1,
                1,
                table.partitions,
                _round(measured.ratio),
                _round(ratio),
                f"{why}; {then}",
            )
        )
    gave = frozenset(step.parts[0] for step in heavy)
    took = frozenset(p for step in heavy for p in step.parts[1:]) - gave
    return RebalanceDecision(
        apply_steps(table, heavy), _with(report, decided), RebalanceState(gave, took, quiet)
    )


def _regroup(
    measured: Measured,
    table: GroupTable,
    weights: Doubles,
    report: RebalanceReport,
    *,
    parts: int,
    why: str = "",
) -> RebalanceDecision:
    """Changes the number of partitions. ``why``: the reason, if it is not their load."""
    new = table_of_partitions(spread(table, weights, parts), parts)
    moved_groups = int(np.count_nonzero(new.partition != table.partition))
    loads = np.bincount(new.partition, weights, minlength=parts)
    expected = ratio_of(loads.astype(np.float64))
    busy, time = float(measured.seconds.sum()), measured.available
    more = parts > table.partitions
    partitions = count_text(table.partitions, "partition")
    load = f"{partitions} took {busy:.3g} s an epoch, of {time:.3g} s each"
    if measured.hurried:
        load = f"there is a backlog, and the busiest took {measured.seconds.max():.3g} s an epoch"
    decision = Decision(
        measured.epoch,
        GROW if more else SHRINK,
        -1,
        -1,
        moved_groups,
        parts,
        _round(measured.ratio),
        _round(expected),
        why or load,
    )
    return RebalanceDecision(new, _with(report, [decision]), RebalanceState())


def _decisions(
    measured: Measured, decided_moves: Sequence[Move], kinds: Sequence[Kind], parts: int
) -> list[Decision]:
    expected = ratio_of(seconds_after(measured.seconds, decided_moves))
    return [
        Decision(
            measured.epoch,
            MOVE,
            move.supplier,
            move.consumer,
            len(move.groups),
            parts,
            _round(measured.ratio),
            _round(expected),
            f"partition {move.supplier} is a supplier, "
            f"{measured.occupancy[move.supplier]:.2f} full, and {move.consumer} a consumer, "
            f"{measured.occupancy[move.consumer]:.2f} full; "
            f"{_part(move.seconds, measured.seconds[move.supplier])} of its work goes",
        )
        for move in decided_moves
    ]


def _stuck(measured: Measured, kinds: Sequence[Kind], weights: Doubles, table: GroupTable) -> str:
    """Explains why nothing moves although a partition is a supplier; "" if none is."""
    mean = measured.seconds.mean()
    full = [p for p, kind in enumerate(kinds) if kind is Kind.SUPPLIER]
    suppliers = [p for p in full if measured.seconds[p] > mean]  # the others work off their queues
    if not suppliers:
        return ""
    busiest = max(suppliers, key=lambda p: measured.seconds[p])
    if Kind.CONSUMER not in kinds:
        return f"Partition {busiest} would give groups, and none is idle enough to take any."
    group_weights = weights[table.partition == busiest]
    if not group_weights.any():
        return f"Partition {busiest} would give groups, and no rows came for any."
    heavy = _part(float(group_weights.max()), measured.seconds[busiest])
    return (
        f"Partition {busiest} would give groups, and no set of them makes it even: "
        f"the heaviest is {heavy} of its work, {STAYS_WHOLE}"
    )


def _report_load(
    measured: Measured, table: GroupTable, kinds: Sequence[Kind], options: BalanceOptions, most: int
) -> RebalanceReport:
    suppliers, consumers = (kinds.count(k) for k in (Kind.SUPPLIER, Kind.CONSUMER))
    full = table.partitions >= most and suppliers > options.beta * consumers
    busiest = np.argsort(-measured.seconds, kind="stable")[:MOST_LOADS].tolist()
    loads = [
        PartitionLoad(
            p,
            str(kinds[p]),
            _round(measured.occupancy[p]),
            _round(measured.passed[p], 6),
            _round(measured.cpu[p], 6),
            round(float(measured.rows[p])),
        )
        for p in busiest
    ]
    return RebalanceReport(
        measured.epoch, table.partitions, _round(measured.ratio), is_overloaded=full, loads=loads
    )


def _with(report: RebalanceReport, decided: list[Decision], remark: str = "") -> RebalanceReport:
    parts = decided[-1].partitions if decided else report.partitions
    return RebalanceReport(
        report.epoch, parts, report.ratio, report.is_overloaded, remark, report.loads, decided
    )


def _round(value: float, places: int = 3) -> float:
    return round(float(value), places)


def _part(value: float, of: float) -> str:
    return f"{value / of:.0%}" if of else "all"
