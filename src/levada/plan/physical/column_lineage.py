"""Finds the tuple column of a variable, through operators that keep variables unchanged."""

from __future__ import annotations

from collections.abc import Collection

from levada.plan.physical import operators as p
from levada.plan.physical.operators import Op


def column_type(op: Op, name: str) -> str:
    """Returns the type of the tuple column of a variable, or "" if it is not one."""
    return column_types(op, (name,)).get(name, "")


def column_types(op: Op, names: Collection[str]) -> dict[str, str]:
    """Returns the types of the variables that are tuple columns."""
    if isinstance(op.spec, p.Scan):
        types = dict(zip(op.variables, op.spec.types, strict=True))
        return {name: types[name] for name in names if name in types}
    if isinstance(op.spec, p.Rename | p.Recent):  # variables have other names below
        below = dict(zip(op.variables, op.spec.sources, strict=True))
        sources = {name: below[name] for name in names if name in below}
        types = column_types(op.inputs[0], set(sources.values()))
        return {name: types[source] for name, source in sources.items() if source in types}
    if isinstance(op.spec, p.UserOperator):  # its own columns have no facets of their types
        known = {v: source for v in names if (source := op.spec.source(v, op.variables))}
        below_types = column_types(op.inputs[0], set(known.values()))
        return {v: below_types[source] for v, source in known.items()}
    types, left = dict[str, str](), set(names)
    for child in op.inputs:
        variables = left.intersection(child.variables)
        if variables:
            types |= column_types(child, variables)
            left -= variables
    return types


def time_variables(op: Op) -> dict[int, str]:
    """Returns for each window of tuple scans below the result variable of its time, if there is
    one.
    """
    names_by_window: dict[int, str] = {}
    for name in op.variables:
        window = _time_of(op, name)
        if window is not None:
            names_by_window[window] = name
    return names_by_window


def _time_of(op: Op, name: str) -> int | None:
    """Returns the window whose event time this variable is."""
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
