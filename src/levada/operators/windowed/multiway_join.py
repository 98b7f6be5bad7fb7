"""The incremental windowed join of many inputs by one key: new rows of each input meet the runs of
all others, without intermediate state (CQELS Cloud, C24 to C29).

    out = sum over i:  old_1 x .. x old_(i-1)  x  new_i  x  (old + new)_(i+1) x .. x (old + new)_n

so each combination is found once, by the first of its rows that is new. Keys, times and sets are as
in ``windowed_join``: a combination counts while all its rows do. As intervals are on a line, it is
enough that the combination so far, narrowed to the instants that its rows have in common, meets the
next row.

The order is that of the epoch: the input with the fewest matches is first (``multiway_inputs``). A
combination is a row number for each input until all are joined.

Cost: by the new rows, and by the intermediate combinations; never by the window. Memory: ``PART``
combinations of each step at once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from levada.core import column_names as col
from levada.core.array_types import Doubles, Ints, Longs, Words
from levada.core.event_time import Times
from levada.core.frame import Column, Frame, concat
from levada.core.frozen import frozen
from levada.core.query_limits import QueryLimits
from levada.core.size_thresholds import register
from levada.operators.operator_context import Inputs, OperatorContext
from levada.operators.row_limit import most_rows, too_many
from levada.operators.rows import route_rows as r
from levada.operators.rows.compensation_filter import show_hidden_rows
from levada.operators.state import join_state
from levada.operators.state.join_state import Run
from levada.operators.windowed.multiway_inputs import Input, inputs_of, matches, order_of
from levada.operators.windowed.split_heavy_keys import own_here
from levada.operators.windowing.window_intervals import exact_interval, max_run_span
from levada.plan.execution import steps as s
from levada.plan.execution.plan import PlanNode
from levada.plan.execution.row_layout import Layout, slot_columns

PART = register(f"{__name__}.PART", 1 << 18)  # combinations in one piece
PROBES = register(f"{__name__}.PROBES", 1 << 14)  # probe rows at a time
# that are tried first: how many rows there are for one shows by them
FEW_PROBES = register(f"{__name__}.FEW_PROBES", 256)
Rows = npt.NDArray[np.intp]
Node = PlanNode[s.MultiwayJoin] | PlanNode[s.LinkedJoin]


@frozen
class JoinMatches:
    """Combinations of rows: their key, the instants that they have in common, and by input the
    numbers of their rows.
    """

    k: Words
    h: Words
    s: Times
    e: Times
    rows: dict[int, Longs]

    def __len__(self) -> int:
        return len(self.k)


def multiway(node: PlanNode[s.MultiwayJoin], inputs: Inputs, env: OperatorContext) -> Frame | None:
    """The new result rows. Rows that are dead by the horizons of the streams are dropped."""
    outputs = list(multiway_in_pieces(node, inputs, env))
    return concat(outputs) if outputs else None


def multiway_in_pieces(
    node: PlanNode[s.MultiwayJoin], inputs: Inputs, env: OperatorContext
) -> Iterator[Frame]:
    """The new result rows, some ``PART`` at a time. Raises ``ExcessError``."""
    horizons = env.horizons(node)
    sides = inputs_of(node, env, inputs, horizons)
    yield from at_once(node, sides, env)
    keep(node, sides, env, horizons)


def at_once(
    node: PlanNode[s.MultiwayJoin], sides: Sequence[Input], env: OperatorContext,
    looks: Sequence[Doubles] = (),
) -> Iterator[Frame]:  # fmt: skip
    """Yields the new result rows in one step; ``looks``: the ``matches`` of each input, if they are
    known. Raises ``ExcessError``.
    """
    for part in _find_all(node, sides, env, looks):
        read = [ReadRows.from_numbers(side, part.rows[i]) for i, side in enumerate(sides)]
        if (rows := counting_rows(node, put_together(node, read, len(part)))).n:
            yield rows


def keep(
    node: PlanNode[s.MultiwayJoin],
    sides: Sequence[Input],
    env: OperatorContext,
    horizons: join_state.Horizons,
) -> None:
    """Keeps the new rows of each input."""
    for i, side in enumerate(sides):
        if side.new.rows.n:
            join_state.insert(
                env.state,
                f"{node.id}.{i}",
                side.new,
                max_run_span(node.windows),
                horizon=horizons.next,
                alive=node.alive,
            )


def _find_all(
    node: PlanNode[s.MultiwayJoin],
    sides: Sequence[Input],
    env: OperatorContext,
    looks: Sequence[Doubles],
) -> Iterator[JoinMatches]:
    """All new combinations. Raises ``ExcessError``."""
    total = 0
    for i, side in enumerate(sides):
        look = looks[i] if looks else matches(sides, i)
        for part in _of_new(node, sides, i, env, order_of(sides, i, look)):
            total += len(part)
            if total > most_rows(node, env.limits):
                raise too_many(node, members_of(side, part.rows[i]), env.limits)
            yield part


def _of_new(
    node: PlanNode[s.MultiwayJoin], sides: Sequence[Input], i: int, env: OperatorContext,
    order: Sequence[int],
) -> Iterator[JoinMatches]:  # fmt: skip
    """Yields the combinations whose first new row is of input ``i``, by probing others in an
    order.
    """
    parts: Iterable[JoinMatches] = (match_new_rows(node, sides[i], i, env),) if order else ()
    for j in order:
        met = probe_runs(parts, list(sides[j].runs_to_probe(new=j > i)), j)
        parts = merge_small_parts(limit_matches(node, sides[i], i, met, env.limits))
    return iter(parts) if order else iter(())


def match_new_rows(node: PlanNode, side: Input, i: int, env: OperatorContext) -> JoinMatches:
    """The new rows of an input that meet others here, as combinations of one: in the order of
    buckets, so that large runs are read from front to back.
    """
    b, order = side.new.buckets, side.new.order
    keep = own_here(node, side.new, env)
    at = np.arange(len(order)) if keep is None else np.flatnonzero(keep[order])
    number = side.starts[-2] + order[at].astype(np.int64)
    return JoinMatches(b.k[at], b.h[at], b.s[at], b.ends[at], {i: number})


def probe_runs(
    parts: Iterable[JoinMatches], met: Sequence[tuple[int, Run]], j: int
) -> Iterator[JoinMatches]:
    """Combinations with each row of input ``j`` that has their key and counts with them, so many at
    a time that they make some ``PART`` new ones.
    """
    for part in parts:
        for start, run in met:
            at, piece = 0, min(PROBES, PART // run.rows.n + FEW_PROBES)
            while at < len(part):
                joined = _meet_run(slice_matches(part, at, at + piece), start, run, j)
                yield joined
                at += piece
                # the next matches are as dense as the previous ones
                piece = min(PROBES, max(piece * PART // max(len(joined), 1), 1))


def _meet_run(part: JoinMatches, start: int, run: Run, j: int) -> JoinMatches:
    b = run.stored
    probes, places = run.find_pairs(part.k, part.h, part.s, part.e)
    if run.groups is not None:
        keep = run.groups[run.rows[col.PLACE][run.rows_at(places)]]
        probes, places = probes[keep], places[keep]
    left = take_matches(part, probes.astype(np.intp))
    begin = b.s[places]
    end = b.e[places] if len(b.e) == len(b.s) else begin + b.longest
    number = start + run.order[places].astype(np.int64)
    s_, e = np.maximum(left.s, begin), np.minimum(left.e, end)
    return JoinMatches(left.k, left.h, s_, e, {**left.rows, j: number})


def take_matches(combinations: JoinMatches, at: Rows) -> JoinMatches:
    """The combinations at these places."""
    rows = {i: number[at] for i, number in combinations.rows.items()}
    return JoinMatches(
        combinations.k[at], combinations.h[at], combinations.s[at], combinations.e[at], rows
    )


def slice_matches(combinations: JoinMatches, first: int, end: int) -> JoinMatches:
    """The combinations from one place to another."""
    cut = slice(first, end)
    rows = {i: number[cut] for i, number in combinations.rows.items()}
    return JoinMatches(
        combinations.k[cut], combinations.h[cut], combinations.s[cut], combinations.e[cut], rows
    )


def merge_small_parts(parts: Iterable[JoinMatches]) -> Iterator[JoinMatches]:
    """Small parts as larger ones: of each run there are some, and each costs a probe of all runs of
    the next input.
    """
    some: list[JoinMatches] = []
    rows = 0
    for part in parts:
        if rows and rows + len(part) > PART:
            yield _merge_parts(some)
            some, rows = [], 0
        if len(part):
            some.append(part)
            rows += len(part)
    if some:
        yield _merge_parts(some)


def _merge_parts(parts: Sequence[JoinMatches]) -> JoinMatches:
    if len(parts) == 1:
        return parts[0]
    every = [(p.k, p.h, p.s, p.e) for p in parts]
    k, h, s_, e = (np.concatenate(each) for each in zip(*every, strict=True))
    rows = {i: np.concatenate([p.rows[i] for p in parts]) for i in parts[0].rows}
    return JoinMatches(k, h, s_, e, rows)


def limit_matches(
    node: PlanNode, side: Input, i: int, parts: Iterable[JoinMatches], limits: QueryLimits
) -> Iterator[JoinMatches]:
    """The same, as long as one input's new rows do not make too many. Raises ``ExcessError``."""
    total, most = 0, most_rows(node, limits)
    for part in parts:
        total += len(part)
        if total > most:
            raise too_many(node, members_of(side, part.rows[i]), limits)
        yield part


