"""The choice of the join order of one conjunction that adds the least cost to running operators
(STREAMREUSE, section 4: sub-expressions, marginal cost; CQELS Cloud, Fig. 4).

    a running sub-join             costs nothing, and is joined as it runs
    one that several queries want  costs each its share
    another one                    has its expected cost (``order_cost``)
    an unmeasured one              is shared only if no part outside it has a constant or a
                                   condition: pairs of unrestricted rows may cost more than any
                                   number of queries saves

Up to ``MAX_SEARCHED_PARTS`` parts, dynamic programming over connected sets of parts examines all
orders. For more parts, the two sets that add the least are joined repeatedly. An order other than
the query's own must cost less than ``LESS`` of it. Where some parts are unmeasured, only shared
sub-joins are joined first, and the rest keeps the query's own order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from levada.core.frozen import frozen
from levada.core.size_thresholds import register
from levada.plan.lowering.join_order import Tree
from levada.plan.sharing.join_orders.order_cost import Costs, cuts_of, mask_of
from levada.plan.sharing.join_orders.subjoin_keys import Keyed

MAX_SEARCHED_PARTS = register(f"{__name__}.MAX_SEARCHED_PARTS", 8, least=2)
LESS = 0.95


class JoinStep(NamedTuple):
    """The join tree of a set of parts, and the cost that it adds."""

    cost: float
    tree: Tree


@frozen
class OrderContext:
    """The environment of one conjunction: the tree of a running sub-join, by bits of parts, and the
    number of added queries that want it.
    """

    running: Callable[[int], Tree | None]
    wanted: Callable[[int], int]


@frozen
class Chosen:
    """The chosen units (() if the query's own order stays), and the whole order.

    ``cost``, ``current_cost``: the cost that this order and the query's own order add.
    """

    units: tuple[Tree, ...]
    tree: Tree
    cost: float
    current_cost: float


def choose(keyed: Keyed, seen: OrderContext, costs: Costs) -> Chosen:
    """Returns the order of a conjunction whose parts are connected."""
    n = len(keyed.parts)
    seen = _without_unmeasured(keyed, seen, costs)
    current_cost = _order_cost(keyed.conjunction.tree, seen, costs)
    step = (_search_all_orders if n <= MAX_SEARCHED_PARTS else _search_greedily)(keyed, seen, costs)
    tree, own_tree = step.tree, keyed.conjunction.tree
    if step.cost >= LESS * current_cost or tree == own_tree:
        return Chosen((), own_tree, current_cost, current_cost)
    measured = all(costs.is_measured(1 << i) for i in range(n))
    units = (tree,) if measured else tuple(_shared_subjoins(tree, seen))
    return Chosen(units, tree, step.cost, current_cost)


def _without_unmeasured(keyed: Keyed, seen: OrderContext, costs: Costs) -> OrderContext:
    """Returns the environment without unmeasured sub-joins that would run before a part with a
    constant or a condition. Those of the query's own order stay.
    """
    current = {mask_of(tree) for tree, _ in cuts_of(keyed.conjunction.tree)}

    def is_open(mask: int) -> bool:
        return mask in current or not keyed.restricted & ~mask or costs.is_measured(mask)

    return OrderContext(
        lambda mask: seen.running(mask) if is_open(mask) else None,
        lambda mask: seen.wanted(mask) if is_open(mask) else 1,
    )


def _join_step(
    keyed: Keyed, seen: OrderContext, costs: Costs, one: JoinStep, other: JoinStep
) -> JoinStep:
    """Joins two sets of parts."""
    left, right = mask_of(one.tree), mask_of(other.tree)
    cost = costs.join(left, right) / seen.wanted(left | right)
    tree = (one.tree, other.tree)
    if right.bit_count() > left.bit_count() or (
        right.bit_count() == left.bit_count() and right & -right < left & -left
    ):
        tree = (other.tree, one.tree)
    return JoinStep(one.cost + other.cost + cost, tree)


def _search_all_orders(keyed: Keyed, seen: OrderContext, costs: Costs) -> JoinStep:
    """Returns the best of all orders."""
    n = len(keyed.parts)
    best: dict[int, JoinStep] = {}
    for mask in keyed.connected_sets((1 << n) - 1, n):
        if not mask & (mask - 1):
            best[mask] = JoinStep(0.0, mask.bit_length() - 1)
            continue
        tree = seen.running(mask)
        low = mask & -mask
        part = (mask - 1) & mask
        cheapest: JoinStep | None = None
        while part:
            # each cut once: the first part is always on the same side
            rest = mask & ~part
            if part & low and part in best and rest in best and keyed.neighbours(part) & rest:
                way = _join_step(keyed, seen, costs, best[part], best[rest])
                if cheapest is None or way.cost < cheapest.cost:
                    cheapest = way
            part = (part - 1) & mask
        assert cheapest is not None, "parts that hang together"
        best[mask] = cheapest if tree is None else JoinStep(0.0, tree)
    return best[(1 << n) - 1]


def _search_greedily(keyed: Keyed, seen: OrderContext, costs: Costs) -> JoinStep:
    """Joins the two sets that add the least cost, repeatedly; ties go to the first."""
    ways = {1 << i: JoinStep(0.0, i) for i in range(len(keyed.parts))}
    while len(ways) > 1:
        masks = list(ways)
        pairs = [
            (a, b) for i, a in enumerate(masks) for b in masks[i + 1 :] if keyed.neighbours(a) & b
        ]
        prices = [_added_cost(seen, costs, ways[a], ways[b]) for a, b in pairs]
        a, b = pairs[prices.index(min(prices))]
        tree = seen.running(a | b)
        way = _join_step(keyed, seen, costs, ways.pop(a), ways.pop(b))
        ways = {a | b: way if tree is None else JoinStep(0.0, tree), **ways}
    return next(iter(ways.values()))


def _added_cost(seen: OrderContext, costs: Costs, one: JoinStep, other: JoinStep) -> float:
    """Returns the cost that joining two sets adds; negative if the join runs and the
    sets do not.
    """
    left, right = mask_of(one.tree), mask_of(other.tree)
    if seen.running(left | right) is not None:
        return -one.cost - other.cost
    return costs.join(left, right) / seen.wanted(left | right)


def _order_cost(tree: Tree, seen: OrderContext, costs: Costs) -> float:
    """Returns the cost that an order adds."""
    if isinstance(tree, int) or seen.running(mask_of(tree)) == tree:
        return 0.0
    below = sum(_order_cost(side, seen, costs) for side in tree)
    _, (left, right) = cuts_of(tree)[-1]
    return below + costs.join(left, right) / seen.wanted(left | right)


def _shared_subjoins(tree: Tree, seen: OrderContext) -> Sequence[Tree]:
    """Yields the largest sub-joins of an order that other queries have, too."""
    if isinstance(tree, int):
        return []
    mask = mask_of(tree)
    if seen.running(mask) is not None or seen.wanted(mask) > 1:
        return [tree]
    return [unit for side in tree for unit in _shared_subjoins(side, seen)]
