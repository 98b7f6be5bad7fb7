"""A sink in memory: what an engine publishes, as the lines that files would have and as reports."""

from __future__ import annotations

from collections.abc import Sequence

from levada.connectors.serialization.serialize import Batch, ndjson
from levada.testing.compare import read_ndjson
from levada.testing.reference_model import Report


class MemorySink:
    """Keeps what is published, as NDJSON: the ``sink`` of an engine in a test.

    ``lines`` are in the order in which they were published. An engine that goes on from a
    checkpoint publishes its last epoch again, here as anywhere; files overwrite it, a list has it
    twice.

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
        """Keeps a batch; nothing of it has a name."""
        self.lines += ndjson(query, variables, batch).splitlines()
        return []

    @property
    def reports(self) -> dict[str, list[Report]]:
        """What has been published, by query; one that has said nothing is absent."""
        return read_ndjson(self.lines)
