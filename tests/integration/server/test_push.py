"""Rows that clients push: durable when they are answered, whole or not at all, once for a key."""

from __future__ import annotations

import asyncio
import resource
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.client import HTTPConnection
from pathlib import Path

import httpx
import pytest

from levada import Engine
from levada.connectors.config.input_formats import PUSH
from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.spool import push_spool
from levada.connectors.spool.push_spool import REMEMBERED, PushLog
from levada.core.event_time import MIN
from levada.errors import SinkError, UsageError
from levada.server.problem_json import Problem
from levada.server.push.push_writer import Body, Pusher
from levada.server.settings import Limits, Settings
from levada.testing.stream_builders import ManualClock
from support.http_server import last_report, served
from support.polling import PATIENCE, until

QUADS = {"Content-Type": "application/n-quads"}
ROWS = {"Content-Type": "application/x-ndjson"}
TEXT = """PREFIX : <http://e/>
SELECT ?a ?n FROM NAMED WINDOW :w ON :s [RANGE PT2S STEP PT1S]
WHERE { WINDOW :w { ?a :p ?n } } ORDER BY ?n
"""


def line(n: int, subject: str = "<http://e/a>") -> str:
    return f'{subject} <http://e/p> "{n}" {500 * n} .\n'


def config(name: str, **options: object) -> StreamConfig:
    return StreamConfig.from_options(name, PUSH, **options)


@contextmanager
def engine(folder: Path) -> Iterator[Engine]:
    with Engine(spark=False, checkpoint=folder / "ck", keep_results=False, keep="1h") as made:
        made.stream("s", config("s"))
        made.stream("k", config("k", schema="k:integer;v:double"))
        made.register(TEXT, name="hot")
        made.register("Select k From k [Range 1 s]", name="rows")
        made.start()
        yield made


@pytest.fixture
def client(tmp_path: Path) -> Iterator[httpx.Client]:
    limits = Limits(body=1 << 20, backlog=1 << 16)
    with engine(tmp_path), served(Settings(tmp_path / "ck", port=0, limits=limits)) as url:
        client = httpx.Client(base_url=url, timeout=PATIENCE)
        until(lambda: client.get("/streams/s").status_code == 200)
        yield client


def read(client: httpx.Client, stream: str, elements: int) -> bool:
    return client.get(f"/streams/{stream}").json().get("elements", 0) == elements


def test_what_is_pushed_comes_through(client: httpx.Client) -> None:
    body = "".join(map(line, range(8)))
    found = client.post("/streams/s", content=body, headers=QUADS)
    assert (found.status_code, found.json()["rows"]) == (202, 8)
    until(lambda: last_report(client) == 3000)
    assert client.get("/queries/hot/results/2000", headers={"Accept": "text/csv"}).text == (
        "report,a,n\n" + "".join(f"2000,http://e/a,{n}\n" for n in range(4))
    )
    stream = client.get("/streams/s").json()
    assert (stream["accepts_rows"], stream["format"]) == (True, "nq")
    assert client.put("/streams/s").status_code == 200
    assert 'levada_pushed_rows_total{stream="s"} 8' in client.get("/metrics").text


def test_rows_of_a_table(client: httpx.Client) -> None:
    rows = "".join(f'{{"ts": {1000 * n}, "k": {n}, "v": 0.5}}\n' for n in range(4))
    assert client.post("/streams/k", content=rows, headers=ROWS).json()["rows"] == 4
    until(partial(read, client, "k", 4))


@pytest.mark.long
@pytest.mark.parametrize(
    ("stream", "bad", "at", "said"),
    [
        ("s", '<http://e/a> <http://e/p> "x\n', (3, 1), "No dot stands at the end of the line."),
        ("s", "<http://e/a> <http://e/p> <http://e/b> .\n", (3, 1), "No event time stands"),
        ("s", "<http://e/a> <http://e p> <http://e/b> 5 .\n", (3, 14), "Malformed"),
        ("s", "\udcff <http://e/p> <http://e/b> 5 .\n", (3, 1), "Malformed"),
        ("k", '{"ts": 1, "k": "one"}\n', (3, 1), "A row cannot be read"),
        ("k", "[1]\n", (3, 1), "A row cannot be read: a JSON array, and NDJSON has an object"),
        ("k", '{"k": 1}\n', (3, 1), "A row cannot be read"),
    ],
)
def test_a_body_with_a_mistake_is_not_taken(
    client: httpx.Client, stream: str, bad: str, at: tuple[int, int], said: str
) -> None:
    good = [line(1), line(2)] if stream == "s" else ['{"ts": 1, "k": 1}\n', '{"ts": 2, "k": 2}\n']
    body = "".join([*good, bad, good[0]]).encode("utf-8", "surrogateescape")
    found = client.post(
        f"/streams/{stream}", content=body, headers=QUADS if stream == "s" else ROWS
    )
    assert found.status_code == 400
    problem = found.json()
    assert problem["detail"].startswith(said)
    assert (problem["line"], problem["faulty_rows"]) == (at[0], 1)
    assert problem["column"] >= at[1]
    assert client.post(f"/streams/{stream}", content="".join(good)).json()["rows"] == 2
    until(partial(read, client, stream, 2))


