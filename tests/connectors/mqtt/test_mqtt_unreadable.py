"""Messages of MQTT that cannot be read, among sound ones: each is one dead letter, and none changes
how others are read.
"""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from test_mqtt_topics import TOPICS, letters, listening, record, seen, statement

from support.mqtt_broker import Broker

CONTENT = ("RDF-Message-Content-Type", "application/rdf+xml")
DECLARED = '<?xml version="1.0" encoding="{}"?><r/>'


def send(broker: Broker, topic: str, payload: str | bytes, *said: Sequence[str], qos: int) -> None:
    properties = [
        word for name, value in said for word in ("-D", "publish", "user-property", name, value)
    ]
    broker.send(topic, [payload], "-V", "5", *properties, "-q", str(qos))


@pytest.mark.parametrize("qos", [0, 1])
@pytest.mark.parametrize(
    ("payload", "said", "reason"),
    [
        (DECLARED.format("UTF-7"), CONTENT, "Malformed document"),
        (DECLARED.format("UTG-8"), CONTENT, "Malformed document"),
        (statement(99, time=990), ("note", "a\ufeffb"), "its properties cannot be read"),
        (statement(99, "<http://e/g> ", 990), (CONTENT[0], "application/n-triples"), "Malformed"),
        (statement(99, time=990), (CONTENT[0], "text/plain"), "is none of RDF"),
    ],
    ids=["UTF-7", "UTG-8", "U+FEFF", "graph", "text"],
)
def test_one_message_among_sound_ones_is_one_dead_letter(
    broker: Broker, payload: str, said: tuple[str, str], reason: str, qos: int
) -> None:
    topic = next(TOPICS)
    with listening(broker.url(topic), format="nt") as (engine, _):
        for k in range(10):
            broker.send(topic, [statement(k, time=10 * k)], "-q", str(qos))
        send(broker, topic, payload, said, qos=qos)
        for k in range(10, 20):
            broker.send(topic, [statement(k, time=10 * k)], "-q", str(qos))
        seen(engine, 21)
        found = record(engine)
        assert (found.elements, found.dead_letters) == (20, 1)
        (letter,) = letters(engine)
        assert reason in letter["reason"]
        assert letter["offset"] == 10
