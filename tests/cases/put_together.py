"""How often windows are put together from slices in state, counted while an engine runs."""

from __future__ import annotations

from contextlib import ExitStack
from unittest.mock import patch

from levada.model import columns as col
from levada.model.frame import Frame
from levada.operators.group.sliced.kept import Kept, Sums


class Put:
    """Counts the reports that are put together from slices in state, of how many sets, those of
    cells, and the slices that become one.
    """

    def __init__(self, stack: ExitStack) -> None:
        self.reports = self.sets = self.joined = self.cells = 0
        self._sums, self._coarser = Kept.sums, Kept._coarser
        stack.enter_context(patch.object(Kept, "sums", lambda *given: self.sums(*given)))
        stack.enter_context(patch.object(Kept, "_coarser", lambda *given: self.coarser(*given)))

    def sums(self, kept: Kept, rows: Frame) -> Sums | None:
        """``Kept.sums``."""
        found = self._sums(kept, rows)
        self.reports += 0 if found is None else len(found.sets)
        self.sets += 0 if found is None else len(found.offsets) - 1
        self.cells += 0 if found is None or col.VALUE not in rows else len(found.sets)
        return found

    def coarser(self, kept: Kept, rows: Frame) -> Frame:
        """``Kept._coarser``."""
        found = self._coarser(kept, rows)
        alive = rows.where(rows[col.END] > kept._of_producers(kept.calendar.made)[rows["op"]])
        self.joined += alive.n - found.n
        return found
