"""What one token may have: its file says it, and who asks for more is told which limit it was."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from levada.errors import UsageError
from levada.server.security.token_limits import AS_ALL, TokenQuota, parse_allowance
from levada.server.security.tokens import EVERYBODY, add_token, read_tokens
from levada.server.settings import Limits, Settings
from support.http_server import TEXT, Run, last_report, served
from support.polling import PATIENCE, until

SPARQL = {"Content-Type": "application/sparql-query"}
JSON = {"Content-Type": "application/json"}


@contextmanager
def asking(run: Run, **limits: str) -> Iterator[dict[str, httpx.Client]]:
    """A client for each token, by its name; all have all roles but ``admin``'s, which is there."""
    path, roles = run.folder / "tokens", "read,push,register"
    tokens = {name: add_token(path, name, roles, said) for name, said in limits.items()}
    tokens["admin"] = add_token(path, "admin", "admin")
    with served(Settings(run.root, port=0, tokens=path)) as url:
        made = {
            name: httpx.Client(
                base_url=url, timeout=PATIENCE, headers={"Authorization": f"Bearer {token}"}
            )
            for name, token in tokens.items()
        }
        until(lambda: last_report(made["admin"]) == 4000)
        yield made
        for client in made.values():
            client.close()


def put(client: httpx.Client, name: str, text: str = TEXT) -> httpx.Response:
    return client.put(f"/queries/{name}", content=text, headers=SPARQL)


def told(found: httpx.Response) -> tuple[int, Any]:
    """Status and limit of a refusal."""
    assert found.headers["content-type"] == "application/problem+json"
    return found.status_code, found.json().get("limit")


def test_queries_and_streams(run: Run) -> None:
    with asking(run, few="queries=1,streams=1", many="queries=101") as clients:
        few, many = clients["few"], clients["many"]
        assert put(few, "a").status_code == 201
        assert told(put(few, "b")) == (429, "queries")
        assert put(few, "a").status_code == 200, "the same"
        assert put(many, "b").status_code == put(many, "c").status_code == 201
        assert few.put("/streams/one").status_code == 201
        assert told(few.put("/streams/two")) == (429, "streams")
        assert many.put("/streams/two").status_code == 201
        assert few.delete("/queries/a").status_code == 200
        assert put(few, "d").status_code == 201


@pytest.mark.long
def test_of_those_that_come_at_once_as_many_as_there_may_be(run: Run) -> None:
    with asking(run, few="queries=2") as clients, ThreadPoolExecutor(6) as threads:
        found = list(threads.map(lambda k: put(clients["few"], f"q{k}"), range(6)))
        codes = sorted(each.status_code for each in found)
        assert codes == [201, 201, 429, 429, 429, 429]
        names = {query["name"] for query in clients["few"].get("/queries").json()["queries"]}
        assert len(names - {"hot"}) == 2


def test_bodies_and_texts(run: Run) -> None:
    long = TEXT + "#" * 1000
    with asking(run, a=f"text={len(TEXT) + 100},body=2000", b="text=100MB") as clients:
        one, other = clients["a"], clients["b"]
        assert told(put(one, "long", long)) == (413, "text")
        assert told(one.post("/check", content=long, headers=SPARQL)) == (413, "text")
        asked = one.post("/sparql", content="ASK {}" + " " * 1000, headers=SPARQL)
        assert told(asked) == (413, "text")
        assert told(one.get("/sparql", params={"query": "ASK {}" + " " * 1000})) == (413, "text")
        assert told(one.put("/streams/o", content=b" " * 1000, headers=JSON)) == (413, "text")
        assert put(one, "short").status_code == 201
        assert other.post("/check", content=long, headers=SPARQL).json()["ok"]
        most = Limits().text + 1
        assert told(other.post("/check", content="#" * most, headers=SPARQL)) == (413, "text")
        assert other.put("/streams/o").status_code == 201
        line = b'<http://e/a> <http://e/p> "1" 5000 .\n'
        assert one.post("/streams/o", content=line).status_code == 202
        assert told(one.post("/streams/o", content=line * 100)) == (413, "body")
        pieces = one.post("/streams/o", content=iter([line] * 100))
        assert told(pieces) == (413, "body"), "whatever it says of itself"
        assert other.post("/streams/o", content=line * 100).status_code == 202


def test_requests_that_are_open(run: Run) -> None:
    with asking(run, a="connections=2", b="") as clients:
        one, other = clients["a"], clients["b"]
        events = "/queries/hot/results"
        headers = {"Accept": "text/event-stream"}
        with one.stream("GET", events, headers=headers), one.stream("GET", events, headers=headers):
            assert told(one.get("/queries")) == (429, "connections")
            assert other.get("/queries").status_code == 200
        until(lambda: one.get("/queries").status_code == 200)


def test_a_query_has_what_its_token_gives_it(run: Run) -> None:
    """The same text, by two tokens and by the operator: one of them has a lower limit."""
    with asking(run, a="solutions=3,bytes=1MB", b="") as clients:
        one, other = clients["a"], clients["b"]
        assert put(one, "mine").status_code == put(other, "theirs").status_code == 201
        run.feed(10)
        until(lambda: one.get("/queries/mine").json()["state"] == "suspended")
        until(lambda: last_report(other, "theirs") == last_report(other) == 9000)
        why = one.get("/queries/mine").json()["reason"]
        assert "4 solutions; the limit is 3." in why and "(solutions=3)" in why
        after = "results?after=6000"
        both = [other.get(f"/queries/{name}/{after}").text for name in ("theirs", "hot")]
        assert both[0].replace('"theirs"', '"hot"') == both[1] != ""


def test_the_time_of_a_query_is_at_most_the_servers() -> None:
    limits = Limits(sparql_seconds=30.0)
    for said, seconds in (("seconds=5", 5), ("seconds=500", 30), ("", 30)):
        token = type(EVERYBODY)("a", frozenset(), b"", parse_allowance(said))
        assert limits.limits_of_token(token).sparql_seconds == seconds
    assert limits.limits_of_token(EVERYBODY) is limits


def test_what_a_file_says(tmp_path: Path) -> None:
    path = tmp_path / "tokens"
    add_token(path, "a", "read")
    add_token(path, "b", "register", "queries=10, kept=5MB ,bytes=1KB")
    first, second = read_tokens(path).all
    assert first.allowance == AS_ALL
    assert second.allowance == TokenQuota(queries=10, of_queries="kept=5MB,bytes=1KB")
    path.write_text(path.read_text().replace("queries=10", "query=10"))
    with pytest.raises(UsageError, match="line 2: A token has no limit query") as wrong:
        read_tokens(path)
    assert wrong.value.hint == "Did you mean queries?"
    path.write_text("a read sha256:" + 64 * "0" + " queries=1 body=2")
    with pytest.raises(UsageError, match="A line is NAME ROLES"):
        read_tokens(path)


@pytest.mark.parametrize(
    ("limits", "said"),
    [
        ("queries=0", "The limit queries is a number above 0"),
        ("queries=1MB", "The limit queries is a number above 0"),
        ("body=many", "Say for example body=100MB"),
        ("solutions=x", "The limit solutions is a number above 0"),
        ("query=1", "A token has no limit query"),
    ],
)
def test_what_is_no_limit(tmp_path: Path, limits: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        add_token(tmp_path / "tokens", "a", "read", limits)
    assert not (tmp_path / "tokens").exists()
