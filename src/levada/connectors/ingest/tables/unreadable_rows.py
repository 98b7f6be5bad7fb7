"""Isolates rows that raise in a computation over columns: each is dead alone, with the reason, and
its neighbours are computed.

A computation over columns (casts, times, formulas of a mapping) processes all rows at once. If it
raises, the rows are tried by halves, and rows that raise alone get nulls as values. Cost: nothing
without an error; else log2(rows) computations for each such row.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TypeVar

import numpy as np
import polars as pl

from levada.connectors.config.mapping_formula import column_of
from levada.connectors.ingest.tables.csv_rows import RawRows
from levada.connectors.sources.file_errors import is_of_data, reason
from levada.errors import LevadaError

_T = TypeVar("_T")
Work = Callable[[RawRows], _T]


def compute_apart(rows: RawRows, work: Work[_T]) -> _T:
    """Returns the result of ``work`` on rows. Rows that make it raise are marked in ``rows.wrong``,
    and have nulls in the second try.
    """
    try:
        return work(rows)
    except BaseException as error:
        if not _is_of_rows(error):
            raise
        first = rows.take(np.arange(min(rows.table.height, 1)))
        work(_with_nulls(first, [0]))  # raises if nulls do not help
        faults = _faults(rows, work, 0, rows.table.height)
        if not faults:
            raise
    marked = _with_nulls(rows, list(faults))
    marked.wrong |= faults
    return work(marked)


def _with_nulls(rows: RawRows, bad: Sequence[int]) -> RawRows:
    at = pl.Series(np.isin(np.arange(rows.table.height), bad))
    return replace(
        rows,
        table=rows.table.select(
            pl.when(at).then(None).otherwise(column_of(name)).alias(name)
            for name in rows.table.columns
        ),
    )


def _faults(rows: RawRows, work: Work[_T], low: int, high: int) -> dict[int, str]:
    """Returns the reasons why rows of ``low:high`` raise, each alone."""
    if low == high:
        return {}
    try:
        work(rows.take(np.arange(low, high)))
    except BaseException as error:
        if not _is_of_rows(error):
            raise
        if high - low == 1:
            return {low: f"it cannot be read: {reason(error)}"}
    else:
        return {}
    middle = (low + high) // 2
    return _faults(rows, work, low, middle) | _faults(rows, work, middle, high)


def _is_of_rows(error: BaseException) -> bool:
    return is_of_data(error) and not isinstance(error, LevadaError)