def members_of(side: Input, number: Longs) -> Ints:
    """The members of new rows."""
    members: Ints = side.new.rows["op"][number - side.starts[-2]]
    return members


def put_together(node: Node, read: Sequence[ReadRows], n: int, at: int = 0) -> Frame:
    """Returns the result rows of ``n`` combinations, in the partition of the rows of input
    ``at``.
    """
    step, layout = node.step, node.layout
    columns: dict[str, Column] = {name: read[at].column(name) for name in ("op", col.PLACE)}
    for out, (i, at) in enumerate(step.out):
        for name in slot_columns(out, layout.slots[out]):
            columns[name] = read[i].column(f"{name[0]}{at}")
    for w, places in enumerate(step.windows):
        columns.update(times_of(layout, w, read, places))
    return Frame(columns, n)


@frozen
class ReadRows:
    """Rows of an input by their numbers: of each run which ones, and where they go (``order``)."""

    side: Input
    parts: list[tuple[Run, Longs]]
    order: Rows | None

    @staticmethod
    def from_numbers(side: Input, number: Longs) -> ReadRows:
        """Returns the rows of these numbers."""
        run = (np.searchsorted(side.starts, number, "right") - 1).astype(np.int16)
        if (run == run[:1]).all():
            at = int(run[0]) if len(run) else len(side.held) - 1
            return ReadRows(side, [(side.held[at], number - side.starts[at])], None)
        order = np.argsort(run, kind="stable")
        ends = np.searchsorted(run[order], np.arange(len(side.held) + 1))
        cuts = [(i, order[a:b]) for i, (a, b) in enumerate(pairwise(ends.tolist())) if b > a]
        return ReadRows(
            side, [(side.held[i], number[rows] - side.starts[i]) for i, rows in cuts], order
        )

    def __contains__(self, name: str) -> bool:
        return name in self.side.new.rows

    def column(self, name: str) -> Column:
        """A column; a value facet that a typed column leaves out follows from the others."""
        parts = [_column(run.rows, name).take(rows) for run, rows in self.parts]
        if self.order is None:
            return parts[0]
        out = np.empty(len(self.order), parts[0].dtype)
        out[self.order] = np.concatenate(parts)
        return out


