"""Writes results to standard output for ``--out -``, flushed at publication.

Every publication writes whole lines and flushes, so a reader behind a pipe sees a report as soon as
it is committed. There are no names: after a crash the last epoch's lines may be repeated. A reader
that ends (``| head``) is a ``SinkError``. CSV and TSV have one header a run, hence one query only.
Formats of whole files are not supported (the command line checks both).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import BinaryIO

import polars as pl

from levada.connectors.serialization.encode_batch import records
from levada.connectors.serialization.result_formats import HEADED, Format
from levada.connectors.serialization.serialize import Batch, heading
from levada.connectors.serialization.unwritable_results import (
    Unwritable,
    is_of_result,
    without_unwritable,
)
from levada.core.durable_files import sink_error
from levada.core.text_columns import join_lines
from levada.errors import SinkError, UsageError

# Replaces the milliseconds of the report's time in records of lines by an ISO text, for people.
#
# A time beyond the years 1 to 9999 stays unchanged. Cost: a few operations of Polars a line.


_BEFORE = {
    Format.NDJSON: r'^(\{"query": "(?:[^"\\]|\\.)*", "report": )(-?[0-9]+)',
    Format.CSV: r"^()(-?[0-9]+)",
    Format.TSV: r"^()(-?[0-9]+)",
}
_FIRST, _LAST = -62_135_596_800_000, 253_402_300_799_999  # ms: the years 1 to 9999


def check_iso(form: Format) -> None:
    """Raises ``UsageError`` for a format whose times are part of IRIs."""
    if form not in _BEFORE:
        hint = "Say --format " + " or ".join(_BEFORE) + ", or leave --times out."
        raise UsageError(f"{form} has no place for times as texts.", hint=hint)


def shows_iso(times: str | None, form: Format) -> bool:
    """Whether standard output gets times as texts: as ``times`` says, else if people read it."""
    if times is None:
        return form in _BEFORE and sys.stdout.isatty()
    return times == "iso"


def with_iso_times(form: Format, records: pl.Series) -> pl.Series:
    r"""Returns the records, with times as texts.

    >>> with_iso_times(Format.CSV, pl.Series(["1500,a\n", "2000,b\n"])).to_list()
    ['1970-01-01T00:00:01.500Z,a\n', '1970-01-01T00:00:02Z,b\n']
    """
    line, pattern = pl.col("line"), _BEFORE[form]
    ms = line.str.extract(pattern, 2).cast(pl.Int64, strict=False)
    moment = ms.clip(_FIRST, _LAST).cast(pl.Datetime("ms"))
    exact = moment.dt.strftime("%Y-%m-%dT%H:%M:%S%.3fZ")
    text = pl.when(ms % 1000 == 0).then(moment.dt.strftime("%Y-%m-%dT%H:%M:%SZ")).otherwise(exact)
    quote = "" if form in HEADED else '"'
    rest = line.str.replace(pattern, "")
    said = pl.concat_str(line.str.extract(pattern, 1), pl.lit(quote), text, pl.lit(quote), rest)
    known = ms.is_between(_FIRST, _LAST).fill_null(False)
    rewritten = pl.DataFrame({"line": records}).select(pl.when(known).then(said).otherwise(line))
    return rewritten.to_series()


class StdoutSink:
    """Writes batches to a binary stream. ``iso``: with times as texts, for people. Raises
    ``UsageError`` if the format does not support these.
    """

    def __init__(self, form: Format, stream: BinaryIO, *, iso: bool = False) -> None:
        if iso:
            check_iso(form)
        self.format, self._iso = form, iso
        self._stream = stream
        self._headed = False
        self.unwritable: list[Unwritable] = []  # until the engine fetches them

    def publish(self, query: str, variables: Sequence[str], epoch: int, batch: Batch) -> list[str]:
        """Writes and flushes a batch; writes nothing for a batch without a line."""
        try:
            encoded = records(self.format, query, variables, batch)
        except BaseException as error:
            if not is_of_result(error):
                raise
            batch, unwritable = without_unwritable(self.format, query, variables, batch)
            encoded = records(self.format, query, variables, batch)
            self.unwritable.extend(unwritable)
        if not len(encoded):
            return []
        if self._iso:
            encoded = with_iso_times(self.format, encoded)
        header = b"" if self._headed else heading(self.format, variables, batch)
        self._headed = True
        try:
            self._write(header + join_lines(encoded))
        except BrokenPipeError as error:
            self._forget_reader()
            raise SinkError("Nobody reads standard output any more.") from error
        except OSError as error:
            raise sink_error(error, "standard output") from error
        return []

    def _write(self, data: bytes) -> None:
        """Writes all bytes: without a buffer (PYTHONUNBUFFERED) a pipe may silently accept a
        part.
        """
        rest = memoryview(data)
        while rest:
            rest = rest[self._stream.write(rest) :]
        self._stream.flush()

    def _forget_reader(self) -> None:
        """Redirects the interpreter's own flush at exit, which would fail again."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self._stream.fileno())
        os.close(nowhere)
