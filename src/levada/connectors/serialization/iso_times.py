r"""Replaces the milliseconds of the report's time in records of lines by an ISO text, for people.

A time beyond the years 1 to 9999 stays unchanged. Cost: a few operations of Polars a line.
"""

from __future__ import annotations

import polars as pl

from levada.connectors.serialization.result_formats import HEADED, Format
from levada.errors import UsageError

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
