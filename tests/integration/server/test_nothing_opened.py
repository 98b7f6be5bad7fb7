"""No request makes the engine or the server open a path or a URL: whatever is said in a query, a
graph, rows, a name or a header, a listener stays silent, and what is in a file is told to nobody.
And no token is anywhere but with who has it.
"""

from __future__ import annotations

import itertools
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from levada import Engine
from levada.engine.status.status import read_status
from levada.engine.status.status_document import status_document
from levada.server.security.tokens import add_token
from levada.server.settings import Settings
from support.http_server import TEXT, last_report, served
from support.polling import PATIENCE, until

SECRET = "canary-4f1b7c"
GRAPH = "http://e/g"
SPARQL = "application/sparql-query"


@pytest.fixture
def silent() -> Iterator[str]:
    """Host and port of a listener to which nobody may speak."""
    came: list[Any] = []
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(0.05)

        def listen() -> None:
            while not over.is_set():
                with suppress(TimeoutError):
                    came.append(listener.accept())

        thread = threading.Thread(target=listen)
        thread.start()
        yield f"127.0.0.1:{listener.getsockname()[1]}"
        over.set()
        thread.join()
    assert not came, "somebody has been asked"


@pytest.fixture
def client(tmp_path: Path) -> Iterator[httpx.Client]:
    (tmp_path / "secret").write_text(SECRET)
    lines = (f'<http://e/a> <http://e/p> "{i}" {500 * i} .\n' for i in range(10))
    (tmp_path / "f.nt").write_text("".join(lines))
    (tmp_path / "g.nt").write_text("<http://e/a> <http://e/p> <http://e/b> .\n")
    with Engine(spark=False, checkpoint=tmp_path / "ck", keep_results=False, keep="1h") as engine:
        engine.stream("s", tmp_path / "f.nt")
        engine.stream("http://e/pushed", "push:", format="nq")
        engine.stream("rows", "push:", schema={"k": "string"})
        engine.static(tmp_path / "g.nt", GRAPH, reload=True)
        engine.register(TEXT, name="hot")
        engine.start()
        with (
            served(Settings(tmp_path / "ck", port=0)) as url,
            httpx.Client(base_url=url, timeout=PATIENCE) as made,
        ):
            until(lambda: last_report(made) == 4000)
            yield made


def targets(silent: str, folder: Path) -> list[str]:
    return [f"http://{silent}/x", f"ftp://{silent}/x", (folder / "secret").as_uri(),
            str(folder / "secret")]  # fmt: skip


QUERIES = (
    TEXT.replace("{ ?a :p ?n } }", "{ ?a :p ?n } SERVICE <@> { ?a :p ?n } }"),
    TEXT.replace("{ ?a :p ?n } }", "{ ?a :p ?n } SERVICE SILENT <@> { ?a :p ?n } }"),
    TEXT.replace("FROM NAMED", "FROM <@> FROM NAMED", 1),
    TEXT.replace("FROM NAMED", "FROM NAMED <@> FROM NAMED", 1),
    TEXT.replace("ON :s", "ON <@>"),
    TEXT.replace("{ ?a :p ?n } }", "{ ?a :p ?n } GRAPH <@> { ?a :p ?n } }"),
    "SELECT * FROM <@> { ?s ?p ?o }",
    "SELECT * FROM NAMED <@> { GRAPH ?g { ?s ?p ?o } }",
    "SELECT * { SERVICE <@> { ?s ?p ?o } }",
    "LOAD <@>",
    "LOAD SILENT <@> INTO GRAPH <http://e/g>",
    "ADD <@> TO DEFAULT",
    "INSERT { ?s ?p ?o } USING <@> WHERE { ?s ?p ?o }",
    "BASE <@> SELECT * FROM <x> { ?s ?p ?o }",
    "REGISTER QUERY q AS SELECT * FROM STREAM <@> [RANGE 1s STEP 1s] WHERE { ?s ?p ?o }",
    "REGISTER QUERY q AS ASK FROM STREAM <http://e/s> [RANGE 1s STEP 1s] FROM <@> { ?s ?p ?o }",
    "SELECT ?a WHERE { STREAM <http://e/s> [RANGE 1s] { ?a ?p ?n } GRAPH <@> { ?a ?q ?b } }",
    "Register Stream A (k integer); source : @\nSelect k From A [Now]",
    "Select k From rows [Now];\ndest : @\n",
)
GRAPHS = {
    "application/ld+json": (
        '{"@context": "@", "@id": "http://e/a", "p": "x"}',
        '{"@context": ["@", {"p": "http://e/p"}], "p": "x"}',
        '{"@context": {"@import": "@", "@version": 1.1}, "p": "x"}',
        '{"@context": {"p": {"@id": "http://e/p", "@context": "@"}}, "p": {"q": 1}}',
    ),
    "application/rdf+xml": (
        '<?xml version="1.0"?><!DOCTYPE r [<!ENTITY x SYSTEM "@">]>'
        '<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/">'
        '<rdf:Description rdf:about="http://e/a"><e:p>&x;</e:p></rdf:Description></rdf:RDF>',
        '<?xml version="1.0"?><!DOCTYPE r SYSTEM "@"><rdf:RDF '
        'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"/>',
        '<?xml version="1.0"?><!DOCTYPE r [<!ENTITY % x SYSTEM "@"> %x;]><rdf:RDF '
        'xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"/>',
    ),
    "text/turtle": ("@base <@> . <> <http://e/p> <x> .", "<http://e/a> <@> <@> ."),
}


