"""The abstract syntax tree of SPARQL 1.1 Query with RSP-QL's clauses: the content of a text, before
its meaning is resolved.

Names are resolved (prefixes and BASE), literals have their datatype, lists and blank node property
lists are expanded to triples, in the text's order. A ``span``, the start of a node, takes no part
in equality. (SPARQL 1.1, section 19.8.)
"""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum

from levada.core.frozen import frozen
from levada.core.rdf_terms import Iri, Literal
from levada.errors import Span
from levada.language.sparql.term_ast import (
    BlankNode,
    Constant,
    Name,
    Node,
    Path,
    PathAlternative,
    PathInverse,
    PathNegated,
    PathRepeat,
    PathSequence,
    Var,
    Verb,
)
from levada.language.sparql.window_ast import (
    Instant,
    LastTriples,
    Range,
    ReportClause,
    Reporting,
    Session,
    WindowSpec,
)

__all__ = [
    "BlankNode",
    "Constant",
    "Instant",
    "LastTriples",
    "Name",
    "Node",
    "Path",
    "PathAlternative",
    "PathInverse",
    "PathNegated",
    "PathRepeat",
    "PathSequence",
    "Range",
    "ReportClause",
    "Reporting",
    "Session",
    "Var",
    "Verb",
    "WindowSpec",
]


@frozen
class Triple:
    """A triple pattern; the predicate may be a path."""

    subject: Node
    predicate: Verb
    object: Node


# --- expressions (section 17)
@frozen
class Operation:
    """An operator by its SPARQL spelling; ``||`` and ``&&`` take two or more operands, IN the value
    and then the list.
    """

    operator: str
    operands: tuple[Expression, ...]


@frozen
class BuiltIn:
    """A built-in function by its name in upper case."""

    name: str
    args: tuple[Expression, ...]
    span: Span = field(compare=False, repr=False)


@frozen
class FunctionCall:
    """A function named by an IRI: a cast or an extension."""

    name: Iri
    args: tuple[Expression, ...]
    distinct: bool
    span: Span = field(compare=False, repr=False)


@frozen
class Aggregate:
    """An aggregate by its name in upper case; ``arg`` None is ``*``, ``separator`` is
    GROUP_CONCAT's.
    """

    name: str
    arg: Expression | None
    distinct: bool
    separator: str | None
    span: Span = field(compare=False, repr=False)


@frozen
class Exists:
    """``EXISTS {}`` and ``NOT EXISTS {}``."""

    pattern: Group
    negated: bool
    span: Span = field(compare=False, repr=False)


Expression = Var | Constant | Operation | BuiltIn | FunctionCall | Aggregate | Exists


# --- graph patterns (section 5 to 13)
@frozen
class Triples:
    """Triple patterns that follow each other without another element between them."""

    triples: tuple[Triple, ...]


@frozen
class Group:
    """``{ ... }``: its elements in order."""

    elements: tuple[Element, ...]
    span: Span = field(compare=False, repr=False)


@frozen
class Optional:
    """``OPTIONAL {}``."""

    group: Group
    span: Span = field(compare=False, repr=False)


@frozen
class Union:
    """``{} UNION {} ...``; at least two."""

    branches: tuple[Group, ...]


@frozen
class Minus:
    """``MINUS {}``."""

    group: Group
    span: Span = field(compare=False, repr=False)


@frozen
class Graph:
    """``GRAPH name {}``; a variable also ranges over these ``windows``, which FROM NAMED STREAM
    makes graphs.
    """

    name: Name
    group: Group
    span: Span = field(compare=False, repr=False)
    windows: tuple[str, ...] = ()


@frozen
class Window:
    """RSP-QL: ``WINDOW name {}``. CQELS-QL's ``STREAM ?s [spec] {}`` ranges over ``streams``.

    Without a spec it ranges over the streams of the windows.
    """

    name: Name
    group: Group
    span: Span = field(compare=False, repr=False)
    streams: bool = False
    spec: WindowSpec | None = None


@frozen
class Service:
    """``SERVICE [SILENT] name {}``."""

    name: Name
    silent: bool
    group: Group
    span: Span = field(compare=False, repr=False)


@frozen
class Filter:
    """``FILTER condition``."""

    condition: Expression
    span: Span = field(compare=False, repr=False)


