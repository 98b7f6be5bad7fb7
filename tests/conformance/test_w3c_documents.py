"""The W3C test suites of RDF 1.1 Turtle and TriG, by their manifests, through the intake of
document streams.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pyoxigraph as ox
import pytest

from levada.connectors.ingest.parse.documents import parse_document
from levada.connectors.sources.splits import FileSplit

SUITE = Path(__file__).parents[2].parent / "shared" / "data" / "rdf-tests" / "rdf" / "rdf11"
TEST = "http://www.w3.org/ns/rdftest#Test"
MF = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
TYPE = ox.NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
FORMATS = {"rdf-turtle": "ttl", "rdf-trig": "trig"}


def cases(folder: Any) -> Any:
    """(file, base, kind, file of the result or None) of each test; kind: Positive, Negative, Eval,
    NegativeEval.
    """
    manifest = SUITE / folder / "manifest.ttl"
    if not manifest.is_file():
        return []
    base = f"https://w3c.github.io/rdf-tests/rdf/rdf11/{folder}/"
    store = ox.Store()
    store.load(path=str(manifest), format=ox.RdfFormat.TURTLE, base_iri=base + "manifest.ttl")
    found = []
    for quad in store.quads_for_pattern(None, TYPE, None):
        kind = quad.object.value
        if not kind.startswith(TEST):
            continue
        action = next(
            store.quads_for_pattern(quad.subject, ox.NamedNode(MF + "action"), None)
        ).object.value
        result = next(
            store.quads_for_pattern(quad.subject, ox.NamedNode(MF + "result"), None), None
        )
        name = action.rsplit("/", 1)[-1]
        wanted = (
            None if result is None else manifest.parent / result.object.value.rsplit("/", 1)[-1]
        )
        found.append(
            (manifest.parent / name, base + name, "Negative" not in kind, wanted, FORMATS[folder])
        )
    return sorted(found, key=lambda case: (case[0], case[2]))


CASES = [case for folder in FORMATS for case in cases(folder)]
pytestmark = pytest.mark.skipif(
    not CASES, reason="the W3C suite is not there: ../shared/data/rdf-tests is absent"
)


def taken(path: Any, base: Any, form: Any) -> Any:
    """What the intake makes of a document: its statements as N-Quads lines, or the reason why it is
    dead.
    """
    data = np.frombuffer(path.read_bytes(), np.uint8)
    reference = FileSplit("s", "s", path.name, str(path), form, 0, len(data), 0, 7, 1, base=base)
    triples, _ = parse_document(data, reference, 3)
    if triples.bad:
        return triples.bad[0][1]
    assert triples.g is not None
    columns = (triples.s, triples.p, triples.o, triples.g)
    return [
        " ".join(triples.text(column, row) for column in columns) + " ." for row in range(triples.n)
    ]


@pytest.mark.parametrize(
    ("path", "base", "good", "wanted", "form"),
    CASES,
    ids=[f"{c[0].parent.name}/{c[0].name}-{c[2]}" for c in CASES],
)
def test_document(path: Any, base: Any, good: Any, wanted: Any, form: Any) -> None:
    found = taken(path, base, form)
    if not good:
        assert isinstance(found, str) and found.startswith("Malformed document")
        return
    assert isinstance(found, list), found
    if wanted is not None:
        read = ox.RdfFormat.N_QUADS
        actual = ox.Dataset(ox.parse(input="\n".join(found).encode(), format=read))
        expected = ox.Dataset(ox.parse(input=wanted.read_bytes(), format=read))
        for dataset in (actual, expected):
            dataset.canonicalize(ox.CanonicalizationAlgorithm.UNSTABLE)
        assert actual == expected


def test_all_tests_are_there() -> None:
    assert (len(CASES), sum(case[2] for case in CASES)) == (669, 460)
