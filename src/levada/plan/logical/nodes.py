"""The algebra: SPARQL 1.1 section 18.2 with windows as graph sources, and CQL's scans.

Immutable nodes; a query is a tree of them under ``Query``. Leaves read a *source*: a window, a
static graph by name, or the default graph. Solutions are bags of mappings from variable names to
terms.
"""

from __future__ import annotations

from levada.core.event_time import Window
from levada.core.expressions import Aggregate, Expression, Var
from levada.core.frozen import frozen
from levada.core.query_model import Form, Output, StreamWindow, TriplePattern
from levada.core.rdf_terms import Term


@frozen
class InWindow:
    """Reads the content of the query's window with this name (index into ``Query.windows``)."""

    index: int


@frozen
class InGraph:
    """Reads a static graph: ``name`` is its IRI, None the default graph."""

    name: str | None


@frozen
class InMerge:
    """Reads the RDF merge of these windows and, if ``static``, of the default graph.

    A triple in several of them exists once.
    """

    windows: tuple[int, ...]
    static: bool


Source = InWindow | InGraph | InMerge
"""A leaf reads a window, a static graph, or the merge of several."""


@frozen
class Reporting:
    """Restricts when a query is evaluated, beyond the kinds of its windows.

    ``clock`` (kind CLOCK): at its closes and nowhere else. ``nonempty``: not where all windows are
    empty.
    """

    clock: Window | None = None
    nonempty: bool = False


@frozen
class Unit:
    """The empty group pattern: one empty solution."""


@frozen
class Bgp:
    """A basic graph pattern over one source; at least one pattern.
    https://www.w3.org/TR/sparql11-query/#defn_BasicGraphPattern
    """

    source: Source
    patterns: tuple[TriplePattern, ...]


@frozen
class Alternative:
    """A triple pattern whose matches entail matches of another pattern, and the variables of that
    one.

    ``binds``: the variables of the other pattern that this one lacks, each a term or a variable of
    this one. ``resource``: the object is not a literal, since it becomes a subject.
    """

    pattern: TriplePattern
    binds: tuple[tuple[str, Var | Term], ...] = ()
    resource: bool = False


@frozen
class Entailed:
    """A triple pattern over the triples that a source entails: the set union of its alternatives
    over explicit triples.

    ``alike``: classes of terms that owl:sameAs connects. A value of a subject or object variable in
    one of them represents each of its members. With ``alike``, no variable is repeated in the
    pattern.
    """

    source: Source
    pattern: TriplePattern
    alternatives: tuple[Alternative, ...]
    alike: tuple[tuple[Term, ...], ...] = ()


@frozen
class TripleArrivals:
    """The occurrences of a window's triples that match a pattern: a solution for each, with its
    event time (ms) as ``variable``.
    """

    source: InWindow
    pattern: TriplePattern
    variable: str


@frozen
class Closure:
    """Distinct pairs of terms that paths of any length connect (18.4, ALP), as ``start`` and
    ``end``.

    ``child`` is one step: it binds both. ``many``: a path may have several steps (``*`` and ``+``,
    not ``?``). ``zero`` binds ``start`` to the terms that a path of no step connects with
    themselves; None: there are no such paths (``+``). ``ends``: the terms that start and end must
    be, None where free.

    https://www.w3.org/TR/sparql11-query/#defn_evalPP_ZeroOrMorePath
    """

    child: Node
    zero: Node | None
    start: str
    end: str
    many: bool
    ends: tuple[Term | None, Term | None]


@frozen
class Scan:
    """CQL: the rows of a window over a tuple stream; ``columns`` maps the used columns to
    variables.

    ``partition``: the columns for each of whose values a count window has the last rows.
    ``relation``: the rows are inserted and deleted, and all columns exist. ``operators``: the
    IRIs of the user's operators that make the rows, the first one first, each with the columns for
    each of whose values it keeps state.
    """

    source: InWindow
    columns: tuple[tuple[str, str], ...]
    partition: tuple[str, ...] = ()
    relation: bool = False
    operators: tuple[tuple[str, tuple[str, ...]], ...] = ()


@frozen
class SubQuery:
    """A sub-query: the reports of ``child`` over the windows ``level`` are the content of the
    window ``source``.

    With the output RELATION the content is the child's result from one of its reports to the next.
    Otherwise each reported row is an element of a stream at the time of its report. ``columns``
    maps the child's variables to those of this level.
    """

    source: InWindow
    child: Node
    level: tuple[int, ...]
    output: Output
    columns: tuple[tuple[str, str], ...]
    partition: tuple[str, ...] = ()


@frozen
class Values:
    """Inline data; None is UNDEF."""

    variables: tuple[str, ...]
    rows: tuple[tuple[Term | None, ...], ...]


@frozen
class Join:
    """All compatible pairs.
    https://www.w3.org/TR/sparql11-query/#defn_algJoin
    """

    left: Node
    right: Node


@frozen
class LeftJoin:
    """OPTIONAL; ``condition`` sees both sides (18.2.2.6), None is true.

    https://www.w3.org/TR/sparql11-query/#defn_algLeftJoin
    """

    left: Node
    right: Node
    condition: Expression | None


@frozen
class Minus:
    """MINUS (18.5): left solutions without a compatible right solution that binds one of their
    variables.

    https://www.w3.org/TR/sparql11-query/#defn_algMinus
    """

    left: Node
    right: Node


