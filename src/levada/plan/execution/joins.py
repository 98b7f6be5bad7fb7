"""The steps of joins and picks: a pick selects the rows of one query from a join that many queries
share (``plan/sharing/share_relaxed_joins``).

The differences between queries below such a join are *keys* (they want terms), *ranges* (they want
values between two constants), and the *rest* (other conditions). A pick has the demand of its query
and the slots of the join that decide it. The join has none of it, so queries with other conditions,
or without any, share it. The slots of a join's inputs that decide the same follow from the relation
between slots (``shared_join_nodes``), so rows that no pick wants are dropped there.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from typing import ClassVar, TypeVar

from levada.core.event_time import WindowKind
from levada.core.expressions import Call, Expression, Function, Param, Var, conjunction
from levada.core.frozen import frozen
from levada.errors import UsageError, near
from levada.plan.execution.step_traits import Ending, OwnWindows, Places, Sides, Traits

# Enumerations of joins and counts that the physical operators and the sealed plan share, and the
# join forms that a user can choose.


class JoinKind(StrEnum):
    """The result of a join of report rows: pairs, or left rows with a partner, without one, or all
    with a mark.

    For MINUS a partner must also bind a shared variable that the left row binds.
    """

    INNER = "inner"
    LEFT = "left"
    SEMI = "semi"
    ANTI = "anti"
    MINUS = "minus"
    MARK = "mark"

    @property
    def returns_pairs(self) -> bool:
        """Whether right rows are in the result; otherwise they only decide on the left rows."""
        return self in (JoinKind.INNER, JoinKind.LEFT)

    @property
    def needs_partner(self) -> bool:
        """Whether only left rows with a partner are in the result."""
        return self in (JoinKind.INNER, JoinKind.SEMI)


class Order(StrEnum):
    """The part of a value that decides whether it is in a range.

    It is the value of a number or an instant; the characters of a plain string, of a string with or
    without language, or of the result of STR(); or the date, or the time of a dateTime without time
    zone.
    """

    VALUE = "value"
    STRING = "string"
    TAGGED = "tagged"
    STR = "str"
    DATE = "date"
    LOCAL = "local"


def compared_expression(name: str, order: Order) -> Expression:
    """Returns the expression of a variable that is compared."""
    return Call(Function.STR, (Var(name),)) if order is Order.STR else Var(name)


class Shown(StrEnum):
    """The number of result rows for a count of equal rows: one; the excess over the count in the
    second input; or the number of insertions minus deletions.
    """

    DISTINCT = "distinct"
    EXCEPT = "except"
    HELD = "held"


class JoinForm(StrEnum):
    """The way in which three or more parts are joined.

    Two at a time with intermediate state; at once where possible; the cheaper of both by measured
    cost; or chains and circles at once, with some parts at all partitions.
    """

    BINARY = "binary"
    MULTIWAY = "multiway"
    AUTO = "auto"
    REPLICATED = "replicated"


def join_form_of(word: str) -> JoinForm:
    """Returns the form of this name. Raises ``UsageError``.

    >>> join_form_of("multiway").name
    'MULTIWAY'
    """
    if word not in list(JoinForm):
        raise UsageError(f"There is no form of joins {word}.", hint=near(word, list(JoinForm)))
    return JoinForm(word)


T = TypeVar("T")
GIVEN, MADE, WANTED, PICKED = range(4)
"""The counts of a relaxed join: input rows, pairs, pairs that some pick wants, rows of picks."""

PARTITIONS, PAIRWISE, CHANGED, AT_ONCE, IN_TURN = range(5)
"""The figures of a join whose form is chosen: its partitions, those in which it joins two at a
time, and the changes of form; its cost in one step, and two at a time (CPU us of an epoch,
estimated).
"""


@frozen
class Key:
    """A slot that must equal one of these constants of the member.

    ``source``: the inputs that lead from the pick to a pattern, and the position there; () if the
    key comes from a condition. A pattern keeps only triples that some pick above it wants.
    """

    slot: int
    params: tuple[int, ...]
    source: tuple[int, ...]


@frozen
class Comparison:
    """A comparison of a slot with a constant of the member, as part of a range over an
    ``order``.
    """

    range: int
    slot: int
    function: Function
    param: int
    order: Order

    @property
    def condition(self) -> Call:
        """The comparison as a condition over slots and parameters."""
        return Call(
            self.function, (compared_expression(str(self.slot), self.order), Param(self.param))
        )


@frozen
class Join(Traits):
    """A join with key slots on each side.

    It has the source (side, slot) of each output slot, and shared slots that may be unbound.
    ``negative``: pairs have the negated weight. ``relaxed``: its rows are those that any pick above
    wants, and its windows are those of the picks.
    """

    left: tuple[int, ...]
    right: tuple[int, ...]
    out: tuple[tuple[int, int], ...]
    fills: tuple[tuple[int, int], ...]
    # for each output window its index left and right, -1: absent
    windows: tuple[tuple[int, int], ...]
    raw: tuple[bool, bool]
    negative: bool = False
    relaxed: bool = False

    def row_windows(self, i: int, width: int) -> Places:
        """Returns the windows of the side."""
        places = [pair[i] for pair in self.windows]
        return tuple([places.index(w) for w in range(width)])


@frozen
class Arrange(Traits):
    """Static rows kept by their key slots; ``kept``: the input slots that joins read."""

    keys: tuple[int, ...]
    kept: tuple[int, ...]


@frozen
class ArrangeDistinct(Arrange):
    """An ``Arrange`` that keeps equal rows once, for joins that only test existence."""


@frozen
class RelaxedStatic(Arrange):
    """An ``Arrange`` for relaxed joins: it keeps rows that some pick above the joins wants, once
    each.

    Rows that a new query wants arrive in its first epoch and are added if they are missing.
    """


@frozen
class ArrangedJoin(Join):
    """A join that reads its side ``arranged`` from an ``Arrange``; ``reads``: the slots there.

    It has key slots on the other side alone.
    """

    arranged: int = 1
    reads: tuple[int, ...] = ()


@frozen
class ArrangeStream(Arrange):
    """Rows of streams kept by their key slots while they count in the members' windows.

    ``raw`` rows are made a set.
    """

    raw: bool

    def row_windows(self, i: int, width: int) -> Places:
        """Returns all windows, in order."""
        return tuple(range(width))


@frozen
class RelaxedStream(ArrangeStream):
    """An ``ArrangeStream`` for relaxed joins: it keeps rows as long as some pick above
    wants them.
    """


@frozen
class StreamJoin(ArrangedJoin):
    """A join that reads one side from an ``ArrangeStream``.

    New rows of both sides probe the other side. Rows of the other side are kept here, by the member
    of the arrangement that they probe.
    """


@frozen
class MultiwayJoin(Traits):
    """A join of several inputs by the same keys.

    It has the key slots of each input, the source (input, slot) of each output slot, the index of
    each output window in each input (-1: absent), and whether each input is raw.
    """

    keys: tuple[tuple[int, ...], ...]
    out: tuple[tuple[int, int], ...]
    windows: tuple[tuple[int, ...], ...]
    raw: tuple[bool, ...]

    def row_windows(self, i: int, width: int) -> Places:
        """Returns the windows of the input."""
        places = [each[i] for each in self.windows]
        return tuple([places.index(w) for w in range(width)])


@frozen
class AdaptiveJoin(MultiwayJoin):
    """A ``MultiwayJoin`` that runs in one step or two at a time, whichever costs less while it
    runs.
    """


@frozen
class LinkedJoin(Traits):
    """A join of inputs by different variables, in one step.

    ``shared``: the (number, slot) of each input's variables that other inputs have, too. ``out``,
    ``windows``, ``raw``: as in ``MultiwayJoin``. ``copied``: whether all partitions have the rows
    of an input. The other inputs are partitioned by one key, so each combination is found in one
    partition.
    """

    shared: tuple[tuple[tuple[int, int], ...], ...]
    out: tuple[tuple[int, int], ...]
    windows: tuple[tuple[int, ...], ...]
    raw: tuple[bool, ...]
    copied: tuple[bool, ...]

    def row_windows(self, i: int, width: int) -> Places:
        """Returns the windows of the input."""
        places = [each[i] for each in self.windows]
        return tuple([places.index(w) for w in range(width)])


def is_arranged(step: object, i: int) -> bool:
    """Whether a step reads an input from an arrangement; its rows are those of the
    members there.
    """
    if isinstance(step, ArrangedReportJoin):
        return i == 1
    return isinstance(step, ArrangedJoin) and step.arranged == i


def is_alike(step: object, i: int) -> bool:
    """Whether all partitions have the rows of an input of a step."""
    return isinstance(step, LinkedJoin) and step.copied[i]


def drop_replicated_inputs(
    step: object, frames: Sequence[T | None], values: Sequence[T]
) -> Sequence[T]:
    """Returns the ``values`` of a step without those of inputs that all partitions have.

    Their ``frames`` belong to no group.
    """
    if not isinstance(step, LinkedJoin):
        return values
    return [f for f, alike in zip(frames, step.copied, strict=True) if f is not None and not alike]


@frozen
class Recent(Traits):
    """Each row with the last rows of its key slots.

    Each output slot has a flag for past rows, and the slot there. ``window``: the position of the
    count window among those of the result.
    """

    keys: tuple[int, ...]
    out: tuple[tuple[bool, int], ...]
    window: int

    def row_windows(self, i: int, width: int) -> Places:
        """Returns the count window."""
        return (self.window,)


@frozen
class Numbered(OwnWindows):
    """All rows of a stream with their numbers.

    Each ``stream`` and region (``site``) has separate numbers, so the rows of a node and those
    above have one axis.
    """

    stream: str
    site: str
    bag: bool


@frozen
class Instants(OwnWindows):
    """The last of the numbered rows of each instant, without terms."""


@frozen
class Narrow(OwnWindows):
    """Numbered rows as changes of the members' count windows; the second input has the instants of
    numbers.
    """

    def starving(self, inputs: int) -> Sides:
        """Returns the input of rows."""
        return ((0,),)


@frozen
class Pick(OwnWindows):
    """Rows that satisfy all keys, tests and the ``rest`` of a member, and count in its windows.

    ``kept`` input slots form the output. ``tuples``: as in ``Extend``.
    """

    keys: tuple[Key, ...]
    tests: tuple[Comparison, ...]
    rest: tuple[Expression, ...]
    kept: tuple[int, ...]
    tuples: bool = False

    @property
    def condition(self) -> Expression | None:
        """The tests and the rest, as a condition over slots and parameters."""
        return conjunction((*(test.condition for test in self.tests), *self.rest))


@frozen
class ByWindow(Traits):
    """Rows with times of each window; ``places``: the input windows that are combined in each."""

    places: tuple[tuple[int, ...], ...]
    rowwise: ClassVar[bool] = True


@frozen
class RangedChanges(Ending):
    """Differences of IStreams over picks that differ only in the range of their window.

    ``step`` 0: the window reports at each element. Otherwise windows close at ``phase`` and each
    ``step`` (ms) from there. ``rows``: the position of the window.
    """

    kinds: tuple[WindowKind, ...]
    rows: tuple[int, ...]
    step: int = 0
    phase: int = 0


@frozen
class ReportJoin(OwnWindows):
    """A ``Join`` over report rows; the condition reads left slots, then right slots.

    ``lasting``: right rows count at every report. If right rows only decide, ``out`` has left slots
    alone. For MARK a slot with the existence of a partner follows, if it is read.
    """

    kind: JoinKind
    left: tuple[int, ...]
    right: tuple[int, ...]
    out: tuple[tuple[int, int], ...]
    fills: tuple[tuple[int, int], ...]
    condition: Expression | None = None
    lasting: bool = False

    def starving(self, inputs: int) -> Sides:
        """Returns the left side, and also the right side if a partner is needed."""
        return ((0,), (1,)) if self.kind.needs_partner else ((0,),)


@frozen
class ArrangedReportJoin(ReportJoin):
    """A ``ReportJoin`` over an ``Arrange``, whose slots ``reads`` it reads; it has key slots on the
    left.
    """

    reads: tuple[int, ...] = ()
