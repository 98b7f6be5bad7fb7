"""Runs the intake of one task: read, parse, find elements, match, evaluate the nodes before any
exchange, send.

One task reads a bundle of references (or the static files of new queries) and sends one blob to
every target. The head of a blob has a control record per source partition. Late and malformed input
goes to side files that the manifest names.
"""

from __future__ import annotations

import json
import platform
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any, NamedTuple, TypeAlias, TypeVar

import msgspec
import numpy as np
import pyarrow as pa

from levada.checkpoint import state_files
from levada.checkpoint.epoch_context import (
    EpochContext,
    SourceReport,
    TaskOutcome,
    load_plan,
    load_setup,
    text_of,
)
from levada.connectors.config.input_formats import DERIVED
from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.ingest.elements import Elements, elements_of
from levada.connectors.ingest.lateness import (
    Dead,
    dead_records,
    future,
    late_records,
    place_of,
    some_reasons,
)
from levada.connectors.ingest.parse.documents import parse_document
from levada.connectors.ingest.parse.message_batches import parse_messages
from levada.connectors.ingest.parse.ntriples import Triples, parse
from levada.connectors.ingest.subject_descriptions import describe_subjects
from levada.connectors.ingest.tables.mapped_rows import mapped_of
from levada.connectors.ingest.tables.member_names import members_of_rows, predicates_of
from levada.connectors.ingest.tables.tuple_rows import Tuples, tuples_of
from levada.connectors.sources.file_errors import FileFaults, is_of_data, reason
from levada.connectors.sources.message_headers import MessageHeaders
from levada.connectors.sources.message_texts import Messages
from levada.connectors.sources.read_split import CsvChunk, JsonChunk
from levada.connectors.sources.source_reader import FromOutside, SplitContent, headers_of, read
from levada.connectors.sources.splits import AnyReference, DerivedSplit, FileSplit, Measured
from levada.core.array_types import Bools, Bytes, Longs
from levada.core.event_time import MAX, MIN
from levada.core.expression_budget import ExpressionBudget
from levada.core.frame import Frame
from levada.errors import FileFault, LevadaError, SourceError
from levada.kernels.terms.term_lookup import TermLookup
from levada.operators.matching.pattern_table import Patterns, patterns_of
from levada.operators.matching.scan_rows import constants, match_, scan
from levada.operators.matching.slot_columns import Chunk
from levada.operators.matching.star_match import subject_numbers
from levada.operators.operator_context import OperatorContext
from levada.operators.operator_registry import evaluate
from levada.operators.results.result_segments import timed_statements
from levada.operators.windowing import element_times
from levada.plan.execution import steps as s
from levada.plan.execution.plan import Plan, PlanNode
from levada.plan.execution.query_charges import find_heaviest_query
from levada.plan.execution.sharing_demand import sharing_demand_of
from levada.runtime.executor import AnyBlob
from levada.runtime.placement.task_graph import STATIC
from levada.runtime.task import static_rows
from levada.runtime.task.closed_element_check import subjects_of
from levada.runtime.task.element_time_broadcast import BroadcastTimes, listed_streams
from levada.runtime.task.exchange import Exchange
from levada.runtime.task.operator_failures import raise_failure
from levada.runtime.task.static_reader import StaticPart, StaticReader
from levada.runtime.task.static_rows import matching, sum_weights
from levada.runtime.task.work_note import READING, RECORDS, extra_seconds, note_here

# Evaluates the nodes of stage 0 where rows are read, before any exchange (filters, computed
# variables).


def run_ingest_operators(
    plan: Plan, env: OperatorContext, exchange: Exchange, node: PlanNode, frame: Frame
) -> None:
    """Sends a first node's rows along its edges, through the nodes of stage 0.

    A union in stage 0 is one of static data: it passes on the rows of each input.
    """
    for consumer, rows in exchange.along(node, frame):
        target = plan.nodes[consumer.node]
        kind = type(target.step)
        assert kind.rowwise, f"a {kind.__name__} needs an exchange first"
        work = note_here()
        before = READING if work is None else work.node
        if work is not None:
            work.begin(target.id)
        try:
            out = evaluate(target, (rows,), env)
        except BaseException as error:
            raise_failure(error, target.id)
        if work is not None:
            work.begin(before)
        if out is not None and out.n:
            env.pool.spent.hold(target.id, out)
            run_ingest_operators(plan, env, exchange, target, out)


