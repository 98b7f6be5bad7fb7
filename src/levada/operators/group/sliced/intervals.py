"""When slices count for members: asked once for all groups whose slices lie alike in time.

The rows of a time go along the edges of a reader to its members, in the order of these edges; each
of these *entries* says in which interval rows of that time count for that member, by its number.
Intervals are numbered in order of time, so partials that are made by number are in the order in
which windows slide over them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from levada.kernels.keyed.groups import group
from levada.kernels.keyed.keyed import beside
from levada.model.arrays import Bools, Ints, Longs
from levada.model.frame import Frame
from levada.model.time import MAX, MIN, Times
from levada.operators.rows.edges import along, fan_out, key_of
from levada.plan.sealed.plan import Consumer, FanOut, PlanNode
from levada.plan.sealed.sliced.readers import Reader
from levada.windows.intervals import exact

Wanted = Callable[[Longs, Ints], Bools]
"""Whether members want rows, by their places."""


@dataclass(frozen=True, eq=False, slots=True)
class Intervals:
    """The entries of a time are ``number[offsets[t] : offsets[t + 1]]``; -1: it never counts there.
    Of each interval the member, its begin and end.
    """

    offsets: Longs
    number: Longs
    op: Ints
    begin: Times
    end: Times

    @property
    def count(self) -> int:
        """How many there are."""
        return len(self.op)

    @staticmethod
    def of(reader: Reader, times: Frame, node: PlanNode) -> Intervals:
        """When these rows of a producer count for a reader's members."""
        frame, at = _along(reader, times, node)
        panes = reader.panes
        begin, end = exact(frame, panes.input_layouts[0], panes.windows, panes.step.rows)
        there = np.flatnonzero(begin < end)
        op, begin, end = frame["op"][there], begin[there], end[there]
        own = key_of(Frame({"op": op}, len(op)), ())
        codes, first = group(*beside(*own, begin, end))
        order = np.argsort(begin[first], kind="stable")
        rank = np.empty(len(order), np.int64)
        rank[order] = np.arange(len(order))
        number = np.full(frame.n, -1, np.int64)
        number[there] = rank[codes]
        first = first[order]
        offsets = np.searchsorted(at, np.arange(times.n + 1))
        return Intervals(offsets, number, op[first], begin[first], end[first])


def spans(
    reader: Reader, times: Frame, node: PlanNode, wanted: Wanted | None = None
) -> tuple[Times, Times]:
    """Of each of these rows of a producer when it counts first for some member of a reader, and
    from when on for none; the end is before the begin where it never does. ``wanted``: whether a
    member wants such a row at all.
    """
    frame, at = _along(reader, times, node)
    panes = reader.panes
    s, e = exact(frame, panes.input_layouts[0], panes.windows, panes.step.rows)
    there = s < e
    if wanted is not None:
        there &= wanted(at, frame["op"])
    begin, end = np.full(times.n, MAX, np.int64), np.full(times.n, MIN, np.int64)
    np.minimum.at(begin, at[there], s[there])
    np.maximum.at(end, at[there], e[there])
    return begin, end


def positions(reader: Reader, producers: int) -> Longs:
    """The place of each of a reader's members among those that read the same producer's."""
    at, op = np.arange(producers), np.arange(producers, dtype=np.int32)
    for edge in reader.way:
        chosen, op = fan_out(op, edge.fan)
        at = at if chosen is None else at[chosen]
    found = np.zeros(len(reader.panes.members), np.int64)
    found[op] = np.arange(len(op)) - np.searchsorted(at, at)
    return found


def _along(reader: Reader, rows: Frame, node: PlanNode) -> tuple[Frame, Longs]:
    """Rows as the reader's members have them, and which of these each is."""
    at = np.arange(rows.n, dtype=np.int64)
    layout = node.layout
    for edge in reader.way:
        chosen, _ = fan_out(rows["op"], edge.fan)
        at = at if chosen is None else at[chosen]
        rows, layout = along(rows, edge, layout), edge.edge.layout
    return rows, at


def once(way: Sequence[Consumer], rows: Frame, node: PlanNode) -> Frame:
    """A producer's rows once each, with the columns that they have at the end of a way."""
    layout = node.layout
    producers = np.zeros(2, np.int32)
    for edge in way:
        alone = Consumer(edge.node, edge.input, edge.edge, FanOut(producers, producers, True), 0)
        rows, layout = along(rows, alone, layout), edge.edge.layout
    return rows
