"""Shapes: operators by slots. Queries that differ only in constants, windows, streams share them.

A ``Shape`` is a value: its kind (``Step``), its input shapes with the edges to them, its layout.
Each shape becomes one node of the topology with a table of members; what differs between members is
a ``Member``'s parameters. Slots in steps are numbers; in expressions a variable is named by its
slot ("0", "1", ...), a constant is ``Param(i)``. What is asked of all kinds of steps alike they say
themselves (``traits``).
"""

from __future__ import annotations

from typing import ClassVar

from levada.core.event_time import WindowKind
from levada.core.expressions import AggregateFunction, Expression
from levada.core.frozen import frozen
from levada.core.query_model import Output
from levada.plan.execution.join_kinds import Shown
from levada.plan.execution.joins import AdaptiveJoin as AdaptiveJoin
from levada.plan.execution.joins import Arrange as Arrange
from levada.plan.execution.joins import ArrangeDistinct as ArrangeDistinct
from levada.plan.execution.joins import ArrangedJoin as ArrangedJoin
from levada.plan.execution.joins import ArrangedReportJoin as ArrangedReportJoin
from levada.plan.execution.joins import ArrangeStream as ArrangeStream
from levada.plan.execution.joins import ByWindow as ByWindow
from levada.plan.execution.joins import Comparison as Comparison
from levada.plan.execution.joins import Instants as Instants
from levada.plan.execution.joins import Join as Join
from levada.plan.execution.joins import Key as Key
from levada.plan.execution.joins import LinkedJoin as LinkedJoin
from levada.plan.execution.joins import MultiwayJoin as MultiwayJoin
from levada.plan.execution.joins import Narrow as Narrow
from levada.plan.execution.joins import Numbered as Numbered
from levada.plan.execution.joins import Pick as Pick
from levada.plan.execution.joins import RangedChanges as RangedChanges
from levada.plan.execution.joins import Recent as Recent
from levada.plan.execution.joins import RelaxedStatic as RelaxedStatic
from levada.plan.execution.joins import RelaxedStream as RelaxedStream
from levada.plan.execution.joins import ReportJoin as ReportJoin
from levada.plan.execution.joins import StreamJoin as StreamJoin
from levada.plan.execution.leaves import Constant as Constant
from levada.plan.execution.leaves import Entailed as Entailed
from levada.plan.execution.leaves import EntailmentAlternative as EntailmentAlternative
from levada.plan.execution.leaves import Form as Form
from levada.plan.execution.leaves import Leaf as Leaf
from levada.plan.execution.leaves import Match as Match
from levada.plan.execution.leaves import Scan as Scan
from levada.plan.execution.leaves import Star as Star
from levada.plan.execution.step_traits import (
    Ending,
    Grouping,
    LeftKept,
    Lifting,
    Listing,
    OwnWindows,
    Reporting,
    Scheduled,
    Sides,
    Traits,
)


@frozen
class CountWindow(OwnWindows):
    """A count window over all rows of a stream, of each value of the key slots."""

    keys: tuple[int, ...]
    bag: bool


@frozen
class Session(Listing, OwnWindows):
    """Rows of a session window, a set of triples or a bag; ends follow from all elements' times."""

    bag: bool
    ended: bool
    enumerated: bool = True
    due: ClassVar[bool] = True
    ends_by_time: ClassVar[bool] = False


@frozen
class SubqueryWindow(Lifting):
    """Report rows as rows of one window."""

    weighted: bool


@frozen
class StaticSubplan(Lifting):
    """Timeless rows as rows of static data; ``weighted``: of data that may be replaced."""

    weighted: bool
    due: ClassVar[bool] = True


@frozen
class Select(Traits):
    """As ``Match``, over slots 0, 1, 2 = s, p, o, and those that there are beside these."""

    positions: tuple[int, ...]
    kept: tuple[int, ...]


@frozen
class Filter(Traits):
    """Condition over slots and parameters. ``kept``, ``draw`` and ``tuples``: as in ``Extend``."""

    condition: Expression
    kept: tuple[int, ...]
    draw: tuple[tuple[int, ...], int] | None = None
    tuples: bool = False
    rowwise: ClassVar[bool] = True


@frozen
class Extend(Traits):
    """Appends the expression's value to the ``kept`` input slots (not at all if nobody reads it).

    ``draw``: the slots and the place from which RAND and the like derive, if the expression has
    any. ``tuples``: numbers are those of tuple streams: their identity, integers of 64 bits.
    """

    expression: Expression
    kept: tuple[int, ...]
    draw: tuple[tuple[int, ...], int] | None = None
    tuples: bool = False
    rowwise: ClassVar[bool] = True

    def makes(self, slots: int) -> range:
        """The computed one, if anybody reads it."""
        return range(len(self.kept), slots)


@frozen
class Union(Traits):
    """Both inputs come with the output's layout."""

    rowwise: ClassVar[bool] = True

    def starving(self, inputs: int) -> Sides:
        """All of them together."""
        return (tuple(range(inputs)),)


@frozen
class Occur(OwnWindows):
    """Sets ``prev``. ``wide``: for the windows of all GROUP BYs that read the rows. ``relaxed``:
    picks share it, as they do a join; ``windows`` and ``places`` are as there.
    """

    windows: ClassVar[tuple[tuple[int], ...]] = ((0,),)
    places: ClassVar[tuple[int, ...]] = (0,)
    wide: bool = False
    relaxed: bool = False


@frozen
class Hold(OwnWindows):
    """Passes rows on."""


