"""Whole results of incrementally maintained levels: Rstream, periodic and non-empty reports over a
subquery.

The result of a subquery is known where its rows are made, and so are its reports: its content
changes at them. So the changes of all windows of the level arrive here (``w`` of each, no columns).
Together with the changes of the result they determine everything:

    windows   ->  the number of rows they contain after each instant; so when the level reports
                  (``nonempty_windows``)
    result    ->  the multiplicity of each row after each instant; RStream shows the rows at a
                  report, differences the changes since the report before

The state is the current result (RStream) or the changes since the last report (differences). All
rows of a member are in one place. Cost: the changes; for RStream also the current result, in epochs
in which it reports, which is its output.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from levada.core import column_names as col
from levada.core.array_types import Bools, Longs
from levada.core.event_time import MAX, MIN, Times
from levada.core.frame import Frame, concat
from levada.core.frozen import frozen
from levada.core.query_model import Output
from levada.core.row_ranges import ranges
from levada.kernels.keyed.bucket_layout import combine
from levada.kernels.keyed.hash_groups import group
from levada.kernels.terms.term_dictionary import Terms
from levada.kernels.terms.term_lookup import TermLookup
from levada.operators.operator_context import Home, Inputs, OperatorContext
from levada.operators.reporting import report_buffer
from levada.operators.reporting.due_reports import Calendar
from levada.operators.reporting.nonempty_windows import (
    Changes,
    NonEmpty,
    NonEmptyReports,
    places,
    reports,
    tick,
)
from levada.operators.reporting.relation_to_stream import net_events
from levada.operators.rows.route_rows import key_of, zeros
from levada.operators.state.state_parts import State
from levada.operators.windowing.zset import integrate, steps
from levada.plan.execution import steps as s
from levada.plan.execution.plan import PlanNode
from levada.plan.execution.row_layout import Facet


def snapshot(node: PlanNode[s.Snapshot], inputs: Inputs, env: OperatorContext) -> Frame | None:
    """Returns the rows of the due reports: whole results, or signed changes since the last report.

    The reports themselves are noted where reports without rows are shown, too.
    """
    step, state = node.step, env.state
    calendar = env.calendar(node, step.kinds)
    home = env.home(node)
    due = _find_due_reports(node, step, state, inputs[1:], calendar, home=home)
    out = _rows(node, step, state, inputs, due=due.nonempty, calendar=calendar, pool=env.pool)
    for m in np.unique(due.empty["op"]).tolist():
        if home.here[m]:
            env.show(node, m, due.empty["r"][due.empty["op"] == m])
    return out


def _rows(
    node: PlanNode,
    step: s.Snapshot,
    state: State,
    frames: Sequence[Frame | None],
    *,
    due: Frame,
    calendar: Calendar,
    pool: TermLookup,
) -> Frame | None:
    new = (
        None
        if frames[0] is None or not frames[0].n
        else frames[0].with_(w=frames[0]["w"].astype(np.int64))
    )
    if new is None and not due.n:
        return None
    key = f"{node.id}.live"
    rows = [_drop_marks(f) for f in (*report_buffer.recall(state, key), new) if f is not None]
    if not rows:
        return None
    everything = concat(rows)
    everything = everything if node.alive.all() else everything.where(node.alive[everything["op"]])
    if step.output is Output.RSTREAM:
        lifetimes = Lifetimes.from_changes(node, everything)
        out, remaining = (
            _at_reports(everything, lifetimes, due),
            lifetimes.remaining_rows(everything),
        )
    else:
        at = _next_reports(step, node, everything, due, calendar)
        out = net_events(node, everything.with_(r=at).where(at < MAX), step.output)
        remaining = everything.where(at >= MAX)
    if new is not None or remaining.n != everything.n:
        remember(node, state, key, remaining, pool)
    return out


def _drop_marks(rows: Frame) -> Frame:
    return rows.visible()


def _find_due_reports(
    node: PlanNode,
    step: s.Snapshot,
    state: State,
    windows: Sequence[Frame | None],
    calendar: Calendar,
    *,
    home: Home,
) -> NonEmptyReports:
    """Returns the due reports and remembers the content of windows."""
    key = f"{node.id}.occupied"
    frames = [state.whole(p) for p in state.pieces(key)]
    before = NonEmpty.restore(frames, len(node.members))
    before.held[~node.alive] = 0  # of members that are gone nothing is kept
    changes = _changes(step, windows)
    due = reports(node, step, before, changes, calendar)
    due.after.postponed_after[~(home.here & node.alive)] = MAX
    if len(changes[0]) or (due.after.postponed_after != before.postponed_after).any():
        left = due.after.frame(empty=step.show_empty)
        left = left.with_(**{col.PLACE: home.group[left["op"]]})
        state.replace(key, [state.put({"": left}, left.n, (MAX, 0, 0))] if left.n else [])
    return due


def _changes(step: s.Snapshot, windows: Sequence[Frame | None]) -> Changes:
    """The changes of all windows. One that has no input of its own may hold rows for ever, so may
    all.
    """
    leave = [not kind.endless for kind in step.kinds[: len(step.kinds) - step.clock]]
    if len(leave) != len(windows):
        leave = [all(leave)] * len(windows)
    there = [(f, by_time) for f, by_time in zip(windows, leave, strict=True) if f is not None]
    op = np.concatenate([np.empty(0, np.int32), *(f["op"] for f, _ in there)])
    r, w = (
        np.concatenate([np.empty(0, np.int64), *(f[name].astype(np.int64) for f, _ in there)])
        for name in ("r", "w")
    )
    by_time = np.array([by_time for _, by_time in there], np.bool_)
    return op, r, w, np.repeat(by_time, [f.n for f, _ in there])


@frozen
class Lifetimes:
    """Merged changes of equal rows: from ``start`` until before ``until`` there are ``count``
    copies of ``row``; the last intervals are ``final``.
    """

    row: Longs
    start: Times
    until: Times
    count: Longs
    final: Bools

    @staticmethod
    def from_changes(node: PlanNode, rows: Frame) -> Lifetimes:
        """Computes lifetimes from changes of the node's rows, with instants ``r`` and weights
        ``w``. Equal rows of two key groups are kept apart: if one of the groups moves, its rows
        move with it, and so do their retractions.
        """
        key = key_of(rows, range(len(node.layout.slots)))
        if col.PLACE in rows:  # the slots may lack what places them
            key = combine(*key, rows[col.PLACE].astype(np.uint64), zeros(rows.n))
        codes, first = group(*key)
        key_steps = steps(codes, rows["r"])
        r, final = key_steps.at, key_steps.is_final
        count = integrate(key_steps, key_steps.net(rows["w"]))
        assert (count >= 0).all(), "no more copies leave than came"
        until = np.where(final, MAX, np.append(r[1:], MAX))
        return Lifetimes(first[key_steps.of], r, until, count, final)

    def remaining_rows(self, rows: Frame) -> Frame:
        """Returns the rows that exist in the end, as initial changes."""
        last = self.final & (self.count > 0)
        remaining = rows.take(self.row[last])
        return remaining.with_(r=np.full(remaining.n, MIN), w=self.count[last])


def _at_reports(rows: Frame, lifetimes: Lifetimes, due: Frame) -> Frame | None:
    """Returns the rows that exist at each due report."""
    op = rows["op"][lifetimes.row]
    start = places(due, op, lifetimes.start)
    many = places(due, op, lifetimes.until) - start
    at = np.repeat(np.arange(len(many)), many)
    report = ranges(start, many)
    copies = lifetimes.count[at]
    at, report = np.repeat(at, copies), np.repeat(report, copies)
    return rows.take(lifetimes.row[at]).drop("w").with_(r=due["r"][report]) if len(at) else None


def remember(node: PlanNode, state: State, key: str, changes: Frame, pool: TermLookup) -> None:
    """Keeps these changes in place of the previous ones, and their texts, which outlive the input
    rows.
    """
    state.replace(key, [])
    rows = changes.with_(**{col.BEGIN: changes["r"], col.END: np.full(changes.n, MAX)})
    report_buffer.remember(state, key, rows, _texts(node, changes, pool))


def _next_reports(
    step: s.Snapshot, node: PlanNode, rows: Frame, due: Frame, calendar: Calendar
) -> Longs:
    """The report at which each change shows: the first at or after it; MAX where not yet due."""
    op, r = rows["op"], rows["r"]
    if not step.nonempty:
        at = tick(node, step, op, r) if step.clock else r
        return np.where(at <= calendar.high[op], at, MAX)
    first = places(due, op, r)
    there = first < due.n
    there[there] = due["op"][first[there]] == op[there]
    at = np.full(rows.n, MAX, np.int64)
    at[there] = due["r"][first[there]]
    return at


def _texts(node: PlanNode, rows: Frame, pool: TermLookup) -> Terms:
    """The texts that rows show."""
    slots = [i for i, facets in enumerate(node.layout.slots) if Facet.TEXT in facets]
    if not slots or not rows.n:
        return Terms.empty()
    x, y = (np.concatenate([rows[f"{half}{i}"] for i in slots]) for half in "xy")
    return pool.pick(x, y)
