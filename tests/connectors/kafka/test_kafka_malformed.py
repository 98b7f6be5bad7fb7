"""Messages that are none: each is a dead letter that tells topic, partition, offset and reason, and
what is sound between them is read. A million of all kinds stop nothing, and take no memory.
"""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from itertools import cycle
from pathlib import Path
from typing import Any

import psutil
import pyoxigraph as ox
import pytest

from levada.connectors.serialization.jelly_writer import jelly_bytes
from levada.engine.engine import Engine
from levada.engine.query import Query
from support.kafka_broker import Broker
from support.polling import PATIENCE

MANY = int(os.environ.get("LEVADA_BAD", "3000"))
LARGE = 1_000_000  # bytes: of larger ones there are few
GROWTH = 200 << 20  # bytes of memory from a third of the way on: an epoch more or less in flight
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
    topic = "malformed-" + case.replace(",", "-")
    broker.topic(topic, 2)
    values = [good]
    for each in bad:
        values += [each, good]
    broker.send(topic, values, 1, [1000] * len(values), message_max_bytes=60 << 20)
    record, letters = letters_of(broker, topic, **options_of(case))
    assert (record.elements, record.dead_letters, record.unaccounted_elements) == (
        len(bad) + 1,
        len(bad),
        0,
    )
    assert [(d["source"], d["offset"]) for d in sorted(letters, key=lambda d: d["offset"])] == [
        (f"{topic}/1", 1 + 2 * k) for k in range(len(bad))
    ]
    reasons = {d["offset"]: d["reason"] for d in letters}
    for k, wanted in enumerate(bad.values()):
        assert reasons[1 + 2 * k] and wanted in reasons[1 + 2 * k], (case, reasons)


def options_of(case: str) -> dict[str, Any]:
    form, _, timed = case.partition(",")
    if form == "ndjson":
        return {"format": form, "schema": "v:string;ts:integer", "time": "field:ts"}
    return {"format": form, "time": timed or "timestamp"}


def mixed(case: str, n: int) -> Iterator[bytes | None]:
    """So many messages, a tenth of them sound, one in a thousand without a value, all kinds of bad
    ones in turn, of which large ones come once.
    """
    good, bad = CASES[case]
    large = [each for each in bad if len(each) > LARGE]
    small = cycle([each for each in bad if len(each) <= LARGE])
    for k in range(n):
        if k % 1000 == 501:
            yield None
        elif k % 10 == 0:
            yield good
        else:
            yield large.pop() if large else next(small)


@pytest.mark.timeout(PATIENCE + MANY // 50)
def test_many_of_all_kinds_stop_nothing(broker: Broker, tmp_path: Path) -> None:
    """``LEVADA_BAD=1000000`` for a million."""
    each = MANY // len(CASES)
    memory: list[int] = []
    with Engine(spark=False, checkpoint=tmp_path / "ck", epoch_rows=5000, epoch="0") as engine:
        for case in CASES:
            topic = "many-" + case.replace(",", "-")
            broker.topic(topic, 1, **{"max.message.bytes": str(60 << 20)})
            broker.send(
                topic, mixed(case, each), times=[1000] * each, message_max_bytes=60 << 20,
                queue_buffering_max_messages=2_000_000,
            )  # fmt: skip
            options = options_of(case)
            name = "S" if options["format"] == "ndjson" else f"http://e/{topic}"
            engine.stream(name, broker.url(topic), **options)
            counted(engine, name, table=options["format"] == "ndjson")
        engine._tell.append(lambda manifest: memory.append(psutil.Process().memory_info().rss))
        engine.start(once=True)
        assert engine.await_end(PATIENCE + MANY // 100)
        records, folder = engine._records(), engine.root / "side"
    nothing = len(range(501, each, 1000))
    for record in records.values():
        good = len(range(0, each, 10))
        assert (record.elements, record.null_messages) == (good, nothing)
        assert record.dead_letters == each - good - nothing
    letters, at = 0, set()
    for path in folder.iterdir():
        for line in path.read_text().splitlines():
            if line.startswith("{"):
                letter = json.loads(line)
                assert letter["reason"]
                at.add((letter["source"], letter["offset"]))
                letters += 1
    assert len(at) == letters == sum(record.dead_letters for record in records.values())
    mb, cpu = [each >> 20 for each in memory], psutil.Process().cpu_times()
    print(
        f"{letters} letters of {MANY} messages in {len(mb)} epochs, {cpu.user + cpu.system:.0f} s "
        f"of CPU with their making; memory {mb[0]} to {mb[-1]} MB, at most {max(mb)}"
    )
    if len(memory) > 30:
        third = len(memory) // 3
        assert max(memory[third:]) < max(memory[:third]) + GROWTH, memory[:: len(memory) // 20]


def counted(engine: Engine, name: str, *, table: bool) -> Query:
    if table:
        cql = f"Select Count(*) As n From {name} [Range 4 Seconds Slide 4 Seconds]"
        return engine.register(cql, dialect="cql", name="table")
    text = f"SELECT (COUNT(*) AS ?n) FROM NAMED WINDOW <w> ON <{name}> [RANGE PT4S STEP PT4S] "
    return engine.register(f"{text} WHERE {{ WINDOW <w> {{ ?x ?p ?v }} }}")
