"""Publishes the results that a manifest names, repeatably
(docs/architecture.md#commit-and-recovery).

Results go to a sink per query (files, standard output). They stay as segments for readers of the
Python API as long as somebody may read them: a slow reader costs disk, not memory. With an index
(``checkpoint.result_index``) they stay as long as the index says, for other processes and later
runs. Late elements and dead letters become files. Names are functions of the epoch, so publishing
twice changes nothing.
"""

from __future__ import annotations

import json
import threading
import time
import warnings
from collections import Counter, deque
from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from levada.checkpoint import state_files
from levada.checkpoint.checkpoint_folder import Checkpoint
from levada.checkpoint.manifest import Manifest, UnpublishedResults
from levada.checkpoint.reader_leases import KeptEpoch, RetainedEpochs
from levada.checkpoint.result_counts import ResultTotals
from levada.checkpoint.result_index import Entry, Index, forget_index
from levada.connectors.serialization.merge_epochs import merge_epochs
from levada.connectors.serialization.serialize import Batch
from levada.connectors.serialization.unwritable_results import Unwritable
from levada.connectors.sinks import Sink
from levada.connectors.sinks.dead_letter_files import Letter, LetterFiles
from levada.connectors.sinks.file_sink import FileSink
from levada.connectors.sinks.stdout_sink import StdoutSink
from levada.core.checkpoint_files import file_mode
from levada.core.checksummed_files import read_sealed
from levada.core.cpu_guard import cpu_guard
from levada.core.event_time import distinct
from levada.core.frozen import frozen
from levada.core.size_thresholds import register
from levada.errors import EvaluationError
from levada.operators.results.result_segments import batch_of, empty_batch, with_empty
from levada.plan.execution.plan import QueryPlan
from levada.runtime.executor import Executor
from levada.runtime.publication.distributed_writes import is_for_tasks, write_by_tasks
from levada.runtime.publication.registered_query import Lifetime
from levada.runtime.publication.relation_files import (
    StateFiles,
    oldest,
    prepare_states,
    publish_batch,
)
from levada.runtime.task.operator_failures import as_failure
from levada.runtime.task.read_results import read_epoch

# Publishes an epoch beside the next one: on a thread of its own, one at a time
# (docs/decisions/0055-publication-beside-the-next-epoch.md).
#
#     commit n | intention n + 1 | job n + 1 ......... | commit n + 1
#              | results of n to sinks, letters ... |  ^ joined here
#
# Only expensive work runs beside: sinks and letters. The index and deletions stay on the loop's
# thread. So nothing is ever deleted that the last manifest's publication reads, since a crash
# repeats it. ``look`` or ``join`` raises a failure once, on the loop's thread.


MIN_ASYNC_BYTES = register(f"{__name__}.MIN_ASYNC_BYTES", 128 << 10)
"""Bytes of segments from which on a publication goes beside: some 3,000 rows, 10 ms."""
A_QUERY = register(f"{__name__}.A_QUERY", 4 << 10)
"""Bytes added for each query with results, since writing its file to the disk costs time."""


class PendingPublication(NamedTuple):
    """The remaining work of an epoch's publication."""

    epoch: int
    work: Callable[[], None]


class PublicationThread:
    """The publication that runs beside the loop. It calls ``ended`` on its own thread when it is
    over.
    """

    def __init__(self, ended: Callable[[], None]) -> None:
        self._ended = ended
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None

    def begin(self, work: Callable[[], None]) -> None:
        """Begins a publication. The previous one must be over."""
        assert self._thread is None, "one publication at a time"
        self._thread = threading.Thread(
            target=self._run, args=(work,), name="levada publication", daemon=True
        )
        self._thread.start()

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            self._failure = error
        finally:
            self._ended()

    def look(self) -> None:
        """Raises the failure of the publication, if it is over."""
        if self._thread is not None and not self._thread.is_alive():
            self.join()

    def join(self) -> None:
        """Waits until the publication is over; raises its failure."""
        if self._thread is None:
            return
        self._thread.join()
        self._thread, failure, self._failure = None, self._failure, None
        if failure is not None:
            raise failure


def is_worth(manifest: Manifest) -> bool:
    """Whether a thread costs less than it may gain for a manifest's results."""
    size = sum(held.segment_bytes for held in manifest.results_to_publish)
    return size > 0 and size + A_QUERY * len(manifest.counts) >= MIN_ASYNC_BYTES


# epochs between two searches for leftovers of attempts, with an index
SWEEP = register(f"{__name__}.SWEEP", 1024)


