"""Shared slices of GROUP BYs over the same rows: rows are folded once, whatever the windows,
functions and conditions (STREAMREUSE; On-the-Fly Sharing for Streamed Aggregation, SIGMOD 2006;
Scotty, TODS).

The times of rows are cut at the union of the borders of all members' windows: where a row that is a
little later would enter or leave at another close, or is after another start. A *slice* is the rows
of a group with the same cut times; for each member all of them count in the same [s, e), or none
ever does. Where members belong to a pick with conditions, all rows of a slice are also of one cell
(``slicing/cell_membership``). So one row represents its slice, and its contribution to a pane is
the partial aggregate of the slice. Partials are exact and independent of order, so no result
changes.

    today   rows x members                     n rows at M members: n M rows are made and folded
    slices  rows, then slices x members        n rows are folded, R M partials are made and added up

If borders are so dense, or groups so many, that slices contain few rows, slices are not used
(``None``). Cost: a search among the borders for each row and time, and one grouping. The interval
of a slice for a member is computed once for all groups (``aggregation/shared_slices``), so a slice
costs a member some 50 ns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from levada.core import column_names as col
from levada.core.array_types import Bools, Ints, Longs
from levada.core.event_time import MAX, MIN, Times, distinct
from levada.core.expressions import AggregateFunction
from levada.core.frame import Frame
from levada.core.row_ranges import ranges
from levada.kernels.keyed.bucket_layout import combine, combine_instants
from levada.kernels.keyed.hash_groups import group
from levada.kernels.terms.term_lookup import TermLookup
from levada.operators.aggregation import aggregate_functions
from levada.operators.aggregation.slicing.cell_membership import (
    Cells,
    cells_of,
    match_conditions,
    wants_of,
)
from levada.operators.aggregation.slicing.cell_tree import Columns
from levada.operators.aggregation.slicing.partial_aggregates import (
    group_columns,
    lookup,
    merge_partials,
    number_values,
    sum_partials,
)
from levada.operators.rows.route_rows import fan_out, key_of, project_for_consumer, zeros
from levada.operators.windowing.window_intervals import exact_interval
from levada.plan.execution import steps as s
from levada.plan.execution.plan import Consumer, FanOut, PlanNode
from levada.plan.execution.row_layout import Facet
from levada.plan.execution.slice_readers import Cuts, Reader, Readers

# Intervals in which slices count for members, computed once for all groups whose slices have the
# same times.
#
# The rows of one time follow the edges of a reader to its members, in the order of these edges.
# Each of these *entries* has the number of the interval in which rows of that time count for that
# member. Where conditions decide the members that want a slice, only the pairs of a time and a
# member that some slice has are computed: of ten thousand members most want no slice. Intervals are
# numbered in order of time, so partials in order of number are in the order in which windows slide
# over them.


Wanted = Callable[[Longs, Ints], Bools]
"""Whether members want rows, by their places."""


@dataclass(frozen=True, eq=False, slots=True)
class Intervals:
    """The interval number of each entry (-1: rows never count there), and the member, begin and end
    of each interval.
    """

    number: Longs
    op: Ints
    begin: Times
    end: Times

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.op)

    @staticmethod
    def for_all_members(reader: Reader, times: Frame, node: PlanNode) -> tuple[Longs, Intervals]:
        """When these rows of a producer count for a reader's members; where each row's entries
        begin, and the last one's end.
        """
        frame, at = _project_along(reader, times, node)
        return np.searchsorted(at, np.arange(times.n + 1)), _intervals(reader, frame)

    @staticmethod
    def for_members(
        reader: Reader, times: Frame, node: PlanNode, at: Longs, op: Ints
    ) -> tuple[Ints, Intervals]:
        """Returns the intervals of the rows ``at`` for the members ``op``, and the entry of
        each.
        """
        entry, first = group(at.view(np.uint64), op.astype(np.uint64))
        rows = project_once(reader.way, times.take(at[first]), node)
        return entry, _intervals(reader, rows.with_(op=op[first]))


def _intervals(reader: Reader, frame: Frame) -> Intervals:
    """Returns the intervals of these rows of members."""
    panes = reader.panes
    begin, end = exact_interval(frame, panes.input_layouts[0], panes.windows, panes.step.rows)
    there = np.flatnonzero(begin < end)
    op, begin, end = frame["op"][there], begin[there], end[there]
    member_key = key_of(Frame({"op": op}, len(op)), ())
    codes, first = group(*combine_instants(*member_key, begin, end))
    order = np.argsort(begin[first], kind="stable")
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    number = np.full(frame.n, -1, np.int64)
    number[there] = rank[codes]
    first = first[order]
    return Intervals(number, op[first], begin[first], end[first])


def spans(
    reader: Reader, times: Frame, node: PlanNode, is_chosen: Wanted | None = None
) -> tuple[Times, Times]:
    """Returns for each of these rows of a producer when it first counts for some member of a
    reader, and from when on for no member. The end is before the begin if the row never counts.
    ``is_chosen``: whether a member wants such a row at all.
    """
    frame, at = _project_along(reader, times, node)
    panes = reader.panes
    s, e = exact_interval(frame, panes.input_layouts[0], panes.windows, panes.step.rows)
    there = s < e
    if is_chosen is not None:
        there &= is_chosen(at, frame["op"])
    begin, end = np.full(times.n, MAX, np.int64), np.full(times.n, MIN, np.int64)
    np.minimum.at(begin, at[there], s[there])
    np.maximum.at(end, at[there], e[there])
    return begin, end


def _project_along(reader: Reader, rows: Frame, node: PlanNode) -> tuple[Frame, Longs]:
    """Projects rows to the reader's members. Returns the rows and the number of the original row of
    each.
    """
    at = np.arange(rows.n, dtype=np.int64)
    layout = node.layout
    for edge in reader.way:
        chosen, _ = fan_out(rows["op"], edge.fan)
        at = at if chosen is None else at[chosen]
        rows, layout = project_for_consumer(rows, edge, layout), edge.edge.layout
    return rows, at


def project_once(way: Sequence[Consumer], rows: Frame, node: PlanNode) -> Frame:
    """A producer's rows once each, with the columns that they have at the end of a way."""
    layout = node.layout
    producers = np.zeros(2, np.int32)
    for edge in way:
        alone = Consumer(edge.node, edge.input, edge.edge, FanOut(producers, producers, True), 0)
        rows, layout = project_for_consumer(rows, alone, layout), edge.edge.layout
    return rows