@frozen
class Bind:
    """``BIND (expression AS variable)``."""

    expression: Expression
    variable: Var
    span: Span = field(compare=False, repr=False)


@frozen
class InlineData:
    """``VALUES``; None is UNDEF."""

    variables: tuple[Var, ...]
    rows: tuple[tuple[Iri | Literal | None, ...], ...]
    span: Span = field(compare=False, repr=False)


@frozen
class SubSelect:
    """A query in braces."""

    select: Select
    where: Group
    modifiers: Modifiers
    values: InlineData | None


Element = (
    Triples
    | Group
    | Optional
    | Union
    | Minus
    | Graph
    | Window
    | Service
    | Filter
    | Bind
    | InlineData
    | SubSelect
)


# --- clauses of a query (sections 11, 15, 16)
class Duplicates(StrEnum):
    """The treatment of equal solutions by SELECT."""

    ALL = "ALL"
    DISTINCT = "DISTINCT"
    REDUCED = "REDUCED"


@frozen
class Projected:
    """A variable of SELECT, or ``(expression AS variable)``."""

    variable: Var
    expression: Expression | None


@frozen
class Select:
    """SELECT; ``projection`` None is ``*``."""

    duplicates: Duplicates
    projection: tuple[Projected, ...] | None
    span: Span = field(compare=False, repr=False)


@frozen
class Construct:
    """CONSTRUCT with its template (of the short form: its pattern)."""

    template: tuple[Triple, ...]
    span: Span = field(compare=False, repr=False)


@frozen
class Ask:
    """ASK."""

    span: Span = field(compare=False, repr=False)


@frozen
class Describe:
    """DESCRIBE; ``names`` None is ``*``."""

    names: tuple[Name, ...] | None
    span: Span = field(compare=False, repr=False)


Form = Select | Construct | Ask | Describe


@frozen
class GroupKey:
    """A key of GROUP BY; ``variable`` is the name after AS, or None."""

    expression: Expression
    variable: Var | None


@frozen
class OrderKey:
    """A key of ORDER BY."""

    expression: Expression
    descending: bool


@frozen
class Modifiers:
    """GROUP BY, HAVING, ORDER BY, LIMIT, OFFSET; empty or None where not given."""

    group_by: tuple[GroupKey, ...] = ()
    having: tuple[Expression, ...] = ()
    order_by: tuple[OrderKey, ...] = ()
    limit: int | None = None
    offset: int | None = None


@frozen
class WindowClause:
    """``FROM NAMED WINDOW name ON stream [spec]``, or its equivalent in another dialect.

    ``merged``: C-SPARQL's ``FROM STREAM``: no pattern names the window, it is part of the default
    graph. A variable represents each stream in turn; then ``name`` belongs to no window.
    """

    name: Constant
    stream: Name
    spec: WindowSpec
    span: Span = field(compare=False, repr=False)
    merged: bool = False


@frozen
class From:
    """``FROM graph`` and ``FROM NAMED graph``."""

    graph: Constant
    named: bool
    span: Span = field(compare=False, repr=False)


@frozen
class Register:
    """``REGISTER RSTREAM name AS``; ``operator`` in upper case.

    For ``REGISTER QUERY`` and ``STREAM`` it is the dialect's.
    """

    operator: str
    name: Constant
    span: Span = field(compare=False, repr=False)


@frozen
class QueryUnit:
    """A whole query text. ``where`` is None only for a DESCRIBE without a pattern; ``base`` is the
    last BASE in force.

    ``output`` is RSTREAM, ISTREAM or DSTREAM, from REGISTER or from the dialect. ``reporting``: the
    reports and the start that the text defines; the dialect defines the rest. ``report_clauses``:
    the clauses from which ``reporting`` follows, in order. ``entailment``: the regime that the text
    names, as a word of the option.
    """

    register: Register | None
    form: Form
    datasets: tuple[From, ...]
    windows: tuple[WindowClause, ...]
    where: Group | None
    modifiers: Modifiers
    values: InlineData | None
    base: str | None = None
    output: str = "RSTREAM"
    reporting: Reporting = field(default_factory=Reporting)
    report_clauses: tuple[ReportClause, ...] = field(default=(), compare=False, repr=False)
    entailment: str = ""
