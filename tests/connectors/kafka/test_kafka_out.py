"""Reports as messages of a topic, over a real broker: a reader of what is committed sees each once,
whoever is killed, and whatever others write to the topic.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from levada.connectors.sinks.sink_url import Destination
from levada.connectors.sinks.transactional_sink import Target
from levada.engine.engine import Engine
from levada.errors import SinkError, TargetAwayError, UsageError
from levada.testing.compare import read_ndjson, same
from support.kafka_broker import Broker
from support.kafka_consumer import consumed, is_settled, own
from support.polling import PATIENCE, kill_after, until

KILLS = int(os.environ.get("LEVADA_KILLS", "2"))
CANARY = "canary-out-51c"
SUMS = """PREFIX : <http://e/> SELECT ?x (COUNT(*) AS ?n) (SUM(?v) AS ?sum)
FROM NAMED WINDOW :w ON :s [RANGE PT4S STEP PT2S] WHERE { WINDOW :w { ?x :v ?v } } GROUP BY ?x"""
GRAPH = """PREFIX : <http://e/> CONSTRUCT { ?x :seen ?v }
FROM NAMED WINDOW :w ON :s [RANGE PT4S STEP PT2S] WHERE { WINDOW :w { ?x :v ?v } }"""


def stream(path: Path, n: int, at: int = 0) -> Path:
    typed = '"{}"^^<http://www.w3.org/2001/XMLSchema#integer>'
    with path.open("a") as file:
        file.writelines(
            f"<http://e/{k % 7}> <http://e/v> {typed.format(k)} {k * 50} .\n"
            for k in range(at, at + n)
        )
    return path


def run(root: Path, path: Path, url: str, text: str = SUMS, **options: str) -> Engine:
    """An engine that has ended."""
    with Engine(spark=False, checkpoint=root, epoch_rows=100) as engine:
        engine.stream("http://e/s", str(path))
        engine.register(text, name="q").to(url, **options)
        engine.start(once=True)
        assert engine.await_end(PATIENCE)
        assert not engine.status().outputs[0].pending_reports
        return engine


def by_files(root: Path, path: Path) -> list[Any]:
    """The reports that files have."""
    with Engine(spark=False, checkpoint=root) as engine:
        engine.stream("http://e/s", str(path))
        engine.register(SUMS, name="q", out=root.with_suffix(".out"))
        engine.start(once=True)
        assert engine.await_end(PATIENCE)
    files = sorted(root.with_suffix(".out").rglob("*.ndjson"))
    return read_ndjson(line for file in files for line in file.read_text().splitlines())["q"]


def test_letters_are_messages_once(broker: Broker, tmp_path: Path) -> None:
    url = broker.topic("letters")
    (tmp_path / "s.csv").write_text("ts,k\n1000,1\n5000,x\n6000,3\n2000,4\n")
    for _ in range(2):  # the second run has nothing to add
        with Engine(spark=False, checkpoint=tmp_path / "ck", epoch_rows=1) as engine:
            engine.stream("S", tmp_path / "s.csv", schema="k:integer")
            engine.register("Rstream(Select k From S [Now])", dialect="cql")
            engine.letters_to(url)
            engine.start(once=True)
            assert engine.await_end(PATIENCE)
    found = sorted(consumed(broker, "letters"), key=lambda message: message.offset())
    letters = [json.loads(message.value()) for message in found]
    assert [(one["kind"], one["offset"], one["ts"], one["text"]) for one in letters] == [
        ("dead-letter", 12, None, "5000,x"), ("late", 26, 2000, "2000,4"),
    ]  # fmt: skip
    assert letters[0]["reason"] == "k is not an integer: x"


def test_reports_are_messages(broker: Broker, tmp_path: Path) -> None:
    path, url = stream(tmp_path / "s.nt", 400), broker.topic("out")
    run(tmp_path / "ck", path, url)
    broker.send("out", ["of somebody else"] * 3)
    run(tmp_path / "ck", path, url)  # it has nothing to add
    messages = consumed(broker, "out")
    assert [m.value() for m in messages if m.key() is None] == [b"of somebody else"] * 3
    found = read_ndjson(own(messages))["q"]
    assert same(by_files(tmp_path / "files", path), found) is None
    assert {m.key() for m in messages} == {b"q", None}
    assert dict(messages[0].headers()) == {"content-type": b"application/json"}
    assert len(found) > 5


def test_rows_have_keys_and_those_that_go_are_tombstones(broker: Broker, tmp_path: Path) -> None:
    (tmp_path / "c.csv").write_text("ts,room,t\n0,a,1\n0,b,1\n1000,a,5\n9000,c,2\n20000,d,1\n")
    outputs = {
        "rows": (
            "Rstream(Select room, Max(t) As top From C [Range 2 s Slide 2 s] Group By room)",
            "room",
        ),
        "state": ("Select room, Max(t) As top From C [Range 2 s] Group By room", "room"),
        "pairs": ("Rstream(Select room, t From C [Range 2 s Slide 2 s])", "room;t"),
    }
    with Engine(spark=False, checkpoint=tmp_path / "ck") as engine:
        engine.stream("C", tmp_path / "c.csv", schema="room:string;t:integer")
        for name, (text, key) in outputs.items():
            query = engine.register(text, name=name, dialect="cql")
            query.to(broker.topic(name), format="json", message_key=key)
        other = broker.topic("other")
        with pytest.raises(UsageError, match="message_key=rom is no column"):
            query.to(other, format="json", message_key="rom")
        with pytest.raises(UsageError, match="message_key is for messages of one row"):
            query.to(other, message_key="room")
        engine.start(once=True)
        assert engine.await_end(PATIENCE)
    rows = [(m.key(), json.loads(m.value())) for m in consumed(broker, "rows")]
    first = {"query": "rows", "report": "1970-01-01T00:00:02Z", "room": "a", "top": 5}
    assert rows[0] == (b"a", first)
    assert [key for key, _ in rows] == [b"a", b"b", b"c", b"d"]
    assert {m.key() for m in consumed(broker, "pairs")} >= {b'["a", 1]', b'["c", 2]'}
    kept: dict[bytes, object] = {}
    seen: list[bytes] = []
    for m in consumed(broker, "state"):
        if m.value() is None:
            seen.append(m.key())
            del kept[m.key()]
        else:
            row = json.loads(m.value())
            assert row["change"] == "insert"
            kept[m.key()] = row["top"]
    assert sorted(seen) == [b"a", b"b", b"c", b"d"], "of a change of a there is none"
    assert not kept, "a compacted topic holds the relation, which is empty at last"


def test_formats_and_a_stream_of_what_came_out(broker: Broker, tmp_path: Path) -> None:
    path = stream(tmp_path / "s.nt", 100)
    for form, text in (
        ("csv", SUMS), ("tsv", SUMS), ("srj", SUMS), ("srx", SUMS),
        ("nq", GRAPH), ("trig", GRAPH), ("nt", GRAPH),
    ):  # fmt: skip
        url = broker.topic(f"out-{form}")
        run(tmp_path / form, path, url, text, format=form)
        messages = consumed(broker, f"out-{form}")
        assert messages, form
        if form in ("srj", "srx", "nt"):
            times = [int(dict(m.headers())["report"]) for m in messages]
            assert times == sorted(set(times)), form
            assert times[0] == 2000, form
    with Engine(spark=False) as engine:
        engine.stream("http://e/g", broker.url("out-nt"), format="nt", time="timestamp")
        asked = engine.register(
            "PREFIX : <http://e/> SELECT (COUNT(*) AS ?n) FROM NAMED WINDOW :w ON :g "
            "[RANGE P10000D STEP P10000D] WHERE { WINDOW :w { ?x :seen ?v } }",
            name="again",
        )
        engine.start(once=True)
        assert len(list(asked.results())) == 1


RUN = """
import sys
from pathlib import Path
from levada.engine.engine import Engine
root, path, url, text, once = sys.argv[1:]
engine = Engine(spark=False, checkpoint=Path(root), epoch_rows=100, partitions=2)
engine.stream("http://e/s", path)
engine.register(text, name="q").to(url)
engine.start(once=once == "once")
engine.await_end()
engine.close()
"""
WITHIN = """
import os, signal
from levada.connectors.sinks.kafka_sink import KafkaTarget
produce, seen = KafkaTarget._produce, []
def dying(self, key, value, headers):
    produce(self, key, value, headers)
    seen.append(value)
    if len(seen) == 40:
        assert self._producer.flush(300) == 0  # the broker has them, and no end of the transaction
        os.kill(os.getpid(), signal.SIGKILL)
