"""What each physical form of a join of several parts costs, by figures of its parts.

    two at a time   what is joined on the way is made, exchanged where the next join is by another
                    variable, kept, and probes, too (``BinaryJoin``: which joins, in which order)
    one step        by one variable: parts that have it are exchanged by it, the others go to all
                    partitions; nothing is kept but the parts, arranged each way that they are met

Work is CPU time for each second of event time. In a partition that has the heaviest value it is
more than in the mean: ``busiest`` is that partition's times the number of partitions, which is what
all of them wait for; without skew it is the CPU time of all. Values of different variables are
taken to be independent of each other.

The constants are of this machine (``docs/decisions/0091-the-form-is-chosen.md``); only how they
compare matters. (CQELS Cloud, C26, C27.)
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from math import prod
from typing import NamedTuple

from levada.core.frozen import frozen
from levada.plan.statistics.statistics import Values, agreement_probability

RECEIVE, BYTE = 150.0, 1.0  # ns: a row that an exchange brings, and a byte of it
STORE = 400.0  # a row that is written and merged, once for each arrangement
PROBE, CARRY = 100.0, 60.0  # of a run; a combination on the way
PROBE_LINKED = 220.0  # the same, by what has been joined of several inputs
MAKE = 120.0  # a row that is put together


@dataclass(frozen=True)
class Part:
    """An input of a join. ``new``: rows in a second of event time; ``kept``: rows that its window
    holds; ``width``: bytes of one; ``values``: by variable. ``at``: by what it is partitioned, ()
    at the source.
    """

    new: float
    kept: float
    width: float
    values: Mapping[str, Values]
    at: tuple[str, ...] = ()


class BinaryJoin(NamedTuple):
    """A join of two: each a part's number or a join; the variables by which its rows are placed,
    which sides are exchanged, and the share of its rows that conditions leave.
    """

    left: BinaryJoin | int
    right: BinaryJoin | int
    placed: tuple[str, ...]
    moved: tuple[bool, bool]
    share: float = 1.0


@dataclass(frozen=True)
class Problem:
    """What a form is chosen for: the parts, how they are joined two at a time, over how many
    partitions.
    """

    parts: tuple[Part, ...]
    two: BinaryJoin
    partitions: int

    @cached_property
    def uses(self) -> dict[str, tuple[int, ...]]:
        """By variable the parts that have it."""
        names = dict.fromkeys(v for part in self.parts for v in part.values)
        return {v: tuple([i for i, p in enumerate(self.parts) if v in p.values]) for v in names}

    def agreement_share(self, some: Collection[int]) -> float:
        """The share of the combinations of rows of some parts that agree on what they share."""
        return prod(
            self.agreements[v, having[0], other]
            for v, of in self.uses.items()
            if len(having := [i for i in of if i in some]) > 1
            for other in having[1:]
        )

    @cached_property
    def agreements(self) -> dict[tuple[str, int, int], float]:
        """How likely rows of two parts agree on a variable."""
        return {
            (v, i, j): agreement_probability(self.parts[i].values[v], self.parts[j].values[v])
            for v, of in self.uses.items()
            for i, j in combinations(of, 2)
        }

    def kept_rows(self, some: Collection[int]) -> float:
        """Rows of the join of some parts that count at an instant."""
        return prod(self.parts[i].kept for i in some) * self.agreement_share(some)

    def new_rows(self, some: Collection[int]) -> float:
        """Rows of the join of some parts that are new in a second."""
        share = self.agreement_share(some)
        return sum(
            self.parts[i].new * share * prod(self.parts[j].kept for j in some if j != i)
            for i in some
        )

    def width(self, some: Collection[int]) -> float:
        """Bytes of a row of the join of some parts."""
        return sum(self.parts[i].width for i in some)

    def skew(self, placed: Sequence[str], some: Collection[int]) -> float:
        """How much more the busiest partition has of the rows of some parts than the mean one."""
        if not placed or placed[0] not in self.uses:  # at one home, or by what nobody knows
            return float(self.partitions) if placed == ("",) else 1.0
        having = [self.parts[i] for i in some if placed[0] in self.parts[i].values]
        rows = sum(part.new for part in having) or 1.0
        share = sum(p.new * p.values[placed[0]].busiest(self.partitions) for p in having) / rows
        return share * self.partitions if having else 1.0


@frozen
class Cost:
    """For each second of event time: ``rows`` and ``bytes`` exchanged, ``cpu`` of all partitions
    and ``busiest`` times their number (us); and the bytes of ``state``.
    """

    rows: float = 0.0
    bytes: float = 0.0
    state: float = 0.0
    cpu: float = 0.0
    busiest: float = 0.0

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.rows + other.rows,
            self.bytes + other.bytes,
            self.state + other.state,
            self.cpu + other.cpu,
            self.busiest + other.busiest,
        )

    @property
    def whole(self) -> float:
        """What forms are compared by: the busiest partition, with the bytes that are exchanged."""
        return self.busiest + self.bytes * BYTE / 1e3


def exchange_cost(rows: float, width: float, skew: float) -> Cost:
    """Rows that are exchanged."""
    cpu = RECEIVE * rows / 1e3
    return Cost(rows=rows, bytes=rows * width, cpu=cpu, busiest=cpu * skew)


def work_cost(ns: float, skew: float, state: float = 0.0) -> Cost:
    """CPU time, and state."""
    return Cost(cpu=ns / 1e3, busiest=ns / 1e3 * skew, state=state)


def cost_of_binary_joins(problem: Problem, two: BinaryJoin | None = None) -> Cost:
    """What the joins of two cost."""
    two = two or problem.two
    return sum(_binary_costs(problem, two), Cost())


def parts_of(two: BinaryJoin | int) -> tuple[int, ...]:
    """The parts that are joined."""
    return (two,) if isinstance(two, int) else (*parts_of(two.left), *parts_of(two.right))


def _share(two: BinaryJoin | int) -> float:
    """The share of its combinations that the conditions within leave."""
    return 1.0 if isinstance(two, int) else two.share * _share(two.left) * _share(two.right)


def _binary_costs(problem: Problem, two: BinaryJoin) -> Iterator[Cost]:
    some = parts_of(two)
    skew = problem.skew(two.placed, some)
    for side, moved in zip((two.left, two.right), two.moved, strict=True):
        side_parts, share = parts_of(side), _share(side)
        new, width = problem.new_rows(side_parts) * share, problem.width(side_parts)
        if not isinstance(side, int):
            yield from _binary_costs(problem, side)
        if moved:
            yield exchange_cost(new, width, skew)
        yield work_cost((STORE + PROBE) * new, skew, problem.kept_rows(side_parts) * share * width)
    yield work_cost(MAKE * problem.new_rows(some) * _share(two), skew)


def cost_of_one_step(problem: Problem, hub: str) -> Cost:
    """What one step costs in which parts are together by a variable, and the others at all
    partitions.
    """
    hub_parts = set(problem.uses[hub])
    many = problem.partitions
    skew = problem.skew((hub,), hub_parts)
    star = len(hub_parts) == len(problem.parts) and _is_star(problem)
    cost = Cost()
    for i, part in enumerate(problem.parts):
        here = i in hub_parts
        copies, each = (1, skew) if here else (many, 1.0)
        if part.at != (hub,) or not here:
            cost += exchange_cost(part.new * copies, part.width, each)
        ways = len(set(_ways(problem, i))) or 1
        state = part.kept * part.width * ways * copies
        cost += work_cost(STORE * part.new * ways * copies, each, state)
        cost += work_cost(_probes(problem, i, hub_parts, star=star), skew)
    return cost + work_cost(
        MAKE * problem.new_rows(range(len(problem.parts))) * _share(problem.two), skew
    )


def _is_star(problem: Problem) -> bool:
    return max(map(len, problem.uses.values())) == len(problem.parts)


def _ways(problem: Problem, i: int) -> Iterator[frozenset[str]]:
    """By which variables a part is met by each of the others."""
    mine = problem.parts[i].values.keys()
    for j, other in enumerate(problem.parts):
        if j != i and (shared := mine & other.values.keys()):
            yield frozenset(shared)


def _probes(problem: Problem, i: int, hub_parts: set[int], *, star: bool) -> float:
    """ns of the probes of a part's new rows, which meet those first that they match least."""
    some, left = [i], problem.parts[i].new
    others = {*range(len(problem.parts))} - {i}
    ns, each = 0.0, PROBE if star else PROBE_LINKED
    while others:
        made = {
            j: problem.parts[i].new
            * prod(problem.parts[k].kept for k in (*some[1:], j))
            * problem.agreement_share((*some, j))
            for j in others
        }
        j = min(made, key=lambda j: (made[j], j))
        alike = problem.partitions if hub_parts.isdisjoint(some) else 1  # each does the same
        ns += each * left * alike
        some.append(j)
        others.remove(j)
        left = made[j]
        ns += CARRY * left * alike if others else 0.0
    return ns
