"""Schedules that differ in their starts alone, as columns.

A start decides which of the times that are known count, and nothing else. So two schedules of one
family say the same as long as no known time lies between their starts; times of long ago are
forgotten, so queries that came one by one soon have one list of reports together, however many they
are. Cost: a search among the known times for each start.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from levada.plan.topology.topology import Schedule

I64 = npt.NDArray[np.int64]
_NONE = np.empty(0, np.int64)


@dataclass(frozen=True)
class Families:
    """Schedules by family: one of each, the numbers of all, their starts. ``count``: how many
    schedules there are.
    """

    parts: tuple[tuple[Schedule, I64, I64], ...]
    count: int

    @staticmethod
    def of(schedules: Sequence[Schedule]) -> Families:
        """The families of these schedules, which are numbered as they stand."""
        found: dict[Schedule, list[int]] = {}
        for number, schedule in enumerate(schedules):
            found.setdefault(schedule._replace(start=0), []).append(number)
        starts = np.array([s.start for s in schedules], np.int64)
        parts = [(schedules[n[0]], np.array(n), starts[n]) for n in found.values()]
        return Families(tuple(parts), len(schedules))

    def alike(self, times: Mapping[int, I64]) -> I64:
        """For each schedule the first that says the same; ``times`` are the known ones of each
        stream, ascending.
        """
        same = np.arange(self.count)
        for schedule, numbers, starts in self.parts:
            if len(numbers) > 1:
                same[numbers] = numbers[_first_alike(schedule, starts, times)]
        return same


def _first_alike(schedule: Schedule, starts: I64, times: Mapping[int, I64]) -> I64:
    code = np.zeros(len(starts), np.int64)
    for window, stream in zip(schedule.windows, schedule.streams, strict=True):
        known = times.get(stream, _NONE)
        before = np.searchsorted(known, np.maximum(starts, window.start))
        _, code = np.unique(code * (len(known) + 1) + before, return_inverse=True)
    _, first, of = np.unique(code, return_index=True, return_inverse=True)
    return first[of]
