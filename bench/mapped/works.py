"""What is run: the four applications, W1 and W3 (``bench.streaming``, ``bench.join``,
``bench.srbench``), each as files that are read side by side, with the number of results that plain
Python, sorting or the generator's formula has.

``by_key``: a key's rows are all in one file, as a placement needs them; else rows go to files in
turn, so that each file sends to everybody, as BriskStream's shuffle does. A run has ``WARM`` epochs
that do not count and ``EPOCHS`` that do. ``LEVADA_GROUP``: rows of a row group.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from bench.data import events, pairs_within
from bench.join import query as w1
from bench.srbench import MINUTES, STREAM, Weather, query, write_timed
from bench.streaming.all import APPLICATIONS

WARM, EPOCHS = 4, 8
FILES = 4
"""Of each stream."""
GROUP = int(os.environ.get("LEVADA_GROUP", "1000"))
"""Rows of a row group."""
SEED = 11
KEYS = {"Words": "word", "Transactions": "entity", "Readings": "device", "Reports": "car"}
"""The column by which the rows of a stream belong together."""
Options = dict[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Written:
    """``streams``: as an engine is told of them; ``rows``: all elements of the streams that are
    cut; ``results``: how many are right.
    """

    streams: Options
    rows: int
    results: int


@dataclass(frozen=True, slots=True)
class Work:
    """``epoch``: elements of one at scale 1. ``write(folder, epoch, by_key)``."""

    name: str
    epoch: int
    queries: Mapping[str, tuple[str, str]]
    write: Callable[[Path, int, bool], Written]

    def size(self, scale: float) -> int:
        """Elements of an epoch at a scale."""
        return max(int(self.epoch * scale), 200)


def place_of(key: Any) -> int:
    """The file of a key, alike in each process.

    >>> place_of("levada") == place_of("levada"), 0 <= place_of(17) < FILES
    (True, True)
    """
    return zlib.crc32(str(key).encode()) % FILES


def cut(folder: Path, name: str, frame: pl.DataFrame, by_key: bool) -> None:
    """A stream as files, in the order of its rows."""
    (folder / name).mkdir(parents=True)
    if by_key:
        own = frame[KEYS.get(name, "k")]
        of = {key: place_of(key) for key in own.unique().to_list()}
        file = own.replace_strict(of, return_dtype=pl.Int64)
    else:
        file = pl.Series(np.arange(frame.height) % FILES)
    for i in range(FILES):
        frame.filter(file == i).write_parquet(
            folder / name / f"{i:02}.parquet", compression="uncompressed", row_group_size=GROUP
        )


def _application(name: str) -> Callable[[Path, int, bool], Written]:
    app = APPLICATIONS[name]

    def write(folder: Path, epoch: int, by_key: bool) -> Written:
        made = app.make((WARM + EPOCHS) * epoch, SEED)
        streams: Options = {}
        for stream, frame in made.items():
            if stream in app.relations:
                (folder / stream).mkdir(parents=True)
                frame.write_parquet(folder / stream / "00.parquet")
                streams[stream] = {"source": folder / stream, "sign": "sign"}
            else:
                cut(folder, stream, frame, by_key)
                streams[stream] = {"source": folder / stream, "files": "parallel"}
        told = app.answers(made)
        rows = sum(frame.height for s, frame in made.items() if s not in app.relations)
        return Written(streams, rows, sum(len(told[q]) for q in app.measured))

    return write


def _pairs(folder: Path, epoch: int, by_key: bool) -> Written:
    """W1: each key some ten times, pairs within a tenth of an epoch."""
    n = (WARM + EPOCHS) * epoch // 2
    both = [events(seed, n, max(n // 10, 1), 1.0) for seed in (1, 2)]
    for name, stream in zip("AB", both, strict=True):
        cut(folder, name, pl.DataFrame({"k": stream.k, "v": stream.v, "ts": stream.ts}), by_key)
    streams: Options = {n: {"source": folder / n, "files": "parallel"} for n in "AB"}
    return Written(streams, 2 * n, pairs_within(*both, WIDTH))


def _stations(folder: Path, epoch: int, by_key: bool) -> Written:
    """W3: a day of as many stations as it has epochs for; an observation is an element, and where
    files are not by station seven of these follow each other in a file.
    """
    weather = Weather(max((WARM + EPOCHS) * epoch // MINUTES // 4 * 4, 4))
    (folder / "w3").mkdir(parents=True)
    write_timed(folder / "all.nt", weather)
    files = [(folder / "w3" / f"{i:02}.nt").open("w") for i in range(FILES)]
    with (folder / "all.nt").open() as whole:
        for number, line in enumerate(whole):
            station = int(line[: line.index(">")].rpartition("/")[2]) if by_key else number // 21
            files[station % FILES].write(line)
    for file in files:
        file.close()
    (folder / "all.nt").unlink()
    options = {"files": "parallel", "element": "subject", "closed": "element"}
    streams: Options = {STREAM: {"source": folder / "w3", **options}}
    return Written(streams, MINUTES * weather.stations, weather.results)


WIDTH = 5_000
SIZES = {"WC": 100_000, "FD": 25_000, "SD": 25_000, "LR": 50_000}
WORKS = {
    name: Work(
        name,
        size,
        {q: (APPLICATIONS[name].queries[q], "cql") for q in APPLICATIONS[name].measured},
        _application(name),
    )
    for name, size in SIZES.items()
} | {
    "W1": Work("W1", 100_000, {"w1": (w1(WIDTH).replace("B.w", "B.v"), "cql")}, _pairs),
    "W3": Work("W3", 28_800, {"w3": (query(), "rspql")}, _stations),
}
