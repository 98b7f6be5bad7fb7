"""Events and messages of WebSockets that cannot be taken or read: each is one dead letter, the
others are taken, and memory is bounded.
"""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from websockets.sync.server import ServerConnection, serve

from levada.connectors.spool.receivers import pull_loop, sse
from levada.connectors.spool.receivers.sse import EventDecoder
from levada.engine.engine import Engine
from levada.runtime.task import ingest_task
from support.polling import until

XML = """<?xml version="1.0" encoding="{}"?><rdf:RDF xmlns:e="http://e/" \
xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#"><rdf:Description rdf:about="http://e/{}">\
<e:p>1</e:p></rdf:Description></rdf:RDF>"""
LARGE = 100_000  # bytes
TEXT = """SELECT (COUNT(*) AS ?n) FROM NAMED WINDOW <w> ON <s> [RANGE PT1S STEP PT1S]
WHERE { WINDOW <w> { ?a ?b ?c } }"""


class Server(http.server.ThreadingHTTPServer):
    """Sends blocks to the first who asks, and to later ones nothing; then it waits."""

    daemon_threads = True

    def __init__(self, blocks: Sequence[bytes], *, again: bool = False) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.blocks, self.again, self.over = blocks, again, threading.Event()
        self.asked: list[str | None] = []

    @property
    def path(self) -> str:
        return f"sse+http://127.0.0.1:{self.server_address[1]}/x"


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def log_message(self, *said: Any) -> None:
        pass

    def do_GET(self) -> None:
        own = self.server
        own.asked.append(self.headers.get("Last-Event-ID"))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        with suppress(OSError):
            for block in own.blocks if len(own.asked) == 1 else ():
                self.wfile.write(block)
            self.wfile.flush()
            own.over.wait(0 if own.again and len(own.asked) == 1 else 60)


@contextmanager
def events(blocks: Sequence[bytes], *, again: bool = False) -> Iterator[Server]:
    server = Server(blocks, again=again)
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    try:
        yield server
    finally:
        server.over.set()
        server.shutdown()
        server.server_close()


@contextmanager
def socket(payloads: Sequence[str | bytes]) -> Iterator[str]:
    """A WebSocket that sends some messages, over as many connections as it takes."""
    over, left = threading.Event(), list(payloads)

    def talk(connection: ServerConnection) -> None:
        with suppress(Exception):
            while left:
                connection.send(left.pop(0))
                if len(left) and len(left[0]) > LARGE:
                    connection.send(left.pop(0))
                    connection.recv()  # until the other side ends it
            over.wait(60)

    with serve(talk, "127.0.0.1", 0, max_size=None) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"ws://127.0.0.1:{server.socket.getsockname()[1]}/x"
        over.set()


@contextmanager
def listening(path: str, form: str, **options: Any) -> Iterator[Engine]:
    with Engine(spark=False, partitions=1, epoch="5ms") as engine:
        engine.stream("s", path, format=form, time="arrival", **options)
        engine.register(TEXT, name="q")
        engine.start()
        yield engine


def counts(engine: Engine) -> tuple[int, int]:
    record = engine._records().get("s")
    return (0, 0) if record is None else (record.elements, record.dead_letters)


def letters(engine: Engine) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for path in (engine.root / "side").iterdir()
        for line in path.read_text().splitlines()
        if line[:1] == "{"
    ]


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pull_loop, "FIRST_RETRY_PAUSE", 0.01)
    for name in ("sse", "websocket"):
        monkeypatch.setattr(f"levada.connectors.spool.receivers.{name}.LARGEST", LARGE)


def event(k: int, data: str) -> bytes:
    return f"id: {k}\ndata: {data}\n\n".encode()


@pytest.mark.parametrize("encoding", ["UTG-8", "UTF-7"])
def test_a_document_of_an_unknown_encoding_is_one_of_many_events(encoding: str) -> None:
    blocks = [event(k, XML.format(encoding if k == 50 else "UTF-8", k)) for k in range(101)]
    with events(blocks) as server, listening(server.path, "rdf") as engine:
        until(lambda: sum(counts(engine)) == 101)
        assert counts(engine) == (100, 1)
        (letter,) = letters(engine)
        assert letter["offset"] == 50


