"""Runs one stage of one partition: blobs in, rows through the operators, blobs and results out.

The code reads as the data path: receive (controls, terms, rows; rows ahead of their watermark stay
pending), evaluate the nodes of the stage in order, send the output, write state and results. Nodes
without new rows and without a due report are skipped.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from itertools import chain
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt

from levada.checkpoint import state_files
from levada.checkpoint.epoch_context import (
    ROWS,
    EpochContext,
    SourceReport,
    TaskOutcome,
    advance_watermarks,
    load_groups,
    load_plan,
)
from levada.checkpoint.executor_affinity import executor_here
from levada.checkpoint.state_files import open_state
from levada.core import column_names as col
from levada.core.array_types import Longs
from levada.core.event_time import MAX, MIN, Times, WindowKind
from levada.core.expression_budget import ExpressionBudget
from levada.core.frame import Frame, concat, unpack
from levada.core.frozen import frozen
from levada.core.member_columns import values_of_members
from levada.core.query_limits import Memory
from levada.errors import ExcessError, OverMemoryError
from levada.kernels.terms.term_dictionary import Terms
from levada.kernels.terms.term_lookup import TermLookup
from levada.operators.aggregation.panes import at_once, is_folded
from levada.operators.operator_context import OperatorContext, PartitionInfo, Statics
from levada.operators.operator_registry import IN_PIECES, evaluate
from levada.operators.reporting import report_buffer
from levada.operators.reporting.due_reports import shown_within
from levada.operators.row_limit import attribute_to_query
from levada.operators.state import term_retention
from levada.operators.state.element_time_log import KeptTimes
from levada.operators.state.ordered_buffer import OrderedBuffer, order_by
from levada.operators.state.state_parts import ALIKE, State
from levada.operators.state_accounting import count_state_rows
from levada.operators.windowing import element_times
from levada.operators.windowing.element_times import EventTimes
from levada.operators.windowing.report_times import WatermarkProgress, only_closes
from levada.operators.windowing.window_intervals import latest_end, outer
from levada.plan.execution import steps as s
from levada.plan.execution.joins import drop_replicated_inputs, is_alike
from levada.plan.execution.plan import Plan, PlanNode
from levada.plan.execution.query_charges import find_heaviest_query
from levada.plan.execution.report_schedules import Families, Schedule
from levada.plan.execution.sharing_demand import sharing_demand_of
from levada.plan.execution.splittable_joins import find_divisible_joins
from levada.plan.execution.window_table import WindowTable
from levada.runtime.executor import AnyBlob
from levada.runtime.placement.key_group_counters import Counter
from levada.runtime.placement.send_graph import ReceivedCounts
from levada.runtime.placement.task_graph import task
from levada.runtime.task import closed_element_check
from levada.runtime.task.element_time_broadcast import BroadcastTimes
from levada.runtime.task.exchange import Exchange, folded_as, text_identities
from levada.runtime.task.frame_addresses import FrameAddress, FrameKind
from levada.runtime.task.operator_failures import raise_failure
from levada.runtime.task.report_batches import BufferedReports, Expands, expanding, in_steps
from levada.runtime.task.result_writer import Results
from levada.runtime.task.work_note import note_here

# Lists the nodes of a stage of a plan in the order of evaluation, with facts that follow from them
# alone; computed once a plan.


@frozen
class Nodes:
    """The nodes of one stage, inputs before consumers, and those that may act without rows.

    ``timed`` are those below every report of the stage, ``reported`` the others. ``schedules``: the
    distinct schedules of nodes with listed reports, and their families. ``lag``: how long after a
    row has left its windows a node may still report its end, since the next periodic report does
    so. ``closing``: nodes whose reports are made as soon as the watermark reaches them, not when it
    has passed them. ``expanding``: those of ``reported`` that have rows once for every report.
    """

    timed: tuple[PlanNode, ...]
    reported: tuple[PlanNode, ...]
    due: frozenset[int]
    schedules: tuple[Schedule, ...]
    families: Families
    lag: int
    closing: frozenset[int]
    expanding: tuple[Expands, ...]


@lru_cache(maxsize=8)
def nodes_of(plan: str, stage: int) -> Nodes:
    """Returns the nodes of a stage of a plan; computed once."""
    sealed = load_plan(plan)
    every = tuple(sealed.nodes[n] for n in sealed.order if sealed.nodes[n].stage == stage)
    listed = tuple(n for n in every if n.step.needs_reports)
    schedules = tuple(dict.fromkeys(d for n in listed for d in n.schedules.distinct))
    above = _reporting_nodes(every)
    reported = tuple(n for n in every if n.id in above)
    return Nodes(
        tuple(n for n in every if n.id not in above),
        reported,
        frozenset(n.id for n in every if n.step.due),
        schedules,
        Families.from_schedules(schedules),
        max(map(_period, every), default=0),
        _closing(sealed, reported),
        tuple(node for n in reported if (node := expanding(n)) is not None),
    )


def _reporting_nodes(nodes: Sequence[PlanNode]) -> frozenset[int]:
    """Returns the nodes of a stage that act at reports of windows, and the nodes above these."""
    numbers: set[int] = set()
    for node in nodes:
        at_reports = node.layout.report and node.step.reports_of and not node.step.by_changes
        if at_reports or not numbers.isdisjoint(node.inputs):
            numbers.add(node.id)
    return frozenset(numbers)


def _closing(plan: Plan, nodes: Sequence[PlanNode]) -> frozenset[int]:
    """Returns those nodes all of whose reports are closes of windows with bounds [), or of a
    clock.
    """

    def kinds(node: PlanNode) -> tuple[WindowKind, ...]:
        below = (kinds_below for n in node.inputs if (kinds_below := kinds(plan.nodes[n])))
        return node.step.reports_of or next(below, ())

    return frozenset(n.id for n in nodes if only_closes(kinds(n)))


def _period(node: PlanNode) -> int:
    """Returns the longest period of the node's members, if it reports ended rows at periodic
    reports.
    """
    clock = node.step.clock_of_ends
    return 0 if clock < 0 else int(node.windows.step[clock].max(initial=0))


def ends_at(node: PlanNode, at: int, frame: Frame) -> int:
    """Returns the largest end of rows of an input; MAX if it does not follow from their times."""
    if not frame.n:
        return MIN
    table = node.compute_once(_windows_of, at)
    return MAX if table is None else latest_end(frame, node.input_layouts[at], table)


def _windows_of(node: PlanNode, at: int) -> WindowTable | None:
    """Returns the windows of the rows of an input, if these determine the end of the rows."""
    step, width = node.step, len(node.input_layouts[at].windows)
    places = step.row_windows(at, width) if step.ends_by_time else None
    return None if places is None else node.windows.pick(places)


class StageTask:
    """The work of one partition in one stage; call ``run``."""

    def __init__(self, context: EpochContext, plan: Plan, stage: int, partition: int) -> None:
        self.context, self.plan = context, plan
        self.stage, self.partition = stage, partition
        state = self.state = self._open_state()
        # made from the state alone: with the task, all of its rows would await the cycle collector
        older = lambda: chain(term_retention.tables(state), report_buffer.own_terms(state))  # noqa: E731
        worst = partial(find_heaviest_query, plan)
        spent = ExpressionBudget(context.limits, heaviest=worst)
        fleeting = bool(state.theta)
        self.pool = TermLookup(context.seed, older, context.wall_ms, fleeting=fleeting, spent=spent)
        self.inputs: dict[tuple[int, int], list[Frame]] = {}
        self.partials: dict[int, list[Frame]] = {}  # panes folded at their senders, by node
        self.closed: dict[int, list[Frame]] = {}  # subjects of closed elements, by stream
        self.controls, self.done, self.heard = list[SourceReport](), list[TaskOutcome](), set[str]()
        self.times = BroadcastTimes(context)
        self.results = Results(plan, self.pool)
        self.nodes, self.touched = nodes_of(context.plan, stage), 0
        self.held = MemoryMeter(self.context.memory)
        self.began, self.started = time.thread_time(), time.perf_counter()
        self.arrivals = ReceivedCounts()
        # for each node: CPU seconds, and its input rows
        self.cpu, self.rows = dict[str, float](), dict[str, int]()
        self.new_terms: list[tuple[Terms, int]] = []
        self.given_rows: Counter | None = None
        if context.load_detail == ROWS:
            self.given_rows = Counter(len(load_groups(context.group_table_file).partition))

    def _open_state(self) -> State:
        self.opened = state_files.open_(
            self.context.root, self.stage, self.partition, self.context.epoch
        )
        return open_state(self.context, self.stage, self.partition, self.opened)

    def run(self, blobs: Sequence[AnyBlob | npt.NDArray[np.uint8]]) -> list[tuple[int, Any]]:
        """Returns the stage's blobs for the next stage, or its outcome."""
        if self.stage == 1:  # before new files need space
            mine = self.context.files_to_delete[self.partition :: self.context.partitions]
            state_files.delete(self.context.root, mine)
        if self.context.is_first_epoch:
            self._forget_removed()
        arrived = self._receive(blobs)
        input_rows = sum(
            [frame.n for frame in chain(*self.inputs.values(), *self.partials.values())]
        )
        read = sum([control.elements for control in self.controls])
        self.pool.spent.rows = max(input_rows, read)
        exchange = Exchange(self.context, self.plan, self.stage, self.pool)
        self._forward(exchange)
        self.progress = self._progress()
        self.env = self._env()
        ends = closed_element_check.check(self.closed, self.context.plan, self.env)
        self.dead = max(self._latest_ends(), ends)
        release_rows(self.plan, self.inputs, self.state, self.progress.new)
        waiting = [*chain(*self.inputs.values(), *self.partials.values())]
        self.held.begin(waiting, self.progress, self.plan.read_stream_numbers)
        self.waiting = {node for node, _ in self.inputs} | set(self.partials)
        self._evaluate(self.nodes.timed, exchange)
        self._report(exchange)
        self._keep_terms(arrived)
        return self._finish(exchange)

    def _hold(self, node: PlanNode, out: Frame, exchange: Exchange) -> None:
        """Measures memory after the output of a node. Raises ``OverMemoryError``."""
        if not self.held.memory.bytes:
            return
        sent = (parts for boxes in exchange.frames for parts in boxes.values())
        waits = (*self.inputs.values(), *self.partials.values(), *self.results.frames.values())
        name = type(node.step).__name__
        self.held.see(
            chain.from_iterable(chain(waits, sent, ((out,),))), self.state.unsaved_bytes, name
        )

    def _evaluate(self, nodes: Sequence[PlanNode], exchange: Exchange) -> None:
        context, progress = self.context, self.env.progress
        moved = progress.has_moved or context.is_first_epoch or context.replacement is not None
        work = note_here()
        for node in nodes:
            if node.id in self.waiting or (moved and node.id in self.nodes.due):
                if work is not None:
                    work.begin(node.id)
                began, name = time.thread_time(), str(node.id)
                try:
                    self._node(node, exchange)
                except BaseException as error:
                    raise_failure(error, node.id)
                self.cpu[name] = self.cpu.get(name, 0.0) + time.thread_time() - began

    def _report(self, exchange: Exchange) -> None:
        """Makes the due reports, in steps that bound the expanded rows and the texts made on the
        way.
        """
        nodes, env = self.nodes.reported, self.env
        reports = [(node, self.inputs.get((node.id, 0), ())) for node in self.nodes.expanding]
        steps = in_steps(nodes, reports, env)
        if len(steps) == 1:
            self._evaluate(nodes, exchange)
            return
        arrived = BufferedReports(nodes, self.inputs, self.partials)
        for i, step in enumerate(steps):
            partials = self.partials if i == 0 else {}  # of panes: the first step takes them
            partials.update(arrived.take(step, self.nodes.closing, self.inputs))
            before = self.pool.table_count, len(self.new_terms)
            self.env = replace(env, progress=step.progress, partials=partials)
            self._evaluate(nodes, exchange)
            self._release(*before, exchange)

    def _release(self, tables: int, term_count: int, exchange: Exchange) -> None:
        """Releases the texts of a step that no output or remembered row shows."""
        waiting_terms = [
            *report_buffer.new_terms(self.state),
            *(terms for terms, _ in self.new_terms[term_count:]),
        ]
        identities = [
            *self.results.fresh(),
            *exchange.fresh(),
            *((t.x, t.y) for t in waiting_terms),
        ]
        self.pool.release(tables, identities)

    def _env(self) -> OperatorContext:
        """Returns the context of this task's operators."""
        context, replacement = self.context, self.context.replacement
        table = load_groups(context.group_table_file)
        return OperatorContext(
            self.state,
            self.pool,
            self.progress,
            self._element_times(),
            PartitionInfo(self.partition, table.partition, table.division),
            Statics(
                context.is_first_epoch,
                context.replaced_graphs,
                replacement.instant if replacement else None,
            ),
            self.partials,
            limits=context.limits,
            shares=sharing_demand_of(self.plan),
        )

    def _forget_removed(self) -> None:
        """Drops the state of nodes that are no longer in the plan; no number is used again."""
        for key in self.state.keys(""):
            number = key.split(".", 1)[0]
            if number.isdigit() and int(number) not in self.plan.nodes:
                self.state.replace(key, [])

    def _receive(self, blobs: Sequence[AnyBlob | npt.NDArray[np.uint8]]) -> list[Terms]:
        """Receives rows by node and input, controls once each, times of flagged streams, and
        terms.
        """
        arrived: list[Terms] = []
        for blob in blobs:
            frames, meta = unpack(blob)
            self.controls += msgspec.convert(meta.get("controls", []), list[SourceReport])
            self.done += msgspec.convert(meta.get("done", []), list[TaskOutcome])
            self.heard.add(meta.get("heard", ""))
            self.times.hear(meta)
            rows = 0
            for name, frame in frames.items():
                match FrameAddress.parse(name):
                    case FrameAddress(FrameKind.ROWS, node, at):
                        self.inputs.setdefault((node, at), []).append(frame)
                        rows += frame.n
                    case FrameAddress(FrameKind.PANES | FrameKind.SLICES, node):
                        rows += frame.n
                        self.partials.setdefault(node, []).append(frame)
                    case FrameAddress(FrameKind.CLOSED, stream):
                        self.closed.setdefault(stream, []).append(frame)
                    case FrameAddress(FrameKind.TIMES, stream):
                        self.times.add(stream, frame)
            self.arrivals.count(meta, rows, blob)
            if "terms.id" in frames:
                arrived.append(Terms.from_frames(frames, "terms"))
        for terms in arrived:
            self.pool.add(terms)
        return arrived

    def _forward(self, exchange: Exchange) -> None:
        """Passes rows of the intake to a later stage of their partition."""
        for node, at in list(self.inputs):
            if self.plan.nodes[node].stage > self.stage:
                to = FrameAddress(FrameKind.ROWS, node, at)
                exchange.pass_on(self.partition, to, self.inputs.pop((node, at)))
        for node in list(self.partials):
            if self.plan.nodes[node].stage > self.stage:
                for partial in self.partials.pop(node):
                    to = FrameAddress(folded_as(partial), node)
                    exchange.pass_on(self.partition, to, [partial])

    def _progress(self) -> WatermarkProgress:
        times = advance_watermarks(self.context, self.controls)
        return WatermarkProgress(
            times.old, times.new, times.find_ended_streams(self.context, self.controls)
        )

    def _latest_ends(self) -> int:
        """Returns the largest end of all rows with event times that have arrived."""
        dead = max(
            [
                MIN,
                *(
                    int(f[col.END].max(initial=MIN))
                    for f in chain(*self.partials.values())
                    if is_folded(f)
                ),
            ]
        )
        for (node, at), frames in self.inputs.items():
            target = self.plan.nodes[node]
            if not target.input_layouts[at].report:
                dead = max([dead, *(ends_at(target, at, frame) for frame in frames)])
        return dead

    def _keep_terms(self, arrived: list[Terms]) -> None:
        """Keeps terms as long as the rows that they arrived with, or were computed for (report rows
        are gone by then).
        """
        retained = [*(arrived if self.dead > MIN else []), *(terms for terms, _ in self.new_terms)]
        if not (retained or self.state.pieces(term_retention.KEY)):
            return
        old = self.progress.old[self.plan.read_stream_numbers]
        horizon = min(int(old.min(initial=MAX)) - 1, MAX - 1)
        dead = max([self.dead, *(d for _, d in self.new_terms)])
        dead = dead if dead >= MAX else dead + self.nodes.lag
        term_retention.insert(self.state, Terms.merge(retained), dead, horizon)

    def _keep_made(self, node: PlanNode, frame: Frame) -> None:
        """Keeps the texts that a node has made for rows with event times, while these can count."""
        new_slots = node.step.makes(len(node.layout.slots))
        if not len(new_slots) or node.layout.report or not frame.n:
            return
        if pairs := list(text_identities(frame, node.layout, new_slots)):
            dead = int(outer(frame, node.layout, node.windows)[1].max())
            self.new_terms += [(self.pool.pick_charged(x, y, node.id), dead) for x, y in pairs]

    def _element_times(self) -> dict[int, EventTimes]:
        """Returns the distinct event times of all released elements, for nodes with listed
        reports.
        """
        of_families = [d for d, _, _ in self.nodes.families.parts]
        counted_streams = element_times.counted_streams(of_families)
        known: dict[int, EventTimes] = {}
        for i in sorted({i for d in of_families for i in d.streams if i >= 0}):
            fresh, w = self.times.frames_of(i), int(self.progress.new[i])
            times = KeptTimes(self.state, f"times.{i}", fresh, w, with_counts=i in counted_streams)
            known[i] = times.seen
            if fresh or self.progress.has_moved:
                times.keep(self._matter(i, times.seen))
        return known

    def _matter(self, stream: int, times: EventTimes) -> npt.NDArray[np.bool_]:
        """Returns a mask of the times of a stream that still matter to listed reports."""
        horizon = int(self.progress.new[self.plan.read_stream_numbers].min(initial=MAX))
        keep = np.zeros(len(times.ts), bool)
        for number in np.unique(self.nodes.families.first_equal({stream: times.ts})).tolist():
            schedule = self.nodes.schedules[number]
            stream_windows = [
                w for w, i in zip(schedule.windows, schedule.streams, strict=True) if i == stream
            ]
            keep |= element_times.retain(
                times, stream_windows, schedule.start, horizon, schedule.show_empty
            )
        return keep

    def _node(self, node: PlanNode, exchange: Exchange) -> None:
        """Evaluates a node if it has rows or reports, and routes its output."""
        waiting = [self.inputs.pop((node.id, i), None) for i in range(max(len(node.inputs), 1))]
        frames = [concat(w) if w else None for w in waiting]
        if node.id not in self.nodes.due and all(f is None for f in frames):
            return
        for frame in frames:
            if frame is not None:
                self.pool.spent.hold(node.id, frame)
        received = [f for f in (*frames, *self.env.partials.get(node.id, ())) if f is not None]
        rows, name = sum([f.n for f in received]), str(node.id)
        self.rows[name] = self.rows.get(name, 0) + rows
        self.touched += rows
        self.held.give(received)
        if self.given_rows is not None:
            distinct_inputs = drop_replicated_inputs(node.step, frames, received)
            self.given_rows.count_given(
                distinct_inputs, joins=node.id in find_divisible_joins(self.plan).joins
            )
        output = self._output_of(node, frames)
        first = next(output, None)
        if first is None:
            return
        second = next(output, None)
        if second is None:
            self._pass(node, first, exchange)
        else:
            for out in chain((first, second), output):
                self._pass(node, out, exchange, fold_at_once=True)

    def _output_of(self, node: PlanNode, frames: Sequence[Frame | None]) -> Iterator[Frame]:
        """Yields the output rows of a node, those of a join in pieces. Raises ``ExcessError``."""
        try:
            if (in_pieces := IN_PIECES.get(type(node.step))) is not None:
                yield from in_pieces(node, frames, self.env)
            elif (out := evaluate(node, frames, self.env)) is not None and out.n:
                yield out if col.PLACE in out else self._at_home(node, out)
        except ExcessError as error:
            raise attribute_to_query(error, node, frames) from None

    def _at_home(self, node: PlanNode, out: Frame) -> Frame:
        """Returns the rows that a node has created in the home partitions of its members."""
        assert (node.home >= 0).all(), f"the rows of a {type(node.step).__name__} have groups"
        return out.with_(**{col.PLACE: self.env.home(node).group[out["op"]]})

    def _pass(
        self, node: PlanNode, out: Frame, exchange: Exchange, *, fold_at_once: bool = False
    ) -> None:
        """Routes output rows to their readers. ``fold_at_once``: they are one of many parts, and
        are aggregated at once if possible.
        """
        self._hold(node, out, exchange)
        if not getattr(node.step, "relaxed", False):  # picks select from the rows of these
            self.pool.spent.hold(node.id, out)
        if isinstance(node.step, s.Emit):
            self.results.add(node, out.drop(col.PLACE))
            return
        self._keep_made(node, out)
        for consumer, frame in exchange.along(node, out):
            target = self.plan.nodes[consumer.node]
            self.pool.spent.hold(target.id, frame)
            adds_up = fold_at_once and isinstance(
                target.step, s.Panes | s.Filter | s.Extend | s.ByWindow
            )
            if adds_up or is_folded(frame):
                self._fold(target, frame, exchange)
            else:
                self.inputs.setdefault((consumer.node, consumer.input), []).append(frame)
                self.waiting.add(consumer.node)

    def _fold(self, target: PlanNode, frame: Frame, exchange: Exchange) -> None:
        """Processes a part of a node's input: into partial aggregates, or through nodes that
        evaluate each row alone.
        """
        panes = target.as_step(s.Panes)
        if panes is None:
            for out in self._output_of(target, [frame]):
                self._pass(target, out, exchange, fold_at_once=True)
        elif (partial := at_once(panes, frame, self.pool)) is not None and partial.n:
            self.partials.setdefault(target.id, []).append(partial)
            self.waiting.add(target.id)

    def _finish(self, exchange: Exchange) -> list[tuple[int, Any]]:
        done = TaskOutcome(
            self.stage, self.partition, executor=executor_here(), input_rows=self.touched,
            received_by_sender=self.arrivals.senders, received_by_executor=self.arrivals.places,
            transport=self.arrivals.carried, state_rows=self.state.touched,
            peak_bytes=self.held.peak,
            shown_reports=shown_within(self.plan, self.env.shown), join_strategies=self.env.forms,
        )  # fmt: skip
        if self.context.query_limits.any("state"):
            done.window_rows = count_state_rows(
                self.plan, self.state, self.progress.new, self.partition
            )
        done.record_inputs(self.controls, self.heard)
        file = self.state.file or None
        if self.state.changed:
            stem = f"{self.context.epoch}-{self.stage}-{self.partition}"
            file = state_files.write(self.context.root, "state", stem, self.state.finish())
        state_files.delete(self.context.root, self.state.unlisted_files())
        self.opened.keep(report_files(done, self.state, file, whole=self.context.reports_all_files))
        done.segment, done.counts = self.results.write(self.context, self.stage, self.partition)
        done.result_bytes = self.results.sizes
        done.cpu_by_node, done.rows_by_node, done.relaxed_joins = (
            self.cpu,
            self.rows,
            exchange.met.snapshot(),
        )
        done.join_rows = exchange.flows.snapshot()
        done.cpu_seconds = time.thread_time() - self.began
        done.seconds = time.perf_counter() - self.started
        if self.given_rows is not None:
            done.rows_by_group, done.divisible_rows = self.given_rows.given_counts()
        if self.context.counted_groups:
            done.segment_size = state_files.size_of(self.context.root, done.segment)
            done.sent = exchange.group_counts()
            exchange.name = task(self.stage, self.partition)
        if self.stage < self.plan.stages:
            return exchange.blobs(self.controls, [*self.done, done], self.partition, self.times)
        controls = self.controls if self.partition == 0 else []
        return [(-1, msgspec.json.encode({"controls": controls, "done": [*self.done, done]}))]


