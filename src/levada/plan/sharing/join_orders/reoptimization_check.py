"""Whether a query that runs would add less in another order of its joins (STREAMREUSE, 5: marginal
cost over what runs).

What it adds is asked as for a newcomer (``choose``), as if the query and those that go over with it
were gone: what nobody else uses does not run. An order is better if it adds less than ``SHARE`` of
what the query's own adds, and at least ``LEAST`` ns for each element of the streams: a switch costs
both for as long as windows reach. Nothing is switched on a guess: all parts of the query, and the
joins that it has now, must have been measured. Cost: as of a newcomer, up to some ms.
"""

from __future__ import annotations

from collections.abc import Collection

from levada.plan.execution.plan import At
from levada.plan.lowering.join_order import Tree
from levada.plan.sharing.join_orders.choose_order import MOST, Chosen, Seen, choose
from levada.plan.sharing.join_orders.order_cost import Costs, cuts_of
from levada.plan.sharing.join_orders.running_subjoins import RunningConjunction, RunningSubjoins
from levada.plan.sharing.join_orders.subjoin_keys import Keyed, SubJoin

SHARE, LEAST = 0.8, 20.0


def find_better_order(
    known: RunningSubjoins, followed: RunningConjunction, doomed: Collection[At]
) -> Chosen | None:
    """The order of a conjunction that adds so much less; None: there is none, or too little is
    known. ``doomed``: the members that would be there no more.
    """
    n = len(followed.conjunction.parts)
    keyed = known.key_conjunction(followed)
    whole = (1 << n) - 1
    if not 2 < n <= MOST or not keyed.is_connected(whole) or not _is_measured(known, followed):
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

    seen = Seen(running, lambda mask: 1)
    if (tree := running(whole)) is not None:  # others have all of it
        costs = Costs.from_rates(keyed, whole, rate, ())
        current_cost = choose(keyed, Seen(lambda mask: None, seen.wanted), costs).current_cost
        return _require_gain(Chosen((tree,), tree, 0.0, current_cost), followed)
    cuts = [cut for _, cut in cuts_of(followed.conjunction.tree)]
    cuts += [cut for mask in keyed.connected_sets(whole, n) if (cut := _cut(known, keyed, mask))]
    return _require_gain(choose(keyed, seen, Costs.from_rates(keyed, whole, rate, cuts)), followed)


def _require_gain(chosen: Chosen, followed: RunningConjunction) -> Chosen | None:
    """An order, if it is another and adds so much less."""
    less = chosen.current_cost - chosen.cost >= LEAST and chosen.cost < SHARE * chosen.current_cost
    return chosen if less and chosen.units and chosen.tree != followed.conjunction.tree else None


def _is_measured(known: RunningSubjoins, followed: RunningConjunction) -> bool:
    """Whether all parts and the joins that run have been measured."""
    masks = [1 << i for i in range(len(followed.conjunction.parts))]
    masks += [left | right for _, (left, right) in cuts_of(followed.conjunction.tree)]
    return all(
        mask in followed.places and known.rate(followed.places[mask]) is not None for mask in masks
    )


def _cut(known: RunningSubjoins, keyed: Keyed, mask: int) -> tuple[int, int] | None:
    """Both sides of a sub-join, as it runs."""
    if not mask & (mask - 1):
        return None
    join: SubJoin = keyed.sub_join(mask)
    one = known.find_running(join)
    return None if one is None else cuts_of(join.to_parts(one.tree))[-1][1]
