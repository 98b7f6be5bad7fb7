"""``levada results``: the kept reports of a query as Arrow or Parquet, with typed columns."""

from __future__ import annotations

import io
import os
import secrets
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import IO, Any

import pyarrow as pa
import pyarrow.parquet as pq

from levada.checkpoint.reader_leases import ReaderLease
from levada.checkpoint.request_files import engine_runs
from levada.cli.app.signals import Stopped, stopped_by_signals
from levada.connectors.serialization.columnar_tables import table_bytes
from levada.connectors.serialization.report_tables import (
    Column,
    arrow_schema,
    parse_columns,
    report_table,
)
from levada.connectors.serialization.result_formats import Format
from levada.connectors.sinks.transactional_sink import skips_of
from levada.core.durable_files import sink_error, write_atomic
from levada.core.frozen import frozen
from levada.engine.status.kept_reports import KeptReports, NoReportsError, Range
from levada.errors import SinkError, UsageError

LOOK = 0.05  # s between two looks for reports
RUNS = 0.5  # s between two looks at whether the engine runs


@frozen
class ResultsRequest:
    """The arguments of ``levada results``. ``first`` and ``last`` are report times."""

    checkpoint: Path
    query: str
    form: Format
    out: str = "-"
    follow: bool = False
    wait: bool = False
    first: str = ""
    last: str = ""
    columns: str = ""
    datatypes: bool = False
    lost: str = "stop"


def write_results(request: ResultsRequest) -> None:
    """Writes the kept reports to standard output, a file, or with ``follow`` a file for each report
    into a folder. Raises ``UsageError``, ``CheckpointError`` and ``SinkError``.
    """
    if request.follow and request.out == "-":
        raise UsageError("--follow writes files into a folder.", hint="Say --out FOLDER.")
    if request.wait and not request.follow:
        raise UsageError("--wait is for --follow.", hint="Say --follow, too.")
    if request.out == "-" and sys.stdout.isatty():
        raise UsageError(
            f"{request.form} is not for a terminal.", hint="Say --out FILE, or > FILE."
        )
    lease = ReaderLease(request.checkpoint, secrets.token_hex(8), time.monotonic)
    with closing(lease), stopped_by_signals(None) as stopped:
        reports = _open_reports(request, lease, stopped)
        if reports is None:
            return
        bounds = reports.bounds(request.first, request.last)
        if request.first:
            reports.check_kept(bounds)
        words = parse_columns(request.columns) if request.columns else {}
        columns = reports.columns(words, bounds, datatypes=request.datatypes)
        if request.follow:
            _follow(request, reports, columns, bounds, stopped)
        else:
            _write_once(request, reports, columns, bounds)


def _open_reports(
    request: ResultsRequest, lease: ReaderLease, stopped: Stopped
) -> KeptReports | None:
    """Returns the reports of the query. With ``follow`` it waits for the first one; None if it was
    stopped.
    """
    skips = skips_of("levada results", {"lost": request.lost})
    while True:
        try:
            follower = lease if request.follow else None
            return KeptReports(request.checkpoint, request.query, skips, follower)
        except NoReportsError:
            if not request.follow or not (request.wait or engine_runs(request.checkpoint)):
                raise
        if stopped.wait(RUNS):
            return None


def _write_once(
    request: ResultsRequest, reports: KeptReports, columns: Sequence[Column], bounds: Range
) -> None:
    """Writes a range to standard output or a file, which appears as a whole."""
    path = Path(request.out)
    if request.out == "-":
        try:
            _write_tables(sys.stdout.buffer, request.form, reports, columns, bounds)
            sys.stdout.buffer.flush()
        except BrokenPipeError as error:
            raise SinkError("Nobody reads standard output any more.") from error
        except OSError as error:
            raise sink_error(error, "standard output") from error
        return
    if path.is_dir():
        raise UsageError(f"{path} is a folder.", hint="Name a file, or say --follow.")
    hidden = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with hidden.open("wb") as file:
            _write_tables(file, request.form, reports, columns, bounds)
            file.flush()
            os.fsync(file.fileno())
        hidden.replace(path)
    except OSError as error:
        raise sink_error(error, path.parent) from error
    finally:
        hidden.unlink(missing_ok=True)


def _write_tables(
    file: IO[bytes], form: Format, reports: KeptReports, columns: Sequence[Column], bounds: Range
) -> None:
    with _writer(file, form, arrow_schema(columns)) as writer:
        for table in reports.tables(columns, bounds):
            writer.write_table(table)


@contextmanager
def _writer(file: IO[bytes], form: Format, schema: pa.Schema) -> Iterator[Any]:
    """Opens a writer of tables; nothing needs to be written twice, so a pipe will do."""
    sink = pa.PythonFile(_Sequential(file), mode="w")
    if form is Format.PARQUET:
        with pq.ParquetWriter(sink, schema, compression="zstd") as writer:
            yield writer
    else:
        with pa.ipc.new_file(sink, schema) as writer:
            yield writer


class _Sequential(io.RawIOBase):
    """A file that is only written to at its end, and knows its length."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._size = file, 0

    def writable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._size

    def write(self, data: Any) -> int:
        self._file.write(data)
        self._size += len(data)
        return len(data)


def report_file(folder: Path, report: int, form: Format) -> Path:
    """Returns the file of a report, named by its id.

    >>> report_file(Path("warm"), 4000, Format.PARQUET).name
    '000000000004000.parquet'
    """
    sign = "-" if report < 0 else ""
    return folder / f"{sign}{abs(report):015d}.{form}"


def _follow(
    request: ResultsRequest,
    reports: KeptReports,
    columns: Sequence[Column],
    bounds: Range,
    stopped: Stopped,
) -> None:
    """Writes a file for each report that has none, until the engine ends."""
    folder = Path(request.out)
    last, looked, runs = bounds.after, 0.0, True
    while not stopped.is_set():
        if has_looked := time.monotonic() - looked >= RUNS:
            looked, runs = time.monotonic(), engine_runs(request.checkpoint)
        reports.refresh()
        if last > bounds.after:
            reports.check_kept(Range(last, bounds.until))
        for report, batch in reports.reports(Range(last, bounds.until)):
            path = report_file(folder, report, request.form)
            if not path.exists():
                write_atomic(path, table_bytes(request.form, report_table(batch, columns)))
            last = report
            if stopped.is_set():
                return
        if last >= bounds.until or (has_looked and not (runs or request.wait)):
            return
        stopped.wait(LOOK)
