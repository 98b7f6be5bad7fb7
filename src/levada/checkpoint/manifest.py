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
from levada.checkpoint.rebalance_report import RebalanceReport
from levada.checkpoint.result_counts import NONE, ResultCounts
from levada.checkpoint.send_graph_options import Slicing, slicing_of
from levada.connectors.ingest.static_load_report import Loaded
from levada.connectors.sources.splits import AnyReference, Measured
from levada.core.checksummed_files import read_sealed, seal
from levada.core.event_time import MAX, MIN
from levada.core.msgspec_warmup import prepare_structs
from levada.core.query_limits import TOLD
from levada.errors import unreadable

PUBLISHING = "publishing-*"
"""The intention of an epoch that is still published while the next one runs."""


class Resized(msgspec.Struct, frozen=True):
    """A change of the number of partitions: from ``epoch`` on there are so many ``partitions``,
    ``before`` there were others; and ``why``. ms of an epoch: as it ``was`` over those before, as
    ``expected`` over these, and as ``seen`` (None: unknown yet).
    """

    epoch: int
    before: int
    partitions: int
    was: float
    expected: float
    why: str
    seen: float | None = None


class EpochIntent(msgspec.Struct):
    """The intention of epoch N."""

    epoch: int
    plan: int
    wall: int
    references: list[AnyReference] = []
    positions: dict[str, dict[str, Any]] = {}
    streams: list[StreamState] = []
    finished: dict[str, list[str]] = {}
    static: bool = False
    ended: bool = False
    flush: bool = False  # publishes what is held back for fuller files
    setup: str = ""  # the streams and static files, by the file's name
    replacement: Replacement | None = None
    overtaken: dict[str, list[str]] = {}  # stream -> files that came too late to be read
    gone: dict[str, list[str]] = {}  # stream -> files that went before all of them was read
    broken: dict[str, dict[str, str]] = {}  # stream -> files that cannot be read, and why
    deadly: list[tuple[AnyReference, str]] = []  # what ended a process that read it, and how
    until: int = MAX  # the instant beyond which no report is made
    groups: int = 1  # the version of the group table by which rows go
    slices: str = ""  # those whose send graphs are counted (``checkpoint.send_graph_options``)
    balanced: RebalanceReport | None = None  # what the reorganization before it tells
    resized: Resized | None = None  # what the model has decided of the number of partitions

    @property
    def slicing(self) -> Slicing:
        """The options of the send graph."""
        return slicing_of(self.slices)


class UnpublishedResults(msgspec.Struct):
    """The results of an epoch that are not in files yet. ``wall``: when it began (ms). ``size``:
    the bytes of its segments.
    """

    epoch: int
    plan: int
    segments: list[str]
    shown_reports: dict[str, list[int]]
    wall: int
    size: int


class Lead(msgspec.Struct, frozen=True):
    """An element that the watermark of a stream follows: its place, its time, the clock of the
    epoch that read it (ms), and the number of elements that were ``late`` while it led.
    """

    place: str
    ts: int
    wall: int
    late: int = 0


