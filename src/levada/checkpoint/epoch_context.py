"""The data that every task of an epoch needs: small, JSON, sent once per job. The plan and the
group table are files that workers cache per version.
"""

from __future__ import annotations

import threading
from binascii import a2b_base64, b2a_base64
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
from xxhash import xxh3_64_hexdigest

from levada.checkpoint.result_counts import NONE, ResultCounts
from levada.checkpoint.send_graph_options import FINEST
from levada.connectors.config.feed_config import FeedConfig
from levada.connectors.config.kafka_config import KafkaConfig
from levada.connectors.config.rml.logical_source import LogicalSource
from levada.connectors.config.row_mapping import Part, RowMapping, TableJoin
from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.ingest.parse.json_ld_contexts import ContextFile
from levada.connectors.ingest.static_files import StaticFile
from levada.connectors.ingest.static_load_report import Loaded
from levada.connectors.sources.splits import Measured
from levada.core.array_types import Bools
from levada.core.event_time import MAX, MIN, Times
from levada.core.gc_control import DeferredCollection
from levada.core.query_limits import Limited, Memory, QueryLimits
from levada.plan.encoding.plan_codec import encode as encode_value
from levada.plan.encoding.plan_codec import read_file, read_groups, read_plan
from levada.plan.encoding.tag_registry import Registry
from levada.plan.execution.key_group_table import GroupTable
from levada.plan.execution.plan import Plan

TIMES, ROWS = 1, 2
"""The load that tasks report: their times, or also the rows of each group."""


_LOADING = threading.RLock()
_READ = DeferredCollection(cycles=False)  # of the plans that this process has read


class StreamState(msgspec.Struct, omit_defaults=True):
    """A stream at the beginning of an epoch, and its part in the epoch.

    ``watermark``: W before. ``floor``: the least of the largest event times of its partitions that
    are not read in this epoch and not finished (MAX: none such; MIN: one is known and unread).
    ``open_partitions``: partitions read in this and later epochs, with their largest time so far.
    ``has_ended``: nothing follows this epoch. ``is_idle``: idle, follows the others.
    ``complete_until``: its completeness, if an earlier epoch stopped before that. ``max_ts``: its
    largest time. ``clock_time``: its completeness by the clock (MIN: none).
    """

    watermark: int = MIN
    floor: int = MAX
    open_partitions: dict[str, int] = {}
    lateness: int = 0
    has_ended: bool = False
    is_idle: bool = False
    complete_until: int = MIN
    max_ts: int = MIN
    clock_time: int = MIN


class Replacement(msgspec.Struct):
    """The static graphs that an epoch replaces (None: the default graph).

    ``previous_setup``: the setup with their previous content. ``instant``: the first instant of the
    content in the epoch's setup.
    """

    graphs: list[str | None]
    previous_setup: str
    instant: int


class EpochContext(msgspec.Struct, omit_defaults=True):
    """The context of one epoch, for tasks."""

    epoch: int
    root: str
    plan: str
    seed: int
    wall_ms: int
    partitions: int
    group_table_file: str  # the group table, by its file
    streams: list[StreamState]
    state: dict[str, str]
    setup: str = ""
    related_streams: list[list[int]] = []  # for each stream the streams that it shares a query with
    # the first epoch of its plan: it reads static data and constants of new members, once
    is_first_epoch: bool = False
    replacement: Replacement | None = None
    until: int = MAX  # the watermarks do not rise beyond it
    limits: QueryLimits = QueryLimits()  # of one query
    # the number of groups by which the output of tasks is counted (0: it is not)
    counted_groups: int = 0
    state_group_table: str = ""  # the group table of the state, if it is another
    load_detail: int = 0  # the load that tasks report: nothing, TIMES, ROWS
    limits_by_query: dict[str, QueryLimits] = {}  # lower limits, of some queries
    has_preferences: bool = False  # tasks have preferred executors, and report where they ran
    memory: Memory = Memory()  # of a task
    reports_all_files: bool = False  # stage tasks report all files that their partitions need
    files_to_delete: list[str] = []  # unneeded files, for tasks to delete
    functions: list[str] = []  # the places of the user's functions, from the driver's program
    function_folders: list[str] = []  # where their modules are
    contexts: list[ContextFile] = []  # the files of JSON-LD contexts

    @property
    def tells_places(self) -> bool:
        """Whether tasks also report the executors that sent them data."""
        return bool(self.counted_groups) or self.has_preferences

    @property
    def query_limits(self) -> Limited:
        """The limits of queries."""
        return Limited(self.limits, self.limits_by_query)

    @property
    def replaced_graphs(self) -> frozenset[str | None]:
        """The static graphs that this epoch replaces."""
        return frozenset(self.replacement.graphs if self.replacement else ())


