"""Which parts hang together."""

from __future__ import annotations

from collections.abc import Sequence

from levada.plan.physical.operators import Op


def connected(parts: Sequence[Op]) -> list[list[Op]]:
    """Parts in groups: those that share variables, directly or through others."""
    groups: list[list[Op]] = []
    for part in parts:
        mine = [g for g in groups if any(set(part.variables) & set(op.variables) for op in g)]
        groups = [g for g in groups if g not in mine] + [[*(op for g in mine for op in g), part]]
    return groups
