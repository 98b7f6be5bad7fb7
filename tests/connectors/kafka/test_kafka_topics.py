"""Streams of Kafka, over a real broker: they give what files give, whatever happens."""

from __future__ import annotations

import itertools
import json
import random
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaException, TopicPartition
from confluent_kafka.admin import NewPartitions
from hypothesis import HealthCheck, given, settings

from levada.connectors.config.stream_config import StreamConfig
from levada.engine.engine import Engine
from levada.errors import SourceError, UsageError
from levada.runtime.driver.parallelism import LIGHT
from levada.runtime.executor import Executor, Job, LocalExecutor
from levada.runtime.warmup_executor import WarmupExecutor
from levada.testing import MemorySink
from levada.testing.compare import same_queries
from levada.testing.reference_model import Element
from levada.testing.stepped_engine import name_graphs
from levada.testing.stream_builders import lines
from support.generators import Case, Clause, cases
from support.kafka_broker import Broker
from support.polling import PATIENCE, until
from support.query_dsl import S, element, judge, query, run, step
from support.stepped_runs import register, reports_of, run_case

COUNT = """PREFIX : <http://e/> SELECT (COUNT(*) AS ?n) (SUM(?v) AS ?sum)
FROM NAMED WINDOW :w ON :s [RANGE PT4S STEP PT4S] WHERE { WINDOW :w { ?x :v ?v } }"""
NAMES = (f"topic-{k}" for k in itertools.count())
QUERIES = [
    query(
        "SELECT ?a ?n", "WINDOW :w { ?a :p ?n }", name="steps", windows={"w": (S, step(2000, 1000))}
    ),
    query(
        "SELECT ?a ?n",
        "WINDOW :w { ?a :p ?n }",
        name="range",
        windows={"w": (S, Clause("range", 800))},
        output="ISTREAM",
    ),
    query(
        "SELECT ?a ?n ?m",
        "WINDOW :w { ?a :p ?n . ?b :p ?m . FILTER(?n = ?m) }",
        name="joined",
        windows={"w": (S, step(2000, 1000))},
    ),
]


def integer(k: int) -> str:
    return f'"{k}"^^<http://www.w3.org/2001/XMLSchema#integer>'


def statement(k: int, graph: str = "") -> str:
    return f"<http://e/{k}> <http://e/v> {integer(k)} {graph}."


def answers(
    url: str, root: Path | None = None, *, text: str = COUNT, **options: Any
) -> tuple[dict[int | None, list[tuple[Any, ...]]], Any, list[dict[str, Any]]]:
    """The reports of a query over a topic, the stream's record, and its dead letters."""
    letters: list[dict[str, Any]] = []
    with Engine(spark=False, checkpoint=root) as engine:
        engine.stream("http://e/s", url, **options)
        asked = engine.register(text, name="q")
        engine.start(once=True)
        found = {r.time: [tuple(map(str, row)) for row in r.rows.rows()] for r in asked.results()}
        engine.await_end(PATIENCE)
        record = engine._records()["http://e/s"]
        for path in (engine.root / "side").iterdir():
            letters += [json.loads(x) for x in path.read_text().splitlines() if x[:1] == "{"]
    return found, record, letters


def test_what_topics_give_is_what_the_reference_says(
    broker: Broker, tmp_path: Path, random_seed: int
) -> None:
    draw = random.Random(random_seed)
    elements = [
        element(300 * k + draw.randrange(300), *(f"a{draw.randrange(4)} p {draw.randrange(5)}",))
        for k in range(60)
    ]
    for partitions, epoch_rows in ((1, 7), (3, 1000)):
        name = next(NAMES)
        url = broker.topic(name, partitions)
        for p in range(partitions):
            own = elements[p::partitions]
            texts = ["\n".join(f"{t} ." for t in e.triples) for e in own]
            broker.send(name, texts, p, [e.ts for e in own], compression_type="lz4")
        got, _ = run(
            tmp_path / f"ck{partitions}",
            {S: {"path": url, "format": "nt", "time": "timestamp"}},
            QUERIES,
            epoch_rows=epoch_rows,
        )
        judge(QUERIES, {S: elements}, got)


@settings(max_examples=3, deadline=None, suppress_health_check=list(HealthCheck))
@given(cases())
def test_random_cases_over_topics_are_those_over_files(broker: Broker, case: Case) -> None:
    difference = same_queries(run_case(case, epoch_rows=5), over_topics(broker, case))
    assert difference is None, difference


