"""Sets of values of one attribute: unions of intervals over numbers and texts.

``=`` is an interval of one value, ``IN`` several of these, a range one that is wide. An interval
lies between two *cuts*; a cut is before or after a value, or at an end of everything. Parts are in
order and do not touch, so equal sets are equal objects. Numbers come before texts, and are taken to
be dense: that nothing lies between 1 and 2 is not used.

The union of two sets is the least that covers both, so relaxing by it is minimal; the paper's
"minimal cover" is not defined further (section 3.1).
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

Value = int | float | str
Cut = tuple[Any, ...]
Part = tuple[Cut, Cut]

LEAST: Cut = (0,)
GREATEST: Cut = (2,)


def before(value: Value) -> Cut:
    """The cut that has ``value`` above it."""
    return (1, isinstance(value, str), value, 0)


def after(value: Value) -> Cut:
    """The cut that has ``value`` below it."""
    return (1, isinstance(value, str), value, 1)


@dataclass(frozen=True, slots=True)
class Spans:
    """Disjoint intervals in order; none is the empty set."""

    parts: tuple[Part, ...]

    def __or__(self, other: Spans) -> Spans:
        return self if self.parts == other.parts else spans((*self.parts, *other.parts))

    def __and__(self, other: Spans) -> Spans:
        pairs = [(max(a, c), min(b, d)) for a, b in self.parts for c, d in other.parts]
        return spans(pair for pair in pairs if pair[0] < pair[1])

    def covers(self, other: Spans) -> bool:
        """Whether all of ``other`` is in this.

        >>> between(1, 5).covers(values(1, 4)), values(1, 4).covers(between(1, 4))
        (True, False)
        """
        return self.parts == other.parts or all(self._covers(part) for part in other.parts)

    def _covers(self, part: Part) -> bool:
        at = bisect_right(self.parts, part[0], key=lambda own: own[0])
        return at > 0 and part[1] <= self.parts[at - 1][1]

    def has(self, value: Value) -> bool:
        """Whether a value is in this set."""
        return self._covers((before(value), after(value)))

    def hull(self) -> Spans:
        """The least single interval around all parts."""
        return Spans(((self.parts[0][0], self.parts[-1][1]),)) if self.parts else self

    def __str__(self) -> str:
        return " or ".join(_text(part) for part in self.parts) if self.parts else "never"


def spans(parts: Iterable[Part]) -> Spans:
    """The set of these intervals, in any order, touching or not."""
    merged: list[Part] = []
    for low, high in sorted(parts):
        if merged and low <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], high))
        else:
            merged.append((low, high))
    return Spans(tuple(merged))


def values(*found: Value) -> Spans:
    """These values: ``=`` of one, ``IN`` of several.

    >>> str(values("DL", "CO"))
    "'CO' or 'DL'"
    """
    return spans((before(value), after(value)) for value in found)


def between(low: Value | None = None, high: Value | None = None) -> Spans:
    """All from ``low`` to ``high``, both included; None: without a bound.

    >>> str(between(3, 5) | between(high=4))
    '<= 5'
    """
    least = LEAST if low is None else before(low)
    return spans([(least, GREATEST if high is None else after(high))])


def less(high: Value) -> Spans:
    """All below ``high``."""
    return Spans(((LEAST, before(high)),))


def greater(low: Value) -> Spans:
    """All above ``low``."""
    return Spans(((after(low), GREATEST),))


def points(given: Spans) -> list[Value] | None:
    """The values of a set that has no interval of more than one; None of any other."""
    found = [low[2] for low, high in given.parts if len(low) > 1 and high == after(low[2])]
    single = all(low[3] == 0 for low, _ in given.parts if len(low) > 1)
    return found if len(found) == len(given.parts) and single else None


def _text(part: Part) -> str:
    low, high = part
    if len(low) > 1 and len(high) > 1:
        if low[2] == high[2]:
            return repr(low[2])
        signs = "[("[low[3]] + "{!r}, {!r}" + ")]"[high[3]]
        return signs.format(low[2], high[2])
    if len(low) > 1:
        return f"{'>' if low[3] else '>='} {low[2]!r}"
    return f"{'<=' if high[3] else '<'} {high[2]!r}" if len(high) > 1 else "any"
