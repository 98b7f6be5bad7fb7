"""Requests that come at once: who changes what others change, too, does so after them; who waits
for the engine keeps nobody else waiting.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

import httpx
import pytest

from levada.server import query_routes
from support.http_server import TEXT

SPARQL = {"Content-Type": "application/sparql-query"}
MANY = 6
Ask = Callable[[], httpx.Response]


def at_once(*asked: Ask) -> Counter[int]:
    """The answers' states, by how many."""
    with ThreadPoolExecutor(len(asked)) as pool:
        answers = list(pool.map(lambda ask: ask(), asked))
    assert all(a.status_code < 500 for a in answers), [a.text for a in answers]
    return Counter(answer.status_code for answer in answers)


def test_one_replaces_what_all_have_seen(client: httpx.Client) -> None:
    match = {**SPARQL, "If-Match": client.get("/queries/hot").headers["etag"]}

    def put(n: int) -> Ask:
        text = TEXT.replace("PT2S", f"PT{3 + n}S")
        return lambda: client.put("/queries/hot", content=text, headers=match)

    assert at_once(*map(put, range(MANY))) == {200: 1, 412: MANY - 1}


def test_the_same_is_made_once(client: httpx.Client) -> None:
    def query() -> httpx.Response:
        return client.put("/queries/new", content=TEXT, headers=SPARQL)

    assert at_once(*[query] * MANY) == {201: 1, 200: MANY - 1}
    assert at_once(*[partial(client.put, "/streams/t")] * MANY) == {201: 1, 200: MANY - 1}
    assert at_once(*[partial(client.delete, "/queries/new")] * MANY) == {200: 1, 404: MANY - 1}
    assert at_once(*[partial(client.delete, "/streams/t")] * MANY) == {200: 1, 404: MANY - 1}


def test_what_comes_and_goes_is_there_or_not(client: httpx.Client) -> None:
    def put() -> httpx.Response:
        return client.put("/queries/new", content=TEXT, headers=SPARQL)

    def push() -> httpx.Response:
        return client.post("/streams/t", content="<a:a> <a:b> <a:c> 1 .\n")

    drop: Ask = partial(client.delete, "/queries/new")
    found = at_once(*[put, drop] * 3)
    assert set(found) <= {200, 201, 404}
    changes: tuple[Ask, ...] = (
        partial(client.put, "/streams/t"),
        push,
        partial(client.delete, "/streams/t"),
    )
    found = at_once(*changes * 3)
    assert set(found) <= {200, 201, 202, 404}
    for path in ("/queries/new", "/streams/t"):
        there = client.get(path).status_code == 200
        assert client.delete(path).status_code == (200 if there else 404)


def test_who_waits_keeps_nobody_waiting(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine is long in an epoch: others are answered."""
    over, waits, ask = threading.Event(), threading.Semaphore(0), query_routes.ask

    def long(call: Callable[..., Any], *given: Any) -> Any:
        waits.release()
        over.wait()
        return call(*given)

    monkeypatch.setattr(query_routes, "ask", partial(long, ask))
    with ThreadPoolExecutor(MANY) as pool:
        try:
            answers = []
            for name in ("q1", "q2", "q3", "q4"):
                call = partial(client.put, f"/queries/{name}", content=TEXT, headers=SPARQL)
                answers.append(pool.submit(call))
                waits.acquire()  # it waits now, on a thread of the server
            assert client.get("/queries/hot/results").status_code == 200
            assert client.post("/check", content=TEXT, headers=SPARQL).status_code == 200
        finally:
            over.set()
        assert all(answer.result().is_success for answer in answers)
