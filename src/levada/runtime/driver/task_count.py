"""One task or many: what an epoch's job is spread over (docs/decisions/0007-one-task-or-many.md).

A job in one task costs Spark about 20 CPU-ms, one with a shuffle between two tasks a side about 45,
and as much time; and tasks that share a memory bus get in each other's way. So a small epoch runs
as one task, unless the last one that did took long (few elements can make much due); then the next
``WARY`` ones do not. A large epoch runs in the way that has taken less time per element here; the
other way is tried again the more rarely the slower it was. Both ways give the same outcomes.
"""

from __future__ import annotations

from collections.abc import Sequence

from levada.runtime.task.intake import Payload
from levada.sources.reference import Reference

# bytes of references per intake task at most, read one after the other; a task costs Spark 10
# CPU-ms
BUNDLE = 64 << 20
SMALL = 100_000  # elements
SMALL_BYTES = 16 << 20
MOST_BYTES = 512 << 20  # what one task is ever given
CALLS = 16  # of the stage function (partitions times stages); with more, jobs are always spread
SLOW = 0.25  # s
WARY = 20  # epochs
TRY = 16  # epochs between trials, times how much slower the other way is


class Pace:
    """Decides for one engine, epoch after epoch: ``one_task`` before each, ``took`` after it."""

    def __init__(self) -> None:
        self._wary = 0
        # s per element of large epochs, by whether they ran as one task
        self._cost: dict[bool, float] = {}
        self._trial = 0  # large epochs until the next
        self._elements = 0  # of the epoch that was decided last; 0: it was a small one

    def one_task(self, references: Sequence[Reference], calls: int) -> bool:
        """Whether an epoch of these references and so many calls of ``stage`` runs as one task."""
        elements = sum(r.elements for r in references)
        # rows of Parquet count as bytes: they are few
        size = sum(r.stop - r.start for r in references)
        small = elements <= SMALL and size <= SMALL_BYTES
        self._elements = 0 if small else elements
        if calls > CALLS or size > MOST_BYTES:
            return False
        return self._small() if small else self._large()

    def _small(self) -> bool:
        self._wary = max(self._wary - 1, 0)
        return not self._wary

    def _large(self) -> bool:
        if len(self._cost) < 2:
            return False in self._cost
        better = self._cost[True] < self._cost[False]
        self._trial -= 1
        return better if self._trial > 0 else not better

    def took(self, one_task: bool, seconds: float) -> None:
        """How long the epoch took."""
        if not self._elements:
            self._wary = WARY if one_task and seconds > SLOW else self._wary
            return
        cost = seconds / self._elements
        self._cost[one_task] = (cost + self._cost.get(one_task, cost)) / 2
        if self._trial <= 0 and len(self._cost) == 2:
            low, high = sorted(self._cost.values())
            self._trial = round(TRY * high / low)


def bundles(references: Sequence[Reference], tasks: int) -> list[Payload]:
    """References in bundles of bounded size, at least one task's share each; the order within a
    partition is kept.
    """
    if not references:
        return []
    total = sum(r.stop - r.start for r in references)
    bound = max(min(BUNDLE, total // tasks), 1)
    out: list[Payload] = []
    size = bound
    for reference in references:
        if size >= bound:
            out.append(Payload([]))
            size = 0
        out[-1].references.append(reference)
        size += max(reference.stop - reference.start, 1)
    return out
