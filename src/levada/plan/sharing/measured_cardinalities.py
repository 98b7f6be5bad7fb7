"""How many rows parts and joins have for each element of the streams, as measured of late: what the
order of joins goes by (``plan/sharing/join_orders``). No result depends on it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from levada.core.size_thresholds import register
from levada.plan.execution.plan import At

LEAST = register(f"{__name__}.LEAST", 1000)
"""Elements, below which nothing is said."""


@dataclass(slots=True)
class Flows:
    """The rows of members, each with the elements that came meanwhile."""

    counts: dict[At, tuple[int, int]] = field(default_factory=dict)

    def observe(self, flows: Mapping[str, Sequence[int]]) -> None:
        """What a manifest says.

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
        """The rows of a member for each element; None: too little is known."""
        rows, elements = self.counts.get(at, (0, 0))
        return rows / elements if elements >= LEAST else None
