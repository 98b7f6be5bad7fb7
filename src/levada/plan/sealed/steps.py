"""Shapes: operators by slots. Queries that differ only in constants, windows and streams have equal
shapes.

A ``Shape`` is a value: its kind (``Step``), its input shapes with the edges to them, its layout.
Each shape becomes one node of the topology with a table of members; what differs between members is
a ``Member``'s parameters. Slots in steps are numbers; in expressions a variable is named by its
slot ("0", "1", ...), a constant is ``Param(i)``.
"""

from __future__ import annotations

from dataclasses import dataclass

from levada.model.expression import AggregateFunction, Expression
from levada.model.query import Output
from levada.model.time import WindowKind
from levada.plan.sealed.kinds import Semi, Shown
from levada.plan.sealed.leaves import Constant as Constant
from levada.plan.sealed.leaves import Entailed as Entailed
from levada.plan.sealed.leaves import Form as Form
from levada.plan.sealed.leaves import Match as Match
from levada.plan.sealed.leaves import Scan as Scan
from levada.plan.sealed.leaves import Star as Star
from levada.plan.sealed.leaves import Way as Way


@dataclass(frozen=True, slots=True)
class Last:
    """A count window over all rows of a stream."""

    bag: bool


@dataclass(frozen=True, slots=True)
class Session:
    """Rows of a session window, a set of triples or a bag; its ends follow from the times of all
    elements.
    """

    bag: bool
    ended: bool
    listed: bool = True


@dataclass(frozen=True, slots=True)
class LastBy:
    """A count window of each value of the key slots."""

    keys: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Lift:
    """Report rows as rows of one window."""

    weighted: bool


@dataclass(frozen=True, slots=True)
class Once:
    """Timeless rows as rows of static data; ``weighted``: of data that may be replaced."""

    weighted: bool


@dataclass(frozen=True, slots=True)
class Select:
    """As ``Match``, over slots 0, 1, 2 = s, p, o, and those that there are beside these."""

    positions: tuple[int, ...]
    kept: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Filter:
    """Condition over slots and parameters; ``kept`` input slots form the output. ``draw``: as in
    ``Extend``.
    """

    condition: Expression
    kept: tuple[int, ...]
    draw: tuple[tuple[int, ...], int] | None = None


@dataclass(frozen=True, slots=True)
class Extend:
    """Appends the value of the expression after the ``kept`` input slots (not at all if nobody
    reads it).

    ``draw``: the slots and the place from which RAND and the like derive, if the expression has
    any. ``tuples``: numbers have the identity that those of tuple streams have.
    """

    expression: Expression
    kept: tuple[int, ...]
    draw: tuple[tuple[int, ...], int] | None = None
    tuples: bool = False


@dataclass(frozen=True, slots=True)
class Union:
    """Both inputs come with the output's layout."""


@dataclass(frozen=True, slots=True)
class Occur:
    """Sets ``prev``."""


@dataclass(frozen=True, slots=True)
class Hold:
    """Passes rows on."""


@dataclass(frozen=True, slots=True)
class Join:
    """Key slots on each side; where each output slot comes from (side, slot); shared slots that may
    be unbound.

    ``negative``: pairs have the weight -1 of what they would have.
    """

    left: tuple[int, ...]
    right: tuple[int, ...]
    out: tuple[tuple[int, int], ...]
    fills: tuple[tuple[int, int], ...]
    windows: tuple[
        tuple[int, int], ...
    ]  # per output window: its index left and right, -1 if it is not there
    raw: tuple[bool, bool]
    negative: bool = False


@dataclass(frozen=True, slots=True)
class Report:
    """Rows at their reports. ``rows`` are the schedule's windows that the rows carry. ``instant``:
    each at its start alone.
    """

    kinds: tuple[WindowKind, ...]
    rows: tuple[int, ...]
    listed: bool
    instant: bool = False


@dataclass(frozen=True, slots=True)
class Aggregate:
    """Function, argument slot (-1: the row itself), DISTINCT, the separator of GROUP_CONCAT."""

    function: AggregateFunction
    slot: int
    distinct: bool
    separator: str | None = None


@dataclass(frozen=True, slots=True)
class Panes:
    """Groups of interval rows by key slots; ``tuples`` as in ``Extend``."""

    kinds: tuple[WindowKind, ...]
    rows: tuple[int, ...]
    listed: bool
    keys: tuple[int, ...]
    aggregates: tuple[Aggregate, ...]
    kept: tuple[int, ...]
    tuples: bool = False


