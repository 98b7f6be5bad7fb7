"""The places of the rows of a query's parts and sub-joins after it is installed.

A query's tree is that of its conjunctions, with the changes of installation: a relaxed join is
below a pick, without the lifted conditions (``parameterize``), and static data are below their
arrangement. Both trees are walked side by side.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from levada.plan.binding.edges import base_of
from levada.plan.binding.installer import Installer
from levada.plan.execution.shapes import Shape
from levada.plan.lowering.join_order import MAX_ORDERED_PARTS, Conjunction
from levada.plan.physical import operators as p
from levada.plan.physical.operators import Op
from levada.plan.sharing.common_subexpressions import CommonSubexpressions
from levada.plan.sharing.join_orders.order_cost import mask_of
from levada.plan.sharing.join_orders.running_subjoins import RunningConjunction


def locate_conjunctions(
    conjunctions: Sequence[Conjunction], installer: Installer, root: Op, installed: Op
) -> Iterator[tuple[RunningConjunction, Mapping[int, int]]]:
    """Yields the conjunctions below ``root`` as they were ``installed``, with the numbers of
    operators.

    These are the operators of their parts and sub-joins.
    """
    became: dict[int, Op] = {}
    _walk(root, installed, became)
    for number, conjunction in enumerate(conjunctions):
        if not 1 < len(conjunction.parts) <= MAX_ORDERED_PARTS:
            continue
        ops = {1 << i: part for i, part in enumerate(conjunction.parts)}
        ops |= {mask_of(tree): op for tree, op in conjunction.joined.items()}
        there = {mask: base_of(became[id(op)]) for mask, op in ops.items() if id(op) in became}
        numbers = {
            mask: installer.numbers[id(op)]
            for mask, op in there.items()
            if id(op) in installer.numbers
        }
        yield RunningConjunction(installer, conjunction, {}, number), numbers


def with_places(
    numbered: tuple[RunningConjunction, Mapping[int, int]],
    common: CommonSubexpressions,
    index: Mapping[Shape, int],
) -> RunningConjunction:
    """Returns a conjunction with the places of its installed operators."""
    followed, numbers = numbered
    made = {
        mask: known.made[-1]
        for mask, number in numbers.items()
        if (known := common.known.get(number)) is not None and known.made
    }
    places = {mask: (index[one.shape], one.member) for mask, one in made.items()}
    return replace(followed, places=places)


def _walk(root: Op, installed: Op, became: dict[int, Op]) -> None:
    """Maps each operator below the first root to the one below the second root in its place."""
    waiting = [(root, installed)]
    while waiting:
        op, other = waiting.pop()
        if isinstance(other.spec, p.ByWindow) and not isinstance(op.spec, p.ByWindow):
            (other,) = other.inputs
        if isinstance(other.spec, p.Pick) and not isinstance(op.spec, p.Pick):
            (other,) = other.inputs
        if isinstance(other.spec, p.Arrange):
            (other,) = other.inputs
        if id(op) in became:
            continue
        became[id(op)] = other
        if type(op.spec) is type(other.spec) and len(op.inputs) == len(other.inputs):
            waiting += zip(op.inputs, other.inputs, strict=True)
        elif isinstance(op.spec, p.Filter):
            waiting.append((op.inputs[0], other))
