"""Finds results that a format cannot represent: each becomes a dead letter of its output, and the
others of its batch are written.

A format's writer takes a batch at once. If it raises (a literal with ``rdf:langString`` and
without a language in JSON-LD), the solutions, or the triples of graphs, are tried by halves. Cost:
nothing without an error; else log2(results) writings for each such result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from levada.connectors.serialization.encode_batch import contents
from levada.connectors.serialization.result_formats import Format
from levada.connectors.serialization.serialize import Batch
from levada.connectors.sources.file_errors import is_of_data, reason
from levada.core.array_types import Longs
from levada.core.event_time import TIMELESS
from levada.core.frozen import frozen
from levada.errors import LevadaError


@frozen
class Unwritable:
    """A result that an output's format cannot represent: a solution or a triple of a report."""

    query: str
    form: Format
    report: int
    reason: str
    text: str

    def letter(self) -> dict[str, Any]:
        """Returns its dead letter.

        >>> Unwritable("q", Format.JELLY, 1000, "no language", '?x="a"').letter()["source"]
        'q.jelly'
        """
        return {
            "stream": "",
            "source": f"{self.query}.{self.form}",
            "offset": None if self.report == TIMELESS else self.report,
            "reason": f"{self.form} cannot hold this result: {self.reason}",
            "text": self.text,
        }


def is_of_result(error: BaseException) -> bool:
    """Whether a result made a writer raise this, rather than a target."""
    return is_of_data(error) and not isinstance(error, LevadaError)


def without_unwritable(
    form: Format, query: str, variables: Sequence[str], batch: Batch
) -> tuple[Batch, list[Unwritable]]:
    """Returns a batch without the results that the format cannot represent, and these."""
    units, rows, texts = _units(variables, batch)
    faults: dict[int, str] = {}

    def write(low: int, high: int) -> None:
        part = _batch_of(batch, rows[low:high], units, np.arange(low, high))
        for _ in contents(form, query, variables, part, lambda sizes: [(0, len(sizes))]):
            pass

    _find(write, 0, len(rows), faults)
    rest = np.delete(np.arange(len(rows)), list(faults))
    dead = [
        Unwritable(query, form, int(batch.report[rows[k]]), why, texts(k))
        for k, why in faults.items()
    ]
    return replace(_batch_of(batch, rows[rest], units, rest), empty=batch.empty), dead


def _units(
    variables: Sequence[str], batch: Batch
) -> tuple[pl.Series | None, Longs, Callable[[int], str]]:
    """Returns the triples of graphs (None: results are solutions), the row of each result, its
    text.
    """
    if batch.graphs is None:
        rows = np.arange(len(batch.report), dtype=np.int64)
        columns = [(name, batch.columns[name]) for name in variables if name in batch.columns]
        return None, rows, lambda k: " ".join(f"?{n}={c[k]}" for n, c in columns if c[k])
    lines = pl.DataFrame({"line": batch.graphs.str.split("\n")}).with_row_index("row")
    lines = lines.explode("line").filter(pl.col("line").str.len_bytes() > 0)
    units = lines["line"]
    return units, lines["row"].to_numpy().astype(np.int64), lambda k: str(units[k])


def _batch_of(batch: Batch, rows: Longs, units: pl.Series | None, at: Longs) -> Batch:
    """Returns the batch of some results: of its ``rows``, or of the triples ``at``."""
    none: Longs = np.zeros(0, np.int64)
    if units is not None:
        graphs = (
            pl.DataFrame({"row": rows, "line": units[at]})
            .group_by("row", maintain_order=True)
            .agg((pl.col("line") + "\n").str.join(""))
        )
        return replace(
            batch, report=batch.report[graphs["row"].to_numpy()], graphs=graphs["line"], empty=none
        )
    return replace(
        batch,
        report=batch.report[rows],
        columns={name: column[rows] for name, column in batch.columns.items()},
        change=None if batch.change is None else batch.change[rows],
        booleans=None if batch.booleans is None else batch.booleans[rows],
        empty=none,
    )


def _find(write: Callable[[int, int], None], low: int, high: int, faults: dict[int, str]) -> None:
    """Notes which of the results ``low:high`` raise alone, and why."""
    if low == high:
        return
    try:
        write(low, high)
    except BaseException as error:
        if not is_of_result(error):
            raise
        if high - low == 1:
            faults[low] = reason(error)
            return
        middle = (low + high) // 2
        _find(write, low, middle, faults)
        _find(write, middle, high, faults)
