"""Chooses the numbers of partitions and tasks that are worth a comparison, and computes means that
fade.
"""

from __future__ import annotations

from dataclasses import dataclass

KEEP = 0.9
"""The weight of earlier measurements when an epoch adds its own."""
MOST_OFF = 3.0
"""Times the mean: what one epoch counts at most."""


def numbers(most: int, *more: int) -> list[int]:
    """Returns numbers up to ``most``, each at most half as many again as the one before, and
    ``more``. The time of an epoch is flat around its minimum, so numbers between them would gain
    nothing measurable.

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
    """A mean in which old values fade, and a single delayed epoch counts little.

    >>> mean = DecayingMean()
    >>> for _ in range(30):
    ...     mean.add(2.0)
    >>> mean.add(1000.0)
    >>> round(mean.mean, 1)
    2.4
    """

    mean: float = 0.0
    points: int = 0

    def add(self, value: float) -> None:
        """Adds the value of an epoch."""
        keep = min(self.points / (self.points + 1), KEEP)
        counts = min(value, MOST_OFF * self.mean) if self.points > 1 and self.mean else value
        self.mean = keep * self.mean + (1 - keep) * counts
        self.points += 1