TableChunk: TypeAlias = CsvChunk | JsonChunk | pa.Table


class Statements(NamedTuple):
    """The statements and elements of a reference, the reference to their lines, its messages, and
    the rows from which a mapping made them.
    """

    triples: Triples
    elements: Elements
    reference: FileSplit
    messages: Messages | None
    rows: TableChunk | None = None


# Accounts for the elements of a reference: each is kept, late, dead or cut, and none is lost.
#
# The driver counts the elements of a reference when it cuts it from a file, or a task does before
# it parses them. Then the task counts the elements whose fate it knows. Different code makes the
# two counts, so a difference is a bug in one of them. If the driver can only guess (the elements in
# a document), nothing is compared.
#
# In elements of several lines, an unreadable line is dead alone, as a part of its element or all of
# it. Then as many elements may be missing as there are such lines.


def count_accounted(
    config: StreamConfig, reference: FileSplit, content: Elements | Tuples, messages: int | None
) -> int:
    """Counts the elements of the reference with a known fate. ``messages``: the number of messages
    of the reference, if it has messages.
    """
    elements = reference.elements
    accepted = content.n if isinstance(content, Tuples) else content.elements
    explained = accepted + len(content.late) + len(content.dead) - content.alone + content.cut
    if messages is not None:  # offsets without one are not missing
        lines = config.element == "line"
        return elements if lines else elements - messages + explained + content.blank
    if config.guessed or reference.format == DERIVED:
        return elements
    if config.element == "document" and not explained and not content.dead:
        return elements  # without a statement it is no element
    if config.element != "line":
        explained += min(max(elements - explained, 0), content.alone)
    return explained


def apply_message_headers(
    content: Elements | Tuples,
    messages: Messages | None,
    headers: MessageHeaders,
    *,
    wall: int,
    ahead: int,
) -> int:
    """Adds unreadable offsets and headers to the dead letters. Returns the watermark that the
    producer declares (MIN: none), if it is at most ``ahead`` of the clock.
    """
    for offset, cause in (*(messages.lost if messages is not None else ()), *headers.wrong):
        content.dead.append(Dead(offset, cause, ""))
    if headers.complete > wall + ahead:
        content.dead.append(Dead(headers.complete_at, f"Levada-Watermark: {future(ahead)}", ""))
        return MIN
    return headers.complete


# Reads the results of a query as the triples of a derived stream: the part of tasks.
#
#     segments --the query's rows--> solutions --its template--> N-Triples with times --the byte
#     kernel--> columns
#
# As many tasks read an epoch's results of a query as there are segments with them, or one if they
# are few (``runtime.driver.derived_streams``). The guarantees of one task hold for several:
#
# - A report is one element and counts once: a task lists the reports of its triples, and the driver
#   counts each of them once (``runtime.driver.stream_progress``).
# - A triple occurs once in a report, for all consumers: rows of several tasks meet behind an
#   exchange, and equal triples of one time are one occurrence there
#   (``operators.windowed.deduplicate``), also where they are counted
#   (``operators.windowing.element_times``). In the totals of a stream (``levada status``) a
#   triple of two segments counts twice.
# - Blank nodes keep their names: a node of the input that passes through remains itself, and a node
#   of the template differs in every solution, like the published one. Equal-looking nodes of
#   a report are numbered through all segments, so such a task also reads the solutions of the
#   segments before its own.
# - The elements of an epoch have no order, and none is late. The completeness of the stream follows
#   from its producer, not from the elements.
#
# Cost: for each triple that of writing and reading a line (about 1 us); for each segment a look at
# the rows of queries of the shape; if the template has blank nodes, a text for each earlier
# solution.


