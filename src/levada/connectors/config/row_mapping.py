"""Parses mapping files (YAML), which map a row to triples. The description half of
``connectors.ingest.tables.mapped_rows``.

    prefixes: {ssn: "http://purl.oclc.org/NET/ssnx/ssn#", sao: "http://purl.oclc.org/NET/sao/"}
    columns: {avgSpeed: integer}               types of columns; all others are strings
    header: [user, lat, lon]                   for CSV files without a header
    let:                                       formulas in order (``mapping_formula``)
      ts: TIMESTAMP
      time: -1 if avgSpeed == 0 else 1030 / avgSpeed
    triples:                                   for each row
      - <http://e/{_id}/time> a ssn:Observation
      - <http://e/{_id}/time> sao:hasValue {time}

A triple has three terms as in Turtle, without lists and brackets. ``{name}`` inserts a value: alone
as a literal of its type, in an IRI percent-encoded (``<{name}>``: the whole IRI unchanged), in a
quoted literal escaped, or in the label of a blank node, which is one node within its file. A name
may have any characters, some of them in quotes only (``levada.connectors.config.column_names``).
``{row}`` is a number that no other row of the stream has. A triple with a missing value is left
out. A row is one element. Cost: nothing a row.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from types import ModuleType
from typing import Any, Literal

import pyoxigraph as ox

from levada.connectors.config.column_names import PLACE, number_names, split_places
from levada.connectors.config.rml.logical_source import LogicalSource
from levada.core.code_loading import load_module
from levada.core.frozen import frozen
from levada.core.rdf_terms import RDF, XSD
from levada.errors import UsageError, near

How = Literal[
    "text", "value", "iri", "whole", "literal", "blank",
    "base", "iri_safe", "label", "language", "natural", "raw", "row", "unsafe",
]  # fmt: skip
"""The notations of a value. Those of the second line are of RML (``connectors.config.rml``):
``natural`` is a literal with the datatype that the source's format implies, ``iri_safe`` keeps
letters beyond ASCII, ``unsafe`` all characters. ``label`` is part of a blank node's label, ``row``
a number that no other row has, ``raw`` a text that joins compare. ``base`` is not a value: it is
the IRI before what follows in the term, unless that is an IRI by itself.
"""
ROW = "row"
_KEYS = ("prefixes", "columns", "header", "let", "triples")
_VALUE = PLACE.replace(" ", r"\ ")
_TERM = re.compile(
    rf"""\s*(?: (?P<iri> <(?>{_VALUE}|[^<>\s])*> )
             | (?P<value> {_VALUE} (?=[\s.]|$) )
             | (?P<literal> "(?:[^"\\]|\\.)*" )
               (?: (?P<tag> @[A-Za-z0-9-]+ ) | \^\^ (?P<type> <[^<>\s]*> | [\w-]*:[\w.-]* ) )?
             | (?P<blank> _:(?>{_VALUE}|\w)+ )
             | (?P<name> (?:[A-Za-z][\w-]*)?:(?>{_VALUE}|\.(?![\s.]*$|\s)|[\w%/-])* )
             | (?P<number> [+-]?[0-9]+(?:\.[0-9]+)? )
             | (?P<boolean> true | false )
             | (?P<a> a ) (?=\s) )""",
    re.VERBOSE,
)


@frozen
class Part:
    """A piece of a term: a text, or a column's value in one of the notations."""

    text: str
    how: How = "text"


Term = tuple[Part, ...]


@frozen
class TableJoin:
    """A triple, or quad, whose object is a term of the rows of a static table.

    ``terms``: subject, predicate and possibly graph, of a row; ``keys``: its texts that are
    compared with ``table_keys`` of the table. ``path``: of the file of ``source``, ``digest``: of
    its content when the stream was declared.
    """

    terms: tuple[Term, ...]
    keys: tuple[Term, ...]
    object: Term
    table_keys: tuple[Term, ...]
    source: LogicalSource
    path: str
    digest: str