@pytest.mark.parametrize("form", ["nt", "rdf", "jsonld", "ndjson"])
def test_an_event_that_is_too_large_is_one_dead_letter(form: str) -> None:
    sound = {
        "nt": "<http://e/a> <http://e/p> <http://e/b> .",
        "rdf": XML.format("UTF-8", "a"),
        "jsonld": '{"@id": "http://e/a", "http://e/p": "x"}',
        "ndjson": '{"k": 1}',
    }[form]
    options: dict[str, Any] = {"schema": "k:integer"} if form == "ndjson" else {}
    large = [b"id: 1\ndata: ", *[b"x" * 1000] * 300, b"\n\n"]
    lines = [b"id: 3\n", *[b"data: " + b"x" * 100 + b"\n"] * 3000, b"\n"]
    blocks = [event(0, sound), *large, event(2, sound), *lines, event(4, sound)]
    with Engine(spark=False, partitions=1, epoch="5ms") as engine, events(blocks) as server:
        engine.stream("s", server.path, format=form, time="arrival", **options)
        if form == "ndjson":
            engine.register("Istream(Select k From s [Now])", name="q", dialect="cql")
        else:
            engine.register(TEXT, name="q")
        engine.start()
        until(lambda: sum(counts(engine)) == 5)
        assert counts(engine) == (3, 2)
        found = sorted((letter["offset"], letter["reason"]) for letter in letters(engine))
        why = f"the event has more than {LARGE >> 20} MB: it is not taken"
        assert found == [(1, why), (3, why)]


def test_a_line_without_an_end_is_told_while_it_lasts(monkeypatch: pytest.MonkeyPatch) -> None:
    held: list[int] = []
    whole = EventDecoder._extend

    def extend(decoder: EventDecoder, part: bytes) -> Any:
        held.append(len(decoder._line) + len(decoder._data))
        return whole(decoder, part)

    monkeypatch.setattr(EventDecoder, "_extend", extend)
    blocks = [b"data: ", *[b"x" * 10_000] * 500]
    with events(blocks) as server, listening(server.path, "nt") as engine:
        until(lambda: counts(engine) == (0, 1))
        (letter,) = letters(engine)
        assert letter["reason"].startswith("the event has more than ")
    assert max(held) <= LARGE


def test_a_comment_may_have_any_size() -> None:
    decoder = EventDecoder()
    blocks = [b"data: a\n:", *[b"x" * 1000] * 300, b"\ndata: b\n", b"\n"]
    found = [message for block in blocks for message in decoder.decode(block)]
    assert [(message.payload, message.fault) for message in found] == [(b"a\nb", "")]


@pytest.mark.parametrize("said", ["\x0b", "a\x0c", "\u00e9\x85", " 1", "x" * 5000, "a\x01b"])
def test_an_id_that_no_header_can_have_is_not_asked_for(said: str) -> None:
    """The connection is made again, also where an id could end it."""
    line = "<http://e/a> <http://e/p> <http://e/b> ."
    blocks = [event(1, line), f"id: {said}\ndata: {line}\n\n".encode()]
    with events(blocks, again=True) as server, listening(server.path, "nt") as engine:
        until(lambda: len(server.asked) == 2)
        until(lambda: counts(engine) == (2, 0))
    assert server.asked == [None, "1"]


def test_an_id_beyond_ascii_is_asked_for() -> None:
    blocks = [event(1, "<http://e/a> <http://e/p> <http://e/b> .").replace(b"1", "é".encode())]
    with events(blocks, again=True) as server, listening(server.path, "nt"):
        until(lambda: len(server.asked) == 2)
    assert server.asked[1] == "é".encode().decode("latin-1")