@dataclass(frozen=True, slots=True)
class RJoin:
    """As ``Join``, over report rows. ``lasting``: the right rows are of no report and stay."""

    left: tuple[int, ...]
    right: tuple[int, ...]
    out: tuple[tuple[int, int], ...]
    fills: tuple[tuple[int, int], ...]
    lasting: bool = False


@dataclass(frozen=True, slots=True)
class RLeft:
    """As ``RJoin`` with unmatched left rows kept; the condition sees left slots, then right slots;
    ``lasting``, too.
    """

    left: tuple[int, ...]
    right: tuple[int, ...]
    out: tuple[tuple[int, int], ...]
    fills: tuple[tuple[int, int], ...]
    condition: Expression | None
    lasting: bool = False


@dataclass(frozen=True, slots=True)
class RSemi:
    """Left report rows with or without a partner; key slots, ``fills``, condition as in ``RLeft``;
    ``kept`` left slots.

    Of MARK all left rows, and a slot behind the kept ones (not at all if nobody reads it): whether
    there is a partner.
    """

    test: Semi
    left: tuple[int, ...]
    right: tuple[int, ...]
    kept: tuple[int, ...]
    fills: tuple[tuple[int, int], ...]
    condition: Expression | None
    lasting: bool = False


@dataclass(frozen=True, slots=True)
class RGroup:
    """Groups of report rows; ``kinds`` as in ``Report`` (an ungrouped aggregate has a row at every
    report).
    """

    kinds: tuple[WindowKind, ...]
    listed: bool
    keys: tuple[int, ...]
    aggregates: tuple[Aggregate, ...]
    kept: tuple[int, ...]
    tuples: bool = False


@dataclass(frozen=True, slots=True)
class RExcept:
    """Both inputs come with the output's slots."""


@dataclass(frozen=True, slots=True)
class Deltas:
    """Beginnings and ends of rows; ``rows`` are the schedule's windows that the rows carry."""

    kinds: tuple[WindowKind, ...]
    rows: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Running:
    """Groups by key slots, from changes. Without keys a second input says when the group is
    there.
    """

    keys: tuple[int, ...]
    aggregates: tuple[Aggregate, ...]
    kept: tuple[int, ...]
    tuples: bool = True


@dataclass(frozen=True, slots=True)
class Tally:
    """Counts of equal rows, from changes."""

    shown: Shown


@dataclass(frozen=True, slots=True)
class Net:
    """Equal changes of a report netted."""

    output: Output


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A result at its reports, from its changes and those of its windows.

    ``kinds`` are those of the level's windows and of the clock; the member's windows beyond these
    only hold it back. ``clock``: the last of them is one.
    """

    output: Output
    kinds: tuple[WindowKind, ...]
    clock: bool
    nonempty: bool
    listed: bool
    every: bool


@dataclass(frozen=True, slots=True)
class RDistinct:
    """Equal rows of a report once."""


@dataclass(frozen=True, slots=True)
class ROrder:
    """Sort keys over slots (expression, descending), offset, limit; ties by text."""

    keys: tuple[tuple[Expression, bool], ...]
    offset: int
    limit: int | None
    in_order: bool


@dataclass(frozen=True, slots=True)
class Closure:
    """Pairs that paths connect, as slots 0 and 1 of the first input; ``kept`` of them form the
    output.

    ``given``: whether start and end are constants of the member. ``seed``: the end whose values the
    last input has.
    """

    many: bool
    given: tuple[bool, bool]
    kept: tuple[int, ...]
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class Changes:
    """Differences between reports. ``rows`` is None for report rows; ``certain``: nothing cancels,
    nothing is kept.
    """

    output: Output
    kinds: tuple[WindowKind, ...]
    rows: tuple[int, ...] | None
    listed: bool
    certain: bool


@dataclass(frozen=True, slots=True)
class Emit:
    """Results; the text facets say what is shown. ``listed``: empty reports are shown, too;
    ``kinds`` are then the windows'.
    """

    changes: bool
    listed: bool
    kinds: tuple[WindowKind, ...] = ()


Step = (
    Match
    | Entailed
    | Star
    | Scan
    | Constant
    | Last
    | LastBy
    | Session
    | Select
    | Lift
    | Once
    | Filter
    | Extend
    | Union
    | Occur
    | Hold
    | Join
    | Report
    | Panes
    | RJoin
    | RLeft
    | RSemi
    | RGroup
    | RDistinct
    | RExcept
    | ROrder
    | Closure
    | Changes
    | Deltas
    | Running
    | Tally
    | Net
    | Snapshot
    | Emit
)
