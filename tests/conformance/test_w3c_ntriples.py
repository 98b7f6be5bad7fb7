"""The W3C test suites of RDF 1.1 N-Triples and N-Quads, by their manifests, through ``parse``."""

from pathlib import Path

import pyoxigraph as ox
import pytest

from levada.connectors.ingest.parse.fallback_parser import blank_text
from levada.connectors.ingest.parse.ntriples import parse

SUITE = Path(__file__).parents[2].parent / "shared" / "data" / "rdf-tests" / "rdf" / "rdf11"
TEST = "http://www.w3.org/ns/rdftest#Test"
ACTION = ox.NamedNode("http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#action")
TYPE = ox.NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")


def cases(folder: str) -> list[tuple[Path, bool]]:
    """(file, whether it is well-formed) of each syntax test."""
    manifest = SUITE / folder / "manifest.ttl"
    if not manifest.is_file():
        return []
    store = ox.Store()
    store.load(path=str(manifest), format=ox.RdfFormat.TURTLE, base_iri=manifest.as_uri())
    found = []
    for quad in store.quads_for_pattern(None, TYPE, None):
        assert isinstance(quad.object, ox.NamedNode)
        if quad.object.value.startswith(TEST) and quad.object.value.endswith("Syntax"):
            action = next(store.quads_for_pattern(quad.subject, ACTION, None)).object
            assert isinstance(action, ox.NamedNode)
            found.append(
                (manifest.parent / action.value.rsplit("/", 1)[-1], "Positive" in quad.object.value)
            )
    return sorted(found)


FILES = [
    (path, good, folder == "rdf-n-quads")
    for folder in ("rdf-n-triples", "rdf-n-quads")
    for path, good in cases(folder)
]

pytestmark = pytest.mark.skipif(
    not FILES, reason="the W3C suite is not there: ../shared/data/rdf-tests is absent"
)


def canonical(term: object, document: int) -> str:
    if isinstance(term, ox.BlankNode):
        return blank_text(term.value, document)
    return "" if isinstance(term, ox.DefaultGraph) else str(term)


@pytest.mark.parametrize(
    ("path", "good", "quads"),
    FILES,
    ids=[f"{path.parent.name}/{path.name}" for path, _, _ in FILES],
)
def test_syntax(path: Path, good: bool, quads: bool) -> None:
    data = path.read_bytes()
    found = parse(data, quads=quads, timed=False, seed=3, document=5)
    assert bool(found.bad) != good
    if not good:
        return
    form = ox.RdfFormat.N_QUADS if quads else ox.RdfFormat.N_TRIPLES
    expected = [
        tuple(
            canonical(term, 5)
            for term in (quad.subject, quad.predicate, quad.object, quad.graph_name)
        )
        for quad in ox.parse(input=data, format=form)
    ]
    columns = [found.s, found.p, found.o, *([] if found.g is None else [found.g])]
    actual = [tuple(found.text(column, row) for column in columns) for row in range(found.n)]
    assert actual == [row[: len(columns)] for row in expected]


def test_all_tests_are_there() -> None:
    assert (len(FILES), sum(good for _, good, _ in FILES)) == (157, 94)