@lru_cache(maxsize=256)
def _config(stream: str) -> StreamConfig:
    return StreamConfig(stream, "", DERIVED, element="report")


def made_config(reference: DerivedSplit) -> StreamConfig:
    """Returns the configuration of a derived stream: elements are reports, the time follows each
    triple.
    """
    return _config(reference.stream)


def made_triples(reference: DerivedSplit, context: EpochContext) -> tuple[Triples, FileSplit]:
    """Returns the triples of the query's reports, and the reference as one to their text."""
    plan = load_plan(reference.path)
    text = timed_statements(
        plan,
        plan.queries[reference.name],
        reference.segments,
        partial(state_files.map_, context.root),
        reference.before,
    )
    triples = parse(text, quads=False, timed=True, seed=context.seed, document=reference.document)
    assert not triples.bad, f"a query makes well-formed triples: {triples.bad[:1]}"
    return triples, reference.text(len(text), DERIVED)


def report_times(reference: AnyReference, elements: Elements) -> str:
    """Returns the reports of the elements of a part, for the driver; "" if it is the only part."""
    several = isinstance(reference, DerivedSplit) and reference.parts > 1
    return text_of(elements.times) if several else ""


Leaf = TypeVar("Leaf", bound=s.Leaf)


class Payload(msgspec.Struct):
    """The work of one intake task: references to read; the ``constants``; parts of ``static`` data,
    or a file of their rows.
    """

    references: list[AnyReference] = []
    constants: bool = False
    static: list[StaticPart] = []
    gathered: str = ""
    reader: str = ""  # the name for counts of the task's output


