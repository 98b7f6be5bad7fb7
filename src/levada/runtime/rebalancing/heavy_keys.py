"""Divides groups with more work than a partition has time for, if joins allow it (Parallel windowed
joins, W54; ``plan/execution``).

The criterion is the load of the busiest partition after all others have left it alone: the work of
the group if undivided, the work of each share if divided, and never less than the mean of all. The
input of a join goes to every partition that shares the group, and its output is divided. So each
additional share makes more work in all, and a group is divided among the fewest partitions that do
nearly as well as the best. Heavy groups of one partition are treated as one.

A group is *divided* if its partition is a supplier and the busiest load drops by a tenth. It is
divided among other partitions if that holds again. It is *united* if it is less than a quarter of
the mean, or if dividing it gains nothing any more. All criteria use its undivided work, so dividing
a group is not a reason to unite it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

import numpy as np

from levada.core.array_types import Doubles, Longs
from levada.plan.execution.key_group_table import Division, GroupTable, SplitKeyGroup, divide_groups
from levada.runtime.rebalancing.partition_load import Measured

HEAVY, LIGHT = 0.5, 0.25
"""Shares of the mean time of a partition: a group above the first may be divided, and below the
second it is united again.
"""
MAX_BUSY_RATIO, NEAR_BEST_RATIO = 0.9, 1.02
"""Another way must bring the time of the busiest partition to at most the first ratio. A way within
the second ratio of the best one is good enough.
"""
MAX_LARGEST_PART, IDLE = 0.8, 0.9
"""Shares of a group's work: it is divided only if its largest part has at most the first, and
united if its largest part has more than the second.
"""


class Step(NamedTuple):
    """A change of a group: the partitions that share it from now on (its own partition alone: it is
    whole), the seconds an epoch that it takes undivided, and the part of these for each.
    """

    group: int
    parts: tuple[int, ...]
    seconds: float
    part: float


class _Ways(NamedTuple):
    """The options for groups among one partition, two, and so on: the seconds that they take
    ``whole``, the ``part`` of these for each partition, and the load of the ``busiest`` one.
    """

    whole: float
    part: Doubles
    busiest: Doubles

    def best(self) -> int:
        """Returns the fewest partitions that do nearly as well as the best."""
        return int(np.argmax(self.busiest <= NEAR_BEST_RATIO * self.busiest.min())) + 1

    def gains(self, now: int, many: int) -> bool:
        """Whether so many partitions are worth it in place of so many now."""
        return bool(self.busiest[many - 1] <= MAX_BUSY_RATIO * self.busiest[now - 1])


def steps(
    measured: Measured, weights: Doubles, table: GroupTable, suppliers: Collection[int]
) -> list[Step]:
    """Returns the groups to divide or unite, the heaviest first. ``weights``: the seconds of each
    group in its own partition.
    """
    if not len(measured.joined) or table.partitions < 2:
        return []
    candidates = [
        *_reunions(measured, weights, table),
        *_divisions(measured, weights, table, suppliers),
    ]
    return sorted(candidates, key=lambda step: (-step.seconds, step.group))


def apply_steps(table: GroupTable, decided_steps: Collection[Step]) -> GroupTable:
    """Returns the table after dividing or uniting these groups."""
    heavy = {h.group: h for h in table.division.heavy}
    for step in decided_steps:
        heavy.pop(step.group, None)
        if len(step.parts) > 1:
            heavy[step.group] = SplitKeyGroup(step.group, step.parts)
    remaining = tuple(heavy[group] for group in sorted(heavy))
    return divide_groups(table, Division(remaining, table.division.joins))


def expected_seconds(
    measured: Measured, table: GroupTable, decided_steps: Collection[Step]
) -> Doubles:
    """Returns the expected seconds of each partition after these steps."""
    out = measured.seconds.copy()
    before = {h.group: h.parts for h in table.division.heavy}
    for step in decided_steps:
        had = before.get(step.group, (int(table.partition[step.group]),))
        part = _parts(measured, np.array([step.group]))[len(had) - 1]
        out[list(had)] -= step.seconds * part
        out[list(step.parts)] += step.seconds * step.part
    return np.maximum(out, 0.0)


def _divisions(
    measured: Measured, weights: Doubles, table: GroupTable, suppliers: Collection[int]
) -> Iterator[Step]:
    """Yields the heavy groups to divide; those of one partition are treated as one."""
    mean = float(measured.seconds.mean())
    heavy = (weights > HEAVY * mean) & (measured.joined > 0)
    heavy[[h.group for h in table.division.heavy]] = False
    for home in np.unique(table.partition[heavy]).tolist():
        (groups,) = np.nonzero(heavy & (table.partition == home))
        ways = _ways(measured, weights, groups, 1)
        many = ways.best()
        gives = home in suppliers and measured.seconds[home] > mean
        if gives and ways.part[many - 1] <= MAX_LARGEST_PART and ways.gains(1, many):
            yield from _as_one(measured, weights, groups, (home,), many)


def _reunions(measured: Measured, weights: Doubles, table: GroupTable) -> Iterator[Step]:
    """Yields the divided groups to unite, or to divide among others; those with the same partitions
    are treated as one.
    """
    mean = float(measured.seconds.mean())
    shared: dict[tuple[int, ...], list[int]] = {}
    for h in table.division.heavy:
        one = _ways(measured, weights, np.array([h.group]), len(h.parts))
        if one.whole < LIGHT * mean or one.part[len(h.parts) - 1] > IDLE:
            yield Step(h.group, h.parts[:1], one.whole, 1.0)
        else:
            shared.setdefault(h.parts, []).append(h.group)
    for parts, groups in shared.items():
        ways = _ways(measured, weights, np.array(groups), len(parts))
        many = ways.best()
        if many > 1 and ways.gains(len(parts), many):
            yield from _as_one(measured, weights, np.array(groups), parts, many)


def _as_one(
    measured: Measured, weights: Doubles, groups: Longs, now: tuple[int, ...], many: int
) -> Iterator[Step]:
    """Returns the steps for groups that the partitions which share them ``now`` and the idlest
    others share, so many.
    """
    order = np.argsort(measured.seconds, kind="stable").tolist()
    parts = (*now, *[p for p in order if p not in now])[:many]
    for group in groups.tolist():
        one = _ways(measured, weights, np.array([group]), len(now))
        yield Step(group, parts, one.whole, float(one.part[many - 1]))


def _ways(measured: Measured, weights: Doubles, groups: Longs, now: int) -> _Ways:
    """Returns the options for groups that so many share ``now``, each with this weight."""
    part, seconds_each = _parts(measured, groups), float(weights[groups].sum())
    whole = seconds_each / float(part[now - 1])
    each, many = whole * part, np.arange(1, len(part) + 1)
    rest = float(measured.seconds.sum()) - now * seconds_each
    return _Ways(whole, part, np.maximum(each, (rest + many * each) / len(part)))


def _parts(measured: Measured, groups: Longs) -> Doubles:
    """Returns the part of the groups' work for each partition, among one partition, two, and so on
    to all.
    """
    work = measured.divided_work(groups, np.arange(1.0, len(measured.seconds) + 1))
    return work / work[0] if work[0] else np.ones(len(work))
