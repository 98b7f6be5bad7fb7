"""Traits: the properties that all kinds of steps define.

Code that walks the nodes of a plan (the stage, pending rows, the search for starved patterns) uses
traits instead of kinds. A step that differs from ``Traits`` overrides it in its class. Code that
depends on the kind uses exhaustive matches, so a new kind is never skipped silently.
"""

from __future__ import annotations

from typing import ClassVar

from levada.core.event_time import WindowKind

Sides = tuple[tuple[int, ...], ...]
Places = tuple[int, ...] | None


class Traits:
    """The properties of most steps."""

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
        """Whether the step may have work without rows: reports, ends, replacements."""
        return False

    @property
    def needs_reports(self) -> bool:
        """Whether the step needs lists of reports, which follow from the times of all elements."""
        return False

    @property
    def clock_of_ends(self) -> int:
        """The window at whose closes the step reports ended rows; -1: none."""
        return -1

    @property
    def reports_of(self) -> tuple[WindowKind, ...]:
        """The kinds of the windows at whose reports the step has output; (): it follows
        its rows.
        """
        return ()

    def row_windows(self, i: int, width: int) -> Places:
        """Returns the positions of the ``width`` windows of input ``i`` in the node's window table.

        None: the table is not that of these rows.
        """
        return None

    def starving(self, inputs: int) -> Sides:
        """Returns sets of inputs: if all inputs of a set have no rows, the step has none."""
        return tuple((i,) for i in range(inputs))

    def makes(self, slots: int) -> range:
        """Returns the ``slots`` whose terms the step creates, or whose source rows are gone.

        Code that knows the texts of these terms must keep them.
        """
        return range(0)


class OwnWindows(Traits):
    """Steps whose window table is that of their rows."""

    __slots__ = ()

    def row_windows(self, i: int, width: int) -> Places:
        """Returns all windows, in order; static rows have none."""
        return tuple(range(width)) or None


class Listing(Traits):
    """Steps with a flag for enumerated reports."""

    __slots__ = ()
    enumerated: bool

    @property
    def needs_reports(self) -> bool:
        """Whether its reports are enumerated."""
        return self.enumerated


class Reporting(Traits):
    """Steps with output at reports; ``kinds`` are those of its windows."""

    __slots__ = ()
    kinds: tuple[WindowKind, ...]

    @property
    def reports_of(self) -> tuple[WindowKind, ...]:
        """The kinds of its windows."""
        return self.kinds


class Grouping(Traits):
    """Groups: without keys there is always a row."""

    __slots__ = ()
    keys: tuple[int, ...]

    def starving(self, inputs: int) -> Sides:
        """Returns the input of rows if there are keys."""
        return tuple((i,) for i in range(inputs)) if self.keys else ()


class Scheduled(Reporting):
    """Steps of rows with event times at the reports of a schedule.

    ``rows``: the windows of the schedule that the rows carry (None: report rows).
    """

    __slots__ = ()
    rows: tuple[int, ...] | None
    due: ClassVar[bool] = True

    def row_windows(self, i: int, width: int) -> Places:
        """Returns ``rows``."""
        return self.rows


class Ending(Scheduled):
    """Steps that also report ended rows."""

    __slots__ = ()

    @property
    def clock_of_ends(self) -> int:
        """The clock, if reports are periodic."""
        clock = WindowKind.CLOCK
        return self.kinds.index(clock) if clock in self.kinds else -1


class LeftKept(Traits):
    """Steps in which rows of the first input need no partner."""

    __slots__ = ()

    def starving(self, inputs: int) -> Sides:
        """Returns the first input alone."""
        return ((0,),)


class Lifting(Traits):
    """Steps that turn reported rows into rows of a window or of static data."""

    __slots__ = ()

    def makes(self, slots: int) -> range:
        """Returns all slots: their source rows are gone."""
        return range(slots)
