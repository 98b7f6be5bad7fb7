"""The own reader of topics beside librdkafka's, over a real broker: the same messages, byte for
byte, whoever has packed them, and however the range is cut.
"""

from __future__ import annotations

import ctypes
import itertools
import random
import socket
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, TopicPartition

from levada.connectors.config.kafka_config import KafkaConfig
from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.sources.kafka.fetched_batches import Records
from levada.connectors.sources.kafka.kafka_reader import KafkaReader
from levada.connectors.sources.kafka.partition_fetcher import GoneError, Partition
from levada.connectors.sources.splits import OffsetSplit
from levada.errors import AwayError, LostError, SourceError
from support.free_ports import free_port
from support.kafka_broker import Broker
from support.kafka_record_batches import Record, headers
from support.polling import PATIENCE, until

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
NAMES = (f"fetch-{k}" for k in itertools.count())
SECRET = "canary-fetch-77"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Certificates."""
    made = tmp_path_factory.mktemp("secured")
    certificates(made)
    return made


@pytest.fixture(scope="module")
def broker(folder: Path) -> Iterator[Broker]:
    """A broker that has TLS, certificates of clients, and every login there is, too."""
    soon = {"log.cleaner.backoff.ms": "200"}
    made = Broker(folder / "broker", sasl=("reader", SECRET), settings=soon, tls=folder)
    yield made
    made.stop()


def config(broker: Broker, topic: str, **more: Any) -> KafkaConfig:
    return KafkaConfig(broker.server, topic, **more)


def of(records: Records) -> list[Record]:
    """Records with their bytes."""

    def piece(at: int, size: int) -> bytes | None:
        return None if size < 0 else ctypes.string_at(at, size)

    found = []
    for k, (key, key_size, head, head_size) in enumerate(records.more.reshape(-1, 4).tolist()):
        value = piece(int(records.place[k]), int(records.length[k]))
        said = headers(ctypes.string_at(head, head_size))
        offset, time = int(records.offset[k]), int(records.time[k])
        found.append(Record(offset, time, value, piece(key, key_size), said))
    return found


def judged(broker: Broker, topic: str, isolation: str = "read_committed") -> list[Record]:
    """What librdkafka reads of a topic of one partition, checksums and all."""
    options = {
        "bootstrap.servers": broker.server, "group.id": "judge", "enable.auto.commit": False,
        "enable.partition.eof": True, "log_level": 0, "isolation.level": isolation,
        "check.crcs": True, "auto.offset.reset": "error", "fetch.message.max.bytes": 64 << 20,
    }  # fmt: skip
    consumer = Consumer(options)
    consumer.assign([TopicPartition(topic, 0, broker.ends(topic)[0])])
    found: list[Record] = []
    try:
        while True:
            message = consumer.poll(PATIENCE)
            assert message is not None, "the topic does not end"
            if message.error() is not None:
                return found
            said: Any = tuple(message.headers() or ())
            offset: Any = message.offset()
            time, value, key = message.timestamp()[1], message.value(), message.key()
            found.append(Record(offset, time, value, key, said))
    finally:
        consumer.close()


def fetched(broker: Broker, topic: str, cuts: Sequence[int], **more: Any) -> list[Record]:
    """What the own reader reads, in ranges from cut to cut."""
    partition = Partition(config(broker, topic, **more), 0)
    found = []
    for start, stop in itertools.pairwise(cuts):
        part = of(partition.records(start, stop, more=True))
        assert all(start <= one.offset < stop for one in part)
        found += part
    partition.close()
    return found


def payload(draw: random.Random) -> bytes | None:
    if draw.random() < 0.1:
        return None
    word = draw.randbytes(draw.randrange(12))
    return word * draw.choice([0, 1, 1, 3, 50])


def send(broker: Broker, topic: str, draw: random.Random, n: int, codec: str) -> None:
    """Messages in transactions that are committed or aborted, of two producers by turns, and
    others between them.
    """
    kinds: list[tuple[Any, bool]] = []
    for k in range(3):
        own: dict[str, Any] = {"transactional_id": f"{topic}-{k}"} if k else {}
        made = broker.producer(compression_type=codec, linger_ms=draw.choice([0, 5]), **own)
        if k:
            made.init_transactions(PATIENCE)
        kinds.append((made, bool(k)))
    open_: set[int] = set()
    for _ in range(n):
        k = draw.randrange(3)
        made, transactional = kinds[k]
        if transactional and k not in open_:
            made.begin_transaction()
            open_.add(k)
        for _ in range(draw.randrange(1, 20)):
            name = "".join(draw.choices("abé", k=draw.randrange(1, 4)))
            said = [(name, payload(draw)) for _ in range(draw.randrange(3))]
            time = draw.randrange(1 << 40)  # brokers refuse the future
            made.produce(
                topic, payload(draw), key=payload(draw), headers=said, timestamp=time, partition=0
            )
        made.flush(PATIENCE)
        if transactional and draw.random() < 0.5:
            end = made.commit_transaction if draw.random() < 0.5 else made.abort_transaction
            end(PATIENCE)
            open_.discard(k)
    for k in sorted(open_):
        kinds[k][0].abort_transaction(PATIENCE)


def settled(broker: Broker, topic: str) -> int:
    """The end of a topic once all its transactions have their markers."""

    def ends() -> bool:
        looking = Consumer({
            "bootstrap.servers": broker.server, "group.id": "judge", "log_level": 0,
            "isolation.level": "read_committed",
        })  # fmt: skip
        place = TopicPartition(topic, 0)
        stable = looking.get_watermark_offsets(place, timeout=PATIENCE)[1]
        looking.close()
        return bool(stable == broker.ends(topic)[1])

    until(ends, "the markers of all transactions")
    return broker.ends(topic)[1]


@pytest.mark.long
@pytest.mark.parametrize("codec", CODECS)
def test_the_same_bytes_as_librdkafka(broker: Broker, codec: str, random_seed: int) -> None:
    draw = random.Random(f"{random_seed} {codec}")
    for packs in ("producer", codec):  # the broker packs what comes unpacked, by Java's codecs
        topic = next(NAMES)
        broker.topic(topic, compression_type="uncompressed" if packs == "none" else packs)
        if packs == "producer":
            send(broker, topic, draw, 14, codec)
        else:
            send(broker, topic, draw, 14, "none")
        end = settled(broker, topic)
        for isolation in ("read_committed", "read_uncommitted"):
            wanted = judged(broker, topic, isolation)
            cuts = sorted({0, end, *(draw.randrange(end) for _ in range(6))})
            for each in ([0, end], cuts):
                assert fetched(broker, topic, each, isolation=isolation) == wanted
            assert wanted or isolation == "read_committed"


@pytest.mark.long
def test_a_compacted_topic(broker: Broker, random_seed: int) -> None:
    draw = random.Random(random_seed)
    topic = next(NAMES)
    broker.topic(
        topic, cleanup_policy="compact", segment_ms="100", min_cleanable_dirty_ratio="0.01",
        max_compaction_lag_ms="100",
    )  # fmt: skip
    producer = broker.producer(compression_type="lz4", linger_ms=20)

    def written() -> bool:
        for _ in range(50):
            producer.produce(topic, payload(draw), key=f"{draw.randrange(9)}", partition=0)
        producer.flush(PATIENCE)
        return len(judged(broker, topic)) < broker.ends(topic)[1] - 60

    until(written, "compaction", step=0.5)
    end = broker.ends(topic)[1]

    def alike() -> bool:
        """What both read, unless the broker has compacted in between."""
        before = judged(broker, topic)
        read = fetched(broker, topic, [0, *range(7, end, 13), end])
        if before != judged(broker, topic):
            return False
        assert read == before[: len(read)]
        assert len(read) < end - 40
        return True

    until(alike, "two readings of one log", step=0.5)


def test_big_messages_and_small_answers(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = next(NAMES)
    broker.topic(topic)
    big = random.Random(1).randbytes(1 << 20) * 50
    less = big[: 10 << 20]
    for values, codec in (([b"a", big, b"", None], "none"), ([less, b"z"], "zstd")):
        broker.send(
            topic, values, compression_type=codec, message_max_bytes=60 << 20, batch_size=1 << 16
        )
    wanted = judged(broker, topic)
    assert [len(one.value or b"") for one in wanted] == [1, len(big), 0, 0, len(less), 1]
    assert fetched(broker, topic, [0, 2, 6]) == wanted
    monkeypatch.setattr("levada.connectors.sources.kafka.partition_fetcher.ANSWER_BYTES", 100)
    assert fetched(broker, topic, [2, 3, 6]) == wanted[2:]


def test_offsets_that_are_not_there(broker: Broker) -> None:
    topic = next(NAMES)
    url = broker.topic(topic)
    broker.send(topic, ["a", "b", "c", "d"])
    gone = TopicPartition(topic, 0, 2)
    broker.admin.delete_records([gone])[gone].result(PATIENCE)
    partition = Partition(config(broker, topic), 0)
    for start in (0, 9):
        with pytest.raises(GoneError) as caught:
            partition.records(start, start + 1)
        assert (caught.value.first, caught.value.behind) == (2, 4)
    partition.close()
    for lost, start, stop in (("stop", 1, 3), ("skip", 9, 12)):
        stream = StreamConfig.from_options("s", url, format="nt", time="timestamp", lost=lost)
        with pytest.raises(LostError, match=f"offsets {start} to "):
            KafkaReader.from_config(stream).read(OffsetSplit("s", topic, 0, start, stop, 9, 0))
    stream = StreamConfig.from_options("s", url, format="nt", time="timestamp", lost="skip")
    text, messages = KafkaReader.from_config(stream).read(OffsetSplit("s", topic, 0, 0, 4, 9, 0))
    gone_before = ((0, "the offsets 0 to 1 are gone before they were read"),)
    assert (text.tobytes(), messages.lost) == (b"c\nd\n", gone_before)


def test_a_range_whose_end_holds_nothing(broker: Broker) -> None:
    """The last offsets are markers, or of an aborted transaction."""
    topic = next(NAMES)
    broker.topic(topic)
    broker.send(topic, ["a"])
    producer = broker.producer(transactional_id=topic)
    producer.init_transactions(PATIENCE)
    for end in (producer.commit_transaction, producer.abort_transaction):
        producer.begin_transaction()
        producer.produce(topic, "b", partition=0)
        producer.flush(PATIENCE)
        end(PATIENCE)
    end_ = settled(broker, topic)
    assert end_ == 5
    assert [one.value for one in fetched(broker, topic, [0, 2, 3, 4, 5])] == [b"a", b"b"]


def certificates(folder: Path) -> None:
    """An authority, and who it vouches for: the broker, under its address, and a client."""

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)

    new = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    openssl(
        "req", "-x509", *new, "-keyout", "ca.key", "-out", "ca.pem", "-days", "9",
        "-subj", "/CN=authority",
    )  # fmt: skip
    for name, address in (("broker", "IP:127.0.0.1"), ("client", "DNS:client")):
        wanted = ["-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}"]
        openssl("req", *new, *wanted)
        (folder / "more").write_text(f"subjectAltName={address}\n")
        openssl(
            "x509", "-req", "-in", f"{name}.csr", "-CA", "ca.pem", "-CAkey", "ca.key",
            "-CAcreateserial", "-days", "9", "-extfile", "more", "-out", f"{name}.pem",
        )  # fmt: skip
    store = (folder / "broker.key").read_text() + (folder / "broker.pem").read_text()
    (folder / "store.pem").write_text(store)


@pytest.mark.long
def test_every_way_to_log_in(broker: Broker, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    topic = next(NAMES)
    broker.topic(topic)
    broker.send(topic, ["a", "b"])
    monkeypatch.setenv("SECRET", SECRET)
    monkeypatch.setenv("WRONG", f"not {SECRET}")
    monkeypatch.setattr("levada.connectors.sources.kafka.partition_fetcher.PATIENCE", 0.5)
    server = f"127.0.0.1:{broker.secured}"
    tls = {
        "tls": True, "ca": str(folder / "ca.pem"), "cert": str(folder / "client.pem"),
        "key": str(folder / "client.key"),
    }  # fmt: skip
    for sasl in ("plain", "scram-sha-256", "scram-sha-512"):
        login = {"sasl": sasl, "user": "reader", "password": "env:SECRET"}
        partition = Partition(KafkaConfig(server, topic, **tls, **login), 0)  # type: ignore[arg-type]
        records = partition.records(0, 2, more=True)
        assert [one.value for one in of(records)] == [b"a", b"b"], sasl
        partition.close()
        for more, reason in (
            ({**tls, **login, "password": "env:WRONG"}, "[Aa]uthentication failed"),
            ({**tls, **login, "ca": ""}, "certificate is not trusted"),
            ({**login}, "not answer|not Kafka's protocol|closed|reset"),
            ({**tls, **login, "cert": "", "key": ""}, "certificate|closed|reset|pipe"),
        ):
            with pytest.raises(AwayError, match=reason) as caught:
                Partition(KafkaConfig(server, topic, **more), 0).records(0, 2)
            assert SECRET not in str(caught.value)
    with pytest.raises(SourceError, match="no variable NONE"):
        Partition(
            KafkaConfig(server, topic, **tls, sasl="plain", user="reader", password="env:NONE"),  # type: ignore[arg-type]
            0,
        ).records(0, 2)


@pytest.mark.long
def test_a_connection_that_is_gone_is_made_anew(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    topic = next(NAMES)
    broker.topic(topic)
    broker.send(topic, ["a", "b", "c", "d"])
    partition = Partition(config(broker, topic), 0)
    assert len(partition.records(0, 1).offset) == 1
    assert partition._link is not None
    partition._link._socket.shutdown(socket.SHUT_RDWR)
    assert len(partition.records(1, 2).offset) == 1  # it came with the first answer
    broker.send(topic, ["e"])
    assert [one.value for one in of(partition.records(4, 5, more=True))] == [b"e"]
    partition.close()
    monkeypatch.setattr("levada.connectors.sources.kafka.partition_fetcher.PATIENCE", 0.3)
    for servers, reason in (
        (f"127.0.0.1:{free_port()}", "Connection refused"),
        (f"127.0.0.1:{free_port()},{broker.server}", ""),  # the second one is asked
    ):
        other = Partition(KafkaConfig(servers, topic), 0)
        if reason:
            with pytest.raises(AwayError, match=f"does not answer .*: {reason}"):
                other.records(0, 4)
        else:
            assert len(other.records(0, 4).offset) == 4
        other.close()
    with pytest.raises(AwayError, match="Unknown topic or partition"):
        Partition(config(broker, "nowhere"), 0).records(0, 1)
