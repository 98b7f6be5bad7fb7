"""Checksummed frames in files, which detect alterations (docs/architecture.md#state).

    LVF2, the length of the head   8 bytes
    xxh3 of the head               8 bytes
    head     JSON: meta, where each frame lies, the xxh3 of its bytes
    frames   64-byte aligned buffers
    sums     of each large frame the xxh3 of each block of its bytes; the head has the xxh3 of them

The head is checked when a file is opened, a frame at its first access. For a large frame of which
only ``some`` rows are read, only the blocks with these rows are checked: data that an epoch does
not touch costs nothing. Every defect is a ``CheckpointError`` that names the file.

Cost: xxh3 at the speed of memory (10 to 40 GB/s), once where a frame is written and once in each
process that reads it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt
import xxhash

from levada.core.array_types import Longs, Words
from levada.core.checksummed_files import ALTERED
from levada.core.frame import Column, Described, Frame, align_size, frame_of, lay_out
from levada.core.msgspec_warmup import prepare_structs
from levada.errors import unreadable
from levada.kernels.text.xxh3 import hash_blocks, schedule

_MAGIC = b"LVF2"
_digest = xxhash.xxh3_64_intdigest
_START = 16
BLOCK = 13
"""Bits of the bytes of a block: 8 KB."""
MIN_BLOCKWISE_BYTES = 1 << 17
"""Bytes from which on the blocks of a frame are checked one by one."""
MARKED = 12  # bytes that a mark needs


class _Head(msgspec.Struct):
    meta: Any
    frames: list[tuple[Described, int]]  # with their hashes
    size: int


def checked_parts(frames: Mapping[str, Frame], meta: Any = None) -> list[memoryview]:
    """Frames and JSON-able ``meta`` as the consecutive buffers of a file."""
    entries: list[tuple[Described, int]] = []
    buffers: list[memoryview] = []
    blocks: list[Words] = []
    size = 0
    for described, frame_buffers in lay_out(frames):
        views = [buffer.data for buffer in frame_buffers]
        if described.size < MIN_BLOCKWISE_BYTES:
            data = b"".join(views)
            entries.append((described, _digest(data)))
            buffers.append(memoryview(data))
        else:
            sums = sums_of(frame_buffers)
            entries.append((described, _digest(sums.data)))
            blocks.append(sums)
            buffers += views
        size += described.size
    buffers += [sums.data for sums in blocks]
    count = sum(map(len, blocks))
    head = msgspec.json.encode(_Head(meta, entries, size + 8 * count))
    first = _MAGIC + len(head).to_bytes(4, "little") + _digest(head).to_bytes(8, "little") + head
    return [memoryview(first.ljust(align_size(len(first)), b" ")), *buffers]


def sums_of(buffers: Sequence[Column]) -> Words:
    """The xxh3 of each block of consecutive buffers, by one call of a kernel.

    >>> one, two = np.zeros(10_000, np.uint8), np.zeros(20_000, np.uint8)
    >>> bool((sums_of([one, two]) == sums_of([np.zeros(30_000, np.uint8)])).all())
    True
    """
    at = np.array([buffer.__array_interface__["data"][0] for buffer in buffers], np.int64)
    sizes = [buffer.nbytes for buffer in buffers]
    return _sums(at, np.array(sizes, np.int64), sum(sizes))


def _sums(at: Longs, sizes: Longs, size: int) -> Words:
    """The sums of the blocks of pieces of memory of ``size`` bytes in all, by their addresses and
    sizes.
    """
    sums = np.empty(-(-size >> BLOCK), np.uint64)
    hash_blocks(at, sizes, schedule(0), 1 << BLOCK, sums)
    return sums


class Some:
    """A frame of which some rows are read. ``blocks``: of its bytes, if they are to be checked."""

    def __init__(self, frame: Frame, blocks: _Blocks | None = None) -> None:
        self._frame, self._blocks = frame, blocks

    @property
    def names(self) -> list[str]:
        """The columns that there are."""
        return list(self._frame.columns)

    def take(self, name: str, rows: Longs) -> Column:
        """A column at some rows. Raises ``CheckpointError``."""
        if self._blocks is not None:
            self._blocks.check(name, rows)
        return self._frame[name].take(rows)


class _Blocks:
    """The blocks of a large frame, each checked at the first access to a row of it."""

    def __init__(self, file: str, described: Described, data: npt.NDArray[np.uint8],
                 sums: Words) -> None:  # fmt: skip
        self._file, self._data, self._sums = file, data, sums
        self._checked = np.zeros(len(sums), np.bool_)
        self._columns = {name: (np.dtype(kind).itemsize, offset - described.start)
                         for name, kind, offset in described.columns if offset >= 0}  # fmt: skip
        values = [-at - 1 - described.start for _, _, at in described.columns if at < 0]
        self._check(np.array(values, np.int64))

    def check(self, name: str, rows: Longs) -> None:
        """Checks the blocks with some rows of a column."""
        if name in self._columns:  # else it is of one value
            size, start = self._columns[name]
            self._check(start + size * rows.astype(np.int64))

    def _check(self, at: Longs) -> None:
        read_blocks = np.bincount(at >> BLOCK, minlength=len(self._checked)) > 0
        blocks = (read_blocks & ~self._checked).nonzero()[0]
        if len(blocks):
            starts = blocks << BLOCK
            sizes = np.minimum(len(self._data) - starts, 1 << BLOCK)
            at = starts + self._data.__array_interface__["data"][0]
            sums = _sums(at, sizes, int(sizes.sum()))
            if (sums != self._sums[blocks]).any():
                raise unreadable(self._file, ALTERED)
            self._checked[blocks] = True


class CheckedFrames(Mapping[str, Frame]):
    """The frames of a file, each checked when it is first asked for."""

    def __init__(self, name: str, head: _Head, rows: npt.NDArray[np.uint8]) -> None:
        self._name = name
        self._rows = rows
        self._described = {d.name: (d, digest) for d, digest in head.frames}
        self._found: dict[str, Frame] = {}
        self.facts: dict[object, Any] = {}
        """Values that follow from these frames and the key alone, computed once."""
        self._some: dict[str, Some] = {}

    def __getitem__(self, name: str) -> Frame:
        frame = self._found.get(name)
        if frame is None:
            described, digest = self._described[name]
            data = self._bytes_of(described)
            if (
                _digest((sums_of([data]) if described.size >= MIN_BLOCKWISE_BYTES else data).data)
                != digest
            ):
                raise unreadable(self._name, ALTERED)
            frame = self._found[name] = frame_of(described, self._rows)
        return frame

    def sizes(self) -> dict[str, int]:
        """The bytes of each frame, as they lie in the file."""
        return {name: described.size for name, (described, _) in self._described.items()}

    def some(self, name: str) -> Some:
        """A frame of which some rows are asked for."""
        described, digest = self._described[name]
        if name in self._found or described.size < MIN_BLOCKWISE_BYTES:
            return Some(self[name])
        lazy_frame = self._some.get(name)
        if lazy_frame is None:
            sums = self._sums(described)
            if _digest(sums.data) != digest:
                raise unreadable(self._name, ALTERED)
            blocks = _Blocks(self._name, described, self._bytes_of(described), sums)
            lazy_frame = self._some[name] = Some(frame_of(described, self._rows), blocks)
        return lazy_frame

    def _bytes_of(self, described: Described) -> npt.NDArray[np.uint8]:
        return self._rows[described.start : described.start + described.size]

    def _sums(self, described: Described) -> Words:
        """Returns the sums of a large frame: they are behind all frames, in the order of these."""
        large = [d for d, _ in self._described.values() if d.size >= MIN_BLOCKWISE_BYTES]
        first = sum(_count_blocks(d) for d in large if d.start < described.start)
        end = max(d.start + d.size for d, _ in self._described.values())
        sums_bytes = self._rows[end + 8 * first : end + 8 * (first + _count_blocks(described))]
        return sums_bytes.view("<u8")

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
    if _digest(data[_START:end].data) != int.from_bytes(start[8:16], "little"):
        raise unreadable(name, ALTERED)
    head = msgspec.json.decode(data[_START:end].data, type=_Head)
    rows = data[align_size(end) :]
    if head.size > len(rows):
        raise unreadable(name, "it is cut short")
    return CheckedFrames(name, head, rows), head.meta


def _count_blocks(described: Described) -> int:
    """How many blocks a frame has."""
    return -(-described.size >> BLOCK)


prepare_structs(_Head)
