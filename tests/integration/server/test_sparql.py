"""SPARQL over what is there: the protocol, the dataset, and what no text can do."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import httpx
import psutil
import pyoxigraph as ox
import pytest

from levada import Engine
from levada.server.settings import Limits, Settings
from levada.server.sparql import query_worker
from support.http_server import GRAPHS, TEXT, last_report, served
from support.polling import PATIENCE, until

FORM = {"Content-Type": "application/x-www-form-urlencoded"}
DIRECT = {"Content-Type": "application/sparql-query"}
MADE = "urn:levada:made"
ROOMS = "http://e/rooms"
SD = "http://www.w3.org/ns/sparql-service-description#"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The checkpoint of an engine whose query ``made`` has had its last report at 4000, of four
    triples; beside static graphs: the default one, and one with 300 triples.
    """
    folder = tmp_path_factory.mktemp("sparql")
    (folder / "s.nt").write_text(
        "".join(f'<http://e/a> <http://e/p> "{i}" {500 * i} .\n' for i in range(10))
    )
    (folder / "d.nt").write_text("<http://e/x> <http://e/p> _:b .\n")
    rooms = (f'<http://e/room{i}> <http://e/size> "{i}" .\n' for i in range(300))
    (folder / "rooms.nt").write_text("".join(rooms))
    with Engine(spark=False, checkpoint=folder / "ck", keep_results=False, keep="1h") as engine:
        engine.stream("s", folder / "s.nt")
        engine.static(folder / "d.nt")
        engine.static(folder / "rooms.nt", ROOMS)
        engine.register(GRAPHS, name="made")
        engine.register(TEXT, name="hot")
        engine.start()
        yield folder / "ck"


@contextmanager
def serving(root: Path, **limits: Any) -> Iterator[httpx.Client]:
    settings = Settings(root, port=0, limits=Limits(**limits))
    with served(settings) as url, httpx.Client(base_url=url, timeout=PATIENCE) as client:
        until(lambda: last_report(client, "made") == 4000)
        yield client


@pytest.fixture(scope="module")
def client(root: Path) -> Iterator[httpx.Client]:
    with serving(root) as made:
        yield made


def rows(answer: httpx.Response) -> list[dict[str, str]]:
    assert answer.status_code == 200, answer.text
    found = answer.json()["results"]["bindings"]
    return [{name: term["value"] for name, term in row.items()} for row in found]


def test_the_latest_answer_is_a_named_graph(client: httpx.Client) -> None:
    text = f"SELECT ?n {{ GRAPH <{MADE}> {{ ?a <http://e/q> ?n }} }} ORDER BY ?n"
    report = client.get("/queries/made/results", headers={"Accept": "application/n-triples"})
    wanted = [{"n": line.split('"')[1]} for line in sorted(report.text.splitlines())]
    assert len(wanted) == 4
    for answer in (
        client.get("/sparql", params={"query": text}),
        client.post("/sparql", data={"query": text}),
        client.post("/sparql", content=text, headers=DIRECT),
    ):
        assert rows(answer) == wanted
        assert answer.headers["content-type"] == "application/sparql-results+json"
    graphs = rows(client.get("/sparql?query=SELECT DISTINCT ?g { GRAPH ?g { ?s ?p ?o } }"))
    assert {row["g"] for row in graphs} == {MADE, ROOMS}
    default = rows(client.get("/sparql?query=SELECT ?s { ?s ?p ?o }"))
    assert default == [{"s": "http://e/x"}]


def count(client: httpx.Client, text: str, **said: Any) -> int:
    (row,) = rows(client.get("/sparql", params={"query": text, **said}))
    return int(row["n"])


def test_who_names_the_dataset(client: httpx.Client) -> None:
    merged = "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }"
    apart = "SELECT (COUNT(*) AS ?n) { GRAPH ?g { ?s ?p ?o } }"
    both = {"default-graph-uri": [MADE, ROOMS]}
    assert count(client, merged) == 1
    assert count(client, merged, **both) == 304
    assert count(client, apart, **both) == 0
    assert count(client, apart, **{"named-graph-uri": ROOMS}) == 300
    assert count(client, merged, **{"named-graph-uri": ROOMS}) == 0
    assert count(client, merged.replace("{", f"FROM <{MADE}> {{", 1)) == 4
    assert count(client, apart.replace("{", f"FROM NAMED <{MADE}> {{", 1)) == 4
    named = merged.replace("{", f"FROM <{MADE}> {{", 1)
    assert count(client, named, **{"default-graph-uri": ROOMS}) == 300, "the protocol wins"
    posted = client.post(f"/sparql?default-graph-uri={ROOMS}", content=merged, headers=DIRECT)
    assert rows(posted) == [{"n": "300"}]


