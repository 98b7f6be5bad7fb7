"""One output: a thread that sends a query's reports from the index to a target, epoch by epoch.

    open -> position -> (entry after it -> rows -> write, with the position)*

If the target is unavailable, the thread starts again from ``open``, after growing pauses, and needs
no memory of writes in progress. Meanwhile the index keeps the epochs that the output lacks, and
other outputs continue. Every other failure is stored in ``failure``.

A new output begins at the oldest report of the index after the epoch ``begins``. An output whose
next reports were deleted fails, unless it skips them. It is ``over`` when it has all reports up to
the epoch ``ends``. Another output to the same target waits until then.
"""

from __future__ import annotations

import threading
import time
import warnings
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from zlib import crc32

import msgspec

from levada.checkpoint.delivery_progress import Delivered
from levada.checkpoint.request_files import Sent
from levada.checkpoint.result_index import Cursor, Entry
from levada.connectors.serialization.merge_epochs import join
from levada.connectors.sinks.dead_letter_files import Letter, LetterFiles
from levada.connectors.sinks.transactional_sink import Piece, Position, Target
from levada.core.cpu_guard import cpu_guard
from levada.core.event_time import MAX, MIN
from levada.engine.status.result_archive import Archive, ArchivedReports
from levada.errors import (
    EngineError,
    EvaluationError,
    LevadaError,
    SinkError,
    TargetAwayError,
    TargetTakenError,
    UnfitResultError,
)
from levada.plan.execution.plan import QueryPlan
from levada.runtime.publication.registered_query import Lifetime
from levada.runtime.task.operator_failures import as_failure

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0  # s between two attempts
LOOK = 0.5  # s without a signal after which the thread looks for reports
MAX_GATHERED = 64 << 20  # bytes of segments that are gathered for one write
ENDING = 3.0  # s for targets to end writes in progress


