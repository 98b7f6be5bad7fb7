"""The incremental windowed join: new rows of each side meet the runs of the other, and each other,
exactly once.

    out = new_left x (old_right + new_right)  +  old_left x new_right

or with the sides swapped: if one side's rows take others back, its old and new rows are merged
first (``state/join_state_with_retractions``), so that new rows of the other side meet only the
rows that exist then. Pairs have equal keys (the member is part of the key) and instants in common;
times are joined by min and max, so a row of the result counts exactly while both its parts do. Raw
sides are made sets on the way in. (Parallel windowed joins, W3, W20; CQELS Cloud, Algorithm 1,
batch version C24. Runs in place of block lists: ``state/join_state``. Heavy keys:
``split_heavy_keys``.)

Cost: by the new rows and the result, a probe per run; never by the window.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import chain

import numpy as np
import numpy.typing as npt

from levada.core import column_names as col
from levada.core.event_time import MAX, Times, WindowKind
from levada.core.frame import Column, Frame, concat
from levada.core.frozen import frozen
from levada.core.size_thresholds import register
from levada.kernels.keyed.hash_probe import pairs_of_some
from levada.operators.operator_context import Inputs, OperatorContext
from levada.operators.rows import route_rows as r
from levada.operators.rows import shared_input_filter
from levada.operators.rows.compensation_filter import show_hidden_rows
from levada.operators.rows.join_pairs import MOST_PAIRS, Pairs, Rows, batch_pairs
from levada.operators.state import join_state
from levada.operators.state import join_state_with_retractions as settled
from levada.operators.state.join_state import LookupKeys
from levada.operators.state.state_parts import State
from levada.operators.windowed.deduplicate import as_set, pick
from levada.operators.windowed.split_heavy_keys import route_own_rows
from levada.operators.windowing import report_count_bound
from levada.operators.windowing.window_intervals import (
    by_weight,
    exact_interval,
    max_run_span,
    outer,
)
from levada.plan.execution import steps as s
from levada.plan.execution.joins import is_arranged
from levada.plan.execution.plan import PlanNode
from levada.plan.execution.row_layout import Layout, slot_columns
from levada.plan.execution.window_table import WindowTable

# probe rows at a time: what keeps a run's directory and the output in cache
PIECE = register(f"{__name__}.PIECE", 32_768)


@frozen
class Side:
    """New rows of one side as a run, and the previous runs; ``settled``: both together, where rows
    take others back.
    """

    new: join_state.Run
    old: list[join_state.Run]
    layout: Layout
    # of windows whose rows end by a row of weight -1, which has the instant of that
    ends: tuple[str, ...]
    settled: settled.RetractableSide | None = None

    def runs_to_probe(self, state: State) -> list[join_state.Run]:
        """Returns the runs that new rows of the other side probe: previous and new rows."""
        if self.settled is None:
            return [*self.old, self.new]
        return self.settled.runs_to_probe(state)


def join(node: PlanNode[s.Join], inputs: Inputs, env: OperatorContext) -> Frame | None:
    """The new result rows. Rows that are dead by the horizons of the streams are dropped."""
    outputs = list(join_in_pieces(node, inputs, env))
    return concat(outputs) if outputs else None


def join_in_pieces(node: PlanNode[s.Join], inputs: Inputs, env: OperatorContext) -> Iterator[Frame]:
    """The new result rows, some ``MOST_PAIRS`` at a time. Raises ``ExcessError``."""
    step, state, horizons = node.step, env.state, horizons_of(node, inputs, env)
    arrived = [_arrived_rows(node, i, frame) for i, frame in enumerate(inputs)]
    left, right = (_side(node, step, env, i, arrived, horizons=horizons) for i in (0, 1))
    turned = left.settled is not None and right.settled is None
    one, other = (right, left) if turned else (left, right)
    both = (
        (route_own_rows(node, one.new, env), other.runs_to_probe(state), turned),
        (route_own_rows(node, other.new, env), one.old, not turned),
    )

    def find_pairs() -> Iterator[Pairs]:
        return chain.from_iterable(probe_runs(step, new, old, turned=t) for new, old, t in both)

    for pairs in batch_pairs(node, find_pairs, env):
        if (joined := pair_rows(node, step, pairs, node.input_layouts)) is not None:
            yield joined
    for i, side in enumerate((left, right)):
        key = f"{node.id}.{i}"
        if side.settled is not None:
            settled.keep(state, key, side.settled, horizons.next)
        # static rows all come in one epoch: none is met again
        elif side.new.rows.n and node.layout.windows:
            join_state.insert(
                state,
                key,
                side.new,
                longest(node),
                horizon=horizons.next,
                ends=side.ends,
                alive=node.alive,
            )


def _arrived_rows(node: PlanNode[s.Join], i: int, frame: Frame | None) -> tuple[Frame, r.Key]:
    """The new rows of one input, with their keys."""
    if frame is None:
        frame = r.empty(node.input_layouts[i])
    if not node.alive.all():  # rows that waited for a watermark outlive their member
        frame = frame.where(node.alive[frame["op"]])
    return frame, r.key_of(frame, node.step.left if i == 0 else node.step.right)


def _side(
    node: PlanNode[s.Join],
    step: s.Join,
    env: OperatorContext,
    i: int,
    arrived: Sequence[tuple[Frame, r.Key]],
    *,
    horizons: join_state.Horizons,
) -> Side:
    """One input: its occurrences if it is raw, its runs as far as they are met."""
    (frame, key), layout, raw = arrived[i], node.input_layouts[i], step.raw[i]
    meet = arrived if raw else [arrived[1 - i]]
    lookup_keys = LookupKeys([(key[0], rows) for rows, key in meet])
    old = join_state.live_runs(env.state, f"{node.id}.{i}", horizons.now, lookup_keys)
    whole = None
    if raw:
        whole_key = r.key_of(frame, range(len(layout.slots)))
        frame, new_places = as_set(frame, key, whole_key, old)
        key, whole = pick(key, new_places), pick(whole_key, new_places)[1]
    columns = tuple([(left, right)[i] for left, right in step.windows])
    table = node.compute_once(project, columns, len(layout.windows))
    start, end = reach(frame, layout, table)
    if step.relaxed and env.shares is not None:
        end = shared_input_filter.expiry_times(
            node, i, frame, end, shares=env.shares, pool=env.pool
        )
    frame = shown_columns(frame, node, step, i)
    rows = join_state.with_run_columns(frame, key, start, end, whole)
    ends = node.compute_once(_ends_of, columns, len(layout.windows))
    both = None
    if rows.n and col.UNTIL in rows and longest(node) >= MAX:
        at = f"{node.id}.{i}"
        both = settled.update_side(env.state, at, rows, horizons.now, ends=ends, alive=node.alive)
    return Side(join_state.build_run(rows), old, layout, ends, both)


def reach(frame: Frame, layout: Layout, table: WindowTable) -> tuple[Times, Times]:
    """A superset of the instants, or the numbers, at which each row counts."""
    by_number = report_count_bound.has_numbers(table)
    return report_count_bound.reach(frame, table) if by_number else outer(frame, layout, table)


def horizons_of(
    node: PlanNode[s.Join], inputs: Inputs, env: OperatorContext
) -> join_state.Horizons:
    """Returns the instant before which no new row counts; for rows with numbers the number, as far
    as the rows that have arrived here show it.
    """
    if not report_count_bound.has_numbers(node.windows):
        return env.horizons(node)
    sides = [i for i, layout in enumerate(node.input_layouts) if layout.windows]
    now = max((p.high for i in sides for p in env.state.pieces(f"{node.id}.{i}")), default=0)
    new = [inputs[i] for i in sides]
    tops = [
        int(f[col.greatest(report_count_bound.LAST)].max(initial=0)) for f in new if f is not None
    ]
    return join_state.Horizons(now + 1, max([now, *tops]) + 1)


def longest(node: PlanNode[s.Join]) -> int:
    """A quarter of the longest window."""
    return node.compute_once(_quarter)


def _quarter(node: PlanNode[s.Join]) -> int:
    if report_count_bound.has_numbers(node.windows):
        return report_count_bound.max_run_span(node.windows)
    return max_run_span(node.windows.pick(range(len(node.step.windows))))


def shown_columns(frame: Frame, node: PlanNode, step: s.Join, i: int) -> Frame:
    """Returns the columns of a side that the result uses: shown slots, slots that may have to be
    filled, times; keys are in the # columns.
    """
    shown = {f"{n[0]}{at}" for out, (side, at) in enumerate(step.out) if side == i
             for n in slot_columns(out, node.layout.slots[out])}  # fmt: skip
    filled = {pair[i] for pair in step.fills}
    columns = {
        n: c
        for n, c in frame.columns.items()
        if not col.is_slot(n) or n in shown or int(n[1:]) in filled
    }
    return Frame(columns, frame.n)


def project(node: PlanNode, columns: tuple[int, ...], width: int) -> WindowTable:
    """The node's window table in the order of one input's windows."""
    return node.windows.pick([columns.index(w) for w in range(width)])


def _ends_of(node: PlanNode, columns: tuple[int, ...], width: int) -> tuple[str, ...]:
    return by_weight(node.compute_once(project, columns, width))


def probe_runs(
    step: s.Join, new: join_state.Run, old: Sequence[join_state.Run], *, turned: bool
) -> Iterator[Pairs]:
    """New rows of one side against runs of the other; ``turned``: the new are the right ones."""
    for run in old:
        # then a large run is read from front to back, not at random
        by_bucket = run.rows.n > new.rows.n
        for mine, theirs in _probe(new, run, by_bucket):
            pairs = (
                Pairs(run.rows, theirs, new.rows, mine)
                if turned
                else Pairs(new.rows, mine, run.rows, theirs)
            )
            yield _agreeing_pairs(step, pairs)


def _probe(
    new: join_state.Run, run: join_state.Run, by_bucket: bool
) -> Iterator[tuple[Rows, Rows]]:
    """Row numbers of pairs of a new run and another, a piece of probes at a time."""
    k, h, s_, e, rows = new.as_probes(run.range, by_bucket)
    at = 0
    while at < len(k):
        cut = slice(at, at + PIECE)
        probes, places, done = pairs_of_some(
            k[cut], h[cut], s_[cut], e[cut], run.stored, MOST_PAIRS
        )
        if len(probes):
            mine = probes.astype(np.intp) + at
            yield run.keep_counting_pairs(
                mine if rows is None else rows[mine].astype(np.intp), run.rows_at(places)
            )
        at += done


def _agreeing_pairs(step: s.Join, pairs: Pairs) -> Pairs:
    if not step.fills:
        return pairs
    keep = compatible(pairs.a, pairs.i, pairs.b, pairs.j, step.fills)
    return Pairs(pairs.a, pairs.i[keep], pairs.b, pairs.j[keep])


@frozen
class _JoinedRows:
    """Pairs of several runs as rows of one result: for each side the frames, the rows of these, and
    their places in the result; ``n``: the number of pairs.
    """

    sides: tuple[list[tuple[Frame, Rows, slice]], list[tuple[Frame, Rows, slice]]]
    n: int

    @staticmethod
    def from_pairs(pairs: Sequence[Pairs]) -> _JoinedRows:
        """Concatenates all pairs."""
        a, b, at = list[tuple[Frame, Rows, slice]](), list[tuple[Frame, Rows, slice]](), 0
        for some in pairs:
            cut = slice(at, at + len(some.i))
            a.append((some.a, some.i, cut))
            b.append((some.b, some.j, cut))
            at = cut.stop
        return _JoinedRows((a, b), at)

    def has(self, side: int, name: str) -> bool:
        """Whether a side has a column; all of its frames have, or none."""
        return name in self.sides[side][0][0].columns


def pair_rows(
    node: PlanNode[s.Join],
    step: s.Join,
    pairs: Sequence[Pairs],
    layouts: Sequence[Layout],
    *,
    keyed: bool = False,
) -> Frame | None:
    """Returns the result rows of the pairs that count at some instant. ``layouts``: of both sides;
    ``keyed``: with their key.
    """
    if not pairs or not (joined := _JoinedRows.from_pairs(pairs)).n:
        return None
    layout, filled = node.layout, dict(step.fills)
    of = int(is_arranged(step, 0))  # the reader of an arrangement decides the member of rows
    columns: dict[str, Column] = {n: _gather(joined, of, n) for n in ("op", col.PLACE)}
    columns |= {name: _of_new(pairs, name) for name in (col.KEY, col.CHECK) if keyed}
    for out, (side, at) in enumerate(step.out):
        for name in slot_columns(out, layout.slots[out]):
            columns[name] = _gather(joined, side, f"{name[0]}{at}")
        if side == 0 and at in filled:
            _fill(columns, slot_columns(out, layout.slots[out]), joined, at, filled[at])
    for w, places in enumerate(step.windows):
        columns.update(_times(layout, w, joined, layouts, places))
    if layout.weighted:
        weight = _weight(joined, 0) * _weight(joined, 1)
        columns["w"] = -weight if step.negative else weight
        columns.update(_until(joined))
    return _counting_rows(node, Frame(columns, joined.n))


def _gather(joined: _JoinedRows, side: int, name: str) -> Column:
    """A column of one side at all pairs; written once, whatever the number of runs. A value facet
    that a typed column leaves out follows from the others.
    """
    out: Column | None = None
    for frame, rows, cut in joined.sides[side]:
        there = name in frame.columns
        column = frame.columns[name] if there else r.value(frame, name[0], int(name[1:]))
        if out is None:
            if len(rows) == joined.n:
                return column.take(rows)
            out = np.empty(joined.n, column.dtype)
        column.take(rows, out=out[cut], mode="clip")  # the other mode makes a copy
    assert out is not None, "there are pairs"
    return out


def _of_new(pairs: Sequence[Pairs], name: str) -> Column:
    """A # column of that row of each pair which has it: a new one, by which the other was found."""
    parts = [p.a[name].take(p.i) if name in p.a else p.b[name].take(p.j) for p in pairs if len(p.i)]
    return np.concatenate(parts)