# Measures the bytes of rows in a task, if ``--memory`` bounds them.
#
# Counted are rows that wait for operators, and the output of operators: columns of frames, in the
# task's own memory or in a received blob. The other memory of operators is in proportion to that.
# So a task may hold a sixth of its memory (``Memory.most``). A task with more raises
# ``OverMemoryError`` before the system ends it.
#
# Cost: a look at each frame that waits, and at each output frame; nothing without a bound.


class MemoryMeter:
    """The present bytes of a task and their ``peak``. ``low``, ``high``: the range of event times
    of its rows.
    """

    def __init__(self, memory: Memory) -> None:
        self.memory = memory
        self.peak, self.low, self.high, self.input_bytes = 0, 0, 0, 0

    def begin(self, frames: Sequence[Frame], progress: WatermarkProgress, heard: Longs) -> None:
        """Measures the rows at the beginning of an epoch. Raises ``OverMemoryError``.

        ``progress``: the watermarks of streams, of which ``heard`` are read. A smaller epoch ends
        between those before and after this one; rows of joins may have older times.
        """
        if self.memory.bytes:
            self.low, self.high = _span(frames, progress.old[heard], progress.new[heard])
            self.see(frames, 0, "what it was sent")

    def give(self, frames: Iterable[Frame]) -> None:
        """Notes the input of a node, which no longer waits and is held until the node is done."""
        self.input_bytes = _bytes(frames) if self.memory.bytes else 0

    def see(self, frames: Iterable[Frame], other_bytes: int, whose: str) -> None:
        """Measures the present bytes. ``whose``: the node of the last output. Raises
        ``OverMemoryError``.
        """
        if not self.memory.bytes:
            return
        now = self.input_bytes + other_bytes + _bytes(frames)
        self.peak = max(self.peak, now)
        if now > self.memory.most:
            raise self._memory_error(now, whose)

    def _memory_error(self, now: int, whose: str) -> OverMemoryError:
        middle = (self.low + self.high) // 2
        return OverMemoryError(
            f"A task would hold {now:,} bytes of rows, the last of them of {whose}: more than a "
            f"sixth of its {self.memory.bytes:,} bytes of memory.",
            held=now,
            middle=middle if middle > self.low else None,
            width=max(middle - self.low, 1),
            end=self.high,
        )


