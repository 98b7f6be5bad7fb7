"""Terms tables: distinct identities and their canonical texts, which travel beside frames
(docs/architecture.md#a-triples-way).

Columns: ``x, y`` uint64[n] (the identity, never 0, 0, each pair once), ``off`` int64[n + 1] and
``data`` uint8 (the text of row i is the UTF-8 bytes ``data[off[i]:off[i + 1]]``). A blob or run
carries one table for the slots whose text a filter needs or a result shows; ``frames`` and
``from_frames`` are its form in the jumbo format.

Treat a table as immutable. It owns its bytes, or views those of the blob that it was unpacked from;
``pick`` copies.

Cost: 10 to 25 ns a text for building and reading, 5 to 20 ns a row for finding; the hash index is
built at the first use of ``find``, once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from levada.core.array_types import Bytes, Longs, Words
from levada.core.frame import Frame
from levada.kernels.keyed.hash_groups import group
from levada.kernels.text.term_texts import find_rows, gather, index_of

Places = npt.NDArray[np.integer[Any]]


class Terms:
    """Distinct identities with their texts."""

    __slots__ = ("_index", "data", "off", "x", "y")

    def __init__(self, x: Words, y: Words, off: Longs, data: Bytes) -> None:
        """Makes the table of these columns; the identities are distinct and not (0, 0)
        (``Terms.of`` makes them so).
        """
        assert off.size == x.size + 1 == y.size + 1, (
            "a terms table has n identities and n + 1 offsets"
        )
        self.x, self.y, self.off, self.data = x, y, off, data
        self._index: npt.NDArray[np.int32] | None = None

    @classmethod
    def empty(cls) -> Terms:
        """The table without terms."""
        return _EMPTY

    @classmethod
    def from_texts(cls, x: Words, y: Words, off: Places, length: Places, buffer: Bytes) -> Terms:
        """The distinct terms among n rows with texts ``buffer[off : off + length]``, in order of
        first appearance.

        Rows of identity (0, 0) are unbound and left out. The bytes are copied.

        >>> data = np.frombuffer(b"<a><b>", np.uint8)
        >>> x = np.array([5, 0, 6, 5], np.uint64)
        >>> terms = Terms.from_texts(x, x, np.array([0, 0, 3, 0]), np.array([3, 0, 3, 3]), data)
        >>> terms.texts(x, x).to_pylist()
        ['<a>', None, '<b>', '<a>']
        """
        bound = (x != 0) | (y != 0)
        if not bound.all():
            x, y, off, length = x[bound], y[bound], off[bound], length[bound]
        _, first = group(np.ascontiguousarray(x), np.ascontiguousarray(y))
        offsets, data = gather(first, _longs(off), _longs(length), buffer)
        return cls(x[first], y[first], offsets, data)

    @classmethod
    def merge(cls, tables: Sequence[Terms]) -> Terms:
        """The union of tables; one text per identity."""
        whole = cls.concat(tables)
        if whole.x.size == max([t.x.size for t in tables], default=0):
            return whole
        return cls.from_texts(whole.x, whole.y, whole.off[:-1], whole.lengths, whole.data)

    @classmethod
    def concat(cls, tables: Sequence[Terms]) -> Terms:
        """The union of tables without common identities."""
        filled = [t for t in tables if t.x.size]
        if len(filled) <= 1:
            return filled[0] if filled else cls.empty()
        bases = accumulate([t.data.size for t in filled], initial=0)
        ends = [t.off[1:] + base for t, base in zip(filled, bases, strict=False)]
        return cls(
            np.concatenate([t.x for t in filled]),
            np.concatenate([t.y for t in filled]),
            np.concatenate([filled[0].off[:1], *ends]),
            np.concatenate([t.data for t in filled]),
        )

    def __len__(self) -> int:
        return self.x.size

    def __repr__(self) -> str:
        return f"Terms({len(self)} terms, {len(self.data)} bytes)"

    @property
    def nbytes(self) -> int:
        """The bytes of its columns and of the index that ``find`` makes."""
        return self.x.nbytes + self.y.nbytes + self.off.nbytes + self.data.nbytes + 8 * len(self)

    @property
    def lengths(self) -> Longs:
        """The bytes of each text."""
        return self.off[1:] - self.off[:-1]

    def find(self, x: Words, y: Words) -> Longs:
        """The row of each identity, or -1."""
        if self._index is None:
            self._index = index_of(self.x, self.y)
        return find_rows(self._index, self.x, self.y, x, y)

    def texts(self, x: Words, y: Words, strict: bool = True) -> pa.Array:
        """Returns the text of each identity as an Arrow ``large_string`` array; null for (0, 0).

        With ``strict`` every other identity must be in the table; without it, a missing identity is
        null, too.
        """
        rows = self.find(x, y)
        known = rows >= 0
        assert not strict or not ((x[~known] != 0) | (y[~known] != 0)).any(), (
            "every bound identity has a text here"
        )
        offsets, data = gather(rows, self.off[:-1], self.lengths, self.data)
        missing = len(rows) - int(known.sum())
        valid = pa.py_buffer(np.packbits(known, bitorder="little")) if missing else None
        buffers = [valid, pa.py_buffer(offsets), pa.py_buffer(data)]
        return pa.Array.from_buffers(pa.large_string(), len(rows), buffers, missing)

    def pick(self, x: Words, y: Words) -> Terms:
        """Returns the table of only the terms that occur among these identities."""
        return self.select_rows(self.find(x, y))

    def select_rows(self, places: Longs) -> Terms:
        """Returns the table of the terms at these rows, each once, in the order of this one; -1 is
        skipped.
        """
        wanted = np.zeros(len(self) + 1, np.bool_)
        wanted[places] = True  # the last place takes the -1
        (rows,) = wanted[:-1].nonzero()
        offsets, data = gather(rows, self.off[:-1], self.lengths, self.data)
        return Terms(self.x[rows], self.y[rows], offsets, data)

    def frames(self, prefix: str) -> dict[str, Frame]:
        """The table as frames ``<prefix>.id`` (x, y, end of the text), ``<prefix>.text`` (bytes).

        >>> sorted(Terms.empty().frames("terms"))
        ['terms.id', 'terms.text']
        """
        return {
            f"{prefix}.id": Frame({"x": self.x, "y": self.y, "end": self.off[1:]}),
            f"{prefix}.text": Frame({"data": self.data}),
        }

    @classmethod
    def from_frames(cls, frames: Mapping[str, Frame], prefix: str) -> Terms:
        """The table of two frames that ``frames(prefix)`` made: by views (but ``off``)."""
        ids = frames[f"{prefix}.id"]
        offsets = np.zeros(ids.n + 1, np.int64)
        offsets[1:] = ids["end"]
        return cls(ids["x"], ids["y"], offsets, frames[f"{prefix}.text"]["data"])


_NONE = np.empty(0, np.uint64)
_EMPTY = Terms(_NONE, _NONE, np.zeros(1, np.int64), np.empty(0, np.uint8))


def _longs(values: Places) -> Longs:
    return np.ascontiguousarray(values, np.int64)