def test_a_byte_order_mark_is_none_of_a_body(client: httpx.Client, tmp_path: Path) -> None:
    for k, (stream, body) in enumerate((("s", line(1)), ("k", '{"ts": 1, "k": 1}\n'))):
        found = client.post(f"/streams/{stream}", content=f"\ufeff{body}")
        assert (found.status_code, found.json().get("rows")) == (202, 1), found.text
        until(partial(read, client, stream, 1))
        assert len([*tmp_path.rglob("data/0*")]) == k + 1
    written = b"".join(path.read_bytes() for path in tmp_path.rglob("data/0*"))
    assert b"\xef\xbb\xbf" not in written, "beside others it would be in the middle of a file"


def test_what_is_sent_again_is_taken_once(client: httpx.Client) -> None:
    headers = {**QUADS, "Idempotency-Key": "one"}
    first = client.post("/streams/s", content=line(1), headers=headers)
    again = client.post("/streams/s", content=line(1), headers=headers)
    assert (first.json()["is_repeated"], again.json()["is_repeated"]) == (False, True)
    assert (again.status_code, again.json()["rows"]) == (202, 0)
    client.post("/streams/s", content=line(2), headers={**QUADS, "Idempotency-Key": "two"})
    until(partial(read, client, "s", 2))


def test_a_key_is_one_bodys(client: httpx.Client) -> None:
    """Else a client that gives two bodies one key would lose the second, and be told 202."""
    headers = {**QUADS, "Idempotency-Key": "one"}
    assert client.post("/streams/s", content=line(1), headers=headers).status_code == 202
    other = client.post("/streams/s", content=line(2), headers=headers)
    assert (other.status_code, "another body" in other.json()["detail"]) == (422, True)
    assert client.post("/streams/s", content=line(1), headers=headers).json()["is_repeated"]
    wrong = {**QUADS, "Idempotency-Key": "two"}
    assert client.post("/streams/s", content="none", headers=wrong).status_code == 400
    assert client.post("/streams/s", content=line(2), headers=wrong).json()["rows"] == 1
    until(partial(read, client, "s", 2))


def test_a_key_of_long_ago_is_new(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    clock = ManualClock()
    log = PushLog(tmp_path / "data", "nq", clock)
    log.append(b"x\n", {"one": "x"})
    clock.advance(REMEMBERED)
    assert log.find_by_key("one") == "x"
    clock.advance(1)
    assert log.find_by_key("one") is None
    log.append(b"y\n", {"two": "y"})
    assert [path.name for path in (tmp_path / "keys").iterdir()] == ["000000000000002"]


def test_a_step_of_the_clock_forgets_no_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "data").mkdir()
    log = PushLog(tmp_path / "data", "nq")
    log.append(b"x\n", {"one": "x"})
    ahead = time.time() + 86_400
    monkeypatch.setattr(time, "time", lambda: ahead)
    monkeypatch.setattr(time, "time_ns", lambda: int(ahead * 10**9))
    log.append(b"y\n", {"two": "y"})
    assert (log.find_by_key("one"), log.find_by_key("two")) == ("x", "y")
    again = PushLog(tmp_path / "data", "nq")
    assert (again.find_by_key("one"), again.find_by_key("two")) == ("x", "y"), (
        "also in the next life"
    )


