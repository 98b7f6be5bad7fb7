"""Streams of MQTT, over a real broker: they give what files give."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from levada.connectors.config.stream_config import StreamConfig
from levada.engine.engine import Engine
from levada.errors import SourceError, UsageError
from support.mqtt_broker import Broker, free_port, until

COUNT = """PREFIX : <http://e/> SELECT (COUNT(*) AS ?n) (SUM(?v) AS ?sum)
FROM NAMED WINDOW :w ON :s [RANGE PT4S STEP PT4S] WHERE { WINDOW :w { ?x :v ?v } }"""
S = "http://e/s"
TOPICS = (f"t{k}" for k in itertools.count())
XSD = "http://www.w3.org/2001/XMLSchema#"
VERSIONS = pytest.mark.parametrize("version", ["5", "3.1.1"])


def integer(k: int) -> str:
    return f'"{k}"^^<{XSD}integer>'


def statement(k: int, graph: str = "", time: int | None = None) -> str:
    return f"<http://e/{k}> <http://e/v> {integer(k)} {graph}{'' if time is None else time} ."


@contextmanager
def listening(path: object, text: str = COUNT, **options: Any) -> Iterator[tuple[Engine, Any]]:
    """An engine that has subscribed: what is sent from now on it gets."""
    checkpoint, dialect = options.pop("checkpoint", None), options.pop("dialect", None)
    name = options.pop("name", S)
    with Engine(spark=False, checkpoint=checkpoint, partitions=2, epoch="5ms") as engine:
        engine.stream(name, path, **options)  # type: ignore[arg-type]
        asked = engine.register(text, name="q", dialect=dialect)
        engine.start()
        yield engine, asked


def record(engine: Engine, name: str = S) -> Any:
    return engine._records().get(name)


def seen(engine: Engine, n: int, name: str = S) -> None:
    """Waits until so many elements have been read, the dead and late ones too."""
    until(
        lambda: (
            (r := record(engine, name)) is not None and r.elements + r.dead_letters + r.late >= n
        )
    )


def reports(asked: Any, n: int) -> dict[int | None, list[tuple[str, ...]]]:
    """The first ``n`` reports."""
    return {
        r.time: [tuple(map(str, row)) for row in r.rows.rows()]
        for r in itertools.islice(asked.results(), n)
    }


def letters(engine: Engine) -> list[dict[str, Any]]:
    found = [
        json.loads(x)
        for path in (engine.root / "side").iterdir()
        for x in path.read_text().splitlines()
        if x[:1] == "{"
    ]
    return sorted(found, key=lambda letter: int(letter["offset"]))


@VERSIONS
def test_what_comes_is_what_files_give(broker: Broker, tmp_path: Path, version: str) -> None:
    lines = [statement(k, time=100 * k) for k in range(200)]
    file = tmp_path / "s.nt"
    file.write_text("\n".join(lines) + "\n")
    with listening(file) as (_, asked):
        wanted = reports(asked, 4)
    topic = next(TOPICS)
    with listening(broker.url(f"{topic}/+/v"), format="nt", version=version) as (engine, asked):
        broker.send(f"{topic}/a/v", lines, lines=True)
        broker.send(f"{topic}/a/other", lines[:3], lines=True)
        assert reports(asked, 4) == wanted
        seen(engine, 200)
        assert record(engine).elements == 200
        assert engine._spools.unavailable == {}


DOCUMENTS = {
    "nt": statement(7),
    "nq": statement(7, "<http://e/g> "),
    "ttl": "@prefix : <http://e/> .\n:x :v 7 .",
    "trig": "@prefix : <http://e/> .\n:g { :x :v 7 }",
    "jsonld": '{"@id": "http://e/x", "http://e/v": 7}',
}


@pytest.mark.parametrize("form", DOCUMENTS)
def test_formats_and_what_is_malformed(broker: Broker, form: str) -> None:
    topic = next(TOPICS)
    before = int(time.time() * 1000)
    bad: list[str | bytes] = ["half <", b"\xff\xfe", b"\0\0\0\0\x07{}", "[" * 10_000]
    with listening(broker.url(f"{topic}/#"), format=form, time="arrival") as (engine, _):
        broker.send(f"{topic}/good", [DOCUMENTS[form]])
        broker.send(f"{topic}/bad/1", bad)
        broker.send(f"{topic}/good", [DOCUMENTS[form]])
        seen(engine, 6)
        found = record(engine)
        assert (found.elements, found.dead_letters, found.unaccounted_elements, found.late) == (
            2,
            4,
            0,
            0,
        )
        assert before <= found.max_ts <= time.time() * 1000
        told = letters(engine)
        assert [(d["source"], d["offset"]) for d in told] == [
            (f"{topic}/bad/1", k) for k in range(1, 5)
        ]
        assert all(d["reason"] for d in told)
        assert "registry" in told[2]["reason"]


def test_tables_and_levels_of_the_topic(broker: Broker) -> None:
    topic = next(TOPICS)
    text = (
        "Select S.topic_2, S.topic_9, Count(*) As n, Sum(S.v) As v "
        "From S [Range 4 Seconds Slide 4 Seconds] Group By S.topic_2, S.topic_9"
    )
    schema = "topic_2:string;topic_9:string;v:integer;ts:integer"
    for form, values in (
        ("ndjson", ['{"v": 1, "ts": 1000}', '{"v": 2,\n "ts": 2000, "topic_2": "x"}', "{"]),
        ("csv", ["1,1000", "2,2000", "1,2,3"]),
    ):
        address = broker.url(f"{topic}/+/v")
        with listening(
            address, text, dialect="cql", name="S", format=form, schema=schema, lateness="10s"
        ) as (
            engine,
            asked,
        ):
            for room in ("a", "b"):
                broker.send(f"{topic}/{room}/v", values)
            end = '{"v": 0, "ts": 19000}' if form == "ndjson" else "0,19000"
            broker.send(f"{topic}/a/v", [end])
            seen(engine, 7, "S")
            found = next(asked.results()).rows.rows()
            assert sorted(row[-4:] for row in found) == [
                ('"a"', None, integer(2), integer(3)),
                ('"b"', None, integer(2), integer(3)),
            ], (form, found)
            assert record(engine, "S").dead_letters == 2
            assert {d["source"] for d in letters(engine)} == {f"{topic}/a/v", f"{topic}/b/v"}


def test_a_mapping_says_the_topic(broker: Broker, tmp_path: Path) -> None:
    topic = next(TOPICS)
    mapping = tmp_path / "m.yaml"
    mapping.write_text(
        "columns: {v: integer}\n"
        "triples:\n"
        "  - <http://e/{topic_2}> <http://e/v> {v}\n"
        "  - <http://e/{topic_2}> <http://e/topic> {topic}\n"
    )
    text = COUNT.replace("SELECT (COUNT(*) AS ?n) (SUM(?v) AS ?sum)", "SELECT ?x ?v ?t").replace(
        "?x :v ?v", "?x :v ?v . ?x :topic ?t"
    )
    with listening(
        broker.url(f"{topic}/+"), text, format="ndjson", mapping=mapping, time="field:ts"
    ) as (_, asked):
        broker.send(f"{topic}/room 1", ['{"v": 5, "ts": 100}', '{"v": 6, "ts": 9000}'])
        assert reports(asked, 1) == {
            4000: [("<http://e/room%201>", integer(5), f'"{topic}/room 1"')]
        }


@VERSIONS
@pytest.mark.parametrize("retained", ["take", "skip"])
def test_what_was_retained_comes_once(
    broker: Broker, tmp_path: Path, version: str, retained: str
) -> None:
    topic = next(TOPICS)
    broker.send(topic, [statement(1, time=1)], "-r")
    for run, n in enumerate((1, 2)):  # the second engine goes on with the session
        with listening(
            broker.url(topic), format="nt", retained=retained, version=version,
            checkpoint=tmp_path / "ck",
        ) as (engine, _):  # fmt: skip
            broker.send(topic, [statement(2, time=2 + run)])
            seen(engine, n + (retained == "take"))
            assert record(engine).elements == n + (retained == "take")


def test_what_was_sent_meanwhile_comes_later(broker: Broker, tmp_path: Path) -> None:
    topic = next(TOPICS)
    given: dict[str, Any] = {"format": "nt", "checkpoint": tmp_path / "ck"}
    with listening(broker.url(topic), **given) as (engine, _):
        broker.send(topic, [statement(1, time=1)])
        seen(engine, 1)
    broker.send(topic, [statement(k, time=k) for k in range(2, 60)], lines=True)
    with listening(broker.url(topic), **given) as (engine, _):
        seen(engine, 59)
        assert record(engine).elements == 59


def test_once_ends_by_silence(broker: Broker, tmp_path: Path) -> None:
    topic = next(TOPICS)
    given: dict[str, Any] = {"format": "nt", "checkpoint": tmp_path / "ck"}
    with listening(broker.url(topic), **given):
        pass
    broker.send(topic, [statement(k, time=100 * k) for k in range(100)], lines=True)
    with Engine(spark=False, checkpoint=tmp_path / "ck") as engine:
        engine.stream(S, broker.url(topic), format="nt")
        engine.register(COUNT, name="q")
        with pytest.raises(UsageError, match="has no end, so --once"):
            engine.start(once=True)
    with Engine(spark=False, checkpoint=tmp_path / "ck") as engine:
        engine.stream(S, broker.url(topic), format="nt", idle="2s")
        engine.register(COUNT, name="q")
        engine.start(once=True)
        engine.await_end(120)
        assert record(engine).elements == 100


def test_who_is_not_there_is_told_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("levada.connectors.spool.feed_spool.PATIENCE", 0.2)
    with Engine(spark=False) as engine:
        engine.stream(S, f"mqtt://127.0.0.1:{free_port()}/t", format="nt")
        engine.register(COUNT, name="q")
        with pytest.raises(SourceError, match="cannot be listened to: Connection refused"):
            engine.start()


@pytest.mark.parametrize(
    ("path", "options", "said"),
    [
        ("mqtt://h", {}, "nothing is no topic filter: it is empty"),
        ("mqtt://h/a/#/b", {}, "# stands at the end only"),
        ("mqtt://h/a+/b", {}, "stand for a whole level"),
        ("mqtt://h:99999/a", {}, "no address of MQTT"),
        ("mqtt://me:secret@h/a", {}, r"//\.\.\.@h/a is no address"),
        ("mqtt://h/a", {"qos": 2}, "2 is neither 0 nor 1"),
        ("mqtt://h/a", {"start": "latest"}, "start= is for a topic of Kafka"),
        ("mqtt://h/a", {"retained": "keep"}, "keep is none of take, skip"),
        ("mqtt://h/a", {"time": "timestamp"}, "time=timestamp is for a topic of Kafka"),
        ("mqtt://h/a", {"time": "filename:(x)"}, "time=filename is for files"),
        ("mqtt://h/a", {"limit": 3}, "limit= is not there for MQTT"),
        ("mqtt://h/a", {"user": "me"}, "user and password go together"),
        ("mqtt://h/a", {"password": "secret"}, "a password does not stand here"),
        ("mqtts://h/a", {"tls": "false"}, "mqtts:// is MQTT with TLS"),
        ("mqt://h/a", {}, "mqt://h/a is no address that streams come from"),
        ("http://h/a", {}, r"no address .*Did you mean sse\+http://"),
        ("sse+http://h/a", {"qos": 1}, "qos= is for MQTT"),
        ("sse+http://h/a", {"tls": "true"}, "its scheme says whether there is TLS"),
        ("ws://h/a", {"tls_ca": __file__}, "tls_ca, tls_cert and tls_key are for TLS"),
        ("obs.nt", {"retained": "skip"}, "retained= is for MQTT"),
        ("kafka://h:1/a", {"qos": 1}, "qos= is for MQTT"),
    ],
)
def test_what_cannot_be_is_told(path: str, options: dict[str, Any], said: str) -> None:
    with pytest.raises(UsageError, match=said) as raised:
        StreamConfig.from_options("obs", path, **{"format": "nt", **options})
    assert "secret" not in str(raised.value)


def test_messages_say_their_format() -> None:
    with pytest.raises(UsageError, match="messages do not say their format"):
        StreamConfig.from_options("obs", "mqtt://h/a")


def test_user_properties(broker: Broker) -> None:
    topic = next(TOPICS)
    room = ("-D", "publish", "user-property", "Room-No", "7")
    text = "Select S.message_header_room_no, S.v From S [Range 4 Seconds Slide 4 Seconds]"
    schema = "v:integer;message_header_room_no:integer;ts:integer"
    with listening(
        broker.url(topic), text, dialect="cql", name="S", format="ndjson", schema=schema
    ) as (engine, asked):
        broker.send(topic, ['{"v": 1, "ts": 1000}'], *room)
        broker.send(topic, ['{"v": 2, "ts": 2000}'])
        seen(engine, 2, "S")
        until(lambda: record(engine, "S").watermark == 2000)
        far = ("-D", "publish", "user-property", "Levada-Watermark", "1970-01-01T00:00:05Z")
        broker.send(topic, [""], *far)
        found = next(asked.results()).rows.rows()
        assert sorted((row[-2:] for row in found), key=str) == [
            (integer(7), integer(1)), (None, integer(2))
        ]  # fmt: skip
    turtle = ("-D", "publish", "user-property", "RDF-Message-Content-Type", "text/turtle")
    with listening(broker.url(f"{topic}/x"), format="nt", time="arrival") as (engine, _):
        broker.send(f"{topic}/x", [DOCUMENTS["ttl"]], *turtle)
        broker.send(f"{topic}/x", [DOCUMENTS["ttl"]])
        seen(engine, 2)
        assert (record(engine).elements, record(engine).dead_letters) == (1, 1)
