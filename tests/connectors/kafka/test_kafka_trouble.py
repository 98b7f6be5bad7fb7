"""What befalls an engine over Kafka: it is killed, its broker goes, its password leaks."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from levada.connectors.sources.kafka.kafka_enumerator import KafkaSource
from levada.engine.engine import Engine
from levada.errors import SourceError
from levada.testing.compare import read_ndjson, same
from levada.testing.reference_model import Report
from support.kafka_broker import Broker
from support.polling import PATIENCE, kill_after, until

EACH, EPOCH_ROWS = 1000, 150  # elements of a partition before each start, of an epoch
KILLS = int(os.environ.get("LEVADA_KILLS", "2"))
CANARY = "canary-3f9c1d"
TEXT = """PREFIX : <http://e/> SELECT ?x (COUNT(*) AS ?n) (SUM(?v) AS ?sum)
FROM NAMED WINDOW :w ON :s [RANGE PT4S STEP PT2S] WHERE { WINDOW :w { ?x :v ?v } } GROUP BY ?x"""
RUN = f"""
import sys
from pathlib import Path
from levada.connectors.serialization.serialize import Format
from levada.engine.engine import Engine
from levada.connectors.sinks.file_sink import FileSink
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


@pytest.mark.long
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


@pytest.mark.long
def test_a_broker_that_goes_and_comes_again(another: Broker) -> None:
    url = another.topic("obs")
    another.send("obs", values(100), times=[1000] * 100)
    with Engine(spark=False, epoch="20ms") as engine:
        engine.stream("http://e/s", url, format="nt", time="timestamp")
        asked = engine.register(TEXT, name="q")
        engine.start()
        until(lambda: engine._records().get("http://e/s") and read(engine) == 100)
        another.stop(signal.SIGKILL)
        until(lambda: another.server in engine.progress().waiting_for or not engine.running)
        if not engine.running:
            engine.await_end()
        assert engine.running
        another.start()
        another.send("obs", values(50), times=[9000] * 50)
        until(lambda: read(engine) == 150)
        until(lambda: not engine.progress().waiting_for)
        assert next(asked.results()).time == 2000


@pytest.mark.long
@pytest.mark.parametrize("code", [KafkaError.UNKNOWN_LEADER_EPOCH, KafkaError.LEADER_NOT_AVAILABLE])
def test_a_broker_that_is_not_ready_is_asked_again(
    broker: Broker, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    """What it says for a moment after it was killed; which moment that is, none can say."""
    left, offsets = [code, code], KafkaSource._offsets

    def answered(*given: Any) -> Any:
        if left:
            raise KafkaException(KafkaError(left.pop()))
        return offsets(*given)

    monkeypatch.setattr(KafkaSource, "_offsets", answered)
    url = broker.topic(f"not-ready-{code}")
    broker.send(f"not-ready-{code}", values(10), times=[1000] * 10)
    with Engine(spark=False) as engine:
        engine.stream("http://e/s", url, format="nt", time="timestamp")
        engine.register(TEXT, name="q")
        engine.start(once=True)
        assert engine.await_end(PATIENCE)
        assert read(engine) == 10
    assert not left


def read(engine: Engine) -> int:
    return engine._records()["http://e/s"].elements


@pytest.mark.long
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
