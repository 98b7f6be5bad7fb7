"""Rows by slots: keys, and moving frames along edges. Shared by all operators.

A slot's identity is ``x{i}, y{i}``; a slot with value facets only (typed columns) gets one from its
kind and value where an operator needs keys. ``project_for_consumer`` maps a producer's frame to a
consumer's layout and members.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from levada.core import column_names as col
from levada.core.array_types import Words
from levada.core.event_time import MAX, MIN, Times
from levada.core.frame import Column, Frame
from levada.core.member_columns import has_one_member
from levada.core.row_ranges import ranges
from levada.kernels.keyed.bucket_layout import combine, mix
from levada.plan.execution.plan import Consumer, FanOut, home_number
from levada.plan.execution.row_layout import DTYPES, Facet, Layout, slot_columns
from levada.plan.execution.shapes import Edge

Key = tuple[Words, Words]

Sources = tuple[dict[str, str], dict[str, Callable[[Frame], Column]]]
"""The columns that are columns of a producer, and those that are computed from its rows."""

MAX_FANNED = 1 << 20
"""Rows of a fan-out at once, some 100 bytes each, where the reader sees each row alone."""


def zeros(n: int) -> Words:
    """n unbound halves of an identity."""
    return np.zeros(n, np.uint64)


def key_of(frame: Frame, slots: Sequence[int], salt: int = 0) -> Key:
    """Returns a 128-bit key of the member and the identities of these slots (``salt`` distinguishes
    node and side).
    """
    op = frame["op"] if not salt else (frame["op"] + np.int32(salt))
    if not slots:
        return mix(zeros(frame.n), zeros(frame.n), op)
    k, h = mix(frame[col.x(slots[0])], frame[col.y(slots[0])], op)
    for i in slots[1:]:
        k, h = combine(k, h, frame[col.x(i)], frame[col.y(i)])
    return k, h


def with_report(key: Key, frame: Frame) -> Key:
    """A key with the report time as one more slot."""
    return combine(*key, np.ascontiguousarray(frame["r"]).view(np.uint64), zeros(frame.n))


def partition_hash(frame: Frame, slots: Sequence[int], node: int) -> Words:
    """Returns the hash that partitions rows: of the identities of these slots, whatever the
    operator; of the member if there are no slots.
    """
    if not slots:
        return home_hash(home_number(node, frame["op"].astype(np.int64)))
    k, h = frame[col.x(slots[0])], frame[col.y(slots[0])]
    for i in slots[1:]:
        k, h = combine(k, h, frame[col.x(i)], frame[col.y(i)])
    return h


def place_of(frame: Frame) -> dict[str, Column]:
    """The column that says where rows are; none where they are read."""
    return {col.PLACE: frame[col.PLACE]} if col.PLACE in frame else {}


def home_hash(home: npt.NDArray[np.int64]) -> Words:
    """Returns the hash that partitions rows exchanged by their member, from the members' home
    numbers.
    """
    return mix(zeros(len(home)), zeros(len(home)), home.astype(np.int32))[1]


def fan_out(
    op: npt.NDArray[np.int32], fan: FanOut
) -> tuple[npt.NDArray[np.int64] | None, npt.NDArray[np.int32]]:
    """For rows of a producer's members: (rows or None for all, consumer's members)."""
    if fan.identity:
        return None, op
    if has_one_member(op):
        members = fan.members[slice(*fan.offsets[op[0] : op[0] + 2])]
        if len(members) == 1:
            return None, np.full(len(op), members[0])
        return np.arange(len(op)).repeat(len(members)), np.tile(members, len(op))
    first = fan.offsets.take(op)
    counts = fan.offsets.take(op + 1) - first
    if (counts == 1).all():
        return None, fan.members.take(first)
    return np.arange(len(op)).repeat(counts), fan.members.take(ranges(first, counts))


def in_pieces(frame: Frame, fan: FanOut) -> Iterator[Frame]:
    """Cuts rows so that each piece fans out to some ``MAX_FANNED`` rows, or is one row."""
    if fan.identity or not frame.n:
        yield frame
        return
    counts = np.diff(fan.offsets)[frame["op"]].astype(np.int64)
    starts = np.flatnonzero(np.diff((np.cumsum(counts) - counts) // MAX_FANNED, prepend=-1))
    for start, stop in pairwise([*starts.tolist(), frame.n]):
        yield frame.slice(start, stop)


def project_for_consumer(frame: Frame, consumer: Consumer, source: Layout) -> Frame:
    """A producer's rows as rows of the consumer's input."""
    rows, op = fan_out(frame["op"], consumer.fan)
    if rows is not None:
        frame = frame.take(rows)
    names = tuple(frame.columns)
    sources = consumer.sources.get(names)
    if sources is None:
        sources = consumer.sources[names] = _sources(consumer.edge, source, names)
    copied, computed = sources
    columns = {name: frame.columns[of] for name, of in copied.items()}
    for name, compute in computed.items():
        columns[name] = compute(frame)
    columns["op"] = op
    return Frame._without_check(columns, frame.n)


def without_fan(consumer: Consumer) -> Consumer:
    """Returns the edge to a consumer without its fan: rows stay those of the producer's members."""
    every = np.arange(len(consumer.fan.offsets), dtype=np.int32)
    return replace(consumer, fan=FanOut(every, every[:-1], True))