def _counting_rows(node: PlanNode[s.Join], joined: Frame) -> Frame:
    """Outer instants are wider than exact ones for windows on close or in the past, and for
    repeated triples.
    """
    if report_count_bound.has_numbers(node.windows):
        begin, stop = report_count_bound.exact_interval(
            joined, node.layout, node.windows, node.newest
        )
        return joined.where(begin < stop)
    on_event = (node.windows.kind >= 2).all() and not node.windows.to.any()
    if on_event and not any(w.prev for w in node.layout.windows):
        return joined
    rows, layout = show_hidden_rows(node, joined), node.layout
    if node.step.relaxed and _may_outlast_picks(node):
        # an earlier coming that hides a row as long as the longest window may hide it from nobody
        spans = [(rows[col.earlier(j)], rows[col.least(j)])
                for j, span in enumerate(layout.windows) if span.prev]  # fmt: skip
        keep = np.all([np.ones(rows.n, np.bool_), *(a < b for a, b in spans)], axis=0)
        bare = tuple([span._replace(prev=False) for span in layout.windows])
        rows, joined, layout = rows.where(keep), joined.where(keep), layout._replace(windows=bare)
    start, end = exact_interval(rows, layout, node.windows)
    return joined.where(start < end)


def _may_outlast_picks(node: PlanNode[s.Join]) -> bool:
    """Whether the windows of a relaxed join can hide rows that no window of its picks hides:
    several windows together do, and so does a window that nothing leaves.
    """
    return len(node.layout.windows) > 1 or bool((node.windows.kind == WindowKind.ALL).any())


