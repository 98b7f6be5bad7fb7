"""Static graphs over HTTP: what is in them; other content, which lasts."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from levada import Engine
from levada.server.settings import Settings
from support.http_server import last_report, served
from support.polling import PATIENCE, until

KINDS = "SELECT ?a ?k WHERE { GRAPH <http://e/kinds> { ?a <http://e/kind> ?k } } ORDER BY ?a"
LATER = "http://e/kinds"
TURTLE = {"Content-Type": "text/turtle"}


@contextmanager
def running(folder: Path) -> Iterator[httpx.Client]:
    """A server over an engine with a replaceable graph, one that is not, and a query over both."""
    with Engine(spark=False, checkpoint=folder / "ck", keep_results=False, keep="1h") as engine:
        engine.static(folder / "kinds.ttl", LATER, reload=True)
        engine.static(folder / "d.nq")
        engine.static(folder / "d2.nt")
        engine.register(KINDS, name="kinds")
        engine.start()
        with served(Settings(folder / "ck", port=0)) as url:
            client = httpx.Client(base_url=url, timeout=PATIENCE)
            until(lambda: last_report(client, "kinds"))
            yield client


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "kinds.ttl").write_text("<http://e/hall> <http://e/kind> <http://e/Room> .")
    (tmp_path / "d.nq").write_text(
        '_:a <http://e/p> "\u2028 _:b" .\n<http://e/x> <http://e/p> 1 <http://e/g> .\n'.replace(
            " 1 ", ' "1" '
        )
    )
    (tmp_path / "d2.nt").write_text('_:a <http://e/p> "2" .\n')
    return tmp_path


def kinds(client: httpx.Client) -> list[str]:
    rows = client.get("/queries/kinds/results").json()["results"]["bindings"]
    return [row["k"]["value"].removeprefix("http://e/") for row in rows]


def test_what_is_in_static_graphs(folder: Path) -> None:
    with running(folder) as client:
        found = client.get("/static").json()["static"]
        assert {graph["graph"]: graph["replaceable"] for graph in found} == {
            "default": False, "http://e/g": False, LATER: True,
        }  # fmt: skip
        text = client.get(f"/static/{LATER}")
        assert text.text == "<http://e/hall> <http://e/kind> <http://e/Room> .\n"
        assert text.headers["content-type"] == "application/n-triples"
        same = {"If-None-Match": text.headers["etag"]}
        assert client.get(f"/static/{LATER}", headers=same).status_code == 304
        assert client.get("/static/http%3A%2F%2Fe%2Fg").text == '<http://e/x> <http://e/p> "1" .\n'
        lines = client.get("/static/default").text.split("\n")
        assert len({line.split(" ")[0] for line in lines if line}) == 2, "each has its own _:a"
        assert '"\u2028 _:b"' in lines[0]


def test_another_content_lasts_until_the_file_says_another(folder: Path) -> None:
    body = "@prefix : <http://e/> . :hall :kind :Cave . :shed :kind :Room ."
    with running(folder) as client:
        put = client.put(f"/static/{LATER}", content=body, headers=TURTLE)
        assert put.json()["messages"] == [f"<{LATER}>: 2 triples, from the next epoch on"]
        until(lambda: kinds(client) == ["Cave", "Room"])
        assert client.put(f"/static/{LATER}", content=body, headers=TURTLE).status_code == 200
        assert client.get(f"/static/{LATER}").text.count("\n") == 2
    with running(folder) as client:
        until(lambda: kinds(client) == ["Cave", "Room"])
        assert client.delete(f"/static/{LATER}").status_code == 200
        until(lambda: kinds(client) == [])
        assert client.get(f"/static/{LATER}").text == ""
    (folder / "kinds.ttl").write_text("<http://e/hall> <http://e/kind> <http://e/Pit> .")
    with running(folder) as client:
        until(lambda: kinds(client) == ["Pit"])


def test_what_is_refused(folder: Path) -> None:
    with running(folder) as client:
        for name, body, media, status, said in (
            ("http://e/g", "", "text/turtle", 409, "not declared replaceable"),
            ("default", "", "text/turtle", 409, "not declared replaceable"),
            ("http://e/none", "", "text/turtle", 404, "There is no static graph http://e/none."),
            (LATER, "x", "text/csv", 415, "A graph is not taken as text/csv."),
            (LATER, "<http://e/a>\n <http://e/b> .", "text/turtle", 400, "not well-formed Turtle"),
            (LATER, "[" * 5000, "text/turtle", 400, "not well-formed Turtle"),
            (LATER, '{"@id": "http://e/g", "@graph": [{"@id": "http://e/a", "http://e/b": 1}]}',
             "application/ld+json", 400, "names graphs of its own"),
        ):  # fmt: skip
            found = client.put(f"/static/{name}", content=body, headers={"Content-Type": media})
            assert (found.status_code, said in found.json()["detail"]) == (status, True), found.text
            assert "line" in found.json() or "Turtle" not in said
        assert kinds(client) == ["Room"]
        with served(Settings(folder / "ck", port=0, read_only=True)) as url:
            found = httpx.delete(f"{url}/static/{LATER}")
            assert found.json()["detail"] == "This server is read-only."