@pytest.mark.parametrize(
    ("text", "accept", "beginning"),
    [
        ("ASK { ?s ?p ?o }", "*/*", b'{"head":{},"boolean":true}'),
        ("ASK { ?s ?p ?o }", "application/sparql-results+xml", b"<?xml"),
        ("SELECT ?p { ?s ?p ?o }", "text/csv", b"p\r\nhttp://e/p"),
        ("SELECT ?p { ?s ?p ?o }", "text/tab-separated-values", b"?p\n<http://e/p>"),
        ("CONSTRUCT { ?s ?p 1 } { ?s ?p ?o }", "*/*", b"<http://e/x> <http://e/p> 1 ."),
        ("CONSTRUCT { ?s ?p 1 } { ?s ?p ?o }", "application/n-triples", b'<http://e/x> <http'),
        ("DESCRIBE <http://e/x>", "application/ld+json", b"[{"),
    ],
)  # fmt: skip
def test_formats(client: httpx.Client, text: str, accept: str, beginning: bytes) -> None:
    found = client.get("/sparql", params={"query": text}, headers={"Accept": accept})
    assert found.content.startswith(beginning), found.content
    assert accept in ("*/*", found.headers["content-type"].partition(";")[0])


def test_xml_without_characters_that_it_has_not(client: httpx.Client) -> None:
    head = r'SELECT ("a\u0001\uFFFF\u000B\tb" AS ?x) {}'
    graph = r'CONSTRUCT { <http://e/a> <http://e/p> "a\u0001\uFFFF\u000B\tb" } {}'
    for text, media in (
        (head, "application/sparql-results+xml"),
        (graph, "application/rdf+xml"),
    ):
        found = client.get("/sparql", params={"query": text}, headers={"Accept": media})
        texts = [node.text for node in ElementTree.fromstring(found.content).iter()]
        assert "a\ufffd\ufffd\ufffd\tb" in texts, found.text


def test_what_the_service_is(client: httpx.Client) -> None:
    found = client.get("/sparql", headers={"Accept": "text/turtle"})
    triples = [*ox.parse(found.content, format=ox.RdfFormat.TURTLE)]
    objects = {(q.predicate.value, getattr(q.object, "value", "")) for q in triples}
    assert (f"{SD}endpoint", f"{client.base_url}/sparql".replace("//sparql", "/sparql")) in objects
    assert {value for p, value in objects if p == f"{SD}name"} == {MADE, ROOMS}
    assert (f"{SD}supportedLanguage", f"{SD}SPARQL11Query") in objects


@pytest.fixture
def silent() -> Iterator[str]:
    """The URL of a listener that nobody may speak to."""
    came: list[Any] = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.2)
        over = threading.Event()

        def listen() -> None:
            while not over.is_set():
                with suppress(TimeoutError):
                    came.append(listener.accept())

        thread = threading.Thread(target=listen)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}/sparql"
        over.set()
        thread.join()
    assert not came, "somebody has been asked"


def test_nothing_is_fetched(client: httpx.Client, silent: str) -> None:
    for text, said in (
        (f"SELECT * {{ SERVICE <{silent}> {{ ?s ?p ?o }} }}", "SERVICE is not there"),
        (f"SELECT * {{ SERVICE SILENT <{silent}> {{ ?s ?p ?o }} }}", "SERVICE is not there"),
        (f"SELECT * {{ \\u0053ERVICE <{silent}> {{ ?s ?p ?o }} }}", "SERVICE is not there"),
        (f"ASK {{ FILTER EXISTS {{ {{ SELECT * {{ SERVICE <{silent}> {{ }} }} }} }} }}", "SERVICE"),
        (f"SELECT * FROM <{silent}> {{ ?s ?p ?o }}", "none is fetched"),
        (f"SELECT * FROM NAMED <{silent}> {{ ?s ?p ?o }}", "none is fetched"),
        (f"LOAD <{silent}>", ""),
        (f"SELECT * {{ }} ; LOAD <{silent}>", ""),
    ):
        found = client.post("/sparql", content=text, headers=DIRECT)
        assert found.status_code == 400, text
        assert said in found.json()["detail"]
    for name in ("default-graph-uri", "named-graph-uri"):
        found = client.get("/sparql", params={"query": "ASK {}", name: silent})
        assert (found.status_code, "none is fetched" in found.text) == (400, True)


