"""The physical operators of one query, by variable names: between the algebra and the topology.

An ``Op`` is a value: its kind (``spec``), its inputs, its output variables (slot i holds
``variables[i]``), the query's windows whose times its rows carry (None: report rows), and the
partitioning of its output. ``lower`` builds the tree; ``topology`` turns it into shared nodes with
slots.

    below the report   Match Entailed Star Scan Constant CountWindow Recent Session Select
                       SubqueryWindow StaticSubplan UserOperator
                       -> Filter Extend Union Occur Arrange Join MultiwayJoin AdaptiveJoin
                       Numbered -> Join -> Pick -> Narrow, beside Instants
    the border         Report (rows at their report times), Panes (groups),
                       Changes (I, D, relation), Deltas
    above              Filter Extend Union ReportJoin RGroup RDistinct RExcept ROrder Closure
                       Changes -> Emit
    above, by changes  Filter Extend Union Running Multiplicity -> Net, Snapshot -> Emit,
                       SubqueryWindow; -> Standing, whose rows are report rows

Closure (paths) is also below the report, over static rows alone. So is a ReportJoin that is not
INNER (and one that is above it) if its right side are static rows alone (``lasting``). A part that
static data alone answer is a level of its own below a StaticSubplan.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import field
from typing import ClassVar

from levada.core.expressions import AggregateFunction, Call, Const, Expression, Function
from levada.core.frozen import frozen
from levada.core.query_model import Output, TriplePattern
from levada.core.rdf_terms import Term
from levada.plan.execution.joins import JoinKind, Order, Shown, compared_expression
from levada.plan.execution.row_layout import NOTHING, Facet
from levada.plan.logical.nodes import Alternative, Reporting
from levada.plan.physical import traits as t
from levada.plan.physical.traits import Counting, Netting, Passing, Plain, Traits

# Picks and the operators of relaxed joins below them, by variable names
# (``plan/sharing/share_relaxed_joins``).


@frozen
class Key:
    """A variable that must equal one of these terms.

    ``source``: the inputs that lead from the pick to the pattern with the term, and the position
    there; () if it is from a condition.
    """

    name: str
    terms: tuple[Term, ...]
    source: tuple[int, ...]


@frozen
class Comparison:
    """A comparison of a variable with a constant; comparisons of a variable by the same ``order``
    are one ``range``.
    """

    range: int
    name: str
    function: Function
    term: Term
    order: Order

    @property
    def condition(self) -> Call:
        """The comparison as a condition."""
        return Call(self.function, (compared_expression(self.name, self.order), Const(self.term)))


@frozen
class Pick(t.Traits):
    """Rows of a shared join that satisfy these conditions and that count in the windows.

    ``rest``: conditions of any other form.
    """

    keys: tuple[Key, ...]
    tests: tuple[Comparison, ...]
    rest: tuple[Expression, ...] = ()


@frozen
class ByWindow(t.Passing):
    """Rows of a pick with times of each leaf, turned into rows with times of each window
    (``per_leaf_times``).
    """


@frozen
class Instants(t.Plain):
    """The instants of a stream's numbers: one of the numbered rows for each instant."""


@frozen
class Narrow(t.Passing):
    """Rows of a pick joined by numbers, as rows of the query's own count window.

    The second input has the instants of numbers.
    """

    @property
    def has_instants(self) -> bool:
        """Whether rows come and go with the numbers."""
        return True


# Joins of many inputs in one step, by variable names: stars (``MultiwayJoin``, ``AdaptiveJoin``),
# chains and circles (``LinkedJoin``), and arrangements that binary joins read (``Arrange``).
#
# ``operators`` defines the binary join. These operators replace it (``multiway_join``,
# ``replicated_join``) or are placed below it (``static_arrangements``), with the same rows.


@frozen
class MultiwayJoin(t.Pairing):
    """Combined rows of all inputs with equal keys and intersecting intervals, in one step.

    No two inputs share a variable except for the keys. ``raw``: as in a join.
    """

    keys: tuple[str, ...]
    raw: tuple[bool, ...]

    def makes_set(self, i: int) -> bool:
        """Whether the input is raw."""
        return self.raw[i]


