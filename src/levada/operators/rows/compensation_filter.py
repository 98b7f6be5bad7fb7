"""Selects the rows of a relaxed join that belong to each query (STREAMREUSE, compensation; CQELS
Cloud, the router).

Terms are compared, as patterns compare them: by identity; numbers as the lifted conditions compare
them. A row belongs to a member if it has the member's terms, its conditions are true, and it counts
at some instant in the member's windows. ``pick`` tests rows that have been assigned to a member.
``route`` finds the members of a row by an index of all wants, and evaluates conditions only where
the index cannot decide, so its cost follows from its output and not from the number of members.

``by_window``: for a join whose rows have times of each pattern, the rows of a query that reads
these in one window.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np

from levada.core import column_names as col
from levada.core.array_types import Bools, Longs
from levada.core.event_time import MIN
from levada.core.frame import Column, Frame
from levada.kernels.terms.term_lookup import TermLookup
from levada.operators.expressions import truth
from levada.operators.operator_context import Inputs, OperatorContext
from levada.operators.rows import list_keys
from levada.operators.rows.cardinality_counters import SharedJoinCounters
from levada.operators.rows.filter_extend import keep_rows, scope
from levada.operators.rows.predicate_index import (
    IndexedMembers,
    PredicateIndexReader,
    entries,
    identities,
    true_of,
)
from levada.operators.rows.range_keys import RangeKey
from levada.operators.rows.route_rows import project_for_consumer, without_fan
from levada.operators.windowing import report_count_bound
from levada.operators.windowing.window_intervals import exact_interval
from levada.plan.execution import steps as s
from levada.plan.execution.plan import Consumer, PlanNode
from levada.plan.execution.row_layout import Layout


def pick(node: PlanNode[s.Pick], inputs: Inputs, env: OperatorContext) -> Frame | None:
    """The rows that their member wants."""
    step, (frame,) = node.step, inputs
    if frame is None:
        return None
    known = node.compute_once(identities, env.pool.seed)
    keep = np.ones(frame.n, np.bool_)
    for key in step.keys:
        x, y = frame[col.x(key.slot)], frame[col.y(key.slot)]
        one = np.zeros(frame.n, np.bool_)
        for i in key.params:
            own_x, own_y = known[i]
            one |= (x == own_x[frame["op"]]) & (y == own_y[frame["op"]])
        keep &= one
    rows = frame.where(keep)
    rows = rows.where(_true(node, rows, env.pool))
    return keep_rows(rows.where(_counts_in_windows(node, rows)), None, step.kept, node.layout)


def route(
    node: PlanNode[s.Pick],
    consumer: Consumer,
    out: Frame,
    source: Layout,
    pool: TermLookup,
    *,
    mixed: bool,
    met: SharedJoinCounters | None = None,
) -> Frame:
    """Returns the rows of all members of a pick, out of its producers' rows, once each. ``mixed``:
    the picks of the joins have different windows. ``met``: the counters to update.
    """
    rows = project_for_consumer(out, without_fan(consumer), source)
    row, member = match_picks(node, rows, pool)
    pick_rows = rows.take(row).with_(op=member.astype(np.int32))
    if pick_rows.n and mixed:
        keep = _counts_in_windows(node, pick_rows)
        pick_rows, row = pick_rows.where(keep), row[keep]
    if met is not None:
        met.pick(node.inputs[0], rows, row)
    return keep_rows(pick_rows, None, node.step.kept, node.layout)


def by_window(node: PlanNode[s.ByWindow], inputs: Inputs, env: OperatorContext) -> Frame | None:
    """The rows with the times of each window put together, as a join puts them together: the least
    and the greatest, and the greatest earlier one.
    """
    (frame,) = inputs
    if frame is None:
        return None
    columns = {n: c for n, c in frame.columns.items() if not col.is_time(n)}
    spans = node.input_layouts[0].windows
    for j, places in enumerate(node.step.places):
        latest = [col.greatest(at) if spans[at].hi else col.least(at) for at in places]
        earlier = [col.earlier(at) for at in places if spans[at].prev]
        columns[col.least(j)] = _reduce_times(np.minimum, frame, [col.least(at) for at in places])
        if node.layout.windows[j].hi:
            columns[col.greatest(j)] = _reduce_times(np.maximum, frame, latest)
        if earlier:
            columns[col.earlier(j)] = _reduce_times(np.maximum, frame, earlier)
    return Frame(columns, frame.n)


def _reduce_times(how: np.ufunc, frame: Frame, names: Sequence[str]) -> Column:
    return reduce(how, [frame[name] for name in names])


def match_picks(node: PlanNode[s.Pick], rows: Frame, pool: TermLookup) -> tuple[Longs, Longs]:
    """(row, member) of all picks that want rows of their input, whenever they count."""
    row, member, certain = node.compute_once(finder_of, pool.seed).find_owners(rows, pool)
    condition, left = node.step.condition, _is_undecided(node, certain)
    if condition is not None and left.any():
        keep = ~left
        keep[left] = true_of(node, condition, rows, row[left], member[left], pool=pool)
        row, member = row[keep], member[keep]
    return row, member


def show_hidden_rows(node: PlanNode, rows: Frame) -> Frame:
    """Rows without the earlier comings that are before the start of some query that reads them."""
    newest = node.newest[rows["op"]]
    if not rows.n or int(newest.max()) <= MIN:
        return rows
    names = [col.earlier(j) for j, span in enumerate(node.layout.windows) if span.prev]
    return rows.with_(**{n: np.where(rows[n] < newest, MIN, rows[n]) for n in names})


def _is_undecided(node: PlanNode[s.Pick], certain: Bools) -> Bools:
    """The pairs of which keys and one interval, or one list, do not say all."""
    step = node.step
    if step.rest:
        is_decided = len(step.rest) == 1 and not step.tests and node.compute_once(_number) < 0
        return ~certain if is_decided else np.ones(len(certain), np.bool_)
    if not step.tests:
        return np.zeros(len(certain), np.bool_)
    several = any(test.range for test in step.tests)
    return np.ones(len(certain), np.bool_) if several else ~certain


def _true(node: PlanNode[s.Pick], rows: Frame, pool: TermLookup) -> Bools:
    """Flags the rows for which the conditions of their members are true."""
    condition = node.step.condition
    if condition is None or not rows.n:
        return np.ones(rows.n, np.bool_)
    return truth(condition, scope(node, rows, pool))


def _counts_in_windows(node: PlanNode[s.Pick], rows: Frame) -> Bools:
    """Flags the rows that count at some instant in their members' windows. In windows by number the
    reader decides, because it knows the query's start.
    """
    if report_count_bound.has_numbers(node.windows):
        begin, stop = report_count_bound.reach(rows, node.windows)
        return np.less(begin, stop)
    start, end = exact_interval(show_hidden_rows(node, rows), node.layout, node.windows)
    return np.less(start, end)


def finder_of(node: PlanNode[s.Pick], seed: int) -> PredicateIndexReader:
    """Returns the index of members by their keys and a range or a list."""
    members = np.flatnonzero(node.alive).astype(np.int32)
    below = node.members.inputs[0][members]
    indexed = IndexedMembers(members, below, members.astype(np.int64))
    step = node.step
    number = node.compute_once(_number)
    axes = {test.range: RangeKey(test.slot, test.order) for test in step.tests}
    axis = axes.get(0) if number >= 0 else list_keys.axis_of(node, number)
    wants = entries(node, indexed, range(len(step.keys)), number, seed)
    return PredicateIndexReader.build(wants, [key.slot for key in step.keys], axis)


def _number(node: PlanNode[s.Pick]) -> int:
    """Returns the number of the range or list that the index uses; 0: the first range, if there is
    one.
    """
    step = node.step
    return list_keys.list_of(node, range(len(step.rest))) or 0