@dataclass(frozen=True, eq=False, slots=True)
class Slices:
    """Rows that some member wants, the slice of each row, and a row of each slice.

    ``cut``: the slices' times, each the border at or before the times of its rows. ``groups``,
    ``times``: the slices' groups by number, and their time classes, with a slice of each.
    ``cells``: the cell partials, where slices differ in the members that want them.
    """

    rows: Frame
    codes: Ints
    first: Longs
    cut: Mapping[str, Times]
    groups: tuple[Ints, Longs]
    times: tuple[Ints, Longs]
    cells: Cells | None = None

    @property
    def parts(self) -> int:
        """How many partials there are: of slices or of their cells."""
        return len(self.first) if self.cells is None else len(self.cells.nodes.nodes)

    def distinct_times(self) -> Frame:
        """A row of each way in which slices lie in time, with the times of the slices."""
        at = self.times[1]
        return self.rows.take(self.first[at]).with_(**{n: c[at] for n, c in self.cut.items()})


@dataclass(slots=True)
class _Folded:
    """The partials of the slices of a producer's rows, each made when it is asked for first; of
    their cells, if there are such.
    """

    node: PlanNode
    slices: Slices
    pool: TermLookup
    known: dict[tuple[object, ...], Columns] = field(default_factory=dict)

    def reader_columns(self, reader: Reader) -> Columns:
        """The columns of all aggregates of a reader: of slices, if its state is these, else of
        their cells.
        """
        columns: Columns = {}
        layout = reader.panes.input_layouts[0]
        rows: Frame | None = None
        for j, spec in enumerate(reader.panes.step.aggregates):
            facets = layout.slots[spec.slot] if spec.slot >= 0 else Facet(0)
            key = (_kind(spec), reader.slot(spec.slot), facets)
            if key not in self.known:
                rows = (
                    project_once(reader.way, self.slices.rows, self.node) if rows is None else rows
                )
                self.known[key] = aggregate_functions.fold(
                    rows, self.slices.codes, len(self.slices.first), (spec,), lookup(self.pool)
                )
            partials = self.known[key] if reader.kept else self._of_cells(key, spec)
            columns |= {f"a{j}.{n.removeprefix('a0.')}": c for n, c in partials.items()}
        return columns

    def _of_cells(self, key: tuple[object, ...], spec: s.Aggregate) -> Columns:
        """The partials of one aggregate by cells, if slices have such."""
        if (cells := self.slices.cells) is None:
            return self.known[key]
        if ("cells", *key) not in self.known:
            merge = partial(merge_partials, specs=(spec,), pool=self.pool)
            self.known["cells", *key] = cells.nodes.partials(self.known[key], merge)
        return self.known["cells", *key]


