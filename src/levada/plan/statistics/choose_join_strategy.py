"""Chooses the cheapest physical form of a join of several parts.

``choose`` depends only on a ``Problem``, so it can run again at any time with other figures.
``now`` is the current form. A running join changes its form only for one of half the cost, so the
choice does not oscillate. The first choice is binary joins unless another form is a tenth cheaper.
(CQELS Cloud, C27.)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field

from levada.core.event_time import Window
from levada.core.frozen import frozen
from levada.plan.execution.joins import JoinForm
from levada.plan.statistics.join_cost import (
    BinaryJoin,
    Cost,
    Problem,
    cost_of_binary_joins,
    cost_of_one_step,
)
from levada.plan.statistics.statistics import Measures

GAIN = 1.1  # the first choice needs this gain over binary joins
LATER_GAIN = 2.0  # a later choice needs this gain over the running form
SAME = 1.005  # a smaller ratio is printed as no difference
TWO = ""
"""The form of binary joins; other forms have a hub variable."""


@frozen
class Candidate:
    """A join form: the hub variable ``by`` of its parts, or ``TWO`` (binary joins), and its cost.

    It also has the number of parts that go to all partitions, and the number of binary joins whose
    rows are exchanged again.
    """

    by: str
    copied: int
    staged: int
    cost: Cost

    @property
    def form(self) -> str:
        """The name of the form."""
        if self.by == TWO:
            return "staged, two at a time" if self.staged else "two at a time"
        return "replicated" if self.copied else "co-partitioned"


@frozen
class Choice:
    """The chosen candidate, and all candidates, the cheapest first."""

    chosen: Candidate
    candidates: tuple[Candidate, ...]

    def why_not(self, other: Candidate) -> str:
        """Returns why a candidate was not chosen; "": it was.

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
    """Returns all forms that a join can have, with their costs."""
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
    """Returns the hub variables with the parts that have them.

    These are all shared variables and, for each part, the most even of the variables that no other
    part has.
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
    """Returns the cheapest form; ``now``: the hub of the running join, if it runs."""
    options = candidates(problem)
    before = next((c for c in options if c.by == now), None)
    current = before or options[0]
    least = min(options, key=lambda c: (c.cost.whole, c.by != current.by))
    better = current.cost.whole > least.cost.whole * (GAIN if before is None else LATER_GAIN)
    ranked = sorted(options, key=lambda c: c.cost.whole)
    return Choice(least if better else current, tuple(ranked))


def _count_exchanged(two: BinaryJoin | int) -> int:
    """Counts the binary joins whose rows are exchanged."""
    if isinstance(two, int):
        return 0
    sides = zip((two.left, two.right), two.moved, strict=True)
    return sum(
        _count_exchanged(side) + (moved and not isinstance(side, int)) for side, moved in sides
    )


# The requested join form of a query, the statistics of its streams, and the choices so far.
#
# It is passed along while a query is lowered.


@frozen
class Chosen:
    """A choice for a join of these ``parts`` (texts), computed for a number of ``partitions``.

    ``star``: the variable that all parts have; "": there is none.
    """

    parts: tuple[str, ...]
    partitions: int
    choice: Choice
    star: str = ""


@frozen
class JoinStrategyRequest:
    """A request for a join form.

    ``form``: the user's option. ``measures``: statistics of streams; None: there are none.
    ``windows``: the windows of the query. ``chosen``: the choices so far. ``notes``: other choices,
    a sentence each.
    """

    form: JoinForm
    measures: Measures | None = None
    windows: Sequence[Window] = ()
    chosen: list[Chosen] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