@frozen
class Report(Scheduled, Listing):
    """Rows at their reports. ``rows`` are the schedule's windows that the rows carry. ``instant``:
    each at its start alone.
    """

    kinds: tuple[WindowKind, ...]
    rows: tuple[int, ...]
    enumerated: bool
    instant: bool = False


@frozen
class Aggregate:
    """Function, argument slot (-1: the row itself), DISTINCT, the separator of GROUP_CONCAT."""

    function: AggregateFunction
    slot: int
    distinct: bool
    separator: str | None = None


@frozen
class Panes(Scheduled, Listing, Grouping):
    """Groups of interval rows by key slots; ``tuples`` as in ``Extend``."""

    kinds: tuple[WindowKind, ...]
    rows: tuple[int, ...]
    enumerated: bool
    keys: tuple[int, ...]
    aggregates: tuple[Aggregate, ...]
    kept: tuple[int, ...]
    tuples: bool = False


@frozen
class RGroup(Reporting, Listing, Grouping):
    """Groups of report rows; ``kinds`` as in ``Report`` (an ungrouped aggregate has a row at every
    report). ``apart``: the values that DISTINCT aggregates see once come from one task each.
    """

    kinds: tuple[WindowKind, ...]
    enumerated: bool
    keys: tuple[int, ...]
    aggregates: tuple[Aggregate, ...]
    kept: tuple[int, ...]
    tuples: bool = False
    apart: bool = False
    due: ClassVar[bool] = True


@frozen
class RExcept(LeftKept):
    """Both inputs come with the output's slots."""


@frozen
class Deltas(Ending, Listing):
    """Beginnings and ends of rows; if ``enumerated`` those of replaced data are at reports, too."""

    kinds: tuple[WindowKind, ...]
    rows: tuple[int, ...]
    enumerated: bool
    by_changes: ClassVar[bool] = True


@frozen
class Running(Reporting, Listing, Grouping):
    """Groups by key slots, from changes. Without keys a second input says when the group is there,
    or, if reports are ``enumerated``, the windows, of these ``kinds``.
    """

    keys: tuple[int, ...]
    aggregates: tuple[Aggregate, ...]
    kept: tuple[int, ...]
    kinds: tuple[WindowKind, ...]
    enumerated: bool
    tuples: bool = True
    by_changes: ClassVar[bool] = True

    @property
    def due(self) -> bool:
        """If windows may begin to hold something without a row."""
        return self.enumerated


@frozen
class Multiplicity(Traits):
    """Counts of equal rows, from changes."""

    shown: Shown


@frozen
class Net(Traits):
    """Equal changes of a report netted."""

    output: Output


@frozen
class Snapshot(Reporting, Listing):
    """A result at its reports, from its changes and those of its windows.

    ``kinds`` are those of the level's windows and of the clock; the member's windows beyond these
    only hold it back. ``clock``: the last of them is one.
    """

    output: Output
    kinds: tuple[WindowKind, ...]
    clock: bool
    nonempty: bool
    enumerated: bool
    show_empty: bool
    due: ClassVar[bool] = True


@frozen
class Standing(Reporting, Listing):
    """A result at the enumerated reports of these windows, from its changes."""

    kinds: tuple[WindowKind, ...]
    enumerated: bool = True
    due: ClassVar[bool] = True


@frozen
class RDistinct(Traits):
    """Equal rows of a report once."""


@frozen
class ROrder(Traits):
    """Sort keys over slots (expression, descending), offset, limit; ties by text."""

    keys: tuple[tuple[Expression, bool], ...]
    offset: int
    limit: int | None
    in_order: bool


@frozen
class Closure(Traits):
    """Pairs that paths connect, as slots 0 and 1 of the first input; ``kept`` ones are output.

    ``given``: whether start and end are constants of the member. ``seed``: the end whose values the
    last input has.
    """

    many: bool
    given: tuple[bool, bool]
    kept: tuple[int, ...]
    seed: int | None = None

    def starving(self, inputs: int) -> Sides:
        """None where a path of no step connects what no step does."""
        zero = inputs > 1 + (self.seed is not None)
        return () if zero else tuple((i,) for i in range(inputs))


@frozen
class Changes(Ending, Listing):
    """Differences between reports. ``rows`` is None for report rows; ``certain``: nothing cancels,
    nothing is kept.
    """

    output: Output
    kinds: tuple[WindowKind, ...]
    rows: tuple[int, ...] | None
    enumerated: bool
    certain: bool


@frozen
class Emit(Reporting, Listing):
    """Results; the text facets say what is shown. ``enumerated``: empty reports are shown, too;
    ``kinds`` are then the windows'.
    """

    changes: bool
    enumerated: bool
    kinds: tuple[WindowKind, ...] = ()

    @property
    def due(self) -> bool:
        """If it shows empty reports."""
        return self.enumerated


Step = (
    Leaf
    | CountWindow
    | Numbered
    | Instants
    | Narrow
    | Recent
    | Session
    | Select
    | SubqueryWindow
    | StaticSubplan
    | Filter
    | Pick
    | ByWindow
    | Extend
    | Union
    | Occur
    | Hold
    | Arrange
    | ArrangeDistinct
    | ArrangeStream
    | RelaxedStatic
    | RelaxedStream
    | Join
    | ArrangedJoin
    | StreamJoin
    | MultiwayJoin
    | LinkedJoin
    | AdaptiveJoin
    | Report
    | Panes
    | ReportJoin
    | ArrangedReportJoin
    | RGroup
    | RDistinct
    | RExcept
    | ROrder
    | Closure
    | Changes
    | RangedChanges
    | Deltas
    | Running
    | Multiplicity
    | Net
    | Snapshot
    | Standing
    | Emit
)
