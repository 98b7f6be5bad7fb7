"""Windows of an operator: a range for each stream, and the instants at which it reports.

*Instants* are a union of arithmetic progressions (step, offset), in ms: ``every 5 minutes`` is one.
The paper's OR of two slides is their union; a progression within another is left out. They are
never replaced by a common divisor, which would report when nobody asked, and two with other offsets
do not contain each other, which the paper leaves open. That several progressions only together
cover another one is not looked for: it costs a candidate, and nothing else.

One order for all: longer ranges, stream by stream, and more instants contain more (Figure 2).
"""

from __future__ import annotations

from collections.abc import Iterable

from levada.core.frozen import frozen

Progression = tuple[int, int]


@frozen
class Instants:
    """Progressions in order, none within another."""

    parts: tuple[Progression, ...]

    def covers(self, other: Instants) -> bool:
        """Whether each progression of ``other`` is within one of this.

        >>> every(60).covers(every(300)), every(60).covers(every(300, 10))
        (True, False)
        """
        return self.parts == other.parts or all(
            any(within(inner, outer) for outer in self.parts) for inner in other.parts
        )

    def __or__(self, other: Instants) -> Instants:
        return self if self.parts == other.parts else instants((*self.parts, *other.parts))

    def has(self, instant: int) -> bool:
        """Whether it reports then."""
        return any(instant % step == offset for step, offset in self.parts)

    @property
    def rate(self) -> float:
        """Reports a millisecond, at most (instants in common count twice)."""
        return min(1.0, sum(1 / step for step, _ in self.parts))

    def __str__(self) -> str:
        if self == ALWAYS:
            return "on change"
        return " or ".join(
            f"every {minutes(step)}" + (f" from {minutes(offset)}" if offset else "")
            for step, offset in self.parts
        )


@frozen
class Windows:
    """``ranges`` in ms, one for each source in order, and when there are reports."""

    ranges: tuple[int, ...]
    instants: Instants

    def covers(self, other: Windows) -> bool:
        """Whether the other's content can be filtered out of this one's, by times alone.

        >>> Windows((5,), every(1)).covers(Windows((4,), every(2)))
        True
        """
        longer = all(own >= wanted for own, wanted in zip(self.ranges, other.ranges, strict=True))
        return longer and self.instants.covers(other.instants)

    def __or__(self, other: Windows) -> Windows:
        ranges = tuple(max(pair) for pair in zip(self.ranges, other.ranges, strict=True))
        return Windows(ranges, self.instants | other.instants)


def instants(parts: Iterable[Progression]) -> Instants:
    """The union of progressions."""
    found = sorted({(step, offset % step) for step, offset in parts})
    return Instants(tuple(p for p in found if not any(q != p and within(p, q) for q in found)))


def every(step: int, offset: int = 0) -> Instants:
    """Reports every ``step`` ms, of which one is at ``offset``."""
    assert step > 0, "a step is at least 1 ms"
    return Instants(((step, offset % step),))


ALWAYS = every(1)
"""Reports whenever something changes."""


def minutes(ms: int) -> str:
    """A duration as people say it.

    >>> minutes(300_000), minutes(1_500)
    ('5 min', '1.5 s')
    """
    if ms and ms % 60_000 == 0:
        return f"{ms // 60_000} min"
    return f"{ms / 1000:g} s" if ms % 10 == 0 else f"{ms} ms"


def within(inner: Progression, outer: Progression) -> bool:
    """Whether each instant of one progression is one of another."""
    return inner[0] % outer[0] == 0 and inner[1] % outer[0] == outer[1]