def pieces(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


@pytest.mark.parametrize("size", [1, 2, 3, 7, 1000])
def test_events_are_what_another_decoder_gives(size: int) -> None:
    """For each size of blocks; the twin is httpx-sse's."""
    from httpx_sse._decoders import SSEDecoder, SSELineDecoder

    data = (
        b"\xef\xbb\xbf: c\r\ndata:a\r\n\r\nid:7\rdata: b\rdata:\rdata\revent: e\r\rdata:\n\n"
        b"retry: 5\nid\ndata: \xc3\xa9\xff x\nother: y\n\nid: a\0b\ndata:  c\n\n\n\ndata: not whole"
    )
    split, other = SSELineDecoder(), SSEDecoder()
    wanted = []
    for line in split.decode(data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")):
        found = other.decode(line)
        if found is not None and found.data:
            wanted.append((found.data.encode(), found.event, found.id))
    decoder = EventDecoder()
    made = [m for block in pieces(data, size) for m in decoder.decode(block)]
    assert [(m.payload, m.topic, m.note) for m in made] == wanted
    assert len(made) == 4


def test_messages_of_a_websocket_that_cannot_be_read_are_dead_letters() -> None:
    line = "<http://e/a> <http://e/p> <http://e/b> ."
    payloads: list[str | bytes] = [
        line,
        b"\xff\xfe",
        line.encode(),
        "x" * (2 * LARGE),
        line,
        b"\0" * 8,
        line,
    ]
    with socket(payloads) as path, listening(path, "nt") as engine:
        until(lambda: sum(counts(engine)) == 7)
        assert counts(engine) == (4, 3)
        reasons = sorted(letter["reason"] for letter in letters(engine))
        assert any(reason.startswith("the message has more than") for reason in reasons), reasons


def test_a_connection_that_raises_what_nobody_expects_is_made_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    line = "<http://e/a> <http://e/p> <http://e/b> ."
    whole, raised = sse.EventDecoder.decode, []

    def decode(decoder: EventDecoder, block: bytes) -> Any:
        if not raised:
            raised.append(block)
            raise ZeroDivisionError("odd")
        return whole(decoder, block)

    monkeypatch.setattr(EventDecoder, "decode", decode)
    with events([event(1, line)]) as server, listening(server.path, "nt") as engine:
        until(lambda: len(server.asked) == 2)
        until(lambda: not engine.progress().waiting_for)


@pytest.mark.parametrize("form", ["nt", "rdf", "ndjson"])
@pytest.mark.parametrize("odd", [(3,), (0, 8, 9)])
def test_whatever_is_raised_for_a_batch_is_of_the_messages_that_raise_it(
    monkeypatch: pytest.MonkeyPatch, form: str, odd: tuple[int, ...]
) -> None:
    """A batch that fails as a whole is read in parts, in whatever step it fails."""
    name = "tuples_of" if form == "ndjson" else "elements_of"
    whole = getattr(ingest_task, name)

    def fail(found: Any, *given: Any, **more: Any) -> Any:
        if form == "ndjson":
            is_odd = b"odd" in bytes(found.data)
        else:
            is_odd = any("odd" in found.text(found.s, row) for row in range(found.n))
        if is_odd:
            raise ZeroDivisionError("odd")
        return whole(found, *given, **more)

    monkeypatch.setattr(ingest_task, name, fail)
    blocks = []
    for k in range(10):
        subject = "odd" if k in odd else "even"
        sound = {
            "nt": f"<http://e/{subject}> <http://e/p> <http://e/b> .",
            "rdf": XML.format("UTF-8", subject),
            "ndjson": json.dumps({"k": k, "v": subject}),
        }[form]
        blocks.append(event(k, sound))
    options: dict[str, Any] = {"schema": "k:integer;v:string"} if form == "ndjson" else {}
    with (
        Engine(spark=False, partitions=1, epoch="5ms") as engine,
        events([b"".join(blocks)]) as server,
    ):
        engine.stream("s", server.path, format=form, time="arrival", **options)
        if form == "ndjson":
            engine.register("Istream(Select k From s [Now])", name="q", dialect="cql")
        else:
            engine.register(TEXT, name="q")
        engine.start()
        until(lambda: sum(counts(engine)) >= 10)
        assert counts(engine) == (10 - len(odd), len(odd))
        found = sorted((letter["offset"], letter["reason"]) for letter in letters(engine))
        assert found == [(k, "it cannot be read: odd") for k in odd]