@frozen
class AdaptiveJoin(MultiwayJoin):
    """A ``MultiwayJoin`` that runs in one step or two at a time, whichever costs less while it
    runs.
    """


@frozen
class LinkedJoin(t.Pairing):
    """Combined rows of all inputs that agree on shared variables, in one step.

    ``shared``: the variables of each input that others have, too. ``copied``: inputs whose rows go
    to all partitions. The others are partitioned by one of these variables, or there is one such
    input. ``raw``: as in a join.
    """

    shared: tuple[tuple[str, ...], ...]
    raw: tuple[bool, ...]
    copied: tuple[bool, ...]

    def makes_set(self, i: int) -> bool:
        """Whether the input is raw."""
        return self.raw[i]


@frozen
class Arrange(t.Traits):
    """Static rows kept by ``keys``, which are always bound, for all joins with them."""

    keys: tuple[str, ...]


@frozen
class ArrangeDistinct(Arrange):
    """An ``Arrange`` for existence tests: equal rows are kept once."""


@frozen
class RelaxedStatic(Arrange):
    """An ``Arrange`` for relaxed joins, whose queries may want other rows of it."""


@frozen
class ArrangeStream(Arrange):
    """Rows of streams kept by ``keys``; ``raw`` rows are made a set on the way in."""

    raw: bool

    def makes_set(self, i: int) -> bool:
        """Whether the rows are raw."""
        return self.raw


@frozen
class RelaxedStream(ArrangeStream):
    """An ``ArrangeStream`` for relaxed joins."""


# The leaf operators of a query's tree: they read streams, windows and static graphs.
#
# ``operators`` describes how they fit in.


@frozen
class Match(Plain):
    """A triple pattern over a stream (``stream``) or over static graphs (``graphs``; None in it is
    the default graph).

    ``lifted``: the positions whose variables range over the terms that some ``Pick`` above wants.
    """

    pattern: TriplePattern
    stream: str | None
    graphs: tuple[str | None, ...] = ()
    lifted: tuple[int, ...] = ()


@frozen
class Entailed(Plain):
    """A triple pattern with its alternatives, over a source as in ``Match``; ``alike`` as in
    ``nodes.Entailed``.
    """

    pattern: TriplePattern
    alternatives: tuple[Alternative, ...]
    alike: tuple[tuple[Term, ...], ...]
    stream: str | None
    graphs: tuple[str | None, ...] = ()


@frozen
class Star(Plain):
    """Triple patterns of one subject over a stream whose elements are closed: joined within the
    element, at the intake.
    """

    patterns: tuple[TriplePattern, ...]
    stream: str


@frozen
class Scan(Plain):
    """Columns of a tuple stream, one for each output variable; ``sign``: the column of weights, if
    any.
    """

    stream: str
    columns: tuple[str, ...]
    types: tuple[str, ...]
    sign: str = ""


@frozen
class Constant(Plain):
    """VALUES: rows of terms."""

    rows: tuple[tuple[Term | None, ...], ...]


@frozen
class CountWindow(Counting):
    """The changes of a count window's content over all triples (or rows) of a stream: weight +1 in,
    -1 out.

    ``keys``: rows are counted for each value of these variables. ``bag``: rows of tuples, which all
    count.
    """

    window: int
    count: int
    keys: tuple[str, ...]
    bag: bool


@frozen
class Numbered(Counting):
    """All triples (or rows) of a stream with their numbers, in place of a ``CountWindow`` of any
    length.

    ``bag`` as there. It always reads all variables: its readers must share one axis of numbers, so
    it exists once.
    """

    window: int
    bag: bool

    def reads(self, weighted: bool) -> Facet:
        """Returns all facets of all variables."""
        return Facet.ID | Facet.TEXT | Facet.NUM


@frozen
class Recent(Traits):
    """Each row of a stream, at its instant, with each of the last ``count`` rows of its ``keys``.

    It equals the join of the windows ``now`` and ``window``. Each variable has its ``sources`` in
    the input, and a flag for the ``past`` row.
    """

    now: int
    window: int
    count: int
    keys: tuple[str, ...]
    sources: tuple[str, ...]
    past: tuple[bool, ...]

    def source(self, name: str, variables: tuple[str, ...]) -> str | None:
        """Returns the variable in the input."""
        return self.sources[variables.index(name)]