def test_more_keys_than_are_remembered_are_refused_until_some_are_old(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(push_spool, "MAX_KEYS", 2)
    (tmp_path / "data").mkdir()
    clock, config = ManualClock(), StreamConfig.from_options("http://e/s", "push:", format="nq")
    log = PushLog(tmp_path / "data", "nq", clock)

    async def send(key: str) -> int:
        data = f"{line(1)}\n".encode()
        try:
            return await Pusher(log).add(Body(config, data, key, MIN, 1, key)) or 0
        except Problem as problem:
            return problem.status

    assert [asyncio.run(send(key)) for key in ("a", "b", "c", "")] == [1, 1, 429, 1]
    clock.advance(REMEMBERED + 1)
    assert asyncio.run(send("c")) == 1
    assert len(log._seen) == 1


def test_the_age_of_a_key_of_a_life_before_counts_from_the_start(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    PushLog(tmp_path / "data", "nq", ManualClock(10**9)).append(b"x\n", {"one": "x"})
    clock = ManualClock()
    log = PushLog(tmp_path / "data", "nq", clock)
    clock.advance(REMEMBERED)
    assert log.find_by_key("one") == "x"
    clock.advance(1)
    assert log.find_by_key("one") is None


def test_many_at_once_are_all_there(client: httpx.Client) -> None:
    taken: list[int] = []

    def send(start: int) -> None:
        answers = (client.post("/streams/s", content=line(n)) for n in range(start, start + 10))
        taken.extend(answer.status_code for answer in answers)

    threads = [threading.Thread(target=send, args=(10 * i,)) for i in range(5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert taken == [202] * 50
    until(lambda: client.get("/streams/s").json()["elements"] + _late(client) == 50)


def _late(client: httpx.Client) -> int:
    found: int = client.get("/streams/s").json()["late"]
    return found


def test_what_is_refused(client: httpx.Client) -> None:
    assert client.post("/streams/s", content="{}", headers=ROWS).status_code == 415
    missing = client.post("/streams/t", content=line(1))
    assert missing.status_code == 404
    assert missing.json()["hint"] == "PUT makes one that can be fed here."
    large = client.post("/streams/s", content=b"#" * (2 << 20), headers=QUADS)
    assert large.status_code == 413
    packed = {**QUADS, "Content-Encoding": "gzip"}
    assert client.post("/streams/s", content=b"\x1f\x8b", headers=packed).status_code == 415
    plain = {**QUADS, "Content-Encoding": "Identity"}
    assert client.post("/streams/s", content=b"", headers=plain).status_code == 202
    long_key = {**QUADS, "Idempotency-Key": "k" * 300}
    assert client.post("/streams/s", content=line(1), headers=long_key).status_code == 400
    assert client.post("/streams/s", content=b"", headers=QUADS).json()["rows"] == 0


def test_a_stream_of_files_takes_no_rows(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    with Engine(spark=False, checkpoint=tmp_path / "ck", keep_results=False) as made:
        made.stream("s", tmp_path / "s", format="nq")
        made.start()
        with served(Settings(tmp_path / "ck", port=0)) as url:
            client = httpx.Client(base_url=url, timeout=PATIENCE)
            until(lambda: client.get("/streams/s").status_code == 200)
            found = client.post("/streams/s", content=line(1), headers=QUADS)
    assert (found.status_code, "is not pushed" in found.json()["detail"]) == (409, True)


def test_a_log_that_nobody_reads_is_full(tmp_path: Path) -> None:
    with engine(tmp_path) as made:
        until(lambda: any((tmp_path / "ck" / "plans").glob("setup-*")))
        made.stop()
    limits = Limits(backlog=100)
    with served(Settings(tmp_path / "ck", port=0, limits=limits)) as url:
        client = httpx.Client(base_url=url, timeout=PATIENCE)
        codes = [client.post("/streams/s", content=line(n)).status_code for n in range(8)]
        assert codes[0] == 202
        assert codes[-1] == 429
        full = client.post("/streams/s", content=line(1))
        assert full.headers["retry-after"] == "1"
        kept = HTTPConnection("localhost", client.base_url.port)
        for _ in range(20):  # the connection of a client that sends all before it reads stays
            kept.request("POST", "/streams/s", line(1) * 15_000)
            with kept.getresponse() as answer:
                assert (answer.status, "before it" in answer.read().decode()) == (429, True)
        kept.close()
    taken = codes.count(202)
    with engine(tmp_path) as again:
        until(lambda: sum(r.elements for r in again._records().values()) == taken)


def test_keys_outlive_the_server(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    PushLog(tmp_path / "data", "nq").append(b"x\n", {"one": "x"})
    (tmp_path / "keys" / "000000000000002").write_text('["never"]')  # it died before the batch
    again = PushLog(tmp_path / "data", "nq")
    assert (again.find_by_key("one"), again.find_by_key("never")) == ("x", None)
    again.append(b"y\n", {})
    assert sorted(p.name for p in (tmp_path / "data").iterdir()) == [
        "000000000000001.x1bf67208bddf1edb.nq",
        "000000000000002.x73100b1c1f3123de.nq",
    ]


def test_keys_of_a_batch_that_could_not_be_written_are_new(tmp_path: Path) -> None:
    """The batch behind it has its number; the server is started again after that."""
    (tmp_path / "data").mkdir()
    log = PushLog(tmp_path / "data", "nq")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, hard))
    try:
        with pytest.raises(SinkError):
            log.append(b"x" * 1000, {"one": "x"})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    log.append(b"y\n", {})
    assert log.find_by_key("one") is None
    assert PushLog(tmp_path / "data", "nq").find_by_key("one") is None


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"format": "ttl", "time": "predicate:http://e/t"}, "comes as nt, nq, ndjson"),
        ({"element": "subject"}, "comes by lines"),
        ({"schema": "auto"}, "needs its schema said"),
        ({"files": "parallel"}, "is one sequence"),
    ],
)
def test_what_needs_a_file(tmp_path: Path, options: dict[str, str], said: str) -> None:
    with (
        Engine(spark=False, checkpoint=tmp_path / "ck") as made,
        pytest.raises(UsageError, match=said),
    ):
        made.stream("s", config("s", **options))


