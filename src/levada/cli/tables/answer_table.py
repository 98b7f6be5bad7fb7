"""The answer to a query over the available data: all of its batches, of which the first and the
last rows are shown.

It is a sink: the engine's thread publishes, the reader's thread shows. It stores at most
``MOST_KEPT`` rows. An answer with more rows is shown but cannot be saved, instead of filling the
memory.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence

import polars as pl
from rich.table import Table

from levada.cli.tables.table_cells import Prefixes, Times, grid, rows_of
from levada.connectors.serialization.serialize import Batch

ENDS = 20
"""The rows shown at the beginning, and at the end."""
MOST_KEPT = 2_000_000


class Answer:
    """The answer of one query. ``reports`` counts those with a result."""

    def __init__(self, query: str) -> None:
        self.query = query
        self.variables: Sequence[str] = ()
        self.rows = self.reports = 0
        self._batches: list[Batch] = []
        self._first = self._last = pl.DataFrame()
        self._lock = threading.Lock()

    def publish(self, query: str, variables: Sequence[str], epoch: int, batch: Batch) -> list[str]:
        """Adds a batch."""
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
        """Returns all batches; None if they were too many to store."""
        with self._lock:
            return list(self._batches) if self.rows <= MOST_KEPT else None

    def table(self, times: Times, prefixes: Prefixes) -> Table:
        """Returns the rows as a table; of many the first and the last."""
        with self._lock:
            if self.rows <= 2 * ENDS:
                return grid(self._first, times, prefixes)
            shown = _concat(self._first.head(ENDS), self._last)
            return grid(shown, times, prefixes, cut=ENDS)

    def summary(self, seconds: float) -> str:
        """Returns the numbers of rows and reports in a line."""
        if not self.rows:
            return f"no result ({seconds:.2f} s)"
        rows = f"{self.rows:,} row{'s' * (self.rows != 1)}"
        reports = f"{self.reports:,} report{'s' * (self.reports != 1)}"
        return f"{rows} in {reports} ({seconds:.2f} s)"


def _concat(a: pl.DataFrame, b: pl.DataFrame) -> pl.DataFrame:
    return b if not a.width else pl.concat([a, b], how="vertical_relaxed")