def row_ends(frame: Frame) -> Times:
    """The instants from which on rows do not count, whatever their windows say."""
    return frame[col.UNTIL] if col.UNTIL in frame else np.full(frame.n, MAX, np.int64)


def _sources(edge: Edge, source: Layout, names: Collection[str]) -> Sources:
    """Returns the sources of a consumer's columns, for producer's rows with columns of these
    names.
    """
    copied = {name: name for name in ("op", col.PLACE, col.REPORT) if name in names}
    computed: dict[str, Callable[[Frame], Column]] = {}
    for i, (at, facets) in enumerate(zip(edge.slots, edge.layout.slots, strict=True)):
        for n in slot_columns(i, facets):
            if at < 0:
                computed[n] = partial(_fill, 0, DTYPES[n[0]])
            elif f"{n[0]}{at}" in names or n[0] in "xyk":
                copied[n] = f"{n[0]}{at}"
            else:
                computed[n] = partial(value, name=n[0], i=at)
    for name, of, absent in _window_sources(edge, source):
        if of is None:
            computed[name] = partial(_fill, absent, "i8")
        else:
            copied[name] = of
    if edge.layout.weighted and col.WEIGHT in names:
        copied[col.WEIGHT] = col.WEIGHT
    elif edge.layout.weighted:
        computed[col.WEIGHT] = partial(_fill, 1, "i1")
    if edge.layout.weighted and edge.layout.windows:
        computed[col.UNTIL] = row_ends
    return copied, computed


def _window_sources(edge: Edge, source: Layout) -> Iterator[tuple[str, str | None, int]]:
    """Yields the columns of windows, the producer's columns that they are (None: absent), and the
    value of an absent one. An absent window (lo MAX, hi MIN) counts always.
    """
    for j, (at, span) in enumerate(zip(edge.windows, edge.layout.windows, strict=True)):
        there = source.windows[at] if at >= 0 else None
        yield col.least(j), None if there is None else col.least(at), MAX
        if span.hi:
            latest = None if there is None else (col.greatest if there.hi else col.least)(at)
            yield col.greatest(j), latest, MIN
        if span.prev:
            yield col.earlier(j), col.earlier(at) if there and there.prev else None, MIN


def _fill(number: int, dtype: str, frame: Frame) -> Column:
    """Returns a column of one number."""
    return np.full(frame.n, number, dtype)


def renumber(frame: Frame, at: int, i: int, facets: Facet) -> dict[str, Column]:
    """Returns the columns of slot ``at`` as columns of slot ``i`` with these facets.

    Only some value facets of a typed column travel; where it meets columns of no type, the others
    follow from these.
    """
    columns = frame.columns
    return {
        n: columns[name]
        if (name := f"{n[0]}{at}") in columns or n[0] in "xyk"
        else value(frame, n[0], at)
        for n in slot_columns(i, facets)
    }


def gather(
    frame: Frame, rows: npt.NDArray[np.integer[Any]], at: int, i: int, facets: Facet
) -> dict[str, Column]:
    """The columns of slot ``at`` at these rows, as columns of slot ``i`` with these facets."""
    at_rows = rows.astype(np.intp, copy=False)
    names = slot_columns(i, facets)
    return {
        n: (frame[f"{n[0]}{at}"] if n[0] in "xyk" else value(frame, n[0], at)).take(at_rows)
        for n in names
    }


def value(frame: Frame, name: str, i: int) -> Column:
    """Returns a value facet (d, m or c) of slot ``i``; in typed columns a missing facet follows
    from the others.
    """
    column = frame.columns.get(f"{name}{i}")
    if column is not None:
        return column
    if name == "d":
        return frame[col.mantissa(i)].astype(np.float64)
    return np.zeros(frame.n, np.int64 if name == "m" else np.uint8)


def bind(frame: Frame, i: int) -> npt.NDArray[np.bool_]:
    """Where slot ``i`` is bound."""
    if col.kind(i) in frame:
        return np.not_equal(frame[col.kind(i)], 0)
    there: npt.NDArray[np.bool_] = (frame[col.x(i)] != 0) | (frame[col.y(i)] != 0)
    return there


def empty(layout: Layout) -> Frame:
    """No rows of a layout, as they are behind an exchange."""
    dtypes = {**DTYPES, "l": "i8", "h": "i8", "p": "i8", "w": "i1", "u": "i8", "r": "i8", "o": "i4"}
    columns = {n: np.empty(0, dtypes[n[0]]) for n in layout.columns()}
    return Frame({**columns, col.PLACE: np.empty(0, np.uint16)}, 0)
