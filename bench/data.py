"""The tuple streams of W1 and W2 (design, section 8), cut into files of one epoch each, and the
results that are known of them.

A stream is warm-up, an hour of silence, and the workload; so windows never reach from one into the
other, and the results add up. With ``scale`` s there are s times the events and the keys in the
same time, hence about s times the results.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

Longs = npt.NDArray[np.int64]
SPAN = 1_000_000  # ms of event time that a workload's million events take
SILENCE = 3_600_000
_FIRST_FILE = 1_600_000_000  # file times, a second apart: Spark reads a directory in their order


@dataclass(frozen=True, slots=True)
class Events:
    """Rows of a tuple stream in the order of their times: keys, values, event times in ms."""

    k: Longs
    v: npt.NDArray[np.float64]
    ts: Longs

    @property
    def n(self) -> int:
        """How many there are."""
        return len(self.ts)


def events(seed: int, n: int, keys: int, rate: float) -> Events:
    """``n`` events, their keys uniform, ``rate`` a millisecond, from time 0 on."""
    rng = np.random.default_rng(seed)
    k = rng.integers(0, keys, n, dtype=np.int64)
    ts = (np.arange(n, dtype=np.int64) * round(n / rate)) // max(n, 1)
    return Events(k, np.round(rng.random(n) * 1000, 3), ts)


def after(warm: Events, workload: Events) -> Events:
    """The warm-up, silence, the workload (later by whole ten seconds, so closes fall as they do
    without).

    It begins 10 s after 1970: an event at that very instant is late for Spark, whose first
    watermark it is.
    """
    shift = -(-(int(warm.ts[-1]) + SILENCE) // 10_000) * 10_000
    return Events(
        np.concatenate([warm.k, workload.k]),
        np.concatenate([warm.v, workload.v]),
        np.concatenate([warm.ts, workload.ts + shift]) + 10_000,
    )


def write(folder: Path, stream: Events, rows: int, value: str = "v") -> None:
    """Parquet files of ``rows`` rows each behind those of the folder, in order of their names and
    of their file times.
    """
    folder.mkdir(parents=True, exist_ok=True)
    first = len(list(folder.iterdir()))
    for number, start in enumerate(range(0, stream.n, rows), first):
        cut = slice(start, start + rows)
        table = pa.table({"k": stream.k[cut], value: stream.v[cut], "ts": stream.ts[cut]})
        path = folder / f"{number:05}.parquet"
        pq.write_table(table, path, compression="none")
        os.utime(path, (_FIRST_FILE + number, _FIRST_FILE + number))


def pairs_within(a: Events, b: Events, width: int) -> int:
    """How many pairs of equal key are at most ``width`` ms apart: what W1 gives, counted by sorting
    and searching.
    """
    spread = int(max(a.ts[-1], b.ts[-1])) + 2 * width + 1
    places = np.sort(b.k * spread + b.ts + width)
    probe = a.k * spread + a.ts + width
    low, high = (
        np.searchsorted(places, probe - width),
        np.searchsorted(places, probe + width, side="right"),
    )
    return int((high - low).sum())


def groups_at_closes(s: Events, width: int, step: int) -> int:
    """How many (key, close) have an event in the window of ``width`` before it: what W2 gives."""
    slices = np.unique(s.k * (1 << 32) + s.ts // step)
    closes = slices[:, None] + np.arange(1, width // step + 1)[None, :]
    return len(np.unique(closes))
