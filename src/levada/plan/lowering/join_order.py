"""In which order the parts of a conjunction are joined: greedily, by what the next join costs.

Stars of one subject come first, then what takes the fewest stages, Cartesian products last; of
equal ones what stands first. Only pairs that share a variable are looked at, each once: a path of n
steps has n of them, a star n**2. Where none has a key, none ever will: what is left is joined by
its stages alone, in n steps.

That is the order of a query by itself. Who knows more (``plan/sharing/join_orders``) gives *units*,
trees of parts that are joined first, as they say; what is left is joined so, with units as parts.
Any order
gives the same rows with the same times.
"""

from __future__ import annotations

from ast import literal_eval
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush, nsmallest
from typing import TYPE_CHECKING

from levada.core.expressions import Expression, Var, variables
from levada.core.frozen import frozen
from levada.core.size_thresholds import register
from levada.plan.execution.join_kinds import JoinForm
from levada.plan.physical import operators as p
from levada.plan.physical.build import filter_, join
from levada.plan.physical.operators import Op
from levada.plan.physical.partitioning import join_keys, place

if TYPE_CHECKING:
    from levada.plan.statistics.strategy_request import JoinStrategyRequest

Cost = tuple[bool, int, int]
Tree = int | tuple["Tree", "Tree"]
"""In which order parts are joined: a part by its place, or two such trees, left and right."""

MANY = register(f"{__name__}.MANY", 24, least=2)
"""Parts, of which the order is chosen; of more it is that of the query by itself."""


@frozen
class Conjunction:
    """Parts that are joined, each with the filters of its variables; ``conditions``: those of
    several parts; ``tree``: the order, ``joined``: the rows of each tree in it (of more than
    ``MANY`` parts of none).
    """

    parts: tuple[Op, ...]
    conditions: tuple[Expression, ...]
    tree: Tree
    joined: Mapping[Tree, Op]


@dataclass(slots=True)
class Orders:
    """The orders of a query's conjunctions, by their numbers as they are lowered: the units that
    are given, and what became of all.
    """

    units: Mapping[int, Sequence[Tree]] = field(default_factory=dict)
    conjunctions: list[Conjunction] = field(default_factory=list)


def join_all(
    parts: Sequence[Op],
    conjuncts: Sequence[Expression] = (),
    joins: JoinStrategyRequest | None = None,
    orders: Orders | None = None,
) -> Op:
    """Joins all parts, each filter as soon as its variables are there; two at a time, but for those
    that the form of ``joins`` puts together before (None: all two at a time). ``orders``: what is
    said of their order, and told.
    """
    pending = list(conjuncts)
    parts = [_filter_rows(part, pending, parts) for part in parts]
    if joins is not None and joins.form in (JoinForm.REPLICATED, JoinForm.AUTO):
        # here: only who asks for it loads it
        from levada.plan.lowering.join_strategy import apply_strategy

        parts = apply_strategy(
            parts, joins, lambda group: join_all(group, _conditions_within(group, pending))
        )
        parts = [_filter_rows(part, pending, parts) for part in parts]
    joining = _Joined(parts, pending, joins)
    across = tuple(pending)
    units = () if orders is None else orders.units.get(len(orders.conjunctions), ())
    order = joining.order(units)
    while len(order.parts) > 1:
        joining.join(order)
    ((rank, whole),) = order.parts.items()
    if orders is not None:
        orders.conjunctions.append(
            Conjunction(tuple(parts), across, joining.trees[rank], joining.joined)
        )
    for condition in pending:
        whole = filter_(whole, condition)
    return whole


def _join_pair(left: Op, right: Op, joins: JoinStrategyRequest | None) -> Op:
    """The join of two parts, where its rows are best."""
    if joins is None:
        return join(left, right)
    # here: only who asks for it loads it
    from levada.plan.lowering.join_strategy import spread_join
    from levada.plan.lowering.partition_key import find_most_even_key

    if joins.form is JoinForm.AUTO and not join_keys(left, right)[1]:
        spread = spread_join(left, right, joins)
        if spread is not None:
            return spread
    return join(left, right, find_most_even_key(left, right, joins))


class _Joined:
    """What has been joined of parts, by trees; ``trees``: of each rank of an order."""

    def __init__(
        self, parts: Sequence[Op], pending: list[Expression], joins: JoinStrategyRequest | None
    ) -> None:
        self.parts, self.pending, self.joins = parts, pending, joins
        self.trees: dict[int, Tree] = {}
        self.joined: dict[Tree, Op] = {}
        self._newest = 0

    def order(self, units: Sequence[Tree]) -> _Order:
        """The order of the units, in front of the parts that are in none of them."""
        self.trees = dict(enumerate(range(len(self.parts))))
        if not units:
            return _Order(self.parts)
        within = {part for unit in units for part in parts_of(unit)}
        left = [i for i in range(len(self.parts)) if i not in within]
        self.trees = dict(enumerate([*units, *left]))
        return _Order([self._unit(tree) for tree in self.trees.values()])

    def _unit(self, tree: Tree) -> Op:
        if isinstance(tree, int):
            return self.parts[tree]
        left, right = map(self._unit, tree)
        return self._join_rows(tree, left, right, self.parts)

    def join(self, order: _Order) -> None:
        """Joins what is next, in front of all that is left."""
        i, j = order.next()
        tree = self.trees[i], self.trees[j]
        left, right = order.take(i), order.take(j)
        self._newest -= 1
        self.trees[self._newest] = tree
        order.add(self._newest, self._join_rows(tree, left, right, [*order.parts.values()]))

    def _join_rows(self, tree: Tree, left: Op, right: Op, others: Sequence[Op]) -> Op:
        joined = _join_pair(left, right, self.joins)
        whole = _filter_rows(joined, self.pending, [joined, *others])
        if len(self.parts) <= MANY:
            self.joined[tree] = whole
        return whole


