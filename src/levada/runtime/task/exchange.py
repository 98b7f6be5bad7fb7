"""Routes the output of a task along the edges of the plan: to nodes of this stage, or as jumbo
blobs, one per (task, target).

A blob contains the rows for all nodes of the next stages at one target, the texts that these rows
need, and the control records of the epoch. Every target receives one, also without rows. Static
rows and rows of windows travel alike. Rows of a divided group go to several targets (``copies``).
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import msgspec
import numpy as np

from levada.checkpoint.epoch_context import (
    Counted,
    EpochContext,
    SourceReport,
    TaskOutcome,
    heads_of,
    load_groups,
)
from levada.checkpoint.executor_affinity import executor_here
from levada.core import column_names as col
from levada.core.array_types import Bools, Words
from levada.core.frame import Column, Frame, Parcel, concat
from levada.core.rdf_terms import Kind
from levada.core.row_ranges import starts_segment
from levada.core.size_thresholds import register
from levada.kernels.keyed.key_partitioner import group_and_partition, scatter_order
from levada.kernels.terms.term_dictionary import Terms
from levada.kernels.terms.term_lookup import TermLookup
from levada.operators.aggregation.panes import fold, mark_one_group
from levada.operators.aggregation.shared_slices import slice_for_readers
from levada.operators.aggregation.slicing.slice_state import is_cut
from levada.operators.local_combine import FEWER as FEWER
from levada.operators.local_combine import combine_locally
from levada.operators.reporting.compensation_routing import NO_ROWS, CompensationRouter
from levada.operators.reporting.deduplicated_reports import is_picked
from levada.operators.reporting.shared_result_cells import cells_of, route_shared_rows
from levada.operators.rows.cardinality_counters import Flows, Joining
from levada.operators.rows.filter_extend import is_threshold, thresholds
from levada.operators.rows.route_rows import (
    in_pieces,
    partition_hash,
    project_for_consumer,
    without_fan,
)
from levada.plan.execution import steps as s
from levada.plan.execution.joins import is_arranged
from levada.plan.execution.plan import Consumer, Plan, PlanNode
from levada.plan.execution.row_layout import Facet, Layout
from levada.plan.execution.shapes import TO_ALL
from levada.plan.execution.shared_results import find_shared_results
from levada.plan.execution.slice_readers import readers_of
from levada.plan.execution.splittable_joins import Copies
from levada.runtime.executor import AnyBlob
from levada.runtime.placement.key_group_counters import CHECKS, Counter
from levada.runtime.placement.send_graph import AT, FROM
from levada.runtime.task.element_time_broadcast import IN_FILES, BroadcastTimes
from levada.runtime.task.frame_addresses import FrameAddress, FrameKind

NOBODY = frozenset[int]()
# consumers per row from which on sorting thresholds beats expanding them
MIN_FAN_RATIO = register(f"{__name__}.MIN_FAN_RATIO", 16)


class _ProjectedEdges(dict[tuple[int, int], bool]):
    """Whether the consumer of an edge receives a projection of its producer's rows, by node and
    input.
    """


class Exchange:
    """Collects the rows that a task sends to later stages, by target."""

    def __init__(self, context: EpochContext, plan: Plan, stage: int, pool: TermLookup) -> None:
        self.context = context
        self.plan = plan
        self.stage = stage
        self.pool = pool
        self.frames: list[dict[FrameAddress, list[Frame]]] = [{} for _ in range(context.partitions)]
        groups = load_groups(context.group_table_file)
        self.table, self.copies = groups.partition, Copies(groups)
        self.name = ""  # the task's name, if its output is counted
        self.at = executor_here() if context.tells_places else ""
        self.counter = (
            Counter(context.counted_groups, len(self.table)) if context.counted_groups else None
        )
        self._sent_lengths: dict[tuple[int, FrameAddress], int] = {}
        self.flows = Flows(Joining.from_plan(plan).nodes)
        self.picking = CompensationRouter(plan, pool, context.limits)
        self.met = self.picking.met

    def along(self, node: PlanNode, out: Frame) -> Iterator[tuple[Consumer, Frame]]:
        """Yields the rows for consumers in this stage; collects the others for their targets. Rows
        that are already folded for a GROUP BY arrive as partials (``is_folded``).
        """
        self.flows.record(node.id, out)
        done = yield from self._slice_partials(node, out)
        for consumer in node.consumers:
            for at, frame in self._rows(node, out, consumer, done):
                if not frame.n:
                    continue
                if at.stage == self.stage:
                    yield at, frame
                else:
                    self._put(at, frame)
        self.met.close(node.id)

    def _slice_partials(
        self, node: PlanNode, out: Frame
    ) -> Generator[tuple[Consumer, Frame], None, frozenset[int]]:
        """Yields partials for GROUP BYs that share rows, if that makes them fewer; returns the
        nodes of these GROUP BYs. If rows are counted by their groups, each GROUP BY is folded
        alone.
        """
        done: set[int] = set()
        for readers in readers_of(self.plan, node) if self.counter is None else ():
            slices = slice_for_readers(node, readers, out, self.pool, FEWER)
            if slices is None:
                continue
            done.update(reader.panes.id for reader in slices.readers)
            for consumer, partial in slices.partials:
                if consumer.stage == self.stage:
                    yield consumer, partial
                else:
                    self._put_panes(consumer, partial)
        return frozenset(done)

    def _rows(
        self, node: PlanNode, out: Frame, consumer: Consumer, done: frozenset[int] = NOBODY
    ) -> Iterator[tuple[Consumer, Frame]]:
        """Yields one producer's rows for one consumer, except for those that are ``done``."""
        if consumer.node in done:
            return
        if self._is_projected(consumer):
            yield consumer, project_for_consumer(out, consumer, node.layout)
        else:
            yield from self._selected_rows(node, out, consumer, done)

    def _selected_rows(
        self, node: PlanNode, out: Frame, consumer: Consumer, done: frozenset[int]
    ) -> Iterator[tuple[Consumer, Frame]]:
        """Yields the rows that a consumer selects. Many thresholds at once bypass the filter's
        input, several picks that of the pick.
        """
        if (picks := self.plan.nodes[consumer.node].as_step(s.Pick)) is not None:
            left = []
            for after in (after for after in picks.consumers if after.node not in done):
                edges = (consumer, after)
                if (cells := self.picking.cells(after)) is not None:
                    yield after, route_shared_rows(cells, picks, edges, out, self.pool)
                elif (ranged := self.picking.route_ranges(node, out, edges)) is not None:
                    yield after, ranged
                else:
                    left.append(after)
            picked = self.picking.route_to_picks(node, out, consumer, picks) if left else NO_ROWS
            for after in left if picked.n else ():
                yield from self._rows(picks, picked, after)
            return
        if (in_ranges := self.picking.in_ranges(node, out, consumer)) is not None:
            yield consumer, in_ranges
            return
        if self._is_for_all(consumer):
            consumer = without_fan(consumer)
        target = self._thresholds_of(consumer)
        if target is not None and consumer.stage == self.stage and out.n:
            passed = self._thresholds(node, out, consumer, target)
            if passed is not None:
                for after in target.consumers if passed.n else ():
                    yield from self._rows(target, passed, after)
                return
        yield from self._fan_out(node, out, consumer)

    def _fan_out(
        self, node: PlanNode, out: Frame, consumer: Consumer
    ) -> Iterator[tuple[Consumer, Frame]]:
        """Yields the rows of each of the consumer's members. A selective filter of this stage,
        which evaluates each row alone, receives them in pieces.
        """
        alike = find_shared_results(self.plan, consumer.node)
        edge = consumer if alike is None else replace(consumer, fan=alike.fan)
        reported = self.picking.route_to_report(node, out, consumer)
        if reported is not None:
            yield consumer, self.picking.drop_unwanted_rows(reported, consumer)
            return
        filters = self.plan.nodes[consumer.node].as_step(s.Filter) is not None
        whole = not filters or consumer.stage != self.stage
        for part in (out,) if whole else in_pieces(out, edge.fan):
            yield (
                consumer,
                self.picking.drop_unwanted_rows(
                    project_for_consumer(part, edge, node.layout), consumer
                ),
            )

    def _is_projected(self, consumer: Consumer) -> bool:
        """Whether a consumer receives all rows of each of its members, whatever they are; computed
        once a plan.
        """
        known = self.plan.facts.setdefault(_ProjectedEdges, _ProjectedEdges())
        key = consumer.node, consumer.input
        if key not in known:
            target = self.plan.nodes[consumer.node]
            known[key] = not (
                isinstance(target.step, s.Pick | s.RelaxedStatic | s.RelaxedStream)
                or (isinstance(target.step, s.Filter) and not consumer.fan.identity)
                or is_picked(self.plan, target)
                or getattr(target.step, "relaxed", False)
                or cells_of(self.plan, consumer.node, self.pool.seed) is not None
                or find_shared_results(self.plan, consumer.node) is not None
                or self._is_for_all(consumer)
            )
        return bool(known[key])

    def _is_for_all(self, consumer: Consumer) -> bool:
        """Whether rows are equal for all members: rows with numbers, or rows that several joins
        read.
        """
        step = self.plan.nodes[consumer.node].step
        return (consumer.input == 1 and isinstance(step, s.Narrow)) or is_arranged(
            step, consumer.input
        )

    def _thresholds_of(self, consumer: Consumer) -> PlanNode[s.Filter] | None:
        """Returns the filter, if it has so many thresholds that sorting them pays."""
        target = self.plan.nodes[consumer.node].as_step(s.Filter)
        if target is None or not is_threshold(target.step.condition):
            return None
        producers = len(consumer.fan.offsets) - 1
        return target if len(consumer.fan.members) >= MIN_FAN_RATIO * max(producers, 1) else None

    def _thresholds(
        self, node: PlanNode, out: Frame, consumer: Consumer, target: PlanNode[s.Filter]
    ) -> Frame | None:
        """Compares the rows of each member of the producer once with the constants of all its
        consumers.
        """
        fan = consumer.fan
        parts = []
        for op in np.unique(out["op"]):
            members = fan.members[fan.offsets[op] : fan.offsets[op + 1]]
            once = consumer.fan.__class__(np.array([0, 1], np.int32), np.zeros(1, np.int32), True)
            single = Consumer(consumer.node, consumer.input, consumer.edge, once, consumer.stage)
            rows = project_for_consumer(out.where(out["op"] == op), single, node.layout)
            passed = thresholds(target, rows, members, self.pool)
            if passed is None:
                return None
            parts.append(passed)
        return concat(parts)

    def _put(self, consumer: Consumer, frame: Frame) -> None:
        """Distributes rows to their targets."""
        slots = consumer.edge.exchange
        assert slots is not None, "an edge between stages says how its rows are partitioned"
        if slots == TO_ALL:
            self._to_all(FrameAddress(FrameKind.ROWS, consumer.node, consumer.input), frame)
            return
        target = self.plan.nodes[consumer.node].as_step(s.Panes)
        panes = None if target is None else fold(target, frame, self.pool, FEWER)
        if target is None:
            self._put_fewer(consumer, frame, slots)
        elif panes is None:
            to = FrameAddress(FrameKind.ROWS, consumer.node, consumer.input)
            self._scatter(to, frame, slots, consumer.node)
        elif panes.n:
            has_counts = self.counter is not None and col.PLACE in frame
            self._put_panes(consumer, panes, mark_one_group(target, frame) if has_counts else None)

    def _to_all(self, to: FrameAddress, frame: Frame) -> None:
        """Sends all rows to each partition; they have no group, and count for none."""
        rows = frame.with_(**{col.PLACE: np.zeros(frame.n, np.uint16)})
        for boxes in self.frames:
            boxes.setdefault(to, []).append(rows)

    def _put_fewer(self, consumer: Consumer, frame: Frame, slots: Sequence[int]) -> None:
        """Distributes rows to their targets. If the target is another task, sends only the rows
        that suffice there.
        """
        to = FrameAddress(FrameKind.ROWS, consumer.node, consumer.input)
        if self.context.partitions > 1 and not slots:
            combined = combine_locally(
                self.plan.nodes[consumer.node], consumer.input, frame, self.pool
            )
            if combined is not None:
                frame = combined.frame
                to = FrameAddress(FrameKind.PANES, consumer.node) if combined.folded else to
        self._scatter(to, frame, slots, consumer.node)

    def _put_panes(self, consumer: Consumer, panes: Frame, alone: Bools | None = None) -> None:
        """Distributes partials to their targets."""
        slots, target = consumer.edge.exchange, self.plan.nodes[consumer.node].as_step(s.Panes)
        assert slots is not None and target is not None, "partials are of a GROUP BY"
        keys = [target.step.keys.index(i) for i in slots]  # a partial numbers its keys anew
        to = FrameAddress(folded_as(panes), consumer.node)
        self._scatter(to, panes, keys, consumer.node, alone=alone)

    def _scatter(
        self,
        to: FrameAddress,
        frame: Frame,
        slots: Sequence[int],
        node: int,
        *,
        alone: Bools | None = None,
    ) -> None:
        """Sends rows to their partitions, with their groups. ``alone``: rows that had one group
        before, if not all had.
        """
        h = np.ascontiguousarray(partition_hash(frame, slots, node))
        group, target = group_and_partition(h, self.table)
        before = frame.columns.get(col.PLACE)
        frame = frame.with_(**{col.PLACE: group})
        if self.counter is not None:
            self._count(CHECKS if to.what is FrameKind.CLOSED else node, frame, before, alone)
        if self.context.partitions == 1:
            self.pool.spent.hold(node, frame)
            self.frames[0].setdefault(to, []).append(frame)
            return
        copied = (
            self.copies.find_targets(node, group, target) if to.what is FrameKind.ROWS else None
        )
        target = target if copied is None else copied.target
        order, offsets = scatter_order(target, self.context.partitions)
        for t in range(self.context.partitions):
            rows = order[offsets[t] : offsets[t + 1]]
            if len(rows):
                partition_rows = frame.take(rows if copied is None else copied.rows[rows])
                self.pool.spent.hold(node, partition_rows)
                self.frames[t].setdefault(to, []).append(partition_rows)

    def _count(self, node: int, frame: Frame, before: Column | None, alone: Bools | None) -> None:
        """Counts rows by their groups, and by their previous groups if they had any."""
        assert self.counter is not None, "what is sent is counted"
        if before is None or alone is None or alone.all():
            self.counter.count(node, frame[col.PLACE], frame, before)
            return
        for selected, sources in ((alone, before[alone]), (~alone, None)):
            if selected.any():
                some = frame.where(selected)
                self.counter.count(node, some[col.PLACE], some, sources)

    def group_counts(self) -> list[Counted]:
        """Returns the number of rows sent to each group, if rows are counted."""
        return [] if self.counter is None else self.counter.packed_counts()

    def close(self, stream: int, subjects: Frame) -> None:
        """Sends the subjects of closed elements to their home partitions."""
        self._scatter(FrameAddress(FrameKind.CLOSED, stream), subjects, (0,), 0)

    def pass_on(self, target: int, to: FrameAddress, frames: list[Frame]) -> None:
        """Passes rows that are at their target to a later stage of it."""
        self.frames[target].setdefault(to, []).extend(frames)

    def blobs(
        self,
        controls: Sequence[SourceReport],
        done: Sequence[TaskOutcome],
        source: int,
        times: BroadcastTimes,
    ) -> list[tuple[int, AnyBlob]]:
        """Returns one blob per target. The outcomes of earlier stages go to one target, the
        controls once from source 0, and the fingerprint of the task's inputs (its outcome is the
        last one) to all.
        """
        time_frames, files = times.sent_frames(self.stage) if source == 0 else ({}, [])
        out = list[tuple[int, AnyBlob]]()
        for target in range(self.context.partitions):
            meta: dict[str, Any] = {
                "controls": heads_of(controls, whole=target == 0) if source == 0 else [],
                "done": msgspec.to_builtins(list(done)) if target == 0 else [],
                FROM: self.name,
                AT: self.at,
                "heard": done[-1].input_digest,
                IN_FILES: files,
            }
            meta = {key: value for key, value in meta.items() if value}
            frames = {to: concat(parts) for to, parts in self.frames[target].items()}
            named = {to.name: frame for to, frame in frames.items()}
            terms = self._terms(frames)
            texts = terms.frames("terms") if len(terms) else {}
            blob = Parcel({**named, **texts, **time_frames}, meta)
            # the bytes of a packed blob are counted
            out.append((target, bytes(blob) if self.context.tells_places else blob))
        return out

    def fresh(self) -> Iterator[tuple[Words, Words]]:
        """Returns the identities of the texts of rows that were added since the last call."""
        for target, boxes in enumerate(self.frames):
            for to, parts in boxes.items():
                for frame in parts[self._sent_lengths.get((target, to), 0) :]:
                    yield from self._identities(to, frame)
                self._sent_lengths[target, to] = len(parts)

    def _terms(self, frames: Mapping[FrameAddress, Frame]) -> Terms:
        """Returns the texts that the rows of a blob need: of text slots, and of values that only
        their text represents exactly.
        """
        xs, ys = [], []
        for to, frame in frames.items():
            for x, y in self._identities(to, frame):
                xs.append(x)
                ys.append(y)
        if not xs:
            return Terms.empty()
        return self.pool.pick(np.concatenate(xs), np.concatenate(ys))

    def _identities(self, to: FrameAddress, frame: Frame) -> Iterator[tuple[Words, Words]]:
        """Returns the identities of the texts that a frame needs."""
        if to.what is FrameKind.CLOSED:
            every = frame["file"]
            files = every[starts_segment(every)]
            yield files, files
            return
        node = self.plan.nodes[to.number]
        if to.what is FrameKind.ROWS:
            yield from text_identities(frame, node.input_layouts[to.input])
        else:
            yield from partial_identities(frame, node)


