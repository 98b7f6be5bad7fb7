"""Slices in state: windows over the same rows are composed of slices at their reports
(Krishnamurthy, Wu and Franklin, SIGMOD 2006; Scotty, TODS).

A slice is one row for all windows of its GROUP BY, with the cut times of its rows
(``aggregation/shared_slices``). So the state has (groups x slices) rows, whatever the number of
windows, and an epoch without a report costs only its new slices. At the due reports:

    classes   slices with the same times: a class counts at a report, or not, for all groups
    sets      the classes that count at a report; reports of several windows often have the same
    sums      the slices of each set and group, added up over a tree (``segment_tree``) and
              finished once; the report of a window is a copy

Slices with the same times for each window that still wants them are merged (``_coarsen``): where a
short window and a long one had rows cut finely, the long one keeps the slices of its own borders.

The result is exact: a query that is added later begins after all slices in state, so a slice that
is not cut at its borders never counts for it. A slice is dropped when the last window for which it
counts has left it. Slices and panes are added up together where a group has both: a reader that
does not share its rows folds panes.

Where memory is bounded, reports and merges run range by range of the groups
(``partitioned_aggregation``), and a merge writes one part for each range.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

import msgspec
import numpy as np

from levada.core import column_names as col
from levada.core.array_types import Ints, Longs, Words
from levada.core.event_time import MAX, MIN, Times
from levada.core.frame import Frame, concat
from levada.core.row_ranges import ranges, starts_segment
from levada.kernels.keyed.bucket_layout import combine, combine_instants
from levada.kernels.keyed.hash_groups import group
from levada.kernels.keyed.key_partitioner import scatter_order
from levada.operators.aggregation import bignum_sums
from levada.operators.aggregation.partitioned_aggregation import Part, in_ranges, read_piece
from levada.operators.aggregation.slicing import segment_tree
from levada.operators.aggregation.slicing.cell_membership import Wants, wants_of
from levada.operators.aggregation.slicing.cell_tree import Nodes
from levada.operators.aggregation.slicing.partial_aggregates import (
    group_columns,
    merge_partials,
    mix_words,
    number_values,
    sum_partials,
    sum_words,
)
from levada.operators.operator_context import OperatorContext
from levada.operators.reporting import report_buffer
from levada.operators.reporting.due_reports import Calendar
from levada.operators.rows.route_rows import key_of, zeros
from levada.operators.state.key_ranges import Range
from levada.operators.state.state_parts import StatePart, due_together
from levada.operators.windowing.window_intervals import exact_interval
from levada.plan.execution import steps as s
from levada.plan.execution.plan import PlanNode
from levada.plan.execution.sharing_demand import SharingDemand

# Time classes of slices: slices that count for the same members at the same reports are a class,
# and a report counts a set of classes.


class Classes(NamedTuple):
    """How slices lie in time: of each slice the number of its class, in order of time; a slice of
    each class.
    """

    of: Longs
    first: Longs


def in_time(rows: Frame) -> Classes:
    """The classes of slices."""
    names = [name for name in rows.columns if col.is_time(name)]
    names[:0] = [col.WANTED] if col.WANTED in rows else []
    codes, first = group(*_words(rows, ["op", *names]))
    order = np.lexsort([*(rows[name][first] for name in reversed(names)), rows["op"][first]])
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return Classes(rank[codes], first[order])


def _words(rows: Frame, names: Sequence[str]) -> tuple[Words, Words]:
    """Returns words that distinguish rows by these columns: the columns themselves, if one or two
    differ.
    """
    columns = [rows[name].astype(np.int64, copy=False) for name in names]
    varying = [column for column in columns if rows.n and (column != column[0]).any()]
    words = [np.ascontiguousarray(column).view(np.uint64) for column in varying]
    words += [zeros(rows.n)] * (2 - len(words))
    k, h = words[:2]
    for word in words[2:]:
        k, h = combine(k, h, word, zeros(rows.n))
    return k, h


def as_sets(reports: Longs, classes: Longs) -> tuple[segment_tree.Sets, Ints]:
    """The distinct sets of classes, and of each report the number of its set; a report has a class
    once.
    """
    order = np.lexsort((classes, reports))
    reports, classes = reports[order], classes[order]
    first = np.flatnonzero(starts_segment(reports))
    words = mix_words(classes.view(np.uint64), zeros(len(classes)))
    sets, example = group(*(np.add.reduceat(half, first) for half in words))
    chosen = np.full(len(first), -1, np.int64)
    chosen[example] = np.arange(len(example))
    of = chosen[reports]
    is_chosen = of >= 0
    return segment_tree.runs(of[is_chosen], classes[is_chosen]), sets


_TWICE = 2
"""Sets of so few slices each are added up without a tree."""
_CELL = (col.KEY, col.CHECK, col.VALUE, col.LEAF)
"""The columns that identify the cell of a slice, and the cell itself."""


def is_cut(partials: Frame) -> bool:
    """Whether partials are slices, which have times, and no panes of members."""
    return col.least(0) in partials


class Sums(NamedTuple):
    """The sums of slices by set and group: the rows of set i are ``parts[offsets[i] : offsets[i +
    1]]``. Each report has its member, its time and its set.
    """

    parts: Frame
    offsets: Longs
    op: Ints
    time: Times
    sets: Ints

    def copy_to_reports(self, parts: Frame) -> Frame:
        """Copies the rows made of each of the ``parts`` to the reports."""
        first = self.offsets[self.sets]
        counts = self.offsets[self.sets + 1] - first
        rows = parts.take(ranges(first, counts))
        return rows.with_(op=np.repeat(self.op, counts), r=np.repeat(self.time, counts))


class _Above(NamedTuple):
    """The members that read each member of a producer: ``members[offsets[i] : offsets[i + 1]]``;
    for each of these the producer's member that it reads.
    """

    offsets: Longs
    members: Ints
    below: Longs


class _Entries(NamedTuple):
    """When classes count for members: of each entry the class, the member, and [begin, end)."""

    of: Longs
    op: Ints
    begin: Times
    end: Times


@dataclass(frozen=True, eq=False)
class SliceState:
    """The slices of a GROUP BY in a partition's state, and the reports that are due."""

    node: PlanNode[s.Panes]
    env: OperatorContext
    calendar: Calendar

    @property
    def key(self) -> str:
        """Under which they are kept."""
        return f"{self.node.id}.slices{report_buffer.OWN}"

    def remember(self, new: Sequence[Frame]) -> list[Part]:
        """Keeps new slices; all that there are, if a report is due."""
        state, due = self.env.state, self.calendar.any_due
        parts = [read_piece(state, piece) for piece in state.pieces(self.key) if due]
        if new:
            whole = concat(new)
            parts.append(Part(whole))
            later_rows = report_buffer.rows_after(whole, self._of_producers(self.calendar.high))
            terms = bignum_sums.own_terms(later_rows, self.node.step.aggregates, self.env.pool)
            report_buffer.remember(state, self.key, later_rows, terms)
        return parts if due else []

    def sums(self, parts: Sequence[Part]) -> Iterator[Sums]:
        """The slices that count at due reports, added up by set, range by range of the groups."""
        before = list[Frame]()  # too many reports are those of all ranges
        for _, rows in self._in_ranges(parts):
            range_sums = self._sums(self._with_wants(concat(rows)), before)
            if range_sums is not None:
                yield range_sums

    def _in_ranges(self, parts: Sequence[Part]) -> Iterator[tuple[Range, list[Frame]]]:
        return in_ranges(parts, range(len(self.node.step.keys)), self.env.state.theta)

    def _sums(self, rows: Frame, before: list[Frame]) -> Sums | None:
        rows = rows.drop(col.KEY, col.CHECK, col.VALUE)
        classes = in_time(rows)
        entries = self._entries(rows, classes)
        weights = self._groups(rows, classes)[entries.of]
        requests = Frame(
            {
                "op": entries.op,
                col.BEGIN: entries.begin,
                col.END: entries.end,
                col.COUNT: weights,
                col.AT: entries.of,
            }
        )
        before.append(requests)
        self.calendar.check_few(before, enumerated=self.node.step.enumerated)
        if not self.node.step.enumerated:
            requests = self.calendar.keep_counting_rows(requests)
        at, r = self.calendar.pairs(
            requests["op"], requests[col.BEGIN], requests[col.END], self.node.step.enumerated
        )
        if not len(at):
            return None
        op, of = requests["op"][at], requests[col.AT][at]
        reports, first = group(*combine(*_of_members(op), r.view(np.uint64), zeros(len(r))))
        chosen, sets = as_sets(reports.astype(np.int64), of)
        parts, offsets = self._sum_by_set(rows, classes.of, chosen)
        sums = Sums(parts, offsets, op[first], r[first], sets)
        return sums if self._wants is None else self._by_wishes(sums, self._wants)

    def _by_wishes(self, sums: Sums, wants: Wants) -> Sums:
        """Converts cells that count at reports to the sums that members want."""
        parts, aggregates_ = sums.parts, self.node.step.aggregates
        sets = np.repeat(np.arange(len(sums.offsets) - 1), np.diff(sums.offsets))
        group_codes = group(*key_of(parts, range(len(self.node.step.keys))))[0].astype(np.int64)
        nodes = Nodes.ancestors_of(
            wants.index, parts[col.LEAF], sets * (int(group_codes.max()) + 1) + group_codes
        )
        columns = {name: c for name, c in parts.columns.items() if name.startswith("a")}
        merge = partial(merge_partials, specs=aggregates_, pool=self.env.pool)
        cells = parts.drop(*columns).with_(**{col.GROUP: group_codes}).take(nodes.slices)
        cells = cells.with_(**nodes.partials(columns, merge))
        place, wish = wants.above(nodes.nodes)
        many = int(wants.wish.max()) + 1
        requests, of = np.unique(
            sums.sets * np.int64(many) + wants.wish[sums.op], return_inverse=True
        )
        number = segment_tree.numbers(sets[nodes.slices[place]] * many + wish, requests)
        there = np.flatnonzero(number >= 0)
        merged = self._merge_partials(cells, place[there], number[there], len(requests))
        offsets = np.searchsorted(merged[col.AT], np.arange(len(requests) + 1))
        merged = merged.drop(col.AT, col.GROUP, col.LEAF)
        return Sums(merged, offsets, sums.op, sums.time, of.astype(np.int32))

    def _with_wants(self, rows: Frame) -> Frame:
        """Returns the wanted slices, with the columns that decide which members want them, unless
        every member wants every slice.
        """
        return rows if self._wants is None else self._wants.select_wanted(rows)

    def _groups(self, rows: Frame, classes: Classes) -> Longs:
        """How many groups have slices of each class."""
        of = classes.of
        if self._wants is not None:
            k, h = key_of(rows, range(len(self.node.step.keys)))
            of = of[group(*combine(k, h, of.view(np.uint64), zeros(rows.n)))[1]]
        return np.bincount(of, minlength=len(classes.first))

    def forget(self) -> None:
        """Drops slices that have left their last window, and merges slices whose remaining times
        are equal.
        """
        state = self.env.state
        if not (there := state.pieces(self.key)):
            return
        least = int(self._of_producers(self.calendar.last_made).min(initial=MAX))
        pieces = [p for p in there if p.dead > least]
        if (start := due_together(pieces)) < len(pieces):
            parts = [read_piece(state, piece) for piece in pieces[start:]]
            merged = list(self._merge_slices(parts))
            if len(merged) > 1:
                merged = [msgspec.structs.replace(p, run=int(merged[0].name)) for p in merged]
            pieces = [*pieces[:start], *merged]
        state.replace(self.key, pieces)

    def _merge_slices(self, parts: Sequence[Part]) -> Iterator[StatePart]:
        """One piece for each range of the groups."""
        for some, rows in self._in_ranges(parts):
            coarser = self._coarsen(self._with_wants(concat(rows)))
            if coarser.n:
                begin = coarser[col.BEGIN]
                span = (int(coarser[col.END].max()), int(begin.min()), int(begin.max()))
                terms = bignum_sums.own_terms(coarser, self.node.step.aggregates, self.env.pool)
                texts = terms.frames("") if len(terms) else {}
                frames = {"": coarser, **texts}
                yield self.env.state.put(frames, coarser.n, span, **some._asdict())

    def _coarsen(self, rows: Frame) -> Frame:
        """Merges slices that count alike from now on, and limits their times to the ones that still
        matter.
        """
        classes = in_time(rows)
        entries = self._entries(rows, classes)
        begin = np.maximum(entries.begin, self.calendar.last_made[entries.op] + 1)
        there = np.flatnonzero(begin < entries.end)
        of, op, end = entries.of[there], entries.op[there], entries.end[there]
        begin = begin[there]
        hashes = mix_words(*combine_instants(*_of_members(op), begin, end))
        sums = [sum_words(of, len(classes.first), half) for half in hashes]
        alike, first = group(*combine(*_of_members(rows["op"][classes.first]), *sums))
        needed = np.zeros(len(classes.first), np.bool_)
        needed[of] = True
        least, last = np.full(len(first), MAX, np.int64), np.full(len(first), MIN, np.int64)
        np.minimum.at(least, alike[of], begin)
        np.maximum.at(last, alike[of], end)
        places = np.flatnonzero(needed[classes.of])
        mine = alike[classes.of[places]].astype(np.int64)
        merged_rows = self._merge_partials(self._number_groups(rows), places, mine, len(first))
        which = merged_rows[col.AT]
        example = classes.first[first][which]
        times = {name: rows[name][example] for name in rows.columns if col.is_time(name)}
        times |= {col.BEGIN: least[which], col.END: last[which]}
        return merged_rows.drop(col.AT, col.GROUP, col.LEAF).with_(**times)

    def _number_groups(self, rows: Frame) -> Frame:
        """Adds the group number to each slice. Slices of a group in different cells are kept apart,
        in the order of their leaves.
        """
        codes = group(*key_of(rows, range(len(self.node.step.keys))))[0].astype(np.int64)
        if self._wants is not None:
            codes = codes * self._wants.index.size + rows[col.LEAF]
        return rows.with_(**{col.GROUP: codes})

    def _merge_partials(self, rows: Frame, chosen: Longs, of: Longs, count: int) -> Frame:
        """The chosen partials by number (less than ``count``) and group, added up; ``#at`` is the
        number, in order.
        """
        group_codes = rows[col.GROUP][chosen]
        groups = int(group_codes.max(initial=0)) + 1
        codes, there = number_values(of * groups + group_codes, count * groups)
        example = np.empty(len(there), np.int64)
        example[codes] = chosen
        step = self.node.step
        columns = group_columns(rows, range(len(step.keys)), example)
        columns |= {name: rows[name][example] for name in _CELL if name in rows}
        sums = sum_partials(rows, chosen, codes, len(there), step.aggregates, pool=self.env.pool)
        number, group_ = np.divmod(there, groups)
        return Frame({**columns, **sums, col.GROUP: group_, col.AT: number}, len(there))

    def _sum_by_set(self, rows: Frame, of: Longs, chosen: segment_tree.Sets) -> tuple[Frame, Longs]:
        """The slices of each set and group, added up; where each set's begin."""
        counts = chosen.end - chosen.begin
        if counts.sum() <= _TWICE * len(counts) + int(of.max()):
            nodes, set_numbers = ranges(chosen.begin, counts), np.repeat(chosen.of, counts)
            return self._by_sets(self._number_groups(rows), *_pairs(of, nodes, set_numbers), chosen)
        uses = segment_tree.covers(chosen)
        needed = segment_tree.needed_nodes(uses, int(of.max()) + 1)
        level = self._number_groups(rows).with_(**{col.AT: of})
        frames, sets = list[Frame](), list[Longs]()
        for height, (set_numbers, nodes) in enumerate(uses):
            if height:
                above = segment_tree.numbers(level[col.AT] >> 1, needed[height])
                there = np.flatnonzero(above >= 0)
                level = self._merge_partials(level, there, above[there], len(needed[height]))
                level = level.with_(**{col.AT: needed[height][level[col.AT]]})
            at, of_set = _pairs(level[col.AT], nodes, set_numbers)
            frames.append(level.take(at).drop(col.AT))
            sets.append(of_set)
        names = [n for n in frames[-1].columns if not (col.is_time(n) or n in (col.BEGIN, col.END))]
        every = concat([frame.select(names) for frame in frames])
        return self._by_sets(every, np.arange(every.n), np.concatenate(sets), chosen)

    def _by_sets(
        self, rows: Frame, at: Longs, sets: Longs, chosen: segment_tree.Sets
    ) -> tuple[Frame, Longs]:
        """Partials at these places by their sets."""
        count = int(chosen.of.max()) + 1
        parts = self._merge_partials(rows, at, sets, count)
        offsets = np.searchsorted(parts[col.AT], np.arange(count + 1))
        return parts.drop(col.AT, col.GROUP), offsets

    def _entries(self, rows: Frame, classes: Classes) -> _Entries:
        """When each class counts for whom."""
        node, above = self.node, self._above
        ways = rows.take(classes.first)
        first = above.offsets[ways["op"]]
        counts = above.offsets[ways["op"] + 1] - first
        of = np.repeat(np.arange(ways.n), counts)
        times = ways.select([name for name in ways.columns if col.is_time(name)]).take(of)
        frame = times.with_(op=above.members[ranges(first, counts)])
        begin, end = exact_interval(frame, node.input_layouts[0], node.windows, node.step.rows)
        is_read = begin < end
        if self._wants is not None:
            is_read &= self._wants.is_wanted(ways[col.WANTED][of], frame["op"])
        there = np.flatnonzero(is_read)
        return _Entries(of[there], frame["op"][there], begin[there], end[there])

    @cached_property
    def _wants(self) -> Wants | None:
        """Returns the wants of the members, where members differ in conditions."""
        assert self.env.shares is not None, "slices are kept by tasks of a plan"
        plan = self.env.shares.plan
        pick = plan.nodes[self.node.inputs[0]].as_step(s.Pick)
        if pick is None or not pick.step.tests:
            return None
        return wants_of(self.node, pick, self.env.pool.seed)

    @cached_property
    def _above(self) -> _Above:
        assert self.env.shares is not None, "slices are kept by tasks of a plan"
        return self.node.compute_once(_above, self.env.shares)

    def _of_producers(self, instants: Times) -> Times:
        """Returns for each of the producer's members the least instant of its members."""
        least = np.full(len(self._above.offsets) - 1, MAX, np.int64)
        np.minimum.at(least, self._above.below, instants[self._above.members])
        return least


