"""Attributes the charges of a plan's operators to queries.

A query is charged for each member of an operator that it uses, whether or not others use it. So it
has the same charge alone as among others.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from levada.core.expression_budget import Charge
from levada.plan.execution import steps as s
from levada.plan.execution.plan import At, Charges, Plan, gather_up


def find_heaviest_query(
    plan: Plan, charges: Sequence[Charge], limit: float
) -> tuple[float, int, int]:
    """Returns the charge of a query above the limit, and its Emit.

    If no query is above, it returns at least the largest charge. Cost: a pass over all members in
    arrays, then a walk over the members of each query that may be above the limit: sums in arrays
    count a member twice that a query reads in two ways.
    """
    amounts_by_node = charge_members(plan, charges)
    up = gather_up(plan, amounts_by_node)
    worst = (0.0, -1, -1)
    for number, amounts in up.items():
        if not isinstance(plan.nodes[number].step, s.Emit):
            continue
        above = np.flatnonzero(amounts > limit)
        below = amounts[amounts <= limit]
        worst = max(worst, (float(below.max(initial=0.0)), -1, -1))
        for member in above.tolist():
            amount = sum(
                float(amounts_by_node[n][m])
                for n, m in members_below(plan, (number, member))
                if n in amounts_by_node
            )
            worst = max(worst, (amount, number, member))
            if amount > limit:
                return worst
    return worst


def charge_members(plan: Plan, charges: Sequence[Charge]) -> Charges:
    """Returns the charges of each living member, by node.

    Charges of nodes and members that the plan lacks are dropped.
    """
    charges_by_node: Charges = {}
    for node, rows, amount in charges:
        at = plan.nodes.get(node)
        if at is None or (rows is not None and not rows.sum()):
            continue
        shares = np.zeros(len(at.members))
        weights = at.alive if rows is None else rows[: len(shares)]
        shares[: len(weights)] = weights
        shares *= amount / max(at.alive.sum() if rows is None else rows.sum(), 1)
        charges_by_node[node] = (
            charges_by_node[node] + shares if node in charges_by_node else shares
        )
    return charges_by_node


def members_below(plan: Plan, root: At) -> set[At]:
    """Returns a member and all members below it."""
    reached, waiting = {root}, [root]
    while waiting:
        node, member = waiting.pop()
        inputs = plan.nodes[node].inputs
        new = set(zip(inputs, plan.nodes[node].members.inputs_at(member), strict=True)) - reached
        reached |= new
        waiting += new
    return reached