class IntakeTask:
    """The intake of one task."""

    def __init__(self, context: EpochContext) -> None:
        self.context = context
        self.plan: Plan = load_plan(context.plan)
        self.setup = load_setup(context.setup)
        spent = ExpressionBudget(context.limits, heaviest=partial(find_heaviest_query, self.plan))
        self.pool = TermLookup(context.seed, wall=context.wall_ms, spent=spent)
        self.env = OperatorContext.for_rows(self.pool)
        self.exchange = Exchange(context, self.plan, 0, self.pool)
        self.controls: list[SourceReport] = []
        self.times = BroadcastTimes(context)
        self.side: dict[str, list[dict[str, Any]]] = {}
        self.static = StaticReader(context.root, context.epoch, context.seed)
        self.hits: dict[int, Counter[str]] = {}  # by stream: the triples that matched each pattern

    def run(self, payload: Payload) -> list[tuple[int, AnyBlob]]:
        """Returns the blobs of this task, one per target."""
        began = time.thread_time()
        self.read(payload)
        self._write_side()
        last = {control.stream: control for control in self.controls}
        for stream, hits in self.hits.items():
            last[stream].pattern_matches = dict(hits)
        cpu, met = time.thread_time() - began, self.exchange.met.snapshot()
        outcome = TaskOutcome(
            0,
            0,
            cpu_seconds=cpu,
            executor=self.exchange.at,
            relaxed_joins=met,
            join_rows=self.exchange.flows.snapshot(),
        )
        outcome.cpu_by_node = {
            str(node): s for node, s in self.pool.spent.by_node("cpu").items() if node >= 0
        }
        outcome.unneeded_files = self.times.write_apart()
        outcome.static_load = self.static.finish() if payload.static else None
        if self.context.counted_groups:
            self.exchange.name = outcome.reader = payload.reader or STATIC
            outcome.sent = self.exchange.group_counts()
        return self.exchange.blobs(self.controls, [outcome], 0, self.times)

    def read(self, payload: Payload) -> None:
        """Reads the payload and routes its rows; writes no files."""
        self.pool.spent.rows = sum([reference.elements for reference in payload.references])
        if payload.constants:
            self._constants()
        if payload.static:
            self._static(payload.static)
        if payload.gathered:
            for node, frame in static_rows.read_gathered(
                self.context, self.plan, self.pool, payload.gathered
            ):
                self.pool.spent.rows += frame.n
                run_ingest_operators(self.plan, self.env, self.exchange, node, frame)
        work = note_here()
        for reference in payload.references:
            if work is not None:
                work.begin(RECORDS, extra_seconds(reference.size))
            self._reference(reference)
        if work is not None:
            work.begin(READING)

    def _reference(self, reference: AnyReference) -> None:
        stream = self.plan.streams.index(reference.stream)
        w = self.context.streams[stream].watermark
        config = next((c for c in self.setup.streams if c.name == reference.stream), None)
        if config is None:
            assert isinstance(reference, DerivedSplit), "a stream without configuration is made"
            config = made_config(reference)
            bounds = {"late_below": w, "future_above": MAX}  # windows may close far in the future
        else:
            bounds = {"late_below": w, "future_above": self.context.wall_ms + config.future_ms}
        try:
            control = (self._tuples if config.tabular else self._triples)(
                config, reference, stream, bounds
            )
        # nothing of the reference has been routed: it is read completely before
        except FileFault as fault:
            self._write_letters(reference, [Dead(reference.start, str(fault), "")], (), w)
            # a dead document with all of its elements
            control = SourceReport(stream, reference.partition, MIN, dead_letters=1)
            control.accounted = reference.elements
            if isinstance(reference, FileSplit) and not reference.counted:
                control.measured = Measured(reference.name, reference.start, reference.elements)
            control.dead_letter_reasons = [f"{reference.name}: {fault}"]
            control.mismatching_host = platform.node() if fault.other else ""
        except SourceError as error:
            error.stream = reference.stream
            raise
        self.controls.append(control)

    def _triples(
        self, config: StreamConfig, split: AnyReference, stream: int, bounds: dict[str, int]
    ) -> SourceReport:
        messages, read_rows = None, None
        if isinstance(split, DerivedSplit):
            triples, reference = made_triples(split, self.context)
            elements = elements_of(
                triples,
                config,
                reference,
                seed=self.context.seed,
                messages=None,
                number=None,
                **bounds,
            )
        else:
            with FileFaults(split.name, split.stream):
                triples, elements, reference, messages, read_rows = self._read(
                    config, split, bounds
                )
        fates = count_accounted(
            config, reference, elements, None if messages is None else len(messages)
        )
        complete = self._complete(config, split, elements, messages)
        self._see_triples(stream, triples, elements)
        self._write_letters(reference, elements.dead, elements.late, bounds["late_below"], messages)
        patterns = _stream_patterns(self.context.plan, stream, self.context.seed)
        rows = 0
        if patterns is not None:
            keep = None if elements.keep.all() else elements.keep
            subjects = None
            if config.closed:
                subjects = subject_numbers(triples, elements.element, config.element)
                if patterns.stars and not config.trusted:
                    self.exchange.close(
                        stream, subjects_of(reference, triples, elements, subjects, self.pool)
                    )
            hits = self.hits.setdefault(stream, Counter())
            rows = self._deliver(
                match_(patterns, Chunk(triples, elements.ts, self.pool, hits), keep, subjects)
            )
        return SourceReport(
            stream,
            reference.partition,
            elements.max_ts,
            elements.elements,
            elements.triples,
            len(elements.late),
            len(elements.dead),
            elements.cut,
            elements.passed,
            rows,
            fates,
            elements.unit,
            some_reasons(reference, elements.dead, messages=messages is not None),
            null_messages=0 if messages is None else messages.nulls,
            reaches=complete,
            reports=report_times(split, elements),
            lead=_lead(reference, elements, messages),
            digest=_digest(reference),
            measured=reference.measured,
            empty_columns=list(elements.empty_columns),
            members=self._members(stream, triples, read_rows, elements.empty_columns),
        )

    def _members(
        self,
        stream: int,
        triples: Triples,
        read_rows: TableChunk | None,
        empty_columns: Sequence[str],
    ) -> list[str]:
        """Returns the names of the members of rows if a column is empty, the predicates of triples
        if a pattern has matched nothing.
        """
        if read_rows is not None:
            return members_of_rows(read_rows) if empty_columns else []
        hits = self.hits.get(stream, {}).values()
        return predicates_of(triples) if triples.n and 0 in hits else []

    def _read(self, config: StreamConfig, split: FromOutside, bounds: dict[str, int]) -> Statements:
        """Returns the statements of an external reference."""
        return read_apart(
            lambda: read(split, config), lambda content: self._statements(config, content, bounds)
        )

    def _statements(
        self, config: StreamConfig, content: SplitContent, bounds: dict[str, int]
    ) -> Statements:
        seed, reference, messages = self.context.seed, content.reference, content.messages
        if config.mapping is not None:
            assert content.rows is not None, "a mapping is for tables"
            mapped = mapped_of(
                content.rows, config, reference, seed=seed, messages=messages, **bounds
            )
            return Statements(*mapped, reference, messages, content.rows)
        assert content.text is not None, "RDF is text"
        if messages is None:
            triples, reference = self._parse(config, content.text, reference, content.line_ends)
        else:
            triples, reference, messages = parse_messages(
                content.text, messages, reference, config, seed
            )
        number = None
        if config.documents and config.element == "subject":
            triples, number = describe_subjects(triples)
        elements = elements_of(
            triples, config, reference, seed=seed, messages=messages, number=number, **bounds
        )
        return Statements(triples, elements, reference, messages)

    def _parse(
        self, config: StreamConfig, data: Bytes, reference: FileSplit, line_ends: int | None
    ) -> tuple[Triples, FileSplit]:
        """Returns the statements of a text, and the reference to their lines."""
        if config.documents:
            return parse_document(data, reference, self.context.seed)
        triples = parse(
            data, quads=reference.format == "nq", timed=config.timed, seed=self.context.seed,
            document=reference.document, unit_power=config.unit_power, line_ends=line_ends,
        )  # fmt: skip
        return triples, reference

    def _tuples(
        self, config: StreamConfig, split: AnyReference, stream: int, bounds: dict[str, int]
    ) -> SourceReport:
        assert not isinstance(split, DerivedSplit), "what a query makes are triples"
        with FileFaults(split.name, split.stream):
            reference, messages, tuples, read_rows = read_apart(
                lambda: read(split, config), lambda came: _rows(config, came, bounds)
            )
        empty = [name for name, column in tuples.columns.items() if column.is_empty]
        fates = count_accounted(
            config, reference, tuples, None if messages is None else len(messages)
        )
        complete = self._complete(config, split, tuples, messages)
        self._see_tuples(stream, tuples)
        self._write_letters(reference, tuples.dead, tuples.late, bounds["late_below"], messages)
        rows = 0
        if tuples.n:
            rows = self._deliver(self._scans(stream, tuples))
        return SourceReport(
            stream,
            reference.partition,
            tuples.max_ts,
            tuples.n,
            tuples.n,
            len(tuples.late),
            len(tuples.dead),
            tuples.cut,
            tuples.passed,
            rows,
            fates,
            tuples.unit,
            some_reasons(reference, tuples.dead, messages=messages is not None),
            null_messages=0 if messages is None else messages.nulls,
            reaches=complete,
            lead=_lead(reference, tuples, messages),
            digest=_digest(reference),
            measured=reference.measured,
            empty_columns=empty,
            members=members_of_rows(read_rows) if empty else [],
        )

    def _complete(
        self,
        config: StreamConfig,
        split: AnyReference,
        content: Elements | Tuples,
        messages: Messages | None,
    ) -> int:
        """Returns the event time after which the watermark would be where the producer declares
        it.
        """
        if isinstance(split, DerivedSplit):
            return MIN
        beside = headers_of(split, config, messages)
        complete = apply_message_headers(
            content, messages, beside, wall=self.context.wall_ms, ahead=config.future_ms
        )
        return complete + config.lateness if complete > MIN else MIN

    def _scans(self, stream: int, tuples: Any) -> Iterator[tuple[PlanNode, Frame]]:
        for node, members in _stream_scans(self.context.plan, stream):
            for member in members:
                yield node, scan(node, member, tuples, self.pool)

    def _deliver(self, rows: Iterable[tuple[PlanNode, Frame]]) -> int:
        """Routes rows of first nodes through the nodes of the intake; returns their number."""
        n = 0
        for node, frame in rows:
            n += frame.n
            run_ingest_operators(self.plan, self.env, self.exchange, node, frame)
        return n

    def _constants(self) -> None:
        """Routes the rows of VALUES."""
        for node in _first_nodes(self.plan, s.Constant):
            frame = constants(
                node,
                node.members_read_whole(self.context.is_first_epoch, self.context.replaced_graphs),
                self.pool,
            )
            if frame is not None:
                run_ingest_operators(self.plan, self.env, self.exchange, node, frame)

    def _static(self, parts: Sequence[StaticPart]) -> None:
        """Routes the rows of static patterns."""
        node_rows = matching(self.context, self.plan, self.pool, parts, self.static)
        for number, frame in node_rows.items():
            node = self.plan.nodes[number]
            self.pool.spent.rows += frame.n
            run_ingest_operators(
                self.plan, self.env, self.exchange, node, sum_weights(self.context, node, frame)
            )

    def _see_triples(self, stream: int, triples: Triples, elements: Elements) -> None:
        """Records the distinct times of elements, if the reports of a query depend on them, and the
        triples, if they are counted.
        """
        listed = listed_streams(self.context.plan)
        if listed.get(stream):
            terms = [
                (c.x[elements.keep], c.y[elements.keep]) for c in (triples.s, triples.p, triples.o)
            ]
            self.times.add(stream, element_times.occurrences(elements.ts[elements.keep], terms))
        elif stream in listed:
            self.times.add(stream, element_times.times(elements.times))

    def _see_tuples(self, stream: int, tuples: Tuples) -> None:
        listed = listed_streams(self.context.plan)
        if stream in listed:
            times = (
                element_times.occurrences(tuples.ts)
                if listed[stream]
                else element_times.times(tuples.times)
            )
            self.times.add(stream, times)

    def _write_letters(
        self,
        reference: AnyReference,
        dead: Any,
        late: Any,
        watermark: int,
        messages: Messages | None = None,
    ) -> None:
        if dead:
            records = dead_records(reference, dead, messages)
            self.side.setdefault("dead-letter", []).extend(records)
        if len(late):
            records = late_records(reference, late, watermark, messages)
            self.side.setdefault("late", []).extend(records)

    def _write_side(self) -> None:
        if not self.side or not self.controls:
            return
        names = []
        for kind, records in self.side.items():
            lines = "".join(json.dumps(r, ensure_ascii=False) + "\n" for r in records)
            names.append(
                (
                    kind,
                    state_files.write_sealed(
                        self.context.root, "side", f"{self.context.epoch}-{kind}", lines.encode()
                    ),
                    len(records),
                )
            )
        self.controls[0].letter_files = names


