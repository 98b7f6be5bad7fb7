"""The tuple streams of W1 and W2, cut into files of one epoch each, and their known results.

A stream is warm-up, and the workload in rounds (``bench.steady``), each after an hour of silence;
so windows never reach from one into the other, and the results add up. With ``scale`` s there are s
times the events and the keys in the same time, hence about s times the results.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from bench.steady import END, WARM, name_of

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


def later(stream: Events, by: int) -> Events:
    """The same events, so many ms later."""
    return Events(stream.k, stream.v, stream.ts + by)


def rounds_start(warm: Events, work: Events) -> tuple[int, int]:
    """When the first round begins, and how much later each other one than that before it: whole ten
    seconds, as closes fall.

    The warm-up begins 10 s after 1970: an event at that very instant is late for Spark, whose first
    watermark it is.
    """
    first, period = (-(-(int(s.ts[-1]) + SILENCE) // 10_000) * 10_000 for s in (warm, work))
    return first + 10_000, period


def write(folder: Path, stream: Events, rows: int, value: str = "v", number: int = 0) -> int:
    """Parquet files of ``rows`` rows each, numbered from ``number`` on, in the order of names and
    of file times; the next number.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for start in range(0, stream.n, rows):
        cut = slice(start, start + rows)
        table = pa.table({"k": stream.k[cut], value: stream.v[cut], "ts": stream.ts[cut]})
        path = folder / f"{number:05}.parquet"
        pq.write_table(table, path, compression="none")
        os.utime(path, (_FIRST_FILE + number, _FIRST_FILE + number))
        number += 1
    return number


def write_rounds(
    folder: Path, name: str, warm: Events, work: Events, rounds: int, rows: int, value: str = "v"
) -> None:
    """The stream ``name`` as ``bench.steady`` reads it: the warm-up, rounds, and their end, the
    first event of a further one.
    """
    first, period = rounds_start(warm, work)
    number = write(folder / WARM / name, later(warm, 10_000), rows, value)
    for i in range(rounds):
        number = write(
            folder / name_of(i) / name, later(work, first + i * period), rows, value, number
        )
    end = Events(work.k[:1], work.v[:1], work.ts[:1] + first + rounds * period)
    write(folder / END / name, end, rows, value, number)


def pairs_within(a: Events, b: Events, width: int) -> int:
    """How many pairs of equal key are at most ``width`` ms apart: what W1 gives, by sorting."""
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