class StreamRecord(msgspec.Struct):
    """A stream after an epoch: W, largest event times, counts since the start.

    ``partitions``: the largest times of those that are ahead of the completeness; the others do not
    affect the watermark.

    ``missing``: the difference between the elements of references and those with a reported fate:
    0, unless there is a bug.
    """

    watermark: int = MIN
    max_ts: int = MIN
    partitions: dict[str, int] = {}
    ended: bool = False
    ahead: int = 0
    elements: int = 0
    triples: int = 0
    late: int = 0
    dead: int = 0
    cut: int = 0
    overtaken: int = 0  # files that came too late to be read; each is a dead letter, too
    gone: int = 0  # files that went before all of them was read; each is a dead letter, too
    replaced: int = 0  # files that were read anew: another one came under the name
    missing: int = 0
    unit: str = ""  # that times seem to be in, if it is another than the stream's
    reasons: list[str] = []  # of the first dead letters
    nulls: int = 0  # messages without a value: no elements
    known: int = MIN  # how far it is complete: beyond W where an epoch has stopped short of it
    lead: Lead | None = None
    costly: Lead | None = None  # of those before, the one that made most elements late

    def add(
        self, reports: Sequence[SourceReport], finished: Sequence[str], wall: int
    ) -> StreamRecord:
        """Returns the record with an epoch's reports of the stream added, without the ``finished``
        partitions.
        """
        record = msgspec.structs.replace(
            self, partitions=dict(self.partitions), reasons=list(self.reasons)
        )
        for c in reports:
            before = record.partitions.get(c.partition, MIN)
            record.partitions[c.partition] = max(before, c.max_ts, c.reaches)
            record.max_ts = max(record.max_ts, c.max_ts)
            record.elements += c.elements
            record.triples += c.triples
            record.late += c.late
            record.dead += c.dead
            record.cut += c.cut
            record.nulls += c.nulls
            record.reasons += c.reasons
            if c.elements + c.late + c.dead:
                record.unit = c.unit
        record.reasons = record.reasons[:TOLD]
        for name in finished:
            record.partitions.pop(name, None)
        record.lead, record.costly = self._leads(reports, record.partitions, wall)
        return record

    def _leads(
        self, reports: Sequence[SourceReport], partitions: dict[str, int], wall: int
    ) -> tuple[Lead | None, Lead | None]:
        """Returns the element that the watermark follows after an epoch (of the slowest partition),
        and the former one that made most elements late.
        """
        old, costly = self.lead, self.costly
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
    """A step of a learned placement: from this ``slice``, for the epochs from ``epoch`` on. Shares
    of the rows between machines: ``before`` it, as ``predicted`` with it, as ``measured`` in the
    next slice (-1: not yet). ``moved``: groups. ``readers``: those on other machines than before.
    ``told``: the message about it.
    """

    slice: str
    epoch: int
    before: float = -1.0
    predicted: float = -1.0
    measured: float = -1.0
    moved: int = 0
    readers: int = 0
    told: str = ""


class Preferences(msgspec.Struct):
    """Statistics of a placement's preferences in a run: of the file ``name``, on so many
    ``machines``. ``wanted``: tasks with a preference. ``missed``: those that ran elsewhere.
    ``remote``: the bytes of the ``blobs`` that tasks have received from other executors, of all
    bytes that they ``read``. ``executors``: of each machine ("": none). ``lessons``: of a learned
    placement. ``predicted``: the share between machines in the file (-1: unknown). ``between``: the
    predicted share that each machine sends to each ([]: unknown).
    """

    name: str
    machines: int
    wanted: int = 0
    missed: int = 0
    remote: int = 0
    read: int = 0
    executors: list[str] = []
    lessons: list[LearningStep] = []
    predicted: float = -1.0
    blobs: int = 0
    between: list[list[float]] = []


class TransportStats(msgspec.Struct):
    """The transport of blobs to the tasks of each stage (``stages``): [blobs by file, their bytes,
    blobs through Spark's shuffle, their bytes]. ``missed``: the number of jobs that did not find
    such a file, and ran again by value. ``rest``: how many of the next jobs send by value because
    of it.
    """

    stages: dict[int, list[int]] = {}
    missed: int = 0
    rest: int = 0


class Bound(msgspec.Struct):
    """The processors of the tasks of a run: those of each place, in the order of the machine file
    ``name``; a task of partition p is bound to place p modulo the places.
    """

    name: str
    places: dict[str, list[int]]


class Choice(msgspec.Struct):
    """The way of an epoch and its predictions: for so many ``elements``, ``way`` is here (in the
    driver's process), one (as one task) or spread, with so many ``readers``; ms ``predicted`` for
    each way ({}: unknown), and ms that it ``took``; CPU-ms of its tasks, as ``expected`` (0:
    unknown) and as ``worked``; the predicted CPU-ms of all processes for each way (``cpu``), and
    ``why`` the way was taken.
    """

    epoch: int = 0
    elements: int = 0
    way: str = "one"
    readers: int = 1
    predicted: dict[str, float] = {}
    took: float = 0.0
    expected: float = 0.0
    worked: float = 0.0
    cpu: dict[str, float] = {}
    why: str = ""


class Delayed(msgspec.Struct):
    """The state of a ``delay`` (ms): epochs have so many ``rows``, whose elements are ``expected``
    to wait so long at most (0: unknown yet); whether that ``keeps`` the delay.
    """

    delay: int
    rows: int
    expected: float = 0.0
    keeps: bool = True


class Degree(msgspec.Struct):
    """The number of partitions, and ``by`` what it is chosen: model, cores, load (balance), given,
    placement; of ``most``. ``predicted``: recent ms of an epoch over each number. For each number
    the epochs of this run, ms predicted and taken; for each number of readers (``intake``) those of
    spread epochs; the recent decisions of the model (``decided``).
    """

    by: str
    most: int = 0
    predicted: dict[int, float] = {}
    measured: dict[int, list[float]] = {}
    intake: dict[int, list[float]] = {}
    decided: list[Resized] = []


