"""The comparison of a running query's cost with its cost in another join order (STREAMREUSE,
section 5: marginal cost over running operators).

The cost is computed as for a new query (``choose_order``), as if the query and those that migrate
with it were removed: operators that no other query uses do not run. An order is better if it adds
less than ``SHARE`` of the current cost and saves at least ``MIN_SAVING_NS`` ns for each element of
the streams. A migration runs both orders for as long as windows reach. There are no guesses: all
parts of the query, and its current joins, must have been measured. Cost: as of a new query, up to
some ms.
"""

from __future__ import annotations

from collections.abc import Collection

from levada.plan.execution.plan import At
from levada.plan.lowering.join_order import Tree
from levada.plan.sharing.join_orders.choose_order import (
    MAX_SEARCHED_PARTS,
    Chosen,
    OrderContext,
    choose,
)
from levada.plan.sharing.join_orders.order_cost import Costs, cuts_of
from levada.plan.sharing.join_orders.running_subjoins import RunningConjunction, RunningSubjoins
from levada.plan.sharing.join_orders.subjoin_keys import Keyed, SubJoin

SHARE, MIN_SAVING_NS = 0.8, 20.0


def find_better_order(
    known: RunningSubjoins, followed: RunningConjunction, doomed: Collection[At]
) -> Chosen | None:
    """Returns the order of a conjunction that adds less cost by the required margin.

    None: there is none, or too little is measured. ``doomed``: the members that would be removed.
    """
    n = len(followed.conjunction.parts)
    keyed = known.key_conjunction(followed)
    whole = (1 << n) - 1
    if (
        not 2 < n <= MAX_SEARCHED_PARTS
        or not keyed.is_connected(whole)
        or not _is_measured(known, followed)
    ):
        return None

    def running(mask: int) -> Tree | None:
        join = keyed.sub_join(mask)
        one = known.find_running(join)
        return None if one is None or one.at in doomed else join.to_parts(one.tree)

    def rate(mask: int) -> float | None:
        at = followed.places.get(mask)
        if at is None and mask & (mask - 1):
            one = known.find_running(keyed.sub_join(mask))
            at = None if one is None else one.at
        return None if at is None else known.rate(at)

    seen = OrderContext(running, lambda mask: 1)
    if (tree := running(whole)) is not None:  # other queries join the whole
        costs = Costs.from_rates(keyed, whole, rate, ())
        current_cost = choose(
            keyed, OrderContext(lambda mask: None, seen.wanted), costs
        ).current_cost
        return _require_gain(Chosen((tree,), tree, 0.0, current_cost), followed)
    cuts = [cut for _, cut in cuts_of(followed.conjunction.tree)]
    cuts += [cut for mask in keyed.connected_sets(whole, n) if (cut := _cut(known, keyed, mask))]
    return _require_gain(choose(keyed, seen, Costs.from_rates(keyed, whole, rate, cuts)), followed)


def _require_gain(chosen: Chosen, followed: RunningConjunction) -> Chosen | None:
    """Returns an order if it differs and adds less cost by the required margin."""
    less = (
        chosen.current_cost - chosen.cost >= MIN_SAVING_NS
        and chosen.cost < SHARE * chosen.current_cost
    )
    return chosen if less and chosen.units and chosen.tree != followed.conjunction.tree else None


def _is_measured(known: RunningSubjoins, followed: RunningConjunction) -> bool:
    """Whether all parts and the running joins have been measured."""
    masks = [1 << i for i in range(len(followed.conjunction.parts))]
    masks += [left | right for _, (left, right) in cuts_of(followed.conjunction.tree)]
    return all(
        mask in followed.places and known.rate(followed.places[mask]) is not None for mask in masks
    )


def _cut(known: RunningSubjoins, keyed: Keyed, mask: int) -> tuple[int, int] | None:
    """Returns both sides of a sub-join as it runs."""
    if not mask & (mask - 1):
        return None
    join: SubJoin = keyed.sub_join(mask)
    one = known.find_running(join)
    return None if one is None else cuts_of(join.to_parts(one.tree))[-1][1]
