"""What messages of Kafka say beside their texts: columns, formats, how far their producer is."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import pytest
from test_kafka_topics import COUNT, answers, integer, statement

from levada.engine.engine import Engine
from support.kafka_broker import Broker
from support.polling import PATIENCE, until
from support.query_dsl import S

NAMES = (f"headers-{k}" for k in itertools.count())
Headers = list[tuple[str, str | bytes | None]]
Message = tuple[bytes | None, int, Headers]


def send(
    broker: Broker, topic: str, *messages: tuple[bytes | None, int, Headers], **key: Any
) -> None:
    """Values, times and headers."""
    producer = broker.producer()
    for value, time, headers in messages:
        producer.produce(topic, value, partition=0, timestamp=time, headers=headers, **key)
    assert producer.flush(PATIENCE) == 0


def told(media: str) -> Headers:
    return [("RDF-Message-Content-Type", media.encode())]


TURTLE = b"@prefix : <http://e/> . :x :v 7 ."


def test_a_message_says_its_format(broker: Broker) -> None:
    for form in ("nt", "ttl"):
        name = next(NAMES)
        url = broker.topic(name)
        send(
            broker,
            name,
            (TURTLE, 1, told("text/turtle; charset=utf-8")),
            (statement(2).encode(), 2, told("application/n-triples")),
            (statement(3).encode(), 3, []),
            (b'{"@id": "http://e/y", "http://e/v": 5}', 4, told("application/ld+json")),
            (b"x", 5, told("text/plain")),
            (b"<x", 6, told("application/rdf+xml")),
        )
        found, record, letters = answers(url, format=form, time="timestamp")
        assert found == {4000: [(integer(4), integer(17))]}
        assert (record.elements, record.dead_letters, record.unaccounted_elements) == (4, 2, 0)
        assert [d["offset"] for d in letters] == [4, 5]
        assert letters[0]["reason"].endswith("none of RDF: text/plain")


@pytest.mark.parametrize("form", ["nt", "nq", "ttl"])
@pytest.mark.parametrize("encoding", ["UTF-7", "UTG-8"])
def test_a_message_of_another_encoding_is_one_dead_letter(
    broker: Broker, form: str, encoding: str
) -> None:
    """A header of one message changes nothing of the others, in a stream of any format."""
    name = next(NAMES)
    url = broker.topic(name)
    sound: list[Message] = [(statement(k).encode(), k, []) for k in range(21)]
    document = f'<?xml version="1.0" encoding="{encoding}"?><r/>'.encode()
    sound[10] = (document, 10, told("application/rdf+xml"))
    send(broker, name, *sound)
    _, record, letters = answers(url, format=form, time="timestamp")
    assert (record.elements, record.dead_letters, record.unaccounted_elements) == (20, 1, 0)
    assert [d["offset"] for d in letters] == [10]


def test_a_line_with_a_graph_is_not_n_triples_beside_one_that_is_n_quads(broker: Broker) -> None:
    name = next(NAMES)
    url = broker.topic(name)
    quad = statement(1).replace(" .", " <http://e/g> .").encode()
    send(broker, name, (quad, 1, told("application/n-quads")), (quad, 2, []), (quad, 3, []))
    _, record, letters = answers(url, format="nt", time="timestamp")
    assert (record.elements, record.dead_letters, record.unaccounted_elements) == (1, 2, 0)
    assert [d["offset"] for d in letters] == [1, 2]


def test_columns_beside_the_text(broker: Broker, tmp_path: Path) -> None:
    name = next(NAMES)
    url = broker.topic(name)
    room: Headers = [("Room-No", b"17"), ("x", b"1")]
    send(broker, name, (b'{"v": 1}', 1000, room), (b'{"v": 2}', 2000, []), key=b"k")
    send(broker, name, (b'{"v": 3}', 9000, []))
    schema = (
        "v:integer;message_key:string;message_topic:string;message_partition:integer;"
        "message_offset:integer;message_time:integer;message_header_room_no:integer"
    )
    columns = [c.partition(":")[0] for c in schema.split(";")]
    text = f"Select {', '.join(f'S.{c}' for c in columns)} From S [Range 4 Seconds Slide 4 Seconds]"
    with Engine(spark=False) as engine:
        engine.stream("S", url, format="ndjson", schema=schema, time="timestamp")
        asked = engine.register(text, name="q", dialect="cql")
        engine.start(once=True)
        first = next(asked.results()).rows.rows()
    here = (f'"{name}"', integer(0))
    assert sorted(row[-7:] for row in first) == [
        (integer(1), '"k"', *here, integer(0), integer(1000), integer(17)),
        (integer(2), '"k"', *here, integer(1), integer(2000), None),
    ]
    mapping = tmp_path / "m.yaml"
    mapping.write_text(
        "columns: {v: integer, message_offset: integer}\n"
        "triples:\n  - <http://e/{message_key}{message_offset}> <http://e/v> {v}\n"
    )
    one = COUNT.replace("(COUNT(*) AS ?n) (SUM(?v) AS ?sum)", "?x ?v")
    found, _, _ = answers(url, format="ndjson", mapping=mapping, time="timestamp", text=one)
    assert sorted(found[4000]) == [("<http://e/k0>", integer(1)), ("<http://e/k1>", integer(2))]


def test_a_producer_says_how_far_it_is(broker: Broker) -> None:
    name = next(NAMES)
    url = broker.topic(name)
    send(broker, name, (statement(1).encode(), 1000, []))
    with Engine(spark=False, epoch="20ms") as engine:
        engine.stream(S, url, format="nt", time="timestamp", lateness="1s")
        asked = engine.register(COUNT, name="q")
        engine.start()
        reports = asked.results()
        send(broker, name, (None, 1000, [("Levada-Watermark", b"1970-01-01T00:00:04Z")]))
        first = next(reports)  # nobody has spoken behind it
        assert (first.time, [tuple(map(str, r)) for r in first.rows.rows()]) == (
            4000, [(integer(1), integer(1))]
        )  # fmt: skip
        assert engine._records()[S].watermark == 4000
        far = str(10**15).encode()
        send(
            broker,
            name,
            (statement(2).encode(), 3999, []),
            (statement(3).encode(), 4000, [("levada-watermark", b"soon")]),
            (statement(4).encode(), 4001, [("Levada-Watermark", far)]),
        )
        until(lambda: engine._records()[S].elements == 3)
        record = engine._records()[S]
        assert (
            record.late,
            record.dead_letters,
            record.watermark,
            record.unaccounted_elements,
        ) == (1, 2, 4000, 0)
        assert any("is no time: soon" in reason for reason in record.dead_letter_reasons)
        assert any("future" in reason for reason in record.dead_letter_reasons)