@frozen
class UserOperator(Plain):
    """The rows that an operator of the user makes of all rows of a stream, with state by ``keys``.

    ``input_columns``: with their variables. ``columns``: those of the output; a
    key and ``TIME`` pass.
    """

    iri: str
    keys: tuple[str, ...]
    input_columns: tuple[tuple[str, str], ...]
    columns: tuple[str, ...]

    def reads(self, weighted: bool) -> Facet:
        """Returns all facets: rows of one time are ordered by their texts."""
        return Facet.ID | Facet.TEXT | Facet.NUM

    def source(self, name: str, variables: tuple[str, ...]) -> str | None:
        """Returns the variable in the input of a key or a time."""
        column = self.columns[variables.index(name)]
        return dict(self.input_columns)[column] if column in (*self.keys, TIME) else None


@frozen
class Session(Passing):
    """The rows of a session window: as they come, with weights, or (``ended``) at its end.

    The end of a session follows from the times of all elements of its stream. ``bag``: rows are not
    repeated, or all count.
    """

    window: int
    ended: bool
    bag: bool

    @property
    def has_instants(self) -> bool:
        """Whether rows are taken back at the end of their session."""
        return not self.ended

    def reads(self, weighted: bool) -> Facet:
        """Returns identities for a set."""
        return NOTHING if self.bag else Facet.ID


@frozen
class SubqueryWindow(Passing):
    """Report rows as content of a window: rows that a sub-query reports at r exist from r on.

    ``level``: the windows of the sub-query. ``weighted``: its changes, with both signs; otherwise
    elements of a stream.
    """

    window: int
    level: tuple[int, ...]
    weighted: bool


@frozen
class StaticSubplan(Netting):
    """The answer of a part that reads static data alone, as static rows.

    ``reread_graphs``: the graphs at whose replacement it changes.
    """

    reread_graphs: tuple[str | None, ...]


@frozen
class Select(Traits):
    """A triple pattern over rows (s, p, o) of a ``CountWindow``, with their further variables."""

    pattern: TriplePattern
    beside: tuple[str, ...] = ()


@frozen
class Draw:
    """The values from which RAND, UUID and BNODE derive beside query and report: the solution
    before any BIND, and the place in the query.
    """

    solution: tuple[str, ...]
    place: int


@frozen
class Filter(t.Traits):
    """Keeps rows whose condition is true."""

    condition: Expression
    draw: Draw | None = None


@frozen
class Extend(t.Traits):
    """Appends a computed variable."""

    expression: Expression
    draw: Draw | None = None

    def source(self, name: str, variables: tuple[str, ...]) -> str | None:
        """Returns no source for the appended variable."""
        return None if name == variables[-1] else name


@frozen
class Rename(t.Plain):
    """Only these variables, in this order, under the names of the output (projection)."""

    sources: tuple[str, ...]

    def source(self, name: str, variables: tuple[str, ...]) -> str | None:
        """Returns the name below."""
        return self.sources[variables.index(name)]


@frozen
class Union(t.SideBySide, t.Passing):
    """All rows of all inputs; variables that an input lacks are unbound."""


@frozen
class Applied(t.Plain):
    """The operators of the input with these names and terms in place of its patterns' own
    (``rdf_merge``, ``installer``).
    """

    terms: tuple[Term, ...]


@frozen
class Occur(t.WholeRows):
    """Makes the window a set: adds ``prev`` to each row, and merges equal rows of one time
    (docs/architecture.md#a-querys-way).

    ``wide``: for windows of any length. ``relaxed``: picks with different demands share it.
    """

    wide: bool = False
    relaxed: bool = False

    def makes_set(self, i: int) -> bool:
        """Returns True."""
        return True


@frozen
class Hold(t.Passing):
    """Passes rows unchanged, after they have waited for a watermark."""


