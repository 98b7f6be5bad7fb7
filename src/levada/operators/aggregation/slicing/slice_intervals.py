"""Intervals in which slices count for members, computed once for all groups whose slices have the
same times.

The rows of one time follow the edges of a reader to its members, in the order of these edges. Each
of these *entries* has the number of the interval in which rows of that time count for that member.
Where conditions decide the members that want a slice, only the pairs of a time and a member that
some slice has are computed: of ten thousand members most want no slice. Intervals are numbered in
order of time, so partials in order of number are in the order in which windows slide over them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from levada.core.array_types import Bools, Ints, Longs
from levada.core.event_time import MAX, MIN, Times
from levada.core.frame import Frame
from levada.kernels.keyed.bucket_layout import combine_instants
from levada.kernels.keyed.hash_groups import group
from levada.operators.rows.route_rows import fan_out, key_of, project_for_consumer
from levada.operators.windowing.window_intervals import exact_interval
from levada.plan.execution.plan import Consumer, FanOut, PlanNode
from levada.plan.execution.slice_readers import Reader

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
    reader: Reader, times: Frame, node: PlanNode, wanted: Wanted | None = None
) -> tuple[Times, Times]:
    """Returns for each of these rows of a producer when it first counts for some member of a
    reader, and from when on for no member. The end is before the begin if the row never counts.
    ``wanted``: whether a member wants such a row at all.
    """
    frame, at = _project_along(reader, times, node)
    panes = reader.panes
    s, e = exact_interval(frame, panes.input_layouts[0], panes.windows, panes.step.rows)
    there = s < e
    if wanted is not None:
        there &= wanted(at, frame["op"])
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
