"""Texts in columns: writing the canonical text of value facets, reading lexical forms, distinct
combinations.

Written forms are those of ``operators.expressions.scalar.literals.literal_of``, which is the oracle
of this module. Cost: about 0.2 microseconds a row; floats that need an exponent to be short (below
1e-6, from 1e16 on) are written one by one, once per distinct value.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl

from levada.core.rdf_terms import XSD, Kind, parse_term
from levada.operators.expressions.scalar.literals import show_float

Array = npt.NDArray[Any]
_SUFFIX = {
    Kind.INTEGER: "integer",
    Kind.DECIMAL: "decimal",
    Kind.FLOAT: "float",
    Kind.DOUBLE: "double",
    Kind.BOOLEAN: "boolean",
    Kind.DATETIME: "dateTime",
}


def texts(kind: Array, dbl: Array, man: Array, scale: Array) -> pl.Series:
    """Returns the canonical text of each row whose value facets are its value; null for other
    kinds.

    >>> texts(*(np.array([v]) for v in (Kind.DECIMAL, 0.0, -250, 2))).to_list()
    ['"-2.5"^^<http://www.w3.org/2001/XMLSchema#decimal>']
    """
    out = pl.Series([None], dtype=pl.String).new_from_index(0, len(kind))
    for k, name in _SUFFIX.items():
        rows = np.flatnonzero(kind == k)
        if len(rows) == 0:
            continue
        lexical = _lexical(k, dbl[rows], man[rows], scale[rows])
        written = pl.select(pl.lit('"') + pl.lit(lexical) + pl.lit(f'"^^<{XSD}{name}>')).to_series()
        out = written if len(rows) == len(kind) else patch(out, rows, written)
    return out


def _lexical(kind: Kind, dbl: Array, man: Array, scale: Array) -> pl.Series:
    match kind:
        case Kind.INTEGER:
            return pl.Series(man).cast(pl.String)
        case Kind.DECIMAL:
            return decimals(man, scale)
        case Kind.FLOAT:
            return floats(dbl.astype(np.float32))
        case Kind.DOUBLE:
            return floats(dbl)
        case Kind.BOOLEAN:
            return pl.Series(["false", "true"]).gather(man)
        case _:
            return instants(man)


def decimals(man: Array, scale: Array) -> pl.Series:
    """The canonical lexical forms of ``man / 10**scale``."""
    power = 10 ** scale.astype(np.int64)
    whole, rest = np.abs(man) // power, np.abs(man) % power
    frame = pl.DataFrame({"s": np.where(man < 0, "-", ""), "w": whole, "r": rest, "c": scale})
    digits = (
        pl.col("r").cast(pl.String).str.zfill(pl.col("c").cast(pl.UInt32)).str.strip_chars_end("0")
    )
    point = pl.when(pl.col("r") == 0).then(pl.lit("")).otherwise(pl.lit(".") + digits)
    return frame.select((pl.col("s") + pl.col("w").cast(pl.String) + point).alias("t"))["t"]


def floats(values: Array) -> pl.Series:
    """The canonical lexical forms of float32 or float64 values."""
    short = pl.Series(values).cast(pl.String).str.strip_suffix(".0")
    # Exponents and inf; NaN is written as XSD does.
    odd = np.flatnonzero(short.str.contains("[en]").to_numpy())
    if len(odd) == 0:
        return short
    some, codes = np.unique(values[odd], return_inverse=True)
    return patch(
        short, odd, pl.Series([show_float(v) for v in some], dtype=pl.String).gather(codes)
    )


def instants(ms: Array) -> pl.Series:
    """The canonical lexical forms of ms since 1970 in UTC, for the years 1 to 9999."""
    times = pl.Series(ms).cast(pl.Datetime("ms"))
    year = times.dt.year().cast(pl.String).str.zfill(4)
    fine = times.dt.strftime("-%m-%dT%H:%M:%S%.3f").str.strip_chars_end("0")
    # A whole second ends in zeros of its own, which belong to the time.
    clock = times.dt.strftime("-%m-%dT%H:%M:%S").zip_with(
        pl.Series(np.asarray(ms) % 1000 == 0), fine
    )
    return pl.select(pl.lit(year) + pl.lit(clock) + pl.lit("Z")).to_series()


def patch(series: pl.Series, rows: Array, values: pl.Series) -> pl.Series:
    """The series with ``values`` at ``rows``."""
    at = np.arange(len(series))
    at[rows] = len(series) + np.arange(len(values))
    return pl.concat([series, values]).gather(at)


def lexicals(strings: pl.Series) -> pl.Series:
    """The lexical forms of the texts of simple literals (``"a\\"b"`` is ``a"b``)."""
    plain = strings.str.strip_prefix('"').str.strip_suffix('"')
    escaped = np.flatnonzero(plain.str.contains("\\", literal=True).fill_null(False).to_numpy())
    if len(escaped) == 0:
        return plain
    read = [getattr(parse_term(t), "lexical", None) for t in strings.gather(escaped).to_list()]
    return patch(plain, escaped, pl.Series(read, dtype=pl.String))


def distinct(columns: Sequence[pl.Series]) -> tuple[npt.NDArray[np.int64], list[pl.Series]]:
    """For each row the number of its combination of values, and the distinct combinations, column
    by column.
    """
    names = [str(i) for i in range(len(columns))]
    frame = pl.DataFrame([c.alias(n) for c, n in zip(columns, names, strict=True)])
    unique = frame.unique(maintain_order=True).with_row_index("code")
    joined = frame.join(unique, on=names, how="left", nulls_equal=True, maintain_order="left")
    return joined["code"].to_numpy().astype(np.int64), [unique[n] for n in names]