def over_topics(broker: Broker, case: Case) -> dict[str, Any]:
    sink = MemorySink()
    with (
        tempfile.TemporaryDirectory() as folder,
        Engine(spark=False, epoch_rows=5, partitions=2, sink=sink, seed=7) as engine,
    ):
        for name, elements in case.streams.items():
            topic = next(NAMES)
            url = broker.topic(topic)
            texts = ["\n".join(lines([e])) for e in elements if isinstance(e, Element)]
            broker.send(topic, texts, compression_type="zstd")
            engine.stream(name, url, format="nt", lateness=case.lateness)
        name_graphs(engine, Path(folder), case.static)
        register(engine, case.queries)
        engine.start(once=True)
        assert engine.await_end(PATIENCE)
    return reports_of(case, sink)


DOCUMENTS = {
    "nt": statement(7),
    "nq": statement(7, "<http://e/g> "),
    "ttl": "@prefix : <http://e/> . :x :v 7 .",
    "trig": "@prefix : <http://e/> . :g { :x :v 7 }",
    "rdf": '<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="http://e/">'
    '<r:Description r:about="http://e/x"><e:v '
    'r:datatype="http://www.w3.org/2001/XMLSchema#integer">7</e:v></r:Description></r:RDF>',
    "jsonld": '{"@id": "http://e/x", "http://e/v": 7}',
}


@pytest.mark.long
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_format_and_codec(broker: Broker, codec: str) -> None:
    name = next(NAMES)
    for form, text in DOCUMENTS.items() if codec in ("none", "zstd") else [("nt", statement(7))]:
        topic = f"{name}-{form}"
        url = broker.topic(topic)
        broker.send(topic, [text, "half <", text], times=[1, 2, 5000], compression_type=codec)
        found, record, letters = answers(url, format=form, time="timestamp")
        assert found == {4000: [(integer(1), integer(7))], 8000: [(integer(1), integer(7))]}, form
        assert [(d["source"], d["offset"]) for d in letters] == [(f"{topic}/0", 1)], form
        assert (record.elements, record.dead_letters) == (2, 1)


def test_tables(broker: Broker, tmp_path: Path) -> None:
    text = "Select Count(*) As n, Sum(S.v) As v From S [Range 4 Seconds Slide 4 Seconds]"
    rows = [
        "1,a,1000",
        '2,"b\n,c",2000',
        '3,"open,3000',
        "4,d,3500",
        "5,e,3600\n6,f,3700",
        "",
        "x,",
    ]
    objects = [
        '{"v": 1,\n "k": "a", "ts": 1000}',
        '{"v": 2, "ts": 2000}',
        "{",
        "[]",
        '{"v":4,"ts":3}',
    ]
    for form, values, dead in (
        ("csv", rows, [2, 4, 6]),
        ("ndjson", objects, [2, 3]),
    ):
        name = next(NAMES)
        url = broker.topic(name)
        broker.send(name, values)
        with Engine(spark=False) as engine:
            engine.stream("S", url, format=form, schema="v:integer;k:string;ts:integer")
            asked = engine.register(text, dialect="cql", name="q")
            engine.start(once=True)
            found = [tuple(map(str, row)) for r in asked.results() for row in r.rows.rows()]
            engine.await_end(PATIENCE)
            record = engine._records()["S"]
            assert (record.elements, record.unaccounted_elements) == (3, 0), (form, record)
            assert found[0][-2:] == (integer(3), integer(7))  # then they leave
            letters = [
                json.loads(x)["offset"]
                for path in (engine.root / "side").iterdir()
                for x in path.read_text().splitlines()
                if x[:1] == "{"
            ]
            assert sorted(set(letters)) == dead, form


def test_bad_messages_are_dead_letters(broker: Broker) -> None:
    name = next(NAMES)
    url = broker.topic(name)
    good = statement(3)
    values = [good, None, b"\xff\xfe", b"\0\0\0\0\1abc", f"{statement(4)}\nno", b"", None, good]
    broker.send(name, values, times=[1000] * 8)
    found, record, letters = answers(url, format="nt", time="timestamp")
    assert found == {4000: [(integer(1), integer(3))]}
    assert (
        record.elements,
        record.dead_letters,
        record.null_messages,
        record.unaccounted_elements,
    ) == (2, 3, 2, 0)
    assert sorted(d["offset"] for d in letters) == [2, 3, 4]
    assert "schema registry" in next(d["reason"] for d in letters if d["offset"] == 3)
    assert all(d["source"] == f"{name}/0" for d in letters)
    by_line, record, _ = answers(url, format="nt", time="timestamp", element="line")
    assert by_line == {4000: [(integer(2), integer(7))]}
    assert record.dead_letters == 3


