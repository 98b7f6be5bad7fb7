"""What a step says of itself: whatever is asked of all kinds of steps alike.

Who walks the nodes of a plan (the stage, pending rows, the search for starved patterns) asks these
and names no kind. A step that differs from ``Traits`` says so in its class; a new one is never
passed over in silence where its kind alone matters, since those matches are exhaustive.
"""

from __future__ import annotations

from typing import ClassVar

from levada.core.event_time import WindowKind

Sides = tuple[tuple[int, ...], ...]
Places = tuple[int, ...] | None


class Traits:
    """What holds of most steps."""

    __slots__ = ()

    rowwise: ClassVar[bool] = False
    """Whether it needs nothing but each row, so that it is evaluated where rows are read."""

    ends_by_time: ClassVar[bool] = True
    """Whether it follows from the times of a row when that has left its windows."""

    by_changes: ClassVar[bool] = False
    """Whether what it says at reports are changes: as many as there are rows, not as rows count at
    reports.
    """

    @property
    def due(self) -> bool:
        """Whether it may have something to do without rows: reports, ends, replacements."""
        return False

    @property
    def needs_reports(self) -> bool:
        """Whether it needs lists of reports, which follow from the times of all elements."""
        return False

    @property
    def clock_of_ends(self) -> int:
        """The window at whose closes it says what has ended since the last one; -1: none."""
        return -1

    @property
    def reports_of(self) -> tuple[WindowKind, ...]:
        """The kinds of the windows at whose reports it says something; (): it follows its rows."""
        return ()

    def row_windows(self, i: int, width: int) -> Places:
        """Where the ``width`` windows that rows of input ``i`` have times of stand in the node's
        table of windows; None: that is not of these rows.
        """
        return None

    def starving(self, inputs: int) -> Sides:
        """Sets of inputs: where all of one set stay without rows, so does the step."""
        return tuple((i,) for i in range(inputs))

    def makes(self, slots: int) -> range:
        """Which of its ``slots`` have terms that it makes, or that came with rows that are gone:
        who knows their texts must keep them.
        """
        return range(0)


class OwnWindows(Traits):
    """The table of windows is that of the rows."""

    __slots__ = ()

    def row_windows(self, i: int, width: int) -> Places:
        """All, in order; static rows have none."""
        return tuple(range(width)) or None


class Listing(Traits):
    """A step that is told whether its reports are enumerated."""

    __slots__ = ()
    enumerated: bool

    @property
    def needs_reports(self) -> bool:
        """If they are."""
        return self.enumerated


class Reporting(Traits):
    """A step that says something at reports; ``kinds`` are those of its windows."""

    __slots__ = ()
    kinds: tuple[WindowKind, ...]

    @property
    def reports_of(self) -> tuple[WindowKind, ...]:
        """These."""
        return self.kinds


class Grouping(Traits):
    """Groups: without keys there is a row in any case."""

    __slots__ = ()
    keys: tuple[int, ...]

    def starving(self, inputs: int) -> Sides:
        """The rows, if there are keys."""
        return tuple((i,) for i in range(inputs)) if self.keys else ()


class Scheduled(Reporting):
    """Rows with event times at the reports of a schedule; ``rows`` are those of its windows that
    they carry (None: report rows).
    """

    __slots__ = ()
    rows: tuple[int, ...] | None
    due: ClassVar[bool] = True

    def row_windows(self, i: int, width: int) -> Places:
        """As ``rows`` says."""
        return self.rows


class Ending(Scheduled):
    """Says also what has ended."""

    __slots__ = ()

    @property
    def clock_of_ends(self) -> int:
        """The clock, if reports are periodic."""
        clock = WindowKind.CLOCK
        return self.kinds.index(clock) if clock in self.kinds else -1


class LeftKept(Traits):
    """Rows of the first input need no partner."""

    __slots__ = ()

    def starving(self, inputs: int) -> Sides:
        """The first input alone."""
        return ((0,),)


class Lifting(Traits):
    """What was reported becomes rows of a window or of static data."""

    __slots__ = ()

    def makes(self, slots: int) -> range:
        """All: the rows that they came with are gone."""
        return range(slots)
