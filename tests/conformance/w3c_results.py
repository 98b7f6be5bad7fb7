"""What a W3C test expects, read from any of the suite's formats, and whether an answer is that.

An answer is a boolean (ASK), a graph (CONSTRUCT) or a sequence of solutions. Solutions are equal as
bags, up to the names of blank nodes; those of a query with ORDER BY as sequences. Terms are equal
if their texts are, or if they are numbers of one datatype and one value (a computed number has no
lexical form of its own). With ``mf:LaxCardinality`` (REDUCED) how often a solution comes is free.
CSV knows no types: there the values are compared.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path

import pyoxigraph as ox

Object = ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple
RS = "http://www.w3.org/2001/sw/DataAccess/tests/result-set#"
XSD = "http://www.w3.org/2001/XMLSchema#"
Row = frozenset[tuple[str, str]]
"""A solution: (variable, canonical N-Triples text) pairs; of a graph a triple, under s, p, o."""

INTEGERS = ("integer", "int", "long", "short", "byte", "nonNegativeInteger", "positiveInteger",
            "nonPositiveInteger", "negativeInteger", "unsignedInt", "unsignedLong",
            "unsignedShort", "unsignedByte")  # fmt: skip


@dataclass(frozen=True)
class Expected:
    """A result: ``boolean``, or ``rows`` (a graph's triples if ``graph``). ``plain``: terms are
    values without types (CSV).
    """

    boolean: bool | None = None
    rows: tuple[Row, ...] = ()
    graph: bool = False
    plain: bool = False


def expected(path: Path, form: str) -> Expected:
    """The result in a file; ``form`` is the query's: SELECT, ASK or CONSTRUCT."""
    if path.suffix == ".csv":
        return _csv(path)
    if path.suffix in (".srx", ".srj", ".tsv"):
        return _results(path)
    store = ox.Dataset(ox.parse(path=str(path), base_iri=f"file://{path}"))
    if form == "CONSTRUCT":
        return Expected(
            rows=tuple(row(s=str(q.subject), p=str(q.predicate), o=str(q.object)) for q in store),
            graph=True,
        )
    return _vocabulary(store)


def row(**terms: str | None) -> Row:
    """A solution."""
    return frozenset((name, text) for name, text in terms.items() if text is not None)


def _results(path: Path) -> Expected:
    formats = {
        "srx": ox.QueryResultsFormat.XML,
        "srj": ox.QueryResultsFormat.JSON,
        "tsv": ox.QueryResultsFormat.TSV,
    }
    return read_solutions(ox.parse_query_results(path=str(path), format=formats[path.suffix[1:]]))


def read_solutions(found: ox.QuerySolutions | ox.QueryBoolean) -> Expected:
    """What pyoxigraph has read."""
    if isinstance(found, ox.QueryBoolean):
        return Expected(boolean=bool(found))
    names = [v.value for v in found.variables]
    texts = (
        {n: None if t is None else str(t) for n, t in zip(names, r, strict=True)} for r in found
    )
    return Expected(rows=tuple(row(**terms) for terms in texts))


def _csv(path: Path) -> Expected:
    with path.open(newline="") as file:
        return read_csv(file)


def read_csv(text: Iterable[str]) -> Expected:
    """The solutions of a CSV text; an empty field is unbound."""
    head, *lines = csv.reader(text)
    rows = ({n: v or None for n, v in zip(head, line, strict=True)} for line in lines)
    return Expected(rows=tuple(row(**terms) for terms in rows), plain=True)


def _vocabulary(store: ox.Dataset) -> Expected:
    """A result as a graph of the result-set vocabulary."""
    for quad in store.quads_for_predicate(ox.NamedNode(RS + "boolean")):
        assert isinstance(quad.object, ox.Literal)
        return Expected(boolean=quad.object.value == "true")
    found = []
    for quad in store.quads_for_predicate(ox.NamedNode(RS + "solution")):
        named = {
            _value(store, b, "variable"): str(_objects(store, b, "value")[0])
            for b in _objects(store, quad.object, "binding")
        }
        ordered = bool(_objects(store, quad.object, "index"))
        index = int(_value(store, quad.object, "index")) if ordered else 0
        found.append((index, row(**named)))
    return Expected(rows=tuple(r for _, r in sorted(found, key=lambda pair: pair[0])))


def _objects(store: ox.Dataset, subject: Object, name: str) -> list[Object]:
    assert isinstance(subject, ox.BlankNode)
    return [q.object for q in store.quads_for_subject(subject) if q.predicate.value == RS + name]


def _value(store: ox.Dataset, subject: Object, name: str) -> str:
    """The text of a property that is there once."""
    (found, *_) = _objects(store, subject, name)
    assert not isinstance(found, ox.Triple)
    return found.value


def difference(want: Expected, got: Expected, *, ordered: bool, lax: bool) -> str | None:
    """None if an answer is what was expected; else what is not, for people."""
    if want.boolean is not None or got.boolean is not None:
        return (
            None if want.boolean is got.boolean else f"expected {want.boolean}, got {got.boolean}"
        )
    ours, theirs = list(map(_by_value, want.rows)), list(map(_by_value, got.rows))
    if want.plain:
        ours, theirs = list(want.rows), list(got.rows if got.plain else map(_plain, got.rows))
    if lax or want.graph:
        ours, theirs = list(dict.fromkeys(ours)), list(dict.fromkeys(theirs))
    if ordered and not _in_step(ours, theirs):
        return _show("as a sequence", ours, theirs)
    return None if isomorphic(ours, theirs) else _show("as a bag", ours, theirs)


def isomorphic(ours: Sequence[Row], theirs: Sequence[Row]) -> bool:
    """Whether two bags of solutions are equal under some renaming of blank nodes, one to one."""
    if Counter(map(_blankless, ours)) != Counter(map(_blankless, theirs)):
        return False
    left = [r for r in ours if _blanks(r)]
    return _assign(
        sorted(left, key=lambda r: -len(_blanks(r))), [r for r in theirs if _blanks(r)], {}, {}
    )


def _assign(
    left: list[Row], right: list[Row], there: Mapping[str, str], back: Mapping[str, str]
) -> bool:
    if not left:
        return True
    first, *rest = left
    for i, other in enumerate(right):
        found = _unified(first, other, there, back)
        if found is not None and _assign(rest, right[:i] + right[i + 1 :], *found):
            return True
    return False


def _unified(
    ours: Row, theirs: Row, there: Mapping[str, str], back: Mapping[str, str]
) -> tuple[dict[str, str], dict[str, str]] | None:
    """The renaming, extended so that these two solutions are equal."""
    mine, other = dict(ours), dict(theirs)
    if mine.keys() != other.keys():
        return None
    there, back = dict(there), dict(back)
    for name, text in mine.items():
        if text.startswith("_:") and other[name].startswith("_:"):
            if (
                there.setdefault(text, other[name]) != other[name]
                or back.setdefault(other[name], text) != text
            ):
                return None
        elif text != other[name]:
            return None
    return there, back


def _in_step(ours: Sequence[Row], theirs: Sequence[Row]) -> bool:
    there: dict[str, str] = {}
    back: dict[str, str] = {}
    if len(ours) != len(theirs):
        return False
    for mine, other in zip(ours, theirs, strict=True):
        found = _unified(mine, other, there, back)
        if found is None:
            return False
        there, back = found
    return True


def _blanks(solution: Row) -> set[str]:
    return {text for _, text in solution if text.startswith("_:")}


def _blankless(solution: Row) -> Row:
    return frozenset((name, "_:" if text.startswith("_:") else text) for name, text in solution)


def _by_value(solution: Row) -> Row:
    return frozenset((name, value(text)) for name, text in solution)


def value(text: str) -> str:
    """A term's text, a number's in one form.

    >>> value('"1.50"^^<http://www.w3.org/2001/XMLSchema#decimal>') == value('"1.5"^^<http://www.w3.org/2001/XMLSchema#decimal>')
    True
    """
    if not text.endswith(">") or not text.startswith('"') or XSD not in text:
        return text
    lexical, _, name = text[1:-1].rpartition('"^^<' + XSD)
    try:
        if name in INTEGERS:
            return f'"{int(lexical)}"^^{name}'
        if name == "decimal":
            return f'"{Decimal(lexical).normalize()}"^^{name}'
        if name in ("double", "float"):
            return f'"{float(lexical)!r}"^^{name}'
    except (ValueError, InvalidOperation):
        return text
    return text


def _plain(solution: Row) -> Row:
    """What CSV tells of a solution."""
    return frozenset((name, _plain_term(text)) for name, text in solution)


def _plain_term(text: str) -> str:
    if text.startswith("_:"):
        return text
    term = next(iter(ox.parse(f"<a:a> <a:b> {text} .".encode(), ox.RdfFormat.N_TRIPLES))).object
    return str(term.value)


def _show(how: str, ours: Sequence[Row], theirs: Sequence[Row]) -> str:
    mine, other = Counter(ours), Counter(theirs)
    lines = [f"different {how}: expected {len(ours)}, got {len(theirs)}"]
    lines += ["  missing " + _text(r) for r in (mine - other).elements()][:8]
    lines += ["  surplus " + _text(r) for r in (other - mine).elements()][:8]
    return "\n".join(lines)


def _text(solution: Row) -> str:
    return " ".join(f"?{name}={text}" for name, text in sorted(solution))