def test_blank_nodes_are_a_message_s_own(broker: Broker) -> None:
    name = next(NAMES)
    url = broker.topic(name)
    two = "_:a <http://e/v> _:b .\n_:a <http://e/v> _:c ."
    broker.send(name, [two, two], times=[1000, 1000])
    text = """PREFIX : <http://e/> SELECT (COUNT(DISTINCT ?x) AS ?n) (COUNT(DISTINCT ?v) AS ?m)
    FROM NAMED WINDOW :w ON :s [RANGE PT4S STEP PT4S] WHERE { WINDOW :w { ?x :v ?v } }"""
    for form in ("nt", "ttl"):
        found, _, _ = answers(url, format=form, time="timestamp", text=text)
        assert found == {4000: [(integer(2), integer(4))]}, form


def test_what_is_not_committed_is_not_seen(broker: Broker) -> None:
    name = next(NAMES)
    url = broker.topic(name)
    producer = broker.producer(transactional_id=f"t-{name}")
    producer.init_transactions(120)
    for value, commit in ((1, True), (2, False), (4, True)):
        producer.begin_transaction()
        producer.produce(name, statement(value), timestamp=1000)
        producer.flush(120)
        (producer.commit_transaction if commit else producer.abort_transaction)(120)
    producer.begin_transaction()
    producer.produce(name, statement(8), timestamp=1000)
    producer.flush(120)
    committed, record, _ = answers(url, format="nt", time="timestamp")
    assert committed == {4000: [(integer(2), integer(5))]}
    assert (record.elements, record.unaccounted_elements) == (2, 0)
    seen, _, _ = answers(url, format="nt", time="timestamp", isolation="read_uncommitted")
    assert seen == {4000: [(integer(4), integer(15))]}
    producer.abort_transaction(120)


class OtherExecutor:
    """An executor in the place of Spark's, which runs jobs in this process and notes them."""

    def __init__(self) -> None:
        self.jobs: list[Job] = []

    def find(self) -> None: ...

    def start(self) -> OtherExecutor:
        return self

    def check(self) -> None: ...

    def end(self) -> None: ...

    def run(self, job: Job) -> list[bytes]:
        self.jobs.append(job)
        return LocalExecutor().run(job)


class WarmEngine(Engine):
    """An engine whose other executor is there before its first epoch."""

    def __init__(self, other: OtherExecutor, **options: Any) -> None:
        super().__init__(**options)
        self._other = other

    def _executor(self) -> Executor:
        executor = WarmupExecutor(self._other, here=True)
        executor.await_warm()
        return executor


@pytest.mark.parametrize("form", ["nt", "ttl"])
def test_epochs_of_few_messages_of_lines_run_in_the_driver(broker: Broker, form: str) -> None:
    name, other, many = next(NAMES), OtherExecutor(), LIGHT + 120
    url = broker.topic(name)
    broker.send(name, [statement(k) for k in range(many)], times=[10 * k + 10 for k in range(many)])
    with WarmEngine(other, epoch_rows=LIGHT + 1) as engine:
        engine.stream("http://e/s", url, format=form, time="timestamp")
        asked = engine.register(COUNT, name="q")
        engine.start(once=True)
        sums = [row for report in asked.results() for row in report.rows.rows()]
        assert engine.await_end(PATIENCE)
        record = engine._records()["http://e/s"]
    assert (record.elements, record.dead_letters) == (many, 0)
    assert sum(int(str(count).split('"')[1]) for count, _ in sums) == many
    # the first epoch has too many elements; documents are read elsewhere, however few
    assert len(other.jobs) == (1 if form == "nt" else 2)


def test_where_a_stream_starts(broker: Broker) -> None:
    name = next(NAMES)
    url = broker.topic(name)
    broker.send(name, [statement(1), statement(2)], times=[1000, 2000])
    for start, n in (("latest", 0), (1500, 1), ("1970-01-01T00:00:02Z", 1), ("earliest", 2)):
        _, record, _ = answers(url, format="nt", time="timestamp", start=start)
        assert record.elements == n, start


def test_offsets_that_are_gone(broker: Broker, tmp_path: Path) -> None:
    name = next(NAMES)
    url = broker.topic(name)
    broker.send(name, [statement(k) for k in range(4)], times=[1000] * 4)
    for lost in ("stop", "skip"):
        _first_two(url, tmp_path / lost, lost)
    broker.send(name, [statement(k) for k in range(4, 8)], times=[2000] * 4)
    gone = TopicPartition(name, 0, 6)
    broker.admin.delete_records([gone])[gone].result(120)
    with pytest.raises(SourceError, match=r"Epoch [0-9]+: .* offsets 4 to 5 of the partition 0"):
        answers(url, tmp_path / "stop", format="nt", time="timestamp")
    _, record, letters = answers(url, tmp_path / "skip", format="nt", time="timestamp", lost="skip")
    assert record.elements == 6
    assert any("offsets 4 to 5" in d["reason"] and "2 in all" in d["reason"] for d in letters)


