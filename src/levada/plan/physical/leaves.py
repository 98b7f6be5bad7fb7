"""The leaf operators of a query's tree: they read streams, windows and static graphs.

``operators`` describes how they fit in.
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
