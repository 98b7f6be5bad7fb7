"""Which physical form a join of several parts is to have: what each costs, and the least of them.

``choose`` is a function of a ``Problem`` alone, so it can be asked again at any time with other
figures. ``now``: what the join is at that time; it is left only for what costs half of it, so a
choice does not swing. At first it is two at a time unless another form is a tenth cheaper.
(CQELS Cloud, C27.)
"""

from __future__ import annotations

from collections.abc import Iterator

from levada.core.frozen import frozen
from levada.plan.statistics.join_cost import (
    BinaryJoin,
    Cost,
    Problem,
    cost_of_binary_joins,
    cost_of_one_step,
)

GAIN = 1.1  # so many times better than two at a time another form must be at first
AGAIN = 2.0  # and so many times better than what runs later
SAME = 1.005  # times as much that are told as none
TWO = ""
"""The form of joins of two; others are by a variable."""


@frozen
class Candidate:
    """A form: the variable ``by`` which parts come together, or ``TWO``; how many parts go to all
    partitions, which joins of two exchange what was joined; what it costs.
    """

    by: str
    copied: int
    staged: int
    cost: Cost

    @property
    def form(self) -> str:
        """Its name."""
        if self.by == TWO:
            return "staged, two at a time" if self.staged else "two at a time"
        return "replicated" if self.copied else "co-partitioned"


@frozen
class Choice:
    """What was chosen, and all that it was chosen of, the cheapest first."""

    chosen: Candidate
    candidates: tuple[Candidate, ...]

    def why_not(self, other: Candidate) -> str:
        """Why a candidate was not chosen; "": it was.

        >>> two = Candidate(TWO, 0, 1, Cost(busiest=300.0))
        >>> one = Candidate("x", 1, 0, Cost(busiest=100.0))
        >>> Choice(one, (one, two)).why_not(two)
        'it costs 3.0 times as much'
        """
        if other == self.chosen:
            return ""
        times = other.cost.whole / max(self.chosen.cost.whole, 1e-9)
        if times < 1:
            return f"it costs {times:.2f} times as much, which is too little to change for"
        if times < SAME:
            return "it costs as much, and is no better"
        return f"it costs {times:.1f} times as much"


def candidates(problem: Problem) -> list[Candidate]:
    """All forms that a join can have, and what they cost."""
    two = Candidate(TWO, 0, _count_exchanged(problem.two), cost_of_binary_joins(problem))
    many = len(problem.parts)
    return [
        two,
        *(
            Candidate(by, many - len(of), 0, cost_of_one_step(problem, by))
            for by, of in hubs(problem)
        ),
    ]


def hubs(problem: Problem) -> Iterator[tuple[str, tuple[int, ...]]]:
    """The variables by which parts can come together, with the parts: all that are shared, and of
    those that one part alone has the most even one.
    """
    single_hubs: dict[tuple[int, ...], str] = {}
    for by, of in problem.uses.items():
        if len(of) > 1:
            yield by, of
            continue
        values = problem.parts[of[0]].values
        if of not in single_hubs or values[by].heaviest < values[single_hubs[of]].heaviest:
            single_hubs[of] = by
    yield from ((by, of) for of, by in single_hubs.items())


def choose(problem: Problem, now: str | None = None) -> Choice:
    """The form that costs least; ``now``: by what the join is, if it is there already."""
    options = candidates(problem)
    before = next((c for c in options if c.by == now), None)
    current = before or options[0]
    least = min(options, key=lambda c: (c.cost.whole, c.by != current.by))
    better = current.cost.whole > least.cost.whole * (GAIN if before is None else AGAIN)
    ranked = sorted(options, key=lambda c: c.cost.whole)
    return Choice(least if better else current, tuple(ranked))


def _count_exchanged(two: BinaryJoin | int) -> int:
    """How many joins of two are exchanged."""
    if isinstance(two, int):
        return 0
    sides = zip((two.left, two.right), two.moved, strict=True)
    return sum(
        _count_exchanged(side) + (moved and not isinstance(side, int)) for side, moved in sides
    )
