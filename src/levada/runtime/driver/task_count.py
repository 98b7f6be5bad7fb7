"""One task or many: what an epoch's job is spread over (docs/decisions/0007-one-task-or-many.md).

A job in one task costs Spark about 20 CPU-ms, one with a shuffle between two tasks a side about 45,
and as much time; and tasks that share a memory bus get in each other's way. So a small epoch runs
as one task, unless the last one that did took long (few elements can make much due); then the next
``WARY`` ones do not. A large epoch runs in the way that has taken less time per element here; the
other way is tried again the more rarely the slower it was. Both ways give the same outcomes.

An epoch in one task of hardly any elements is *light* if nothing in it is parsed by what could end
its process (documents, Parquet): where the driver may run it itself, it does (``runtime.late``).
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from levada.runtime.graph.placed import Placed
from levada.runtime.graph.task_graph import reader
from levada.runtime.task.intake import Payload
from levada.sources.reference import AnyReference, MadeReference, Reference
from levada.streams.formats import LINES

# bytes of references per intake task at most, read one after the other; a task costs Spark 10
# CPU-ms
BUNDLE = 64 << 20
SMALL = 100_000  # elements
SMALL_BYTES = 16 << 20
MOST_BYTES = 512 << 20  # what one task is ever given
CALLS = 16  # of the stage function (partitions times stages); with more, jobs are always spread
SLOW = 0.25  # s
WARY = 20  # epochs
LIGHT = 1_000  # elements, of these formats; the work of more outweighs a task's cost
LIGHT_FORMATS = frozenset((*LINES, "csv", "ndjson"))
TRY = 16  # epochs between trials, times how much slower the other way is


class Pace:
    """Decides for one engine, epoch after epoch: ``one_task`` before each, ``took`` after it."""

    def __init__(self) -> None:
        self._wary = 0
        # s per element of large epochs, by whether they ran as one task
        self._cost: dict[bool, float] = {}
        self._trial = 0  # large epochs until the next
        self._elements = 0  # of the epoch that was decided last; 0: it was a small one

    def one_task(self, references: Sequence[AnyReference], calls: int) -> bool:
        """Whether an epoch of these references and so many calls of ``stage`` runs as one task."""
        elements = sum(r.elements for r in references)
        size = sum(r.size for r in references)
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

    def is_light(self, references: Sequence[AnyReference]) -> bool:
        """Whether the epoch that was decided last, of these references, is light if it is one
        task.
        """
        few = not self._elements and sum(r.elements for r in references) <= LIGHT
        return few and all(map(_is_light, references))

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


def _is_light(reference: AnyReference) -> bool:
    if isinstance(reference, Reference):
        return reference.format in LIGHT_FORMATS
    return isinstance(reference, MadeReference)


def bundles(
    references: Sequence[AnyReference],
    tasks: int,
    *,
    apart: bool = False,
    placed: Placed | None = None,
) -> list[Payload]:
    """References in bundles of bounded size, at least one task's share each; the order within a
    partition is kept. ``apart``: each with those of one source partition, whose reader's name it
    has, so that what it sends can be counted. ``placed``: each with those of one machine.
    """
    if not references:
        return []
    if apart:
        by_reader: dict[str, list[AnyReference]] = {}
        for r in references:
            by_reader.setdefault(reader(r.stream, r.partition), []).append(r)
        return [
            msgspec.structs.replace(payload, reader=name)
            for name, own in by_reader.items()
            for payload in bundles(own, tasks)
        ]
    if placed is not None:
        by_machine: dict[int, list[AnyReference]] = {}
        for r in references:
            by_machine.setdefault(placed.of(r), []).append(r)
        each = max(tasks // len(by_machine), 1)
        return [payload for own in by_machine.values() for payload in bundles(own, each)]
    total = sum(r.size for r in references)
    bound = max(min(BUNDLE, total // tasks), 1)
    out: list[Payload] = []
    size = bound
    for reference in references:
        if size >= bound:
            out.append(Payload([]))
            size = 0
        out[-1].references.append(reference)
        size += max(reference.size, 1)
    return out