@frozen
class Join(t.Pairing):
    """Pairs with equal keys whose intervals intersect; ``raw`` inputs are made sets on the way in.

    ``negative``: the pairs have negative weight; they take back pairs that a union of both sides
    counts twice. ``relaxed``: picks with different demands share it; ``family``: set if only some
    queries share the join.
    """

    keys: tuple[str, ...]
    raw: tuple[bool, bool]
    negative: bool = False
    relaxed: bool = False
    family: str = ""

    def makes_set(self, i: int) -> bool:
        """Whether the input is raw."""
        return self.raw[i]


@frozen
class Report(t.Netting):
    """Each row once for every report at which it counts; ``instant``: it counts at one report
    alone.
    """

    enumerated: bool
    instant: bool = False


@frozen
class AggregateSpec:
    """One aggregate of a group: function, argument variable (None: the row itself), DISTINCT,
    GROUP_CONCAT's separator.
    """

    function: AggregateFunction
    arg: str | None
    distinct: bool
    separator: str | None = None


@frozen
class Panes(t.Grouping):
    """Groups of interval rows: partial aggregates per (group, interval), added at each report."""

    keys: tuple[str, ...]
    aggregates: tuple[AggregateSpec, ...]
    enumerated: bool


@frozen
class ReportJoin(t.Traits):
    """A join of report rows; rows are compatible if shared variables may be unbound.

    ``condition``: the condition on pairs. ``lasting``: the right rows count at every report; then
    left rows may have event times, except for INNER.
    """

    kind: JoinKind
    keys: tuple[str, ...]
    shared: tuple[str, ...]
    condition: Expression | None = None
    lasting: bool = False

    @property
    def puts_together(self) -> bool:
        """Whether right rows are in the result; rows that only decide fill nothing."""
        return self.kind.returns_pairs


@frozen
class Closure(t.Traits):
    """Distinct pairs of variables that paths connect: ``many`` steps or at most one; some ``ends``.

    The first input has the pairs of one step, a second one the terms that a path of no step
    connects with themselves. ``seed``: the end (0 or 1) that counts only with the values of the
    last input.
    """

    many: bool
    ends: tuple[Term | None, Term | None]
    seed: int | None = None


@frozen
class RGroup(t.Grouping):
    """Groups of report rows. ``apart``: equal values of DISTINCT aggregates come from one task."""

    keys: tuple[str, ...]
    aggregates: tuple[AggregateSpec, ...]
    enumerated: bool
    apart: bool = False


@frozen
class RExcept(t.SideBySide, t.WholeRows):
    """The bag difference of report rows."""


@frozen
class Deltas(t.Passing):
    """Rows with event times as changes: weight +1 at the report at which a row begins to count, -1
    at the report at which it ends.

    ``enumerated``: a replacement of static data shows at the next report.
    """

    enumerated: bool


@frozen
class Running(t.Grouping):
    """Groups kept by changes: the group's previous row is taken out, its next row is put in.

    The one group without keys exists while further inputs have rows, or, if reports are
    ``enumerated``, while the windows are not empty.
    """

    keys: tuple[str, ...]
    aggregates: tuple[AggregateSpec, ...]
    enumerated: bool


@frozen
class Multiplicity(t.SideBySide, t.WholeRows):
    """Counts of equal rows kept by changes."""

    shown: Shown


@frozen
class Net(t.WholeRows):
    """The changes of a report, equal rows netted: IStream, DStream, relation."""

    output: Output


@frozen
class Snapshot(t.Traits):
    """A result kept by changes (the first input) at its reports; the other inputs are the windows
    that decide the reports.

    ``level``: the windows. ``enumerated``: the last report follows from all elements, too.
    ``show_empty``: empty reports are written.
    """

    output: Output
    level: tuple[int, ...]
    reports: Reporting
    enumerated: bool
    show_empty: bool
    passes_slots: ClassVar[bool] = True


@frozen
class Standing(t.WholeRows):
    """A result kept by changes as report rows at each report of a list."""


@frozen
class RDistinct(t.WholeRows):
    """Equal report rows once."""


@frozen
class ROrder(t.Traits):
    """ORDER BY, OFFSET, LIMIT per report; ties by the terms' text."""

    keys: tuple[tuple[Expression, bool], ...]
    offset: int
    limit: int | None
    in_order: bool
    passes_slots: ClassVar[bool] = True