@frozen
class PublishedEpoch:
    """The facts about an epoch with results that readers need: a few dozen bytes, so that a slow
    reader costs disk and not memory.
    """

    plan: int
    segments: Sequence[str]
    shown_reports: Mapping[str, list[int]]


@dataclass
class Publication:
    """Publishes manifests. ``sink`` None: results are only kept for readers. ``keep``: segments
    stay after publishing. ``files``: the additional sinks of single queries, by name. ``index``:
    the results that are kept for readers in other processes and for outputs. ``executor``: runs
    tasks that may write files.
    """

    checkpoint: Checkpoint
    sink: Sink | None
    letters: Path
    keep: bool
    files: Mapping[str, Sink] = field(default_factory=dict)
    index: Index | None = None
    executor: Executor | None = None
    kept: list[PublishedEpoch] = field(default_factory=list)
    totals: ResultTotals = field(default_factory=ResultTotals)  # of this run
    delivered_reports: Counter[str] = field(
        default_factory=Counter
    )  # reports delivered to the sink, if there is one
    oldest_plan: int = 0

    def __post_init__(self) -> None:
        self._failures: dict[str, EvaluationError] = {}
        self._unheld: set[tuple[str, str]] = set()  # combinations that have been reported
        self._followed = RetainedEpochs(self.checkpoint.root, time.monotonic)
        self._needed: KeptEpoch | None = None  # the oldest epoch that another process reads
        last = self.checkpoint.last
        self._before = 0 if last is None else last.epoch  # the last epoch of the run before
        self._plan_before = 0 if last is None else last.plan  # of the epoch before
        self._plan = -1  # of the last published epoch
        self._forgets = self.index is None  # files of a previous run
        self.checkpoint.indexed = 0 if self.index is None else self.index.newest
        prepare_states(self.checkpoint, self.sink, self.files)

    def is_due(self, size: int, age: int) -> bool:
        """Whether to publish results of ``size`` bytes, the oldest ``age`` ms old. For files the
        ``Roll`` decides, for states the cost of writing them; all other results are due at once.
        """
        sinks = [sink for sink in (self.sink, *self.files.values()) if sink is not None]
        states = [sink.is_due(size, age) for sink in sinks if isinstance(sink, StateFiles)]
        others = [
            not isinstance(sink, FileSink) or sink.roll.is_due(size, age)
            for sink in sinks
            if not isinstance(sink, StateFiles)
        ]
        return any(others) or (all(states) and bool(states or not others))

    @property
    def reports(self) -> int:
        """The number of reports of all queries in this run."""
        return self.totals.reports if self.sink is None else self.delivered_reports.total()

    def keep_results(self, index: Index) -> None:
        """Keeps the results of the next epochs in an index, for outputs that are added now."""
        self.index, self._forgets = index, False
        self.checkpoint.indexed = index.newest

    def publish(
        self, manifest: Manifest, *, in_background: bool = False
    ) -> Callable[[], None] | None:
        """Publishes all results of an epoch, and those that were held back until it. Returns the
        remaining work if it may run ``in_background``, beside the next epoch, and is worth it; any
        one thread may do it.
        """
        if manifest.epoch > self._before:
            self.totals.add(manifest.counts)
        waits = in_background and self._can_wait(manifest)
        rest = partial(self._give_out, manifest, by_tasks=not waits)
        if not waits:
            rest()
        dropped_entries = self._add(manifest)
        self._needed = self._followed.follow(manifest)
        self.checkpoint.kept_from = None if self._needed is None else self._needed.epoch
        if not self._forgets:
            self._forget_plans(manifest)
        if not self.keep:
            self._forget(manifest, dropped_entries)
        elif manifest.segments or manifest.shown_reports:
            self.kept.append(
                PublishedEpoch(manifest.plan, manifest.segments, manifest.shown_reports)
            )
        return rest if waits else None

    def _add(self, manifest: Manifest) -> Sequence[Entry]:
        """Adds an epoch to the index; returns the results that the index has given up for it.
        Without an index deletes that of a previous run, once a manifest names none: no start may
        miss a named file.
        """
        if self.index is not None:
            dropped_entries = self.index.add(manifest)
            self.checkpoint.indexed = self.index.newest
            return dropped_entries
        if self._forgets and not manifest.previous_indexed_epoch:
            forget_index(self.checkpoint.root)
            self._forgets = False
        return []

    def _can_wait(self, manifest: Manifest) -> bool:
        """Whether a thread is worth it. With tasks that write, their jobs would wait for those of
        the next epoch, or the other way round.
        """
        if self.sink is None and not self.files:
            return False
        by_tasks = not self.files and is_for_tasks(self.sink, manifest)
        return is_worth(manifest) and not by_tasks

    def _give_out(self, manifest: Manifest, *, by_tasks: bool) -> None:
        if self.sink is not None or self.files:
            self._to_sinks(manifest, by_tasks=by_tasks)
        if manifest.letter_files:
            self._publish_letters(manifest, str(self.checkpoint.root))
        if self.sink is not None or self.files:
            self._publish_unwritable(manifest)

    def _to_sinks(self, manifest: Manifest, *, by_tasks: bool) -> None:
        """Publishes the results of a manifest that are due; ``by_tasks``: tasks may write them.
        Counts the reports here, where those of all tasks are known.
        """
        if manifest.plan != self._plan:
            self._plan = manifest.plan
            self._begin_states(manifest)
        executor = self.executor if by_tasks and not self.files else None
        if executor is not None and isinstance(self.sink, FileSink):
            written = self._write_by_tasks(self.sink, manifest, executor)
            self.delivered_reports.update(written or {})
            if written is not None:
                return
        try:
            with cpu_guard():
                loaded = list(self._batches(manifest))
        except BaseException as error:
            if as_failure(error) is None:
                raise
            loaded = self._readable(manifest)
        batches = deque(loaded)
        while batches:
            with cpu_guard(len(batches)):
                self._give(batches)

    def _give(self, batches: deque[tuple[int, QueryPlan, Batch]]) -> None:
        """Passes batches to the sinks, up to the first one that fails."""
        while batches:
            epoch, query, batch = batches.popleft()
            try:
                self._to_sinks_of(query, epoch, batch)
            except BaseException as error:
                self._fail(query.name, error)
                return

    def _to_sinks_of(self, query: QueryPlan, epoch: int, batch: Batch) -> None:
        if self.sink is not None:
            publish_batch(self.sink, query, epoch, batch)
            self.delivered_reports[query.name] += len(distinct(batch.report))
        if query.name in self.files:
            publish_batch(self.files[query.name], query, epoch, batch)

    def _batches(
        self, manifest: Manifest, query_names: Container[str] | None = None
    ) -> Iterator[tuple[int, QueryPlan, Batch]]:
        """Reads the results that are due, one batch a query."""
        return merge_epochs(
            (held.epoch, query, batch)
            for held in manifest.results_to_publish
            for query, batch in self.read(held, query_names)
        )

    def _readable(self, manifest: Manifest) -> list[tuple[int, QueryPlan, Batch]]:
        """Returns the batches of the queries whose results can be read; the others are marked as
        failed.
        """
        plans = {held.plan for held in manifest.results_to_publish}
        batches: list[tuple[int, QueryPlan, Batch]] = []
        for name in {n: None for plan in plans for n in self.checkpoint.load_plan(plan).queries}:
            try:
                with cpu_guard():
                    batches += self._batches(manifest, {name})
            except BaseException as error:
                self._fail(name, error)
        return batches

    def _write_by_tasks(
        self, sink: FileSink, manifest: Manifest, executor: Executor
    ) -> dict[str, int] | None:
        """Returns what tasks have written; None if the driver must write, which finds failures by
        query.
        """
        try:
            return write_by_tasks(self.checkpoint, sink, manifest, executor)
        except BaseException as error:
            if isinstance(error, EvaluationError) or as_failure(error) is not None:
                return None
            raise

    def _fail(self, query: str, error: BaseException) -> None:
        """Notes that writing results of a query has failed; raises other errors."""
        failure = as_failure(error)
        if failure is None:
            raise error
        self._failures[query] = failure

    def take_failures(self) -> dict[str, EvaluationError]:
        """Returns the queries whose results could not be written since the last call, with the
        reasons.
        """
        failures, self._failures = self._failures, {}
        return failures

    def _begin_states(self, manifest: Manifest) -> None:
        """Writes the files of states that are new, or belong to another query, under a new plan."""
        sinks = (self.sink, *self.files.values())
        if not any(isinstance(sink, StateFiles) for sink in sinks):
            return
        for query in self.checkpoint.load_plan(manifest.plan).queries.values():
            for sink in (self.sink, self.files.get(query.name)):
                if isinstance(sink, StateFiles):
                    sink.begin(query, manifest.epoch)

    def read_one(self, epoch: PublishedEpoch, lifetime: Lifetime) -> Iterator[Batch]:
        """Yields the batch of one query, if it has results in an epoch, or empty reports that it
        shows.
        """
        query, layout = lifetime.query, lifetime.layout
        if query is None or layout is None or not lifetime.has(epoch.plan):
            return
        root = str(self.checkpoint.root)
        times = np.array(epoch.shown_reports.get(query.name, []), np.int64)
        query_then = query.at_version(epoch.plan)
        batch = batch_of(
            query_then, layout, epoch.segments, lambda name: state_files.map_(root, name)
        )
        if batch is not None:
            yield with_empty(batch, times)
        elif len(times):
            yield empty_batch(query, times)

    def read(
        self, epoch: UnpublishedResults | PublishedEpoch, query_names: Container[str] | None = None
    ) -> Iterator[tuple[QueryPlan, Batch]]:
        """Returns the batches of an epoch (None: of all queries), with the empty reports that are
        shown.
        """
        if epoch.segments or epoch.shown_reports:
            plan = self.checkpoint.load_plan(epoch.plan)
            yield from read_epoch(str(self.checkpoint.root), plan, epoch, query_names)

    def _publish_letters(self, manifest: Manifest, root: str) -> None:
        inside = self.letters.absolute() == self.checkpoint.root
        sink = LetterFiles(self.letters, file_mode(root) if inside else 0o666)
        for part, (kind, name, _) in enumerate(manifest.letter_files):
            path = Path(root) / name
            if path.exists():
                # str.splitlines also cuts within texts, such as at U+2028
                lines = read_sealed(path).split(b"\n")
                sink.publish(
                    Letter(kind), manifest.epoch, [json.loads(line) for line in lines if line], part
                )

    def _publish_unwritable(self, manifest: Manifest) -> None:
        """Publishes the results that a sink's format could not represent, as dead letters of its
        output.
        """
        unwritable: list[Unwritable] = []
        for sink in (self.sink, *self.files.values()):
            if isinstance(sink, FileSink | StdoutSink):
                unwritable += sink.unwritable
                sink.unwritable.clear()
        if not unwritable:
            return
        for query, form in sorted({(each.query, each.form) for each in unwritable} - self._unheld):
            self._unheld.add((query, form))
            message = (
                f"{form} cannot hold some results of the query {query}: they are dead letters."
            )
            warnings.warn(message, stacklevel=1)
        letters = [each.letter() for each in sorted(unwritable, key=lambda each: each.query)]
        part = len(manifest.letter_files)
        LetterFiles(self.letters).publish(Letter.DEAD, manifest.epoch, letters, part)

    def _forget_plans(self, manifest: Manifest) -> None:
        """Deletes plans older than those of held or published results, or of the previous epoch.
        Readers of queries need no plans.
        """
        held = [h.plan for h in (*manifest.results_to_publish, *manifest.waiting_results)]
        needed = (needed.plan for needed in self._needed_by_others())
        plan = min([manifest.plan, self._plan_before, *held, *needed])
        self._plan_before = manifest.plan
        if plan > self.oldest_plan:
            self.checkpoint.forget_plans(plan)
            self.oldest_plan = plan

    def _forget(self, manifest: Manifest, dropped_entries: Sequence[Entry]) -> None:
        """Deletes data that no publication or query will read: segments older than held or
        published ones or those of the previous epoch, and older letters. ``dropped_entries``:
        results that the index has just given up. Nothing is deleted while an index of a previous
        run names it.
        """
        if self._forgets:
            return
        of_before = manifest.epoch - 1
        first = min(
            [of_before, oldest(manifest), *(needed.epoch for needed in self._needed_by_others())]
        )
        self._forget_files("side", manifest.epoch)
        if self.index is None or manifest.epoch % SWEEP == 0:
            self._forget_files("results", first)
        else:  # many existing files stay
            whole = (entry for entry in dropped_entries if entry.epoch < first)
            self.checkpoint.unlink(name for entry in whole for name in entry.segments)

    def _forget_files(self, folder: str, least: int) -> None:
        for path in (self.checkpoint.root / folder).iterdir():
            if int(path.name.split("-", 1)[0]) < least:
                path.unlink(missing_ok=True)

    def _needed_by_others(self) -> list[KeptEpoch | Entry]:
        """Returns the oldest epochs that other processes read, or may read."""
        indexed = None if self.index is None else self.index.first
        return [oldest for oldest in (self._needed, indexed) if oldest is not None]
