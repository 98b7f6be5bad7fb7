"""Finds the GROUP BYs that read the same rows, and the cuts of their times for all of them
(``operators/aggregation/slicing``); both follow from a sealed plan alone.

A GROUP BY reads a producer's rows along its edge, or through a pick of a relaxed join or set. Rows
outside the pick's windows are outside the panes, too. The terms and comparisons of picks are tested
for all GROUP BYs above together. A pick without conditions is like an edge.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

from levada.core import column_names as col
from levada.core.array_types import Bools, Longs
from levada.core.event_time import MAX, MIN, WindowKind
from levada.core.size_thresholds import register
from levada.plan.execution import steps as s
from levada.plan.execution.joins import Order
from levada.plan.execution.plan import Consumer, Plan, PlanNode
from levada.plan.execution.row_layout import Layout
from levada.plan.execution.window_table import WindowTable

_WINDOWS = register(f"{__name__}._WINDOWS", 8)
"""The maximum number of windows with slices by conditions: their cells are added for each window,
and beyond that each member's panes cost less.
"""
_CLOSING = (int(WindowKind.CLOSE_OPEN), int(WindowKind.CLOSE_CLOSED))


@dataclass(frozen=True, eq=False, slots=True)
class Cuts:
    """Borders at each ``phase + i * step``, and at the ``starts``."""

    phase: Longs
    step: Longs
    starts: Longs


@dataclass(frozen=True, eq=False, slots=True)
class Reader:
    """A GROUP BY by panes, and the edges along which it reads a producer's rows.

    ``pick``: the pick between them, if it selects rows. ``kept``: its state is slices, which are
    combined into the windows of its members at their reports.
    """

    panes: PlanNode[s.Panes]
    way: tuple[Consumer, ...]
    pick: PlanNode[s.Pick] | None = None
    kept: bool = False

    @property
    def edge(self) -> Consumer:
        """The last edge."""
        return self.way[-1]

    def slot(self, i: int) -> int:
        """Returns the producer's slot of slot i; -1: none."""
        for edge in reversed(self.way):
            i = edge.edge.slots[i] if i >= 0 else -1
        return i

    def window(self, j: int) -> int:
        """Returns the producer's window of window j; -1: none."""
        for edge in reversed(self.way):
            j = edge.edge.windows[j] if j >= 0 else -1
        return j


class Form(NamedTuple):
    """The producer slots that decide the conditions of picks: by terms, and by ranges
    in an order.
    """

    keys: tuple[int, ...]
    ranges: tuple[tuple[int, Order], ...]

    @staticmethod
    def from_reader(reader: Reader) -> Form | None:
        """Returns the form of a reader's pick; None if it has none."""
        if reader.pick is None:
            return None
        slots, step = reader.way[0].edge.slots, reader.pick.step
        ranges = {test.range: (slots[test.slot], test.order) for test in step.tests}
        return Form(tuple(sorted(slots[key.slot] for key in step.keys)), tuple(ranges.values()))


@dataclass(frozen=True, eq=False, slots=True)
class Readers:
    """The readers with the same key slots of a producer, and the cuts of each column of times.

    ``form``: the form of their picks. ``keeping``: for each of the producer's members the number of
    members with slices in state that read it. ``facts``: computed facts by type.
    """

    keys: tuple[int, ...]
    readers: tuple[Reader, ...]
    cuts: tuple[tuple[str, Cuts], ...]
    form: Form | None
    keeping: Longs
    facts: dict[type, Any] = field(default_factory=dict)


_Known = dict[int, tuple[Readers, ...]]


class _Facts(_Known):
    """The readers of a plan's nodes."""


def readers_of(plan: Plan, node: PlanNode) -> tuple[Readers, ...]:
    """Returns the GROUP BYs that share rows of a node, computed once."""
    known: _Known = plan.facts.setdefault(_Facts, _Facts())
    if node.id not in known:
        known[node.id] = tuple(_find_readers(plan, node))
    return known[node.id]


def _find_readers(plan: Plan, node: PlanNode) -> Iterator[Readers]:
    by_keys: dict[tuple[tuple[int, ...], Form | None], list[Reader]] = {}
    for reader in _iterate_group_bys(plan, node):
        if _is_on_grid(reader.panes):
            slots = {reader.slot(i) for i in reader.panes.step.keys} - {-1}
            by_keys.setdefault((tuple(sorted(slots)), Form.from_reader(reader)), []).append(reader)
    for (keys, form), some in by_keys.items():
        counts = np.stack([_counts(reader) for reader in some])
        if not (counts.sum(axis=0) > 1).any():
            continue
        keeps = np.array(
            [_keeps_slices(node, reader, n) for reader, n in zip(some, counts, strict=True)]
        )
        readers = tuple([replace(r, kept=bool(k)) for r, k in zip(some, keeps, strict=True)])
        cuts = tuple(_cuts(readers, node.layout))
        yield Readers(keys, readers, cuts, form, counts[keeps].sum(axis=0))