def test_a_topic_that_is_made_anew(broker: Broker, tmp_path: Path) -> None:
    name = next(NAMES)
    url = broker.topic(name)
    broker.send(name, [statement(k) for k in range(4)], times=[1000] * 4)
    for lost in ("stop", "skip"):
        _first_two(url, tmp_path / lost, lost)
    broker.admin.delete_topics([name])[name].result(120)
    until(lambda: name not in broker.admin.list_topics(timeout=120).topics)
    until(lambda: made(broker, name))
    broker.send(name, [statement(9)], times=[2000])
    said = r"Epoch [0-9]+: .* another one of its name; of partitions was read of 0 up to 4"
    with pytest.raises(SourceError, match=said):
        answers(url, tmp_path / "stop", format="nt", time="timestamp")
    _, record, letters = answers(url, tmp_path / "skip", format="nt", time="timestamp", lost="skip")
    assert (record.elements, record.dead_letters) == (5, 1)
    assert "another one of its name" in letters[0]["reason"]


def made(broker: Broker, name: str) -> bool:
    """Whether a topic has been made: one of its name may not have gone yet."""
    with suppress(KafkaException):
        broker.topic(name)
        return True
    return False


def _first_two(url: str, root: Path, lost: Any) -> None:
    with Engine(spark=False, checkpoint=root) as engine:
        engine.stream("http://e/s", url, format="nt", time="timestamp", lost=lost)
        engine.register(COUNT, name="q")
        engine.start(once=True, keep_open=True)
        assert engine.await_end(PATIENCE)
        assert engine._records()["http://e/s"].elements == 4


def test_a_partition_that_is_silent_and_one_that_is_added(broker: Broker) -> None:
    name = next(NAMES)
    url = broker.topic(name, 2)
    broker.send(name, [statement(1)], 0, [1000])
    broker.send(name, [statement(2)], 1, [1000])
    with Engine(spark=False, epoch="20ms") as engine:
        engine.stream("http://e/s", url, format="nt", time="timestamp", idle="300ms")
        asked = engine.register(COUNT, name="q")
        engine.start()
        reports = asked.results()
        broker.send(name, [statement(4)], 0, [5000])  # and the other says nothing
        broker.admin.create_partitions([NewPartitions(name, 3)])[name].result(120)
        time.sleep(0.5)
        broker.send(name, [statement(5)], 0, [5001])
        first = next(reports)
        assert first.time == 4000
        assert [tuple(map(str, row)) for row in first.rows.rows()] == [(integer(2), integer(3))]
        until(lambda: len(_producer_sees(broker, name)) == 3)
        broker.send(name, [statement(6)], 2, [9000])
        until(lambda: engine._records()["http://e/s"].elements == 5)


def _producer_sees(broker: Broker, topic: str) -> Any:
    return broker.admin.list_topics(topic, timeout=120).topics[topic].partitions


def test_mistakes_are_sentences(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    broker.topic("observations")
    for url, options, sentence in (
        (broker.url("observation"), {}, "has no topic observation.*observations"),
        ("kafka://127.0.0.1/x", {}, "is no topic of Kafka"),
        ("kafka://a:s3cret@127.0.0.1:9/x", {}, "is no topic of Kafka"),
        (broker.url("x"), {"strat": "latest"}, "no option strat.*start"),
        (broker.url("x"), {"start": "lates"}, "latest"),
        (broker.url("x"), {"sasl": "plain"}, "go together"),
        (broker.url("x"), {"user": "u"}, "go together"),
        (broker.url("x"), {"password": "env:HOME"}, "go together"),
        (broker.url("x"), {"sasl": "plain", "user": "u", "password": "hunter2"}, "does not stand"),
        (broker.url("x"), {"limit": 5}, "limit="),
        (broker.url("x"), {"element": "subject"}, "element=message or element=line"),
        ("x.nt", {"lost": "skip"}, "is for a topic of Kafka"),
    ):
        with (
            pytest.raises((SourceError, UsageError), match=f"(?s){sentence}") as caught,
            Engine(spark=False) as engine,
        ):
            given: dict[str, Any] = {"format": "nt", "time": "timestamp", **options}
            engine.stream("s", url, **given)
            engine.register(COUNT.replace(":s", "<http://e/s>"), name="q")
            engine.start(once=True)
        assert "hunter2" not in str(caught.value)
        assert "s3cret" not in str(caught.value)
    with pytest.raises(UsageError, match="do not say their format"):
        StreamConfig.from_options("s", broker.url("x"))
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    monkeypatch.setitem(sys.modules, "confluent_kafka.admin", None)
    with pytest.raises(SourceError, match=r"pip install 'levada\[kafka\]'"):
        answers(broker.url("x"), format="nt", time="timestamp")
