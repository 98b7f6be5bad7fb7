"""Filter and Extend: expressions over slots and the members' constants (SPARQL 1.1, 17 and 18.5).

Expressions that make texts, or process text by text, evaluate some rows at a time, and their
resource use is counted (``core/expression_budget``).

All members of a shape are evaluated in one call: a column of parameters, gathered by member,
contains their differences. A large fan-out of comparisons with a constant (thousands of thresholds
over one input) is not expanded row by row: the thresholds are sorted once, and each row meets
exactly those that it passes (``thresholds``).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt
import polars as pl

from levada.core import column_names as col
from levada.core.event_time import TIMELESS
from levada.core.expressions import Call, Expression, Function, Param, Var, variables
from levada.core.frame import Frame, concat
from levada.core.rdf_terms import Kind
from levada.core.row_ranges import ranges
from levada.core.size_thresholds import register
from levada.kernels.keyed.bucket_layout import combine
from levada.kernels.terms.term_lookup import TermLookup
from levada.operators.expressions import BY_TEXT, Scope, evaluate, truth
from levada.operators.expressions.arithmetic import bound_integers
from levada.operators.expressions.term_values import (
    Column,
    broadcast,
    constant,
    from_texts,
    gather,
    rows_of,
)
from levada.operators.operator_context import Inputs, OperatorContext
from levada.operators.rows.constants import copies, name_seed
from levada.operators.rows.route_rows import renumber, value, with_report, zeros
from levada.operators.rows.term_columns import column, slot
from levada.plan.execution import steps as s
from levada.plan.execution.plan import PlanNode
from levada.plan.execution.row_layout import Layout

_COMPARE = (
    Function.LESS,
    Function.LESS_EQUAL,
    Function.EQUAL,
    Function.GREATER,
    Function.GREATER_EQUAL,
)


def filter_(node: PlanNode[s.Filter], inputs: Inputs, env: OperatorContext) -> Frame | None:
    """The rows whose condition is true."""
    step, (frame,) = node.step, inputs
    if frame is None:
        return None
    parts = pieces(node, frame, step.condition)
    slots = node.compute_once(_mentioned_slots)
    truths = [truth(step.condition, scope(node, part, env.pool, mentioned=slots)) for part in parts]
    keep = (truths[0] if len(truths) == 1 else np.concatenate(truths)).nonzero()[0]
    return keep_rows(frame, keep, step.kept, node.layout)


def extend(node: PlanNode[s.Extend], inputs: Inputs, env: OperatorContext) -> Frame | None:
    """The rows with a computed slot; an error leaves it unbound."""
    step, pool, (frame,) = node.step, env.pool, inputs
    if frame is None:
        return None
    out = keep_rows(frame, None, step.kept, node.layout)
    if len(node.layout.slots) == len(step.kept):
        return out
    size = frame.n * node.layout.width_of(len(step.kept))
    pool.spent.ask(node.id, size, lambda: frame["op"])
    parts = [_compute_column(node, part, pool) for part in pieces(node, frame, step.expression)]
    output = parts[0] if len(parts) == 1 else concat(parts)
    return out.with_(**output.columns)


def _compute_column(node: PlanNode[s.Extend], frame: Frame, pool: TermLookup) -> Frame:
    """The columns of the computed slot. Raises ``ExcessError`` if its texts are too many."""
    values_scope = scope(node, frame, pool, mentioned=node.compute_once(_mentioned_slots))
    step, before = node.step, pool.size
    text_count = values_scope.account.texts
    values = evaluate(step.expression, values_scope)
    values = broadcast(bound_integers(values) if step.tuples else values, frame.n)
    last = len(step.kept)
    values_scope.account.start()
    column = slot(values, last, node.layout.slots[last], pool, tuples=step.tuples)
    values_scope.account.look(least=0.0)
    text_count = values_scope.account.texts - text_count
    values_scope.account.add(max(pool.size - before - text_count, 0))
    return Frame(column, frame.n)


PIECE = register(f"{__name__}.PIECE", 1 << 16)
"""Rows for which texts are made at once: so many that a call for a piece of them costs nothing."""


def pieces(node: PlanNode, frame: Frame, expression: Expression) -> Iterator[Frame]:
    """Yields the rows some at a time, if the expression makes texts or processes text by text.
    Yields all rows at once if the expression draws values, because the draw depends on the number
    of equal rows.
    """
    if frame.n <= PIECE or node.members.query_at(0) or not _goes_by_text(expression):
        yield frame
        return
    for at in range(0, frame.n, PIECE):
        yield Frame({n: c[at : at + PIECE] for n, c in frame.columns.items()})


def _goes_by_text(expression: Expression) -> bool:
    match expression:
        case Call(function, args):
            return function in BY_TEXT or any(map(_goes_by_text, args))
        case _:
            return False


def keep_rows(
    frame: Frame, rows: npt.NDArray[np.int64] | None, slots: Sequence[int], layout: Layout
) -> Frame:
    """These rows (ascending; None: all) with the kept slots renumbered, and all times."""
    if rows is not None and len(rows) < frame.n:  # rows are in order: as many are all
        frame = frame.take(rows)
    columns = {
        n: c for n, c in frame.columns.items() if n in ("op", "w", "r", col.PLACE) or col.is_time(n)
    }
    for i, at in enumerate(slots):
        columns.update(renumber(frame, at, i, layout.slots[i]))
    return Frame(columns, frame.n)


def _mentioned_slots(node: PlanNode) -> tuple[int, ...]:
    """Returns the slots that the expression of a Filter or an Extend mentions."""
    step, slots = node.step, len(node.input_layouts[0].slots)
    assert isinstance(step, s.Filter | s.Extend), "the step has one expression"
    names = {*variables(step.condition if isinstance(step, s.Filter) else step.expression)}
    return tuple([i for i in range(slots) if str(i) in names])


def scope(
    node: PlanNode,
    frame: Frame,
    pool: TermLookup,
    width: int | None = None,
    *,
    mentioned: Sequence[int] | None = None,
) -> Scope:
    """Returns the scope of an expression: slots by number (``width`` of them, or those that are
    ``mentioned``), parameters per row, the report time as NOW().
    """
    slots = len(node.input_layouts[0].slots) if width is None else width
    some = range(slots) if mentioned is None else mentioned
    columns = {str(i): column(frame, i, pool) for i in some}
    columns[""] = constant(None)
    draw = _draw(node)
    return Scope(
        n=frame.n,
        columns=columns,
        params=[gather(c, frame["op"].astype(np.int64)) for c in node.compute_once(parameters)],
        now=_report_time(frame, pool),
        seeds=seeds(node, frame, slots) if node.members.query_at(0) else None,
        place=draw[1] if draw else 0,
        identify=pool.identify,
        times=frame.columns.get(col.least(0), 0),
        tuples=isinstance(node.step, (s.Filter, s.Extend, s.Pick)) and node.step.tuples,
        account=pool.spent.account(frame["op"] if len(node.members) > 1 else None),
    )


def _report_time(frame: Frame, pool: TermLookup) -> npt.NDArray[np.int64] | int:
    """NOW(): the report time; of a query without windows the wall time of its epoch."""
    if "r" not in frame:
        return 0
    return np.where(frame["r"] == TIMELESS, pool.wall, frame["r"])


def parameters(node: PlanNode) -> list[Column]:
    """The members' constants, one column per parameter with a row per member."""
    columns = node.members.columns_of_constants()
    texts = [None if term is None else str(term) for terms in columns for term in terms]
    every = from_texts(pl.Series(texts, dtype=pl.String))
    every.values()
    sizes = [len(terms) for terms in columns]
    ends = np.cumsum(sizes)
    return [rows_of(every, end - size, end) for size, end in zip(sizes, ends.tolist(), strict=True)]