class Costs(msgspec.Struct):
    """The costs of a run: the last choice; for each way the epochs of this run, ms predicted and
    taken; for the most expensive parts of the work a (ms a call), b (ns a row), rows for each
    element, ms as predicted for the last epoch and as measured; the predicted ms of an epoch like
    the last one over other numbers of ``partitions`` than its own (``over``), and spread with other
    numbers of readers (``intake``); the ``delay`` that is kept; ``degree``: the choice of the
    number of partitions; ``interval``: the least ms between the starts of two epochs; ``fixed``:
    CPU-ms of an epoch without elements.
    """

    last: Choice
    sums: dict[str, list[float]] = {}
    parts: dict[str, list[float]] = {}
    partitions: dict[int, float] = {}
    delay: Delayed | None = None
    over: int = 1
    intake: dict[int, float] = {}
    degree: Degree | None = None
    interval: float = 0.0
    fixed: float = 0.0


class Manifest(msgspec.Struct):
    """The state after epoch N."""

    epoch: int
    plan: int
    positions: dict[str, dict[str, Any]] = {}
    streams: dict[str, StreamRecord] = {}
    # the files that it names (``checkpoint.file_inventory``)
    state: dict[str, str] = {}
    files: list[str] = []
    segments: list[str] = []
    side: list[tuple[str, str, int]] = []
    counts: ResultCounts = NONE  # of queries with results
    # since they came, or since ``totalled`` has what they had before
    totals: ResultCounts = NONE
    shown_reports: dict[str, list[int]] = {}
    ended: bool = False
    rows_in: int = 0
    # stream -> pattern -> the triples that matched it since the beginning
    hits: dict[str, dict[str, int]] = {}
    rolled: list[UnpublishedResults] = []  # what this epoch publishes
    held: list[UnpublishedResults] = []  # what a later one will
    latest: dict[str, int] = {}  # query that can make a stream -> its last report with a result
    rows_state: int = 0
    results: int = 0  # solutions of all queries, also of those that have been taken out
    setup: str = ""  # which static files the state has seen
    groups: int = 1  # the version of the group table by which the state lies
    # slice of event time -> the file of its send graph; "": that of the last one is ``sent``
    slices: dict[str, str] = {}
    sent: msgspec.Raw = msgspec.Raw(b"null")
    # slice -> files of what was sent to each group; what is in no file yet, of the last slice
    by_group: dict[str, list[str]] = {}
    pending: list[tuple[str, Counted]] = []
    placed: Preferences | None = None  # of the last run that had a placement
    bound: Bound | None = None  # of this run, if its tasks are bound to processors
    reign: int = 0  # that of the driver which committed it
    balanced: RebalanceReport | None = None  # after the last reorganization
    costs: Costs | None = None  # how epochs ran, and what was expected
    sizes: dict[str, int] = {}  # query -> bytes of its results, where these have a limit
    crowded: dict[str, int] = {}  # query with more rows of state than it may have -> how many
    # files of totals, and how many queries each is of (``checkpoint``)
    totalled: list[tuple[str, int]] = []
    homes: AffinityStats | None = None  # of the last run on a cluster
    carried: TransportStats | None = None  # since the beginning of the checkpoint
    # "node member" of a relaxed join -> [rows given, pairs made, of these wanted, rows picked], of
    # late
    met: dict[str, list[int]] = {}
    # "node member" of what is joined, or of a join -> [rows, elements of the streams], of late
    flows: dict[str, list[int]] = {}
    # node -> [CPU seconds, rows that it was given], since it came; of many those with most seconds
    charges: dict[int, tuple[float, int]] = {}
    # node of a join whose form is chosen -> what its tasks have told last (``plan/sealed/joins``)
    forms: dict[str, list[int]] = {}
    loaded: Loaded | None = None  # in the last epoch that read static data
    gone: list[str] = []  # files of the inventory that are named no more
    inventory: str = ""
    pieces: dict[str, list[Measured]] = {}  # stream -> what its tasks were the first to read
    indexed: int = (
        0  # the last epoch in the index before this one (``checkpoint.result_index``); 0: none
    )

    @property
    def behind(self) -> bool:
        """Whether streams are complete beyond the reports that were made."""
        return any(s.known > s.watermark for s in self.streams.values())


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
