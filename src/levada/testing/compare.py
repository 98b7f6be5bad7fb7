"""The comparison of two lists of reports, and a reader of the engine's NDJSON
(docs/architecture.md#judges).

Reports agree if they have the same times and, at each time, the same bags of solutions, where

- numbers are equal by value if their datatypes are, whatever the lexical form. Integers are equal
  exactly, decimals to one unit in the eighteenth place (the precision of a division). Doubles are
  equal to 1e-9 and floats to 1e-6 of their magnitude, since sums depend on the order;
- a reference's SAMPLE is equal to each of its members;
- if a report has a ``size`` (LIMIT without a total order), any part of that size is right;
- CONSTRUCT's graphs are equal up to the names of their blank nodes.

Equal solutions are paired by their texts first; only the remaining ones are matched pair by pair
(Kuhn's algorithm).
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

import pyoxigraph as ox

from levada.core.event_time import TIMELESS
from levada.core.rdf_terms import STRING, XSD, Blank, Iri, Literal, parse_term
from levada.testing.oracle_engines import parse_members
from levada.testing.reference_model import Bag, Report, Solution

_SIZES = ("long", "int", "short", "byte")
_SIGNS = ("nonNegative", "positive", "nonPositive", "negative")
_INTEGERS = frozenset(
    XSD + name
    for name in (
        "integer",
        *_SIZES,
        *(f"unsigned{s.capitalize()}" for s in _SIZES),
        *(f"{s}Integer" for s in _SIGNS),
    )
)
_TOLERANCE = {XSD + "double": 1e-9, XSD + "float": 1e-6}
_LAST_PLACE = Decimal(1).scaleb(-18)


def same(expected: Sequence[Report], got: Sequence[Report]) -> str | None:
    """Returns None if the reports agree; else the first difference as a text.

    The reports of ``got`` must come in time order.

    >>> same([Report(5)], []).splitlines()[0]
    'report 5: expected, not there'
    """
    times = [r.time for r in got]
    if times != sorted(times):
        return f"the reports are not in order: {times}"
    ours, theirs = _by_time(expected), _by_time(got)
    for key in sorted(ours.keys() | theirs.keys()):
        mine, other = ours.get(key), theirs.get(key)
        name = f"report {key[0]}" + f" ({key[1]})" * bool(key[1])
        if mine is None or other is None or len(mine) != 1 or len(other) != 1:
            return _show_unpaired(name, mine or [], other or [])
        difference = _difference(mine[0], other[0])
        if difference:
            return f"{name}: {difference}"
    return None


def same_queries(
    expected: Mapping[str, Sequence[Report]], got: Mapping[str, Sequence[Report]]
) -> str | None:
    """Compares the reports of each query by ``same``; a query without reports may be absent."""
    for name in sorted(expected.keys() | got.keys()):
        difference = same(expected.get(name, ()), got.get(name, ()))
        if difference:
            return f"query {name}, {difference}"
    return None


def _by_time(reports: Iterable[Report]) -> dict[tuple[int, str], list[Report]]:
    reports_by_time: dict[tuple[int, str], list[Report]] = {}
    for report in reports:
        reports_by_time.setdefault((report.time, report.change or ""), []).append(report)
    return reports_by_time


def _show_unpaired(name: str, mine: Sequence[Report], other: Sequence[Report]) -> str:
    if not other:
        return f"{name}: expected, not there\n" + "\n".join(map(_show_report, mine))
    if not mine:
        return f"{name}: not expected\n" + "\n".join(map(_show_report, other))
    return f"{name}: {len(mine)} expected, {len(other)} there"


def _difference(mine: Report, other: Report) -> str | None:
    if mine.boolean is not None or other.boolean is not None:
        return (
            None
            if mine.boolean is other.boolean
            else f"expected {mine.boolean}, got {other.boolean}"
        )
    if mine.graph is not None or other.graph is not None:
        if mine.graph is None or other.graph is None:
            return "one is a graph, the other is not"
        return _bag_difference(_triples(mine.graph), _triples(other.graph))
    return _bag_difference(mine.solutions, other.solutions, mine.size)


def _bag_difference(expected: Bag, got: Bag, size: int | None = None) -> str | None:
    """Returns the difference of two bags; with ``size``, ``got`` must be that many of
    ``expected``.
    """
    missing, surplus = list((expected - got).elements()), list((got - expected).elements())
    left_over, unmatched = _match(missing, surplus)
    if size is not None:
        left_over = []
        if got.total() != size:
            return f"expected {size} of {expected.total()} solutions, got {got.total()}"
    if not left_over and not unmatched:
        return None
    lines = [f"expected {expected.total()} solutions, got {got.total()}"]
    lines += ["  missing " + _show(s) for s in sorted(left_over, key=sorted)[:10]]
    lines += ["  surplus " + _show(s) for s in sorted(unmatched, key=sorted)[:10]]
    return "\n".join(lines)


def _match(left: list[Solution], right: list[Solution]) -> tuple[list[Solution], list[Solution]]:
    """Returns the unmatched solutions of both sides under a largest pairing of equal solutions."""
    partner: dict[int, int] = {}

    def pair(i: int, tried: set[int]) -> bool:
        for j in range(len(right)):
            if j in tried or not equal_solutions(left[i], right[j]):
                continue
            tried.add(j)
            if j not in partner or pair(partner[j], tried):
                partner[j] = i
                return True
        return False

    alone = [i for i in range(len(left)) if not pair(i, set())]
    return [left[i] for i in alone], [right[j] for j in range(len(right)) if j not in partner]


def equal_solutions(expected: Solution, got: Solution) -> bool:
    """Returns whether two solutions bind the same variables to equal terms."""
    mine, other = dict(expected), dict(got)
    return mine.keys() == other.keys() and all(
        equal_terms(mine[name], other[name]) for name in mine
    )


def equal_terms(expected: str, got: str) -> bool:
    """Returns whether two terms, as canonical texts, are equal by the rules of the module head.

    >>> equal_terms(f'"2.50"^^<{XSD}decimal>', f'"2.5"^^<{XSD}decimal>')
    True
    >>> equal_terms(f'"2"^^<{XSD}decimal>', f'"2"^^<{XSD}integer>')
    False
    """
    if expected == got:
        return True
    choice = parse_members(expected)
    if choice is not None:
        return any(equal_terms(member, got) for member in choice)
    mine, other = parse_term(expected), parse_term(got)
    if (
        not isinstance(mine, Literal)
        or not isinstance(other, Literal)
        or mine.datatype != other.datatype
    ):
        return False
    return _equal_values(mine.datatype, mine.lexical, other.lexical)


def _equal_values(datatype: str, mine: str, other: str) -> bool:
    try:
        if datatype in _INTEGERS:
            return int(mine) == int(other)
        if datatype == XSD + "decimal":
            return abs(Decimal(mine) - Decimal(other)) <= _LAST_PLACE
        if datatype in _TOLERANCE:
            a, b = float(mine), float(other)
            return (math.isnan(a) and math.isnan(b)) or math.isclose(
                a, b, rel_tol=_TOLERANCE[datatype], abs_tol=1e-12
            )
    except (ValueError, InvalidOperation):
        return False
    return False


def _triples(graph: Iterable[str]) -> Bag:
    """Returns a graph as a bag of solutions s, p, o, its blank nodes under canonical names."""
    text = "".join(f"{t} .\n" for t in graph)
    dataset = ox.Dataset(ox.parse(text.encode(), ox.RdfFormat.N_TRIPLES))
    dataset.canonicalize(ox.CanonicalizationAlgorithm.RDFC_1_0)
    return Counter(
        frozenset({("s", str(q.subject)), ("p", str(q.predicate)), ("o", str(q.object))})
        for q in dataset
    )


def _show(solution: Solution) -> str:
    return " ".join(f"?{name}={text}" for name, text in sorted(solution))


def _show_report(report: Report) -> str:
    if report.boolean is not None:
        return f"  {report.boolean}"
    if report.graph is not None:
        return "\n".join(f"  {triple} ." for triple in sorted(report.graph))
    return "\n".join(
        f"  {n} x {_show(s)}"
        for s, n in sorted(report.solutions.items(), key=lambda x: sorted(x[0]))
    )


def read_ndjson(lines: Iterable[str | bytes]) -> dict[str, list[Report]]:
    """Returns the engine's result lines as reports by query, in order.

    >>> read_ndjson(['{"query": "q", "report": 7, "head": {}, "boolean": true}'])["q"][0].boolean
    True
    """
    reports_by_query: dict[str, list[Report]] = {}
    for line in lines:
        if line.strip():
            data = json.loads(line)
            reports_by_query.setdefault(data["query"], []).append(_read(data))
    return reports_by_query


def _read(data: Mapping[str, Any]) -> Report:
    time, change = TIMELESS if data["report"] is None else data["report"], data.get("change")
    if "boolean" in data:
        return Report(time, boolean=data["boolean"], change=change)
    if "graph" in data:
        quads = ox.parse(data["graph"].encode(), ox.RdfFormat.N_TRIPLES)
        return Report(time, graph=frozenset(str(q.triple) for q in quads), change=change)
    bindings = data["results"]["bindings"]
    solutions = Counter(
        frozenset((name, _term(term)) for name, term in row.items()) for row in bindings
    )
    return Report(time, solutions, change=change)


_READ: Mapping[str, Callable[[Mapping[str, str]], str]] = {
    "uri": lambda t: str(Iri(t["value"])),
    "bnode": lambda t: str(Blank(t["value"])),
    "literal": lambda t: str(Literal(t["value"], t.get("datatype", STRING), t.get("xml:lang", ""))),
}


def _term(term: Mapping[str, str]) -> str:
    """Returns a term of SPARQL 1.1 Query Results JSON as canonical text."""
    assert term["type"] in _READ, f"a term's type is uri, bnode or literal, not {term['type']}"
    return _READ[term["type"]](term)