def _kind(spec: s.Aggregate) -> tuple[AggregateFunction, str | None]:
    """Returns the key that determines partials: AVG and the rest of SUM have those of SUM."""
    sums = (AggregateFunction.AVG, AggregateFunction.SUM_REST)
    return AggregateFunction.SUM if spec.function in sums else spec.function, spec.separator


class Sliced(NamedTuple):
    """The readers whose rows are folded, and their partials by edge."""

    readers: Sequence[Reader]
    partials: Iterator[tuple[Consumer, Frame]]


def slice_for_readers(
    node: PlanNode, readers: Readers, out: Frame, pool: TermLookup, most: float
) -> Sliced | None:
    """Returns a producer's rows as partials for readers that want the same groups of them. Returns
    None if the slices are more than ``most`` of the rows that would be folded one by one.
    """
    matched, leaf, reader_rows = None, None, float(out.n)
    if readers.form is not None:
        if (matched := match_conditions(readers, out, pool)) is None:
            return None
        there = matched.leaf >= 0
        out, leaf = out.where(there), matched.leaf[there]
        reader_rows = float(matched.wanting.owners[leaf].sum())
        if not reader_rows:
            return Sliced(readers.readers, iter(()))
    lasting_readers = tuple([reader for reader in readers.readers if reader.kept])
    whole = max(
        reader_rows,
        float(readers.keeping[out["op"]].sum()) if lasting_readers and leaf is None else 0.0,
    )
    slices = _slices(readers, out, leaf, int(most * whole))
    if slices is None:
        return None
    if matched is not None and leaf is not None and len(lasting_readers) < len(readers.readers):
        beside = slices.groups[0] * np.int64(len(slices.times[1])) + slices.times[0]
        cells = Cells.ancestors_of(matched.wanting, leaf[slices.first], beside)
        slices = replace(slices, cells=cells)
    served = readers.readers if len(slices.first) <= int(most * reader_rows) else lasting_readers
    return Sliced(served, _partials(served, _Folded(node, slices, pool)))


def _slices(readers: Readers, out: Frame, leaf: Longs | None, most: int) -> Slices | None:
    group_key = key_of(out, readers.keys)
    time = key_of(out.select(("op",)), ())
    k, h = group_key
    cuts = dict[str, Times]()
    for name, borders in readers.cuts:
        at = cut(out[name], borders, most)
        if at is None and not readers.keeping.any():
            return None
        at = out[name] if at is None else at  # in state each time may be a slice
        cuts[name] = at
        k, h = combine(k, h, at.view(np.uint64), zeros(out.n))
        time = combine(*time, at.view(np.uint64), zeros(out.n))
    if leaf is not None:
        k, h = combine(k, h, leaf.view(np.uint64), zeros(out.n))
    codes, first = group(k, h)
    if len(first) > most:
        return None
    groups = group(group_key[0][first], group_key[1][first])
    times = group(time[0][first], time[1][first])
    return Slices(out, codes, first, {n: at[first] for n, at in cuts.items()}, groups, times)