def _weight(joined: _JoinedRows, side: int) -> npt.NDArray[np.int8]:
    """The weights of one side."""
    return _gather(joined, side, "w") if joined.has(side, "w") else np.ones(joined.n, np.int8)


def _until(joined: _JoinedRows) -> dict[str, Column]:
    """The ends of pairs, if there are any: the earlier one of both rows' own."""
    sides = [i for i in (0, 1) if joined.has(i, col.UNTIL)]
    ends = [_gather(joined, i, col.UNTIL) for i in sides]
    return {col.UNTIL: _reduce(np.minimum, ends)} if ends else {}


def compatible(
    a: Frame, i: Rows, b: Frame, j: Rows, fills: tuple[tuple[int, int], ...]
) -> npt.NDArray[np.bool_]:
    """Flags the pairs that agree on the shared slots that may be unbound."""
    keep = np.ones(len(i), bool)
    for left, right in fills:
        ax, ay = a[col.x(left)][i], a[col.y(left)][i]
        bx, by = b[col.x(right)][j], b[col.y(right)][j]
        keep &= ((ax == bx) & (ay == by)) | ((ax == 0) & (ay == 0)) | ((bx == 0) & (by == 0))
    return keep


def _fill(
    columns: dict[str, Column], names: Sequence[str], joined: _JoinedRows, at: int, other: int
) -> None:
    """Takes the right side's value where the left's is unbound."""
    missing = (_gather(joined, 0, col.x(at)) == 0) & (_gather(joined, 0, col.y(at)) == 0)
    for name in names:
        columns[name] = np.where(missing, _gather(joined, 1, f"{name[0]}{other}"), columns[name])


def _times(
    layout: Layout,
    w: int,
    joined: _JoinedRows,
    layouts: Sequence[Layout],
    places: tuple[int, int],
) -> dict[str, Column]:
    """min of lo, max of hi, max of prev over the sides that carry the window."""
    sides = [(i, layouts[i].windows[at], at) for i, at in enumerate(places) if at >= 0]
    columns: dict[str, Column] = {
        col.least(w): _reduce(np.minimum, [_gather(joined, i, col.least(at)) for i, _, at in sides])
    }
    if layout.windows[w].hi:
        names = [(i, col.greatest(at) if span.hi else col.least(at)) for i, span, at in sides]
        columns[col.greatest(w)] = _reduce(
            np.maximum, [_gather(joined, i, name) for i, name in names]
        )
    if layout.windows[w].prev:
        known = [(i, col.earlier(at)) for i, _, at in sides if joined.has(i, col.earlier(at))]
        prevs = [_gather(joined, i, name) for i, name in known]
        columns[col.earlier(w)] = _reduce(np.maximum, prevs)
    return columns


def _reduce(both: np.ufunc, columns: Sequence[Column]) -> Column:
    return columns[0] if len(columns) == 1 else both(*columns)
