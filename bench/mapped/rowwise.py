"""Word count and spike detection written by hand on Spark's RDDs, one way after the other of
BriskStream's Fig. 16: a Python object a row; Arrow frames, of which each row group is cut into one
blob a target; the same with one blob of all row groups.

An epoch is a job: files' next row groups are read, sent to a partition by key, and meet there what
the partition has kept (its *state*, an RDD in the executors' memory). A key's rows stand in one
file, in order, so nothing is sorted. Results are counted and kept nowhere, and no checkpoint is
written, which makes these cheaper than what they are compared with.
"""

from __future__ import annotations

import io
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow.parquet as pq

from bench.mapped.runs import PARTITIONS, Told
from bench.mapped.works import EPOCHS, FILES, KEYS, WARM, place_of
from bench.measure import Tree
from bench.streaming.spike_detection import LAST

Reference = tuple[str, int, int]
"""A file, its first row group and that behind the last."""
Pair = tuple[Any, Any]
STATE, DONE = "state", "done"
STREAM = {"WC": "Words", "SD": "Readings"}


@dataclass(frozen=True, slots=True)
class Hand:
    """An application by hand: the result of a row, and those of a frame; both change the state."""

    key: str
    row: Callable[[dict[Any, Any], tuple[Any, ...]], tuple[Any, ...]]
    frame: Callable[[dict[Any, Any], pl.DataFrame], pl.DataFrame]


def count_word(state: dict[Any, Any], row: tuple[Any, ...]) -> tuple[Any, ...]:
    """A running count."""
    word, ts = row
    state[word] = n = state.get(word, 0) + 1
    return ts, word, n


def count_words(state: dict[Any, Any], frame: pl.DataFrame) -> pl.DataFrame:
    """Running counts of a frame's words."""
    before = state.get("", pl.DataFrame(schema={"word": pl.String, "before": pl.Int64}))
    found = (
        frame.with_columns(n=pl.int_range(1, pl.len() + 1, dtype=pl.Int64).over("word"))
        .join(before, on="word", how="left", maintain_order="left")
        .with_columns(n=pl.col("n") + pl.col("before").fill_null(0))
    )
    now = found.group_by("word").agg(before=pl.col("n").max())
    state[""] = pl.concat([before.join(now, on="word", how="anti"), now])
    return found.select("ts", "word", "n")


def mean_reading(state: dict[Any, Any], row: tuple[Any, ...]) -> tuple[Any, ...]:
    """A reading beside the mean of its device's last thousand."""
    device, value, ts = row
    if device not in state:
        state[device] = deque(), 0
    seen, total = state[device]
    seen.append(round(value * 100))
    total += seen[-1]
    if len(seen) > LAST:
        total -= seen.popleft()
    state[device] = seen, total
    return ts, device, total / (100 * len(seen)), value


def mean_readings(state: dict[Any, Any], frame: pl.DataFrame) -> pl.DataFrame:
    """The same of a frame, device by device."""
    parts = []
    for (device,), own in frame.group_by("device", maintain_order=True):
        before = state.get(device, np.empty(0, np.int64))
        new = np.rint(own["value"].to_numpy() * 100).astype(np.int64)
        every = np.concatenate([before, new])
        sums = np.concatenate([[0], every.cumsum()])
        ends = np.arange(len(before) + 1, len(every) + 1)
        begins = np.maximum(ends - LAST, 0)
        mean = (sums[ends] - sums[begins]) / (100 * (ends - begins))
        parts.append(own.select("ts", "device", pl.Series("mean", mean), "value"))
        state[device] = every[-LAST:]
    return pl.concat(parts)


HANDS = {
    "WC": Hand("word", count_word, count_words),
    "SD": Hand("device", mean_reading, mean_readings),
}


