"""Functions with Over: numbers of rows, and aggregates of the rows around a row.

``Row_Number``, ``Rank`` and ``Dense_Rank`` are ``nodes.Number``. An aggregate over a frame is a
join of the rows with themselves. Each row gets the number ``p`` of its partition, its own number
``r`` in it and its rank ``q``, so ``p, r`` identify it. The rows of one ``p`` whose ``r``, ``q`` or
value of Order By is in the frame are its group:

    rows R = Number(.., p, r, q)
    G = Group [p r] (Filter frame (Join R [p r q] with R [p r2 q2 argument]))
    R Join G + (R - those with a group)

Cost: the square of a partition's rows in a report.
"""

from __future__ import annotations

from levada.core.expressions import (
    Aggregate,
    AggregateFunction,
    Call,
    Expression,
    Function,
    Var,
    conjunction,
)
from levada.core.frozen import frozen
from levada.language.translate.cql.functions import is_null, number
from levada.plan.logical import nodes
from levada.plan.logical.variables import possible_variables

NUMBERS = ("row_number", "rank", "dense_rank")
"""The functions that number rows."""
FRAMED: dict[str, AggregateFunction] = {
    "sum": AggregateFunction.SUM, "avg": AggregateFunction.AVG, "count": AggregateFunction.COUNT,
    "min": AggregateFunction.MIN, "max": AggregateFunction.MAX, "lag": AggregateFunction.MAX,
    "lead": AggregateFunction.MAX, "first_value": AggregateFunction.MAX,
}  # fmt: skip
"""The functions of the rows of a frame; those of one row are the greatest value of it."""

Keys = tuple[tuple[Expression, bool], ...]
Frame = tuple[str, int | None, int | None]


@frozen
class Window:
    """The partition and the order of Over, its frame (None: what SQL takes without one), and
    ``first``: only the first row of the partition.
    """

    partition: tuple[Expression, ...]
    keys: Keys
    frame: Frame | None
    first: bool = False


def number_rows(node: nodes.Node, variable: str, function: str, window: Window) -> nodes.Node:
    """Returns rows with their number in the window."""
    node, names = _with_partition(node, variable, window)
    return nodes.Number(node, variable, function, names, window.keys)


def frame_rows(
    node: nodes.Node,
    variable: str,
    aggregate: tuple[AggregateFunction, Expression | None],
    window: Window,
) -> nodes.Node:
    """Returns rows with an aggregate of the rows of their frame; no value where it has none."""
    node, names = _with_partition(node, variable, window)
    p, r, q, o = (f"{variable}.{name}" for name in "prqo")
    rows: nodes.Node = nodes.Number(
        node, p, "dense_rank", (), tuple((Var(name), False) for name in names)
    )
    rows = nodes.Number(rows, r, "row_number", (p,), window.keys)
    rows = nodes.Number(rows, q, "rank", (p,), window.keys)
    if window.keys:
        rows = nodes.Extend(rows, o, window.keys[0][0])
    function, argument = aggregate
    others = rows
    columns = [r, q, *([o] if window.keys else [])]
    for name in columns:
        others = nodes.Extend(others, f"{name}2", Var(name))
    shown = [p, *(f"{name}2" for name in columns)]
    if argument is not None:
        others = nodes.Extend(others, f"{variable}.a", argument)
        shown.append(f"{variable}.a")
    pairs: nodes.Node = nodes.Join(
        nodes.Project(rows, (p, *columns)), nodes.Project(others, tuple(shown))
    )
    for condition in _conditions(window, r, q, o):
        pairs = nodes.Filter(pairs, condition)
    value = Aggregate(function, None if argument is None else Var(f"{variable}.a"))
    whole: nodes.Node = nodes.Join(rows, nodes.Group(pairs, (p, r), ((variable, value),)))
    frame = window.frame
    if frame is None or window.first or _has_current_row(frame):
        return whole
    every = tuple(sorted(possible_variables(rows)))
    alone = nodes.Except(nodes.Project(rows, every), nodes.Project(whole, every))
    return nodes.Union(whole, alone)


def _with_partition(
    node: nodes.Node, variable: str, window: Window
) -> tuple[nodes.Node, tuple[str, ...]]:
    names = tuple(f"{variable}.{i}" for i in range(len(window.partition)))
    for name, key in zip(names, window.partition, strict=True):
        node = nodes.Extend(node, name, key)
    return node, names


def _has_current_row(frame: Frame) -> bool:
    _, low, high = frame
    return (low is None or low <= 0) and (high is None or high >= 0)


def _conditions(window: Window, r: str, q: str, o: str) -> list[Expression]:
    """Returns the conditions that the frame of a row sets for other rows of its partition."""
    if window.first:
        return [_test(Function.EQUAL, Var(f"{r}2"), number(1))]
    word, low, high = window.frame or ("Range", None, 0 if window.keys else None)
    if word == "Rows":
        place, other, sign = Var(r), Var(f"{r}2"), 1
    elif not low and not high:  # rows that the order does not tell apart are in one frame
        place, other, sign = Var(q), Var(f"{q}2"), 1
    else:
        place, other, sign = Var(o), Var(f"{o}2"), -1 if window.keys[0][1] else 1
    bounds = [(Function.GREATER_EQUAL, low), (Function.LESS_EQUAL, high)]
    if sign < 0:
        bounds = [(Function.LESS_EQUAL, low), (Function.GREATER_EQUAL, high)]
    tests: list[Expression] = [
        _test(function, other, Call(Function.ADD, (place, number(sign * bound))))
        for function, bound in bounds
        if bound is not None
    ]
    if place != Var(o) or not tests:
        return tests
    both = Call(Function.AND, (is_null(place), is_null(other)))
    whole = conjunction(tests)
    assert whole is not None, "there is a bound"
    return [Call(Function.OR, (both, whole))]


def _test(function: Function, a: Expression, b: Expression) -> Call:
    return Call(function, (a, b))
