"""Identity of terms and values: seeded xxh3_128 of canonical texts, as two uint64 columns
(docs/architecture.md#a-triples-way).

Two terms are the same iff their canonical N-Triples texts are, so a term's identity is a hash of
that text; the seed is the checkpoint's, so that an attacker cannot prepare collisions. (0, 0) means
"unbound".

Cost: 5 to 15 ns a text, from Arrow's buffers without an object per text. Twin: the package
``xxhash`` (in tests).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import polars as pl
import pyarrow as pa

from levada.kernels.text.xxh3 import identify_slices, identify_tagged, schedule

Identity = tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]


def identify(texts: pl.Series | pa.Array | pa.ChunkedArray, seed: int) -> Identity:
    """The identities (x, y) of canonical texts; a null has (0, 0). ``texts`` is any Arrow or Polars
    string column.

    >>> x, y = identify(pl.Series(["<http://a>", None]), seed=7)
    >>> bool(x[0]), int(x[1]), int(y[1])
    (True, 0, 0)
    """
    array = _large_strings(texts)
    n = len(array)
    x, y = np.zeros(n, np.uint64), np.zeros(n, np.uint64)
    if n == 0:
        return x, y
    _, offsets, data = array.buffers()
    ends = np.frombuffer(offsets, np.int64, n + 1, 8 * array.offset)
    content = (
        np.frombuffer(data, np.uint8) if data is not None and data.size else np.zeros(1, np.uint8)
    )
    identify_slices(content, ends[:-1], np.diff(ends), schedule(seed), x, y)
    if array.null_count:
        # not to_numpy of Arrow's, for which it imports pandas
        absent = np.asarray(pl.from_arrow(array.is_null()))
        x[absent] = 0
        y[absent] = 0
    return x, y


def _large_strings(texts: pl.Series | pa.Array | pa.ChunkedArray) -> Any:
    """One Arrow array with 64-bit offsets."""
    array = texts.to_arrow() if isinstance(texts, pl.Series) else texts
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks() if array.num_chunks else pa.array([], array.type)
    return array if array.type == pa.large_string() else array.cast(pa.large_string())


def identify_one(text: str, seed: int) -> tuple[int, int]:
    """The identity of one canonical text.

    >>> columns = identify(pl.Series(["<http://a>"]), 7)
    >>> identify_one("<http://a>", 7) == tuple(int(column[0]) for column in columns)
    True
    """
    content = np.frombuffer(text.encode() or b"\0", np.uint8)
    size = np.array([len(text.encode())], np.int64)
    x, y = np.zeros(1, np.uint64), np.zeros(1, np.uint64)
    identify_slices(content, np.zeros(1, np.int64), size, schedule(seed), x, y)
    return int(x[0]), int(y[0])


def identify_ints(values: npt.NDArray[np.int64], tag: int, seed: int) -> Identity:
    """Returns the identities of values of tuple streams that are not strings: the hash of the byte
    ``tag`` and the value's eight.

    ``tag`` (0 to 255) distinguishes types; doubles are given as their bits
    (``values.view(np.int64)``).

    >>> x, y = identify_ints(np.array([1, 1, 2]), tag=10, seed=7)
    >>> bool(x[0] == x[1]), bool(x[0] == x[2])
    (True, False)
    """
    assert 0 <= tag <= 255, "a tag is one byte"
    x, y = np.empty(len(values), np.uint64), np.empty(len(values), np.uint64)
    identify_tagged(np.ascontiguousarray(values, np.int64), np.uint64(tag), np.uint64(seed), x, y)
    return x, y