@frozen
class RowMapping:
    """The content of a mapping file: names and types of columns, formulas by name, triples as
    terms; a fourth term is the graph.

    ``is_rml``: the file is RML, all columns are texts. Then it may also have an ``iterator``, texts
    ``nulls`` that are no values, and joins with static tables; ``is_csv``: it is of CSV.
    """

    columns: tuple[tuple[str, str], ...]
    header: tuple[str, ...]
    let: tuple[tuple[str, str], ...]
    triples: tuple[tuple[Term, ...], ...]
    is_rml: bool = False
    is_csv: bool = False
    iterator: str = ""
    nulls: tuple[str, ...] = ()
    joins: tuple[TableJoin, ...] = ()

    @property
    def needed_columns(self) -> dict[str, str]:
        """The columns that are read, with their types."""
        typed, made = dict(self.columns), {name for name, _ in self.let}
        made |= set() if self.is_rml else {ROW}
        # A formula may have the name of a column that it uses: that column is read, too.
        same_named = [name for name, formula in self.let if name in _formulas().names_of(formula)]
        return {
            name: typed.get(name, "string")
            for name in [*same_named, *self._names]
            if name not in made or name in same_named
        }

    @property
    def numbers_rows(self) -> bool:
        """Whether a triple or a formula uses the number of the row in the stream."""
        return not self.is_rml and ROW in self._names

    @property
    def _names(self) -> list[str]:
        """The names in formulas and triples."""
        used = [name for _, formula in self.let for name in _formulas().names_of(formula)]
        terms = [term for triple in self.triples for term in triple]
        terms += [term for join in self.joins for term in (*join.terms, *join.keys)]
        parts = (part for term in terms for part in term)
        return used + [part.text for part in parts if part.how not in ("text", "base", "row")]

    @property
    def has_graphs(self) -> bool:
        """Whether some triple is in a graph."""
        quads = any(len(triple) > 3 for triple in self.triples)
        return quads or any(len(join.terms) > 2 for join in self.joins)

    def types(self) -> dict[str, str]:
        """The types of all names that a triple or a time can use. Raises ``UsageError`` for an
        invalid formula.
        """
        types = {ROW: "integer", **self.needed_columns}
        for name, formula in self.let:
            types[name] = _formulas().compile_(formula, types)[1]
        return types


def _formulas() -> ModuleType:
    """Returns the module of formulas; the first mapping loads it, since it loads Polars."""
    return load_module("levada.connectors.config.mapping_formula")


def parse_mapping(path: str, document: Any) -> RowMapping:
    """Returns the mapping of a native mapping file with this document. Raises ``UsageError`` with
    the place of the fault.
    """
    try:
        mapping = _mapping(document)
        mapping.types()
        return mapping
    except UsageError as error:
        raise UsageError(f"The mapping file {path}: {error.message}", hint=error.hint) from error


def _mapping(document: Any) -> RowMapping:
    sections = _section(document, "it", dict)
    for key in sections:
        if key not in _KEYS:
            raise UsageError(f"{key} is not an option.", hint=near(str(key), _KEYS))
    prefixes = {
        str(k): str(v) for k, v in _section(sections.get("prefixes"), "prefixes", dict).items()
    }
    columns = {
        str(k): str(v) for k, v in _section(sections.get("columns"), "columns", dict).items()
    }
    for name, kind in columns.items():
        if kind not in _formulas().DTYPES:
            hint = near(kind, _formulas().DTYPES)
            raise UsageError(f"columns.{name}: {kind} is no type.", hint=hint)
    let = {str(k): str(v) for k, v in _section(sections.get("let"), "let", dict).items()}
    if ROW in let:
        raise UsageError("let.row: row is the number of the row.", hint="Choose another name.")
    for name, formula in let.items():
        _check_formula(f"let.{name}", formula)
    texts = _section(sections.get("triples"), "triples", list)
    if not texts:
        raise UsageError("it has no triples.", hint="Say triples: with a list of them.")
    triples = tuple(_triple(str(text), f"triples[{i}]", prefixes) for i, text in enumerate(texts))
    header = number_names([str(n) for n in _section(sections.get("header"), "header", list)])
    return RowMapping(tuple(columns.items()), header, tuple(let.items()), triples)


