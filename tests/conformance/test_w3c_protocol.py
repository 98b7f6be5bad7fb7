"""W3C's tests of the SPARQL 1.1 Protocol and of Service Description on ``/sparql``, from their
manifests: each request as it is written there, its status, its answer and the kind of its format.

``/sparql`` only reads, so what a test of updates expects to be refused is asked and must be, and
what it expects to be done is asked, too, and must be refused; such a test has a reason below.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pyoxigraph as ox
import pytest
from w3c_suite import MISSING, SUITE

from levada import Engine
from levada.server.settings import Settings
from support.http_server import served
from support.polling import PATIENCE, until

FOLDER = SUITE / "sparql11" / "protocol"
SERVICE = SUITE / "sparql11" / "service-description" / "manifest.ttl"
MF = "http://www.w3.org/2001/sw/DataAccess/tests/test-manifest#"
HT = "http://www.w3.org/2011/http#"
CNT = "http://www.w3.org/2011/content#"
SD = "http://www.w3.org/ns/sparql-service-description#"
TYPE = ox.NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")
DATA = "http://kasei.us/2009/09/sparql/data/data{}.rdf"
UPDATES = "it updates, and /sparql only reads"
SKIPPED = {
    "update_dataset_default_graph": UPDATES,
    "update_dataset_default_graphs": UPDATES,
    "update_dataset_named_graphs": UPDATES,
    "update_dataset_full": UPDATES,
    "update_post_form": UPDATES,
    "update_post_direct": UPDATES,
    "update_base_uri": UPDATES,
}
"""Tests whose answer is not given, with the reason: their updates must be refused instead."""
FORMATS = {
    "boolean": ("application/sparql-results+json", "application/sparql-results+xml"),
    "tabular": (
        "application/sparql-results+json",
        "application/sparql-results+xml",
        "text/csv",
        "text/tab-separated-values",
    ),
    "RDF": ("text/turtle", "application/rdf+xml", "application/n-triples", "text/html"),
}


@dataclass(frozen=True, slots=True)
class Asked:
    """A request of a test, and what it expects."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    statuses: tuple[int, ...]  # their hundreds
    truth: str | None
    form: str | None


class Manifest:
    """A manifest's triples."""

    def __init__(self, path: Path) -> None:
        self._store = ox.Store()
        self._store.load(path=str(path), format=ox.RdfFormat.TURTLE, base_iri=f"file://{path}")

    def tests(self, kind: str) -> list[Any]:
        found = self._store.quads_for_pattern(None, TYPE, ox.NamedNode(MF + kind))
        return sorted((q.subject for q in found), key=str)

    def all(self, subject: Any, name: str) -> list[Any]:
        return [q.object for q in self._store.quads_for_pattern(subject, ox.NamedNode(name), None)]

    def one(self, subject: Any, name: str) -> Any:
        return next(iter(self.all(subject, name)), None)

    def items(self, head: Any) -> Iterator[Any]:
        rdf = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
        while head is not None and head.value != f"{rdf}nil":
            yield self.one(head, f"{rdf}first")
            head = self.one(head, f"{rdf}rest")

    def requests(self, test: Any) -> list[Asked]:
        there = self.one(self.one(test, f"{MF}action"), f"{HT}requests")
        return [self._request(each) for each in self.items(there)]

    def _request(self, node: Any) -> Asked:
        headers = {
            self.one(each, f"{HT}fieldName").value: self.one(each, f"{HT}fieldValue").value
            for each in self.items(self.one(node, f"{HT}headers"))
        }
        body, response = self.one(node, f"{HT}body"), self.one(node, f"{HT}resp")
        sent = b""
        if body is not None:
            encoding = self.one(body, f"{CNT}characterEncoding").value
            sent = self.one(body, f"{CNT}chars").value.encode(encoding)
        codes = [re.search(r"StatusCode(\d)", s.value) for s in self.all(response, EXPECTED)]
        truth, form = (self.one(response, MF + n) for n in ("expectedBoolean", "expectedFormat"))
        return Asked(
            self.one(node, f"{HT}methodName").value,
            self.one(node, f"{HT}absolutePath").value.replace("/sparql/", "/sparql"),
            headers,
            sent,
            tuple(int(code[1]) for code in codes if code is not None),
            None if truth is None else truth.value,
            None if form is None else form.value,
        )