class SourceReport(msgspec.Struct, array_like=True):
    """The report of an intake task about its input: the head of each of its blobs
    (docs/architecture.md#a-triples-way), without field names, since it goes to every partition.

    ``accounted``: the number of elements with a known fate, of those that the driver counted in the
    reference. ``reaches``: the time that the partition's watermark follows, if it is greater than
    ``max_ts`` because its producer has declared it. ``mismatching_host``: the host on which its
    file is missing or has changed. ``reports``: for a derived stream that several tasks read, the
    times of its elements. ``lead``: the place of the element of ``max_ts``. ``digest``: the hash of
    the input, and ``measured`` other measurements, if the driver has not read the file.
    ``empty_columns``: without a value in any kept row. ``members``: names that rows or triples
    have, if a column or a pattern matches nothing.
    """

    stream: int
    partition: str
    max_ts: int
    elements: int = 0
    triples: int = 0
    late: int = 0
    dead_letters: int = 0
    cut: int = 0
    passed: int = 0
    matched: int = 0
    accounted: int = 0
    suspected_unit: str = ""  # the unit that the times seem to have, if it is not the stream's
    dead_letter_reasons: list[str] = []  # of some dead letters
    null_messages: int = 0  # messages without a value
    reaches: int = MIN
    pattern_matches: dict[str, int] = {}  # pattern -> the triples that matched it
    letter_files: list[tuple[str, str, int]] = []  # ("late" | "dead-letter", file, records)
    mismatching_host: str = ""
    reports: str = ""
    lead: str = ""
    digest: str = ""
    measured: Measured | None = None
    empty_columns: list[str] = []
    members: list[str] = []


_USUAL: list[Any] = msgspec.to_builtins(SourceReport(0, "", 0))
_FIELDS_OF_PARTITION_0: dict[str, Any] = {
    "pattern_matches": {},
    "letter_files": [],
    "dead_letter_reasons": [],
    "reports": "",
    "lead": "",
    "measured": None,
    "empty_columns": [],
    "members": [],
}


def heads_of(controls: Sequence[SourceReport], *, whole: bool) -> list[list[Any]]:
    """Encodes the heads of blobs from controls, without default values at their end. The driver
    receives the full reports of partition 0. For other partitions (not ``whole``) a control
    contains how far a source partition is, and the fingerprint of all
    (``TaskOutcome.record_inputs``).
    """
    return [_cut(_head(control, whole=whole)) for control in controls]


def _head(control: SourceReport, *, whole: bool) -> list[Any]:
    shortened = control if whole else msgspec.structs.replace(control, **_FIELDS_OF_PARTITION_0)
    head: list[Any] = msgspec.to_builtins(shortened)
    return head


def _cut(head: list[Any]) -> list[Any]:
    last = len(head)
    while head[last - 1] == _USUAL[last - 1] and last > 3:
        last -= 1
    return head[:last]


class Counted(msgspec.Struct, array_like=True):
    """The rows that a task has sent to a node, or passed to operators: a number for each of some
    groups ("": all groups), and the bytes in all. ``sources``: the previous groups of the rows, if
    known. ``of``: the number of groups. Columns are texts (``text_of``), the form in which they
    travel and are stored in manifests; few of them are ever read.
    """

    node: int
    groups: str  # 16 bits each
    rows: str  # of so many bytes each
    size: int
    width: int = 4
    sources: str = ""  # 16 bits each
    of: int = FINEST


def text_of(column: npt.NDArray[Any]) -> str:
    """Encodes a column as base64."""
    return b2a_base64(column.tobytes(), newline=False).decode()


