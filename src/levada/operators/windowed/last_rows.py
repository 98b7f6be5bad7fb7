"""Last rows: each new row with the last n of its key, itself among them, as of its instant.

This is the join of the windows [Now] and [Partition By key Rows n] of one stream, without either
window: a row of [Now] counts at its own instant alone, and there the count window contains the last
n rows up to the end of that instant. So nothing is ever taken back, and rows have no weights. The
sequences are those of count windows (``count_window``): by (ts, canonical text).

An instant is never in two epochs, so of the previous rows only the last n - 1 of a key can be met.
They are the state, a row under its key (``state/counters``), until parts are merged. Cost: new
rows, and the output pairs.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from levada.core import column_names as col
from levada.core.array_types import Bools, Ints, Longs
from levada.core.frame import Column, Frame, concat
from levada.core.frozen import frozen
from levada.core.row_ranges import ends_segment, place_in_segment, ranges, starts_segment
from levada.core.size_thresholds import register
from levada.kernels.keyed.hash_groups import group
from levada.kernels.keyed.radix_sort import in_order
from levada.operators.operator_context import Inputs, OperatorContext
from levada.operators.row_limit import most_rows, too_many
from levada.operators.rows.route_rows import gather
from levada.operators.state import counters
from levada.operators.state.state_parts import State
from levada.operators.windowed.count_window import Sequences, in_sequences
from levada.plan.execution import steps as s
from levada.plan.execution.plan import PlanNode
from levada.plan.execution.row_layout import slot_columns

MOST_PAIRS = register(f"{__name__}.MOST_PAIRS", 1_000_000)
"""The most pairs in one part of the result; a single row may have more."""


@frozen
class _SequenceRows:
    """The rows of the sequences that continue, in order: previous rows and the new ones, which are
    at the places ``new``; the begin of each row's sequence (``first``), and the last row of its
    instant (``last``).
    """

    rows: Frame
    new: Longs
    first: Longs
    last: Longs


def last_rows(node: PlanNode[s.Recent], inputs: Inputs, env: OperatorContext) -> Frame | None:
    """The pairs that new rows make."""
    outputs = list(recent_in_pieces(node, inputs, env))
    return concat(outputs) if outputs else None


def recent_in_pieces(
    node: PlanNode[s.Recent], inputs: Inputs, env: OperatorContext
) -> Iterator[Frame]:
    """The same, some ``MOST_PAIRS`` at a time. Raises ``ExcessError``."""
    (frame,) = inputs
    if frame is None:
        return
    fresh = in_sequences(node, frame, env.pool, node.step.keys)
    count = node.compute_once(_counts, node.step.window)[fresh.rows["op"]]
    known = _known_rows(node, env.state, fresh)
    low = np.maximum(known.first[known.new], known.last[known.new] - count + 1)
    many = known.last[known.new] - low + 1
    _remember(node, env.state, fresh)
    if int(many.sum()) > most_rows(node, env.limits):
        raise too_many(node, np.repeat(fresh.rows["op"], many), env.limits)
    before = np.cumsum(many)
    begin = 0
    while begin < len(many):
        least = before[begin] - many[begin] + MOST_PAIRS
        end = max(begin + 1, int(np.searchsorted(before, least, side="right")))
        part = slice(begin, end)
        i = np.repeat(np.arange(begin, end), many[part])
        yield _pairs(node, fresh.rows, i, known.rows, ranges(low[part], many[part]))
        begin = end


def _counts(node: PlanNode[s.Recent], window: int) -> Longs:
    """Returns the number of rows in each member's window."""
    return np.array([m.windows[window].count for m in node.members], np.int64)


def _known_rows(node: PlanNode[s.Recent], state: State, fresh: Sequences) -> _SequenceRows:
    """Returns the new rows behind the previous ones."""
    rows, of = _past_rows(node, fresh.rows), fresh.of
    at = np.arange(rows.n)
    matches = counters.find(state, f"{node.id}.recent", fresh.k, fresh.h)
    if matches is not None:
        columns, n = matches[1].select(rows.columns), len(matches[0])
        rows, of = concat([columns, rows]), np.concatenate([matches[0].astype(np.int32), of])
        order = in_order(rows[col.least(0)], of)
        rows, of, at = rows.take(order), of[order], np.flatnonzero(order >= n)
    here = np.arange(rows.n)
    first = here - place_in_segment(starts_segment(of))
    ends = ends_segment(of, rows[col.least(0)])
    last = np.flatnonzero(ends)[np.cumsum(ends) - ends]
    return _SequenceRows(rows, at, first, last)


def _past_rows(node: PlanNode[s.Recent], rows: Frame) -> Frame:
    """Returns the shown columns of past rows, by the slots of the input."""
    slots = node.input_layouts[0].slots
    shown = {at for past, at in node.step.out if past}
    names = [n for i in sorted(shown) for n in slot_columns(i, slots[i]) if n in rows]
    return rows.select(("op", col.PLACE, *names, col.least(0)))


def _pairs(node: PlanNode[s.Recent], new: Frame, i: Longs, rows: Frame, j: Longs) -> Frame:
    """Pairs row i of the new ones with row j of the known ones."""
    step = node.step
    columns: dict[str, Column] = {name: new[name].take(i) for name in ("op", col.PLACE)}
    for out, ((past, at), facets) in enumerate(zip(step.out, node.layout.slots, strict=True)):
        columns.update(
            gather(rows, j, at, out, facets) if past else gather(new, i, at, out, facets)
        )
    columns[col.least(step.window)] = rows[col.least(0)].take(j)
    columns[col.least(1 - step.window)] = new[col.least(0)].take(i)
    return Frame(columns, len(i))


def _remember(node: PlanNode[s.Recent], state: State, fresh: Sequences) -> None:
    """Keeps the new rows that later ones can meet."""
    counts, alive = node.compute_once(_counts, node.step.window), node.alive

    def latest(rows: Frame) -> Frame:
        """The last rows of each key; pieces are put together from the oldest on."""
        rows = rows.where(alive[rows["op"]])
        codes, _ = group(rows[col.KEY], rows[col.CHECK])
        order = in_order(rows[col.least(0)], codes)
        return rows.take(order[_among_last(codes[order], counts[rows["op"][order]] - 1)])

    some = np.flatnonzero(_among_last(fresh.of, counts[fresh.rows["op"]] - 1))
    of = fresh.of[some]
    rows = _past_rows(node, fresh.rows).take(some)
    keyed = rows.with_(**{col.KEY: fresh.k[of], col.CHECK: fresh.h[of]})
    counters.insert(state, f"{node.id}.recent", keyed, latest)


def _among_last(of: Ints, many: Longs) -> Bools:
    """Flags the rows, by sequence and in order, that are among the last ones of their sequence."""
    here = np.arange(len(of))
    ends = ends_segment(of)
    last = np.flatnonzero(ends)[np.cumsum(ends) - ends] if len(of) else here
    among: Bools = last - here < many
    return among