EXPECTED = f"{MF}expectedStatus"
pytestmark = pytest.mark.skipif(not FOLDER.exists(), reason=MISSING)
MANIFEST = Manifest(FOLDER / "manifest.ttl") if FOLDER.exists() else None
TESTS = MANIFEST.tests("ProtocolTest") if MANIFEST is not None else []
DESCRIPTIONS = ("has-endpoint-triple", "returns-rdf", "conforms-to-schema")


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """A server whose static graphs are those of the suite; of ``data0.rdf`` it has no content."""
    folder = tmp_path_factory.mktemp("protocol")
    (folder / "s.nt").write_text("<http://e/a> <http://e/p> <http://e/o> 1 .\n")
    (folder / "data0.nt").touch()
    with Engine(spark=False, checkpoint=folder / "ck", keep_results=False, keep="1h") as engine:
        engine.stream("s", folder / "s.nt")
        for number in range(4):
            path = (FOLDER if number else folder) / f"data{number}.nt"
            engine.static(path, DATA.format(number))
        engine.start()
        with (
            served(Settings(folder / "ck", port=0)) as url,
            httpx.Client(base_url=url, timeout=PATIENCE) as made,
        ):
            until(lambda: made.get("/status").status_code == 200)
            yield made


@pytest.mark.parametrize("test", TESTS, ids=lambda test: test.value.rpartition("#")[2])
def test_protocol(client: httpx.Client, test: Any) -> None:
    assert MANIFEST is not None, "there are tests"
    name = test.value.rpartition("#")[2]
    for asked in MANIFEST.requests(test):
        answer = client.request(
            asked.method, asked.path, content=asked.body or None, headers=asked.headers
        )
        media = answer.headers.get("content-type", "").partition(";")[0]
        if name in SKIPPED:
            assert answer.status_code // 100 == 4, "an update is refused"
            assert media == "application/problem+json"
            pytest.skip(SKIPPED[name])
        assert answer.status_code // 100 in asked.statuses, answer.text
        if asked.form is not None:
            assert media in FORMATS[asked.form]
        if asked.truth is not None:
            assert answer.json()["boolean"] is (asked.truth == "true")


def test_all_tests_are_there() -> None:
    assert len(TESTS) == 34
    assert MANIFEST is not None, "the suite is there"
    names = {test.value.rpartition("#")[2] for test in TESTS}
    assert set(SKIPPED) <= names
    described = {t.value.rpartition("#")[2] for t in Manifest(SERVICE).tests(DESCRIBES)}
    assert described == set(DESCRIPTIONS)


DESCRIBES = "ServiceDescriptionTest"


@pytest.mark.parametrize("name", DESCRIPTIONS)
def test_service_description(client: httpx.Client, name: str) -> None:
    answer = client.get("/sparql", headers={"Accept": "text/turtle, application/rdf+xml;q=0.5"})
    assert answer.status_code == 200
    assert answer.headers["content-type"].partition(";")[0] in FORMATS["RDF"], name
    store = ox.Store()
    store.load(answer.content, format=ox.RdfFormat.TURTLE)
    services = [
        q.subject for q in store.quads_for_pattern(None, TYPE, ox.NamedNode(f"{SD}Service"))
    ]
    assert services, "an sd:Service"
    if name == "has-endpoint-triple":
        (found,) = store.quads_for_pattern(services[0], ox.NamedNode(f"{SD}endpoint"), None)
        assert getattr(found.object, "value", "") == str(client.base_url.join("/sparql"))
    if name == "conforms-to-schema":
        assert list(unsound(store)) == []


OBJECTS = {"endpoint", "resultFormat", "supportedLanguage", "feature", "name", "entailmentProfile"}
NODES = {
    "defaultDataset": "Dataset", "defaultGraph": "Graph", "namedGraph": "NamedGraph",
    "graph": "Graph", "availableGraphs": "GraphCollection",
}  # fmt: skip


def unsound(store: ox.Store) -> Iterator[str]:
    """What the vocabulary of Service Description does not know, or knows otherwise: each property
    is one of it; what should be an IRI is one; what should be of a class is said to be.
    """
    for quad in store.quads_for_pattern(None, None, None):
        name = quad.predicate.value.removeprefix(SD)
        if name in OBJECTS and not isinstance(quad.object, ox.NamedNode):
            yield f"{quad} should have an IRI"
        elif name in NODES:
            kind = ox.NamedNode(SD + NODES[name])
            if not list(store.quads_for_pattern(quad.object, TYPE, kind)):  # type: ignore[arg-type]
                yield f"{quad} should lead to a {NODES[name]}"
        elif name not in OBJECTS and quad.predicate != TYPE:
            yield f"{quad} is not of the vocabulary"
