"""The physical operators at the bottom of a query's tree: what is read of streams, windows and
static graphs.

They are parts of ``physical``, which says how they fit in.
"""

from __future__ import annotations

from levada.core.frozen import frozen
from levada.core.query_model import TriplePattern
from levada.core.rdf_terms import Term
from levada.plan.execution.row_layout import NOTHING, Facet
from levada.plan.logical.nodes import Alternative
from levada.plan.physical.traits import Counting, Netting, Passing, Plain, Traits


@frozen
class Match(Plain):
    """A triple pattern over a stream (``stream``) or over static graphs (``graphs``; None in it is
    the default graph). ``lifted``: the positions whose variables stand for the terms that
    some ``Pick`` above wants, and for no others.
    """

    pattern: TriplePattern
    stream: str | None
    graphs: tuple[str | None, ...] = ()
    lifted: tuple[int, ...] = ()


@frozen
class Entailed(Plain):
    """A triple pattern by its alternatives, over what ``Match`` is over; ``alike`` as in
    ``nodes.Entailed``.
    """

    pattern: TriplePattern
    alternatives: tuple[Alternative, ...]
    alike: tuple[tuple[Term, ...], ...]
    stream: str | None
    graphs: tuple[str | None, ...] = ()


@frozen
class Star(Plain):
    """Triple patterns of one subject over a stream whose elements are closed: joined inside the
    element, at the intake.
    """

    patterns: tuple[TriplePattern, ...]
    stream: str


@frozen
class Scan(Plain):
    """Columns of a tuple stream, one per output variable; ``sign``: the column of the weights, if
    rows have any.
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
    """All triples (or rows) of a stream with their numbers, in the place of a ``CountWindow`` of
    any length. ``bag`` as there.

    Whatever is read of it, it reads all of all variables: those who read it must have one axis of
    numbers, so it is there once.
    """

    window: int
    bag: bool

    def reads(self, weighted: bool) -> Facet:
        """All that there is."""
        return Facet.ID | Facet.TEXT | Facet.NUM


@frozen
class Recent(Traits):
    """Each row of a stream, at its instant, with each of the last ``count`` ones of its ``keys``,
    as they are then: what the windows ``now`` and ``window`` of it would give to a join.

    Of each variable its ``sources`` in the input, and whether it is of the row that is ``past``.
    """

    now: int
    window: int
    count: int
    keys: tuple[str, ...]
    sources: tuple[str, ...]
    past: tuple[bool, ...]

    def source(self, name: str, variables: tuple[str, ...]) -> str | None:
        """That."""
        return self.sources[variables.index(name)]


@frozen
class Session(Passing):
    """The rows of a session window: as they come, weighted, or ``ended``, at its end.

    Whether a session has ended follows from the times of all elements of its stream. ``bag``: no
    row comes twice, or all count.
    """

    window: int
    ended: bool
    bag: bool

    @property
    def has_instants(self) -> bool:
        """As they come, rows are taken back at the end of their session."""
        return not self.ended

    def reads(self, weighted: bool) -> Facet:
        """Of a set identities."""
        return NOTHING if self.bag else Facet.ID


@frozen
class SubqueryWindow(Passing):
    """Report rows as content of a window: what a query within gave at r is there from r on.

    ``level``: the windows of the query within. ``weighted``: its changes, with both signs; else
    elements of a stream.
    """

    window: int
    level: tuple[int, ...]
    weighted: bool


@frozen
class StaticSubplan(Netting):
    """The answer of a part that reads static data alone, as static rows; ``reread_graphs``: the
    graphs at whose replacement it changes.
    """

    reread_graphs: tuple[str | None, ...]


@frozen
class Select(Traits):
    """A triple pattern over rows (s, p, o) of a ``CountWindow``, and the variables that they have
    beside these.
    """

    pattern: TriplePattern
    beside: tuple[str, ...] = ()
