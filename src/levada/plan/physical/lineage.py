"""Which column of a tuple stream a variable is, seen through what keeps variables as they are."""

from __future__ import annotations

from levada.plan.physical import operators as p
from levada.plan.physical.operators import Op


def column_type(op: Op, name: str) -> str:
    """The type of the tuple column that a variable is, or "" if it is none."""
    if isinstance(op.spec, p.Scan) and name in op.variables:
        return op.spec.types[op.variables.index(name)]
    if isinstance(op.spec, p.Rename):
        return column_type(
            op.inputs[0], dict(zip(op.variables, op.spec.sources, strict=True)).get(name, "")
        )
    if isinstance(op.spec, p.Recent):  # the names below are others
        source = op.spec.source(name, op.variables) if name in op.variables else None
        return column_type(op.inputs[0], source or "")
    for child in op.inputs:
        if name in child.variables:
            return column_type(child, name)
    return ""


def time_variables(op: Op) -> dict[int, str]:
    """For each window of tuple scans below: the result variable that shows its time, if any."""
    found: dict[int, str] = {}
    for name in op.variables:
        window = _time_of(op, name)
        if window is not None:
            found[window] = name
    return found


def _time_of(op: Op, name: str) -> int | None:
    """The window whose event time this variable is, seen through what keeps variables."""
    if isinstance(op.spec, p.Scan):
        column = dict(zip(op.variables, op.spec.columns, strict=True)).get(name)
        return op.windows[0] if column == p.TIME and op.windows else None
    if isinstance(op.spec, (p.Filter, p.Join, p.MultiwayJoin, p.LinkedJoin, p.Occur)):
        for child in op.inputs:
            if name in child.variables:
                return _time_of(child, name)
    if isinstance(op.spec, p.Rename):
        return _time_of(
            op.inputs[0], dict(zip(op.variables, op.spec.sources, strict=True)).get(name, "")
        )
    if isinstance(op.spec, p.Extend) and name != op.variables[-1]:
        return _time_of(op.inputs[0], name)
    return None