DOCUMENTS = {
    "text/turtle": "@prefix : <http://e/> .\n:a :p 7 .\n:b :p [] .",
    "application/trig": "@prefix : <http://e/> .\n:g { :a :p 7 . :b :p [] }",
    "application/rdf+xml": """<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"
        xmlns="http://e/"><rdf:Description rdf:about="http://e/a"><p>7</p><p rdf:nodeID="b"/>
        </rdf:Description></rdf:RDF>""",
    "application/ld+json": '[{"@id": "http://e/a", "http://e/p": [7, {"http://e/q": 1}]}]',
    "application/x-ndjson": '{"@id": "http://e/a", "http://e/p": [7]}\n\n'
    '{"@id": "_:x", "http://e/p": 8}\n{"@id": "_:x", "http://e/p": 8}\n',
    "application/n-quads": "<http://e/a> <http://e/p> <http://e/b> <http://e/g> .\n",
    "application/n-triples": "<http://e/a> <http://e/p> <http://e/b> .\n",
}


@pytest.fixture
def arrivals(tmp_path: Path) -> Iterator[httpx.Client]:
    with Engine(spark=False, checkpoint=tmp_path / "ck", keep_results=False, keep="1h") as made:
        made.stream("s", config("s", time="arrival"))
        made.stream("t", config("t", format="nt", time="arrival"))
        made.stream("m", config("m", time="predicate:http://e/at", element="blankline"))
        made.register(TEXT.replace(":s", "<s>"), name="hot")
        made.start()
        with served(Settings(tmp_path / "ck", port=0)) as url:
            client = httpx.Client(base_url=url, timeout=PATIENCE)
            until(lambda: client.get("/streams/s").status_code == 200)
            yield client


COUNTS = list(zip(DOCUMENTS, (2, 2, 2, 3, 3, 1, 1), strict=True))


@pytest.mark.long
@pytest.mark.parametrize(("media", "count"), COUNTS)
def test_documents_are_pushed_where_times_are_elsewhere(
    arrivals: httpx.Client, media: str, count: int
) -> None:
    found = arrivals.post("/streams/s", content=DOCUMENTS[media], headers={"Content-Type": media})
    assert (found.status_code, found.json().get("rows")) == (202, count), found.text
    until(partial(read, arrivals, "s", count))
    graphs = media in ("application/trig", "application/ld+json", "application/x-ndjson")
    other = arrivals.post("/streams/t", content=DOCUMENTS[media], headers={"Content-Type": media})
    assert other.status_code == (415 if graphs or "quads" in media else 202), other.text


def test_a_body_is_an_element_where_times_are_statements(arrivals: httpx.Client) -> None:
    turtle = "@prefix : <http://e/> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .\n"
    for at in (1, 2, 3):
        body = f'{turtle}:a :p {at} ; :at "1970-01-01T00:00:0{at}Z"^^xsd:dateTime .'
        sent = arrivals.post("/streams/m", content=body, headers={"Content-Type": "text/turtle"})
        assert (sent.status_code, sent.json()["rows"]) == (202, 2)
    until(partial(read, arrivals, "m", 3))
    assert arrivals.get("/streams/m").json()["watermark"] == 3000