def _lead(reference: AnyReference, content: Elements | Tuples, messages: Messages | None) -> str:
    """Returns the place of the element with the largest time, which the watermark follows."""
    if content.max_ts == MIN:
        return ""
    return place_of(reference, content.lead, messages=messages is not None)


def _digest(reference: FileSplit) -> str:
    """Returns the hash of the input, if this task is the first to read it."""
    return "" if reference.measured is None else reference.measured.digest


def _rows(
    config: StreamConfig, content: SplitContent, bounds: dict[str, int]
) -> tuple[FileSplit, Messages | None, Tuples, TableChunk]:
    assert content.rows is not None, "a table has rows"
    tuples = tuples_of(content.rows, config, content.reference, messages=content.messages, **bounds)
    return content.reference, content.messages, tuples, content.rows


def _first_nodes(plan: Plan, kind: type[Leaf]) -> list[PlanNode[Leaf]]:
    nodes = (plan.nodes[n].as_step(kind) for n in plan.order)
    return [n for n in nodes if n is not None]


@lru_cache(maxsize=64)
def _stream_scans(plan: str, stream: int) -> list[tuple[PlanNode[s.Scan], list[int]]]:
    """Returns the nodes and their members that read a stream of rows; cached per plan version."""
    sealed = load_plan(plan)
    name = sealed.streams[stream]
    return [
        (node, (node.compute_once(_of_stream, name) & node.alive).nonzero()[0].tolist())
        for node in _first_nodes(sealed, s.Scan)
    ]


