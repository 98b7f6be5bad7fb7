"""Results as they come: ids, resuming, gaps, clients that do not read, servers that die."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import pytest

from levada import Engine
from levada.engine.status.result_archive import Archive
from levada.errors import CheckpointError
from levada.server.live import result_feed as feed_module
from levada.server.live.event_pages import Pages
from levada.server.live.result_feed import Event, Feed, Topic
from levada.server.settings import Limits, Settings
from support.http_server import EVENTS, GRAPHS, TEXT, Run, events, last_report, served, started
from support.polling import PATIENCE, until


def test_events_begin_with_what_comes(client: httpx.Client, run: Run) -> None:
    with client.stream("GET", "/queries/hot/results", headers=EVENTS) as answer:
        assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
        lines = answer.iter_lines()
        assert next(lines) == "retry: 1000"
        run.feed(4)
        found = events(lines, 2)
    assert [(e["id"], e["event"]) for e in found] == [("5000", "report"), ("6000", "report")]
    assert json.loads(found[0]["data"])["report"] == 5000


def test_a_client_goes_on_where_it_was(client: httpx.Client, run: Run) -> None:
    headers = {**EVENTS, "Last-Event-ID": "2000"}
    with client.stream("GET", "/queries/hot/results", headers=headers) as answer:
        lines = answer.iter_lines()
        old = events(lines, 2)
        run.feed(2)
        new = events(lines, 1)
    assert [e["id"] for e in old + new] == ["3000", "4000", "5000"]
    with client.stream("GET", "/queries/hot/results?after=0", headers=EVENTS) as answer:
        every = events(answer.iter_lines(), 5)
    assert [e["id"] for e in every] == ["1000", "2000", "3000", "4000", "5000"]
    wrong = client.get("/queries/hot/results", headers={**EVENTS, "Last-Event-ID": "noon"})
    assert wrong.status_code == 400


def test_what_events_are_written_as(client: httpx.Client) -> None:
    for word in ("csv", "nt", "rubbish"):  # of a CONSTRUCT they are triples, too
        found = client.get(f"/queries/hot/results?format={word}", headers=EVENTS)
        assert (found.status_code, found.json().get("available")) == (406, ["ndjson"])
    with client.stream("GET", "/queries/hot/results?format=ndjson&after=0", headers=EVENTS) as ok:
        assert events(ok.iter_lines(), 1)[0]["id"] == "1000"


def test_many_queries_on_one_connection(client: httpx.Client, run: Run) -> None:
    run.engine.register(GRAPHS, name="made")
    run.feed(2)
    until(lambda: last_report(client) == 5000)
    with client.stream("GET", "/events?query=hot&query=made&after=hot=3000") as answer:
        lines = answer.iter_lines()
        assert [e["id"] for e in events(lines, 2)] == ["hot=4000", "hot=5000"]
        run.feed(8)
        reports: dict[str, list[int]] = {"hot": [], "made": []}
        while len(reports["hot"]) < 3 or not reports["made"]:
            (event,) = events(lines, 1)
            said = json.loads(event["data"])
            reports[said["query"]].append(said["report"])
    assert reports["hot"][:3] == [6000, 7000, 8000]
    last = dict(part.split("=") for part in event["id"].split(","))
    assert last.keys() == {"hot", "made"}


def test_what_is_not_kept_is_a_gap(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    with started(tmp_path, keep="3") as run, served(Settings(run.root, port=0)) as url:
        client = httpx.Client(base_url=url, timeout=PATIENCE)
        for n in range(1, 9):
            run.feed(2)
            until(partial(_read, run, 2 * n))
        until(lambda: last_report(client) == 7000)
        headers = {**EVENTS, "Last-Event-ID": "1000"}
        with client.stream("GET", "/queries/hot/results", headers=headers) as answer:
            gap, first = events(answer.iter_lines(), 2)
        assert gap["event"] == "gap"
        said = json.loads(gap["data"])
        assert (said["query"], said["after"], said["before"]) == ("hot", 1000, int(first["id"]))
        assert int(first["id"]) > 2000
        assert client.get("/queries/hot/results/1000").status_code == 410
        assert client.get("/queries/hot/results/7000").status_code == 200
        several = client.get("/queries/hot/results?after=1000")
        assert several.headers["levada-gap"].startswith("after=1000, up to=")
        kept = run.root / "results"
        until(lambda: len(list(kept.iterdir())) <= 5, "segments go with what is not kept")


def test_what_went_before_the_server_saw_it_is_a_gap(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a client that is there, too: a server that stood still has holes in what it saw."""
    (tmp_path / "s").mkdir()
    asleep, sleeps, look = threading.Event(), threading.Event(), Feed._refresh

    def refresh(feed: Feed) -> None:
        if asleep.is_set():
            sleeps.set()  # and the look before has ended
        else:
            look(feed)

    monkeypatch.setattr(Feed, "_refresh", refresh)
    with started(tmp_path, keep="3") as run, served(Settings(run.root, port=0)) as url:
        client = httpx.Client(base_url=url, timeout=PATIENCE)
        run.feed(6)
        until(lambda: last_report(client) == 2000)
        with client.stream("GET", "/queries/hot/results?after=1000", headers=EVENTS) as answer:
            lines = answer.iter_lines()
            assert [event["id"] for event in events(lines, 1)] == ["2000"]
            asleep.set()
            assert sleeps.wait(PATIENCE)
            for n in range(4, 12):
                run.feed(2)
                until(partial(_read, run, 2 * n))
            asleep.clear()
            gap, first = events(lines, 2)
    assert (gap["event"], first["event"]) == ("gap", "report")
    assert json.loads(gap["data"]) == {"query": "hot", "after": 2000, "before": int(first["id"])}
    assert int(first["id"]) > 3000