def _span(frames: Sequence[Frame], old: Times, new: Times) -> tuple[int, int]:
    """Returns the event times between which a smaller epoch can end; equal ones if there are
    none.
    """
    moves = new > old
    if not moves.any():
        return 0, 0
    times = [f[col.least(0)] for f in frames if f.n and col.least(0) in f]
    low = max(min((int(ts.min()) for ts in times), default=0), int(old[moves].min()))
    ends = new[moves][new[moves] < MAX]
    high = max((int(ts.max()) for ts in times), default=0)
    high = min(high, int(ends.max(initial=MIN))) if len(ends) else high
    if high > low:
        return low, high
    return low, int(ends.max()) if len(ends) else _newest(frames)


def _newest(frames: Iterable[Frame]) -> int:
    """Returns the largest event time of the rows."""
    columns = (f[name] for f in frames if f.n for name in f.columns if name.startswith("lo"))
    return max((int(ts.max()) for ts in columns), default=0)


def _bytes(frames: Iterable[Frame]) -> int:
    return sum(c.nbytes for frame in frames for c in frame.columns.values())


# Buffers pending rows: rows that are read but not yet below their stream's watermark
# (docs/semantics.md#progress).
#
# The operators of an epoch receive exactly the elements with W(N-1) <= ts < W(N). Later rows wait
# in order of time (``operators/state/ordered_buffer``), separately for each stream.


