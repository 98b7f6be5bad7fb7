"""Measurements of the rows of parts and joins for each element of the streams, the input of join
orders (``plan/sharing/join_orders``). No result depends on it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from levada.core.size_thresholds import register
from levada.plan.execution.plan import At

MIN_ELEMENTS = register(f"{__name__}.MIN_ELEMENTS", 1000)
"""The minimum number of elements for a rate."""


@dataclass(slots=True)
class Flows:
    """The rows of members, each with the elements that arrived meanwhile."""

    counts: dict[At, tuple[int, int]] = field(default_factory=dict)

    def observe(self, flows: Mapping[str, Sequence[int]]) -> None:
        """Records the counts of a manifest.

        >>> flows = Flows()
        >>> flows.observe({"7 0": [50, 1000], "8 3": [1, 10]})
        >>> flows.rate((7, 0)), flows.rate((8, 3))
        (0.05, None)
        """
        self.counts = {}
        for place, (rows, elements) in flows.items():
            node, member = map(int, place.split())
            self.counts[node, member] = rows, elements

    def rate(self, at: At) -> float | None:
        """Returns the rows of a member for each element; None: too few elements were measured."""
        rows, elements = self.counts.get(at, (0, 0))
        return rows / elements if elements >= MIN_ELEMENTS else None