def column_of(text: str, width: int) -> npt.NDArray[Any]:
    """Decodes a column of unsigned numbers of so many bytes each."""
    return np.frombuffer(a2b_base64(text), f"u{width}")


class TaskOutcome(msgspec.Struct, omit_defaults=True):
    """The outcome of a stage task, with names that the manifest will contain."""

    stage: int
    partition: int
    # of a stage's: the state's file, if it is another than before; files that its partition needs
    # and did not before, and those that it needed (of readers: those of the job); or all (``told``)
    state: str | None = None
    files: list[str] = []
    unneeded_files: list[str] = []
    lists_all_files: bool = False
    segment: str | None = None
    counts: ResultCounts = NONE  # of queries with results
    result_bytes: dict[str, int] = {}  # query -> bytes of its results, where these have a limit
    window_rows: dict[str, int] = {}  # query -> rows of state that its windows reach, where limited
    input_rows: int = 0  # input rows of operators
    state_rows: int = 0  # rows of state that were read, looked up or written
    shown_reports: dict[str, list[int]] = {}  # query -> its due reports, if it shows empty ones
    # CPU seconds, of which each node's (with the processing of its rows in the task), and the input
    # rows of each node
    cpu_seconds: float = 0.0
    cpu_by_node: dict[str, float] = {}
    rows_by_node: dict[str, int] = {}
    # "node member" of a relaxed join -> [input rows, pairs, wanted pairs, picked rows]
    relaxed_joins: dict[str, list[int]] = {}
    # "node member" of a joined input, or of a join -> its output rows
    join_rows: dict[str, int] = {}
    # node of a join with a chosen strategy -> its report (``plan/execution``)
    join_strategies: dict[str, list[int]] = {}
    # if output is counted: the name of a reader, bytes of the segment, and by sender the input:
    # [rows, bytes, blobs]; rows by group
    reader: str = ""
    segment_size: int = 0
    received_by_sender: dict[str, list[int]] = {}
    sent: list[Counted] = []
    # if data between executors are counted: the same by the executor of the sender
    received_by_executor: dict[str, list[int]] = {}
    # the input from other processes: blobs by file, their bytes, blobs by shuffle, their bytes
    transport: list[int] = []
    seconds: float = 0.0  # of a stage: elapsed seconds, of which ``cpu``
    # if load is measured: ``rows_in`` by group; the part of joins that may divide groups
    rows_by_group: Counted | None = None
    divisible_rows: Counted | None = None
    executor: str = ""  # the executor that ran it, on a cluster
    input_digest: str = ""  # of a stage: a fingerprint of its inputs, from the intake on
    static_load: Loaded | None = None  # of an intake: its report about static data
    peak_bytes: int = 0  # the peak bytes of rows, if memory is bounded

    def record_inputs(self, controls: Sequence[SourceReport], before: Collection[str]) -> None:
        """Records a fingerprint of the task's inputs: what was found in each reference, and
        ``before``: the fingerprints of its senders.
        """
        if len(marks := sorted(filter(None, before))) == 1:
            self.input_digest = marks[0]
            return
        shortened = [msgspec.structs.replace(c, **_FIELDS_OF_PARTITION_0) for c in controls]
        self.input_digest = xxh3_64_hexdigest(msgspec.json.encode([shortened, marks]))


def encode(value: msgspec.Struct) -> bytes:
    """Encodes a struct as JSON."""
    return msgspec.json.encode(value)


def decode_context(data: bytes) -> EpochContext:
    """Decodes the context of a job."""
    return _decode(data)


@lru_cache(maxsize=4)
def _decode(data: bytes) -> EpochContext:
    return msgspec.json.decode(data, type=EpochContext)


def load_plan(path: str) -> Plan:
    """Loads a sealed plan from its file; cached per process, together with the previous version if
    it is written as a difference. Threads that load the same plan wait for each other. Raises
    ``CheckpointError``.
    """
    with _LOADING:
        return cached_plan(path)


@lru_cache(maxsize=4)
def cached_plan(path: str) -> Plan:
    """Loads a plan like ``load_plan``, in one thread."""
    plan = read_plan(Path(path), lambda base: cached_plan(str(base)))
    _READ.collect_after(len(plan.queries))
    return plan


