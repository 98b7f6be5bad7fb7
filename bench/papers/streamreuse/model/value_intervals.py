"""Sets of values of one attribute: unions of intervals over numbers and texts.

``=`` is an interval of one value, ``IN`` several of these, a range one that is wide. An interval
lies between two *cuts*; a cut is before or after a value, or at an end of everything. Parts are in
order and do not touch, so equal sets are equal objects. Numbers come before texts, and are taken to
be dense: that nothing lies between 1 and 2 is not used.

The union of two sets is the least that covers both, so relaxing by it is minimal; the paper's
"minimal cover" is not defined further (section 3.1).
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from levada.core.frozen import frozen

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


@frozen
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


@dataclass(slots=True)
class Segments:
    """Which of some sets, each with a bit of its own, hold a place: a bitmap index of intervals.

    ``bits[i]`` has those that hold all from ``cuts[i]`` to the next cut; before the first and after
    the last there is nothing.
    """

    cuts: list[Any] = field(default_factory=list)
    bits: list[int] = field(default_factory=list)

    def add(self, low: Any, high: Any, bit: int) -> None:
        """A set holds this interval, too."""
        first, end = self._cut(low), self._cut(high)
        for at in range(first, end):
            self.bits[at] |= bit
        for at in range(end, first - 1, -1):
            if self.bits[at] == (self.bits[at - 1] if at else 0):
                del self.cuts[at], self.bits[at]

    def remove(self, bit: int) -> None:
        """A set holds nothing more. Cuts that then divide nothing go."""
        cuts, bits, last = list[Any](), list[int](), 0
        for cut, found in zip(self.cuts, self.bits, strict=True):
            if (kept := found & ~bit) != last:
                cuts.append(cut)
                bits.append(kept)
                last = kept
        self.cuts, self.bits = cuts, bits

    def holding(self, low: Any, high: Any) -> int:
        """The sets that hold both ends of an interval, as bits: all that hold it are among them.

        >>> found = Segments([0], [0])
        >>> found.add(0, 5, 0b01), found.add(3, 9, 0b10)
        (None, None)
        >>> bin(found.holding(4, 5)), bin(found.holding(4, 8)), found.holding(9, 10)
        ('0b11', '0b10', 0)
        """
        at = bisect_right(self.cuts, low) - 1
        if at < 0:
            return 0
        found = self.bits[at]
        if found and at + 1 < len(self.cuts) and self.cuts[at + 1] < high:
            found &= self.bits[bisect_left(self.cuts, high) - 1]
        return found

    def _cut(self, cut: Any) -> int:
        at = bisect_left(self.cuts, cut)
        if at == len(self.cuts) or self.cuts[at] != cut:
            self.cuts.insert(at, cut)
            self.bits.insert(at, self.bits[at - 1] if at else 0)
        return at


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