def _column(frame: Frame, name: str) -> Column:
    return frame[name] if name in frame else r.value(frame, name[0], int(name[1:]))


def times_of(
    layout: Layout, w: int, read: Sequence[ReadRows], places: tuple[int, ...]
) -> dict[str, Column]:
    """min of lo, max of hi, max of prev over the inputs that carry the window."""
    carriers = [(rows, rows.side.layout.windows[at], at)
           for rows, at in zip(read, places, strict=True) if at >= 0]  # fmt: skip
    least = [rows.column(col.least(at)) for rows, _, at in carriers]
    columns: dict[str, Column] = {col.least(w): np.minimum.reduce(least)}
    if layout.windows[w].hi:
        names = [
            (rows, col.greatest(at) if span.hi else col.least(at)) for rows, span, at in carriers
        ]
        columns[col.greatest(w)] = np.maximum.reduce([rows.column(n) for rows, n in names])
    if layout.windows[w].prev:
        prevs = [
            rows.column(col.earlier(at)) for rows, _, at in carriers if col.earlier(at) in rows
        ]
        columns[col.earlier(w)] = np.maximum.reduce(prevs)
    return columns


def counting_rows(node: Node, joined: Frame) -> Frame:
    """The rows that count at some instant: outer instants are wider than exact ones for windows on
    close or in the past, and for repeated triples.
    """
    on_event = (node.windows.kind >= 2).all() and not node.windows.to.any()
    if on_event and not any(w.prev for w in node.layout.windows):
        return joined
    start, end = exact_interval(show_hidden_rows(node, joined), node.layout, node.windows)
    return joined.where(start < end)