@frozen
class RNumber(t.Traits):
    """The number of each row in its partition and report, in place of a variable's value; ties by
    the terms' text.
    """

    variable: str
    function: str
    partition: tuple[str, ...]
    keys: tuple[tuple[Expression, bool], ...]
    passes_slots: ClassVar[bool] = True

    def source(self, name: str, variables: tuple[str, ...]) -> str | None:
        """Returns the variable itself, unless it is the number."""
        return None if name == self.variable else name


@frozen
class Changes(t.Passing):
    """Rows that began or ended at each report: IStream, DStream, relation.

    ``ranged``: a result of picks that may differ in ranges alone.
    """

    output: Output
    enumerated: bool
    ranged: bool = False

    def reads(self, weighted: bool) -> Facet:
        """Returns identities, unless rows pass at their start alone."""
        return Facet.ID if weighted or self.output is not Output.ISTREAM else NOTHING


@frozen
class Emit(t.Passing):
    """The result rows of a query."""


Spec = (
    Match | Entailed | Star | Scan | Constant | CountWindow | Session | Select
    | SubqueryWindow | StaticSubplan | Recent | UserOperator
    | Numbered | Instants | Narrow
    | Filter | Pick | ByWindow | Extend | Rename | Applied | Union | Occur | Hold | Join
    | MultiwayJoin | AdaptiveJoin | LinkedJoin | Arrange | ArrangeDistinct | ArrangeStream
    | RelaxedStatic | RelaxedStream
    | Report | Panes | ReportJoin | RGroup | RDistinct | RExcept | ROrder | RNumber | Closure
    | Changes
    | Deltas | Running | Multiplicity | Net | Snapshot | Standing | Emit
)  # fmt: skip

TIME = "#time"  # the column of a scan that is the event time
HOME = ("",)  # partitioned by the operator itself: all rows of a query's operator in one place


@frozen
class Op:
    """One physical operator of one query.

    ``windows``: indexes of the query's windows whose times the rows carry; None for report rows.
    ``exchange``: for each input the variables whose identities must partition its rows; None: no
    exchange. ``maybe``: variables that can be unbound. ``raw``: rows of a window that are not yet a
    set. ``placed``: the variables whose identities partition the rows; () at the source, HOME by
    operator. ``typed``: variables whose values are typed columns, so their text follows from the
    value facets. ``mixed``: other variables that are typed columns in some rows, since both kinds
    of rows were combined below: some rows have texts, and for others the texts follow from the
    values. It follows from the other fields.
    """

    spec: Spec
    inputs: tuple[Op, ...]
    variables: tuple[str, ...]
    windows: tuple[int, ...] | None
    stage: int
    exchange: tuple[tuple[str, ...] | None, ...] = ()
    placed: tuple[str, ...] = ()
    maybe: frozenset[str] = field(default_factory=frozenset)
    raw: bool = False
    weighted: bool = False
    typed: frozenset[str] = field(default_factory=frozenset)
    mixed: frozenset[str] = field(default=frozenset(), init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        assert self.typed <= set(self.variables), (
            "what is hidden here may be another variable above"
        )
        if any(i.typed or i.mixed for i in self.inputs):
            mixed = frozenset(
                v for v in self.variables if v not in self.typed and self._has_mixed_terms(v)
            )
            object.__setattr__(self, "mixed", mixed)

    @property
    def by_changes(self) -> bool:
        """Whether the rows are changes: report rows with weights."""
        return self.windows is None and self.weighted

    def _has_mixed_terms(self, name: str) -> bool:
        if self.spec.puts_together and any(name in i.typed for i in self.inputs):
            return True
        source = self.spec.source(name, self.variables)
        return any(source in i.mixed for i in self.inputs)


def all_operators(root: Op) -> Iterator[Op]:
    """Returns all operators of a query, each once."""
    waiting, seen = [root], set[int]()
    while waiting:
        op = waiting.pop()
        if id(op) not in seen:
            seen.add(id(op))
            waiting += op.inputs
            yield op
