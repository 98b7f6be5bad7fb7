"""Frames in files, which say so when they have been altered (docs/architecture.md#state).

    LVF2, the length of the head   8 bytes
    xxh3 of the head               8 bytes
    head     JSON: meta, where each frame lies, the xxh3 of its bytes
    frames   64-byte aligned buffers

The head is checked when a file is opened, a frame when it is first asked for: what an epoch does
not touch costs nothing. Whatever is wrong is a ``CheckpointError`` that names the file.

Cost: xxh3 at the speed of memory (10 to 40 GB/s), once where a frame is written and once in each
process that reads it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import xxhash

from levada.errors import unreadable
from levada.model.frame import Described, Frame, aligned, frame_of, laid_out
from levada.prepared import prepared

_MAGIC = b"LVF2"
_START = 16
MARKED = 12  # bytes that a mark needs
ALTERED = "it is cut short or altered"
OTHER = "it is not what was written under this name"


class _Head(msgspec.Struct):
    meta: Any
    frames: list[tuple[Described, int]]  # with their hashes
    size: int


def checked_parts(frames: Mapping[str, Frame], meta: Any = None) -> list[memoryview]:
    """Frames and JSON-able ``meta`` as the consecutive buffers of a file."""
    entries: list[tuple[Described, int]] = []
    buffers: list[memoryview] = []
    size = 0
    for described, own in laid_out(frames):
        digest = xxhash.xxh3_64()
        for buffer in own:
            digest.update(buffer)
        entries.append((described, digest.intdigest()))
        buffers += own
        size += described.size
    head = msgspec.json.encode(_Head(meta, entries, size))
    first = _MAGIC + len(head).to_bytes(4, "little") + _sum(head).to_bytes(8, "little") + head
    return [memoryview(first.ljust(aligned(len(first)), b" ")), *buffers]


class CheckedFrames(Mapping[str, Frame]):
    """The frames of a file, each checked when it is first asked for."""

    def __init__(self, name: str, head: _Head, rows: npt.NDArray[np.uint8]) -> None:
        self._name = name
        self._rows = rows
        self._described = {d.name: (d, digest) for d, digest in head.frames}
        self._found: dict[str, Frame] = {}

    def __getitem__(self, name: str) -> Frame:
        found = self._found.get(name)
        if found is None:
            described, digest = self._described[name]
            if _sum(self._rows[described.start : described.start + described.size].data) != digest:
                raise unreadable(self._name, ALTERED)
            found = self._found[name] = frame_of(described, self._rows)
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._described

    def __iter__(self) -> Iterator[str]:
        return iter(self._described)

    def __len__(self) -> int:
        return len(self._described)


def mark(first: bytes | memoryview) -> str:
    """Eight digits that follow from all that a file of frames holds, by its first buffer; "" for
    other files. A name that has them cannot be that of another file.

    >>> mark(checked_parts({"a": Frame({"x": np.arange(3)})})[0])
    '30c6cb98'
    >>> mark(b"a line")
    ''
    """
    return bytes(first[8:12]).hex() if first[:4] == _MAGIC else ""


def unpack_checked(data: npt.NDArray[np.uint8], name: str) -> tuple[CheckedFrames, Any]:
    """The frames and meta of the file ``name`` from its bytes, without copying. Raises
    ``CheckpointError``.

    >>> blob = b"".join(checked_parts({"a": Frame({"x": np.arange(3)})}, meta=1))
    >>> frames, meta = unpack_checked(np.frombuffer(blob, np.uint8), "state/1")
    >>> frames["a"]["x"].tolist(), meta
    ([0, 1, 2], 1)
    """
    start = data[:_START].tobytes()
    end = _START + int.from_bytes(start[4:8], "little")
    if not start.startswith(_MAGIC) or end > len(data):
        raise unreadable(name, ALTERED if start else "it is empty")
    if _sum(data[_START:end].data) != int.from_bytes(start[8:16], "little"):
        raise unreadable(name, ALTERED)
    head = msgspec.json.decode(data[_START:end].data, type=_Head)
    rows = data[aligned(end) :]
    if head.size > len(rows):
        raise unreadable(name, "it is cut short")
    return CheckedFrames(name, head, rows), head.meta


def _sum(data: bytes | memoryview) -> int:
    found: int = xxhash.xxh3_64_intdigest(data)
    return found


prepared(_Head)