def asked(query: str, parts: bytes = b"") -> bytes:
    """What the process of a query says, given a text that nobody has looked at."""
    head = {"query": query, "form": "json", "base": "http://e/", "default": None,
            "named": [], "seconds": 20, "memory": 1 << 30, "server": os.getpid(),
            "parts": [[None, len(parts)]]}  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-I", str(query_worker.__file__)],
        input=json.dumps(head).encode() + b"\n" + parts,
        capture_output=True,
        timeout=PATIENCE,
    )
    return done.stdout


def test_the_process_of_a_query_can_open_nothing(silent: str) -> None:
    assert b'"boolean":true' in asked("ASK { ?s ?p ?o }", b"<e:a> <e:b> <e:c> .\n")
    said = asked(f"SELECT * {{ SERVICE <{silent}> {{ ?s ?p ?o }} }}")
    assert b'"told"' in said.split(b"\n")[0], "it has tried, in vain"


@pytest.mark.parametrize(
    ("method", "said", "status", "told"),
    [
        ("POST", {"data": {"update": "CLEAR ALL"}}, 400, "only reads"),
        ("POST", {"content": "CLEAR ALL", "headers": {"Content-Type": "application/sparql-update"}},
         415, "not sent as application/sparql-update"),
        ("POST", {"content": "ASK {}", "headers": {"Content-Type": "text/plain"}}, 415, "not sent"),
        ("POST", {"content": b"query=%ff", "headers": FORM},
         400, "no form"),
        ("GET", {"params": [("query", "ASK {}"), ("query", "ASK {}")]}, 400, "One query"),
        ("GET", {"params": {"default-graph-uri": MADE}}, 400, "One query"),
        ("GET", {"params": {"query": "SELECT * { ?s ?p }"}}, 400, ""),
        ("POST", {"content": TEXT, "headers": DIRECT}, 400, "Windows are for queries that go on"),
        ("GET", {"params": {"query": "ASK {}"}, "headers": {"Accept": "text/turtle"}}, 406, ""),
        ("PUT", {"content": "ASK {}"}, 405, ""),
    ],
)  # fmt: skip
def test_what_is_refused(
    client: httpx.Client, method: str, said: dict[str, Any], status: int, told: str
) -> None:
    found = client.request(method, "/sparql", **said)
    assert (found.status_code, found.headers["content-type"]) == (
        status,
        "application/problem+json",
    )
    assert told in found.json()["detail"]


HARD = "SELECT (COUNT(*) AS ?n) { ?a ?p ?x . ?b ?q ?y . ?c ?r ?z . ?d ?s ?w FILTER(?x > ?w) }"
OVER_ROOMS = {"query": HARD, "default-graph-uri": ROOMS}


def workers() -> list[psutil.Process]:
    """The processes of queries that run now."""
    own = psutil.Process().children(recursive=True)
    return [p for p in own if p.is_running() and str(query_worker.__file__) in " ".join(_line(p))]


def _line(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


@pytest.mark.long
def test_a_time_out_frees_the_processor(root: Path) -> None:
    with serving(root, sparql_seconds=1.5) as client:
        found = client.get("/sparql", params=OVER_ROOMS)
        assert (found.status_code, found.json()["detail"]) == (
            503, "The query took more than 1.5 s, and was ended.",
        )  # fmt: skip
        until(lambda: workers() == [])
        easy = {"query": "ASK { ?s ?p ?o }"}  # on a busy machine that may take as long, too
        until(lambda: client.get("/sparql", params=easy).status_code == 200)


def test_a_client_that_goes_takes_its_query_along(client: httpx.Client) -> None:
    url = client.base_url
    with socket.create_connection((url.host, url.port)) as made:
        path = httpx.Request("GET", f"{url}/sparql", params=OVER_ROOMS).url.raw_path
        made.sendall(b"GET %b HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" % path)
        until(workers)
    until(lambda: not workers())


@pytest.mark.long
def test_sizes_are_bounded(root: Path) -> None:
    every = {"query": "SELECT * { GRAPH ?g { ?s ?p ?o } }"}
    with serving(root, sparql_waiting=0) as client:
        assert client.get("/sparql", params=every).status_code == 429
    with serving(root, sparql_dataset=1000, sparql_answer=100) as client:
        found = client.get("/sparql", params=every)
        assert (found.status_code, "more than 1,000 bytes" in found.text) == (400, True)
        found = client.get("/sparql", params={**every, "named-graph-uri": MADE})
        assert (found.status_code, "more than 100 bytes" in found.text) == (413, True)
        short = "SELECT ?n { ?a <http://e/q> ?n } LIMIT 0"
        assert rows(client.get("/sparql", params={"query": short, "default-graph-uri": MADE})) == []
