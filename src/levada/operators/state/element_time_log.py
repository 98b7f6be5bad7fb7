"""The log of elements' instants from epoch to epoch, as appended parts
(``operators.windowing.element_times`` describes their use).

The instants of an epoch that still matter are one more part. Parts become one as ``due_together``
says, and small ones at once; a part of which less than half matters is merged with the new rows. So
the bytes of an epoch follow from its new rows: a time is rewritten about log2 n times, and the log
is at most some times as large as the times that matter. Extra times do not change any result.

Where triples are counted, a dropped time gives its number to the next remaining time, in whichever
part that is: as a row of its own, since rows of one time add up.

Cost: a look at the whole log, and a write of the new rows.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from levada.core.event_time import MAX, Times, distinct, in_sorted
from levada.core.frame import Frame
from levada.core.size_thresholds import register
from levada.operators.state.state_parts import State, StatePart, due_together
from levada.operators.windowing.element_times import (
    EventTimes,
    align_frames,
    as_sums,
    fresh_of,
    pass_on_counts,
    times_below,
)

MERGED_PART_ROWS = register(f"{__name__}.MERGED_PART_ROWS", 64)
"""Parts of up to this many rows are merged at once."""


class KeptTimes:
    """The times of one stream while a stage runs: the log under ``key``, and the arrived times.
    ``w`` is the stream's watermark.
    """

    def __init__(
        self, state: State, key: str, arrived: Sequence[Frame], w: int, *, with_counts: bool
    ) -> None:
        self._state, self._key, self._w, self._with_counts = state, key, w, with_counts
        previous = [state.whole(piece) for piece in state.pieces(key)]
        self._new = fresh_of(previous, arrived, with_counts=with_counts)
        self.seen: EventTimes = times_below([*previous, self._new], w, with_counts=with_counts)

    def keep(self, matters: npt.NDArray[np.bool_]) -> None:
        """Keeps the waiting times, and of the times below the watermark those that matter, and the
        last one.
        """
        matters = matters.copy()
        matters[-1:] = True
        needed = self.seen.ts[matters]
        pieces: list[StatePart] = []
        loose = [self._new]
        for piece in self._state.pieces(self._key):
            rows = self._state.frame(piece)
            if 2 * np.count_nonzero(self._is_kept(needed, rows["ts"])) >= rows.n:
                pieces.append(piece)
            else:
                loose.append(rows)
        pieces = self._append(pieces, loose, needed)
        if (first := _first_to_merge(pieces)) < len(pieces) - 1:
            frames = [self._state.frame(piece) for piece in pieces[first:]]
            pieces = self._append(pieces[:first], frames, needed)
        self._state.replace(self._key, pieces)

    def _append(
        self, pieces: list[StatePart], loose: Sequence[Frame], needed: Times
    ) -> list[StatePart]:
        """Writes the remaining loose rows as one more part."""
        rows = align_frames(loose, with_counts=self._with_counts)
        stays = self._is_kept(needed, rows["ts"])
        rows, dropped = rows.where(stays), rows.where(~stays)
        if dropped.n and self._with_counts:
            there = [self._state.frame(piece)["ts"] for piece in pieces]
            left = distinct(np.concatenate([rows["ts"], *there]))
            rows = align_frames([rows, pass_on_counts(dropped, left)], with_counts=True)
        rows = as_sums(rows, self._w)
        return [*pieces, self._state.put({"": rows}, rows.n, (MAX, 0, 0))] if rows.n else pieces

    def _is_kept(self, needed: Times, ts: Times) -> npt.NDArray[np.bool_]:
        stays: npt.NDArray[np.bool_] = (ts >= self._w) | in_sorted(needed, ts)
        return stays


def _first_to_merge(pieces: Sequence[StatePart]) -> int:
    """From which piece on they are to become one."""
    younger = np.cumsum([piece.rows for piece in reversed(pieces)])
    small = int(np.searchsorted(younger, MERGED_PART_ROWS, side="right"))
    return min(due_together(pieces), len(pieces) - small)
