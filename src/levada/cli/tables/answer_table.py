"""The answer to a query over what is there: all of its batches, of which the first and the last
rows are shown.

It is a sink: the engine's thread publishes, the reader's shows. What is kept is bounded
(``MOST_KEPT`` rows), so that a query with too many results shows its rows and cannot be saved,
instead of filling the memory.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import polars as pl
from rich.table import Table

from levada.cli.tables.table_cells import Prefixes, Times, grid, rows_of
from levada.connectors.serialization.serialize import Batch

ENDS = 20
"""Rows that are shown of the beginning, and of the end."""
MOST_KEPT = 2_000_000


class Answer:
    """What one query has answered. ``reports`` counts those with a result."""

    def __init__(self, query: str) -> None:
        self.query = query
        self.variables: Sequence[str] = ()
        self.rows = self.reports = 0
        self._batches: list[Batch] = []
        self._first = self._last = pl.DataFrame()
        self._lock = threading.Lock()

    def publish(self, query: str, variables: Sequence[str], epoch: int, batch: Batch) -> list[str]:
        """Takes a batch."""
        rows = rows_of(batch)
        with self._lock:
            self.variables = variables
            if self.rows < 2 * ENDS:
                missing = 2 * ENDS - self.rows
                self._first = _concat(self._first, rows.head(missing))
            self._last = _concat(self._last.tail(ENDS), rows.tail(ENDS)).tail(ENDS)
            self.rows += rows.height
            self.reports += rows["report"].n_unique()
            self._batches = [*self._batches, batch] if self.rows <= MOST_KEPT else []
        return []

    @property
    def batches(self) -> list[Batch] | None:
        """All that there was; None if it was too much to be kept."""
        with self._lock:
            return list(self._batches) if self.rows <= MOST_KEPT else None

    def table(self, times: Times, prefixes: Prefixes) -> Table:
        """The rows; of many the first and the last."""
        with self._lock:
            if self.rows <= 2 * ENDS:
                return grid(self._first, times, prefixes)
            shown = _concat(self._first.head(ENDS), self._last)
            return grid(shown, times, prefixes, cut=ENDS)

    def summary(self, seconds: float) -> str:
        """How much it is, in a line."""
        if not self.rows:
            return f"no result ({seconds:.2f} s)"
        rows = f"{self.rows:,} row{'s' * (self.rows != 1)}"
        reports = f"{self.reports:,} report{'s' * (self.reports != 1)}"
        return f"{rows} in {reports} ({seconds:.2f} s)"


def _concat(a: pl.DataFrame, b: pl.DataFrame) -> pl.DataFrame:
    return b if not a.width else pl.concat([a, b], how="vertical_relaxed")