def cut(times: Times, cuts: Cuts, most: int) -> Times | None:
    """Returns for each time the last border at or before it, or None if there are more than
    ``most`` borders. The least time is also a border.

    >>> cuts = Cuts(np.array([0, 1]), np.array([5, 10]), np.array([3]))
    >>> cut(np.array([0, 2, 4, 6, 8, 11]), cuts, 9).tolist()
    [0, 1, 3, 5, 5, 11]
    """
    inside = times[(times > MIN) & (times < MAX)]
    if not len(inside):
        return times
    low, high = int(inside.min()), int(inside.max())
    first = low + (cuts.phase - low) % cuts.step
    counts = np.maximum((high - first) // cuts.step + 1, 0)
    if int(counts.sum()) > most:
        return None
    nth = ranges(np.zeros(len(counts), np.int64), counts)
    periodic = np.repeat(first, counts) + nth * np.repeat(cuts.step, counts)
    starts = cuts.starts[(cuts.starts > low) & (cuts.starts <= high)]
    borders = distinct(np.concatenate([[MIN, low], periodic, starts, [MAX]]))
    slice_starts: Times = borders[np.searchsorted(borders, times, side="right") - 1]
    return slice_starts


def _partials(readers: Sequence[Reader], folded: _Folded) -> Iterator[tuple[Consumer, Frame]]:
    for reader in readers:
        partials = _as_slices(reader, folded) if reader.kept else _in_panes(reader, folded)
        if partials.n:
            yield reader.edge, partials


def _as_slices(reader: Reader, folded: _Folded) -> Frame:
    """Returns the slices that count for some member, with their times, as the state keeps them."""
    slices, node = folded.slices, folded.node
    cells = _cells(reader, slices)
    at, begin, end = _spans(reader, folded, cells)
    parts = Frame(folded.reader_columns(reader), len(slices.first))
    there = np.flatnonzero(begin[at] < end[at])
    alike = slices.rows.take(slices.first[there]).with_(
        **{name: times[there] for name, times in slices.cut.items()}
    )
    rows = project_once(reader.way, alike, node)
    columns = group_columns(rows, reader.panes.step.keys, np.arange(len(there)))
    columns |= {} if cells is None else cells.take(there).columns
    columns |= {name: c for name, c in rows.columns.items() if col.is_time(name)}
    columns |= {col.BEGIN: begin[at[there]], col.END: end[at[there]]}
    return Frame(columns | parts.take(there).columns, len(there))


def _cells(reader: Reader, slices: Slices) -> Frame | None:
    """Returns the columns that identify the cells of slices, if the slices have cells."""
    if reader.pick is None:
        return None
    return cells_of(reader, slices.rows, slices.first)


def _spans(reader: Reader, folded: _Folded, cells: Frame | None) -> tuple[Ints, Times, Times]:
    """Returns the time class of each slice, and the interval of each class; where cells differ in
    the members that want them, classes also differ by cell.
    """
    slices, node = folded.slices, folded.node
    if reader.pick is None or cells is None:
        return slices.times[0], *spans(reader, slices.distinct_times(), node)
    wants = wants_of(reader.panes, reader.pick, folded.pool.seed)
    leaf = wants.leaves(cells)
    masks = np.where(leaf < 0, 0, wants.masks[leaf])
    times = slices.times[0].astype(np.int64)
    codes, first = group(times.view(np.uint64), masks.view(np.uint64))
    slice_masks = masks[first]
    ways = slices.distinct_times().take(times[first])
    return codes, *spans(reader, ways, node, lambda at, op: wants.is_wanted(slice_masks[at], op))


def _in_panes(reader: Reader, folded: _Folded) -> Frame:
    """The slices, or their cells, in each member's panes, added up."""
    slices, node = folded.slices, folded.node
    part, at, intervals = _member_intervals(reader, slices, node)
    owner = part if slices.cells is None else slices.cells.nodes.slices[part]
    pane = slices.groups[0][owner] * np.int64(max(intervals.count, 1)) + at
    codes, panes = number_values(pane, len(slices.groups[1]) * intervals.count)
    whose, when = np.divmod(panes, max(intervals.count, 1))
    rows = project_once(reader.way, slices.rows.take(slices.first[slices.groups[1]]), node)
    columns = group_columns(rows, reader.panes.step.keys, whose)
    columns["op"] = intervals.op[when]
    columns |= {col.BEGIN: intervals.begin[when], col.END: intervals.end[when]}
    parts = Frame(folded.reader_columns(reader), slices.parts)
    specs = reader.panes.step.aggregates
    sums = sum_partials(parts, part, codes, len(panes), specs, pool=folded.pool)
    return Frame(columns | sums, len(panes))


def _member_intervals(
    reader: Reader, slices: Slices, node: PlanNode
) -> tuple[Longs, Longs, Intervals]:
    """(slice or cell, interval): when each counts for whom."""
    times, ways = slices.times[0], slices.distinct_times()
    if slices.cells is None:
        offsets, intervals = Intervals.for_all_members(reader, ways, node)
        part = np.repeat(np.arange(len(times)), np.diff(offsets)[times])
        at = intervals.number[ranges(offsets[times], np.diff(offsets)[times])]
    else:
        part, picked = slices.cells.member_nodes(reader)
        chosen, member = fan_out(picked, reader.edge.fan)
        part = part if chosen is None else part[chosen]
        time = times[slices.cells.nodes.slices[part]].astype(np.int64)
        entry, intervals = Intervals.for_members(reader, ways, node, time, member)
        at = intervals.number[entry]
    there = at >= 0
    return part[there], at[there], intervals
