"""Computes the cost of each physical form of a join of several parts from statistics of its parts.

    two at a time   intermediate rows are made, kept and probed. They are exchanged if the next join
                    is by another variable (``BinaryJoin``: the joins and their order)
    one step        parts that have the hub variable are exchanged by it, the others go to all
                    partitions. Only the parts are kept, arranged for each join variable

Work is CPU time for each second of event time. The partition with the heaviest value has more work
than the mean. ``busiest`` is its work times the number of partitions: all partitions wait for it.
Without skew it equals the CPU time of all. Values of different variables are assumed to be
independent.

The constants were measured on one machine (``docs/decisions/0091-the-form-is-chosen.md``); only
their ratios matter. (CQELS Cloud, C26, C27.)
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

RECEIVE, BYTE = 150.0, 1.0  # ns for a row that an exchange delivers, and for a byte of it
STORE = 400.0  # ns for a row that is written and merged, for each arrangement
PROBE, CARRY = 100.0, 60.0  # ns for a probe of a run, and for an intermediate combination
PROBE_LINKED = 220.0  # ns for a probe by joined rows of several inputs
MAKE = 120.0  # ns for a result row


@dataclass(frozen=True)
class Part:
    """An input of a join.

    ``new``: rows in a second of event time. ``kept``: rows in its window. ``width``: bytes of a
    row. ``values``: statistics by variable. ``at``: the variables that partition it, () at the
    source.
    """

    new: float
    kept: float
    width: float
    values: Mapping[str, Values]
    at: tuple[str, ...] = ()


class BinaryJoin(NamedTuple):
    """A join of two sides, each the number of a part or a join.

    It has the variables that place its rows, the sides that are exchanged, and the share of its
    rows that conditions leave.
    """

    left: BinaryJoin | int
    right: BinaryJoin | int
    placed: tuple[str, ...]
    moved: tuple[bool, bool]
    share: float = 1.0


@dataclass(frozen=True)
class Problem:
    """The input of a choice: the parts, their binary joins, and the number of partitions."""

    parts: tuple[Part, ...]
    two: BinaryJoin
    partitions: int

    @cached_property
    def uses(self) -> dict[str, tuple[int, ...]]:
        """The parts of each variable."""
        names = dict.fromkeys(v for part in self.parts for v in part.values)
        return {v: tuple([i for i, p in enumerate(self.parts) if v in p.values]) for v in names}

    def agreement_share(self, some: Collection[int]) -> float:
        """Returns the share of row combinations of some parts that agree on their
        common variables.
        """
        return prod(
            self.agreements[v, having[0], other]
            for v, of in self.uses.items()
            if len(having := [i for i in of if i in some]) > 1
            for other in having[1:]
        )

    @cached_property
    def agreements(self) -> dict[tuple[str, int, int], float]:
        """The probability that rows of two parts agree on a variable."""
        return {
            (v, i, j): agreement_probability(self.parts[i].values[v], self.parts[j].values[v])
            for v, of in self.uses.items()
            for i, j in combinations(of, 2)
        }

    def kept_rows(self, some: Collection[int]) -> float:
        """Returns the rows of the join of some parts that count at an instant."""
        return prod(self.parts[i].kept for i in some) * self.agreement_share(some)

    def new_rows(self, some: Collection[int]) -> float:
        """Returns the new rows of the join of some parts in a second."""
        share = self.agreement_share(some)
        return sum(
            self.parts[i].new * share * prod(self.parts[j].kept for j in some if j != i)
            for i in some
        )

    def width(self, some: Collection[int]) -> float:
        """Returns the bytes of a row of the join of some parts."""
        return sum(self.parts[i].width for i in some)

    def skew(self, placed: Sequence[str], some: Collection[int]) -> float:
        """Returns the rows of the busiest partition relative to the mean, for the join of some
        parts.
        """
        if (
            not placed or placed[0] not in self.uses
        ):  # at one home, or by a variable without statistics
            return float(self.partitions) if placed == ("",) else 1.0
        having = [self.parts[i] for i in some if placed[0] in self.parts[i].values]
        rows = sum(part.new for part in having) or 1.0
        share = sum(p.new * p.values[placed[0]].busiest(self.partitions) for p in having) / rows
        return share * self.partitions if having else 1.0


@frozen
class Cost:
    """The cost for each second of event time.

    ``rows`` and ``bytes`` are exchanged; ``cpu`` is that of all partitions and ``busiest`` that of
    the busiest times their number (us). ``state``: bytes of state.
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
        """The value that compares forms: the work of the busiest partition, with the exchanged
        bytes.
        """
        return self.busiest + self.bytes * BYTE / 1e3


def exchange_cost(rows: float, width: float, skew: float) -> Cost:
    """Returns the cost of exchanged rows."""
    cpu = RECEIVE * rows / 1e3
    return Cost(rows=rows, bytes=rows * width, cpu=cpu, busiest=cpu * skew)


def work_cost(ns: float, skew: float, state: float = 0.0) -> Cost:
    """Returns the cost of CPU time and state."""
    return Cost(cpu=ns / 1e3, busiest=ns / 1e3 * skew, state=state)


def cost_of_binary_joins(problem: Problem, two: BinaryJoin | None = None) -> Cost:
    """Returns the cost of binary joins."""
    two = two or problem.two
    return sum(_binary_costs(problem, two), Cost())


def parts_of(two: BinaryJoin | int) -> tuple[int, ...]:
    """Returns the parts that are joined."""
    return (two,) if isinstance(two, int) else (*parts_of(two.left), *parts_of(two.right))


def _share(two: BinaryJoin | int) -> float:
    """Returns the share of combinations that the conditions within leave."""
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
    """Returns the cost of one step: parts with the hub variable meet by it, the others go
    everywhere.
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
    """Returns the variables by which each of the other parts probes a part."""
    mine = problem.parts[i].values.keys()
    for j, other in enumerate(problem.parts):
        if j != i and (shared := mine & other.values.keys()):
            yield frozenset(shared)


def _probes(problem: Problem, i: int, hub_parts: set[int], *, star: bool) -> float:
    """Returns the time (ns) of the probes of a part's new rows, which probe the most selective
    first.
    """
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
        alike = (
            problem.partitions if hub_parts.isdisjoint(some) else 1
        )  # all partitions do the same work
        ns += each * left * alike
        some.append(j)
        others.remove(j)
        left = made[j]
        ns += CARRY * left * alike if others else 0.0
    return ns