@dataclass
class Delivery:
    """The output of a query of the checkpoint in ``root``. ``known``: its progress in the
    checkpoint; None for a new output. ``changed``: called after progress; with True if the progress
    must be recorded at once. ``lifetime``: the lifetime of the program's query. ``asked``: the
    request that added the output, which then retries until its target works. ``after``: the earlier
    output to the same target.
    """

    query: str
    target: Target
    root: Path
    known: Delivered | None
    changed: Callable[[bool], None]
    lifetime: Lifetime | None = None
    begins: int = 0
    ends: int = MAX
    asked: Sent | None = None
    letters: Path | None = None  # None: the checkpoint
    after: Delivery | None = None
    position: Position = field(init=False)
    reached: int = field(init=False)  # up to this epoch it needs nothing
    why: str = ""
    failure: BaseException | None = None
    fault: EvaluationError | None = None  # its query will be suspended for it
    broken: bool = False  # by a fault: it stops writing in this run
    has_asked: bool = False  # the target has returned its position
    older: bool = False  # the checkpoint is an older copy: the target has other epochs
    holds: bool = False
    over: bool = False

    def __post_init__(self) -> None:
        known = self.known
        self.position = (
            Position() if known is None else Position(known.epoch, known.report, known.since)
        )
        self.reached = max(0 if known is None else known.delivered_epoch, self.begins)
        self._archive = Archive(self.root)
        self._gathered: list[Entry] = []  # for one write of the target
        self._gathered_at = 0.0
        self._flushing = False
        self._stopping, self._woken = threading.Event(), threading.Event()
        self._thread = threading.Thread(
            target=self._run, name=f"levada output {self.query}", daemon=True
        )

    @property
    def progress(self) -> Delivered:
        """Returns the progress to record in the checkpoint."""
        at = self.position
        return Delivered(
            self.query, self.target.name, at.epoch, at.report, at.since, self.reached, self.why,
            self.holds, self.begins, self.ends,
        )  # fmt: skip

    def begin(self, epoch: int) -> None:
        """Sets the epoch after which reports are sent, unless the checkpoint has the progress.
        Starts the thread.
        """
        if self.known is None:
            self.begins = epoch
        self.reached = max(self.reached, self.begins)
        self.start()

    def end(self, epoch: int) -> None:
        """Ends the output: its query was removed after this epoch, and no later report exists. An
        output that no target has ever accepted ends at once.
        """
        self.ends = epoch
        if self.known is None and self.why:
            self._end(self.why)
        self.wake()

    def start(self) -> None:
        """Starts the thread of the output."""
        self._thread.start()

    def wake(self) -> None:
        """Wakes the thread: there are more reports."""
        self._woken.set()

    def stop(self) -> None:
        """Stops the output. A write in progress is finished or rolled back."""
        self._stopping.set()
        self._woken.set()

    def join(self, seconds: float) -> None:
        """Waits for the end, but not for an unresponsive target."""
        if self._thread.is_alive():
            self._thread.join(seconds)

    def _run(self) -> None:
        pause = FIRST_PAUSE
        while self.after is not None and not self.after.over and not self._stopping.is_set():
            self._stopping.wait(FIRST_PAUSE)
        while not self._stopping.is_set():
            before = self.position
            try:
                self._deliver()
            except LevadaError as error:
                if self._is_waited_for(error):
                    self._set_reason(str(error))
                    moved = self.position != before
                    pause = FIRST_PAUSE if moved else min(2 * pause, LONGEST_PAUSE)
                    self._stopping.wait(pause)
                elif self.ends < MAX:
                    self._end(str(error))
                elif isinstance(error, UnfitResultError):
                    self._break(EvaluationError(str(error)), error)
                else:
                    self._fail(error)
            except BaseException as error:
                fault = as_failure(error)
                if fault is None and isinstance(error, Exception):
                    fault = EvaluationError(repr(error))  # of the system, not of the target
                if fault is None:
                    failure = EngineError(f"The output of {self.query} failed: {error!r}.")
                    failure.__cause__ = error
                    self._fail(failure)
                else:
                    self._break(fault)
        with suppress(Exception):
            self.target.close()

    def _is_waited_for(self, error: LevadaError) -> bool:
        """Returns whether the output tries again. An output of a request tries until its query is
        removed, since it must not end the engine.
        """
        if isinstance(error, TargetAwayError):
            return self.ends == MAX or self.known is not None
        final = isinstance(error, TargetTakenError | UnfitResultError)
        return self.asked is not None and not final and self.ends == MAX

    def _end(self, why: str) -> None:
        """Ends the output before it has all reports."""
        self.over = True
        message = f"The output of the query {self.query} that was dropped ends without all: {why}"
        warnings.warn(message, stacklevel=2)
        self._stopping.set()

    def _fail(self, error: LevadaError) -> None:
        self.failure = error
        self._set_reason(str(error))
        self._stopping.set()

    def _break(self, fault: EvaluationError, cause: LevadaError | None = None) -> None:
        """Stops the output; the query will be suspended."""
        fault.__cause__ = cause
        self.fault, self.broken = fault, True
        self._set_reason(f"The query is suspended: {fault.message}")
        self._stopping.set()

    def _set_reason(self, why: str) -> None:
        if why != self.why:
            self.why = why
            self.changed(True)

    def _deliver(self) -> None:
        """Opens the target and delivers until the target fails or the output must end."""
        known = None if self.known is None else self.position
        self._gathered.clear()
        position = self.target.open(known)
        cursor = Cursor(self.root)
        ends, entries = self.ends, cursor.read_new()
        self._find_position(position, cursor, entries)
        self._set_reason("")
        while not self._stopping.is_set():
            for entry in entries:
                if self._stopping.is_set():
                    return None
                if self.has(entry):
                    self._gathered.append(entry)
                    if not self.target.interval_ms or self._is_due():
                        self._write_gathered()
                if not self._gathered:
                    self.reached = max(self.reached, entry.epoch)
            if ends < MAX or self._is_due():
                self._write_gathered()
            if ends < MAX:  # set before the last look, so that look had all reports
                self.over = True
                return self._stopping.set()
            self.changed(False)
            self._woken.wait(LOOK)
            self._woken.clear()
            ends, entries = self.ends, cursor.read_new()
        return None

    def has(self, entry: Entry) -> bool:
        """Returns whether an epoch has undelivered reports for this output."""
        first = max(self.position.epoch, self.begins)
        return first < entry.epoch <= self.ends and self.query in entry.queries

    def _find_position(
        self, position: Position | None, cursor: Cursor, entries: Sequence[Entry]
    ) -> None:
        """Continues at the target's position. Raises ``SinkError`` if reports are missing."""
        gone = cursor.gone.get(self.query, MIN)
        if position is None:
            position = Position(report=gone)
        elif not self.target.skips and position.epoch >= self.begins:  # else of an earlier query
            unknown = self.known is None and cursor.first > position.epoch + 1
            if unknown or gone > position.report:
                raise SinkError(
                    f"Reports of {self.query} are not kept any more that {self.target.name} has "
                    "not had: Levada has run without this output.",
                    hint="Say lost=skip to go on without them, or name another target.",
                )
        self.position = self._place_by_report(position, entries)
        # a restored target may be behind the progress in the checkpoint
        self.reached = min(self.reached, max(position.epoch, self.begins))
        self.has_asked = True
        self.known = self.progress
        self.changed(True)  # before anything is written

    def _place_by_report(self, position: Position, entries: Sequence[Entry]) -> Position:
        """Returns a position whose epoch is one of this checkpoint.

        A target whose last report is not in that epoch here was written by a run on a newer copy of
        the checkpoint. Its epochs say nothing here, and its last report counts.
        """
        mine = [e for e in entries if self.query in e.queries and e.epoch > self.begins]
        kept = entries[0].epoch if entries else 0
        last = {e.epoch: e.last(self.query) for e in mine}.get(position.epoch)
        if not max(kept, self.begins + 1) <= position.epoch or last == position.report:
            return position
        self.older = True
        had = (e.epoch for e in mine if e.last(self.query) <= position.report)
        return msgspec.structs.replace(position, epoch=max(had, default=self.begins))

    def flush(self) -> None:
        """Makes the target get gathered results at once."""
        if self._gathered and not self._flushing:
            self._flushing = True
            self.wake()

    def _is_due(self) -> bool:
        """Returns whether gathered results must be written now."""
        if not self._gathered:
            return False
        if len(self._gathered) == 1:
            self._gathered_at = self._gathered_at or time.monotonic()
        age_ms = (time.monotonic() - self._gathered_at) * 1000
        size = sum(entry.segment_bytes for entry in self._gathered)
        late = age_ms >= self.target.interval_ms or size >= MAX_GATHERED
        return late or self.holds or self._flushing

    def _write_gathered(self) -> None:
        """Writes the gathered epochs: as one, while they are of one query."""
        entries, self._gathered, self._gathered_at = self._gathered, [], 0.0
        self._flushing = False
        with cpu_guard():
            self._write(entries)
        if entries:
            self.reached = max(self.reached, entries[-1].epoch)

    def _write(self, entries: Sequence[Entry]) -> None:
        batches = []
        for entry in entries:
            archived = self._read(entry)
            if archived is not None:
                batches.append((entry, archived))
        for _, group in groupby(batches, key=lambda each: _shape_of(each[1].query)):
            members = list(group)
            entry, archived = members[-1]
            batch = join([each.batch for _, each in members])
            position = Position(entry.epoch, entry.last(self.query), archived.query.since)
            self.target.write(Piece(archived.query, batch, position))
            self.position = position
            self._publish_unwritable(entry.epoch)

    def _read(self, entry: Entry) -> ArchivedReports | None:
        """Reads the reports of an epoch; None if the target has them."""
        archived = self._archive.read(entry, self.query)
        if self.older and archived is not None and archived.query.since == self.position.since:
            archived = self._archive.read(entry, self.query, self.position.report)
            if entry.last(self.query) <= self.position.report:
                self.position = msgspec.structs.replace(self.position, epoch=entry.epoch)
                return None
        if archived is None:
            raise SinkError(f"The results of {self.query} in epoch {entry.epoch} are gone.")
        return archived

    def _publish_unwritable(self, epoch: int) -> None:
        """Writes the results that the target's format cannot hold as dead letters."""
        if unwritable := self.target.unwritable:
            part = 1000 + crc32(f"{self.query} {self.target.name}".encode()) % 9000
            letters = [each.letter() for each in unwritable]
            LetterFiles(self.letters or self.root).publish(Letter.DEAD, epoch, letters, part)
            unwritable.clear()
            message = f"{self.target.name} cannot hold some results of the query {self.query}"
            warnings.warn(f"{message}: they are dead letters.", stacklevel=2)


def _shape_of(query: QueryPlan) -> tuple[object, ...]:
    """Returns the facts that results must share to be written together."""
    timeless = () if query.streams else (object(),)  # reports without a time stay apart
    return query.since, query.form, query.output, tuple(query.variables), timeless