KafkaTarget._produce = dying
"""


def start(
    root: Path, path: Path, url: str, before: str = "", how: str = "once"
) -> subprocess.Popen[bytes]:
    """An engine that ends when it has read all; ``how`` "on": that does not end."""
    root.mkdir(exist_ok=True)
    command = [sys.executable, "-c", before + RUN, str(root / "ck"), str(path), url, SUMS, how]
    with (root / "said").open("ab") as said:
        return subprocess.Popen(command, stderr=said)


@pytest.mark.long
@pytest.mark.chaos
@pytest.mark.timeout(PATIENCE * (KILLS + 3))
def test_an_engine_that_is_killed_writes_each_report_once(
    broker: Broker, tmp_path: Path, random_seed: int
) -> None:
    draw = random.Random(random_seed)
    path, url, root = tmp_path / "s.nt", broker.topic("killed-out"), tmp_path / "killed"
    for k in range(KILLS):
        stream(path, 1000, 1000 * k)  # ten epochs or more
        kill_after(start(root, path, url, how="on"), root / "ck", draw.randint(1, 9))
        broker.send("killed-out", ["of somebody else"])
    stream(path, 1000, 1000 * KILLS)
    for each, to in ((root, url), (tmp_path / "whole", broker.topic("whole-out"))):
        assert start(each, path, to).wait(PATIENCE) == 0, (each / "said").read_text()[-3000:]
    whole, found = (own(consumed(broker, name)) for name in ("whole-out", "killed-out"))
    assert len(found) == len(set(found)) > 50
    assert same(read_ndjson(whole)["q"], read_ndjson(found)["q"]) is None


@pytest.mark.long
def test_a_kill_within_a_transaction(broker: Broker, tmp_path: Path) -> None:
    path, url = stream(tmp_path / "s.nt", 2500), broker.topic("torn")
    root = tmp_path / "torn"
    assert start(root, path, url, WITHIN).wait(PATIENCE) == -signal.SIGKILL
    assert start(root, path, url).wait(PATIENCE) == 0, (root / "said").read_text()[-3000:]
    found = own(consumed(broker, "torn"))
    everything = own(consumed(broker, "torn", "read_uncommitted"))
    assert len(found) == len(set(found))
    assert same(by_files(tmp_path / "files", path), read_ndjson(found)["q"]) is None
    torn = len(everything) - len(found)
    assert 0 < torn <= 40
    assert torn == len(everything) - len(set(everything))  # they are there twice, once aborted
    log = broker.folder / "data" / "torn-0" / f"{0:020d}.log"
    assert "endTxnMarker: ABORT" in broker.tool(
        "DumpLogSegments", "--print-data-log", "--files", str(log)
    )
    said = broker.tool(
        "consumer.ConsoleConsumer", "--bootstrap-server", broker.server, "--topic", "torn",
        "--from-beginning", "--isolation-level", "read_committed", "--max-messages",
        str(len(found)), "--timeout-ms", "300000",
    )  # fmt: skip
    assert said.splitlines() == found


@pytest.mark.long
def test_kafkas_own_tools(broker: Broker, tmp_path: Path) -> None:
    """What its console producer writes is a stream; its tool of groups says how far an output is,
    and who has nothing to do with it.
    """
    path, url = stream(tmp_path / "s.nt", 400), broker.topic("by-console")
    broker.tool(
        "ConsoleProducer", "--bootstrap-server", broker.server, "--topic", "by-console",
        given=path.read_text(),
    )  # fmt: skip
    to = broker.topic("told")
    with Engine(spark=False, checkpoint=tmp_path / "ck", epoch_rows=100) as engine:
        engine.stream("http://e/s", url, format="nt")
        engine.register(SUMS, name="q").to(to)
        engine.start(once=True)
        assert engine.await_end(PATIENCE)
        last = engine.progress().epochs
    found = read_ndjson(own(consumed(broker, "told")))["q"]
    assert same(by_files(tmp_path / "files", path), found) is None
    tool, where = "consumer.group.ConsumerGroupCommand", ("--bootstrap-server", broker.server)
    (group,) = [n for n in broker.tool(tool, *where, "--list").split() if n.endswith("-q-told")]
    told = broker.tool(tool, *where, "--describe", "--offsets", "--group", group)
    (row,) = [line.split() for line in told.splitlines() if group in line]
    assert row[1:3] == ["told", "0"]
    assert 0 < int(row[3]) <= last


def _opens(target: Target) -> bool:
    """A broker that does not know yet who coordinates is away: an engine would wait, too."""
    try:
        return target.open(None) is None
    except TargetAwayError:
        return False


def test_a_second_engine_is_fenced(broker: Broker) -> None:
    url = broker.topic("fenced")
    there = Destination(url)
    first, second = there.target("q", "id"), there.target("q", "id")
    until(lambda: _opens(first))
    until(lambda: _opens(second))
    with Engine(spark=False) as engine:
        engine.register("SELECT ?x WHERE { BIND(1 AS ?x) }", name="q")
        engine.start(once=True)
        engine.await_end(PATIENCE)
        piece = _piece(engine)
    with pytest.raises(SinkError, match="Another engine writes"):
        first.write(piece)
    second.write(piece)
    first.close()
    second.close()
    assert there.target("q", "id").open(None) == piece.position
    assert [json.loads(text)["report"] for text in own(consumed(broker, "fenced"))] == [None]


def test_names_with_hyphens_fence_nobody(broker: Broker) -> None:
    one = Destination(broker.topic("b-c")).target("a", "id")
    other = Destination(broker.topic("c")).target("a-b", "id")
    with Engine(spark=False) as engine:
        engine.register("SELECT ?x WHERE { BIND(1 AS ?x) }", name="q")
        engine.start(once=True)
        engine.await_end(PATIENCE)
        piece = _piece(engine)
    assert one.open(None) is other.open(None) is None
    for each in (one, other):
        each.write(piece)
        each.close()


def _piece(engine: Engine) -> Any:
    from levada.connectors.sinks.transactional_sink import Piece, Position

    publication = engine._publication
    query, batch = next(iter(publication.read(publication.kept[0])))
    return Piece(query, batch, Position(1, 1, 1))


@pytest.mark.long
def test_a_broker_that_goes_is_waited_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KAFKA_PASSWORD", CANARY)
    another = Broker(tmp_path / "broker", sasl=("writer", CANARY))
    try:
        _goes_and_comes(another, tmp_path)
    finally:
        another.stop()


def _goes_and_comes(another: Broker, tmp_path: Path) -> None:
    path, root = stream(tmp_path / "s.nt", 200), tmp_path / "ck"
    another.topic("obs")
    url = f"kafka://127.0.0.1:{another.secured}/obs"
    with Engine(spark=False, checkpoint=root, epoch="5ms") as engine:
        engine.stream("http://e/s", str(path))
        asked = engine.register(SUMS, name="q")
        asked.to(url, sasl="plain", user="writer", password="env:KAFKA_PASSWORD")
        engine.start()
        until(lambda: engine.progress().epochs and not engine.status().outputs[0].pending_reports)
        until(lambda: is_settled(another.server, "obs"))
        another.stop(signal.SIGKILL)
        stream(path, 200, 200)
        until(lambda: engine.status().outputs[0].reason)
        told = engine.status().outputs[0]
        assert url in told.reason and told.pending_reports and not told.blocks_intake
        another.start()
        until(lambda: engine.await_end(0) or not engine.status().outputs[0].pending_reports)
        wanted = len({r.time for r in _so_far(asked)})
    assert len(own(consumed(another, "obs"))) == wanted > 5
    assert CANARY not in told.reason
    files = [file for file in root.rglob("*") if file.is_file()]
    assert not [file for file in files if CANARY.encode() in file.read_bytes()]


def test_a_message_that_is_too_large_ends_no_engine(broker: Broker, tmp_path: Path) -> None:
    """It waits until the topic takes it; who else has outputs goes on."""
    path, url = stream(tmp_path / "s.nt", 200), broker.topic("narrow", max_message_bytes="9000")
    with path.open("a") as file:
        file.write(f'<http://e/l> <http://e/long> "{_text(1_500_000)}" 10000 .\n')
    stream(path, 400, 201)
    text = """PREFIX : <http://e/> SELECT ?t FROM NAMED WINDOW :w ON :s [RANGE PT2S STEP PT2S]
        WHERE { WINDOW :w { ?x :long ?t } }"""
    with Engine(spark=False, checkpoint=tmp_path / "ck", epoch_rows=50) as engine:
        engine.stream("http://e/s", str(path))
        engine.register(SUMS, name="q").to(broker.topic("beside"))
        engine.register(text, name="long").to(url)
        engine.start()

        def outputs() -> dict[str, Any]:
            return {one.query: one for one in engine.status().outputs}

        until(lambda: len(outputs()) == 2 and "size too large" in outputs()["long"].reason)
        assert "Raise max.message.bytes of narrow" in outputs()["long"].reason
        until(lambda: not outputs()["q"].pending_reports)
        assert not engine.await_end(0)
        broker.set("narrow", "max.message.bytes", "3000000")
        until(lambda: engine.await_end(0) or not outputs()["long"].pending_reports)
        until(lambda: len(own(consumed(broker, "beside"))) > 10, step=0.5)
    (message,) = own(consumed(broker, "narrow"))
    assert len(message) > 1_500_000


def _text(size: int) -> str:
    """Letters that no codec makes few of."""
    return "".join(random.Random(1).choices("abcdefghijklmnopqrstuvwxyz0123456789", k=size))


def _so_far(asked: Any) -> list[Any]:
    from levada.engine.query import collect_reports

    return collect_reports(asked).reports


def test_a_topic_that_is_not_there(broker: Broker, tmp_path: Path) -> None:
    with pytest.raises(SinkError, match="has no topic nowhere"):
        run(tmp_path / "ck", stream(tmp_path / "s.nt", 100), broker.url("nowhere"))
