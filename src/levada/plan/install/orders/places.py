"""Where the rows of a query's parts and sub-joins are, once it is installed.

A query's tree is that of its conjunctions, but for what became of it on the way to be installed: a
relaxed join stands below a pick, without the conditions that were lifted out of it
(``plan/install/lift``). Both trees are walked side by side.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from levada.plan.install.edges import base_of
from levada.plan.install.install import Installer
from levada.plan.install.orders.costs import mask_of
from levada.plan.install.orders.known import Followed
from levada.plan.lowering.join_order import MANY, Conjunction
from levada.plan.physical import operators as p
from levada.plan.physical.operators import Op
from levada.plan.sealed.shares import At


def followed(
    conjunctions: Sequence[Conjunction],
    installer: Installer,
    root: Op,
    installed: Op,
    at: Callable[[int], At | None],
) -> Iterator[Followed]:
    """The conjunctions below ``root`` as they were ``installed``; ``at``: where an operator of this
    number is.
    """
    became: dict[int, Op] = {}
    _walk(root, installed, became)

    def place(op: Op) -> At | None:
        found = became.get(id(op))
        number = None if found is None else installer.numbers.get(id(base_of(found)))
        return None if number is None else at(number)

    for conjunction in conjunctions:
        if not 1 < len(conjunction.parts) <= MANY:
            continue
        ops = {1 << i: part for i, part in enumerate(conjunction.parts)}
        ops |= {mask_of(tree): op for tree, op in conjunction.joined.items()}
        places = {mask: found for mask, op in ops.items() if (found := place(op)) is not None}
        yield Followed(installer, conjunction, places)


def _walk(root: Op, installed: Op, became: dict[int, Op]) -> None:
    """Finds of each operator below the first root the one below the second that has its place."""
    waiting = [(root, installed)]
    while waiting:
        op, other = waiting.pop()
        if isinstance(other.spec, p.Pick) and not isinstance(op.spec, p.Pick):
            (other,) = other.inputs
        if id(op) in became:
            continue
        became[id(op)] = other
        if type(op.spec) is type(other.spec) and len(op.inputs) == len(other.inputs):
            waiting += zip(op.inputs, other.inputs, strict=True)
        elif isinstance(op.spec, p.Filter):
            waiting.append((op.inputs[0], other))
