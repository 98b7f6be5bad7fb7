"""Frames: rows as columns of fixed width. What both stages of an epoch and its state files speak.

A frame has ``n`` rows and named NumPy columns; ``model.columns`` says what each of them holds.

Texts are not in frames: a blob or run carries a ``Terms`` table beside its frames. ``pack`` and
``unpack`` are the jumbo format: a JSON head, then 64-byte aligned buffers; unpacked columns are
read-only views of the given buffer (memory maps).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from levada.model.columns import visible

Column = npt.NDArray[Any]
_ALIGN = 64
_MAGIC = b"LVF1"


class Frame:
    """``n`` rows of named columns, all of length ``n``; treat it as immutable."""

    __slots__ = ("columns", "n")

    def __init__(self, columns: Mapping[str, Column], n: int | None = None) -> None:
        self.columns: dict[str, Column] = dict(columns)
        self.n = len(next(iter(self.columns.values()))) if n is None else n
        assert not self.columns or len(next(reversed(self.columns.values()))) == self.n, (
            "columns have one length"
        )

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
        return Frame({k: v.take(at) for k, v in self.columns.items()}, len(at))

    def where(self, mask: npt.NDArray[np.bool_]) -> Frame:
        """The rows where ``mask`` is true (self, if all are)."""
        return self if mask.all() else self.take(np.flatnonzero(mask))

    def with_(self, **columns: Column) -> Frame:
        """This frame with columns added or replaced."""
        return Frame({**self.columns, **columns}, self.n)

    def select(self, names: Iterable[str]) -> Frame:
        """These columns only."""
        return Frame({k: self.columns[k] for k in names}, self.n)

    def visible(self) -> Frame:
        """Without the columns that are an operator's own.

        >>> Frame({"op": np.zeros(1, np.int32), "#s": np.zeros(1, np.int64)}).visible()
        Frame(1 rows: op)
        """
        return self.select(visible(self.columns))

    def drop(self, *names: str) -> Frame:
        """Without these columns, whether they are there or not."""
        return Frame({k: v for k, v in self.columns.items() if k not in names}, self.n)

    def rename(self, names: Mapping[str, str]) -> Frame:
        """With columns under other names; those that are not named keep theirs.

        >>> Frame({"r": np.zeros(1, np.int64)}).rename({"r": "#s"})
        Frame(1 rows: #s)
        """
        return Frame({names.get(k, k): v for k, v in self.columns.items()}, self.n)

    def slice(self, start: int, stop: int) -> Frame:
        """Rows start..stop, as views."""
        stop = min(stop, self.n)
        return Frame({k: v[start:stop] for k, v in self.columns.items()}, max(stop - start, 0))


def concat(frames: Sequence[Frame]) -> Frame:
    """All rows of frames with the same columns, in order; at least one frame."""
    if len(frames) == 1:
        return frames[0]
    names = frames[0].columns
    return Frame(
        {k: np.concatenate([f.columns[k] for f in frames]) for k in names}, sum(f.n for f in frames)
    )


class _Head(msgspec.Struct):
    meta: Any
    frames: list[tuple[str, int, list[tuple[str, str, int]]]]  # name, rows, (column, dtype, offset)
    size: int


def parts(frames: Mapping[str, Frame], meta: Any = None) -> list[memoryview]:
    """Frames and JSON-able ``meta`` as the consecutive buffers of a blob; columns are not copied.

    A column whose values are all equal is one value (its offset is stored as -offset - 1). Columns
    of times that are the same, as an event's time and the column that it was read from, are stored
    once.
    """
    offset = 0
    entries: list[tuple[str, int, list[tuple[str, str, int]]]] = []
    buffers: list[Column] = []
    for name, frame in frames.items():
        described: list[tuple[str, str, int]] = []
        times: list[tuple[Column, int]] = []  # those of this frame, with their offsets
        for column, values in frame.columns.items():
            constant = _is_constant(values)
            if values.dtype == np.int64 and not constant:
                same = next((at for other, at in times if _is_same(values, other)), None)
                if same is not None:
                    described.append((column, values.dtype.str, same))
                    continue
                times.append((values, offset))
            kept = np.ascontiguousarray(values[:1] if constant else values)
            described.append((column, values.dtype.str, -offset - 1 if constant else offset))
            buffers.append(kept)
            offset += -(-kept.nbytes // _ALIGN) * _ALIGN
        entries.append((name, frame.n, described))
    head = msgspec.json.encode(_Head(meta, entries, offset))
    start = -(-(8 + len(head)) // _ALIGN) * _ALIGN
    first = (_MAGIC + np.uint32(len(head)).tobytes() + head).ljust(start, b" ")
    out = [memoryview(first)]
    for kept in buffers:
        if kept.nbytes:
            out.append(kept.view(np.uint8).reshape(-1).data)
            if gap := -kept.nbytes % _ALIGN:
                out.append(memoryview(_GAP)[:gap])
    return out


_GAP = bytes(_ALIGN)


def _is_constant(values: Column) -> bool:
    """Whether a column of at least 64 rows has one value only; three values tell most others."""
    n = len(values)
    if n < _ALIGN or values[0] != values[-1] or values[0] != values[n // 2]:
        return False
    # 0.0 == -0.0, but they differ
    bits = values.view(f"u{values.itemsize}") if values.dtype.kind == "f" else values
    return bool((bits == bits[0]).all())


def _is_same(values: Column, other: Column) -> bool:
    """Whether two columns of at least 64 rows are equal; two values tell most others."""
    n = len(values)
    return (
        n >= _ALIGN
        and values[0] == other[0]
        and values[n // 2] == other[n // 2]
        and np.array_equal(values, other)
    )


def pack(frames: Mapping[str, Frame], meta: Any = None) -> bytes:
    """Frames and JSON-able ``meta`` as one blob.

    >>> name, frame = next(iter(unpack(pack({"a": Frame({"x": np.arange(3)})}))[0].items()))
    >>> name, frame["x"].tolist()
    ('a', [0, 1, 2])
    """
    return b"".join(parts(frames, meta))


def unpack(blob: bytes | memoryview | npt.NDArray[np.uint8]) -> tuple[dict[str, Frame], Any]:
    """The frames and meta of a blob, without copying (but for columns of one value)."""
    data = np.frombuffer(blob, np.uint8) if not isinstance(blob, np.ndarray) else blob
    assert data[:4].tobytes() == _MAGIC, "a jumbo blob starts with LVF1"
    length = int(np.frombuffer(data[4:8].tobytes(), np.uint32)[0])
    head = msgspec.json.decode(data[8 : 8 + length].tobytes(), type=_Head)
    start = -(-(8 + length) // _ALIGN) * _ALIGN
    frames = {}
    for name, n, columns in head.frames:
        views = {}
        for column, dtype, offset in columns:
            kind = np.dtype(dtype)
            at = start + (offset if offset >= 0 else -offset - 1)
            if offset < 0:
                views[column] = np.full(n, data[at : at + kind.itemsize].view(kind)[0], kind)
            else:
                views[column] = data[at : at + n * kind.itemsize].view(kind)
        frames[name] = Frame(views, n)
    return frames, head.meta