def _above(node: PlanNode[s.Panes], shares: SharingDemand) -> _Above:
    """Returns the readers of each producer's member, through a pick or directly."""
    nodes = shares.plan.nodes
    members = np.flatnonzero(node.alive).astype(np.int32)
    below = node.members.inputs[0][members]
    source = nodes[node.inputs[0]]
    if (pick := source.as_step(s.Pick)) is not None:
        below = pick.members.inputs[0][below]
        source = nodes[source.inputs[0]]
    of = below.astype(np.int64)
    order = np.argsort(of, kind="stable")
    offsets = np.searchsorted(of[order], np.arange(len(source.members) + 1))
    return _Above(offsets, members[order], of[order])


def _of_members(op: Ints) -> tuple[Words, Words]:
    """A key of each member."""
    return key_of(Frame({"op": op}), ())


def _pairs(there: Longs, nodes: Longs, sets: Longs) -> tuple[Longs, Longs]:
    """The rows of each use: (row, set), where rows are of the nodes ``there``."""
    distinct, of = np.unique(nodes, return_inverse=True)
    at = segment_tree.numbers(there, distinct)
    rows = np.flatnonzero(at >= 0)
    order, offsets = scatter_order(at[rows].astype(np.int32), len(distinct))
    counts = (offsets[1:] - offsets[:-1])[of]
    return rows[order[ranges(offsets[:-1][of], counts)]], np.repeat(sets, counts)