TIME = col.least(0)
Waiting = dict[tuple[int, int], list[Frame]]  # new rows by node and input


class Input(NamedTuple):
    """An input of a node, and the streams with waiting rows for it."""

    node: PlanNode
    at: int
    streams: list[int]

    def key(self, stream: int) -> str:
        """Returns the state key of a stream's waiting rows."""
        alike = ALIKE if is_alike(self.node.step, self.at) else ""
        return f"pending.{self.node.id}.{self.at}.{stream}{alike}"


def release_rows(plan: Plan, inputs: Waiting, state: State, watermarks: Times) -> None:
    """Replaces the new rows of every input from the intake by those that are released now; the rest
    waits.
    """
    waiting = _waiting(state)
    for node_id, at in sorted({*inputs, *waiting}):
        node, streams = plan.nodes.get(node_id), waiting.get((node_id, at), [])
        if node is None:
            for key in state.keys(f"pending.{node_id}.{at}."):
                state.replace(key, [])
            continue
        producer = plan.nodes[node.inputs[at]]
        if not producer.layout.windows or producer.stage > 0:
            # static rows, also united with others, and rows that have waited already
            continue
        frames = inputs.pop((node_id, at), [])
        up = _release_input(Input(node, at, streams), frames, state, watermarks)
        if up is not None and up.n:
            inputs[(node_id, at)] = [up]


