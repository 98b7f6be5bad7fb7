"""How often windows are put together from slices in state, counted while an engine runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack
from unittest.mock import patch

from levada.core import column_names as col
from levada.core.frame import Frame
from levada.operators.aggregation.partitioned_aggregation import Part
from levada.operators.aggregation.slicing.slice_state import SliceState, Sums
from levada.operators.state.key_ranges import Range
from levada.operators.state.state_parts import State, StatePart


class Put:
    """Counts the reports that are put together from slices in state, of how many sets, those of
    cells, and the slices that become one.
    """

    def __init__(self, stack: ExitStack) -> None:
        self.reports = self.sets = self.joined = self.cells = 0
        self._sums, self._coarser = SliceState._sums, SliceState._coarsen
        stack.enter_context(patch.object(SliceState, "_sums", lambda *given: self.sums(*given)))
        stack.enter_context(
            patch.object(SliceState, "_coarsen", lambda *given: self.coarser(*given))
        )

    def sums(self, kept: SliceState, rows: Frame, before: list[Frame]) -> Sums | None:
        """``SliceState._sums``."""
        found = self._sums(kept, rows, before)
        self.reports += 0 if found is None else len(found.sets)
        self.sets += 0 if found is None else len(found.offsets) - 1
        self.cells += 0 if found is None or col.VALUE not in rows else len(found.sets)
        return found

    def coarser(self, kept: SliceState, rows: Frame) -> Frame:
        """``SliceState._coarsen``."""
        found = self._coarser(kept, rows)
        alive = rows.where(rows[col.END] > kept._of_producers(kept.calendar.last_made)[rows["op"]])
        self.joined += alive.n - found.n
        return found


class Cut:
    """How deep ranges of groups were at most, and how many pieces were made of such a range."""

    def __init__(self, stack: ExitStack) -> None:
        self.deepest = self.pieces = 0
        self._put, self._in_ranges = State.put, SliceState._in_ranges
        stack.enter_context(
            patch.object(State, "put", lambda *given, **facts: self.put(*given, **facts))
        )
        stack.enter_context(
            patch.object(SliceState, "_in_ranges", lambda *given: self.in_ranges(*given))
        )

    def in_ranges(
        self, kept: SliceState, parts: Sequence[Part]
    ) -> Iterator[tuple[Range, list[Frame]]]:
        """``SliceState._in_ranges``."""
        for some, rows in self._in_ranges(kept, parts):
            self.deepest = max(self.deepest, some.depth)
            yield some, rows

    def put(
        self,
        state: State,
        frames: Mapping[str, Frame],
        rows: int,
        span: tuple[int, int, int],
        **facts: int,
    ) -> StatePart:
        """``State.put``."""
        piece = self._put(state, frames, rows, span, **facts)
        self.pieces += bool(piece.depth and not piece.bits)
        return piece