@lru_cache(maxsize=4)
def load_groups(path: str) -> GroupTable:
    """Loads a group table from its file; cached per process. Raises ``CheckpointError``."""
    return read_groups(Path(path))


@dataclass(frozen=True)
class Setup:
    """The streams and static files of an engine: a file beside the plan, replaced when static data
    are.
    """

    streams: list[StreamConfig]
    static: list[StaticFile]


SETUPS = Registry(
    {},
    {
        "stream": StreamConfig,
        "row mapping": RowMapping,
        "part": Part,
        "table join": TableJoin,
        "logical source": LogicalSource,
        "static file": StaticFile,
        "setup": Setup,
        "topic": KafkaConfig,
        "feed": FeedConfig,
    },
    {"RowMapping": RowMapping},
)


def encode_setup(setup: Setup) -> bytes:
    """Encodes an engine's setup as the bytes of its file, the same in every process."""
    return encode_value(setup, SETUPS)


@lru_cache(maxsize=4)
def load_setup(path: str) -> Setup:
    """Loads an engine's setup from its file; cached per process. Raises ``CheckpointError``."""
    return read_file(Path(path), Setup, SETUPS)


class StreamTimes(NamedTuple):
    """The watermarks of all streams before and after an epoch, and their completeness."""

    old: Times
    new: Times
    complete: Times

    def find_ended_streams(self, context: EpochContext, controls: Sequence[SourceReport]) -> Bools:
        """Returns the streams that are complete, with all elements below W after the epoch."""
        latest = np.array([s.max_ts for s in context.streams], np.int64)
        for c in controls:
            latest[c.stream] = max(int(latest[c.stream]), c.max_ts)
        return np.asarray((self.complete >= MAX) & (latest < self.new))


def advance_watermarks(context: EpochContext, controls: Sequence[SourceReport]) -> StreamTimes:
    """Returns the times of every stream, the same at every target and at the driver: its W after
    the epoch is its completeness, up to the epoch's ``until``.
    """
    old = old_watermarks(context.streams)
    complete = complete_times(context.streams, controls, context.related_streams)
    return StreamTimes(old, np.maximum(old, np.minimum(complete, context.until)), complete)


def complete_times(
    streams: Sequence[StreamState],
    controls: Sequence[SourceReport],
    shared: Sequence[Sequence[int]],
) -> Times:
    """Returns the completeness of every stream after the epoch
    (docs/architecture.md#a-triples-way). An idle stream follows the streams of ``shared`` that are
    not idle, else those that follow the clock, else those that follow others.
    """
    seen: dict[tuple[int, str], int] = {}
    for c in controls:
        key = (c.stream, c.partition)
        seen[key] = max(seen.get(key, MIN), c.max_ts, c.reaches)
    new = np.array([_advance(s, i, seen) for i, s in enumerate(streams)], np.int64)
    by_themselves = new.copy()
    for i, s in enumerate(streams):
        if s.is_idle and not s.has_ended:
            lively = [j for j in shared[i] if not streams[j].is_idle]
            beating = [j for j in shared[i] if streams[j].clock_time > MIN]
            if others := lively or beating or list(shared[i]):
                new[i] = max(int(new[i]), int(by_themselves[others].min()))
    return new


def _advance(s: StreamState, i: int, seen: Mapping[tuple[int, str], int]) -> int:
    if s.has_ended:
        return MAX
    least = s.floor
    for partition, before in s.open_partitions.items():
        least = min(least, max(before, seen.get((i, partition), MIN)))
    if least >= MAX or least <= MIN:
        return max(s.watermark, s.complete_until, s.clock_time)
    return max(s.watermark, s.complete_until, s.clock_time, least - s.lateness)


def raises_watermark(
    states: Sequence[StreamState], shared: Sequence[Sequence[int]], unread: Sequence[int]
) -> bool:
    """Whether an epoch without data would raise a watermark: because a stream is idle, or a query
    has produced a derived stream.
    """
    raised = complete_times(states, [], shared) > old_watermarks(states)
    raised[list(unread)] = False
    return bool(raised.any())


def old_watermarks(streams: Sequence[StreamState]) -> Times:
    """Returns W of every stream before the epoch."""
    return np.array([s.watermark for s in streams], np.int64)