def _waiting(state: State) -> dict[tuple[int, int], list[int]]:
    """Returns the streams with waiting rows, by node and input."""
    streams: dict[tuple[int, int], list[int]] = {}
    for key in sorted(state.keys("pending.")):
        node, at, stream = map(int, key.rstrip(ALIKE).split(".")[1:])
        streams.setdefault((node, at), []).append(stream)
    return streams


def _release_input(to: Input, frames: list[Frame], state: State, watermarks: Times) -> Frame | None:
    streams, start = _stream_and_start(to.node, to.at)
    alike = to.node.windows.has_one_stream
    of = streams[:1] if alike else streams
    w = np.where(of >= 0, watermarks[np.maximum(of, 0)], MAX)
    w = w if len(of) == len(streams) else np.full(len(streams), w[0])
    up: list[Frame] = []
    rest: list[Frame] = []
    for stream in to.streams:
        up += OrderedBuffer(state, to.key(stream), TIME).take_below(int(watermarks[stream]))
    for frame in frames:
        _split(frame, w, start, up, rest)
    left = [f for f in rest if f.n]
    if left:
        new = concat(left)
        of = of if alike else streams[new["op"]]
        for stream in of.tolist() if alike else np.unique(of).tolist():
            # each has its own watermark
            OrderedBuffer(state, to.key(stream), TIME).add(new.where(of == stream))
    released = [f for f in up if f.n]
    return order_by(concat(released), TIME) if released else None


