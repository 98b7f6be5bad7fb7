"""A query or a stream belongs to the token that has added it, as long as it is there: not one that
has its name later.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest

from levada import Engine
from levada.checkpoint.request_files import NewStream, QuerySpec, Request, read_owners
from levada.engine.status.request_client import ask, new_id
from levada.engine.status.status import read_status
from levada.server.query_routes import pause
from levada.server.security.tokens import add_token
from levada.server.settings import Settings
from support.http_server import GRAPHS, TEXT, served
from support.polling import PATIENCE, until

SPARQL = {"Content-Type": "application/sparql-query"}
OTHER = TEXT.replace("PT2S", "PT4S")
REFUSED = "The token anna has not added the query q."


@pytest.fixture
def tokens(tmp_path: Path) -> dict[str, str]:
    path = tmp_path / "tokens"
    return {name: add_token(path, name, "register,push") for name in ("anna", "bob")}


@contextmanager
def running(folder: Path, token: str, **queries: str) -> Iterator[tuple[Engine, httpx.Client]]:
    """An engine on a checkpoint, the queries that its program gives, and the client of a token."""
    root = folder / "ck"
    with Engine(spark=False, checkpoint=root, keep_results=False, keep="1h") as engine:
        if queries:
            engine.stream("s", "push:", format="nq")
        for name, text in queries.items():
            engine.register(text, name=name)
        engine.start()
        with (
            served(Settings(root, port=0, tokens=folder / "tokens")) as url,
            httpx.Client(
                base_url=url, timeout=PATIENCE, headers={"Authorization": f"Bearer {token}"}
            ) as client,
        ):
            yield engine, client


def put(client: httpx.Client, text: str = TEXT, *, path: str = "/queries/q") -> int:
    return client.put(path, content=text, headers=SPARQL).status_code


def names(client: httpx.Client) -> set[str]:
    return {query["name"] for query in client.get("/queries").json()["queries"]}


def operator(folder: Path, request: Request) -> None:
    assert not ask(folder / "ck", request, pause).refusal


def adds(folder: Path, text: str) -> None:
    operator(folder, Request(new_id(), [QuerySpec("q", text)]))


def drops(folder: Path) -> None:
    operator(folder, Request(new_id(), drop="q"))


def push(client: httpx.Client, first: int) -> None:
    """Elements of ten seconds."""
    lines = (f'<http://e/a> <http://e/p> "1" {i} .\n' for i in range(first, first + 10_000, 500))
    assert client.post("/streams/s", content="".join(lines)).status_code == 202


WAYS: dict[str, Callable[[Path, Engine, httpx.Client], object]] = {
    "dropped by its owner": lambda folder, engine, client: client.delete("/queries/q"),
    "dropped by the operator": lambda folder, engine, client: drops(folder),
    "taken out by the program": lambda folder, engine, client: engine.unregister("q"),
    "over": lambda folder, engine, client: push(client, 100_000),
}


@pytest.mark.long
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("text", [TEXT, OTHER])
def test_what_ended_gives_no_right_to_what_has_its_name(
    tmp_path: Path, tokens: dict[str, str], way: str, text: str
) -> None:
    with running(tmp_path, tokens["anna"]) as (engine, client):
        assert client.put("/streams/s").status_code == 201
        push(client, 0)
        lifetime = "?lifetime=1s" if way == "over" else ""  # which begins with a stream's time
        until(lambda: put(client, path=f"/queries/q{lifetime}") == 201)
        WAYS[way](tmp_path, engine, client)
        until(lambda: not names(client))
        until(lambda: not read_owners(tmp_path / "ck").added_queries)
        adds(tmp_path, text)
        until(lambda: names(client))
        found = client.delete("/queries/q")
        assert (found.status_code, found.json()["detail"]) == (403, REFUSED)
        tag = client.get("/queries/q").headers["ETag"]
        new = TEXT + "# another"
        match = {**SPARQL, "If-Match": tag}
        assert client.put("/queries/q", content=new, headers=match).status_code == 403
        assert names(client) == {"q"}


def test_a_right_lasts_with_its_query(tmp_path: Path, tokens: dict[str, str]) -> None:
    """Over a restart, and while the query is suspended."""
    with running(tmp_path, tokens["anna"]) as (_, client):
        assert client.put("/streams/s").status_code == 201
        assert put(client) == 201
    with running(tmp_path, tokens["bob"]) as (_, client):
        until(lambda: names(client) == {"q"})
        assert client.delete("/queries/q").status_code == 403
        assert client.delete("/streams/s").status_code == 403
    with running(tmp_path, tokens["anna"]) as (_, client):
        until(lambda: names(client) == {"q"})
        assert client.delete("/queries/q").status_code == 200
        assert client.delete("/streams/s").status_code == 200


@pytest.mark.long
def test_a_suspended_query_is_its_owners_until_it_is_dropped(
    tmp_path: Path, tokens: dict[str, str]
) -> None:
    path = tmp_path / "tokens"
    path.write_text(path.read_text().replace("\nbob", " solutions=1\nbob"))
    with running(tmp_path, tokens["anna"]) as (_, client):
        assert client.put("/streams/s").status_code == 201
        assert put(client) == 201
        with pytest.warns(UserWarning, match="The query q is suspended."):
            lines = "".join(f'<http://e/a> <http://e/p> "{i}" {i} .\n' for i in range(9))
            lines += '<http://e/a> <http://e/p> "0" 9000 .\n'
            assert client.post("/streams/s", content=lines).status_code == 202
            until(lambda: client.get("/queries/q").json()["state"] == "suspended")
        drops(tmp_path)
        adds(tmp_path, TEXT)
        until(lambda: names(client))
        assert client.delete("/queries/q").status_code == 403


@pytest.mark.long
def test_what_the_program_gives_is_the_programs(tmp_path: Path, tokens: dict[str, str]) -> None:
    for text in (TEXT, OTHER):
        with running(tmp_path, tokens["anna"]) as (_, client):
            until(lambda: client.put("/streams/s").status_code in (200, 201))
            if "q" in names(client):
                drops(tmp_path)
            assert put(client) == 201
        with running(tmp_path, tokens["anna"], q=text) as (_, client):
            until(lambda: names(client))
            assert client.delete("/queries/q").status_code == 403


@pytest.mark.long
def test_a_query_that_a_start_cannot_run_gives_no_right(
    tmp_path: Path, tokens: dict[str, str]
) -> None:
    """The program does not give any more what it reads, so its name is free."""
    with running(tmp_path, tokens["anna"], made=GRAPHS) as (_, client):
        until(lambda: names(client))
        assert put(client, TEXT.replace(":s", ":made")) == 201
    with (
        pytest.warns(UserWarning, match="The query q, which levada add added, is not run"),
        running(tmp_path, tokens["anna"], other=TEXT) as (engine, client),
    ):
        engine.register(OTHER, name="q")
        until(lambda: names(client) == {"other", "q"})
        found = client.delete("/queries/q")
        assert found.status_code in (403, 409)
        assert found.json()["detail"].startswith("The token anna has not added")
        assert names(client) == {"other", "q"}
        engine.unregister("q")
        until(lambda: names(client) == {"other"})
        adds(tmp_path, TEXT)
        until(lambda: names(client) == {"other", "q"})
        assert client.delete("/queries/q").status_code == 403


def test_a_stream_that_was_taken_away_gives_no_right(
    tmp_path: Path, tokens: dict[str, str]
) -> None:
    with running(tmp_path, tokens["anna"]) as (_, client):
        for away in (
            lambda: client.delete("/streams/s"),
            lambda: operator(tmp_path, Request(new_id(), remove_stream="s")),
        ):
            assert client.put("/streams/s").status_code == 201
            away()
            stream = NewStream("s", "push:", {"format": "nq"})
            operator(tmp_path, Request(new_id(), add_stream=stream))
            until(lambda: client.get("/streams/s").status_code == 200)
            found = client.delete("/streams/s")
            assert (found.status_code, found.json()["detail"]) == (
                403, "The token anna has not added the stream s.",
            )  # fmt: skip
            operator(tmp_path, Request(new_id(), remove_stream="s"))
            until(lambda: client.get("/streams/s").status_code == 404)


def test_the_engine_takes_away_what_is_its_owners_alone(
    tmp_path: Path, tokens: dict[str, str]
) -> None:
    """A request may come when the query that it means has gone, and another has its name."""
    with running(tmp_path, tokens["anna"]) as (_, client):
        assert client.put("/streams/s").status_code == 201
        adds(tmp_path, TEXT)
        late = Request(new_id(), drop="q", required_owner="anna")
        assert ask(tmp_path / "ck", late, pause).refusal == "The token anna has not added q."
        late = Request(
            new_id(), [QuerySpec("q", OTHER, owner="anna")], drop="q", required_owner="anna"
        )
        assert ask(tmp_path / "ck", late, pause).refusal
        late = Request(new_id(), remove_stream="s", required_owner="bob")
        assert ask(tmp_path / "ck", late, pause).refusal == "The token bob has not added s."
        assert names(client) == {"q"}


def test_the_name_of_a_suspended_query_is_free_once_it_is_dropped(
    tmp_path: Path, tokens: dict[str, str]
) -> None:
    path = tmp_path / "tokens"
    path.write_text(path.read_text().replace("\nbob", " solutions=1\nbob"))
    with running(tmp_path, tokens["anna"], other=TEXT) as (_, client):
        assert put(client) == 201
        with pytest.warns(UserWarning, match="The query q is suspended"):
            lines = "".join(f'<http://e/a> <http://e/p> "{i}" {i} .\n' for i in range(9))
            lines += '<http://e/a> <http://e/p> "0" 9000 .\n'
            assert client.post("/streams/s", content=lines).status_code == 202
            until(lambda: client.get("/queries/q").json()["state"] == "suspended")
        assert client.delete("/queries/q").status_code == 200
        assert not read_status(tmp_path / "ck").suspended_queries
        assert put(client, OTHER) == 201