def seeds(node: PlanNode, frame: Frame, width: int) -> npt.NDArray[np.uint64]:
    """Returns a seed per row from (query, report, solution, its number among equal ones): RAND,
    UUID and BNODE derive from it.
    """
    draw = _draw(node)
    k, h = node.compute_once(_name_seeds)[frame["op"]], zeros(frame.n)
    for i in draw[0] if draw else [i for i in range(width) if col.x(i) in frame]:
        k, h = combine(k, h, frame[col.x(i)], frame[col.y(i)])
    k, h = with_report((k, h), frame)
    return combine(k, h, copies(k, h), zeros(frame.n))[0]


def _name_seeds(node: PlanNode) -> npt.NDArray[np.uint64]:
    """Returns the seed of the name of each member's query."""
    return np.array([name_seed(name) for name in node.members.each_query()], np.uint64)


def _draw(node: PlanNode) -> tuple[tuple[int, ...], int] | None:
    return node.step.draw if isinstance(node.step, (s.Filter, s.Extend)) else None


def is_threshold(expression: Expression) -> bool:
    """Whether a condition compares one slot with one constant, which members can differ in."""
    match expression:
        case Call(function, (Var(_), Param(_))) if function in _COMPARE:
            return True
        case _:
            return False


def thresholds(
    node: PlanNode[s.Filter], frame: Frame, members: npt.NDArray[np.int32], pool: TermLookup
) -> Frame | None:
    """Returns all (row, member) pairs whose comparison is true, for one input row and many members,
    or None if some operand is not a number.

    ``frame`` holds the input's rows once; ``members`` are all members that read them. Numbers are
    compared as doubles where that is exact; where it might not be, the caller expands.
    """
    step = node.step
    assert isinstance(step.condition, Call), "a threshold"
    variable, _ = step.condition.args
    assert isinstance(variable, Var), "a slot against a constant"
    i = int(variable.name)
    values = gather(node.compute_once(parameters)[0], members.astype(np.int64)).values()
    d = value(frame, "d", i)
    if not _as_doubles((frame[col.kind(i)], d, value(frame, "m", i)), values[:3]):
        return None
    order = np.argsort(values[1], kind="stable")
    rows, at = _passing_pairs(step.condition.function, d, values[1][order])
    out = frame.take(rows).with_(op=members[order[at]])
    return keep_rows(out, None, step.kept, node.layout)


