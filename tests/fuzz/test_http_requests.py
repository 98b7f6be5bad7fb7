"""Requests to every operation of the server's OpenAPI document, generated from it by schemathesis:
none makes the server fail, and what it answers is what the document says.

What schemathesis knows nothing of is drawn beside: bodies that are queries, rows and graphs, or
nearly; names of what is there; media types that are wanted.

    make fuzz       FUZZ damaged inputs, as many requests for two hundred of them an operation
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from levada import Engine
from levada.server import openapi
from levada.server.app import WAYS
from levada.server.content_negotiation import EVENTS, MEDIA
from levada.server.settings import Limits, Settings
from support.http_server import GRAPHS, TEXT, last_report, served
from support.polling import PATIENCE, until

schemathesis = pytest.importorskip("schemathesis", reason="schemathesis is not there: pip has it")
CHECKS = "schemathesis.specs.openapi.checks"
EACH = max(int(os.environ.get("LEVADA_FUZZ", "2000")) // 200, 1)  # requests of an operation
pytestmark = [pytest.mark.xdist_group("requests"), pytest.mark.timeout(7200)]

LIMITS = Limits(body=20_000, text=5_000, queries=12, sparql_seconds=5, head_seconds=PATIENCE)
TURTLE = "@prefix : <http://e/> . :a :p [ :q 1, 'x'@en ] ."
BODIES: dict[tuple[str, ...], tuple[str, ...]] = {
    ("application/sparql-query", "application/cql"): (
        TEXT, GRAPHS, "ASK { ?s ?p ?o }", "SELECT * { GRAPH ?g { ?s ?p ?o } }",
        "SELECT * { SERVICE <http://e/> { ?s ?p ?o } }", "SELECT ISTREAM k FROM t [RANGE 1]",
        "SELECT ?a { ?a :p ?x FILTER(REGEX(?x, '(a+)+$')) }", "DESCRIBE <http://e/a>",
    ),
    ("application/n-quads", "application/n-triples"): (
        "<http://e/a> <http://e/p> <http://e/o> 9000 .\n",
        '<http://e/a> <http://e/p> "x"@en <http://e/g> 9001 .\n_:b <http://e/p> _:c 9002 .\n',
    ),
    ("application/x-ndjson", "application/ndjson"): (
        '{"k": 1, "v": 2.5, "ts": 9000}\n', '{"k": "x"}\n', "[]\n",
    ),
    ("text/turtle", "application/rdf+xml", "application/ld+json"): (
        TURTLE, '{"@id": "http://e/a", "http://e/p": {"@id": "http://e/b"}}', "[]",
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"/>',
    ),
    ("application/x-www-form-urlencoded",): (
        "query=ASK%20%7B%7D", "query=ASK%20%7B%7D&default-graph-uri=http%3A%2F%2Fe%2Fg", "update=x",
    ),
}  # fmt: skip
NAMES = {
    "query": ("hot", "made", "new", "%2e%2e", "a b", "\u202e"),
    "stream": ("http://e/s", "t", "f"),
    "graph": ("http://e/g", "default", "http://e/none"),
    "report": ("4000", "1000", "0", "-1", "99999999999999999999", "NaN"),
    "file": ("page.js", "page.css", "../app.py"),
}
WORDS = {
    "dialect": ("rspql", "cql", "cqels", "csparql"), "report": ("window-close", "content-change"),
    "bounds": ("[)", "(]"), "t0": ("0", "1000"), "empty_reports": ("true", "false"),
    "entailment": ("rdfs", "none"), "after": ("0", "1000", "-1"), "limit": ("1", "100", "101"),
    "format": ("csv", "nt", "srj", "arrow", "jelly"), "query": ("hot", "ASK {}", "made"),
    "stage": ("ast", "algebra"), "kind": ("dead", "late"), "most": ("0", "1"),
    "default-graph-uri": ("http://e/g", "urn:levada:made"), "If-Match": ("*", '"0"'),
    "Idempotency-Key": ("k",), "Last-Event-ID": ("1000", "hot=1000,made=0"),
}  # fmt: skip
ACCEPTS = ("*/*", EVENTS, *MEDIA, "application/json", "text/*", "text/csv;q=0, */*;q=x", ",;=")


def damaged(texts: tuple[str, ...]) -> st.SearchStrategy[bytes]:
    """One of the texts, as it is or with something else in the place of a part of it."""

    def cut(text: str, at: int, size: int, new: str) -> bytes:
        at %= len(text) + 1
        return (text[:at] + new + text[at + size :]).encode("utf-8", "surrogatepass")

    said = st.sampled_from(texts)
    parts = st.builds(cut, said, st.integers(0, 400), st.integers(0, 9), st.text(max_size=5))
    return said.map(str.encode) | parts | st.binary(max_size=64)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    folder = tmp_path_factory.mktemp("requests")
    lines = (f'<http://e/a> <http://e/p> "{i}" {500 * i} .\n' for i in range(10))
    (folder / "f.nt").write_text("".join(lines))
    (folder / "g.nt").write_text("<http://e/a> <http://e/p> <http://e/b> .\n")
    with Engine(spark=False, checkpoint=folder / "ck", keep_results=False, keep="1h") as engine:
        engine.stream("f", folder / "f.nt")
        engine.stream("http://e/s", "push:", format="nq")
        engine.stream("t", "push:", schema={"k": "integer", "v": "double"})
        engine.static(folder / "g.nt", "http://e/g", reload=True)
        engine.register(TEXT.replace("ON :s", "ON <f>"), name="hot")
        engine.register(GRAPHS.replace("ON :s", "ON <f>"), name="made")
        engine.start()
        with (
            served(Settings(folder / "ck", port=0, limits=LIMITS)) as found,
            httpx.Client(base_url=found, timeout=PATIENCE) as client,
        ):
            until(lambda: last_report(client) == 4000)
            yield client


@pytest.fixture(scope="module")
def operations() -> dict[str, Any]:
    """The document's operations by what they are called."""
    for medias, texts in BODIES.items():
        for media in medias:
            schemathesis.openapi.media_type(media, damaged(texts))
    document = schemathesis.openapi.from_dict(openapi.document(WAYS))
    return {found.ok().label: found.ok() for found in document.get_all_operations()}


