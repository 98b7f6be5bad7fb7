"""Rows that wait, in the order of a column, until their value is due: an instant that a watermark
reaches (``runtime/task/stage_task``), or a number that a stream reaches
(``operators/windowed/count_window``).

The rows of an epoch are one more part, in order. Due rows are cut off a part in place: the part
stays unchanged, its ``low`` is the value from which its rows still wait, and it is dropped when
none does. Parts become one as ``due_together`` says, so there are about log2 n of them, and a row
is rewritten about as often, however long it waits; parts of ``MOST_ROWS`` are not merged. So the
cost of an epoch is its new rows and its due rows, and a look into each part.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import msgspec

from levada.core.event_time import MAX
from levada.core.frame import Frame, concat
from levada.core.size_thresholds import register
from levada.kernels.keyed.radix_sort import in_order
from levada.operators.state.state_parts import State, StatePart, due_together

MOST_ROWS = register(f"{__name__}.MOST_ROWS", 1 << 20)
"""A piece with so many rows is put together with no other."""


def order_by(rows: Frame, column: str) -> Frame:
    """Rows in the order of a column."""
    values = rows[column]
    return rows if (values[1:] >= values[:-1]).all() else rows.take(in_order(values))


class OrderedBuffer(NamedTuple):
    """The rows that wait under a key of the state, in the order of a column of integers; ``living``
    drops rows of removed members.
    """

    state: State
    key: str
    column: str
    living: Callable[[Frame], Frame] = lambda rows: rows

    def take_below(self, below: int) -> list[Frame]:
        """Removes and returns the rows whose value is less than ``below``."""
        up, remaining = list[Frame](), list[StatePart]()
        for piece in self.state.pieces(self.key):
            if piece.low >= below:
                remaining.append(piece)
                continue
            rows = self.state.frame(piece)
            first, last = rows[self.column].searchsorted((piece.low, below)).tolist()
            self.state.touched += last - first
            if last < rows.n:
                remaining.append(msgspec.structs.replace(piece, rows=rows.n - last, low=below))
            up.append(self.state.rows_of_partition(piece, rows.slice(first, last)))
        self.state.replace(self.key, remaining)
        return [rows for rows in up if rows.n]

    def add(self, rows: Frame) -> None:
        """Adds the rows of an epoch."""
        if not rows.n:
            return
        pieces = [*self.state.pieces(self.key), self._put(rows)]
        large = [i + 1 for i, piece in enumerate(pieces) if piece.rows >= MOST_ROWS]
        first = large[-1] if large else 0
        first += due_together(pieces[first:])
        if first < len(pieces):
            left = self.living(concat([self._remaining_rows(piece) for piece in pieces[first:]]))
            pieces[first:] = [self._put(left)] if left.n else []
        self.state.replace(self.key, pieces)

    def _remaining_rows(self, piece: StatePart) -> Frame:
        """The rows of a piece that still wait."""
        self.state.touched += piece.rows
        rows = self.state.frame(piece)
        return self.state.rows_of_partition(piece, rows.slice(rows.n - piece.rows, rows.n))

    def _put(self, rows: Frame) -> StatePart:
        rows = order_by(rows, self.column)
        values = rows[self.column]
        return self.state.put({"": rows}, rows.n, (MAX, int(values[0]), int(values[-1])))
