"""The W3C evaluation tests of SPARQL 1.0 and 1.1, by their manifests: what is asked, over which
data, and what must come out.

In scope is every test of the two suites that asks a query and gives its answer, but those of
SERVICE and of entailment. Data are parsed by pyoxigraph into N-Triples lines; the graph of ``FROM
<x>`` is the file ``x`` beside the query.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pyoxigraph as ox

SUITE = Path(__file__).parents[2].parent / "shared" / "data" / "rdf-tests" / "sparql"
MISSING = "the W3C suite is not there: ../shared/data/rdf-tests is absent"
MF = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
QT = "http://www.w3.org/2001/sw/DataAccess/tests/test-query#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
Node = ox.NamedNode | ox.BlankNode
KINDS = ("QueryEvaluationTest", "CSVResultFormatTest")
OUT_OF_SCOPE = ("entailment", "service")
"""Folders: entailment has a judge of its own, SERVICE is refused."""
SKIPPED: dict[str, str] = {}
"""Tests that ask for what the specification does not, with the reason."""


@dataclass(frozen=True, slots=True)
class W3cTest:
    """One test: its query, the files of its default graph, of its named graphs by IRI, and of its
    result.

    ``name`` is "sparql11/aggregates/agg01": suite, folder, and the last part of the test's IRI.
    """

    name: str
    query: Path
    data: tuple[Path, ...]
    named: tuple[tuple[str, Path], ...]
    result: Path
    lax: bool

    @property
    def text(self) -> str:
        """The query as it is asked: relative IRIs are those of its file."""
        return f"BASE <{iri(self.query)}>\n" + self.query.read_bytes().decode("utf-8-sig")


def iri(path: Path) -> str:
    """The IRI of a file of the suite."""
    return f"file://{path}"


@cache
def suite() -> tuple[W3cTest, ...]:
    """All tests in scope, by name; none where the suite is absent."""
    manifests = sorted(SUITE.glob("sparql1[01]/*/manifest.ttl"))
    found = [test for m in manifests if m.parent.name not in OUT_OF_SCOPE for test in tests_of(m)]
    return tuple(sorted(found, key=lambda test: test.name))


def tests_of(manifest: Path) -> Iterator[W3cTest]:
    """The evaluation tests of a manifest."""
    store = ox.Store()
    store.load(path=str(manifest), format=ox.RdfFormat.TURTLE, base_iri=iri(manifest))
    heads = [
        quad.object for quad in store.quads_for_pattern(None, ox.NamedNode(MF + "entries"), None)
    ]
    for entry in (entry for head in map(_node, heads) for entry in _members(store, head)):
        if any(
            kind.value.removeprefix(MF) in KINDS for kind in _objects(store, entry, RDF + "type")
        ):
            yield _test(store, entry, manifest)


def _members(store: ox.Store, node: Node) -> Iterator[Node]:
    """The members of a list: a test that its manifest does not list has been taken out of the
    suite.
    """
    while node.value != RDF + "nil":
        yield _one(store, node, RDF + "first")
        node = _one(store, node, RDF + "rest")


def _test(store: ox.Store, subject: Node, manifest: Path) -> W3cTest:
    action = _one(store, subject, MF + "action")
    named = []
    for graph in _objects(store, action, QT + "graphData"):
        inner = _objects(store, graph, QT + "graph")
        found = (inner or [graph])[0].value
        named.append((found, _path(found)))
    words = subject.value.replace("#", "/").rsplit("/", 1)
    return W3cTest(
        name=f"{manifest.parent.parent.name}/{manifest.parent.name}/{words[-1]}",
        query=_path(_one(store, action, QT + "query").value),
        data=tuple(_path(d.value) for d in _objects(store, action, QT + "data")),
        named=tuple(sorted(named)),
        result=_path(_one(store, subject, MF + "result").value),
        lax=bool(_objects(store, subject, MF + "resultCardinality")),
    )


def _objects(store: ox.Store, subject: Node, name: str) -> list[Node]:
    return [_node(q.object) for q in store.quads_for_pattern(subject, ox.NamedNode(name), None)]


def _node(term: ox.NamedNode | ox.BlankNode | ox.Literal | ox.Triple) -> Node:
    assert isinstance(term, Node)
    return term


def _one(store: ox.Store, subject: Node, name: str) -> Node:
    (found,) = _objects(store, subject, name)
    return found


def _path(name: str) -> Path:
    return Path(name.removeprefix("file://"))


@cache
def triples(path: Path) -> tuple[str, ...]:
    """A data file as canonical N-Triples texts without the dot; the labels of its blank nodes are
    its own.
    """
    form = ox.RdfFormat.from_extension(path.suffix[1:])
    quads = ox.parse(path=str(path), format=form, base_iri=iri(path))
    return tuple(sorted({str(q.triple) for q in quads}))
