"""Cancelled rows: +1 and -1 of one row, once both have begun, have no further effect
(docs/architecture.md#a-triples-way).

Without cancelling, the state of count windows and sessions would grow with the stream: their rows
end by a row of weight -1 and not by time. Two rows are one if they agree in all columns except
those of their beginnings. If rows do not cancel wholly, the latest stay, in their order. Cost: some
hash probes a row, whenever state parts are merged.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
import numpy.typing as npt

from levada.core import column_names as col
from levada.core.array_types import Bools, Words
from levada.core.frame import Frame
from levada.kernels.keyed.bucket_layout import combine, mix
from levada.kernels.keyed.radix_sort import in_order
from levada.operators.windowing.zset import consolidate


def drop_cancelled(rows: Frame, begun: Bools, beginnings: Sequence[str] = ()) -> Frame:
    """Drops the ``begun`` rows that cancel each other. Returns all rows if they have no weights.

    ``beginnings``: columns other than ``#s`` that contain only the beginning of a row.
    """
    if "w" not in rows or not rows.n:
        return rows
    at = np.flatnonzero(begun)
    begun_rows = rows.take(at)
    codes, _, weight = consolidate(
        *whole_key(begun_rows, {*beginnings, col.BEGIN, "w"}), begun_rows["w"]
    )
    left = weight[codes]
    stay = np.ones(rows.n, np.bool_)
    stay[at] = (np.sign(left) == begun_rows["w"]) & (
        _from_the_end(codes, begun_rows["w"]) < np.abs(left)
    )
    return rows.where(stay)


def whole_key(rows: Frame, but: Collection[str]) -> tuple[Words, Words]:
    """A key of all columns but these."""
    zeros = np.zeros(rows.n, np.uint64)
    key = mix(zeros, zeros, rows["op"])
    for name in sorted(rows.columns):
        if name != "op" and name not in but:
            key = combine(*key, _bits(rows[name]), zeros)
    return key


def _bits(column: npt.NDArray[np.generic]) -> Words:
    return (
        np.ascontiguousarray(column).view(np.uint64)
        if column.itemsize == 8
        else column.astype(np.uint64)
    )


def _from_the_end(
    codes: npt.NDArray[np.int32], weights: npt.NDArray[np.int8]
) -> npt.NDArray[np.int64]:
    """How many rows of the same group and weight follow each row."""
    order = in_order(weights, codes)
    new = (np.diff(codes[order]) != 0) | (np.diff(weights[order]) != 0)
    last = np.flatnonzero(np.concatenate([new, np.ones(min(len(order), 1), bool)]))
    of = np.concatenate([np.zeros(min(len(order), 1), np.int64), np.cumsum(new)])
    rank = np.empty(len(order), np.int64)
    rank[order] = last[of] - np.arange(len(order))
    return rank
