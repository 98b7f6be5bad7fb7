"""How a blob travels from the task that makes it to the task that reads it
(docs/architecture.md#a-triples-way).

By value through Spark's shuffle (about 5 CPU-ms a MB), or, where all executors share a host and the
blob is not small, by reference to a place in a file in Spark's local scratch (about 0.6 CPU-ms a
MB). What crosses the shuffle is

    body, tail      tail = kind (1 byte), source (4), place (4)
                    body = the blob, or for a reference: offset (8), length (8), path of the file

The tail stands last, so that a blob by value keeps the alignment of its buffer and is never copied
to strip it. Blobs are read in the order (source, place): source is the partition that sent them,
place the blob's number in it. So the order is that of a run in one process, however the shuffle
delivers.

One task attempt writes at most one file, under a name of its own; offsets are multiples of 64.
Readers map it. A file that is gone or short raises ``BlobLostError``: the task fails, the epoch is
not committed and is run again. The driver removes the folder of a job when the job is over (maps
that are still open stay valid).
"""

from __future__ import annotations

import mmap
import os
import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import BinaryIO

from levada.errors import LostTaskError
from levada.runtime.local import Blob

THRESHOLD = 32 * 1024  # bytes; below, a file costs more than the copies through the JVM
_TAIL = struct.Struct("<BII")
_PLACE_IN_FILE = struct.Struct("<QQ")
_BY_VALUE, _BY_REFERENCE = 0, 1
_ALIGN = 64


class BlobLostError(LostTaskError):
    """A blob's file is gone or short; running the epoch again makes it anew."""


@dataclass(frozen=True, slots=True)
class Carrier:
    """How the blobs of one job travel: by reference into ``folder`` from ``threshold`` bytes on
    (None: all by value).
    """

    folder: str | None = None
    threshold: int = THRESHOLD


class Sender:
    """Wraps the blobs of one task attempt; ``name`` is its own. A context manager."""

    def __init__(self, carrier: Carrier, source: int, name: str) -> None:
        self._carrier, self._source, self._name = carrier, source, name
        self._place = 0
        self._file: BinaryIO | None = None

    def wrap(self, blob: Blob) -> tuple[Blob, bytes]:
        """The two parts that go through the shuffle, one after the other: body and tail."""
        size = memoryview(blob).nbytes
        # nothing cannot be mapped
        if self._carrier.folder is None or size < max(self._carrier.threshold, 1):
            return blob, self._tail(_BY_VALUE)
        return self._write(self._carrier.folder, blob, size), self._tail(_BY_REFERENCE)

    def _tail(self, kind: int) -> bytes:
        self._place += 1
        return _TAIL.pack(kind, self._source, self._place - 1)

    def _write(self, folder: str, blob: Blob, size: int) -> bytes:
        if self._file is None:
            os.makedirs(folder, exist_ok=True)
            # closed by __exit__
            self._file = open(os.path.join(folder, self._name), "xb", buffering=0)  # noqa: SIM115
        offset = -(-self._file.tell() // _ALIGN) * _ALIGN
        self._file.seek(offset)
        rest = memoryview(blob).cast("B")
        while rest:
            rest = rest[self._file.write(rest) :]
        return _PLACE_IN_FILE.pack(offset, size) + os.fsencode(self._file.name)

    def __enter__(self) -> Sender:
        return self

    def __exit__(self, *error: object) -> None:
        if self._file is not None:
            self._file.close()


def receive(refs: Iterable[bytes]) -> list[Blob]:
    """The blobs of one partition, as read-only views, in the order (source, place)."""
    maps: dict[str, memoryview] = {}
    arrived = []
    for ref in refs:
        if len(ref) < _TAIL.size:  # a mark beside a blob, which says where the task is to run
            continue
        kind, source, place = _TAIL.unpack_from(ref, len(ref) - _TAIL.size)
        body = memoryview(ref)[: -_TAIL.size]
        arrived.append((source, place, body if kind == _BY_VALUE else _follow(body, maps)))
    arrived.sort(key=lambda blob: blob[:2])
    return [blob for _, _, blob in arrived]


def _follow(reference: memoryview, maps: dict[str, memoryview]) -> memoryview:
    """The place in a file to which a reference points."""
    offset, size = _PLACE_IN_FILE.unpack_from(reference)
    path = os.fsdecode(bytes(reference[_PLACE_IN_FILE.size :]))
    if path not in maps:
        maps[path] = _map(path)
    if len(maps[path]) < offset + size:
        raise BlobLostError(f"The exchange file {path} is shorter than it was written.")
    return maps[path][offset : offset + size]


def _map(path: str) -> memoryview:
    try:
        with open(path, "rb") as file:
            return memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
    except (OSError, ValueError) as error:  # ValueError: an empty file cannot be mapped
        raise BlobLostError(f"The exchange file {path} is lost: {error}.") from error
