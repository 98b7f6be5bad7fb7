"""What befalls an engine over Kafka: it is killed, its broker goes, its password leaks, messages
are none. Of these each is a dead letter that tells topic, partition, offset and reason, and what is
sound between them is read.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyoxigraph as ox
import pytest

from awaiting import PATIENCE, kill_after, until
from kafka_broker import Broker
from levada.emission.jelly import jelly_bytes
from levada.engine.engine import Engine
from levada.errors import SourceError
from levada.testing.compare import read_ndjson, same
from levada.testing.question import Report

EACH, EPOCH_ROWS = 1000, 150  # elements of a partition before each start, of an epoch
KILLS = int(os.environ.get("LEVADA_KILLS", "2"))
CANARY = "canary-3f9c1d"
TEXT = """PREFIX : <http://e/> SELECT ?x (COUNT(*) AS ?n) (SUM(?v) AS ?sum)
FROM NAMED WINDOW :w ON :s [RANGE PT4S STEP PT2S] WHERE { WINDOW :w { ?x :v ?v } } GROUP BY ?x"""
RUN = f"""
import sys
from pathlib import Path
from levada.emission.serialize import Format
from levada.engine.engine import Engine
from levada.sinks.files import FileSink
root, url, text, once = sys.argv[1:]
root = Path(root)
engine = Engine(
    spark=False, checkpoint=root / "ck", epoch_rows={EPOCH_ROWS}, partitions=2,
    sink=FileSink(root / "out", Format.NDJSON), keep_results=False,
)
engine.stream("http://e/s", url, format="nt", time="timestamp")
engine.register(text, name="q")
engine.start(once=once == "once")
engine.await_end()
engine.close()
"""


MANY = int(os.environ.get("LEVADA_BAD", "3000"))
TIME = '"{}"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
GOOD = b'<http://e/a> <http://e/v> "1" .'
LATER = '{"@id": "http://e/a", "http://e/v": "1"}'
DEEP = b"[" * 10_000
JELLY = jelly_bytes(
    [ox.Quad(ox.NamedNode("http://e/a"), ox.NamedNode("http://e/v"), ox.Literal("1"))]
)
YEAR = GOOD[:-1].decode() + TIME
CASES: dict[str, tuple[bytes, dict[bytes, str]]] = {
    "nt": (
        GOOD,
        {
            b"\xff\xfe": "",
            b"\0\0\0\0\1" + GOOD: "schema registry",
            gzip.compress(GOOD): "",
            GOOD[:20]: "",
            b"x" * (50 << 20): "",
        },
    ),
    "nt,column": (
        f"{YEAR.format('2020-01-01T00:00:00Z')} .".encode(),
        {f"{YEAR.format('300000-01-01T00:00:00Z')} .".encode(): "", GOOD: "No event time"},
    ),
    "jsonld": (
        LATER.encode(),
        {DEEP: "deep", DEEP + b"]" * 10_000: "deep", b'{"@id": ': "", b"\xff": ""},
    ),
    "jelly": (JELLY, {JELLY[: len(JELLY) // 2]: "", b"\xff\xff": ""}),
    "ndjson": (
        b'{"v": "1", "ts": 1000}',
        {
            b'{"v": ' + DEEP: "",
            b'{"v": "1", "ts": 9467020800000000}': "future",
            b'{"v": "1", "ts": "300000-01-01T00:00:00Z"}': "",
            b"\xff": "",
        },
    ),
}


def values(n: int, at: int = 0) -> list[str]:
    typed = '"{}"^^<http://www.w3.org/2001/XMLSchema#integer>'
    return [f"<http://e/{k % 7}> <http://e/v> {typed.format(k)} ." for k in range(at, at + n)]


def start(root: Path, url: str, how: str = "once") -> subprocess.Popen[bytes]:
    """An engine that ends when it has read all; ``how`` "on": that does not end."""
    root.mkdir(exist_ok=True)
    with (root / "said").open("ab") as said:
        return subprocess.Popen([sys.executable, "-c", RUN, str(root), url, TEXT, how], stderr=said)


def published(root: Path) -> dict[str, list[Report]]:
    files = sorted((root / "out").rglob("*.ndjson"))
    return read_ndjson(line for path in files for line in path.read_text().splitlines())


@pytest.mark.chaos
@pytest.mark.timeout(PATIENCE * (KILLS + 3))
def test_an_engine_that_is_killed_publishes_the_same(
    broker: Broker, tmp_path: Path, random_seed: int
) -> None:
    draw = random.Random(random_seed)
    url, root = broker.topic("killed", 3), tmp_path / "killed"
    for k in range(KILLS + 1):
        for p in range(3):
            times = [10 * i + p for i in range(k * EACH, (k + 1) * EACH)]
            broker.send("killed", values(EACH, k * EACH), p, times)
        if k < KILLS:  # what has come is read in three times as many epochs, or more
            kill_after(start(root, url, "on"), root / "ck", draw.randint(1, EACH // EPOCH_ROWS))
    for each in (root, tmp_path / "whole"):
        assert start(each, url).wait(PATIENCE) == 0, (each / "said").read_text()[-3000:]
    whole, found = published(tmp_path / "whole")["q"], published(root)["q"]
    assert len(whole) > 10
    assert same(whole, found) is None, same(whole, found)


@pytest.fixture(scope="module")
def another(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker that is stopped and started again."""
    made = Broker(tmp_path_factory.mktemp("another"), sasl=("reader", CANARY))
    yield made
    made.stop()


