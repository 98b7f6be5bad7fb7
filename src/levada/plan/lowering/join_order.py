"""Orders the joins of a conjunction greedily, by the cost of the next join.

Stars of one subject come first, then joins in the fewest stages, and Cartesian products last. Ties
go to the first parts. Only pairs that share a variable are considered, each once: a path of n steps
has n pairs, a star has n**2. If no two parts share a key, no later ones will. The remaining parts
are then joined by their stages alone, in n steps.

This is the order of a query by itself. A caller that knows more (``plan/sharing/join_orders``)
passes *units*, trees of parts that are joined first and in the given order. The remaining parts are
joined greedily, with units as parts. Each order gives the same rows with the same times.
"""

from __future__ import annotations

from ast import literal_eval
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush, nsmallest
from typing import TYPE_CHECKING

from levada.core.expressions import Expression, Var, variables
from levada.core.frozen import frozen
from levada.core.size_thresholds import register
from levada.plan.execution.joins import JoinForm
from levada.plan.physical import operators as p
from levada.plan.physical.build import filter_, join, require
from levada.plan.physical.operators import Op
from levada.plan.physical.partitioning import join_keys, place

if TYPE_CHECKING:
    from levada.plan.statistics.choose_join_strategy import JoinStrategyRequest

Cost = tuple[bool, int, int]
Tree = int | tuple["Tree", "Tree"]
"""A join order: the index of a part, or two such trees, left and right."""

MAX_ORDERED_PARTS = register(f"{__name__}.MAX_ORDERED_PARTS", 24, least=2)
"""The maximum number of parts whose order is chosen; more parts keep the query's own order."""


@frozen
class Conjunction:
    """Joined parts, each with the filters of its variables.

    ``conditions``: conditions on several parts. ``tree``: the join order. ``joined``: the rows of
    each sub-tree, empty for more than ``MAX_ORDERED_PARTS`` parts. ``equal``: the tuple columns by
    which parts are joined; a row in which one is NULL joins with nothing.
    """

    parts: tuple[Op, ...]
    conditions: tuple[Expression, ...]
    tree: Tree
    joined: Mapping[Tree, Op]
    equal: frozenset[str] = frozenset()


@dataclass(slots=True)
class Orders:
    """The orders of a query's conjunctions, by their numbers in lowering order.

    ``units``: the requested units. ``conjunctions``: the conjunctions as they were joined.
    """

    units: Mapping[int, Sequence[Tree]] = field(default_factory=dict)
    conjunctions: list[Conjunction] = field(default_factory=list)


def join_all(
    parts: Sequence[Op],
    conjuncts: Sequence[Expression] = (),
    joins: JoinStrategyRequest | None = None,
    orders: Orders | None = None,
    *,
    tuples: bool = False,
) -> Op:
    """Joins all parts and applies each filter as soon as its variables are bound.

    Parts are joined two at a time, except those that the form of ``joins`` combines first (None:
    all two at a time). ``orders``: the requested order; the order that results is appended to it.
    ``tuples``: the shared variables are columns of tuples, in which a NULL equals nothing. Rows
    with a NULL are dropped right before the join that reads it, so that the part itself is the
    same for queries that join it by other columns.
    """
    pending = list(conjuncts)
    equal = _shared_variables(parts) if tuples else frozenset[str]()
    if joins is not None:
        parts, equal = [require(part, sorted(equal)) for part in parts], frozenset()
    parts = [_filter_rows(part, pending, parts, equal) for part in parts]
    if joins is not None and joins.form in (JoinForm.REPLICATED, JoinForm.AUTO):
        # imported here: other queries do not load it
        from levada.plan.lowering.join_strategy import apply_strategy

        parts = apply_strategy(
            parts, joins, lambda group: join_all(group, _conditions_within(group, pending))
        )
        parts = [_filter_rows(part, pending, parts) for part in parts]
    joining = _Joined(parts, pending, joins, equal)
    across = tuple(pending)
    units = () if orders is None else orders.units.get(len(orders.conjunctions), ())
    order = joining.order(units)
    while len(order.parts) > 1:
        joining.join(order)
    ((rank, whole),) = order.parts.items()
    if orders is not None:
        orders.conjunctions.append(
            Conjunction(tuple(parts), across, joining.trees[rank], joining.joined, equal)
        )
    for condition in pending:
        whole = filter_(whole, condition)
    return whole


