"""Groups that are more work than a partition has time for, and that joins may divide (Parallel
windowed joins, W54; ``plan/sealed/heavy``).

A group is *divided* when its partition gives and it alone is half of what partitions take on
average, since no move helps then: so it is at least 1/(2P) of all. What joins are given comes to
every partition that shares it, and what they put out is divided; so where the first is most of
its work nothing is won, and it stays whole. It is *united* again when it is less than a quarter of
the mean, or when dividing it wins nothing any more: these are a factor of two apart, and both are
reckoned of what it takes undivided, so dividing a group is no reason to unite it.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from typing import NamedTuple

import numpy as np

from levada.model.arrays import Doubles
from levada.plan.sealed.group_table import Division, GroupTable, Heavy, divided
from levada.runtime.balance.load import Measured

HEAVY, LIGHT = 0.5, 0.25
"""Of the mean time of a partition: what a group must be more than to be divided, and less than to
be united again.
"""
COST = 10
"""What a row costs that a join is given and keeps, in rows that it puts out
(docs/decisions/0049-heavy-keys.md).
"""
WORTH, IDLE = 0.7, 0.9
"""What each partition must have at most of a group's work for it to be divided, at least to be
united.
"""


class Step(NamedTuple):
    """What becomes of a group: who shares it from now on (its own partition alone: it is whole),
    the seconds an epoch that it takes undivided, and the part of these that each is to have.
    """

    group: int
    parts: tuple[int, ...]
    seconds: float
    part: float


def steps(
    measured: Measured, weights: Doubles, table: GroupTable, suppliers: Collection[int]
) -> list[Step]:
    """The groups that are to be divided or united, the heaviest first. ``weights``: the seconds of
    each group in its own partition.
    """
    if not len(measured.joined) or table.partitions < 2:
        return []
    found = [*_united(measured, weights, table), *_divided(measured, weights, table, suppliers)]
    return sorted(found, key=lambda step: (-step.seconds, step.group))


def stepped(table: GroupTable, found: Collection[Step]) -> GroupTable:
    """The table with these groups as they are to be."""
    heavy = {h.group: h for h in table.division.heavy}
    for step in found:
        heavy.pop(step.group, None)
        if len(step.parts) > 1:
            heavy[step.group] = Heavy(step.group, step.parts)
    kept = tuple(heavy[group] for group in sorted(heavy))
    return divided(table, Division(kept, table.division.joins))


def expected(measured: Measured, table: GroupTable, found: Collection[Step]) -> Doubles:
    """The seconds of each partition as they are to become."""
    out = measured.seconds.copy()
    before = {h.group: h.parts for h in table.division.heavy}
    for step in found:
        had = before.get(step.group, (int(table.partition[step.group]),))
        part = _part(measured, step.group, len(had)) if len(had) > 1 else 1.0
        out[list(had)] -= step.seconds * part
        out[list(step.parts)] += step.seconds * step.part
    return np.maximum(out, 0.0)


def _divided(
    measured: Measured, weights: Doubles, table: GroupTable, suppliers: Collection[int]
) -> Iterator[Step]:
    mean = float(measured.seconds.mean())
    whole = (weights > HEAVY * mean) & (measured.joined > 0)
    whole[[h.group for h in table.division.heavy]] = False
    order = np.argsort(measured.seconds, kind="stable").tolist()
    for group in np.flatnonzero(whole).tolist():
        home, seconds = int(table.partition[group]), float(weights[group])
        wanted = math.ceil(seconds / (LIGHT * mean))
        others = [p for p in order if p != home][: wanted - 1]
        part = _part(measured, group, 1 + len(others))
        if home in suppliers and measured.seconds[home] > mean and part <= WORTH:
            yield Step(group, (home, *others), seconds, part)


def _united(measured: Measured, weights: Doubles, table: GroupTable) -> Iterator[Step]:
    mean = float(measured.seconds.mean())
    for h in table.division.heavy:
        part = _part(measured, h.group, len(h.parts))
        seconds = float(weights[h.group]) / part
        if seconds < LIGHT * mean or part > IDLE:
            yield Step(h.group, h.parts[:1], seconds, 1.0)


def _part(measured: Measured, group: int, parts: int) -> float:
    """What of a group's work each of so many partitions has."""
    joined = COST * float(measured.joined[group])
    rest = float(measured.groups[group] - measured.joined[group])
    return (joined + rest / parts) / (joined + rest) if joined + rest else 1.0