# kinds, doubles, mantissas
_Values = tuple[npt.NDArray[np.uint8], npt.NDArray[np.float64], npt.NDArray[np.int64]]


def _as_doubles(rows: _Values, constants: _Values) -> bool:
    """Whether comparing all rows with all constants as doubles has SPARQL's meaning (XPath's
    numeric promotion).

    A double promotes the other operand to a double; integers below 2**53 are exact as doubles. NaN
    is never equal, less or greater.
    """
    if np.isnan(rows[1]).any() or np.isnan(constants[1]).any():
        return False
    if (rows[0] == Kind.DOUBLE).all():
        return bool(
            np.isin(constants[0], (Kind.INTEGER, Kind.DECIMAL, Kind.FLOAT, Kind.DOUBLE)).all()
        )
    return _small(rows[0], rows[2]) and _small(constants[0], constants[2])


def _small(kind: npt.NDArray[np.uint8], man: npt.NDArray[np.int64]) -> bool:
    return bool(((kind == Kind.DOUBLE) | ((kind == Kind.INTEGER) & (np.abs(man) < 2**53))).all())


def _passing_pairs(
    function: Function, values: npt.NDArray[np.float64], bounds: npt.NDArray[np.float64]
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:  # fmt: skip
    """(row, place among the sorted bounds) for value < bound, value > bound and so on."""
    n = len(bounds)
    match function:
        case Function.GREATER:
            low, high = (
                np.zeros(len(values), np.int64),
                np.searchsorted(bounds, values, side="left"),
            )
        case Function.GREATER_EQUAL:
            low, high = (
                np.zeros(len(values), np.int64),
                np.searchsorted(bounds, values, side="right"),
            )
        case Function.EQUAL:
            low, high = (np.searchsorted(bounds, values, side=s) for s in ("left", "right"))
        case Function.LESS:
            low, high = np.searchsorted(bounds, values, side="right"), np.full(len(values), n)
        case _:
            low, high = np.searchsorted(bounds, values, side="left"), np.full(len(values), n)
    counts = high - low
    rows = np.repeat(np.arange(len(values)), counts)
    return rows, ranges(low, counts)


# Steps that let rows pass as they are: several inputs as one, rows that waited for their
# watermark, results.


def union(node: PlanNode[s.Union], inputs: Inputs, env: OperatorContext) -> Frame | None:
    """The rows of all inputs."""
    there = [f for f in inputs if f is not None]
    return concat(there) if there else None


def hold(node: PlanNode[s.Hold], inputs: Inputs, env: OperatorContext) -> Frame | None:
    """The rows: they are below their watermark now."""
    return inputs[0]


def emit(node: PlanNode[s.Emit], inputs: Inputs, env: OperatorContext) -> Frame | None:
    """The results; the due reports of queries that show empty ones are noted, by one partition."""
    if node.step.enumerated and env.place.partition == 0:
        calendar = env.calendar(node, node.step.kinds)
        for m in np.flatnonzero(node.alive).tolist():
            times = calendar.member_reports(m)
            if len(times):
                env.show(node, m, times)
    return inputs[0]
