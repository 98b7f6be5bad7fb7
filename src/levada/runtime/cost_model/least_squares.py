"""Fits a line to points that arrive one by one: y = a + b x, by least squares.

The fit keeps six sums and no points. BriskStream's profiles have one constant per operator, and
name a regression as future work (Zhang et al., SIGMOD 2019, sections 3.1 and 8); here x are rows
and y is time. A point weighs 1/x: times of many rows vary more, and small epochs separate a from b.
Neither a nor b is negative: a line that would have a negative one goes through the origin, or is
level.
"""

from __future__ import annotations

from dataclasses import dataclass

BLUR = 0.01
"""By how much x varies (squared, relative) where points and a known slope count alike."""


@dataclass(slots=True)
class Line:
    """The sums over all points so far.

    >>> line = Line()
    >>> for rows in (1, 10, 100):
    ...     line.add(rows, 50.0 + 2.0 * rows)
    >>> a, b = line.fit()
    >>> round(a, 6), round(b, 6), round(line.predict(1000), 6)
    (50.0, 2.0, 2050.0)
    """

    weight: float = 0.0
    x: float = 0.0
    y: float = 0.0
    xx: float = 0.0
    xy: float = 0.0
    points: int = 0

    def add(self, x: float, y: float) -> None:
        """Adds a point."""
        w = 1.0 / max(x, 1.0)
        self.points += 1
        self.weight += w
        self.x += w * x
        self.y += w * y
        self.xx += w * x * x
        self.xy += w * x * y

    def fade(self, keep: float) -> None:
        """Multiplies the weight of all points so far."""
        self.weight *= keep
        self.x *= keep
        self.y *= keep
        self.xx *= keep
        self.xy *= keep

    def fit(self) -> tuple[float, float]:
        """Returns a and b. Without points both are 0. For points at one x the line goes through the
        origin.

        >>> Line().fit()
        (0.0, 0.0)
        """
        if not self.points:
            return 0.0, 0.0
        spread = self.weight * self.xx - self.x * self.x
        if spread <= 1e-9 * self.weight * self.xx:
            return (0.0, self.y / self.x) if self.x else (self.y / self.weight, 0.0)
        b = (self.weight * self.xy - self.x * self.y) / spread
        a = (self.y - b * self.x) / self.weight
        if b < 0.0:
            return self.y / self.weight, 0.0
        return (a, b) if a >= 0.0 else (0.0, self.xy / self.xx)

    def fit_damped(self, slope: float | None = None) -> tuple[float, float]:
        """Returns a and b, with a slope that tends to ``slope`` if the points lie close together
        (None: to that of the line through the origin).

        >>> line = Line()
        >>> for x, y in ((100, 30.0), (101, 28.0), (99, 32.0)):
        ...     line.add(x, y)
        >>> [round(v, 1) for v in line.fit()], [round(v, 1) for v in line.fit_damped(0.1)]
        ([30.0, 0.0], [21.4, 0.1])
        """
        if not self.x or not self.xx:
            return self.fit()
        target = self.y / self.x if slope is None else slope
        known = BLUR * self.xx
        spread = self.xx - self.x * self.x / self.weight
        b = (self.xy - self.x * self.y / self.weight + known * target) / (spread + known)
        a = (self.y - max(b, 0.0) * self.x) / self.weight
        return (a, max(b, 0.0)) if a >= 0.0 else (0.0, self.xy / self.xx)

    def predict(self, x: float) -> float:
        """Returns the y of the line at x."""
        a, b = self.fit()
        return a + b * x