@frozen
class Exists:
    """FILTER EXISTS; ``negated``, NOT EXISTS: left solutions with, or without, compatible ones.

    ``condition`` sees both sides: the filters of the inner group that use variables of the outer
    one; None is true. The translation makes this node only where it means what substitution (18.6)
    means.

    https://www.w3.org/TR/sparql11-query/#defn_substitute
    """

    left: Node
    right: Node
    condition: Expression | None
    negated: bool


@frozen
class Mark:
    """EXISTS inside an expression: the left solutions with ``variable``, true if a compatible right
    solution exists.

    ``condition`` as in ``Exists``.
    """

    left: Node
    right: Node
    condition: Expression | None
    variable: str


@frozen
class Union:
    """The bag union.
    https://www.w3.org/TR/sparql11-query/#defn_algUnion
    """

    left: Node
    right: Node


@frozen
class Except:
    """CQL: the bag difference, the left count of a row minus its right count.

    Both sides have the same variables.
    """

    left: Node
    right: Node


@frozen
class Filter:
    """Keeps the solutions whose condition has the effective boolean value true; errors drop.

    https://www.w3.org/TR/sparql11-query/#defn_algFilter
    """

    child: Node
    condition: Expression


@frozen
class Extend:
    """BIND and expressions of SELECT: an error leaves the variable unbound.

    https://www.w3.org/TR/sparql11-query/#defn_extend
    """

    child: Node
    variable: str
    expression: Expression


@frozen
class Group:
    """GROUP BY variables (key expressions are Extends below) with named aggregates.

    Without keys there is one group, also over no solution. With keys, a key may be unbound.

    https://www.w3.org/TR/sparql11-query/#aggregateAlgebra
    """

    child: Node
    keys: tuple[str, ...]
    aggregates: tuple[tuple[str, Aggregate], ...]


@frozen
class Project:
    """Keeps these variables.
    https://www.w3.org/TR/sparql11-query/#defn_algProjection
    """

    child: Node
    variables: tuple[str, ...]


@frozen
class Distinct:
    """DISTINCT (and REDUCED, which may do the same).

    https://www.w3.org/TR/sparql11-query/#defn_algDistinct
    """

    child: Node


@frozen
class OrderBy:
    """ORDER BY: (expression, descending) pairs.

    https://www.w3.org/TR/sparql11-query/#defn_algOrdered
    """

    child: Node
    keys: tuple[tuple[Expression, bool], ...]


@frozen
class Slice:
    """OFFSET and LIMIT (None: no limit).

    https://www.w3.org/TR/sparql11-query/#defn_algSlice
    """

    child: Node
    offset: int
    limit: int | None


@frozen
class Number:
    """CQL: each solution with its number, as ``variable``, in the order of the keys.

    Solutions are numbered for each value of the variables ``partition``. ``function``:
    ``row_number`` breaks ties by all variables; ``rank`` and ``dense_rank`` give ties one number.
    ``count`` is the number of solutions of the partition.
    """

    child: Node
    variable: str
    function: str
    partition: tuple[str, ...]
    keys: tuple[tuple[Expression, bool], ...]


@frozen
class Conjunction:
    """The join of at least one part in any order, with the solutions for which all conditions are
    true.

    The optimizer makes it from a tree of joins and the filters above it.
    """

    parts: tuple[Node, ...]
    conditions: tuple[Expression, ...] = ()


@frozen
class Recent:
    """CQL: each row of a window [Now] with the last rows of its key, itself among them.

    It is the join of two leaves over the same rows. ``right`` has a count window for each value of
    the columns that both bind. The optimizer makes it.
    """

    left: Node
    right: Node


@frozen
class Top:
    """ORDER BY, OFFSET and LIMIT in one; ties are broken by the variables ``shown`` (None: all
    alike).

    The optimizer makes it.
    """

    child: Node
    keys: tuple[tuple[Expression, bool], ...]
    offset: int
    limit: int | None
    shown: tuple[str, ...] | None = None


@frozen
class Static:
    """A part of a query with windows that static data alone answer: it is evaluated once.

    The optimizer makes it.
    """

    child: Node


Node = (
    Unit
    | Bgp
    | Entailed
    | TripleArrivals
    | Closure
    | Scan
    | SubQuery
    | Values
    | Join
    | LeftJoin
    | Minus
    | Exists
    | Mark
    | Union
    | Except
    | Filter
    | Extend
    | Group
    | Project
    | Distinct
    | OrderBy
    | Slice
    | Number
    | Conjunction
    | Recent
    | Top
    | Static
)


@frozen
class Query:
    """A whole query, dialect-free.

    ``variables`` are the columns of the result in order (CONSTRUCT: the template's variables; ASK:
    none). ``template`` is CONSTRUCT's. ``graphs`` are the static graphs of FROM (None: the engine's
    default graph). ``registered`` is the name that REGISTER gives it, an IRI or a word ("": none).
    """

    form: Form
    pattern: Node
    variables: tuple[str, ...]
    windows: tuple[StreamWindow, ...]
    output: Output
    template: tuple[TriplePattern, ...] = ()
    graphs: tuple[str, ...] | None = None
    text: str = ""
    reports: Reporting = Reporting()
    registered: str = ""
