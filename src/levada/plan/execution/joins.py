"""Joins, and picking: which rows of a join that many queries share are one's
(``plan/install/relax``).

What queries differ in below such a join are *keys*, where they want terms, *ranges*, where they
want what lies between two constants, and the *rest*: conditions of other forms. A pick says what it
wants and from which slots of the join it tells; a join says nothing of that, so that queries with
other conditions, or none, share it. By which slots of a join's inputs the same can be told of a row
there follows from how slots hang together (``shares``), so that no row stays that no pick wants.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar, TypeVar

from levada.core.event_time import WindowKind
from levada.core.expressions import Call, Expression, Function, Param, conjunction
from levada.core.frozen import frozen
from levada.plan.execution.join_kinds import JoinKind, Order, compared_expression
from levada.plan.execution.step_traits import Ending, OwnWindows, Places, Sides, Traits

T = TypeVar("T")
GIVEN, MADE, WANTED, PICKED = range(4)
"""What is counted of a relaxed join: rows that it was given, pairs that it has made, those of them
that some pick wants, rows that picks have.
"""

PARTITIONS, PAIRWISE, CHANGED, AT_ONCE, IN_TURN = range(5)
"""What is told of a join whose form is chosen: in how many partitions, in how many of these it is
two at a time, how often that has changed; what it costs in one step, and two at a time (CPU us of
an epoch, estimated).
"""


@frozen
class Key:
    """A slot that is one of these constants of the member, as terms. ``source``: the inputs that
    lead from the pick to a pattern, and the position there; () if it comes from a condition.

    A pattern keeps no other triples than those that some pick above it wants.
    """

    slot: int
    params: tuple[int, ...]
    source: tuple[int, ...]


@frozen
class Comparison:
    """A comparison of a slot with a constant of the member; it belongs to a range, which tells rows
    by their ``order``.
    """

    range: int
    slot: int
    function: Function
    param: int
    order: Order

    @property
    def condition(self) -> Call:
        """It as a condition over slots and parameters."""
        return Call(
            self.function, (compared_expression(str(self.slot), self.order), Param(self.param))
        )


@frozen
class Join(Traits):
    """Key slots on each side; where each output slot comes from (side, slot); shared slots that may
    be unbound.

    ``negative``: pairs have the weight -1 of what they would have. ``relaxed``: its rows are those
    of any pick above, and its windows theirs; ``places``: of its windows among theirs.
    """

    left: tuple[int, ...]
    right: tuple[int, ...]
    out: tuple[tuple[int, int], ...]
    fills: tuple[tuple[int, int], ...]
    # per output window: its index left and right, -1 if it is not there
    windows: tuple[tuple[int, int], ...]
    raw: tuple[bool, bool]
    negative: bool = False
    relaxed: bool = False
    places: tuple[int, ...] = ()

    def row_windows(self, i: int, width: int) -> Places:
        """Those of its side."""
        places = [pair[i] for pair in self.windows]
        return tuple([places.index(w) for w in range(width)])


@frozen
class Arrange(Traits):
    """Static rows kept by their key slots; ``kept`` input slots are what joins read."""

    keys: tuple[int, ...]
    kept: tuple[int, ...]


@frozen
class ArrangeDistinct(Arrange):
    """The same, equal ones once: for who asks only whether there are such."""


@frozen
class RelaxedStatic(Arrange):
    """The same for relaxed joins: rows that some pick above any of these wants, once each. Those
    that a newcomer wants come in its first epoch, and stay if they are not there.
    """


@frozen
class ArrangedJoin(Join):
    """A join whose side ``arranged`` are the rows of an ``Arrange``, which it reads where these are
    kept: their slots ``reads``. It has key slots on the other side alone.
    """

    arranged: int = 1
    reads: tuple[int, ...] = ()


@frozen
class ArrangeStream(Arrange):
    """Rows of streams kept by their key slots, while they count in the members' windows; ``raw``
    ones are made a set.
    """

    raw: bool

    def row_windows(self, i: int, width: int) -> Places:
        """All, in order."""
        return tuple(range(width))


@frozen
class RelaxedStream(ArrangeStream):
    """The same for relaxed joins: rows that any pick above these wants, as long as one does."""


@frozen
class StreamJoin(ArrangedJoin):
    """The same over an ``ArrangeStream``: new rows of both sides meet what there is of the other,
    and those of the other side are kept here, by the member of the arrangement that they meet.
    """


@frozen
class MultiwayJoin(Traits):
    """The key slots of each input; where each output slot comes from (input, slot); per output
    window its index in each input, -1 where it is not there; which inputs are raw.
    """

    keys: tuple[tuple[int, ...], ...]
    out: tuple[tuple[int, int], ...]
    windows: tuple[tuple[int, ...], ...]
    raw: tuple[bool, ...]

    def row_windows(self, i: int, width: int) -> Places:
        """Those of its input."""
        places = [each[i] for each in self.windows]
        return tuple([places.index(w) for w in range(width)])


@frozen
class AdaptiveJoin(MultiwayJoin):
    """The same, in one step or two at a time as costs less, which is found while it runs."""


@frozen
class LinkedJoin(Traits):
    """Inputs that are joined by different variables, in one step. ``shared``: of each input the
    (number, slot) of its variables that others have, too; ``out``, ``windows``, ``raw`` as of
    ``MultiwayJoin``.

    ``copied``: which inputs are *alike* in all partitions, since their rows go to all. The others
    are there by one key, so that each combination is found in one partition.
    """

    shared: tuple[tuple[tuple[int, int], ...], ...]
    out: tuple[tuple[int, int], ...]
    windows: tuple[tuple[int, ...], ...]
    raw: tuple[bool, ...]
    copied: tuple[bool, ...]

    def row_windows(self, i: int, width: int) -> Places:
        """Those of its input."""
        places = [each[i] for each in self.windows]
        return tuple([places.index(w) for w in range(width)])


def is_arranged(step: object, i: int) -> bool:
    """Whether an input of a step is read where it is kept: its rows are those of the members
    there.
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
    """The ``values`` of a step but for the ``frames`` of inputs that all partitions have: no group
    has them.
    """
    if not isinstance(step, LinkedJoin):
        return values
    return [f for f, alike in zip(frames, step.copied, strict=True) if f is not None and not alike]


