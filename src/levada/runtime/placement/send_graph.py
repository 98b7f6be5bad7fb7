"""Measures the send graph of a run: how much each task has sent to each other one, by slices of
event time (KATTS: Fischer, Scharrenbach, Bernstein 2013, 3.3).

A task counts its input by the sender's name in the head of each blob: rows, bytes of the blob,
blobs. The outcomes of tasks contain the counts. Their sums are in the manifest of the epoch or, if
they are large, in a file that it names. So an attempt that is not committed counts nothing, and a
repeated epoch counts once. CPU seconds, and with them some bytes of heads, are those of the
committed attempt.

An epoch counts in the slice of the largest event time that had been read at its end, never in an
earlier one; its rows are not divided. Nothing is counted per row. The cost is a few numbers a blob,
and with many tasks a file an epoch, half a millisecond of CPU.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec

from levada.checkpoint.epoch_context import TaskOutcome
from levada.checkpoint.manifest import Manifest
from levada.checkpoint.state_files import write_sealed
from levada.core.checksummed_files import read_sealed
from levada.core.event_time import MIN
from levada.core.size_thresholds import register
from levada.errors import unreadable
from levada.runtime.placement.task_graph import OUTPUT, name_of

FOLDER = "graph"
LITTLE = register(f"{__name__}.LITTLE", 8 << 10)
"""Bytes that a manifest has; what is more is a file."""
FROM, AT = "from", "at"
"""In the head of a blob: the sender's name, and the executor at which it ran."""
START = "start"
"""The slice of epochs before the first event time."""
NOTHING = msgspec.Raw(b"null")
DAY = 86_400_000  # ms

Links = dict[str, dict[str, list[int]]]  # sender -> receiver -> [rows, bytes, blobs]


class SentCounts(msgspec.Struct):
    """The data sent in a slice so far, and the CPU seconds of each task, and of each node in all
    tasks. Results that a task has written are sent to the output. On a cluster also the data that
    executors have sent each other, and the CPU seconds of the tasks of each (``cpu_by_executor``).
    """

    links: Links = {}
    cpu_by_task: dict[str, float] = {}
    cpu_by_node: dict[str, float] = {}
    executor_links: Links = {}
    cpu_by_executor: dict[str, float] = {}


def slice_of(instant: int, length: str) -> str:
    """Returns the slice of an event time (ms): its first day or its month in UTC.

    >>> slice_of(1_091_750_400_000, "1d"), slice_of(1_091_750_400_000, "1mo")
    ('2004-08-06', '2004-08')
    """
    if instant == MIN:
        return START
    day = _day(instant // DAY)
    return day if length == "1d" or not day[:1].isdigit() else day[:7]


@lru_cache(maxsize=16)
def _day(number: int) -> str:
    try:
        return datetime.fromtimestamp(number * DAY // 1000, UTC).strftime("%Y-%m-%d")
    except (OverflowError, ValueError, OSError):  # beyond the range of years
        return START if number < 0 else "end"


class ReceivedCounts:
    """The input of a task: [rows, bytes, blobs] by the senders' names, if the heads of its blobs
    have them, and by the senders' executors (``places``). ``carried``: the transport of the blobs,
    as in ``TaskOutcome``.
    """

    def __init__(self) -> None:
        self.senders: dict[str, list[int]] = {}
        self.places: dict[str, list[int]] = {}
        self.carried: list[int] = []

    def count(self, head: Mapping[str, Any], rows: int, blob: Any) -> None:
        """Counts a blob by its head, and by its buffer: a mapped file, or data that Spark has
        handed over. A blob of another kind came from a call in this process.
        """
        if isinstance(blob, memoryview):
            at = 0 if isinstance(blob.obj, mmap.mmap) else 2
            self.carried = self.carried or [0] * 4
            self.carried[at] += 1
            self.carried[at + 1] += blob.nbytes
        for key, counts in ((FROM, self.senders), (AT, self.places)):
            if key in head:
                _add(counts, head[key], (rows, memoryview(blob).nbytes, 1))


def add(before: SentCounts, done: Iterable[TaskOutcome]) -> SentCounts:
    """Adds the reports of tasks to the counts."""
    links, places = _copy_links(before.links), _copy_links(before.executor_links)
    cpu, nodes, busy = (
        dict(before.cpu_by_task),
        dict(before.cpu_by_node),
        dict(before.cpu_by_executor),
    )
    for outcome in done:
        name = name_of(outcome)
        cpu[name] = cpu.get(name, 0.0) + outcome.cpu_seconds
        for node, seconds in outcome.cpu_by_node.items():
            nodes[node] = nodes.get(node, 0.0) + seconds
        for sender, counts in outcome.received_by_sender.items():
            _add(links.setdefault(sender, {}), name, counts)
        if outcome.segment:
            rows = outcome.counts.solutions
            _add(links.setdefault(name, {}), OUTPUT, (rows, outcome.segment_size, 1))
        if outcome.executor:
            busy[outcome.executor] = busy.get(outcome.executor, 0.0) + outcome.cpu_seconds
            for executor, counts in outcome.received_by_executor.items():
                _add(places.setdefault(executor, {}), outcome.executor, counts)
    return SentCounts(links, cpu, nodes, places, busy)


def _copy_links(links: Links) -> Links:
    return {sender: dict(to) for sender, to in links.items()}


def _add(to: dict[str, list[int]], name: str, more: Sequence[int]) -> None:
    to[name] = [a + b for a, b in zip(to.get(name, (0, 0, 0)), more, strict=True)]


def add_to_slices(
    root: str, epoch: int, last: Manifest, slice_: str, done: Iterable[TaskOutcome]
) -> tuple[dict[str, str], msgspec.Raw]:
    """Adds an epoch to the slices. Returns the files of all slices, and the counts that are too
    small for a file: those of the present slice, complete. They are durable when the manifest is.
    """
    slices = dict(last.slices)
    sent = add(read_slice(root, last, slice_) if slice_ in slices else SentCounts(), done)
    for name in [n for n, file in slices.items() if not file and n != slice_]:
        slices[name] = _write(root, epoch, bytes(last.slice_counts))
    data = msgspec.json.encode(sent)
    slices.pop(slice_, None)  # it is the last one, also if it is repeated
    if len(data) <= LITTLE:
        return {**slices, slice_: ""}, msgspec.Raw(data)
    return {**slices, slice_: _write(root, epoch, data)}, NOTHING


def _write(root: str, epoch: int, data: bytes) -> str:
    return write_sealed(root, FOLDER, str(epoch), data)


def read_slice(root: str, manifest: Manifest, slice_: str) -> SentCounts:
    """Returns the counts of a slice. Raises ``CheckpointError``."""
    file = manifest.slices[slice_]
    return (
        read(Path(root) / file)
        if file
        else msgspec.json.decode(manifest.slice_counts, type=SentCounts)
    )


def read(path: Path) -> SentCounts:
    """Reads a file of a slice. Raises ``CheckpointError``."""
    try:
        return msgspec.json.decode(read_sealed(path), type=SentCounts)
    except msgspec.MsgspecError as error:
        raise unreadable(path, str(error)) from error
