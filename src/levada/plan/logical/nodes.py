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
    """Reads the RDF merge of these windows and, if ``static``, of the default graph: a triple in
    two of them is there once.
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
    """A triple pattern whose matches entail matches of another, and that one's variables.

    ``binds``: the variables that stand in the other pattern and not in this one, each a term or a
    variable of this one.
    ``resource``: the object is no literal, since it becomes a subject.
    """

    pattern: TriplePattern
    binds: tuple[tuple[str, Var | Term], ...] = ()
    resource: bool = False


@frozen
class Entailed:
    """A triple pattern over the triples that a source entails: the set union of its alternatives
    over what is there.

    ``alike`` are classes of terms that owl:sameAs connects: a value of a variable that is a subject
    or an object in one of them stands for each of its members. No variable stands twice in the
    pattern where there are any.
    """

    source: Source
    pattern: TriplePattern
    alternatives: tuple[Alternative, ...]
    alike: tuple[tuple[Term, ...], ...] = ()


@frozen
class Came:
    """The comings of a window's triples that match a pattern: a solution for each, with its event
    time (ms) as ``variable``.
    """

    source: InWindow
    pattern: TriplePattern
    variable: str


@frozen
class Closure:
    """What paths of any length connect (18.4, ALP): distinct pairs of terms, as the variables
    ``start`` and ``end``.

    ``child`` is one step: it binds both. ``many``: a path may have more than one (``*`` and ``+``,
    not ``?``). ``zero`` binds ``start`` to the terms that a path of no step connects with
    themselves; None: there is none (``+``). ``ends``: the terms that start and end are given to be,
    None where they are free.

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
    """CQL: the rows of a window over a tuple stream; ``columns`` maps column names to variable
    names, used ones only.

    ``partition``: the columns of each of whose values a count window holds the last rows.
    ``relation``: the rows are inserted and deleted, and all columns are there.
    """

    source: InWindow
    columns: tuple[tuple[str, str], ...]
    partition: tuple[str, ...] = ()
    relation: bool = False


@frozen
class SubQuery:
    """A query within the query: what ``child`` over the windows ``level`` reports is the content of
    the window ``source``.

    With the output RELATION the content is the child's result, as it is from one of its reports to
    the next; else each row that is reported is an element of a stream at the time of its report.
    ``columns`` maps the child's variables to those of this level.
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
    """MINUS (18.5): the left solutions without a compatible right one that binds some variable that
    they bind, too.

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
    """EXISTS inside an expression: the left solutions, each with ``variable``: whether it has a
    compatible right one.

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
    """CQL: the bag difference; a row stands as often as on the left more than on the right. Both
    sides have the same variables.
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
class Conjunction:
    """The join of all parts in whatever order, and of its solutions those for which all conditions
    are true; at least one part. The optimizer makes it: a tree of joins and the filters above it.
    """

    parts: tuple[Node, ...]
    conditions: tuple[Expression, ...] = ()


@frozen
class Recent:
    """CQL: each row of a window [Now] with the last rows of its key, itself among them: the join of
    two leaves over the same rows, ``right`` with a count window of each value of the columns that
    both bind. The optimizer makes it.
    """

    left: Node
    right: Node


@frozen
class Top:
    """ORDER BY, OFFSET and LIMIT in one; ties are broken by the variables ``shown`` first, None: by
    all alike. The optimizer makes it.
    """

    child: Node
    keys: tuple[tuple[Expression, bool], ...]
    offset: int
    limit: int | None
    shown: tuple[str, ...] | None = None


@frozen
class Static:
    """A part of a query with windows that static data alone answer, the same at every report: it is
    evaluated once. The optimizer makes it.
    """

    child: Node


Node = (
    Unit
    | Bgp
    | Entailed
    | Came
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