def requests(target: str) -> Iterator[tuple[str, str, str, str]]:
    """Method, path, media type and body of each request that names it."""
    for at, query in enumerate(QUERIES):
        text = query.replace("@", target)
        yield "PUT", f"/queries/n{at}", SPARQL, text
        for path in ("/check", "/explain", "/explain?stage=algebra", "/sparql"):
            yield "POST", path, SPARQL, text
        yield "POST", "/sparql", "application/sparql-update", text
    for media, bodies in GRAPHS.items():
        for body in bodies:
            yield "PUT", f"/static/{GRAPH}", media, body.replace("@", target)
            yield "POST", "/streams/http://e/pushed", media, body.replace("@", target)
    quoted = httpx.QueryParams({"x": target})["x"]
    asked = str(httpx.QueryParams({"query": "ASK {}", "default-graph-uri": quoted}))
    yield "GET", f"/sparql?{asked}", "", ""
    for method in ("GET", "PUT", "POST", "DELETE"):
        for noun in ("streams", "static", "queries"):
            yield method, f"/{noun}/{target}", "application/n-quads", ""
    said = json.dumps({"path": target, "format": "nt"})
    yield "PUT", "/streams/new", "application/json", said
    yield "PUT", f"/streams/new?path={target}", "application/json", "{}"
    yield "POST", "/streams/rows", "application/x-ndjson", json.dumps({"k": target, "ts": 1}) + "\n"


@pytest.mark.long
@pytest.mark.filterwarnings("ignore:.*There is no static graph")
def test_a_listener_stays_silent(client: httpx.Client, silent: str, tmp_path: Path) -> None:
    for target in targets(silent, tmp_path):
        for method, path, media, body in requests(target):
            headers = {"Content-Type": media, "Referer": target, "Forwarded": f"for={target}"}
            found = client.request(method, path, content=body, headers=headers)
            assert found.status_code < 500, (method, path, body, found.text)
            assert SECRET not in found.text, (method, path, body)
    assert SECRET not in client.get("/streams").text + client.get("/letters").text
    assert client.get("/health").status_code == 200


# -- tokens --


@contextmanager
def guarded(folder: Path, tokens: Path) -> Iterator[str]:
    """A server that asks for tokens, and an engine that writes letters."""
    (folder / "in").mkdir()
    with Engine(spark=False, checkpoint=folder / "ck", keep_results=False, keep="1h") as engine:
        engine.stream("s", folder / "in", format="nt")
        engine.stream("p", "push:", format="nt")
        engine.register(TEXT, name="hot")
        engine.start()
        with served(Settings(folder / "ck", port=0, tokens=tokens)) as url:
            yield url


def test_a_query_has_no_outputs_by_a_request(client: httpx.Client, silent: str) -> None:
    said = {"to": f"kafka://{silent}/t"}
    answer = client.put("/queries/out", content=TEXT, params=said, headers={"content-type": SPARQL})
    assert answer.status_code == 400, answer.text
    assert "names no URL" in answer.json()["detail"] + answer.json()["title"]


def test_a_token_is_nowhere(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """Used, misused, and of no use: it is not in a file, not in what is logged, in no answer."""
    path = tmp_path / "tokens"
    names = {role: add_token(path, role, role) for role in ("read", "push", "register", "admin")}
    wrong = f"{SECRET}-that-is-none"
    seen: list[str] = []

    def ask(client: httpx.Client, method: str, path: str, **said: Any) -> httpx.Response:
        found = client.request(method, path, **said)
        seen.append(f"{found.headers} {found.text}")
        return found

    with guarded(tmp_path, path) as url, ExitStack() as held:
        own = {
            role: held.enter_context(
                httpx.Client(
                    base_url=url, timeout=PATIENCE, headers={"Authorization": f"Bearer {token}"}
                )
            )
            for role, token in names.items()
        }
        none = held.enter_context(httpx.Client(base_url=url, timeout=PATIENCE))
        until(lambda: own["read"].get("/status").status_code == 200)
        line = "<http://e/a> <http://e/p> <http://e/o> 1 .\n"
        bad = {"content": "no statement", "headers": {"Content-Type": "application/n-triples"}}
        assert ask(own["push"], "POST", "/streams/p", content=line).status_code == 202
        assert ask(own["push"], "POST", "/streams/p", **bad).status_code == 400
        (tmp_path / "in" / "0.nt").write_text(f"no statement\n{line}")
        sent = {"content": TEXT, "headers": {"Content-Type": SPARQL}}
        assert ask(own["register"], "PUT", "/queries/mine", **sent).status_code == 201
        assert ask(own["read"], "PUT", "/queries/other", **sent).status_code == 403
        for token in (*names.values(), wrong):
            for headers in ({}, {"Authorization": token}, {"Authorization": f"Basic {token}"}):
                query = {"token": token, "access_token": token}
                assert ask(none, "GET", "/status", params=query, headers=headers).status_code == 401
        again = {"Authorization": f"Bearer {wrong}"}
        assert ask(none, "GET", "/status", headers=again).status_code == 401
        until(lambda: own["read"].get("/letters").json()["letters"])
        for page in ("/status", "/queries", "/streams", "/letters", "/metrics", "/explain",
                     "/openapi.json", "/", "/page/page.js", "/queries/mine"):  # fmt: skip
            assert ask(own["read"], "GET", page).status_code == 200, page
        root = tmp_path / "ck"
        seen.append(json.dumps(status_document(root, read_status(root), 0.0)))
        seen += capfd.readouterr()
    files = [p for p in tmp_path.rglob("*") if p.is_file()]
    assert any("ck" in p.parts for p in files)
    assert len(seen) > 30
    held_by = {str(p): p.read_bytes() for p in files}
    for token, (name, data) in itertools.product((*names.values(), SECRET), held_by.items()):
        assert token.encode() not in data, name
    for token, text in itertools.product((*names.values(), SECRET), seen):
        assert token not in text