@lru_cache(maxsize=64)
def _stream_patterns(plan: str, stream: int, seed: int) -> Patterns | None:
    """Returns the table of all live patterns over a stream; cached per plan version."""
    sealed = load_plan(plan)
    name = sealed.streams[stream]
    nodes = [
        sealed.nodes[n]
        for n in sealed.order
        if isinstance(sealed.nodes[n].step, (s.Match, s.Entailed, s.Star))
    ]
    chosen = [n.compute_once(_of_stream, name) & n.alive for n in nodes]
    return patterns_of(nodes, chosen, seed, sharing_demand_of(sealed).wanted_terms)


def _of_stream(node: PlanNode, name: str) -> Bools:
    """Returns a mask of the members of a node that read a stream."""
    return np.array([streams == (name,) for streams in node.members.each_stream()], np.bool_)


# Isolates messages that make a reader raise, for any reason: each is one dead letter, and the
# others are read.
#
# A reader takes the messages of a spool file, or of a range of offsets, at once. If it raises, they
# are tried by halves. A message that raises alone is blank in the second try, with its fault in the
# metadata. Cost: nothing without an error; else log2(messages) readings for each such message.


_T = TypeVar("_T")


def read_apart(read: Callable[[], SplitContent], work: Callable[[SplitContent], _T]) -> _T:
    """Returns the result of ``work`` on the output of ``read``, which is called again after a
    fault, since ``work`` may modify that output.
    """
    content = read()
    try:
        return work(content)
    except BaseException as error:
        if content.messages is None or not _is_of_message(error):
            raise
        content = read()
        faults = _faults(content, work, 0, len(content.messages or ()))
        if not faults:
            raise
    return work(_blank(content, faults))


