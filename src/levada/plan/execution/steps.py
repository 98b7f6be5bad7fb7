"""The steps of operators by slots, shared by queries that differ only in constants, windows and
streams.

A ``Shape`` is a value: its kind (``Step``), its input shapes with the edges to them, its layout.
Each shape becomes one node of the topology with a table of members. A ``Member`` has the parameters
in which members differ. Slots in steps are numbers. In expressions a variable is named by its slot
("0", "1", ...), and a constant is ``Param(i)``. ``step_traits`` has the properties of all kinds of
steps.
"""

from __future__ import annotations

from typing import ClassVar

from levada.core.event_time import WindowKind
from levada.core.expressions import AggregateFunction, Expression
from levada.core.frozen import frozen
from levada.core.query_model import Output
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
from levada.plan.execution.joins import Shown
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
class UserOperator(OwnWindows):
    """The rows of the user's operator by its IRI, with state by key slots.

    ``reads``: the taken columns and their slots. ``out``: for each slot the column of the operator,
    or the slot of the input that passes.
    """

    iri: str
    keys: tuple[int, ...]
    reads: tuple[tuple[str, int], ...]
    out: tuple[str | int, ...]
    ends_by_time: ClassVar[bool] = False

    def makes(self, slots: int) -> range:
        """Returns all slots, since most are computed."""
        return range(slots)


@frozen
class Session(Listing, OwnWindows):
    """Rows of a session window, a set of triples or a bag; ends follow from the times of all
    elements.
    """

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
    """Timeless rows as rows of static data; ``weighted``: the data may be replaced."""

    weighted: bool
    due: ClassVar[bool] = True


@frozen
class Select(Traits):
    """A ``Match`` over slots 0, 1, 2 = s, p, o, and the slots beside these."""

    positions: tuple[int, ...]
    kept: tuple[int, ...]


@frozen
class Filter(Traits):
    """A condition over slots and parameters. ``kept``, ``draw`` and ``tuples``: as in
    ``Extend``.
    """

    condition: Expression
    kept: tuple[int, ...]
    draw: tuple[tuple[int, ...], int] | None = None
    tuples: bool = False
    rowwise: ClassVar[bool] = True


@frozen
class Extend(Traits):
    """Appends the expression's value to the ``kept`` input slots, unless it is not read.

    ``draw``: the slots and the place from which RAND and similar functions derive, if the
    expression has any. ``tuples``: numbers are those of tuple streams, with 64-bit integers as
    identities.
    """

    expression: Expression
    kept: tuple[int, ...]
    draw: tuple[tuple[int, ...], int] | None = None
    tuples: bool = False
    rowwise: ClassVar[bool] = True

    def makes(self, slots: int) -> range:
        """Returns the computed slot if it is read."""
        return range(len(self.kept), slots)


@frozen
class Union(Traits):
    """All rows of both inputs, which have the layout of the output."""

    rowwise: ClassVar[bool] = True

    def starving(self, inputs: int) -> Sides:
        """Returns all inputs together."""
        return (tuple(range(inputs)),)


@frozen
class Occur(OwnWindows):
    """Sets ``prev``. ``wide``: for the windows of all GROUP BYs that read the rows.

    ``relaxed``: picks share it like a join; ``windows`` is as there.
    """

    windows: ClassVar[tuple[tuple[int], ...]] = ((0,),)
    wide: bool = False
    relaxed: bool = False


@frozen
class Hold(OwnWindows):
    """Passes rows on."""


@frozen
class Report(Scheduled, Listing):
    """Rows at their reports. ``rows``: the schedule's windows that the rows carry.

    ``instant``: each row is reported at its start alone.
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
    """Groups of report rows; ``kinds`` as in ``Report`` (an aggregate without keys has a row at
    every report).

    ``apart``: each value that DISTINCT aggregates count once comes from one task.
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
    """The difference of both inputs, which have the output's slots."""


@frozen
class Deltas(Ending, Listing):
    """Beginnings and ends of rows; if ``enumerated``, those of replaced data are at
    reports, too.
    """

    kinds: tuple[WindowKind, ...]
    rows: tuple[int, ...]
    enumerated: bool
    by_changes: ClassVar[bool] = True


@frozen
class Running(Reporting, Listing, Grouping):
    """Groups by key slots, from changes.

    Without keys, a second input decides when the group exists, or, if reports are ``enumerated``,
    the windows of these ``kinds``.
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
        """Whether windows may become non-empty without a row."""
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

    ``kinds``: the kinds of the level's windows and of the clock; other windows of the member only
    delay it. ``clock``: the last of them is a clock.
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
class RNumber(Traits):
    """The slot of the number, its function, the slots of the partition, sort keys over slots."""

    slot: int
    function: str
    partition: tuple[int, ...]
    keys: tuple[tuple[Expression, bool], ...]


@frozen
class Closure(Traits):
    """Pairs that paths connect, as slots 0 and 1 of the first input; ``kept`` slots are output.

    ``constant_ends``: whether start and end are constants of the member. ``seed``: the end whose
    values the last input has.
    """

    many: bool
    constant_ends: tuple[bool, bool]
    kept: tuple[int, ...]
    seed: int | None = None

    def starving(self, inputs: int) -> Sides:
        """Returns no input if a path of no step connects nodes that no step connects."""
        zero = inputs > 1 + (self.seed is not None)
        return () if zero else tuple((i,) for i in range(inputs))


@frozen
class Changes(Ending, Listing):
    """Differences between reports. ``rows`` is None for report rows.

    ``certain``: no differences cancel, and no state is kept.
    """

    output: Output
    kinds: tuple[WindowKind, ...]
    rows: tuple[int, ...] | None
    enumerated: bool
    certain: bool


@frozen
class Emit(Reporting, Listing):
    """Results; the text facets are the shown columns.

    ``enumerated``: empty reports are shown, too; ``kinds`` are then the kinds of windows.
    """

    changes: bool
    enumerated: bool
    kinds: tuple[WindowKind, ...] = ()

    @property
    def due(self) -> bool:
        """Whether empty reports are shown."""
        return self.enumerated


Step = (
    Leaf
    | CountWindow
    | UserOperator
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
    | RNumber
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
