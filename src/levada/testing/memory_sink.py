"""A sink in memory: the published results as the lines of files, and as reports."""

from __future__ import annotations

from collections.abc import Sequence

from levada.connectors.serialization.serialize import Batch, ndjson
from levada.testing.compare import read_ndjson
from levada.testing.reference_model import Report


class MemorySink:
    """A sink that keeps published results as NDJSON: the ``sink`` of an engine in a test.

    ``lines`` are in the order of publication. An engine that continues from a checkpoint publishes
    its last epoch again. Files overwrite it; this list has it twice.

    >>> import numpy as np
    >>> import polars as pl
    >>> sink = MemorySink()
    >>> batch = Batch(np.array([5]), columns={"x": pl.Series(["<http://e/a>"])})
    >>> sink.publish("q", ["x"], 0, batch)
    []
    >>> [(report.time, sorted(report.solutions)) for report in sink.reports["q"]]
    [(5, [frozenset({('x', '<http://e/a>')})])]
    """

    def __init__(self) -> None:
        self.lines: list[bytes] = []

    def publish(self, query: str, variables: Sequence[str], epoch: int, batch: Batch) -> list[str]:
        """Keeps a batch. Returns no file names."""
        self.lines += ndjson(query, variables, batch).splitlines()
        return []

    @property
    def reports(self) -> dict[str, list[Report]]:
        """Returns the published reports by query; a query without reports is absent."""
        return read_ndjson(self.lines)
