"""Places the rows of an operator: its stage, the exchanges of its inputs, and the variables that
partition its output.

Rows stay in their partition as long as equal keys are together. An exchange opens the next stage
(docs/architecture.md#a-querys-way). ``join_keys`` prefers variables that already partition a side.
Parts that share no variable, directly or through others, have no join key (``connected_groups``).
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from levada.plan.physical.operators import HOME, Op

Exchange = tuple[tuple[str, ...] | None, ...]
Placing = tuple[int, Exchange, tuple[str, ...]]
ALL_PARTITIONS = ("*",)  # as an exchange: all rows go to all partitions
LOST = ("?",)  # partitioned by variables that the rows no longer have


def place(inputs: tuple[Op, ...], keys: tuple[str, ...]) -> tuple[int, Exchange]:
    """Returns the stage in which all inputs are partitioned by ``keys``, and the
    exchanges for it.
    """
    local = [i.stage > 0 and i.placed == keys and keys != HOME for i in inputs]
    stage = max(i.stage if here else i.stage + 1 for i, here in zip(inputs, local, strict=True))
    return stage, tuple(
        None if here and i.stage == stage else keys for i, here in zip(inputs, local, strict=True)
    )  # fmt: skip


def place_as_input(op: Op) -> Placing:
    """Returns stage, exchange and placement of an operator that takes rows in place."""
    return op.stage, (None,), op.placed


def place_by_keys(op: Op, keys: Sequence[str]) -> Placing:
    """Returns stage, exchange and placement of an operator that needs rows with equal ``keys``
    together.
    """
    if op.stage > 0 and (op.placed == HOME or (op.placed and set(op.placed) <= set(keys))):
        return op.stage, (None,), op.placed
    wanted = tuple(keys) or HOME
    return op.stage + 1, (wanted,), wanted


def join_keys(
    left: Op,
    right: Op,
    places: Mapping[str, int] | None = None,
    required: Container[str] = (),
) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
    """Returns all shared variables, those always bound on both sides, and the partition variables.

    ``places``: the places of the left side's variables, if known; then the cost is the right
    side's. ``required``: variables that the join will require to be bound.
    """
    if places is None:
        shared = tuple(v for v in left.variables if v in right.variables)
    else:
        shared = tuple(sorted((v for v in right.variables if v in places), key=places.__getitem__))
    keys = tuple([v for v in shared if v in required or not (v in left.maybe or v in right.maybe)])
    for side in (left, right):
        if side.stage > 0 and side.placed not in (HOME, LOST, ()) and set(side.placed) <= set(keys):
            return shared, keys, side.placed
    return shared, keys, keys[:1] or HOME


def connected_groups(parts: Sequence[Op]) -> list[list[Op]]:
    """Groups parts that share variables, directly or through others."""
    groups: list[list[Op]] = []
    for part in parts:
        mine = [g for g in groups if any(set(part.variables) & set(op.variables) for op in g)]
        groups = [g for g in groups if g not in mine] + [[*(op for g in mine for op in g), part]]
    return groups
