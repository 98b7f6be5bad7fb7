"""The cost of a join order by measurements: ns of CPU for each element of the streams.

    a join       a probe for each row of either side, and each row that it makes
    rows         counted for running parts and joins. For other joins they follow from the *factor*
                 of a running join: rows made, divided by the product of the rows of both sides. The
                 join with the same variables and the most common parts is used
    unmeasured   parts have the mean of measured ones, and a join as many rows as its smaller side

So without measurements all orders of n parts cost the same, and the query's own order stays. The
constants are those of joins in either form (docs/decisions/0080-the-form-of-a-join.md).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from levada.plan.lowering.join_order import Tree, parts_of
from levada.plan.sharing.join_orders.subjoin_keys import Keyed, places_of

PROBE, MADE = 100.0, 560.0
"""ns for each row."""
Cut = tuple[int, int]
"""Both sides of a join, by bits of parts."""


@dataclass(slots=True)
class Costs:
    """The rows of sub-joins of a conjunction for each element of the streams, by bits of parts.

    ``cuts``: the factors of measured joins.
    """

    keyed: Keyed
    known: dict[int, float]
    cuts: dict[Cut, float]
    mean: float = 1.0
    _rows: dict[int, float] = field(default_factory=dict)

    @staticmethod
    def from_rates(
        keyed: Keyed,
        within: int,
        rate: Callable[[int], float | None],
        cuts: Iterable[Cut],
    ) -> Costs:
        """Returns the costs for the parts ``within`` from the rates of running sub-joins.

        ``cuts``: the running binary joins.
        """
        known: dict[int, float] = {}

        def seen_rows(mask: int) -> float | None:
            if mask not in known and (measured := rate(mask)) is not None:
                known[mask] = measured
            return known.get(mask)

        of_parts = [
            measured for i in places_of(within) if (measured := seen_rows(1 << i)) is not None
        ]
        mean = sum(of_parts) / len(of_parts) if of_parts else 1.0
        factors: dict[Cut, float] = {}
        for left, right in cuts:
            one, other, both = seen_rows(left), seen_rows(right), seen_rows(left | right)
            if one and other and both is not None:
                factors[left, right] = both / (one * other)
        return Costs(keyed, known, factors, mean or 1.0)

    def is_measured(self, mask: int) -> bool:
        """Whether the rows of a sub-join were counted, or follow from counted ones."""
        if mask in self.known or not mask & (mask - 1):
            return mask in self.known
        return any(
            self._factor(*cut) is not None and all(map(self.is_measured, cut))
            for cut in self._last_joins(mask)
        )

    def rows(self, mask: int) -> float:
        """Returns the rows of a sub-join for each element, in any order."""
        if mask not in self._rows:
            rows = self.known.get(mask)
            if rows is None:
                rows = self._estimate(mask) if mask & (mask - 1) else self.mean
            self._rows[mask] = rows
        return self._rows[mask]

    def _estimate(self, mask: int) -> float:
        """Estimates the rows of an unmeasured sub-join, as its last part joins the others."""
        factors = [(cut, self._factor(*cut)) for cut in self._last_joins(mask)]
        (one, other), factor = next((f for f in factors if f[1] is not None), factors[0])
        if factor is None:
            return min(self.rows(one), self.rows(other))
        return self.rows(one) * self.rows(other) * factor

    def _last_joins(self, mask: int) -> list[Cut]:
        """Returns the cuts of a sub-join into one part and connected others."""
        return [
            (mask & ~(1 << i), 1 << i)
            for i in places_of(mask)[::-1]
            if self.keyed.is_connected(mask & ~(1 << i))
        ]

    def _factor(self, left: int, right: int) -> float | None:
        """Returns the factor of the most similar measured join by the same variables."""
        by, best, best_factor = self._shared_variables(left, right), 0, None
        for (one, other), factor in self.cuts.items():
            if self._shared_variables(one, other) != by:
                continue
            alike = max(
                (left & one).bit_count() * (right & other).bit_count(),
                (left & other).bit_count() * (right & one).bit_count(),
            )
            if alike > best:
                best, best_factor = alike, factor
        return best_factor

    def _shared_variables(self, left: int, right: int) -> frozenset[str]:
        one, other = (
            {v for i in places_of(side) for v in self.keyed.conjunction.parts[i].variables}
            for side in (left, right)
        )
        return frozenset(one & other)

    def join(self, left: int, right: int) -> float:
        """Returns the cost of a binary join."""
        return PROBE * (self.rows(left) + self.rows(right)) + MADE * self.rows(left | right)


def mask_of(tree: Tree) -> int:
    """Returns the parts of a tree, by bits."""
    return sum(1 << part for part in parts_of(tree))


def cuts_of(tree: Tree) -> list[tuple[Tree, Cut]]:
    """Yields the joins in a tree, lower ones first, each with its sides by bits."""
    if isinstance(tree, int):
        return []
    left, right = tree
    return [*cuts_of(left), *cuts_of(right), (tree, (mask_of(left), mask_of(right)))]