def parts_of(tree: Tree) -> tuple[int, ...]:
    """The places of the parts of a tree, from left to right.

    >>> parts_of(((0, 2), 1))
    (0, 2, 1)
    """
    return (tree,) if isinstance(tree, int) else (*parts_of(tree[0]), *parts_of(tree[1]))


def order_of(units: Mapping[int, Sequence[Tree]]) -> str:
    """Units as a text; "" where there are none.

    >>> order_of({0: [((1, 2), 0)]}), order_of({})
    ('{0: (((1, 2), 0),)}', '')
    """
    return repr({number: tuple(trees) for number, trees in units.items()}) if units else ""


def units_of(order: str) -> dict[int, tuple[Tree, ...]]:
    """The units of such a text."""
    return literal_eval(order) if order else {}


class _Order:
    """What is still to be joined, by rank: parts as they stand, in front of them what has been
    joined, the newest first.
    """

    def __init__(self, parts: Sequence[Op]) -> None:
        self.parts: dict[int, Op] = {}
        self._with: dict[str, set[int]] = {}  # variable -> the parts that have it
        self._pairs: list[tuple[Cost, int, int]] = []
        self._centers: dict[int, str | None] = {}
        self._places: dict[int, dict[str, int]] = {}  # of each part's variables
        for rank, part in enumerate(parts):
            self.add(rank, part)

    def add(self, rank: int, part: Op) -> None:
        """A part, and its pairs with those that are there."""
        near = {other for v in part.variables for other in self._with.get(v, ())}
        self._centers[rank] = _center(part)
        self._places[rank] = {v: at for at, v in enumerate(part.variables)}
        self.parts[rank] = part
        for other in near:
            self._push(rank, other)
        for v in part.variables:
            self._with.setdefault(v, set()).add(rank)

    def next(self) -> tuple[int, int]:
        """The pair that is to be joined next."""
        while self._pairs:
            _, i, j = heappop(self._pairs)
            if i in self.parts and j in self.parts:
                return i, j
        return self._product()

    def _product(self) -> tuple[int, int]:
        """Of parts of which no two have a key: the two that are joined in the least stage, of these
        the first. A product is made behind both its parts, so the second least stage decides.
        """
        stage = nsmallest(2, [part.stage for part in self.parts.values()])[1]
        i, j = nsmallest(2, [rank for rank, part in self.parts.items() if part.stage <= stage])
        return i, j

    def _push(self, i: int, j: int) -> None:
        """A pair, if it has a key: without one parts are joined last."""
        i, j = min(i, j), max(i, j)
        if (cost := self._cost(i, j)) is not None:
            heappush(self._pairs, (cost, i, j))

    def _cost(self, i: int, j: int) -> Cost | None:
        left, right = self.parts[i], self.parts[j]
        _, keys, placed = join_keys(left, right, self._places[i])
        if not keys:
            return None
        stage, _ = place((left, right), placed)
        star = self._centers[i] is not None and self._centers[i] == self._centers[j]
        return (not star, stage, -len(keys))

    def take(self, rank: int) -> Op:
        """Takes a part out."""
        part = self.parts.pop(rank)
        for v in part.variables:
            self._with[v].discard(rank)
        return part


def _filter_rows(op: Op, pending: list[Expression], others: Sequence[Op]) -> Op:
    """Applies the pending filters whose variables this part binds for good."""
    for condition in list(pending):
        names = set(variables(condition))
        if names and names <= set(op.variables) and not _may_bind_elsewhere(op, names, others):
            op = filter_(op, condition)
            pending.remove(condition)
    return op


def _conditions_within(parts: Sequence[Op], conditions: Sequence[Expression]) -> list[Expression]:
    """The conditions on variables of these parts alone."""
    names = {v for part in parts for v in part.variables}
    return [condition for condition in conditions if set(variables(condition)) <= names]


def _may_bind_elsewhere(op: Op, names: set[str], others: Sequence[Op]) -> bool:
    """Whether one of these variables may be unbound here, and bound by another part."""
    unsure = names & op.maybe
    return bool(unsure) and any(not unsure.isdisjoint(o.variables) for o in others if o is not op)


def _center(op: Op) -> str | None:
    """The subject that all patterns of this part share, if it is one variable."""
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
