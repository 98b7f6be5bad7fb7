"""The W3C SPARQL 1.0 and 1.1 query syntax tests, positive and negative, and every evaluation test's
query as a positive one.
"""

from __future__ import annotations

from pathlib import Path

import pyoxigraph as ox
import pytest

from levada.errors import LevadaError
from levada.language import parse

SUITE = Path(__file__).parents[2].parent / "shared" / "data" / "rdf-tests" / "sparql"
MF = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
QT = "http://www.w3.org/2001/sw/DataAccess/tests/test-query#"
TYPE = ox.NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
POSITIVE = {"PositiveSyntaxTest", "PositiveSyntaxTest11"}
NEGATIVE = {"NegativeSyntaxTest", "NegativeSyntaxTest11"}

# What a test says that the specification no longer says, by "folder/file".
SKIPPED: dict[str, str] = {}


def _path(iri: str) -> Path:
    return Path(iri.removeprefix("file://"))


def _tests() -> list[tuple[str, Path]]:
    """(kind, query file) of all query tests of the manifests."""
    found: set[tuple[str, Path]] = set()
    for manifest in sorted(SUITE.glob("sparql1[01]/*/manifest.ttl")):
        store = ox.Store()
        store.load(path=str(manifest), format=ox.RdfFormat.TURTLE, base_iri=f"file://{manifest}")
        for quad in store.quads_for_pattern(None, TYPE, None):
            kind = str(quad.object.value).rpartition("#")[2]
            for action in store.quads_for_pattern(quad.subject, ox.NamedNode(MF + "action"), None):
                # Some folders of updates call theirs NegativeSyntaxTest11 too; their files end in
                # .ru.
                if kind in POSITIVE | NEGATIVE and action.object.value.endswith(".rq"):
                    found.add((kind.removesuffix("11"), _path(action.object.value)))
                assert not isinstance(action.object, ox.Literal)
                for query in store.quads_for_pattern(
                    action.object, ox.NamedNode(QT + "query"), None
                ):
                    if kind == "QueryEvaluationTest":
                        found.add(("Evaluation", _path(query.object.value)))
    return sorted(found)


TESTS = _tests() if SUITE.is_dir() else []
needs_suite = pytest.mark.skipif(
    not TESTS, reason="the W3C suite is not there: ../shared/data/rdf-tests is absent"
)


def _name(test: tuple[str, Path]) -> str:
    return f"{test[1].parent.name}/{test[1].name}"


@needs_suite
def test_the_suite_is_whole() -> None:
    kinds = [kind for kind, _ in TESTS]
    assert kinds.count("PositiveSyntaxTest") >= 210
    assert kinds.count("NegativeSyntaxTest") >= 85
    assert kinds.count("Evaluation") >= 300


@needs_suite
@pytest.mark.parametrize("test", TESTS, ids=_name)
def test_w3c_syntax(test: tuple[str, Path]) -> None:
    kind, path = test
    if _name(test) in SKIPPED:
        pytest.skip(SKIPPED[_name(test)])
    text = path.read_bytes().decode("utf-8-sig")
    if kind == "NegativeSyntaxTest":
        with pytest.raises(LevadaError):
            parse(text)
    else:
        assert parse(text).form is not None