def _join_pair(left: Op, right: Op, joins: JoinStrategyRequest | None) -> Op:
    """Joins two parts and places the rows by the best key."""
    if joins is None:
        return join(left, right)
    # imported here: other queries do not load it
    from levada.plan.lowering.join_strategy import spread_join

    if joins.form is JoinForm.AUTO and not join_keys(left, right)[1]:
        spread = spread_join(left, right, joins)
        if spread is not None:
            return spread
    return join(left, right, find_most_even_key(left, right, joins))


class _Joined:
    """The joins of the parts made so far, by trees; ``trees``: the tree of each rank."""

    def __init__(
        self,
        parts: Sequence[Op],
        pending: list[Expression],
        joins: JoinStrategyRequest | None,
        equal: frozenset[str],
    ) -> None:
        self.parts, self.pending, self.joins, self.equal = parts, pending, joins, equal
        self.trees: dict[int, Tree] = {}
        self.joined: dict[Tree, Op] = {}
        self._newest = 0

    def order(self, units: Sequence[Tree]) -> _Order:
        """Returns the order of the units, followed by the parts outside all units."""
        self.trees = dict(enumerate(range(len(self.parts))))
        if not units:
            return _Order(self.parts, self.equal)
        within = {part for unit in units for part in parts_of(unit)}
        left = [i for i in range(len(self.parts)) if i not in within]
        self.trees = dict(enumerate([*units, *left]))
        return _Order([self._unit(tree) for tree in self.trees.values()], self.equal)

    def _unit(self, tree: Tree) -> Op:
        if isinstance(tree, int):
            return self.parts[tree]
        left, right = map(self._unit, tree)
        return self._join_rows(tree, left, right, self.parts)

    def join(self, order: _Order) -> None:
        """Joins the next pair and puts it in front of the remaining parts."""
        i, j = order.next()
        tree = self.trees[i], self.trees[j]
        left, right = order.take(i), order.take(j)
        self._newest -= 1
        self.trees[self._newest] = tree
        order.add(self._newest, self._join_rows(tree, left, right, [*order.parts.values()]))

    def _join_rows(self, tree: Tree, left: Op, right: Op, others: Sequence[Op]) -> Op:
        if self.equal:
            keys = sorted(self.equal.intersection(left.variables, right.variables))
            left, right = require(left, keys), require(right, keys)
        joined = _join_pair(left, right, self.joins)
        whole = _filter_rows(joined, self.pending, [joined, *others], self.equal)
        if len(self.parts) <= MAX_ORDERED_PARTS:
            self.joined[tree] = whole
        return whole


def parts_of(tree: Tree) -> tuple[int, ...]:
    """Returns the indexes of the parts of a tree, from left to right.

    >>> parts_of(((0, 2), 1))
    (0, 2, 1)
    """
    return (tree,) if isinstance(tree, int) else (*parts_of(tree[0]), *parts_of(tree[1]))


def order_of(units: Mapping[int, Sequence[Tree]]) -> str:
    """Returns units as a text; "" if there are none.

    >>> order_of({0: [((1, 2), 0)]}), order_of({})
    ('{0: (((1, 2), 0),)}', '')
    """
    return repr({number: tuple(trees) for number, trees in units.items()}) if units else ""


def units_of(order: str) -> dict[int, tuple[Tree, ...]]:
    """Parses the text of ``order_of``."""
    return literal_eval(order) if order else {}


class _Order:
    """The parts that remain to be joined, by rank; joined ones come first, newest first."""

    def __init__(self, parts: Sequence[Op], equal: frozenset[str] = frozenset()) -> None:
        self.parts: dict[int, Op] = {}
        self._equal = equal
        self._with: dict[str, set[int]] = {}  # variable -> the parts that have it
        self._pairs: list[tuple[Cost, int, int]] = []
        self._centers: dict[int, str | None] = {}
        self._places: dict[int, dict[str, int]] = {}  # of each part's variables
        for rank, part in enumerate(parts):
            self.add(rank, part)

    def add(self, rank: int, part: Op) -> None:
        """Adds a part and its pairs with the existing parts."""
        near = {other for v in part.variables for other in self._with.get(v, ())}
        self._centers[rank] = center_of(part)
        self._places[rank] = {v: at for at, v in enumerate(part.variables)}
        self.parts[rank] = part
        for other in near:
            self._push(rank, other)
        for v in part.variables:
            self._with.setdefault(v, set()).add(rank)

    def next(self) -> tuple[int, int]:
        """Returns the pair to join next."""
        while self._pairs:
            _, i, j = heappop(self._pairs)
            if i in self.parts and j in self.parts:
                return i, j
        return self._product()

    def _product(self) -> tuple[int, int]:
        """Returns the two parts without a common key that are joined in the lowest stage.

        Ties go to the first parts. A product is made after both parts, so the second lowest stage
        decides.
        """
        stage = nsmallest(2, [part.stage for part in self.parts.values()])[1]
        i, j = nsmallest(2, [rank for rank, part in self.parts.items() if part.stage <= stage])
        return i, j

    def _push(self, i: int, j: int) -> None:
        """Adds a pair if it has a key; pairs without a key are joined last."""
        i, j = min(i, j), max(i, j)
        if (cost := self._cost(i, j)) is not None:
            heappush(self._pairs, (cost, i, j))

    def _cost(self, i: int, j: int) -> Cost | None:
        left, right = self.parts[i], self.parts[j]
        _, keys, placed = join_keys(left, right, self._places[i], self._equal)
        if not keys:
            return None
        stage, _ = place((left, right), placed)
        star = self._centers[i] is not None and self._centers[i] == self._centers[j]
        return (not star, stage, -len(keys))

    def take(self, rank: int) -> Op:
        """Removes a part."""
        part = self.parts.pop(rank)
        for v in part.variables:
            self._with[v].discard(rank)
        return part