@frozen
class Recent(Traits):
    """Each row with the last ones of its key slots. Of each output slot: whether it is of a past
    row, and the slot there. ``window``: where the count window stands among those of the result.
    """

    keys: tuple[int, ...]
    out: tuple[tuple[bool, int], ...]
    window: int

    def row_windows(self, i: int, width: int) -> Places:
        """The count window."""
        return (self.window,)


@frozen
class Numbered(OwnWindows):
    """All rows of a stream with their numbers. Each ``stream`` and region (``site``) has numbers of
    its own, so that a node's rows and those above them have one axis.
    """

    stream: str
    site: str
    bag: bool


@frozen
class Instants(OwnWindows):
    """Of rows with numbers the last one of each instant, without terms."""


@frozen
class Narrow(OwnWindows):
    """Rows with numbers as those of the members' count windows, which come and go; the second input
    says when numbers came.
    """

    def starving(self, inputs: int) -> Sides:
        """The rows."""
        return ((0,),)


@frozen
class Pick(OwnWindows):
    """Rows that are the member's by all keys, tests and the ``rest``, and that count in its
    windows; ``kept`` input slots form the output. ``tuples``: as in ``Extend``.
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
    """Rows with times of each window; ``places``: of each the windows of the input that are put
    together in it.
    """

    places: tuple[tuple[int, ...], ...]
    rowwise: ClassVar[bool] = True


@frozen
class RangedChanges(Ending):
    """What IStreams say of the rows of picks that differ in the range of their window alone: that
    of each element (``step`` 0), or windows that close at ``phase`` and each ``step`` (ms) from
    there. ``rows``: where that window stands.
    """

    kinds: tuple[WindowKind, ...]
    rows: tuple[int, ...]
    step: int = 0
    phase: int = 0


@frozen
class ReportJoin(OwnWindows):
    """As ``Join``, over report rows; the condition sees left slots, then right slots. ``lasting``:
    right rows are of no report.

    Where the right rows only decide, ``out`` are left slots alone; of MARK a slot follows these
    (not at all if nobody reads it): whether there is a partner.
    """

    kind: JoinKind
    left: tuple[int, ...]
    right: tuple[int, ...]
    out: tuple[tuple[int, int], ...]
    fills: tuple[tuple[int, int], ...]
    condition: Expression | None = None
    lasting: bool = False

    def starving(self, inputs: int) -> Sides:
        """The left side; where a partner is needed either."""
        return ((0,), (1,)) if self.kind.needs_partner else ((0,),)


@frozen
class ArrangedReportJoin(ReportJoin):
    """The same over an ``Arrange``, whose slots ``reads`` it reads where these are kept; it has key
    slots on the left alone.
    """

    reads: tuple[int, ...] = ()
