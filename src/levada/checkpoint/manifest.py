"""Intentions and manifests: the work of an epoch, and its completion
(docs/architecture.md#an-epoch).

An intention is JSON that the loop writes ahead; with it an epoch can be repeated exactly. A
manifest is a file that is created only if it is absent: it is the commit
(``checkpoint.leadership.commit_log``). All files that it names are durable before.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from levada.checkpoint.epoch_context import Counted, Replacement, SourceReport, StreamState
from levada.checkpoint.executor_affinity import AffinityStats
from levada.checkpoint.result_counts import NONE, ResultCounts
from levada.checkpoint.send_graph_options import Slicing, slicing_of
from levada.connectors.ingest.static_load_report import Loaded
from levada.connectors.sources.splits import AnyReference, Measured
from levada.core.checksummed_files import read_sealed, seal
from levada.core.event_time import MAX, MIN
from levada.core.msgspec_warmup import prepare_structs
from levada.core.query_limits import TOLD
from levada.core.stream_facts import MAX_MEMBERS
from levada.errors import unreadable

# The rebalancing report in a manifest: the loads of the last round, and recent decisions with
# reason, expectation and effect.
#
# It is bounded: the busiest partitions, the latest decisions.


MOST_DECIDED, MOST_LOADS = 32, 16
MOVE, GROW, SHRINK = "move", "grow", "shrink"
DIVIDE, UNITE = "divide", "unite"


class Decision(msgspec.Struct, frozen=True):
    """A decision: from ``epoch`` on, ``groups`` are in another partition. ``action``: a move from
    ``supplier`` to ``consumer``; grow or shrink to ``partitions`` (both are -1); divide or unite.
    The last two begin or end sharing one of the ``supplier`` among several (``consumer`` is -1).
    ``ratio_before``, ``expected_ratio``, ``measured_ratio``: the time of the busiest partition
    divided by the mean. They are of the round before, as predicted, and of the round after (None:
    not over).
    """

    epoch: int
    action: str
    supplier: int
    consumer: int
    groups: int
    partitions: int
    ratio_before: float
    expected_ratio: float
    reason: str
    measured_ratio: float | None = None


class PartitionLoad(msgspec.Struct, frozen=True):
    """The load of a partition in a round. ``kind``: its class. ``occupancy``: the mean, 0 to 1.
    ``seconds``, ``cpu_seconds``, ``input_rows``: of an epoch.
    """

    partition: int
    kind: str
    occupancy: float
    seconds: float
    cpu_seconds: float
    input_rows: int


class RebalanceReport(msgspec.Struct, frozen=True):
    """The report after the round that ended before ``epoch``. ``ratio``: the time of the busiest
    partition divided by the mean. ``is_overloaded``: suppliers outnumber consumers, and the number
    of partitions is at its maximum. ``imbalance_reason``: why the load stays uneven ("": it does
    not). ``loads``: of the busiest partitions. ``decisions``: the latest ones.
    """

    epoch: int
    partitions: int
    ratio: float
    is_overloaded: bool = False
    imbalance_reason: str = ""
    loads: list[PartitionLoad] = []
    decisions: list[Decision] = []


STAYS_WHOLE = "and a group stays whole."
"""The end of a remark on a group that no move relieves."""


def with_join_remark(report: RebalanceReport, whole: Sequence[str]) -> RebalanceReport:
    """Returns the report with the reason why joins do not divide a group that no move relieves."""
    if not whole or not report.imbalance_reason.endswith(STAYS_WHOLE):
        return report
    return msgspec.structs.replace(
        report, imbalance_reason=f"{report.imbalance_reason} A join is not divided: {whole[0]}."
    )


def with_history(before: RebalanceReport | None, now: RebalanceReport) -> RebalanceReport:
    """Returns the report after a round, with the previous decisions and their effects."""
    known = before.decisions if before is not None else []
    old = [
        d if d.measured_ratio is not None else msgspec.structs.replace(d, measured_ratio=now.ratio)
        for d in known
    ]
    return msgspec.structs.replace(now, decisions=[*old, *now.decisions][-MOST_DECIDED:])


PUBLISHING = "publishing-*"
"""The intention of an epoch that is still published while the next one runs."""


class Resized(msgspec.Struct, frozen=True):
    """A change of the number of ``partitions`` at ``epoch``, from ``partitions_before``. Times are
    ms of an epoch: ``ms_before`` the change, ``expected_ms`` and ``measured_ms`` after it (None:
    not yet).
    """

    epoch: int
    partitions_before: int
    partitions: int
    ms_before: float
    expected_ms: float
    reason: str
    measured_ms: float | None = None


class EpochIntent(msgspec.Struct, omit_defaults=True):
    """The intention of epoch N."""

    epoch: int
    plan: int
    wall_ms: int
    references: list[AnyReference] = []
    positions: dict[str, dict[str, Any]] = {}
    streams: list[StreamState] = []
    finished_partitions: dict[str, list[str]] = {}
    reads_static: bool = False
    has_ended: bool = False
    flush: bool = False  # publishes what is held back for fuller files
    setup: str = ""  # the streams and static files, by the file's name
    replacement: Replacement | None = None
    late_files: dict[str, list[str]] = {}  # stream -> files that came too late to be read
    # stream -> files that went before all of them was read
    deleted_files: dict[str, list[str]] = {}
    unreadable_files: dict[str, dict[str, str]] = {}  # stream -> files that cannot be read, and why
    # what ended a process that read it, and how
    crashing_splits: list[tuple[AnyReference, str]] = []
    until: int = MAX  # the instant beyond which no report is made
    group_table_version: int = 1  # the version of the group table by which rows go
    slices: str = ""  # those whose send graphs are counted (``checkpoint.send_graph_options``)
    balance: RebalanceReport | None = None  # what the reorganization before it tells
    # what the model has decided of the number of partitions
    partition_decision: Resized | None = None

    @property
    def slicing(self) -> Slicing:
        """The options of the send graph."""
        return slicing_of(self.slices)


class UnpublishedResults(msgspec.Struct):
    """The results of an epoch that are not in files yet. ``wall_ms``: when it began (ms).
    ``segment_bytes``: the bytes of its segments.
    """

    epoch: int
    plan: int
    segments: list[str]
    shown_reports: dict[str, list[int]]
    wall_ms: int
    segment_bytes: int


class Lead(msgspec.Struct, frozen=True):
    """An element that the watermark of a stream follows: its place, its time, the clock of the
    epoch that read it (ms), and the number of elements that were ``late`` while it led.
    """

    place: str
    ts: int
    wall_ms: int
    late: int = 0


class StreamRecord(msgspec.Struct, omit_defaults=True):
    """A stream after an epoch: W, largest event times, counts since the start.

    ``partitions``: the largest times of those that are ahead of the completeness; the others do not
    affect the watermark.

    ``unaccounted_elements``: the difference between the elements of references and those with a
    reported fate: 0, unless there is a bug.
    """

    watermark: int = MIN
    max_ts: int = MIN
    partitions: dict[str, int] = {}
    has_ended: bool = False
    ahead: int = 0
    elements: int = 0
    triples: int = 0
    late: int = 0
    dead_letters: int = 0
    cut: int = 0
    late_files: int = 0  # files that came too late to be read; each is a dead letter, too
    # files that went before all of them was read; each is a dead letter, too
    deleted_files: int = 0
    replaced_files: int = 0  # files that were read anew: another one came under the name
    unaccounted_elements: int = 0
    suspected_unit: str = ""  # that times seem to be in, if it is another than the stream's
    dead_letter_reasons: list[str] = []  # of the first dead letters
    null_messages: int = 0  # messages without a value: no elements
    # how far it is complete: beyond W where an epoch has stopped short of it
    complete_until: int = MIN
    lead: Lead | None = None
    costliest_lead: Lead | None = None  # of those before, the one that made most elements late
    empty_columns: list[str] = []  # columns without a value in any element
    members: list[str] = []  # some names that its rows have, if a column or pattern matches nothing

    def add(
        self, reports: Sequence[SourceReport], finished: Sequence[str], wall: int
    ) -> StreamRecord:
        """Returns the record with an epoch's reports of the stream added, without the ``finished``
        partitions.
        """
        record = msgspec.structs.replace(
            self,
            partitions=dict(self.partitions),
            dead_letter_reasons=list(self.dead_letter_reasons),
            members=list(self.members),
        )
        for c in reports:
            before = record.partitions.get(c.partition, MIN)
            record.partitions[c.partition] = max(before, c.max_ts, c.reaches)
            record.max_ts = max(record.max_ts, c.max_ts)
            record._add_names(c)
            record.elements += c.elements
            record.triples += c.triples
            record.late += c.late
            record.dead_letters += c.dead_letters
            record.cut += c.cut
            record.null_messages += c.null_messages
            record.dead_letter_reasons += c.dead_letter_reasons
            if c.elements + c.late + c.dead_letters:
                record.suspected_unit = c.suspected_unit
        record.dead_letter_reasons = record.dead_letter_reasons[:TOLD]
        for name in finished:
            record.partitions.pop(name, None)
        record.lead, record.costliest_lead = self._leads(reports, record.partitions, wall)
        return record

    def _add_names(self, report: SourceReport) -> None:
        """Removes the columns that have a value in a report, and adds its members."""
        if report.elements and self.elements:
            still = set(report.empty_columns)
            self.empty_columns = [name for name in self.empty_columns if name in still]
        elif report.elements:
            self.empty_columns = report.empty_columns
        names = dict.fromkeys([*self.members, *report.members])
        self.members = list(names)[:MAX_MEMBERS]

    def _leads(
        self, reports: Sequence[SourceReport], partitions: dict[str, int], wall: int
    ) -> tuple[Lead | None, Lead | None]:
        """Returns the element that the watermark follows after an epoch (of the slowest partition),
        and the former one that made most elements late.
        """
        old, costly = self.lead, self.costliest_lead
        if old is not None and (late := sum(c.late for c in reports)):
            old = msgspec.structs.replace(old, late=old.late + late)
        slowest = min(partitions, key=lambda name: partitions[name], default="")
        of_it = [c for c in reports if c.partition == slowest and c.lead and not c.reports]
        new = max(of_it, key=lambda c: c.max_ts, default=None)
        if new is None or (old is not None and new.max_ts <= old.ts):
            return old, costly
        if old is not None and old.late > (costly.late if costly is not None else 0):
            costly = old
        return Lead(new.lead, new.max_ts, wall), costly


class LearningStep(msgspec.Struct):
    """A step of a learned placement, from a ``slice`` of event time, at an epoch. ``share_before``,
    ``predicted_share``, ``measured_share``: the fraction of rows that crossed machines (-1:
    unknown). ``moved_groups`` and ``moved_readers`` count what changed its machine. ``message``: a
    remark.
    """

    slice: str
    epoch: int
    share_before: float = -1.0
    predicted_share: float = -1.0
    measured_share: float = -1.0
    moved_groups: int = 0
    moved_readers: int = 0
    message: str = ""


class Preferences(msgspec.Struct):
    """The effect of a placement in a run. ``name``: of its file. ``preferred_tasks``: tasks with a
    preferred executor; ``displaced_tasks``: those of them that ran elsewhere. ``read_bytes``: bytes
    that tasks read; ``remote_bytes`` in ``remote_blobs``: those from other executors.
    ``executors``: the executor of each machine ("": none). ``predicted_share``: the fraction of
    crossing rows by the file (-1: unknown). ``predicted_shares``: the same from machine to machine
    ([]: unknown).
    """

    name: str
    machines: int
    preferred_tasks: int = 0
    displaced_tasks: int = 0
    remote_bytes: int = 0
    read_bytes: int = 0
    executors: list[str] = []
    learning_steps: list[LearningStep] = []
    predicted_share: float = -1.0
    remote_blobs: int = 0
    predicted_shares: list[list[float]] = []


class TransportStats(msgspec.Struct):
    """The transport of blobs to the tasks of each stage (``stages``): blobs by file, their bytes,
    blobs through Spark's shuffle, their bytes. ``repeated_jobs``: jobs that lacked such a file, and
    ran again by value. ``remaining_value_jobs``: the next jobs that send by value because of that.
    """

    stages: dict[int, list[int]] = {}
    repeated_jobs: int = 0
    remaining_value_jobs: int = 0


class Choice(msgspec.Struct):
    """The execution of an epoch. ``mode``: in_process (in the driver's process), one_task or
    spread. ``readers``: the tasks that read. ``predicted_ms``: for each mode ({} before the first
    measurement). ``predicted_task_cpu_ms`` (0: unknown) and ``measured_task_cpu_ms``: CPU time of
    its tasks. ``predicted_cpu_ms``: CPU time of all processes for each mode. ``reason``: why it has
    this mode.
    """

    epoch: int = 0
    elements: int = 0
    mode: str = "one_task"
    readers: int = 1
    predicted_ms: dict[str, float] = {}
    measured_ms: float = 0.0
    predicted_task_cpu_ms: float = 0.0
    measured_task_cpu_ms: float = 0.0
    predicted_cpu_ms: dict[str, float] = {}
    reason: str = ""


class Delayed(msgspec.Struct):
    """The state of a promised ``delay_ms``. ``epoch_rows``: the elements of an epoch.
    ``expected_wait_ms``: the longest expected wait of an element (0: unknown). ``is_met``: whether
    the delay is kept.
    """

    delay_ms: int
    epoch_rows: int
    expected_wait_ms: float = 0.0
    is_met: bool = True


class Degree(msgspec.Struct):
    """The policy for the number of partitions: model, cores, load (balance), fixed or placement.
    ``max_partitions``: the upper bound (0: unknown). ``predicted_ms``: of a recent epoch, by
    number. ``measured_epochs``: by number, the epochs of this run, their ms as predicted and as
    measured. ``measured_epochs_by_readers``: the same for spread epochs, by the number of reading
    tasks. ``decisions``: recent ones of the model.
    """

    policy: str
    max_partitions: int = 0
    predicted_ms: dict[int, float] = {}
    measured_epochs: dict[int, list[float]] = {}
    measured_epochs_by_readers: dict[int, list[float]] = {}
    decisions: list[Resized] = []


class Costs(msgspec.Struct):
    """The costs of epochs. ``totals_by_mode``: the epochs of the run, their ms as predicted and as
    measured. ``work_parts``: the most expensive parts of the work, operators by number. Their
    figures are ms a call, ns a row, rows for each element, and the ms of the last epoch as
    predicted and as measured.

    ``partitions``: the number over which the last epoch ran. ``predicted_ms_by_partitions``,
    ``predicted_ms_by_readers``: of an epoch over other numbers of partitions, and spread with other
    numbers of reading tasks. ``interval_ms``: the least time between the starts of two epochs.
    ``fixed_cpu_ms``: CPU time of an epoch without elements.
    """

    last_epoch: Choice
    totals_by_mode: dict[str, list[float]] = {}
    work_parts: dict[str, list[float]] = {}
    predicted_ms_by_partitions: dict[int, float] = {}
    delay: Delayed | None = None
    partitions: int = 1
    predicted_ms_by_readers: dict[int, float] = {}
    partition_policy: Degree | None = None
    interval_ms: float = 0.0
    fixed_cpu_ms: float = 0.0


class Manifest(msgspec.Struct, omit_defaults=True):
    """The state after epoch N."""

    epoch: int
    plan: int
    positions: dict[str, dict[str, Any]] = {}
    streams: dict[str, StreamRecord] = {}
    # the files that it names (``checkpoint.file_inventory``)
    state: dict[str, str] = {}
    files: list[str] = []
    segments: list[str] = []
    letter_files: list[tuple[str, str, int]] = []
    counts: ResultCounts = NONE  # of queries with results
    # since they came, or since ``totalled`` has what they had before
    totals: ResultCounts = NONE
    shown_reports: dict[str, list[int]] = {}
    has_ended: bool = False
    input_rows: int = 0
    # stream -> pattern -> the triples that matched it since the beginning
    pattern_matches: dict[str, dict[str, int]] = {}
    results_to_publish: list[UnpublishedResults] = []  # what this epoch publishes
    waiting_results: list[UnpublishedResults] = []  # what a later one will
    # query that can make a stream -> its last report with a result
    last_reports: dict[str, int] = {}
    state_rows: int = 0
    results: int = 0  # solutions of all queries, also of those that have been taken out
    setup: str = ""  # which static files the state has seen
    group_table_version: int = 1  # the version of the group table by which the state lies
    # slice of event time -> the file of its send graph; "": that of the last one is ``sent``
    slices: dict[str, str] = {}
    slice_counts: msgspec.Raw = msgspec.Raw(b"null")
    # slice -> files of what was sent to each group; what is in no file yet, of the last slice
    group_count_files: dict[str, list[str]] = {}
    pending_group_counts: list[tuple[str, Counted]] = []
    placement: Preferences | None = None  # of the last run that had a placement
    leadership: int = 0  # that of the driver which committed it
    balance: RebalanceReport | None = None  # after the last reorganization
    epoch_costs: Costs | None = None  # how epochs ran, and what was expected
    result_bytes: dict[str, int] = {}  # query -> bytes of its results, where these have a limit
    # query with more rows of state than it may have -> how many
    excess_state_rows: dict[str, int] = {}
    # files of totals, and how many queries each is of (``checkpoint``)
    total_files: list[tuple[str, int]] = []
    executors: AffinityStats | None = None  # of the last run on a cluster
    transport: TransportStats | None = None  # since the beginning of the checkpoint
    # "node member" of a relaxed join -> [rows given, pairs made, of these wanted, rows picked], of
    # late
    relaxed_joins: dict[str, list[int]] = {}
    # "node member" of what is joined, or of a join -> [rows, elements of the streams], of late
    join_rows: dict[str, list[int]] = {}
    # node -> [CPU seconds, rows that it was given], since it came; of many those with most seconds
    node_charges: dict[int, tuple[float, int]] = {}
    # node of a join whose form is chosen -> the last report of its tasks (``plan/execution/joins``)
    join_strategies: dict[str, list[int]] = {}
    static_load: Loaded | None = None  # in the last epoch that read static data
    unneeded_files: list[str] = []  # files of the inventory that are named no more
    inventory: str = ""
    # stream -> what its tasks were the first to read
    measured_splits: dict[str, list[Measured]] = {}
    # the last epoch in the index before this one (``checkpoint.result_index``); 0: none
    previous_indexed_epoch: int = 0

    @property
    def behind(self) -> bool:
        """Whether streams are complete beyond the reports that were made."""
        return any(s.complete_until > s.watermark for s in self.streams.values())


def encode_manifest(manifest: Manifest) -> bytes:
    """Encodes a manifest as the bytes of its file."""
    return seal(msgspec.json.encode(manifest))


def read_manifest(path: Path) -> Manifest:
    """Reads a manifest from its file. Raises ``CheckpointError``."""
    try:
        return msgspec.json.decode(read_sealed(path), type=Manifest)
    except msgspec.MsgspecError as error:
        raise unreadable(path, str(error)) from error


prepare_structs(EpochIntent, Manifest)
