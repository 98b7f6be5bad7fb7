"""Rows that wait for a number of their stream: what becomes of them when it comes
(``operators/interval/by_number/narrow``).

An epoch's rows are one more piece, in the order of the numbers that they wait for; what is up is
cut off a piece where it lies. Pieces become one as ``due_together`` says. So an epoch costs by the
rows that are new and those that are up, not by those that wait.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec
import numpy as np

from levada.kernels.keyed.order import in_order
from levada.model import columns as col
from levada.model.frame import Frame, concat
from levada.model.time import MAX
from levada.windows.state.pieces import Piece, State, due_together

Living = Callable[[Frame], Frame]


def come_up(state: State, key: str, top: int) -> list[Frame]:
    """The rows that have waited for a number up to ``top`` (``#q``)."""
    up, kept = list[Frame](), list[Piece]()
    for piece in state.pieces(key):
        if piece.low > top:
            kept.append(piece)
            continue
        rows = state.frame(piece)
        first, last = np.searchsorted(rows[col.NUMBER], (piece.low, top + 1)).tolist()
        state.touched += last - first
        if last < rows.n:
            low = int(rows[col.NUMBER][last])
            kept.append(msgspec.structs.replace(piece, rows=rows.n - last, low=low))
        up.append(state.own(piece, rows.slice(first, last)))
    state.replace(key, kept)
    return [rows for rows in up if rows.n]


def wait(state: State, key: str, rows: Frame, living: Living) -> None:
    """Adds rows that wait for their numbers (``#q``); ``living`` leaves out those of nobody."""
    if not rows.n:
        return
    pieces = [*state.pieces(key), _put(state, rows)]
    if (first := due_together(pieces)) < len(pieces):
        left = living(concat([_left(state, piece) for piece in pieces[first:]]))
        pieces[first:] = [_put(state, left)] if left.n else []
    state.replace(key, pieces)


def _left(state: State, piece: Piece) -> Frame:
    state.touched += piece.rows
    rows = state.frame(piece)
    return state.own(piece, rows.slice(rows.n - piece.rows, rows.n))


def _put(state: State, rows: Frame) -> Piece:
    ordered = rows.take(in_order(rows[col.NUMBER]))
    q = ordered[col.NUMBER]
    return state.put({"": ordered}, rows.n, (MAX, int(q[0]), int(q[-1])))