def test_what_cannot_be_read_is_no_hole_in_a_ring(
    client: httpx.Client, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, failed = Archive.read, []

    def once(archive: Archive, entry: Any, query: str, after: int | None = None) -> Any:
        if after is None and not failed:
            failed.append(entry)
            raise CheckpointError("It cannot be read now.")
        return read(archive, entry, query, after)

    with client.stream("GET", "/queries/hot/results", headers=EVENTS) as answer:
        lines = answer.iter_lines()
        assert next(lines) == "retry: 1000"
        monkeypatch.setattr(Archive, "read", once)
        run.feed(6)
        found = events(lines, 3)
    assert failed
    assert [event["id"] for event in found] == ["5000", "6000", "7000"]


def test_a_relation_s_changes_at_a_report_are_one_event(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("ts,k\n0,1\n1000,2\n2000,3\n3000,4\n")
    from levada import Engine

    with Engine(spark=False, checkpoint=tmp_path / "ck", keep="1h") as engine:
        engine.stream("A", tmp_path / "a.csv", schema="k:integer")
        engine.register("Select k From A [Range 1 s]", name="q")
        engine.start(once=True)
        engine.await_end()
    archive = Archive(tmp_path / "ck")
    archive.refresh()
    latest = archive.latest("q")
    assert latest is not None
    found = Pages(archive).behind("q", -1, latest.query.since)
    ids = [event.id for event in found]
    assert ids == sorted(set(ids))
    both = [event for event in found if event.body.count(b"\ndata: ") == 2]
    assert both, "deletes and inserts at one time"


def test_an_answer_of_a_query_without_windows(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "d.nt").write_text("<http://e/a> <http://e/p> <http://e/b> .\n")
    from levada import Engine

    with Engine(spark=False, checkpoint=tmp_path / "ck", keep="1h") as engine:
        engine.stream("s", tmp_path / "s")
        engine.static(str(tmp_path / "d.nt"))
        engine.register("SELECT ?s { ?s ?p ?o }", name="once")
        engine.start()
        with served(Settings(tmp_path / "ck", port=0)) as url:
            client = httpx.Client(base_url=url, timeout=PATIENCE)
            epoch = until(lambda: last_report(client, "once"))
            one = client.get(f"/queries/once/results/{epoch}").json()
            assert (one["report"], len(one["results"]["bindings"])) == (None, 1)


def test_a_ring_forgets_what_is_old() -> None:
    topic = Topic(0)
    topic.take([Event(i, b"x" * (feed_module.RING // 4)) for i in range(1, 9)])
    assert topic.floor == 4
    assert topic.behind(3) is None
    assert [event.id for event in topic.behind(6)] == [7]
    assert topic.behind(8) == []


def test_a_client_that_does_not_read_delays_nobody(client: httpx.Client, run: Run) -> None:
    url = client.base_url
    deaf = socket.create_connection((url.host, url.port))
    deaf.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    deaf.sendall(
        b"GET /queries/hot/results?after=0 HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        b"Accept: text/event-stream\r\n\r\n"
    )
    with client.stream("GET", "/queries/hot/results", headers=EVENTS) as answer:
        lines = answer.iter_lines()
        run.feed(400)
        found = events(lines, 200)
    assert [int(e["id"]) for e in found] == list(range(5000, 205_000, 1000))
    deaf.close()


@pytest.fixture
def process(run: Run) -> Iterator[Callable[[], str]]:
    """Starts ``levada serve --read-only`` as a process; kills the one before."""
    alive: list[subprocess.Popen[str]] = []

    def start() -> str:
        if alive:
            os.kill(alive[-1].pid, signal.SIGKILL)
            alive.pop().communicate()
        alive.append(
            subprocess.Popen(
                [
                    *(sys.executable, "-m", "levada", "serve", "--read-only", run.root),
                    *("--listen", "127.0.0.1:0"),
                ],
                stderr=subprocess.PIPE,
                text=True,
            )
        )
        assert alive[-1].stderr is not None
        said = alive[-1].stderr.readline()
        return said.split(" at ")[1].split(",")[0].strip()

    yield start
    for each in alive:
        each.kill()
        each.communicate()


@pytest.mark.long
def test_a_client_resumes_at_another_process(run: Run, process: Callable[[], str]) -> None:
    seen: list[str] = []
    for _ in range(3):
        url = process()
        run.feed(4)
        after = seen[-1] if seen else "0"
        headers = {**EVENTS, "Last-Event-ID": after}
        client = httpx.Client(base_url=url, timeout=PATIENCE)
        until(partial(_answers, client))
        with client.stream("GET", "/queries/hot/results", headers=headers) as answer:
            seen += [e["id"] for e in events(answer.iter_lines(), 2)]
    assert seen == [str(1000 * n) for n in range(1, 7)]


def test_a_client_resumes_at_another_engine(client: httpx.Client, run: Run) -> None:
    """One over the same streams, with other epochs: the same ids are the same reports."""
    run.feed(6)
    root = run.folder / "other"
    with Engine(
        spark=False, checkpoint=root, keep_results=False, keep="1h", epoch_rows=3
    ) as engine:
        engine.stream("s", run.folder / "s")
        engine.register(TEXT, name="hot")
        engine.start()
        with served(Settings(root, port=0)) as url:
            other = httpx.Client(base_url=url, timeout=PATIENCE)
            until(lambda: last_report(other) == last_report(client) == 7000)
            found = []
            for each in (client, other):
                headers = {**EVENTS, "Last-Event-ID": "3000"}
                with each.stream("GET", "/queries/hot/results", headers=headers) as answer:
                    found.append(events(answer.iter_lines(), 4))
    assert [event["id"] for event in found[1]] == ["4000", "5000", "6000", "7000"]
    assert found[0] == found[1]


def test_ids_that_are_none(client: httpx.Client) -> None:
    for said in ("noon", "--3", "9" * 30, "-", "1 2", "0x1", "1e3"):
        headers = {**EVENTS, "Last-Event-ID": said}
        assert client.get("/queries/hot/results", headers=headers).status_code == 400
        assert client.get("/events", headers={"Last-Event-ID": f"hot={said}"}).status_code == 400
        assert client.get("/events", headers={"Last-Event-ID": f"{said},"}).status_code == 400


def test_who_sends_without_end_is_no_client_any_more(
    run: Run, serve: Callable[..., httpx.Client]
) -> None:
    client = serve(Limits(body=1000))
    until(lambda: last_report(client) == 4000)
    with socket.create_connection((client.base_url.host, client.base_url.port)) as made:
        made.settimeout(PATIENCE)
        made.sendall(
            b"GET /queries/hot/results HTTP/1.1\r\nHost: 127.0.0.1\r\n"
            b"Accept: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
            b"7d0\r\n%b\r\n" % (b"x" * 2000)
        )
        while made.recv(65536):
            pass
    until(lambda: "levada_sse_clients 0" in client.get("/metrics").text)


def _read(run: Run, elements: int) -> bool:
    return sum(record.elements for record in run.engine._records().values()) == elements


def _answers(client: httpx.Client) -> bool:
    try:
        return client.get("/health").status_code == 200
    except httpx.TransportError:
        return False


def test_a_checkpoint_without_an_index_is_followed(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    with started(tmp_path, keep="", hot=TEXT) as run, served(Settings(run.root, port=0)) as url:
        client = httpx.Client(base_url=url, timeout=PATIENCE)
        run.feed(6)
        until(lambda: last_report(client) == 2000)
        with client.stream("GET", "/queries/hot/results", headers=EVENTS) as answer:
            run.feed(4)
            assert [e["id"] for e in events(answer.iter_lines(), 2)] == ["3000", "4000"]
