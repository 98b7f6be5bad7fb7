"""Operators of one kind in one region become one, in the background.

A query that comes takes what is cheapest for itself. Two operators whose least common one is dearer
than both stay apart, and so do fifty, for which the common one would be far cheaper: no arrival
alone can gain from it. So now and then all operators of one base in a region are looked at
together, the one that makes most first: it is widened step by step, and the others that are worth
it take their rows from it. Nobody's demand changes.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from bench.papers.streamreuse.model.cost import Price
from bench.papers.streamreuse.model.dataflow import Dataflow, Operator
from bench.papers.streamreuse.model.relaxation import relax

LEAST = 0.1
"""What gathering must save at least, as a part of what the operators cost apart."""


def gather(flow: Dataflow) -> int:
    """How many operators now take their rows from another one of their region."""
    kinds: dict[Any, list[Operator]] = defaultdict(list)
    for operator in flow.operators.values():
        if operator.inputs and operator.definition.group is None:
            region = int(flow.network.region[operator.node])
            kinds[operator.definition.base, region].append(operator)
    return sum(_gathered(flow, found) for found in kinds.values() if len(found) > 1)


def _gathered(flow: Dataflow, found: list[Operator]) -> int:
    found = [o for o in found if o.number in flow.operators]
    target = max(found, key=lambda o: flow.statistics.bytes(o.definition), default=None)
    if target is None:
        return 0
    above = set(flow.chain(target.number))
    others = [o for o in found if o.number not in above and target.number not in o.inputs]
    worth = _worth(flow, target, others)
    moved = 0
    for other in worth:
        if other.number in flow.operators:  # another one's redirection may have left it unused
            flow.redirect(other, target)
            moved += 1
    return moved


def _worth(flow: Dataflow, target: Operator, others: list[Operator]) -> list[Operator]:
    """The first few of the others, those that make most first, that save most together."""
    size, one = flow.statistics.bytes, flow.costs.one
    whole, apart, saved, gain, best = target.definition, 0.0, 0.0, 0.0, 0
    others = sorted(others, key=lambda o: -size(o.definition))
    for count, other in enumerate(others, 1):
        whole = relax(whole, other.definition)
        now = one(_own(flow, other))
        apart += now
        saved += now - one(_carried(flow, other, target))
        left = saved - one(flow.marginal(target.number, whole))
        if left > max(gain, LEAST * apart):
            gain, best = left, count
    return others[:best]


def _own(flow: Dataflow, operator: Operator) -> Price:
    """What an operator costs with its inputs' wires."""
    found = Price(0.0, operator.cpu)
    for place, number in enumerate(operator.inputs):
        source = flow.operators[number]
        found += flow.wire(source.demands[operator.number, place].definition, source.node,
                           operator.node)  # fmt: skip
    return found


def _carried(flow: Dataflow, operator: Operator, target: Operator) -> Price:
    """What it costs as a relay of another one."""
    cpu = flow.statistics.rate(operator.definition) * flow.costs.compensated
    return Price(0.0, cpu) + flow.wire(operator.definition, target.node, operator.node)
