"""The kept results of a checkpoint, for readers in other processes: by query and report time
(docs/decisions/0025-readers-are-cursors.md).

The index of published epochs lists them. Without an index it is the manifests, which a reader's
lease makes the engine keep (``checkpoint.reader_leases``). The id of a report is its time in ms;
for a query without windows it is the epoch of its answer. Ids of a query ascend. Successive queries
of one name differ in ``since``, the first plan version of each.

One thread refreshes, and any thread may read. A report is decoded on request: kept results cost
disk, and a few hundred bytes of memory an epoch.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from levada.checkpoint import state_files
from levada.checkpoint.checkpoint_folder import plan_of
from levada.checkpoint.manifest import read_manifest
from levada.checkpoint.reader_leases import ReaderLease, epochs_there
from levada.checkpoint.result_index import Cursor, Entry, entry_of
from levada.connectors.serialization.serialize import Batch
from levada.core.checkpoint_files import facts_of
from levada.core.event_time import TIMELESS, Times, distinct
from levada.core.frame import Frame
from levada.errors import CheckpointError
from levada.operators.results.result_segments import batch_of, empty_batch, with_empty
from levada.plan.execution.plan import Plan, QueryPlan

HELD = 1000  # epochs that a lease requires without an index


class ArchivedReports(NamedTuple):
    """The reports of a query in one epoch. ``ids``: the reports in the batch, ascending."""

    query: QueryPlan
    entry: Entry
    batch: Batch
    ids: list[int]


class Archive:
    """The kept results of a checkpoint. ``sign``: the lease of a reader that may write."""

    def __init__(self, root: Path, sign: ReaderLease | None = None) -> None:
        self._root, self._facts = root, facts_of(root)
        self._index = Cursor(root)
        self._manifests = Manifests(root, sign, partial(plan_of, root, self._facts))
        self._lock = threading.Lock()
        self._of: dict[str, list[Entry]] = {}
        self._gone: dict[str, int] = {}
        self._first = 0

    def refresh(self) -> list[Entry]:
        """Returns the new epochs since the last call. Raises ``CheckpointError``."""
        source = self._index if self._index.has_index else self._manifests
        new = source.read_new()
        with self._lock:
            for query, last in source.gone.items() if new else ():
                self._gone[query] = max(self._gone.get(query, last), last)
            for entry in new:
                for query in entry.queries:
                    self._of.setdefault(query, []).append(entry)
            if source.first > self._first:
                self._first = source.first
                for entries in self._of.values():
                    n = bisect_left(entries, source.first, key=lambda entry: entry.epoch)
                    if n > FEW_GONE or n == len(entries):
                        del entries[:n]
        return new

    @property
    def has_index(self) -> bool:
        """Whether the engine keeps results by an index; else it deletes them after an epoch."""
        return self._index.has_index

    def queries(self) -> set[str]:
        """Returns the queries that have kept reports."""
        with self._lock:
            return {query for query, entries in self._of.items() if entries}

    def last_deleted(self, query: str, since: int = 0) -> int | None:
        """Returns the id of the last deleted report; None without one."""
        gone = self._gone.get(query)
        with self._lock:
            entries = self._of.get(query, [])
            kept = bisect_left(entries, self._first, key=lambda entry: entry.epoch)
            begin = self._begin(entries, since)
            if gone is None or kept < begin:  # there are reports of the previous query
                return None
            first = _first_of(entries[kept], query) if kept < len(entries) else None
        return gone if first is None or gone < first else None

    def last(self, query: str, since: int = 0) -> int | None:
        """Returns the id of the last report, or None."""
        with self._lock:
            entries = self._of.get(query)
            entry = entries[-1] if entries else None
        return entry.last(query) if entry is not None and entry.plan >= since else None

    def first(self, query: str) -> int | None:
        """Returns the id of the first kept report, or None."""
        with self._lock:
            for entry in self._of.get(query, ()):
                if entry.epoch >= self._first:
                    return _first_of(entry, query)
        return None

    def after(self, query: str, after: int | None, since: int = 0) -> Iterator[ArchivedReports]:
        """Yields the reports after an id (None: all kept ones), epoch by epoch. Skips reports that
        are deleted meanwhile.
        """
        for entry in self.entries(query, after, since):
            archived = self.read(entry, query, after)
            if archived is not None and archived.ids:
                yield archived

    def entries(self, query: str, after: int | None, since: int = 0) -> Iterator[Entry]:
        """Yields the epochs that have reports after an id."""
        epoch = -1
        while (entry := self._next(query, after, epoch, since)) is not None:
            epoch = entry.epoch
            yield entry

    def latest(self, query: str, since: int = 0) -> ArchivedReports | None:
        """Returns the last report, or None."""
        last = self.last(query, since)
        return None if last is None else self.find_report(query, last, since)

    def find_report(self, query: str, report: int, since: int = 0) -> ArchivedReports | None:
        """Returns the report of this id; None if it does not exist or was deleted."""
        for archived in self.after(query, report - 1, since):
            if archived.ids[0] != report:
                return None
            return replace_ids(archived, report)
        return None

    def _begin(self, entries: Sequence[Entry], since: int) -> int:
        return bisect_left(entries, since, key=lambda entry: entry.plan)

    def _next(self, query: str, after: int | None, epoch: int, since: int) -> Entry | None:
        """Returns the first entry with reports after the id, and after the epoch."""
        with self._lock:
            entries = self._of.get(query, [])
            least = max(epoch + 1, self._first)
            at = bisect_left(entries, least, key=lambda entry: entry.epoch)
            at = max(at, self._begin(entries, since))
            if after is not None:
                at = bisect_right(entries, after, at, key=lambda entry: entry.last(query))
            return entries[at] if at < len(entries) else None

    def read(self, entry: Entry, query: str, after: int | None = None) -> ArchivedReports | None:
        """Reads a query's reports in an epoch, after an id; None if they were deleted. Raises
        ``CheckpointError`` for a damaged file.
        """
        last = entry.last(query)
        try:
            plan = plan_of(self._root, self._facts, entry.plan)
            known = plan.queries[query]
            layout = plan.nodes[known.node].layout
            shown = np.array(entry.shown_reports.get(query, []), np.int64)
            batch = batch_of(known, layout, entry.segments, self._open)
        except CheckpointError:
            if all((self._root / name).exists() for name in entry.segments):
                raise
            with self._lock:  # before the index records it
                self._gone[query] = max(self._gone.get(query, last), last)
            return None
        whole = empty_batch(known, shown) if batch is None else with_empty(batch, shown)
        if entry.queries[query][1] == TIMELESS:
            return ArchivedReports(known, entry, whole, [entry.epoch])
        part = whole if after is None else reports_after(whole, after)
        return ArchivedReports(known, entry, part, ids_of(part))

    def _open(self, name: str) -> tuple[Mapping[str, Frame], Any]:
        return state_files.map_(str(self._root), name)


FEW_GONE = 256  # entries of deleted epochs that are dropped together


class Manifests:
    """The epochs of an engine without an index, from its manifests."""

    def __init__(self, root: Path, sign: ReaderLease | None, plans: Callable[[int], Plan]) -> None:
        self._root, self._sign, self._plans = root, sign, plans
        self._last = 0
        self.first = 0
        self.gone: dict[str, int] = {}

    def read_new(self) -> list[Entry]:
        """Returns the new epochs since the last call."""
        there = epochs_there(self._root)
        newest = max(there, default=0)
        self.first = min(there, default=0)
        if self._sign is not None:
            try:
                self._sign.require_epoch(max(newest - HELD, self.first, 1))
            except CheckpointError:
                self._sign = None  # the folder is read-only
        if newest == self._last:
            return []
        new = []
        for epoch in sorted(e for e in there if e > self._last):
            with suppress(CheckpointError, OSError):
                path = self._root / "manifests" / str(epoch)
                entry = entry_of(
                    self._root, read_manifest(path), path.stat().st_mtime_ns // 10**6, self._plans
                )
                if entry.queries:
                    new.append(entry)
        if self.first > self._last + 1:
            for entry in reversed(new):  # earlier reports are unknown
                self.gone |= {query: _first_of(entry, query) - 1 for query in entry.queries}
        self._last = newest
        return new


def _first_of(entry: Entry, query: str) -> int:
    first = entry.queries[query][0]
    return entry.epoch if first == TIMELESS else first


def ids_of(batch: Batch) -> list[int]:
    """Returns the times of a batch's reports, each once.

    >>> ids_of(Batch(np.array([5, 5, 7]), empty=np.array([6])))
    [5, 6, 7]
    """
    return [int(time) for time in distinct(np.concatenate([batch.report, batch.empty]))]


def reports_after(batch: Batch, after: int) -> Batch:
    """Returns the reports of a batch after this time.

    >>> reports_after(Batch(np.array([5, 5, 7])), 5).report
    array([7])
    """
    at = int(np.searchsorted(batch.report, after, "right"))
    return _rows(batch, at, len(batch.report), batch.empty[batch.empty > after])


def one_report(batch: Batch, report: int) -> Batch:
    """Returns one report of a batch."""
    start = int(np.searchsorted(batch.report, report, "left"))
    stop = int(np.searchsorted(batch.report, report, "right"))
    return _rows(batch, start, stop, batch.empty[batch.empty == report])


def first_reports(archived: ArchivedReports, count: int) -> ArchivedReports:
    """Returns the first ``count`` reports."""
    if len(archived.ids) <= count or archived.ids == [archived.entry.epoch]:
        return archived
    last = archived.ids[count - 1]
    stop = int(np.searchsorted(archived.batch.report, last, "right"))
    empty = archived.batch.empty[archived.batch.empty <= last]
    return archived._replace(batch=_rows(archived.batch, 0, stop, empty), ids=archived.ids[:count])


def replace_ids(archived: ArchivedReports, report: int) -> ArchivedReports:
    """Returns only the report of this id."""
    if len(archived.ids) == 1:
        return archived
    return archived._replace(batch=one_report(archived.batch, report), ids=[report])


def _rows(batch: Batch, start: int, stop: int, empty: Times) -> Batch:
    return replace(
        batch,
        report=batch.report[start:stop],
        columns={name: column[start:stop] for name, column in batch.columns.items()},
        change=None if batch.change is None else batch.change[start:stop],
        booleans=None if batch.booleans is None else batch.booleans[start:stop],
        graphs=None if batch.graphs is None else batch.graphs[start:stop],
        empty=empty,
    )