LABELS = [f"{way.method} {way.path.replace(':path', '')}" for way in WAYS]


@pytest.mark.long
@pytest.mark.parametrize("label", LABELS)
def test_requests(client: httpx.Client, operations: dict[str, Any], label: str) -> None:
    assert set(operations) == set(LABELS), "each is asked"
    requests = operations[label].as_strategy()
    checks, rest = schemathesis.checks, importlib.import_module(CHECKS)

    @settings(max_examples=EACH, suppress_health_check=list(HealthCheck), database=None)
    @given(st.data())
    def asked(data: st.DataObject) -> None:
        case = data.draw(requests)
        fill(case, data)
        answer = told(client, case)
        shown = schemathesis.Response.from_httpx(answer, verify=False)
        case.validate_response(
            shown,
            checks=[
                checks.not_a_server_error,
                rest.status_code_conformance,
                rest.content_type_conformance,
                rest.response_schema_conformance,
            ],
        )

    asked()
    assert client.get("/health").status_code == 200, "it goes on"


def fill(case: Any, data: st.DataObject) -> None:
    """Names of what is there, and words that are known, where chance has not drawn any."""
    for name in case.path_parameters or {}:
        if data.draw(st.booleans()):
            case.path_parameters[name] = data.draw(st.sampled_from(NAMES[name]))
    for said in (case.query, case.headers):
        for name in said or {}:
            if name in WORDS and data.draw(st.booleans()):
                said[name] = data.draw(st.sampled_from(WORDS[name]))
    if data.draw(st.booleans()):
        case.headers = {**(case.headers or {}), "Accept": data.draw(st.sampled_from(ACCEPTS))}


def told(client: httpx.Client, case: Any) -> httpx.Response:
    """The answer; of one that has no end, its head."""
    said = case.as_transport_kwargs(base_url=str(client.base_url))
    request = httpx.Request(
        said["method"],
        said["url"],
        params=said.get("params") or None,
        headers={k: str(v).encode("utf-8") for k, v in said["headers"].items()},
        content=said.get("data"),
    )
    answer = client.send(request, stream=True)
    if answer.headers.get("content-type", "").startswith(EVENTS):
        answer.close()
        answer._content = b""
    answer.read()
    return answer