def _shared_variables(parts: Sequence[Op]) -> frozenset[str]:
    """Returns the variables of more than one part."""
    uses = Counter(v for op in parts for v in op.variables)
    return frozenset(v for v, count in uses.items() if count > 1)


def _filter_rows(
    op: Op,
    pending: list[Expression],
    others: Sequence[Op],
    equal: frozenset[str] = frozenset(),
) -> Op:
    """Applies the pending filters whose variables this part always binds, or are ``equal``."""
    others = [other for other in others if other is not op]
    for condition in list(pending):
        names = set(variables(condition))
        if (
            names
            and names <= set(op.variables)
            and not _may_bind_elsewhere(op.maybe & names - equal, others)
        ):
            op = filter_(op, condition)
            pending.remove(condition)
    return op


def _conditions_within(parts: Sequence[Op], conditions: Sequence[Expression]) -> list[Expression]:
    """Returns the conditions whose variables all belong to these parts."""
    names = {v for part in parts for v in part.variables}
    return [condition for condition in conditions if set(variables(condition)) <= names]


def _may_bind_elsewhere(unsure: frozenset[str], others: Sequence[Op]) -> bool:
    """Whether another part has one of these variables, which may be unbound here."""
    return bool(unsure) and any(not unsure.isdisjoint(other.variables) for other in others)


def center_of(op: Op) -> str | None:
    """Returns the variable that is the subject of all patterns of this part, if there is one."""
    below = [op]
    subjects: set[str | None] = set()
    while below and len(subjects) < 2:
        part = below.pop()
        spec = part.spec
        if isinstance(spec, (p.Filter, p.Extend, p.Join)):
            below += part.inputs
            continue
        subject = None
        if isinstance(spec, (p.Match, p.Entailed, p.Star)):
            subject = (spec.patterns[0] if isinstance(spec, p.Star) else spec.pattern).subject
        subjects.add(subject.name if isinstance(subject, Var) else None)
    return subjects.pop() if len(subjects) == 1 else None


# Chooses the key that places a join: the key whose busiest partition has the fewest rows.
#
# Rows of few values, or of a heavy one, leave partitions without work. Without statistics the first
# key is chosen.


WORSE = 1.1  # excess load of the busiest partition from which another key is taken


def find_most_even_key(left: Op, right: Op, wanted: JoinStrategyRequest) -> str:
    """Returns the key whose values are most even on both sides; "": use the first key."""
    if wanted.measures is None:
        return ""
    _, keys, placed = join_keys(left, right)
    if len(keys) < 2 or placed != keys[:1]:
        return ""
    # imported here: without statistics nothing is loaded
    from levada.plan.statistics.input_statistics import values_of

    many = wanted.measures.partitions
    sides = [values_of(side, wanted.measures) for side in (left, right)]
    if any(key not in values for key in keys for values in sides):
        return ""
    shares = {key: max(values[key].busiest(many) for values in sides) for key in keys}
    best = min(keys, key=lambda key: shares[key])
    if shares[keys[0]] <= shares[best] * WORSE:
        return ""
    percentages = ", ".join(f"?{key} {share:.0%}" for key, share in shares.items())
    wanted.notes.append(
        f"A join by {' '.join(f'?{key}' for key in keys)} is placed by ?{best}: of {many} "
        f"partitions the busiest would have of its rows, by {percentages}."
    )
    return best