def folded_as(partials: Frame) -> FrameKind:
    """Returns the kind of partials: panes or slices."""
    return FrameKind.SLICES if is_cut(partials) else FrameKind.PANES


def text_identities(
    frame: Frame, layout: Layout, slots: Sequence[int] | None = None
) -> Iterator[tuple[Words, Words]]:
    """Returns the identities in a frame whose texts must travel with it, or be kept; of some
    ``slots``, or of all.
    """
    for i in _with_texts(layout.slots):
        if slots is None or i in slots:
            yield from _identities(frame, layout.slots[i], "", str(i))


@lru_cache(maxsize=4096)
def _with_texts(slots: tuple[Facet, ...]) -> tuple[int, ...]:
    """Returns the slots whose texts may have to travel."""
    return tuple(
        [i for i, facets in enumerate(slots) if Facet.TEXT in facets or Facet.NUM in facets]
    )


def partial_identities(frame: Frame, node: PlanNode) -> Iterator[tuple[Words, Words]]:
    """Returns the identities for partials whose texts must travel: of keys, and of the rows that
    win.
    """
    facets, step = node.input_layouts[0].slots, node.step
    assert isinstance(step, s.Panes | s.RGroup | s.Running), "partials are of groups"
    for n, i in enumerate(step.keys):
        yield from _identities(frame, facets[i], "", str(n))
    for j, spec in enumerate(step.aggregates):
        if spec.slot >= 0:
            yield from _identities(frame, facets[spec.slot], f"a{j}.", "")


def _identities(
    frame: Frame, facets: Facet, before: str, after: str
) -> Iterator[tuple[Words, Words]]:
    x, y, k = f"{before}x{after}", f"{before}y{after}", f"{before}k{after}"
    if x not in frame.columns:
        return
    if Facet.TEXT in facets:
        yield frame[x], frame[y]
    elif Facet.NUM in facets:
        hard = (frame[k] == Kind.HARD_NUMBER) | (frame[k] == Kind.HARD_TIME)
        if hard.any():
            yield frame[x][hard], frame[y][hard]
