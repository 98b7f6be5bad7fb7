"""The times at which occurrences are in windows: the reference's independent definition of every
kind of window.

Every occurrence of a triple (or row) is in a window from its ``enter`` to its ``leave``: a
``Stay``. Cost: linear in the occurrences; for count windows and sessions quadratic.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from levada.core.event_time import MAX, MIN, Window, WindowKind
from levada.core.frozen import frozen
from levada.testing.reference_model import Element, Item, Row, canonical


@frozen
class Stay:
    """An occurrence in a window: at the instants ``enter <= tau < leave``; ``ts`` is its time."""

    enter: int
    leave: int
    item: Item
    ts: int


def relation_stays(rows: Iterable[Row]) -> list[Stay]:
    """Returns when each row of a relation exists: from insertion to the next deletion, oldest
    first.

    Changes of one instant are added first; a deletion of a missing row is ignored.
    """
    changes: dict[tuple[int, Item], int] = Counter()
    for row in rows:
        changes[row.ts, row.values] += row.sign
    waiting: dict[Item, list[int]] = {}
    stays = []
    for (ts, item), n in sorted(changes.items(), key=lambda change: change[0][0]):
        since = waiting.setdefault(item, [])
        since += [ts] * n
        stays += [Stay(since.pop(0), ts, item, ts) for _ in range(min(-n, len(since)))]
    return stays + [Stay(ts, MAX, item, ts) for item, since in waiting.items() for ts in since]


def occurrences(elements: Sequence[Element | Row], after: int = MIN) -> list[tuple[int, Item]]:
    """Returns (ts, item) of all elements with ts > after, by (ts, canonical text).

    Equal triples of one ts are one occurrence; equal rows stay.
    """
    triples: set[tuple[int, Item]] = {
        (e.ts, triple) for e in elements if isinstance(e, Element) for triple in e.triples
    }
    rows: list[tuple[int, Item]] = [(e.ts, e.values) for e in elements if isinstance(e, Row)]
    return sorted(
        ((ts, x) for ts, x in [*triples, *rows] if ts > after),
        key=lambda occurrence: (occurrence[0], canonical(occurrence[1])),
    )


def stays(window: Window, ordered: Sequence[tuple[int, Item]]) -> list[Stay]:
    """Returns the times at which each occurrence is in the window, without those that never are."""
    counted = [(ts, item) for ts, item in ordered if ts >= window.start]
    match window.kind:
        case WindowKind.COUNT:
            periods = _last_ones(window, counted)
        case WindowKind.SESSION | WindowKind.ENDED:
            periods = _sessions(window, counted)
        case _:
            periods = [Stay(window.enter(ts), window.leave(ts), item, ts) for ts, item in counted]
    return [s for s in periods if s.enter < s.leave]


def _last_ones(window: Window, counted: Sequence[tuple[int, Item]]) -> list[Stay]:
    """Returns the stays in a count window.

    After each step-th occurrence the content is the last ``count`` occurrences so far, until the
    next step.
    """
    stays = []
    for i, (ts, item) in enumerate(counted):
        after = [
            b
            for b in range(window.step, len(counted) + 1, window.step)
            if b - window.count <= i < b
        ]
        if after:
            gone = after[-1] + window.step
            leave = counted[gone - 1][0] if gone <= len(counted) else MAX
            stays.append(Stay(counted[after[0] - 1][0], leave, item, ts))
    return stays


def _sessions(window: Window, counted: Sequence[tuple[int, Item]]) -> list[Stay]:
    """Returns the stays in sessions: elements less than the gap apart, ended a gap after the last
    one.
    """
    stays = []
    for i, (ts, item) in enumerate(counted):
        last = i
        while last + 1 < len(counted) and counted[last + 1][0] - counted[last][0] < window.range:
            last += 1
        end = counted[last][0] + window.range
        stays.append(
            Stay(ts, end, item, ts)
            if window.kind is WindowKind.SESSION
            else Stay(end, end + 1, item, ts)
        )
    return stays


def content(held: Iterable[Stay], tau: int) -> list[tuple[Item, int]]:
    """Returns the items in a window at an instant, each with its ts. Rows are a bag, triples a
    set.
    """
    return [(s.item, s.ts) for s in held if s.enter <= tau < s.leave]
