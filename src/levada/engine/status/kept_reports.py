"""The kept reports of one query in a checkpoint, as tables: for ``levada results``, Spark and
programs without an engine.

A report's id is its time in ms (the epoch, for a query without windows). A range contains the ids
after ``after`` up to ``until``. A range is read epoch by epoch, and each epoch's table is a
function of the checkpoint: equal ranges give equal rows in equal order. Only reports of the present
query are read, not those of an earlier query of its name (``since``). Cost: one epoch is in memory
at a time.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from levada.checkpoint.checkpoint_folder import newest_manifest, plan_of
from levada.checkpoint.reader_leases import ReaderLease
from levada.checkpoint.request_files import read_ledger
from levada.checkpoint.result_index import Entry
from levada.connectors.serialization.report_tables import (
    Column,
    arrow_schema,
    choose_variables,
    columns_of,
    common_type,
    inferred_type,
    report_table,
    result_terms,
    result_variables,
)
from levada.connectors.serialization.serialize import Batch
from levada.core.checkpoint_files import facts_of
from levada.core.event_time import MAX, MIN, TIMELESS, instant, parse_time
from levada.core.query_model import Form
from levada.engine.status.result_archive import (
    Archive,
    ArchivedReports,
    first_reports,
    one_report,
)
from levada.engine.suspended_queries import read_suspended
from levada.errors import CheckpointError, UsageError, near
from levada.plan.execution.plan import QueryPlan

INFERENCE_BYTES = 64 << 20
"""The bytes at the begin of a range, and at its end, from which types of columns are inferred."""
SMALL_PART, LARGE_PART, SMALL_PARTS = 4 << 10, 8 << 20, 16  # bytes, bytes, parts
KEEP_HINT = "Run the engine with --keep, such as --keep 1GB or --keep 1d."


class Range(NamedTuple):
    """Reports with ids after ``after`` up to ``until``."""

    after: int = MIN
    until: int = MAX


class NoReportsError(UsageError):
    """A query of which the checkpoint keeps no report."""


@dataclass
class KeptReports:
    """The kept reports of a query. ``skips``: deleted reports may be missing in a range. ``lease``:
    the lease of a reader that follows an engine, also one that keeps nothing for others. Raises
    ``UsageError`` for an unknown query, or one without kept reports, and ``CheckpointError``.
    """

    root: Path
    query: str
    skips: bool = False
    lease: ReaderLease | None = None
    plan: QueryPlan = field(init=False)
    checkpoint: str = field(init=False)  # its id

    def __post_init__(self) -> None:
        self._facts = facts_of(self.root)
        self.checkpoint = self._facts.id
        self._archive = Archive(self.root, self.lease)
        self._archive.refresh()
        entries = deque(self._archive.entries(self.query, None), maxlen=1)
        if not entries or not (self._archive.has_index or self.lease):
            raise self._absence_error()
        newest = entries[0]
        self.plan = plan_of(self.root, self._facts, newest.plan).queries[self.query]

    @property
    def since(self) -> int:
        """The first plan version with the query, which tells queries of one name apart."""
        return self.plan.since

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables of the results."""
        return result_variables(self.plan.form, self.plan.variables)

    @property
    def is_timeless(self) -> bool:
        """Whether the query has no windows, so that its report has no time."""
        return not self.plan.streams

    def bounds(self, first: str, last: str) -> Range:
        """Returns the range of these report times; "" is no limit. Raises ``UsageError``."""
        if self.is_timeless and (first or last):
            raise UsageError(f"The query {self.query} has no windows: its reports have no times.")
        after = parse_time(first) - 1 if first else MIN
        return Range(after, parse_time(last) if last else MAX)

    def refresh(self) -> None:
        """Reads the index of new epochs."""
        self._archive.refresh()

    def last(self) -> int:
        """Returns the id of the last report; MIN without one."""
        last = self._archive.last(self.query, self.since)
        return MIN if last is None else last

    def last_deleted(self) -> int:
        """Returns the id of the last deleted report; MIN without one."""
        gone = self._archive.last_deleted(self.query, self.since)
        return MIN if gone is None else gone

    def check_kept(self, bounds: Range) -> None:
        """Raises ``CheckpointError`` if reports of a range were deleted and may not be missing."""
        if not self.skips and self.last_deleted() > bounds.after:
            raise self.deleted_error()

    def deleted_error(self) -> CheckpointError:
        """Returns the error of a range with deleted reports."""
        first = self._archive.first(self.query)
        oldest = (
            "None is kept." if first is None else f"The oldest report is {self.time_text(first)}."
        )
        return CheckpointError(
            f"Reports of {self.query} in this range are not kept any more. {oldest}",
            hint="Read from there, or go on without them: lost=skip (--lost skip). The engine "
            "keeps more with a larger --keep.",
        )

    def time_text(self, report: int) -> str:
        """Returns the id of a report for people."""
        return f"of epoch {report}" if self.is_timeless else f"{instant(report)} ({report})"

    def batches(self, bounds: Range) -> Iterator[ArchivedReports]:
        """Yields the reports of a range, epoch by epoch. Raises ``CheckpointError`` if some were
        deleted and may not be missing.
        """
        for entry in self._entries(bounds):
            archived = self._archive.read(entry, self.query, bounds.after)
            if archived is None:
                if self.skips:
                    continue
                raise self.deleted_error()
            archived = _up_to(archived, bounds.until)
            if archived.ids:
                yield archived

    def tables(self, columns: Sequence[Column], bounds: Range) -> Iterator[pa.Table]:
        """Yields the rows of a range as tables, one for each epoch. Raises ``UnfitValueError``."""
        for archived in self.batches(bounds):
            yield report_table(archived.batch, columns)

    def table(self, columns: Sequence[Column], bounds: Range) -> pa.Table:
        """Returns the rows of a range as one table."""
        tables = list(self.tables(columns, bounds))
        return pa.concat_tables([arrow_schema(columns).empty_table(), *tables]).combine_chunks()

    def reports(self, bounds: Range) -> Iterator[tuple[int, Batch]]:
        """Yields the reports of a range one by one, with their ids."""
        for archived in self.batches(bounds):
            for report in archived.ids:
                whole = len(archived.ids) == 1
                yield report, archived.batch if whole else one_report(archived.batch, report)

    def parts(self, bounds: Range) -> list[Range]:
        """Splits a range into parts of similar size, to read at the same time. The parts follow
        from the epochs of the range alone.
        """
        entries = list(self._entries(bounds))
        total = sum(entry.segment_bytes for entry in entries)
        size = min(max(total // SMALL_PARTS, SMALL_PART), LARGE_PART)
        ends, filled = [bounds.after], 0
        for entry in entries:
            filled += entry.segment_bytes
            if filled >= size:
                ends.append(min(entry.last(self.query), bounds.until))
                filled = 0
        if filled:
            ends.append(min(entries[-1].last(self.query), bounds.until))
        return [Range(*pair) for pair in pairwise(ends)]

    def columns(
        self, words: dict[str, str], bounds: Range, *, datatypes: bool = False
    ) -> tuple[Column, ...]:
        """Returns the columns of the named variables (none: all), with the types that are named.
        The other types are inferred from the rows of a range. Raises ``UsageError``.
        """
        chosen = choose_variables(self.query, words, self.variables)
        open_names = [name for name in chosen if not words.get(name)]
        types = {**words, **self._inferred_types(open_names, bounds)}
        return columns_of(chosen, types, datatypes=datatypes)

    def _inferred_types(self, names: Sequence[str], bounds: Range) -> dict[str, str]:
        if self.plan.form is Form.CONSTRUCT or not names:
            return {}
        types = dict.fromkeys(names, "")
        entries = list(self._entries(bounds))
        for entry in _ends_of(entries):
            archived = self._archive.read(entry, self.query, bounds.after)
            if archived is not None:
                frame = result_terms(_up_to(archived, bounds.until).batch)
                for name in names:
                    types[name] = common_type(types[name], inferred_type(frame[name]))
        return types

    def _entries(self, bounds: Range) -> Iterator[Entry]:
        """Yields the epochs that have reports of a range."""
        for entry in self._archive.entries(self.query, bounds.after, self.since):
            first = entry.queries[self.query][0]
            if (entry.epoch if first == TIMELESS else first) > bounds.until:
                return
            yield entry

    def _absence_error(self) -> UsageError:
        """Returns the error of a query without kept reports."""
        manifest = newest_manifest(self.root)
        plans = plan_of(self.root, self._facts, manifest.plan).queries if manifest else {}
        added = {query.name for query in read_ledger(self.root).added_queries}
        known = {*plans, *read_suspended(self.root), *added, *self._archive.queries()}
        if self.query in known:
            return NoReportsError(
                f"The checkpoint {self.root} keeps no report of the query {self.query}.",
                hint=KEEP_HINT,
            )
        return UsageError(f"There is no query {self.query}.", hint=near(self.query, known))


def _ends_of(entries: Sequence[Entry]) -> Iterator[Entry]:
    """Yields the first and the last epochs, each up to ``INFERENCE_BYTES``."""
    sums = np.cumsum([entry.segment_bytes for entry in entries])
    for at, entry in enumerate(entries):
        if sums[at] <= INFERENCE_BYTES or sums[-1] - sums[at] < INFERENCE_BYTES or at == 0:
            yield entry


def _up_to(archived: ArchivedReports, until: int) -> ArchivedReports:
    """Returns the reports up to an id."""
    count = sum(report <= until for report in archived.ids)
    return archived._replace(ids=[]) if count == 0 else first_reports(archived, count)
