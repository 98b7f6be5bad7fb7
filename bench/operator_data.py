"""Streams for ``operators``: one row a millisecond, and the counts that sorting gives.

A row is a key, a value that no other row has, and its time. Triples are ``<k> <p> v`` as N-Triples
with the time as a further term, or in turn ``<k> <p> v`` and ``<k> <q> v``; rows of tuples are
Parquet files. Half of a session's time is silence.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import polars as pl

from bench.data import Events, write

Longs = npt.NDArray[np.int64]
INTEGER = "<http://www.w3.org/2001/XMLSchema#integer>"


@dataclass(frozen=True, slots=True)
class Size:
    """How big a run is: rows in an epoch, in a window, and distinct keys; ``n`` rows in all."""

    epoch: int = 100_000
    window: int = 100_000
    groups: int = 1000
    measured: int = 300_000

    @property
    def warm(self) -> int:
        """The rows that fill the window, in whole epochs."""
        return -(-(self.window + self.epoch) // self.epoch) * self.epoch

    @property
    def until(self) -> int:
        """The rows up to the end of the measurement."""
        return self.warm + max(self.measured // self.epoch, 1) * self.epoch

    @property
    def n(self) -> int:
        """All rows: the last are behind the measurement, which so never sees the streams' end."""
        return self.until + max(self.epoch // 10, 1)


def rows(size: Size, seed: int = 5) -> Events:
    """The rows of a run, in time order: keys uniform, values the rows' numbers."""
    rng = np.random.default_rng(seed)
    at = np.arange(size.n)
    return Events(rng.integers(0, size.groups, size.n), at.astype(np.float64), at + 1000)


def write_triples(
    path: Path, stream: Events, properties: str = "p", objects: Longs | None = None, to: str = ""
) -> Path:
    """Timed N-Triples, the properties in turn; the objects are integers, or with ``to`` the IRIs
    that begin so.
    """
    n = stream.n
    values = stream.v.astype(np.int64) if objects is None else objects
    frame = pl.DataFrame(
        {"k": stream.k, "v": values, "ts": stream.ts, "p": np.resize(list(properties), n)}
    )
    thing = pl.format("<http://e/" + to + "{}>", "v") if to else pl.format('"{}"^^' + INTEGER, "v")
    subject = f"<http://e/{to or 'k'}" + "{}>"
    frame = frame.with_columns(o=thing)
    lines = frame.select(pl.format(subject + " <http://e/{}> {} {} .", "k", "p", "o", "ts"))
    lines.write_csv(path, include_header=False, quote_style="never")
    return path


def write_tuples(folder: Path, stream: Events, rows_in_file: int) -> Path:
    """Parquet files with the columns k, v, ts."""
    write(folder, stream, rows_in_file)
    return folder


def within(keys: Longs, times: Longs, width: int) -> int:
    """How many rows have a row of equal key at most ``width`` before them.

    >>> within(np.array([1, 2, 1, 1]), np.array([0, 1, 5, 20]), 5)
    1
    """
    order = np.lexsort((times, keys))
    k, t = keys[order], times[order]
    return int(np.count_nonzero((k[1:] == k[:-1]) & (t[1:] - t[:-1] <= width)))


def per_window(keys: Longs, times: Longs, width: int) -> int:
    """How many distinct keys the tumbling windows of ``width`` have, all together."""
    return len(np.unique(keys + (times // width) * (int(keys.max()) + 1)))
