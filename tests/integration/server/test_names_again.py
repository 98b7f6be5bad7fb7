"""Queries that come one after the other under a name: each has its own reports, and who listens to
one that has gone is let go.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from levada import Engine
from levada.server.live import result_feed as feed_module
from levada.server.live import sse as events_module
from levada.server.settings import Settings
from support.http_server import EVENTS, GRAPHS, TEXT, events, last_report, served
from support.polling import PATIENCE, until

SPARQL = {"Content-Type": "application/sparql-query"}
OTHER = TEXT.replace("?a ?n FROM", "?n (?a AS ?who) FROM")


def pushed(client: httpx.Client, first: int, count: int) -> None:
    lines = (f'<http://e/a> <http://e/p> "{i}" {500 * i} .\n' for i in range(first, first + count))
    assert client.post("/streams/s", content="".join(lines)).status_code == 202


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[httpx.Client]:
    """A server whose query ``hot`` has had the reports 1000 to 4000."""
    monkeypatch.setattr(feed_module, "SILENCE", 0.3)
    monkeypatch.setattr(events_module, "SILENCE", 0.3)
    with Engine(spark=False, checkpoint=tmp_path / "ck", keep_results=False, keep="1h") as engine:
        engine.start()
        with served(Settings(tmp_path / "ck", port=0)) as url:
            made = httpx.Client(base_url=url, timeout=PATIENCE)
            assert made.put("/streams/s").status_code == 201
            assert made.put("/queries/hot", content=TEXT, headers=SPARQL).status_code == 201
            pushed(made, 0, 10)
            until(lambda: last_report(made) == 4000)
            yield made


def csv(client: httpx.Client) -> list[str]:
    answer = client.get("/queries/hot/results?after=0&format=csv")
    assert answer.status_code == 200, answer.text
    return answer.text.splitlines()


def test_reports_are_those_of_the_query_that_is_there(client: httpx.Client) -> None:
    tag = client.get("/queries/hot").headers["etag"]
    put = client.put("/queries/hot", content=OTHER, headers={**SPARQL, "If-Match": tag})
    assert put.status_code == 200
    assert client.get("/queries/hot").json()["last_report"] is None
    assert [client.get(f"/queries/hot/results{p}").status_code for p in ("", "/3000")] == [404, 404]
    assert csv(client) == []
    pushed(client, 10, 6)
    until(lambda: last_report(client) == 7000)
    assert csv(client)[0] == "report,n,who"
    with client.stream("GET", "/queries/hot/results?after=0", headers=EVENTS) as answer:
        (first,) = events(answer.iter_lines(), 1)
    assert json.loads(first["data"])["head"]["vars"] == ["n", "who"]


def test_who_listens_is_let_go_with_the_query(client: httpx.Client) -> None:
    for path in ("/queries/hot/results", "/events?query=hot"):
        with client.stream("GET", path, headers=EVENTS) as answer:
            lines = answer.iter_lines()
            assert next(lines) == "retry: 1000"
            assert client.delete("/queries/hot").status_code == 200
            assert set(lines) <= {"", ":"}, "and then it ends"
        assert client.get(path, headers=EVENTS).status_code == 404
        assert client.put("/queries/hot", content=TEXT, headers=SPARQL).status_code == 201


def test_streams_that_begin_again_have_reports_again(client: httpx.Client) -> None:
    """Also where their times are before those of the query that had the name."""
    assert client.delete("/queries/hot").status_code == 200
    assert client.delete("/streams/s").status_code == 200
    assert client.put("/streams/s").status_code == 201
    assert client.put("/queries/hot", content=GRAPHS, headers=SPARQL).status_code == 201
    with client.stream("GET", "/queries/hot/results", headers=EVENTS) as answer:
        lines = answer.iter_lines()
        assert next(lines) == "retry: 1000"
        pushed(client, 0, 6)
        assert [event["id"] for event in events(lines, 2)] == ["1000", "2000"]
    assert {line.split(",")[0] for line in csv(client)} == {"report", "1000", "2000"}
    graph = {"query": "SELECT (COUNT(*) AS ?n) { GRAPH <urn:levada:hot> { ?s ?p ?o } }"}
    found = client.get("/sparql", params=graph, headers={"Accept": "text/csv"})
    assert found.text.split() == ["n", "4"]


def test_a_head_of_events_ends(client: httpx.Client) -> None:
    for path in ("/queries/hot/results", "/events"):
        answer = client.head(path, headers=EVENTS)
        assert answer.headers["content-type"].startswith("text/event-stream")
        assert client.get("/health").status_code == 200, "on the same connection"


def test_who_listens_is_let_go_with_the_server(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with Engine(spark=False, checkpoint=tmp_path / "ck", keep_results=False, keep="1h") as engine:
        engine.stream("s", "push:", format="nt")
        engine.register(TEXT, name="hot")
        engine.start()
        with served(Settings(tmp_path / "ck", port=0)) as url:
            client = httpx.Client(base_url=url, timeout=PATIENCE)
            until(lambda: client.get("/queries/hot").status_code == 200)
            answer = client.send(client.build_request("GET", "/events"), stream=True)
            lines = answer.iter_lines()
            assert next(lines) == "retry: 1000"
    assert list(lines) == [""], "it ends as a whole answer does"
    assert not [record for record in caplog.records if record.levelname == "ERROR"]
