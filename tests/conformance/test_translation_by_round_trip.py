"""The translation against an independent engine: algebra, written as SPARQL again, must mean what
the query meant.

Every W3C evaluation test whose query the translation accepts is translated, its algebra is printed
as nested SPARQL groups in which each node stands alone (so that no rule of 18.2 is needed to read
it back), and pyoxigraph answers both texts over the test's data. The bags of solutions must be
equal.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pyoxigraph as ox
import pytest

from levada.core import expressions as ex
from levada.core.expressions import Function
from levada.core.rdf_terms import Iri, Literal
from levada.errors import QueryError
from levada.language import parse
from levada.language.sparql import ast
from levada.language.translate.sparql.translate import translate
from levada.plan.logical import nodes as n
from levada.plan.logical.traversal import level

SUITE = Path(__file__).parents[2].parent / "shared" / "data" / "rdf-tests" / "sparql"
MF = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
QT = "http://www.w3.org/2001/sw/DataAccess/tests/test-query#"
WINDOW = parse("ASK FROM NAMED WINDOW <urn:w> ON <urn:s> [NOW] {}").windows

# Their solutions differ from one evaluation to the next, or LIMIT chooses freely.
VOLATILE = ("RAND", "UUID", "BNODE", "NOW()", "SAMPLE", "LIMIT", "OFFSET")
# What the two sides cannot be compared on.
SKIPPED = {
    "graph-empty-not-exist.rq": (
        "a graph that does not exist is an error of the engine; the algebra need not tell"
    ),
    "case-insensitive-booleans.rq": (
        "pyoxigraph does not read TRUE, which the notes of section 19.8 allow"
    ),
}


def variable(name: str) -> str:
    return "?" + name.replace(".", "dot").replace("_:", "blank")


def value(node: ex.Expression) -> str:
    match node:
        case ex.Var(name):
            return variable(name)
        case ex.Const(term):
            return str(term)
        case ex.Aggregate(function, arg, distinct, str(separator)) if arg is not None:
            between = str(Literal(separator))
            return (
                f"{function.value}({'DISTINCT ' if distinct else ''}{value(arg)}; "
                f"SEPARATOR={between})"
            )
        case ex.Aggregate(function, arg, distinct):
            shown = "*" if arg is None else value(arg)
            return f"{function.value}({'DISTINCT ' if distinct else ''}{shown})"
        case ex.Call(Function.CAST, (ex.Const(Iri(name)), arg)):
            return f"<{name}>({value(arg)})"
        case ex.Call(Function.NOT | Function.PLUS | Function.MINUS as function, (arg,)):
            return f"({function.value.removeprefix('unary ')} {value(arg)})"
        case ex.Call(Function.IN | Function.NOT_IN as function, (first, *items)):
            return f"({value(first)} {function.value} ({', '.join(map(value, items))}))"
        case ex.Call(function, (left, right)) if not function.value[0].isalpha():
            return f"({value(left)} {function.value} {value(right)})"
        case ex.Call(Function.IRI, (arg, ex.Const(base))):
            return f"IRI({value(arg)})" if base else ""  # both texts have the same base
        case ex.Call(function, args):
            return f"{function.value}({', '.join(map(value, args))})"
        case ex.Param():
            raise AssertionError("parameters come after planning")


def group(node: n.Node) -> str:
    """A node as a group of its own, in braces."""
    match node:
        case n.Unit():
            return "{ }"
        case n.Bgp(n.InGraph(name), patterns):
            triples = " . ".join(
                " ".join(
                    variable(p.name) if isinstance(p, ex.Var) else str(p) for p in triple.positions
                )
                for triple in patterns
            )
            return f"{{ {triples} }}" if name is None else f"{{ GRAPH <{name}> {{ {triples} }} }}"
        case n.Values(variables, rows):
            data = " ".join(
                f"({' '.join('UNDEF' if t is None else str(t) for t in row)})" for row in rows
            )
            return f"{{ VALUES ({' '.join(map(variable, variables))}) {{ {data} }} }}"
        case n.Join(left, right):
            return f"{{ {group(left)} {group(right)} }}"
        case n.Union(left, right):
            return f"{{ {group(left)} UNION {group(right)} }}"
        case n.LeftJoin(left, right, condition):
            kept = "" if condition is None else f" FILTER({value(condition)})"
            return f"{{ {group(left)} OPTIONAL {{ {group(right)}{kept} }} }}"
        case n.Minus(left, right):
            return f"{{ {group(left)} MINUS {group(right)} }}"
        case n.Exists(left, right, condition, negated):
            kept = "" if condition is None else f" FILTER({value(condition)})"
            return f"{{ {group(left)} FILTER {'NOT ' * negated}EXISTS {{ {group(right)}{kept} }} }}"
        case n.Mark(left, right, condition, name):
            kept = "" if condition is None else f" FILTER({value(condition)})"
            return (
                f"{{ {group(left)} BIND(EXISTS {{ {group(right)}{kept} }} AS {variable(name)}) }}"
            )
        case n.Filter(child, condition):
            return f"{{ {group(child)} FILTER({value(condition)}) }}"
        case n.Extend(child, name, made):
            return f"{{ {group(child)} BIND({value(made)} AS {variable(name)}) }}"
        case n.Group(child, keys, aggregates):
            shown = [variable(key) for key in keys] + [
                f"({value(a)} AS {variable(name)})" for name, a in aggregates
            ]
            by = f" GROUP BY {' '.join(map(variable, keys))}" if keys else ""
            return f"{{ SELECT {' '.join(shown) or '(1 AS ?one)'} {group(child)}{by} }}"
        case _:
            return f"{{ {select(node)} }}"


def select(node: n.Node) -> str:
    """The nodes above a pattern as one SELECT."""
    tail = distinct = ""
    if isinstance(node, n.Slice):
        tail = f" OFFSET {node.offset}" + ("" if node.limit is None else f" LIMIT {node.limit}")
        node = node.child
    if isinstance(node, n.Distinct):
        distinct, node = "DISTINCT ", node.child
    assert isinstance(node, n.Project), "SELECT projects"
    shown, node = " ".join(map(variable, node.variables)), node.child
    if isinstance(node, n.OrderBy):
        keys = [f"{'DESC' if down else 'ASC'}({value(key)})" for key, down in node.keys]
        tail = f" ORDER BY {' '.join(keys)}{tail}"
        node = node.child
    return f"SELECT {distinct}{shown or '*'} {group(node)}{tail}"


def cases() -> list[tuple[Path, str, Path | None, tuple[Path, ...]]]:
    """(query file, its round trip, default graph, named graphs) of what the translation accepts."""
    found = []
    for manifest in sorted(SUITE.glob("sparql1[01]/*/manifest.ttl")):
        store = ox.Store()
        store.load(path=str(manifest), format=ox.RdfFormat.TURTLE, base_iri=f"file://{manifest}")
        for quad in store.quads_for_pattern(None, ox.NamedNode(QT + "query"), None):
            assert not isinstance(quad.subject, ox.Triple)
            path = Path(quad.object.value.removeprefix("file://"))
            data, *_ = [*objects(store, quad.subject, "data"), None]
            named = tuple(objects(store, quad.subject, "graphData"))
            text = round_trip(path)
            if text is not None:
                found.append((path, text, data, named))
    return found  # type: ignore[return-value]


def objects(store: ox.Store, subject: ox.NamedNode | ox.BlankNode, name: str) -> list[Path]:
    quads = store.quads_for_pattern(subject, ox.NamedNode(QT + name), None)
    return [
        Path(quad.object.value.removeprefix("file://"))
        for quad in quads
        if isinstance(quad.object, ox.NamedNode)
    ]


def round_trip(path: Path) -> str | None:
    text = path.read_bytes().decode("utf-8-sig")
    if (
        path.suffix != ".rq"
        or path.name in SKIPPED
        or any(word in text.upper() for word in VOLATILE)
    ):
        return None
    unit = parse(f"BASE <file://{path}>\n{text}")
    if unit.datasets or not isinstance(unit.form, ast.Select):
        return None
    try:
        pattern = translate(replace(unit, windows=WINDOW)).pattern
    except QueryError:
        return None
    return (
        None if any(isinstance(part, n.Closure) for part in level(pattern)) else select(pattern)
    )  # no text says it


def bag(store: ox.Store, text: str) -> Counter[frozenset[tuple[str, str]]]:
    solutions = store.query(text)
    assert isinstance(solutions, ox.QuerySolutions)
    names = [v.value for v in solutions.variables]
    return Counter(
        frozenset(
            (name, str(term)) for name, term in zip(names, row, strict=True) if term is not None
        )
        for row in solutions
    )


CASES = cases() if SUITE.is_dir() else []
needs_suite = pytest.mark.skipif(
    not CASES, reason="the W3C suite is not there: ../shared/data/rdf-tests is absent"
)


@needs_suite
def test_many_queries_make_the_round_trip() -> None:
    assert len(CASES) > 200


@needs_suite
@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case[0].parent.name}/{case[0].name}")
def test_round_trip(case: tuple[Path, str, Path | None, tuple[Path, ...]]) -> None:
    path, text, data, named = case
    store = ox.Store()
    if data is not None:
        store.load(path=str(data), base_iri=f"file://{data}")
    for graph in named:
        store.load(
            path=str(graph), base_iri=f"file://{graph}", to_graph=ox.NamedNode(f"file://{graph}")
        )
    original = f"BASE <file://{path}>\n{path.read_bytes().decode('utf-8-sig')}"
    assert bag(store, text) == bag(store, original)
