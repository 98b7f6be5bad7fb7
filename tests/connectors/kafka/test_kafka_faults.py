"""Each request to Kafka and each answer is lost or cut, and its connection reset, or never comes.
Whatever the broker had done by then, every message is read, and every report committed, once.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from test_kafka_out import by_files, run, stream
from test_kafka_trouble import TEXT, read, values

from levada.engine.engine import Engine
from levada.testing.compare import read_ndjson, same
from support.fault_proxy import FaultProxy, kafka, terminated
from support.kafka_broker import Broker
from support.kafka_consumer import consumed, own
from support.polling import PATIENCE


@pytest.fixture(scope="module")
def proxied(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Broker, FaultProxy]]:
    """A broker with a further listener that only the proxy reaches."""
    proxies = list[FaultProxy]()

    def listen(port: int) -> int:
        proxies.append(FaultProxy(port, kafka))
        return proxies[0].port

    made = Broker(tmp_path_factory.mktemp("proxied"), proxy=listen)
    with proxies[0]:
        yield made, proxies[0]
    made.stop()


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FIRST_PAUSE", "LONGEST_PAUSE"):
        monkeypatch.setattr(f"levada.engine.delivery.delivery_thread.{name}", 0.01)
    for name in (
        "connectors.sinks.kafka_sink.ANSWER",
        "connectors.sources.kafka.broker_connection.PATIENCE",
        "connectors.sources.kafka.kafka_enumerator.TIMEOUT",
    ):
        monkeypatch.setattr(f"levada.{name}", 2.0)


def faults_at(names: str, fault: str) -> list[tuple[str, str]]:
    """A fault at each request, and at its answer."""
    return [(f"^{way} {name}$", fault) for name in names.split() for way in "><"]


FAULTS = ["reset", "cut", pytest.param("hang", marks=pytest.mark.long)]
OPENING = "ApiVersions Metadata FindCoordinator InitProducerId OffsetFetch"
WRITING = "AddPartitionsToTxn Produce AddOffsetsToTxn TxnOffsetCommit EndTxn"


@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_at_each_request_of_an_output_leaves_each_report_once(
    proxied: tuple[Broker, FaultProxy], tmp_path: Path, fault: str
) -> None:
    broker, proxy = proxied
    topic = f"out-{fault}"
    broker.topic(topic)
    proxy.faults = [("connect", fault), *faults_at(f"{OPENING} {WRITING}", fault)]
    path = stream(tmp_path / "s.nt", 2000)
    try:
        run(tmp_path / "ck", path, f"kafka://127.0.0.1:{proxy.port}/{topic}")
        assert not proxy.faults
    finally:
        proxy.faults = []
    found = own(consumed(broker, topic))
    assert len(found) == len(set(found))
    assert same(by_files(tmp_path / "files", path), read_ndjson(found)["q"]) is None


@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_at_each_request_of_a_stream_leaves_each_message_once(
    proxied: tuple[Broker, FaultProxy], monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    monkeypatch.setattr("levada.connectors.sources.kafka.partition_fetcher.ANSWER_BYTES", 2000)
    broker, proxy = proxied
    topic = f"in-{fault}"
    broker.topic(topic)
    times = [10 * k + 1 for k in range(1000)]
    broker.send(topic, values(1000), times=times, batch_num_messages=20)
    proxy.faults = [("connect", fault)]
    proxy.faults += faults_at("ApiVersions Metadata ListOffsets Fetch Fetch Metadata", fault)
    try:
        with Engine(spark=False, epoch_rows=50) as engine:
            url = f"kafka://127.0.0.1:{proxy.port}/{topic}"
            engine.stream("http://e/s", url, format="nt", time="timestamp")
            engine.register(TEXT, name="q")
            engine.start(once=True)
            assert engine.await_end(PATIENCE)
            assert read(engine) == 1000
        # the client asks for metadata again when it likes, perhaps not before all is read
        assert all("Metadata" in request for request, _ in proxy.faults)
    finally:
        proxy.faults = []


@pytest.mark.parametrize("where", ["stream", pytest.param("output", marks=pytest.mark.long)])
def test_a_signal_ends_an_engine_whose_broker_never_answers(
    proxied: tuple[Broker, FaultProxy], tmp_path: Path, where: str
) -> None:
    broker, proxy = proxied
    source, target = f"hanging-in-{where}", f"hanging-out-{where}"
    broker.topic(target)
    broker.topic(f"{target}-whole")
    broker.topic(source)
    broker.send(source, values(1000), times=[10 * k + 1 for k in range(1000)])
    (tmp_path / "q.rq").write_text(TEXT)
    command = [
        sys.executable, "-m", "levada", "run", str(tmp_path / "q.rq"), "--master", "none",
        "--close", "--stream",
        f"http://e/s=kafka://127.0.0.1:{proxy.port}/{source},format=nt,time=timestamp",
        "--to", f"q=kafka://127.0.0.1:{proxy.port}/{target}", "--checkpoint", str(tmp_path / "ck"),
    ]  # fmt: skip
    proxy.faults = [("< Fetch" if where == "stream" else "< EndTxn", "hang")]
    code, said = terminated(command, proxy)
    assert (code, "Traceback" in said) == (143 if where == "stream" else 0, False), said
    assert ("does not answer" if where == "stream" else "left to deliver by the next run") in said
    subprocess.run(command, check=True, timeout=PATIENCE)
    whole = [*command[:-3], f"{command[-3]}-whole", "--checkpoint", str(tmp_path / "whole")]
    subprocess.run(whole, check=True, timeout=PATIENCE)
    found, wanted = (own(consumed(broker, name)) for name in (target, f"{target}-whole"))
    assert len(found) == len(set(found)) > 1
    assert same(read_ndjson(wanted)["q"], read_ndjson(found)["q"]) is None
