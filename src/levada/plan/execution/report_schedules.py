"""Schedules decide the reports of members; this module finds schedules with equal reports.

Schedules that differ only in their starts are a family. A start only decides which known times
count. So two schedules of a family have equal reports as long as no known time is between their
starts. Old times are forgotten, so queries that were added one by one soon share one list of
reports, regardless of their number. Cost: a search among the known times for each start.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from levada.core.array_types import Ints, Longs
from levada.core.event_time import Window, WindowKind
from levada.plan.execution.shapes import Member

_NONE = np.empty(0, np.int64)


class Schedule(NamedTuple):
    """The inputs of a query's report times: windows with the numbers of their streams (-1: a
    clock), and the start.

    ``show_empty``: empty reports are written. ``nonempty``: empty reports do not exist, so the next
    report is the next one with content.
    """

    windows: tuple[Window, ...]
    streams: tuple[int, ...]
    start: int
    show_empty: bool = False
    nonempty: bool = False


@dataclass(frozen=True)
class Families:
    """Schedules by family: one of each, the numbers of all, and their starts; ``count``: the number
    of schedules.
    """

    parts: tuple[tuple[Schedule, Longs, Longs], ...]
    count: int

    @staticmethod
    def from_schedules(schedules: Sequence[Schedule]) -> Families:
        """Returns the families of these schedules, which are numbered in order."""
        numbers_by_family: dict[Schedule, list[int]] = {}
        for number, schedule in enumerate(schedules):
            numbers_by_family.setdefault(schedule._replace(start=0), []).append(number)
        starts = np.array([s.start for s in schedules], np.int64)
        parts = [(schedules[n[0]], np.array(n), starts[n]) for n in numbers_by_family.values()]
        return Families(tuple(parts), len(schedules))

    def first_equal(self, times: Mapping[int, Longs]) -> Longs:
        """Returns for each schedule the first with equal reports.

        ``times``: the known times of each stream, ascending.
        """
        same = np.arange(self.count)
        for schedule, numbers, starts in self.parts:
            if len(numbers) > 1:
                same[numbers] = numbers[_find_first_equal(schedule, starts, times)]
        return same


@dataclass(frozen=True)
class Schedules:
    """The distinct schedules of members, and the number of each member's schedule."""

    distinct: tuple[Schedule, ...]
    of_member: Ints

    @staticmethod
    def from_members(
        members: Sequence[Member], places: Longs, streams: Mapping[str, int]
    ) -> Schedules:
        """Returns the schedules of these members by place; empty places have that of the first
        member.
        """
        index: dict[Schedule, int] = {}
        keys = [_schedule(m, streams) for m in members]
        of_member = [index.setdefault(key, len(index)) for key in keys]
        return Schedules(tuple(index), np.array(of_member, np.int32)[places])

    @cached_property
    def families(self) -> Families:
        """The distinct schedules grouped by family."""
        return Families.from_schedules(self.distinct)


def _schedule(m: Member, streams: Mapping[str, int]) -> Schedule:
    """Returns a member's schedule, without static graphs, which decide no report."""
    on = [
        (w, streams.get(n, -1))
        for w, n in zip(m.windows, m.streams, strict=False)
        if w.kind is not WindowKind.STATIC
    ]
    return Schedule(
        tuple(w for w, _ in on), tuple(n for _, n in on), m.start, m.show_empty, m.nonempty
    )


def _find_first_equal(schedule: Schedule, starts: Longs, times: Mapping[int, Longs]) -> Longs:
    code = np.zeros(len(starts), np.int64)
    for window, stream in zip(schedule.windows, schedule.streams, strict=True):
        known = times.get(stream, _NONE)
        before = np.searchsorted(known, np.maximum(starts, window.start))
        _, code = np.unique(code * (len(known) + 1) + before, return_inverse=True)
    _, first, of = np.unique(code, return_index=True, return_inverse=True)
    return first[of]
