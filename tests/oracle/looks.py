"""At which instants a query is looked at, and what each report says beside the one before."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from typing import TypeVar

from oracle.queries import Window
from oracle.windows import NEVER, Clock, Stay, closes, stepping

Row = TypeVar("Row", bound=Hashable)


def instants(
    held: Sequence[tuple[Window, Sequence[Stay]]], clock: Clock, elements: Sequence[int]
) -> list[int]:
    """The report times of a query, if its streams end behind ``elements``."""
    if not elements:
        return []
    changes = {t for _, stays in held for s in stays for t in (s.enter, s.leave) if t < NEVER}
    last = max(max(changes, default=0), elements[-1])
    if isinstance(clock.policy, int):
        return _periods(clock, elements, changes)
    first = elements[0] + (clock.bounds == "[)")
    found = set[int]()
    for window, stays in held:
        if stepping(window) and clock.policy == "close":
            found.update(closes(window, clock, first, last))
        else:
            found.update(t for s in stays for t in (s.enter, s.leave) if t < NEVER)
    return sorted(found)


def _periods(clock: Clock, elements: Sequence[int], changes: set[int]) -> list[int]:
    """Up to the first that shows the last change, or the last that the elements reach."""
    assert isinstance(clock.policy, int)
    t0, period = clock.t0 or 0, clock.policy
    first = t0 + -((t0 - elements[0]) // period) * period
    last = max(t0 - ((t0 - max(changes, default=0)) // period) * period, elements[-1])
    if clock.t0 is not None:
        first = max(first, t0)
    return list(range(first, last + 1, period))


def content(stays: Iterable[Stay], at: int) -> list[object]:
    """What a window holds at an instant."""
    return [s.said for s in stays if s.enter <= at < s.leave]


def differences(
    results: Sequence[tuple[int, list[Row]]], output: str
) -> list[tuple[int, list[Row], list[Row]]]:
    """What each report inserts and deletes; under RSTREAM all of it is inserted. What is inserted
    keeps its order.
    """
    found = []
    before: list[Row] = []
    for at, now in results:
        if output == "RSTREAM":
            found.append((at, now, list[Row]()))
        else:
            new = _less(now, before) if output in ("ISTREAM", "BOTH") else []
            old = _less(before, now) if output in ("DSTREAM", "BOTH") else []
            found.append((at, new, old))
        before = now
    return found


def _less(rows: Sequence[Row], other: Sequence[Row]) -> list[Row]:
    """A bag without another."""
    left, found = Counter(other), []
    for row in rows:
        if left[row]:
            left[row] -= 1
        else:
            found.append(row)
    return found