def references(folder: Path, epoch: int) -> list[Reference]:
    """What an epoch reads: the next part of each file's row groups."""
    found = []
    for path in sorted(folder.glob("*.parquet")):
        groups = pq.ParquetFile(path).num_row_groups
        of = WARM + EPOCHS
        found.append((str(path), groups * epoch // of, groups * (epoch + 1) // of))
    return found


def rows_of(found: Iterable[Reference]) -> int:
    """How many rows they are."""
    total = 0
    for path, first, last in found:
        told = pq.ParquetFile(path).metadata
        total += sum(told.row_group(i).num_rows for i in range(first, last))
    return total


def read_rows(of: Hand, reference: Reference) -> Iterator[Pair]:
    """Pairs of key and row, objects of Python."""
    path, first, last = reference
    if first < last:
        table = pq.ParquetFile(path).read_row_groups(list(range(first, last)))
        for row in zip(*(column.to_pylist() for column in table.columns), strict=True):
            yield row[0], row


def read_frames(of: Hand, reference: Reference, jumbo: bool) -> Iterator[Pair]:
    """Pairs of target and blob: of each row group, or of all of them together."""
    path, first, last = reference
    file, groups = pq.ParquetFile(path), list(range(first, last))
    for some in [groups] if jumbo and groups else [[group] for group in groups]:
        frame = pl.from_arrow(file.read_row_groups(some))
        assert isinstance(frame, pl.DataFrame), "a file is a table"
        to = (frame[of.key].hash(7) % PARTITIONS).alias("to")
        for (target,), own in frame.group_by(to, maintain_order=True):
            blob = io.BytesIO()
            own.write_ipc(blob)
            yield int(str(target)), blob.getvalue()


def take_rows(of: Hand, pairs: Iterable[Pair]) -> Iterator[Pair]:
    """A partition's rows, one by one."""
    state, waiting = {}, []
    for key, row in pairs:
        if key == STATE:
            state = row
        elif key != DONE:
            waiting.append(row)
    made = [of.row(state, row) for row in waiting]
    yield STATE, state
    yield DONE, len(made)


def take_frames(of: Hand, pairs: Iterable[Pair], jumbo: bool) -> Iterator[Pair]:
    """A partition's blobs: each a frame, or all together one."""
    state, done, blobs = {}, 0, []
    for key, value in pairs:
        if key == STATE:
            state = value
        elif key != DONE:
            blobs.append(value)
    frames = [pl.read_ipc(io.BytesIO(blob)) for blob in blobs]
    for frame in [pl.concat(frames)] if jumbo and frames else frames:
        done += of.frame(state, frame).height
    yield STATE, state
    yield DONE, done


def to_partition(key: Any) -> int:
    """A blob's target; of what is kept it does not matter."""
    return key if isinstance(key, int) else 0


WAYS: dict[str, tuple[Any, Any, Callable[[Any], int]]] = {
    "rows": (read_rows, take_rows, place_of),
    "frames": (partial(read_frames, jumbo=False), partial(take_frames, jumbo=False), to_partition),
    "jumbo": (partial(read_frames, jumbo=True), partial(take_frames, jumbo=True), to_partition),
}
"""How each reads, what a partition does, which partition a key is in."""


def run(name: str, way: str, folder: Path, session: Any) -> Told:
    """All epochs of an application, one way."""
    of, (read, take, place) = HANDS[name], WAYS[way]
    context, tree, told = session.sparkContext, Tree(), Told(0)
    began, at = tree.cpu(), time.perf_counter()
    kept = context.parallelize([], 1).partitionBy(PARTITIONS, place)
    for epoch in range(WARM + EPOCHS):
        if epoch == WARM:
            began, at = tree.cpu(), time.perf_counter()
        found = references(folder / STREAM[name], epoch)
        came = context.parallelize(found, FILES).flatMap(partial(read, of))
        both = kept.union(came.partitionBy(PARTITIONS, place))
        now = both.mapPartitions(partial(take, of), preservesPartitioning=True).persist()
        told.count += now.filter(_is_done).map(_number).sum()
        kept.unpersist()
        kept = now
        told.rows += rows_of(found) if epoch >= WARM else 0
    told.cpu, told.wall, told.epochs = tree.cpu() - began, time.perf_counter() - at, EPOCHS
    kept.unpersist()
    return told


def _is_done(pair: Pair) -> bool:
    return pair[0] == DONE


def _number(pair: Pair) -> int:
    return int(pair[1])


def here(name: str, way: str, folder: Path) -> int:
    """The same without Spark: how many results."""
    of, (read, take, place) = HANDS[name], WAYS[way]
    kept: list[list[Pair]] = [[] for _ in range(PARTITIONS)]
    total = 0
    for epoch in range(WARM + EPOCHS):
        for reference in references(folder / STREAM[name], epoch):
            for key, value in read(of, reference):
                kept[place(key) % PARTITIONS].append((key, value))
        kept = [list(take(of, own)) for own in kept]
        total += sum(_number(pair) for own in kept for pair in own if _is_done(pair))
    return total


assert all(KEYS[stream] == HANDS[name].key for name, stream in STREAM.items())
