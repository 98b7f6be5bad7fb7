"""IStream, DStream and relations: the beginnings and ends of rows at each report
(docs/semantics.md#results).

A solution row that counts in [s, e) begins at s and ends at e, both report times (periodic reports:
the first at or after). For each (member, solution, report) beginnings and ends are netted as bags:
a positive rest is inserted, a negative rest deleted. Report rows count from their report to the
next one. Where rows cannot cancel (``certain``) they pass at their start and are not remembered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from levada.core import column_names as col
from levada.core.event_time import MAX, Times, WindowKind
from levada.core.frame import Frame, concat
from levada.core.member_columns import values_of_members
from levada.core.query_model import Output
from levada.kernels.keyed.radix_sort import in_order
from levada.kernels.terms.term_dictionary import Terms
from levada.kernels.terms.term_lookup import TermLookup
from levada.operators.operator_context import Inputs, OperatorContext
from levada.operators.reporting import report_buffer
from levada.operators.reporting.due_reports import Calendar
from levada.operators.rows.route_rows import key_of, with_report
from levada.operators.state.state_parts import State, StatePart, due_together
from levada.operators.windowing.window_intervals import exact_interval
from levada.operators.windowing.zset import consolidate, expand
from levada.plan.execution import steps as s
from levada.plan.execution.plan import PlanNode
from levada.plan.execution.row_layout import Facet

Renew = Callable[[Frame], Frame]


def changes(node: PlanNode[s.Changes], inputs: Inputs, env: OperatorContext) -> Frame | None:
    """The differences at the due reports: rows with ``r`` and, unless certain, ``w`` = +1 (insert)
    or -1 (delete).
    """
    step, state, (frame,) = node.step, env.state, inputs
    calendar = env.calendar(node, step.kinds)
    if frame is None and not calendar.any_due:
        return None
    spans = (
        _report(node, step, state, frame, calendar, pool=env.pool)
        if step.rows is None
        else _time_rows(node, step.rows, step.certain, state, frame, calendar=calendar)
    )
    events = [e for e in spans if e.n]
    if not events:
        return None
    return _plain(concat(events)) if step.certain else net_events(node, concat(events), step.output)


def event_deltas(node: PlanNode[s.Deltas], inputs: Inputs, env: OperatorContext) -> Frame | None:
    """Beginnings (+1) and ends (-1) of rows with event times at the due reports, as they are:
    nothing is netted.
    """
    step, state, (frame,) = node.step, env.state, inputs
    calendar = env.calendar(node, step.kinds)
    if frame is None and not calendar.any_due:
        return None
    events = [e for e in _time_rows(node, step.rows, False, state, frame, calendar=calendar) if e.n]
    return _without_marks(concat(events)) if events else None


def net_changes(node: PlanNode[s.Net], inputs: Inputs, env: OperatorContext) -> Frame | None:
    """Returns changes with equal ones of a report netted: the output of IStream, DStream or a
    relation.
    """
    (frame,) = inputs
    return None if frame is None else net_events(node, frame, node.step.output)


def _time_rows(
    node: PlanNode,
    windows: tuple[int, ...],
    certain: bool,
    state: State,
    frame: Frame | None,
    *,
    calendar: Calendar,
) -> Iterator[Frame]:
    """Yields rows with event times. Rows that have not begun wait by their start; rows that have
    begun wait in parts sorted by their end.
    """
    low, high = calendar.low, calendar.high
    ahead = f"{node.id}.ahead"
    begun = due_rows(state, ahead, col.BEGIN, calendar)
    replaced = bool((node.windows.kind == WindowKind.STATIC).any())
    waiting = []
    if frame is not None and frame.n:
        new = _spans(node, windows, frame, calendar, replaced=replaced)
        due = new[col.BEGIN] <= values_of_members(high, new["op"])
        begun.append(new.where(due))
        waiting.append(new.where(~due))
    begun = [f for f in begun if f.n]
    if replaced:
        begun = [_at_next_report(_with_left(f), calendar, waiting) for f in begun]
    remember_by(state, ahead, col.BEGIN, waiting, calendar.last_made)
    for f in begun:
        yield _due_events(f, f[col.BEGIN], 1, low, high)
    if not certain:
        yield from _due_ends(state, f"{node.id}.live", begun, calendar, replaced=replaced)


def _spans(
    node: PlanNode, windows: tuple[int, ...], frame: Frame, calendar: Calendar, *, replaced: bool
) -> Frame:
    """New rows with the instants from and up to which they count; where graphs may be ``replaced``
    also with that at which they have left the windows, whatever else ends them.
    """
    layout = node.input_layouts[0]
    s, e = exact_interval(frame, layout, node.windows, windows)
    if replaced:
        _, left = exact_interval(frame.drop(col.UNTIL), layout, node.windows, windows)
        frame = frame.with_(**{col.LEFT: calendar.round_up_to_report(frame["op"], left)})
    op = frame["op"]
    return report_buffer.rows_by_interval(
        frame, calendar.round_up_to_report(op, s), calendar.round_up_to_report(op, e)
    )


def _with_left(rows: Frame) -> Frame:
    """Rows of a state from before it was known when they leave the windows: when they end."""
    return rows if col.LEFT in rows else rows.with_(**{col.LEFT: rows[col.END]})


def _at_next_report(rows: Frame, calendar: Calendar, waiting: list[Frame]) -> Frame:
    """Due rows, of which some begin with the replacement of a graph: that is at the next report,
    for which they may wait.

    A row that ends before it never counts.
    """
    high = calendar.high[rows["op"]]
    first = calendar.first_report(rows["op"], rows[col.BEGIN])
    unknown = first >= MAX
    waiting.append(rows.with_(**{col.BEGIN: high + 1}).where(unknown & (rows[col.END] > high)))
    return rows.with_(**{col.BEGIN: first}).where(~unknown & (first < rows[col.END]))


def _ends_at_next_report(rows: Frame, calendar: Calendar) -> Frame:
    """Rows of which some that are due end with the replacement of a graph: that is at the next
    report, for which they may wait, or when they leave their windows, if they do before.
    """
    high = calendar.high[rows["op"]]
    early = ((rows[col.END] <= high) & (rows[col.END] < rows[col.LEFT])).nonzero()[0]
    end, op = rows[col.END].copy(), rows["op"][early]
    first = calendar.first_report(op, end[early])
    next_ = np.where(first < MAX, first, high[early] + 1)
    end[early] = np.minimum(next_, rows[col.LEFT][early])
    return rows.with_(**{col.END: end})


def same_rows(rows: Frame) -> Frame:
    """Rows of a state as they are."""
    return rows


def due_rows(
    state: State, key: str, column: str, calendar: Calendar, *, renew: Renew = same_rows
) -> list[Frame]:  # fmt: skip
    """Returns the remembered rows whose instant in this column is due. Only parts with such rows,
    and only these rows, are read. ``renew``: assigns rows to current members.
    """
    low, high = calendar.low, calendar.high
    least, greatest = int(low.min()), int(high.max())
    frames = []
    for piece in state.pieces(key):
        if piece.low <= greatest:
            rows = state.frame(piece)
            first, last = np.searchsorted(rows[column], [least, greatest], side="right")
            some = renew(state.rows_of_partition(piece, rows.slice(int(first), int(last))))
            state.touched += some.n
            after, until = values_of_members(low, some["op"]), values_of_members(high, some["op"])
            frames.append(some.where((some[column] > after) & (some[column] <= until)))
    return frames


def _due_ends(
    state: State, key: str, begun: list[Frame], calendar: Calendar, *, replaced: bool
) -> Iterator[Frame]:
    """Yields the ends that are due, of remembered rows and of rows that begin now."""
    low, high = calendar.low, calendar.high
    ending = [*due_rows(state, key, col.END, calendar), *begun]
    if replaced:
        ending = [_ends_at_next_report(_with_left(f), calendar) for f in ending]
    for f in ending:
        yield _due_events(f, f[col.END], -1, low, high)
    # without an end they say no more
    later = [
        f.where((f[col.END] > values_of_members(high, f["op"])) & (f[col.END] < MAX))
        for f in ending
    ]
    remember_by(state, key, col.END, later, calendar.last_made)


def remember_by(
    state: State, key: str, column: str, rows: list[Frame], high: Times, *, renew: Renew = same_rows
) -> None:  # fmt: skip
    """Appends rows as a piece sorted by this column; drops pieces that are past, puts younger ones
    together (``due_together``).
    """
    pieces = [p for p in state.pieces(key) if p.dead > int(high.min())]
    some = [f for f in rows if f.n]
    if some:
        pieces.append(_sort(state, column, concat(some)))
    if (start := due_together(pieces)) < len(pieces):
        every = renew(concat([state.whole(p) for p in pieces[start:]]))
        left = every.where(every[column] > high[every["op"]])
        pieces = [*pieces[:start], *([_sort(state, column, left)] if left.n else [])]
    state.replace(key, pieces)


def _sort(state: State, column: str, rows: Frame) -> StatePart:
    ordered = rows.take(in_order(rows[column]))
    at = ordered[column]
    return state.put({"": ordered}, ordered.n, (int(at[-1]), int(at[0]), int(at[-1])))


def _report(
    node: PlanNode,
    step: s.Changes,
    state: State,
    frame: Frame | None,
    calendar: Calendar,
    *,
    pool: TermLookup,
) -> Iterator[Frame]:
    """Returns report rows, which count until the next report. The rows of a last report wait if the
    next one is not known yet.
    """
    key = f"{node.id}.live"
    rows = report_buffer.recall(state, key)
    if frame is not None and frame.n:
        columns = {n: c for n, c in frame.columns.items() if n != "r"}
        rows.append(
            Frame(
                {**columns, col.BEGIN: frame["r"], col.END: np.full(frame.n, MAX, np.int64)},
                frame.n,
            )
        )
    ended = [
        f.with_(**{col.END: calendar.after(f["op"], f[col.BEGIN], step.enumerated)}) for f in rows
    ]
    for f in ended:
        yield _due_events(f, f[col.BEGIN], 1, calendar.low, calendar.high)
        yield _due_events(f, f[col.END], -1, calendar.low, calendar.high)
    standing = [f.where(f[col.END] >= MAX) for f in ended if f.n]
    _keep(state, key, standing, _own_terms(node, step, standing, pool))


def _keep(state: State, key: str, rows: list[Frame], terms: Terms) -> None:
    """Keeps these rows of a last report as one part, in place of the previous ones."""
    nonempty = [f for f in rows if f.n]
    state.replace(key, [])
    if nonempty:
        report_buffer.remember(state, key, concat(nonempty), terms)


def _own_terms(node: PlanNode, step: s.Changes, rows: list[Frame], pool: TermLookup) -> Terms:
    """Returns the texts of report rows, which outlive their input rows by one report."""
    nonempty = [f for f in rows if f.n]
    slots = [i for i, facets in enumerate(node.layout.slots) if Facet.TEXT in facets]
    if step.rows is not None or not nonempty or not slots:
        return Terms.empty()
    x = np.concatenate([f[col.x(i)] for f in nonempty for i in slots])
    y = np.concatenate([f[col.y(i)] for f in nonempty for i in slots])
    return pool.pick(x, y)


def _due_events(rows: Frame, at: Times, sign: int, low: Times, high: Times) -> Frame:
    """The events of rows at times ``at`` that are due: beginnings and ends of rows that count."""
    low, high = values_of_members(low, rows["op"]), values_of_members(high, rows["op"])
    due = (at > low) & (at <= high) & (at < MAX) & (rows[col.BEGIN] < rows[col.END])
    now = due.nonzero()[0]
    due_rows = rows if len(now) == rows.n else rows.take(now)
    weight = due_rows["w"].astype(np.int64) if "w" in due_rows else np.ones(due_rows.n, np.int64)
    return due_rows.with_(r=at[now], w=weight * sign)


def _plain(rows: Frame) -> Frame:
    return Frame({n: c for n, c in rows.columns.items() if n != "w" and col.is_visible(n)}, rows.n)


def _without_marks(rows: Frame) -> Frame:
    columns = {n: c for n, c in rows.columns.items() if not n.startswith("#")}
    return Frame({**columns, "w": rows["w"].astype(np.int8)}, rows.n)


def net_events(node: PlanNode, events: Frame, output: Output) -> Frame | None:
    """Nets equal changes of a report: each remaining change as often as it is left, with its
    sign.
    """
    key = with_report(key_of(events, range(len(node.layout.slots))), events)
    _, first, weights = consolidate(*key, events["w"])
    if output is Output.ISTREAM:
        weights = np.maximum(weights, 0)
    elif output is Output.DSTREAM:
        weights = np.minimum(weights, 0)
    some = weights.nonzero()[0]
    return expand(_plain(events.take(first[some])), weights[some]) if len(some) else None