def _is_of_message(error: BaseException) -> bool:
    return is_of_data(error) and not isinstance(error, LevadaError)


def _faults(
    content: SplitContent, work: Callable[[SplitContent], _T], low: int, high: int
) -> dict[int, str]:
    """Returns the reasons why messages of ``low:high`` raise, each alone."""
    if low == high:
        return {}
    assert content.messages is not None, "it is made of messages"
    others = dict.fromkeys((*range(low), *range(high, len(content.messages))), "")
    try:
        work(_blank(content, others))
    except BaseException as error:
        if not _is_of_message(error):
            raise
        if high - low == 1:
            return {low: f"it cannot be read: {reason(error)}"}
    else:
        return {}
    middle = (low + high) // 2
    return _faults(content, work, low, middle) | _faults(content, work, middle, high)


def _blank(content: SplitContent, faults: Mapping[int, str]) -> SplitContent:
    """Returns a copy in which these messages have no text, with their faults in the metadata."""
    messages, data = content.messages, content.text
    assert messages is not None and data is not None, "it is made of messages"
    inside = np.ones(len(data), np.bool_)
    size = np.diff(messages.starts)
    formats = list(messages.beside.formats or [""] * len(messages))
    for k in faults:
        inside[messages.starts[k] : messages.starts[k + 1] - 1] = False
        size[k], formats[k] = 1, "nt"  # a format without text
    text: Bytes = data[inside]
    starts: Longs = np.concatenate([np.zeros(1, np.int64), np.cumsum(size)])
    wrong = [(int(messages.offsets[k]), why) for k, why in faults.items() if why]
    said = replace(messages.beside, formats=formats, wrong=[*messages.beside.wrong, *wrong])
    blank: Messages = replace(messages, starts=starts, beside=said)
    rows = content.rows
    if isinstance(rows, CsvChunk | JsonChunk):
        rows = replace(rows, data=text)
    reference = msgspec.structs.replace(content.reference, stop=content.reference.start + len(text))
    return SplitContent(text, rows, reference, blank)