@pytest.mark.parametrize(
    ("media", "body", "line"),
    [
        ("text/turtle", "@prefix : <http://e/> .\n:a :p .", 2),
        ("application/x-ndjson", '{"@id": "http://e/a"}\n{"@id": ', 2),
        ("application/ld+json", '{"@context": "http://e/c", "@id": "http://e/a"}', 1),
        ("application/rdf+xml", "<a", 1),
    ],
)
def test_a_document_with_a_mistake_is_not_taken(
    arrivals: httpx.Client, media: str, body: str, line: int
) -> None:
    found = arrivals.post("/streams/s", content=body, headers={"Content-Type": media})
    assert (found.status_code, found.json().get("line")) == (400, line), found.text
    assert found.json()["detail"].startswith("The body cannot be read: ")


def test_a_document_has_no_times_in_lines(client: httpx.Client) -> None:
    found = client.post("/streams/s", content=":a :b :c .", headers={"Content-Type": "text/turtle"})
    assert found.status_code == 415
    assert "time=arrival" in found.json()["hint"]
    assert found.json()["available"] == ["application/n-quads", "application/n-triples"]


def test_who_pushes_says_how_far_he_is(client: httpx.Client) -> None:
    body = "".join(map(line, range(3)))
    assert client.post("/streams/s", content=body, headers=QUADS).status_code == 202
    until(partial(read, client, "s", 3))
    assert client.get("/streams/s").json()["watermark"] == 1000
    far = {**QUADS, "Levada-Watermark": "1970-01-01T00:00:04Z"}
    assert client.post("/streams/s", content="", headers=far).status_code == 202
    until(lambda: client.get("/streams/s").json()["watermark"] == 4000)
    until(lambda: last_report(client) == 3000)
    client.post("/streams/s", content=line(7), headers=QUADS)
    until(lambda: client.get("/streams/s").json()["late"] == 1)
    for said in ("soon", str(10**15)):
        wrong = client.post("/streams/s", content="", headers={**QUADS, "Levada-Watermark": said})
        assert wrong.status_code == 400
        assert "Levada-Watermark" in wrong.json()["detail"]


@pytest.mark.parametrize("encoding", ["UTG-8", "UTF-7", "UTF-16", "hex"])
def test_a_document_of_another_encoding_is_refused(client: httpx.Client, encoding: str) -> None:
    client.put("/streams/d", json={"format": "nt", "time": "arrival"})
    document = f'<?xml version="1.0" encoding="{encoding}"?><a/>'
    media = {"Content-Type": "application/rdf+xml"}
    found = client.post("/streams/d", content=document, headers=media)
    assert found.status_code == 400
    assert found.json()["detail"].startswith("The body cannot be read: ")


@pytest.mark.long
def test_a_result_that_a_format_cannot_hold_is_not_acceptable(client: httpx.Client) -> None:
    text = """PREFIX : <http://e/> PREFIX rdf: <http://www.w3.org/1999/02/22-rdf-syntax-ns#>
    CONSTRUCT { ?a :p ?o } FROM NAMED WINDOW :w ON :s [RANGE PT2S STEP PT1S]
    WHERE { WINDOW :w { ?a :p ?n } BIND(IF(?n = "x", STRDT(?n, rdf:langString), ?n) AS ?o) }"""
    query = client.put(
        "/queries/odd", content=text, headers={"Content-Type": "application/sparql-query"}
    )
    assert query.status_code == 201
    rows = ('"x" 500', '"y" 3000', '"z" 6000')
    body = "".join(f"<http://e/a> <http://e/p> {row} .\n" for row in rows)
    assert client.post("/streams/s", content=body, headers=QUADS).status_code == 202
    until(lambda: (last_report(client) or 0) >= 4000)
    media = {"Accept": "application/ld+json"}
    found = client.get("/queries/odd/results/1000", headers=media)
    assert found.status_code == 406
    assert "cannot hold a result of odd" in found.json()["detail"]
    assert client.get("/queries/odd/results/4000", headers=media).status_code == 200
    triples = client.get("/queries/odd/results/1000", headers={"Accept": "application/n-quads"})
    assert '"x"^^<http://www.w3.org/1999/02/22-rdf-syntax-ns#langString>' in triples.text