def test_a_broker_that_goes_and_comes_again(another: Broker) -> None:
    url = another.topic("obs")
    another.send("obs", values(100), times=[1000] * 100)
    with Engine(spark=False, epoch="20ms") as engine:
        engine.stream("http://e/s", url, format="nt", time="timestamp")
        asked = engine.register(TEXT, name="q")
        engine.start()
        until(lambda: engine._records().get("http://e/s") and read(engine) == 100)
        another.stop(signal.SIGKILL)
        until(lambda: another.server in engine.progress().awaits or not engine.running)
        if not engine.running:
            engine.await_end()
        assert engine.running
        another.start()
        another.send("obs", values(50), times=[9000] * 50)
        until(lambda: read(engine) == 150)
        until(lambda: not engine.progress().awaits)
        assert next(asked.results()).time == 2000


def read(engine: Engine) -> int:
    return engine._records()["http://e/s"].elements


def test_a_password_is_nowhere(
    another: Broker,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
) -> None:
    another.topic("guarded")
    another.send("guarded", [*values(10), "no statement"], times=[1000] * 11)
    url = f"kafka://127.0.0.1:{another.secured}/guarded"
    secret = tmp_path / "secret"
    secret.write_text(f"{CANARY}\n")
    monkeypatch.setenv("KAFKA_PASSWORD", CANARY)
    for kind, place in (("env", "KAFKA_PASSWORD"), ("file", str(secret))):
        root = tmp_path / kind
        with Engine(spark=False, checkpoint=root) as engine:
            engine.stream(
                "http://e/s", url, format="nt", time="timestamp", sasl="plain", user="reader",
                password=f"{kind}:{place}",
            )  # fmt: skip
            engine.register(TEXT, name="q")
            engine.start(once=True)
            engine.await_end(PATIENCE)
            assert read(engine) == 10
            said = repr(engine.status()) + repr(engine._registry.streams)
        files = [path for path in root.rglob("*") if path.is_file()]
        assert len(files) > 5
        assert not [path for path in files if CANARY.encode() in path.read_bytes()]
        out, err = capfd.readouterr()
        assert CANARY not in said + out + err
    monkeypatch.setenv("KAFKA_PASSWORD", "wrong")
    with (
        pytest.raises(SourceError, match="cannot be reached") as caught,
        Engine(spark=False) as engine,
    ):
        engine.stream(
            "http://e/s", url, format="nt", time="timestamp", sasl="plain", user="reader",
            password="env:KAFKA_PASSWORD",
        )  # fmt: skip
        engine.register(TEXT, name="q")
        engine.start(once=True)
    assert "wrong" not in str(caught.value)


def letters_of(broker: Broker, topic: str, **options: Any) -> tuple[Any, list[dict[str, Any]]]:
    """The stream's record, and its dead letters."""
    text = "SELECT (COUNT(*) AS ?n) FROM NAMED WINDOW <w> ON <http://e/s> [RANGE PT4S STEP PT4S] "
    table = options["format"] == "ndjson"
    name = "S" if table else "http://e/s"
    with Engine(spark=False) as engine:
        engine.stream(name, broker.url(topic), **options)
        if table:
            cql = "Select Count(*) As n From S [Range 4 Seconds Slide 4 Seconds]"
            engine.register(cql, dialect="cql", name="q")
        else:
            engine.register(f"{text} WHERE {{ WINDOW <w> {{ ?x ?p ?v }} }}", name="q")
        engine.start(once=True)
        assert engine.await_end(PATIENCE)
        lines = [x for p in (engine.root / "side").iterdir() for x in p.read_text().splitlines()]
        return engine._records()[name], [json.loads(line) for line in lines if line[:1] == "{"]


@pytest.mark.parametrize("case", CASES)
def test_each_is_a_dead_letter(broker: Broker, case: str) -> None:
    good, bad = CASES[case]
    form, _, timed = case.partition(",")
    topic = f"malformed-{form}-{timed}"
    broker.topic(topic, 2)
    values = [good]
    for each in bad:
        values += [each, good]
    broker.send(topic, values, 1, [1000] * len(values), message_max_bytes=60 << 20)
    options: dict[str, Any] = {"format": form, "time": timed or "timestamp"}
    if form == "ndjson":
        options = {"format": form, "schema": "v:string;ts:integer", "time": "field:ts"}
    record, letters = letters_of(broker, topic, **options)
    assert (record.elements, record.dead, record.missing) == (len(bad) + 1, len(bad), 0)
    assert [(d["source"], d["offset"]) for d in sorted(letters, key=lambda d: d["offset"])] == [
        (f"{topic}/1", 1 + 2 * k) for k in range(len(bad))
    ]
    reasons = {d["offset"]: d["reason"] for d in letters}
    for k, wanted in enumerate(bad.values()):
        assert reasons[1 + 2 * k] and wanted in reasons[1 + 2 * k], (case, reasons)


def test_many_stop_nothing(broker: Broker) -> None:
    broker.topic("malformed-many")
    values = [GOOD if k % 10 == 0 else b"half <%d" % k for k in range(MANY)]
    broker.send(
        "malformed-many", values, times=[1000] * MANY, queue_buffering_max_messages=2_000_000
    )
    record, letters = letters_of(broker, "malformed-many", format="nt", time="timestamp")
    assert (record.elements, record.dead) == (MANY // 10, MANY - MANY // 10)
    assert len(letters) > 0
    assert all(d["source"] == "malformed-many/0" and d["offset"] % 10 for d in letters)