def _iterate_group_bys(plan: Plan, node: PlanNode) -> Iterator[Reader]:
    """Yields the GROUP BYs over a node."""
    for consumer in node.consumers:
        target = plan.nodes[consumer.node]
        if (panes := target.as_step(s.Panes)) is not None:
            yield Reader(panes, (consumer,))
        elif (pick := target.as_step(s.Pick)) is not None:
            if pick.step.rest:
                continue  # no index assigns rows to members
            some = pick if pick.step.keys or pick.step.tests else None
            for after in pick.consumers:
                if (panes := plan.nodes[after.node].as_step(s.Panes)) is not None:
                    yield Reader(panes, (consumer, _edge_behind_pick(after, pick.step.kept)), some)


def _edge_behind_pick(edge: Consumer, kept: Sequence[int]) -> Consumer:
    """Returns an edge out of a pick as an edge out of the pick's input."""
    slots = tuple([kept[at] if at >= 0 else -1 for at in edge.edge.slots])
    return replace(edge, edge=edge.edge._replace(slots=slots))


def _is_on_grid(panes: PlanNode[s.Panes]) -> bool:
    """Whether all windows of a GROUP BY close at the times of a grid."""
    kinds = panes.windows.kind[list(panes.step.rows)][:, panes.alive]
    return not panes.input_layouts[0].weighted and bool(np.isin(kinds, _CLOSING).all())


def _counts(reader: Reader) -> Longs:
    """Returns the number of members that read the rows of each of a producer's members."""
    counts: Longs = np.diff(reader.way[-1].fan.offsets).astype(np.int64)
    if len(reader.way) > 1:
        fan = reader.way[0].fan
        sums = np.concatenate([[0], np.cumsum(counts[fan.members])])
        counts = sums[fan.offsets[1:]] - sums[fan.offsets[:-1]]
    return counts


def _keeps_slices(node: PlanNode, reader: Reader, counts: Longs) -> bool:
    """Whether a reader's state is slices: several of its windows are over the same rows.

    The groups of these rows must be partitioned; the rows of a pick are those of its input. Members
    that differ in conditions on a number keep slices if they have few windows: places of texts
    belong to a plan version.
    """
    panes = reader.panes
    grouped = bool(panes.step.keys) and bool(panes.input_layouts[0].windows)
    if not grouped or node.as_step(s.Pick) is not None or not (counts > 1).any():
        return False
    if reader.pick is None:
        return True
    windows = int(window_numbers(panes).max(initial=0)) + 1
    one = {(test.range, test.order) for test in reader.pick.step.tests}
    numbers = len(one) == 1 and {order for _, order in one} == {Order.VALUE}
    return numbers and windows <= min(_WINDOWS, int(counts.max()) // 2)


def window_numbers(panes: PlanNode[s.Panes]) -> Longs:
    """Returns the number of each member's windows, equal for equal windows; 0 for
    removed members.
    """
    table, numbers = panes.windows.pick(panes.step.rows), np.zeros(len(panes.members), np.int64)
    alive = np.flatnonzero(panes.alive)
    said = (table.kind, table.range, table.step, table.t0, table.has_t0, table.to, table.stream)
    codes = np.zeros(len(alive), np.int64)
    for column in np.concatenate([one[:, alive].astype(np.int64) for one in said]):
        if len(alive) and (column != column[0]).any():
            values, of = np.unique(column, return_inverse=True)
            codes = np.unique(codes * len(values) + of, return_inverse=True)[1]
    numbers[alive] = codes
    return numbers


def _cuts(readers: Sequence[Reader], source: Layout) -> Iterator[tuple[str, Cuts]]:
    """Yields the cuts of each column of times: where rows enter and leave, and where queries start.

    An earlier occurrence matters by the time when it leaves.
    """
    cuts_by_column: dict[str, list[Cuts]] = {}
    for reader in readers:
        for j, span in enumerate(reader.panes.input_layouts[0].windows):
            if (at := reader.window(j)) < 0:
                continue
            panes = reader.panes
            enter, leave = borders(panes.windows, panes.alive, panes.step.rows[j])
            latest = span.hi and source.windows[at].hi
            cuts_by_column.setdefault(col.least(at), []).append(leave)
            cuts_by_column.setdefault(col.greatest(at) if latest else col.least(at), []).append(
                enter
            )
            if span.prev and source.windows[at].prev:
                cuts_by_column.setdefault(col.earlier(at), []).append(leave)
    for name, cuts in cuts_by_column.items():
        grids = [np.stack([cut.phase, cut.step]) for cut in cuts]
        phase, step = np.unique(np.concatenate(grids, axis=1), axis=1)
        yield name, Cuts(phase, step, np.unique(np.concatenate([cut.starts for cut in cuts])))


def borders(table: WindowTable, members: Bools, t: int) -> tuple[Cuts, Cuts]:
    """Returns the times from which a row enters window t of these members later, and leaves it
    later.

    The latter include the starts. The windows close at times of a grid.
    """
    kind, step, start = table.kind[t][members], table.step[t][members], table.start[t][members]
    close = table.t0[t][members] + (kind == WindowKind.CLOSE_CLOSED)
    enter = (close + table.range[t][members] - table.to[t][members]) % step
    none = np.empty(0, np.int64)
    return Cuts(enter, step, none), Cuts(close % step, step, start[(start > MIN) & (start < MAX)])
