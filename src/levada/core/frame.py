"""Frames: rows as columns of fixed width. Both stages of an epoch and its state files exchange
frames.

A frame has ``n`` rows and named NumPy columns; ``core.column_names`` describes each of them.

Texts are not in frames: a blob or run has a ``Terms`` table next to its frames. ``pack`` and
``unpack`` are the jumbo format: a JSON head, then 64-byte aligned buffers; unpacked columns are
read-only views of the given buffer. In files frames have hashes (``core.checksum_messages``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any
from weakref import ref

import msgspec
import numpy as np
import numpy.typing as npt

from levada.core.column_names import visible_columns
from levada.core.msgspec_warmup import prepare_structs

Column = npt.NDArray[Any]
_ALIGN = 64
_MAGIC = b"LVF1"


class Frame:
    """``n`` rows of named columns, all of length ``n``; treat it as immutable."""

    __slots__ = ("columns", "n")

    def __init__(self, columns: Mapping[str, Column], n: int | None = None) -> None:
        self.columns: dict[str, Column] = dict(columns)
        arrays = [*self.columns.values()]
        self.n = len(arrays[0]) if n is None else n
        assert not arrays or len(arrays[-1]) == self.n, "columns have one length"

    @staticmethod
    def _without_check(columns: dict[str, Column], n: int) -> Frame:
        """Returns a frame of columns of one length without a check, as for columns of an existing
        frame.
        """
        frame = _new_frame(Frame)
        frame.columns, frame.n = columns, n
        return frame

    def __getitem__(self, name: str) -> Column:
        return self.columns[name]

    def __contains__(self, name: str) -> bool:
        return name in self.columns

    def __len__(self) -> int:
        return self.n

    def __repr__(self) -> str:
        return f"Frame({self.n} rows: {' '.join(self.columns)})"

    def take(self, rows: npt.NDArray[np.integer[Any]]) -> Frame:
        """The rows at these positions, in this order."""
        at = rows.astype(np.intp, copy=False)  # NumPy takes ten times as long by other integers
        return self._without_check({k: v.take(at) for k, v in self.columns.items()}, len(at))

    def where(self, mask: npt.NDArray[np.bool_]) -> Frame:
        """The rows where ``mask`` is true (self, if all are)."""
        return self if mask.all() else self.take(mask.nonzero()[0])

    def with_(self, **columns: Column) -> Frame:
        """This frame with columns added or replaced."""
        return Frame({**self.columns, **columns}, self.n)

    def select(self, names: Iterable[str]) -> Frame:
        """These columns only."""
        columns = self.columns
        return self._without_check({k: columns[k] for k in names}, self.n)

    def visible(self) -> Frame:
        """Without the columns that are an operator's own.

        >>> Frame({"op": np.zeros(1, np.int32), "#s": np.zeros(1, np.int64)}).visible()
        Frame(1 rows: op)
        """
        return self.select(visible_columns(self.columns))

    def drop(self, *names: str) -> Frame:
        """Without these columns, whether they are there or not."""
        remaining = {k: v for k, v in self.columns.items() if k not in names}
        return self._without_check(remaining, self.n)

    def rename(self, names: Mapping[str, str]) -> Frame:
        """Renames columns; columns that are not listed keep their names.

        >>> Frame({"r": np.zeros(1, np.int64)}).rename({"r": "#s"})
        Frame(1 rows: #s)
        """
        renamed = {names.get(k, k): v for k, v in self.columns.items()}
        return self._without_check(renamed, self.n)

    def slice(self, start: int, stop: int) -> Frame:
        """Rows start..stop, as views."""
        stop = min(stop, self.n)
        views = {k: v[start:stop] for k, v in self.columns.items()}
        return self._without_check(views, max(stop - start, 0))


_new_frame = object.__new__


def concat(frames: Sequence[Frame]) -> Frame:
    """All rows of frames with the same columns, in order; at least one frame."""
    if len(frames) == 1:
        return frames[0]
    names = frames[0].columns
    columns = zip(*[[f.columns[name] for name in names] for f in frames], strict=True)
    whole = {name: np.concatenate(parts) for name, parts in zip(names, columns, strict=True)}
    return Frame(whole, sum([f.n for f in frames]))


class Described(msgspec.Struct, array_like=True, frozen=True):
    """A frame in a head: its columns with their dtypes and offsets, and the bytes that it takes."""

    name: str
    rows: int
    columns: list[tuple[str, str, int]]
    start: int
    size: int


class _Head(msgspec.Struct, omit_defaults=True):
    meta: Any = None
    frames: list[Described] = []
    size: int = 0


def lay_out(frames: Mapping[str, Frame]) -> Iterator[tuple[Described, list[Column]]]:
    """Yields each frame with its consecutive buffers, which are aligned; columns are not copied.

    A column whose values are all equal is one value (its offset is stored as -offset - 1). Columns
    of times that are the same, as an event's time and the column that it was read from, are stored
    once, from 64 rows on.
    """
    offset = 0
    for name, frame in frames.items():
        start, many = offset, frame.n >= _ALIGN
        buffers: list[Column] = []
        described: list[tuple[str, str, int]] = []
        times: list[tuple[Column, int]] = []
        for column, values in frame.columns.items():
            kind = values.dtype.str
            constant = many and values[0] == values[-1] and _is_constant(values)
            if many and kind == _INT64 and not constant:
                if times and (same := _place_of_equal(values, times)) is not None:
                    described.append((column, kind, same))
                    continue
                times.append((values, offset))
            kept = values[:1] if constant else values
            if size := kept.nbytes:
                contiguous = kept if kept.flags.c_contiguous else np.ascontiguousarray(kept)
                gap = -size % _ALIGN
                buffers += (contiguous, _GAPS[gap]) if gap else (contiguous,)
            described.append((column, kind, -offset - 1 if constant else offset))
            offset += size + -size % _ALIGN
        yield Described(name, frame.n, described, start, offset - start), buffers


def _place_of_equal(values: Column, others: list[tuple[Column, int]]) -> int | None:
    """Returns the place of a column with the same values; comparing two values excludes most
    others.
    """
    middle = len(values) // 2
    first, inner = values[0], values[middle]
    for other, at in others:
        if other[0] == first and other[middle] == inner and np.array_equal(values, other):
            return at
    return None


def align_size(size: int) -> int:
    """Rounds a size up to the alignment."""
    return -(-size // _ALIGN) * _ALIGN


def parts(frames: Mapping[str, Frame], meta: Any = None) -> list[memoryview]:
    """Frames and JSON-able ``meta`` as the consecutive buffers of a blob."""
    entries: list[Described] = []
    buffers: list[Column] = []
    for described, frame_buffers in lay_out(frames):
        entries.append(described)
        buffers += frame_buffers
    size = entries[-1].start + entries[-1].size if entries else 0
    head = msgspec.json.encode(_Head(meta, entries, size))
    first = _MAGIC + np.uint32(len(head)).tobytes() + head
    if not buffers:
        return [memoryview(first)]
    return [memoryview(first.ljust(align_size(len(first)), b" ")), *[b.data for b in buffers]]


_GAPS = [np.zeros(gap, np.uint8) for gap in range(_ALIGN)]
_INT64 = np.dtype(np.int64).str


def _is_constant(values: Column) -> bool:
    """Whether a column whose first and last value are equal has one value only; the one in the
    middle decides it for most.
    """
    if values[0] != values[values.size // 2]:
        return False
    # 0.0 == -0.0, but they differ
    bits = values.view(f"u{values.itemsize}") if values.dtype.kind == "f" else values
    return bool(np.logical_and.reduce(bits == bits[0]))


def pack(frames: Mapping[str, Frame], meta: Any = None) -> bytes:
    """Frames and JSON-able ``meta`` as one blob.

    >>> name, frame = next(iter(unpack(pack({"a": Frame({"x": np.arange(3)})}))[0].items()))
    >>> name, frame["x"].tolist()
    ('a', [0, 1, 2])
    """
    return b"".join(parts(frames, meta))


class Parcel:
    """The frames and meta of a blob that is packed where it leaves this process: ``bytes`` packs
    it. Its columns are contiguous, as those of a packed blob.

    >>> parcel = Parcel({"a": Frame({"x": np.arange(6)[::2]})}, {"by": 1})
    >>> unpack(bytes(parcel))[0]["a"]["x"].tolist(), unpack(parcel)[1]
    ([0, 2, 4], {'by': 1})
    """

    __slots__ = ("frames", "meta")

    def __init__(self, frames: Mapping[str, Frame], meta: Any = None) -> None:
        self.frames, self.meta = {name: _contiguous(f) for name, f in frames.items()}, meta

    def __bytes__(self) -> bytes:
        return pack(self.frames, self.meta)


def _contiguous(frame: Frame) -> Frame:
    """Copies the columns that kernels would refuse."""
    strided = {k: v for k, v in frame.columns.items() if not v.flags.c_contiguous}
    if not strided:
        return frame
    return frame.with_(**{k: np.ascontiguousarray(v) for k, v in strided.items()})


def unpack(
    blob: bytes | memoryview | npt.NDArray[np.uint8] | Parcel,
) -> tuple[dict[str, Frame], Any]:
    """The frames and meta of a blob, without copying (but for columns of one value)."""
    if isinstance(blob, Parcel):
        return blob.frames, blob.meta
    data = np.frombuffer(blob, np.uint8) if not isinstance(blob, np.ndarray) else blob
    assert data[:4].tobytes() == _MAGIC, "a jumbo blob starts with LVF1"
    length = int(np.frombuffer(data[4:8].tobytes(), np.uint32)[0])
    head = msgspec.json.decode(data[8 : 8 + length].tobytes(), type=_Head)
    rows = data[align_size(8 + length) :]
    return {d.name: frame_of(d, rows) for d in head.frames}, head.meta


def frame_of(described: Described, rows: npt.NDArray[np.uint8]) -> Frame:
    """A frame from the bytes of all frames, as views (but for columns of one value)."""
    views, n = {}, described.rows
    for column, dtype, offset in described.columns:
        kind = np.dtype(dtype)
        if offset < 0:
            value = rows[-offset - 1 : -offset - 1 + kind.itemsize]
            views[column] = _all_alike(value.tobytes(), kind, n)
        else:
            views[column] = rows[offset : offset + n * kind.itemsize].view(kind)
    return Frame._without_check(views, n)


_alike: dict[tuple[str, bytes], ref[Column]] = {}


def _all_alike(value: bytes, kind: np.dtype[Any], rows: int) -> Column:
    """A column of one value, by its bytes, which is kept once in this process for all frames that
    have it: pieces of a window would else take the more memory the longer it is.
    """
    reference = _alike.get((kind.str, value))
    kept = None if reference is None else reference()
    if kept is None or kept.size < rows:
        many = 1 << (rows - 1).bit_length()  # as they come ever longer, few are made
        kept = np.zeros(many, kind)
        if any(value):  # not -0.0
            kept[:] = np.frombuffer(value, kind)
        _alike[kind.str, value] = ref(kept, partial(_forget, (kind.str, value)))
    return kept[:rows]


def _forget(value: tuple[str, bytes], dropped: ref[Column], alike: dict[Any, Any] = _alike) -> None:
    """Forgets a column that is no longer used, unless a longer one has taken its place. ``alike``
    is bound here, since at the end of the process names of modules are gone before columns are.
    """
    if alike.get(value) is dropped:
        del alike[value]


prepare_structs(_Head)
