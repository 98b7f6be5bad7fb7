"""What GROUP BYs over the same rows have in common: rows are folded once, whatever the windows and
functions (STREAMREUSE; On-the-Fly Sharing for Streamed Aggregation, SIGMOD 2006; Scotty, TODS).

The times of rows are cut at the union of the borders of all members' windows: where a row that is a
little later would enter or leave at another close, or is after another start. A *slice* is the rows
of a group that lie alike in this, in all their times; for each member all of them count in the same
[s, e), or none ever does. So one row stands for its slice: it goes along the edges to the members
in place of all, and what it brings to a pane is the partial aggregate of the slice. Partials are
exact and independent of order, so no result changes.

    today   rows x members                     n rows at M members: n M rows are made and folded
    slices  rows, then slices x members        n rows are folded, R M partials are made and added up

Where borders are so dense, or groups so many, that slices hold few rows there are none (``None``).
Cost: a search among the borders for each row and time, one grouping; a few passes over the slices
of each member.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from levada.kernels.keyed.groups import group
from levada.kernels.keyed.keyed import beside, combine
from levada.model import columns as col
from levada.model.arrays import Ints, Longs
from levada.model.expression import AggregateFunction
from levada.model.frame import Column, Frame
from levada.model.segments import ranges
from levada.model.time import MAX, MIN, Times, distinct
from levada.operators.border import report_buffer
from levada.operators.group import aggregates
from levada.operators.group.panes import group_columns, lookup
from levada.operators.rows.edges import along, fan_out, key_of, zeros
from levada.plan.sealed import steps as s
from levada.plan.sealed.layout import Facet
from levada.plan.sealed.plan import Consumer, FanOut, PlanNode
from levada.plan.sealed.sliced.readers import Cuts, Reader, Readers
from levada.terms.term_pool import Pool
from levada.windows.intervals import exact

Columns = dict[str, Column]


class Slices(NamedTuple):
    """Of each row its slice, and the first row of each."""

    codes: Ints
    first: Longs


@dataclass(slots=True)
class _Folded:
    """The partials of the slices of a producer's rows, each made when it is asked for first."""

    node: PlanNode
    out: Frame
    slices: Slices
    pool: Pool
    known: dict[tuple[object, ...], Columns] = field(default_factory=dict)

    def of(self, reader: Reader) -> Columns:
        """The columns of all aggregates of a reader."""
        found: Columns = {}
        layout = reader.panes.input_layouts[0]
        rows: Frame | None = None
        for j, spec in enumerate(reader.panes.step.aggregates):
            facets = layout.slots[spec.slot] if spec.slot >= 0 else Facet(0)
            key = (_kind(spec), reader.slot(spec.slot), facets)
            if key not in self.known:
                rows = _once(reader, self.out, self.node) if rows is None else rows
                self.known[key] = aggregates.fold(
                    rows, self.slices.codes, len(self.slices.first), (spec,), lookup(self.pool)
                )
            found |= {f"a{j}.{n.removeprefix('a0.')}": c for n, c in self.known[key].items()}
        return found


def _kind(spec: s.Aggregate) -> AggregateFunction:
    """What partials depend on: AVG's are those of SUM."""
    average = spec.function is AggregateFunction.AVG
    return AggregateFunction.SUM if average else spec.function


def sliced(
    node: PlanNode, readers: Readers, out: Frame, pool: Pool, most: float
) -> Iterator[tuple[Consumer, Frame]] | None:
    """A producer's rows as partials for readers that want the same groups of them, by their edges;
    None if slices are more than ``most`` of the rows.
    """
    slices = _slices(readers, out, most)
    if slices is None:
        return None
    return _partials(readers.readers, _Folded(node, out, slices, pool))


def _slices(readers: Readers, out: Frame, most: float) -> Slices | None:
    k, h = key_of(out, readers.keys)
    for name, cuts in readers.cuts:
        if (at := cut(out[name], cuts, int(most * out.n))) is None:
            return None
        k, h = combine(k, h, at.view(np.uint64), zeros(out.n))
    found = Slices(*group(k, h))
    return found if len(found.first) <= most * out.n else None


def cut(times: Times, cuts: Cuts, most: int) -> Longs | None:
    """Of each time how many borders are at or before it; None if there are more than ``most``.

    >>> cuts = Cuts(np.array([0, 1]), np.array([5, 10]), np.array([3]))
    >>> cut(np.array([MIN, 0, 2, 4, 6, MAX]), cuts, 9).tolist()
    [0, 1, 2, 3, 4, 5]
    """
    inside = times[(times > MIN) & (times < MAX)]
    if not len(inside):
        return np.equal(times, MAX).astype(np.int64)
    low, high = int(inside.min()), int(inside.max())
    first = low + (cuts.phase - low) % cuts.step
    counts = np.maximum((high - first) // cuts.step + 1, 0)
    if int(counts.sum()) > most:
        return None
    nth = ranges(np.zeros(len(counts), np.int64), counts)
    periodic = np.repeat(first, counts) + nth * np.repeat(cuts.step, counts)
    starts = cuts.starts[(cuts.starts > low) & (cuts.starts <= high)]
    borders = distinct(np.concatenate([[low], periodic, starts, [MAX]]))
    found: Longs = np.searchsorted(borders, times, side="right")
    return found


def _partials(readers: Sequence[Reader], folded: _Folded) -> Iterator[tuple[Consumer, Frame]]:
    slices = folded.out.take(folded.slices.first)
    for reader in readers:
        partial = _in_panes(reader, slices, folded)
        if partial.n:
            yield reader.edge, partial


def _in_panes(reader: Reader, slices: Frame, folded: _Folded) -> Frame:
    """The slices of each member's panes, added up."""
    panes, pool = reader.panes, folded.pool
    frame, at = _read(reader, slices, folded.node)
    begin, end = exact(frame, panes.input_layouts[0], panes.windows, panes.step.rows)
    at = at[begin < end]
    rows = report_buffer.timed(frame, begin, end)
    key = beside(*key_of(rows, panes.step.keys), rows[col.BEGIN], rows[col.END])
    codes, first = group(*key)
    columns = folded.of(reader)
    parts = Frame(columns, slices.n)
    sums = aggregates.merge(
        parts, codes, len(first), panes.step.aggregates, lookup(pool), chosen=at
    )
    kept = group_columns(rows, panes.step.keys, first)
    times = {name: rows[name][first] for name in (col.BEGIN, col.END)}
    return Frame({**kept, **times, **{n: sums[n] for n in columns}}, len(first))


def _read(reader: Reader, rows: Frame, node: PlanNode) -> tuple[Frame, Longs]:
    """Rows as the reader's members have them, and which of these each is."""
    at = np.arange(rows.n, dtype=np.int64)
    layout = node.layout
    for edge in reader.way:
        chosen, _ = fan_out(rows["op"], edge.fan)
        at = at if chosen is None else at[chosen]
        rows, layout = along(rows, edge, layout), edge.edge.layout
    return rows, at


def _once(reader: Reader, rows: Frame, node: PlanNode) -> Frame:
    """Rows once each, with the columns that the reader's have."""
    layout = node.layout
    producers = np.zeros(2, np.int32)
    for edge in reader.way:
        alone = Consumer(edge.node, edge.input, edge.edge, FanOut(producers, producers, True), 0)
        rows, layout = along(rows, alone, layout), edge.edge.layout
    return rows
