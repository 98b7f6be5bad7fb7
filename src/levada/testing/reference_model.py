"""The input and output of the naive reference: elements, queries over windows, reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pyoxigraph as ox

from levada.core.event_time import MIN, Window
from levada.core.frozen import frozen

OUTPUTS = ("RSTREAM", "ISTREAM", "DSTREAM", "RELATION")

Value = int | float | str | bool
"""A column's value in a tuple stream."""

Item = str | tuple[Value | None, ...]
"""An item in a window: a triple's N-Triples text, or a row."""

Solution = frozenset[tuple[str, str]]
"""One solution: (variable, canonical N-Triples text) pairs; an unbound variable is absent."""

Bag = Counter[Solution]
Answer = Bag | bool | None
"""The answer of a query at one instant: solutions, an ASK's boolean, or None if not evaluated."""

TripleTemplate = tuple[str, str, str]


@frozen
class Element:
    """An element of an RDF stream: time (ms) and its triples, N-Triples texts without the dot."""

    ts: int
    triples: tuple[str, ...]


@frozen
class Row:
    """An element of a tuple stream: time (ms) and the values of its schema's columns, in order.

    In a relation the row is inserted (``sign`` 1) or deleted (-1). None is NULL.
    """

    ts: int
    values: tuple[Value | None, ...]
    sign: int = 1


Streams = Mapping[str, Sequence[Element | Row]]
Graphs = Mapping[str | None, Sequence[str]]


@frozen
class ReferenceQuery:
    """A SPARQL query over windows.

    - ``sparql`` has ``GRAPH <name>`` in place of ``WINDOW <name>`` and no dataset clause.
      ``windows`` maps the windows' IRIs to stream and window (none: evaluated once).
    - ``graphs``: the static graphs of FROM (None: the default one). ``merged``: windows that are
      part of the default graph, together with the static one.
    - ``template``: for a CONSTRUCT, with ``?x``, ``_:b`` or canonical terms; ``sparql`` then
      selects its variables.
    - ``after``: the time of registration; elements with ts <= ``after`` do not count.
    - ``clock``: only its closes are reports. ``nonempty``: only times with a window that is not
      empty are reports.
    - ``entailment`` (none, rdfs, owl): each graph has its entailed triples, with the triples of
      ``ontology`` as its schema.
    - ``limit`` and ``offset``: those of a LIMIT without a total order, left out of ``sparql``.
    """

    sparql: str
    windows: Mapping[str, tuple[str, Window]]
    output: str = "RSTREAM"
    after: int = MIN
    empty_reports: bool = False
    template: tuple[TripleTemplate, ...] = ()
    graphs: tuple[str, ...] | None = None
    limit: int | None = None
    offset: int = 0
    clock: Window | None = None
    nonempty: bool = False
    merged: tuple[str, ...] = ()
    entailment: str = "none"
    ontology: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        assert self.output in OUTPUTS, "an output is RSTREAM, ISTREAM, DSTREAM or RELATION"
        assert self.limit is None or self.output == "RSTREAM", (
            "an undetermined LIMIT has no differences"
        )


@frozen
class ReferenceSql:
    """A CQL query: SQLite, or DuckDB, evaluates ``sql`` over one table for each alias of
    ``windows``.

    ``schemas`` has each stream's columns with their types (integer, double, string, boolean); the
    tables have a further column ``ts`` unless the schema has one. ``types``: the result's columns
    with their types. ``partitions``: the partition columns of count windows, by alias.
    ``relations``: the streams whose rows are inserted and deleted. ``views``: queries by name, in
    order. The reports of a view are a relation if its output is RELATION, else a stream, for later
    views and this query.
    """

    sql: str
    windows: Mapping[str, tuple[str, Window]]
    schemas: Mapping[str, Mapping[str, str]]
    types: Mapping[str, str]
    output: str = "RELATION"
    after: int = MIN
    empty_reports: bool = False
    clock: Window | None = None
    nonempty: bool = False
    partitions: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    relations: frozenset[str] = frozenset()
    views: Mapping[str, ReferenceSql] = field(default_factory=dict)
    duckdb: bool = False

    def __post_init__(self) -> None:
        assert self.output in OUTPUTS, "an output is RSTREAM, ISTREAM, DSTREAM or RELATION"


Question = ReferenceQuery | ReferenceSql


@dataclass(frozen=True)
class Report:
    """The report of a query at one time: ``solutions``, or ``boolean`` (ASK), or ``graph`` (the
    triples of a CONSTRUCT).

    The time of a query without windows is ``core.event_time.TIMELESS``. ``change`` is "insert" or
    "delete" for a relation's changes. With ``size``, any ``size`` of the solutions are right.
    """

    time: int
    solutions: Bag = field(default_factory=Counter)
    boolean: bool | None = None
    graph: frozenset[str] | None = None
    change: str | None = None
    size: int | None = None


def literal(value: Value) -> str:
    """Returns a column's value as canonical N-Triples text.

    >>> literal(2.5)
    '"2.5"^^<http://www.w3.org/2001/XMLSchema#double>'
    """
    return str(ox.Literal(value))


def value_of(text: str) -> Value:
    """Returns the value of a column's canonical N-Triples text.

    >>> value_of('"2.5"^^<http://www.w3.org/2001/XMLSchema#double>'), value_of('"a"')
    (2.5, 'a')
    """
    term = next(iter(ox.parse(f"<a:s> <a:p> {text} .".encode(), ox.RdfFormat.N_TRIPLES))).object
    assert isinstance(term, ox.Literal), "a column holds a literal"
    readers: Mapping[str, Callable[[str], Value]] = {
        "integer": int,
        "double": float,
        "boolean": "true".__eq__,
    }
    return readers.get(term.datatype.value.rpartition("#")[2], str)(term.value)


def canonical(item: Item) -> str:
    """Returns the text that orders the occurrences of one ts: the text of a triple.

    For a row it is its values as terms with spaces between.
    """
    return (
        item if isinstance(item, str) else " ".join("" if v is None else literal(v) for v in item)
    )
