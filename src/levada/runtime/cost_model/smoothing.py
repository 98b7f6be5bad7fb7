"""Numbers of partitions and of tasks that are worth a comparison, and means that fade."""

from __future__ import annotations

from dataclasses import dataclass

KEEP = 0.9
"""Of what is known, when an epoch adds to it."""
MOST_OFF = 3.0
"""Times the mean: what one epoch counts at most."""


def numbers(most: int, *more: int) -> list[int]:
    """Numbers up to ``most``, each at most half as many again as the one before, and ``more``: what
    an epoch takes is flat about its least, so that those between would win nothing that is seen.

    >>> numbers(20), numbers(2, 3), numbers(0, 4)
    ([1, 2, 3, 4, 6, 8, 12, 16, 20], [1, 2, 3], [4])
    """
    halves = range(max(most, 0).bit_length())
    candidates = {
        *more,
        *(2**k for k in halves),
        *(3 * 2**k for k in halves),
        *([most] * (most > 0)),
    }
    return sorted(n for n in candidates if n <= most or n in more)


@dataclass(slots=True)
class DecayingMean:
    """A mean in which what was long ago fades, and one epoch that was held up counts for little.

    >>> mean = DecayingMean()
    >>> for _ in range(30):
    ...     mean.add(2.0)
    >>> mean.add(1000.0)
    >>> round(mean.mean, 1)
    2.4
    """

    mean: float = 0.0
    seen: int = 0

    def add(self, value: float) -> None:
        """One more epoch."""
        keep = min(self.seen / (self.seen + 1), KEEP)
        counts = min(value, MOST_OFF * self.mean) if self.seen > 1 and self.mean else value
        self.mean = keep * self.mean + (1 - keep) * counts
        self.seen += 1