def _section(value: Any, place: str, kind: type[Any]) -> Any:
    if value is None:
        return kind()
    if not isinstance(value, kind):
        raise UsageError(f"{place} is a {'mapping' if kind is dict else 'list'}, not {value!r}.")
    return value


def _check_formula(place: str, formula: str) -> None:
    try:
        _formulas().names_of(formula)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UsageError(f"{place}: the formula {formula} is not well-formed.") from error


def _triple(text: str, place: str, prefixes: dict[str, str]) -> tuple[Term, ...]:
    terms, at = [], 0
    while at < len(text.rstrip(" .")):
        match = _TERM.match(text, at)
        if match is None:
            raise UsageError(f"{place}, column {at + 1}: no term begins here in {text}.")
        terms.append(tuple(_term(match, place, prefixes)))
        at = match.end()
    if len(terms) != 3:
        raise UsageError(f"{place}: {text} has {len(terms)} terms, a triple has three.")
    _check(terms, f"{place}: {text}")
    return (terms[0], terms[1], terms[2])


def _term(match: re.Match[str], place: str, prefixes: dict[str, str]) -> Iterator[Part]:
    """Yields the parts of a term."""
    text = (
        match[match.lastgroup or ""] if match.lastgroup not in ("tag", "type") else match["literal"]
    )
    if match["a"]:
        yield Part(f"<{RDF}type>")
    elif match["value"]:
        yield from _places(text, "value")
    elif match["number"] or match["boolean"]:
        kind = "boolean" if match["boolean"] else "decimal" if "." in text else "integer"
        yield Part(f'"{text}"^^<{XSD}{kind}>')
    elif match["name"]:
        yield from _places(f"<{_expand(text, place, prefixes)}>", "iri")
    elif match["iri"]:
        pieces = [is_name for _, is_name in split_places(text[1:-1])]
        yield from _places(text, "whole" if pieces == [True] else "iri")
    elif match["blank"]:
        yield from _places(text, "blank")
    else:
        yield from _places(match["literal"], "literal")
        if match["tag"] or match["type"]:
            kind = match["type"] or ""
            datatype = (
                kind
                if kind.startswith("<")
                else f"<{_expand(kind, place, prefixes)}>"
                if kind
                else ""
            )
            yield Part(match["tag"] or f"^^{datatype}")


def _expand(name: str, place: str, prefixes: dict[str, str]) -> str:
    prefix, _, local = name.partition(":")
    known = {"xsd": XSD, "rdf": RDF, **prefixes}
    if prefix not in known:
        raise UsageError(
            f"{place}: the prefix {prefix}: is not declared.", hint=near(prefix, known)
        )
    return known[prefix] + local


def _places(text: str, how: How) -> Iterator[Part]:
    """Yields the parts of a text with values."""
    for piece, is_name in split_places(text, literal=how == "literal"):
        yield Part(piece, how) if is_name else Part(piece)


def _check(terms: list[Term], what: str) -> None:
    """Checks with pyoxigraph that the terms are a triple with values in place."""
    sample = {"value": '"0"', "whole": "http://e/0"}
    line = (
        " ".join(
            "".join(p.text if p.how == "text" else sample.get(p.how, "0") for p in t) for t in terms
        )
        + " ."
    )
    try:
        (triple,) = ox.parse(line, ox.RdfFormat.N_TRIPLES)
    except SyntaxError as error:
        raise UsageError(f"{what} is no triple.") from error
    if getattr(triple.object, "direction", None) is not None:
        raise UsageError(f"{what} has a base direction (RDF 1.2), which is not supported.")
