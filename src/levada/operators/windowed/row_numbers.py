"""The rows of a stream with their numbers: the common input of count windows of any length
(``windowing/report_count_bound``; CQELS Cloud, C33).

An unshared count window (``count_window``) computes when a row leaves. A shared one numbers each
row once, and each reader derives from the number how long the row is there. Rows are ordered by
(ts, canonical text). Over triples, a set, equal ones of one time are one row, and each row has the
number and time of the one before it, if that is not out of the longest window yet: an occurrence
may continue in a long window where it begins anew in a short one. Over tuples, a bag, rows are
independent of each other.

The state is the number of rows so far, and over triples the latest number of each. Cost: by the new
rows.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from levada.core import column_names as col
from levada.core.array_types import Longs
from levada.core.event_time import MIN
from levada.core.frame import Frame
from levada.core.row_ranges import ends_segment, starts_segment
from levada.kernels.keyed.hash_groups import group
from levada.kernels.keyed.radix_sort import in_order
from levada.operators.operator_context import Inputs, OperatorContext
from levada.operators.rows.route_rows import key_of
from levada.operators.state import counters
from levada.operators.state.numbered_rows import count, count_arrived
from levada.operators.state.state_parts import State
from levada.operators.windowed.count_window import Sequences, in_sequences, occurrences
from levada.operators.windowing import report_count_bound
from levada.plan.execution import steps as s
from levada.plan.execution.plan import PlanNode


def number_rows(node: PlanNode[s.Numbered], inputs: Inputs, env: OperatorContext) -> Frame | None:
    """New rows of a stream, each with its number."""
    step, state, (frame,) = node.step, env.state, inputs
    if frame is None:
        return None
    if not node.alive.all():
        frame = frame.where(node.alive[frame["op"]])
    key = f"{node.id}.last"
    fresh = in_sequences(node, occurrences(node, frame, step.bag), env.pool, ())
    before = count_arrived(state, f"{key}.count", fresh.k, fresh.h)
    place = fresh.rows[col.PLACE][fresh.starts]
    count(state, f"{key}.count", fresh.k, fresh.h, fresh.size, place=place)
    rows = _with_numbers(fresh, before)
    if not step.bag:
        rows = _after_equal(node, state, f"{key}.latest", rows)
    begin, end = report_count_bound.reach(rows, node.windows)
    return rows.where(begin < end)


def _with_numbers(fresh: Sequences, before: Longs) -> Frame:
    """Adds the rows' own numbers and those of the last rows of their instants."""
    rows, of = fresh.rows, fresh.of.astype(np.int64)
    q = (before - fresh.starts)[of] + np.arange(1, rows.n + 1)
    last = np.flatnonzero(ends_segment(of, rows[col.least(0)]))
    of_instant = np.cumsum(starts_segment(of, rows[col.least(0)])) - 1
    times = {col.greatest(0): rows[col.least(0)], col.least(report_count_bound.LAST): q}
    return rows.with_(**times, **{col.greatest(report_count_bound.LAST): q[last][of_instant]})


def _after_equal(node: PlanNode, state: State, key: str, rows: Frame) -> Frame:
    """The rows with the time and number of the earlier coming of each, if any; the latest ones are
    remembered.
    """
    k, h = key_of(rows, range(len(node.input_layouts[0].slots)))
    codes, first = group(k, h)
    order = in_order(codes)  # rows are in the order of their numbers
    new = order[starts_segment(codes[order])]  # one for each triple, in the order of the codes
    matches = counters.find(state, key, k[first], h[first])
    columns = {}
    for j, none in ((0, MIN), (report_count_bound.LAST, 0)):
        values = rows[col.least(j)]
        before = np.full(rows.n, none, np.int64)
        before[order[1:]] = values[order[:-1]]
        before[new] = none
        if matches is not None:
            places, stored = matches
            np.maximum.at(before, new[places], stored[col.least(j)])
        columns[col.earlier(j)] = before
    top = np.zeros(len(node.members), np.int64)
    np.maximum.at(top, rows["op"], rows[col.greatest(report_count_bound.LAST)])
    newest = partial(_newest, node, top)
    plain = rows.select(("op", col.PLACE, col.least(0), col.least(report_count_bound.LAST)))
    counters.insert(state, key, newest(plain.with_(**{col.KEY: k, col.CHECK: h})), newest)
    return rows.with_(**columns)


def _newest(node: PlanNode, top: Longs, many: Frame) -> Frame:
    """Returns the latest row of each triple, if the longest window still contains it: parts are
    merged from the oldest on.
    """
    end = (
        many[col.least(report_count_bound.LAST)]
        + node.windows.range[report_count_bound.LAST][many["op"]]
    )
    many = many.where((end > top[many["op"]]) & node.alive[many["op"]])
    codes, first = group(many[col.KEY], many[col.CHECK])
    at = np.empty(len(first), np.int64)
    at[codes] = np.arange(many.n)
    return many.take(at)


def instants(node: PlanNode[s.Instants], inputs: Inputs, env: OperatorContext) -> Frame | None:
    """Returns the instants of numbers: one numbered row for each instant."""
    (frame,) = inputs
    if frame is None:
        return None
    last = frame[col.greatest(report_count_bound.LAST)]
    at = np.flatnonzero(ends_segment(frame["op"], last))
    names = [n for n in node.layout.columns() if n != "op"]
    return frame.take(at).select(("op", col.PLACE, *names))