def _split(frame: Frame, w: Times, start: Times, up: list[Frame], rest: list[Frame]) -> None:
    """Divides rows into released and waiting ones; drops rows before their query's start."""
    op, ts = frame["op"], frame[TIME]
    if not frame.n:
        return
    if int(ts.max()) < int(w.min()) and int(ts.min()) >= int(start.max()):
        up.append(frame)
        return
    if (w == w[0]).all() and int(ts[0]) >= int(start.max()) and (ts[1:] >= ts[:-1]).all():
        cut = int(ts.searchsorted(w[0]))
        up.append(frame.slice(0, cut))
        rest.append(frame.slice(cut, frame.n))
        return
    counts = ts >= values_of_members(start, op)
    now = ts < values_of_members(w, op)
    up.append(frame.where(now & counts))
    rest.append(frame.where(~now & counts))


def _stream_and_start(node: PlanNode, at: int) -> tuple[npt.NDArray[np.int32], Times]:
    """Returns, for each member, the stream of the one window of this input, and the start of its
    rows.
    """
    places = node.step.row_windows(at, 1)
    assert places is not None, f"rows with event times wait for a {type(node.step).__name__}"
    return node.windows.stream[places[0]], node.windows.start[places[0]]


# The report of a stage task on the files that its partition needs: those added and removed since
# the initial state. It contains all files if the task began without a state of its own (another
# group table, a new partition), or if the driver asks for all.
#
# The initial state of a partition follows from the context of the epoch alone. So it is the same
# for all attempts, though their new files have other names.


def report_files(done: TaskOutcome, state: State, file: str | None, *, whole: bool) -> set[str]:
    """Reports the files after an epoch, and returns them. ``file`` lists all others (None: there is
    no state). ``whole``: report all files.
    """
    names = {*state.files(), *([file] if file else [])}
    done.lists_all_files = whole or not state.file
    if done.lists_all_files:
        done.state, done.files = file, sorted(names)
    elif file != state.file:
        before = state.first_files()
        done.state = file
        done.files, done.unneeded_files = sorted(names - before), sorted(before - names)
    return names
