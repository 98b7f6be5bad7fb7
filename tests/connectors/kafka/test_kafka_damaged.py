"""Batches that are damaged on the broker's disk: each is a dead letter that names topic, partition,
offsets and reason, and all messages around it are read.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from test_kafka_malformed import letters_of

from support.kafka_broker import Broker
from support.kafka_record_batches import crc32c

EACH, BATCHES = 20, 10
GOOD = b'<http://e/a> <http://e/v> "1" .'
HEADER = 61
Damage = Callable[[bytearray], None]


def flip(batch: bytearray) -> None:
    """Changes a byte, so that the checksum is wrong."""
    batch[HEADER + 5] ^= 0xFF


def change_count(batch: bytearray) -> None:
    """Changes the header's number of offsets and of records, too."""
    batch[23:27] = batch[57:61] = struct.pack(">i", 1 << 30)


def garble(batch: bytearray) -> None:
    """Replaces the records by something else, with a sound checksum."""
    batch[HEADER:] = bytes(len(batch) - HEADER)
    batch[17:21] = struct.pack(">I", crc32c(bytes(batch[21:])))


def damage(broker: Broker, topic: str, numbers: set[int], how: Damage) -> None:
    """Damages these batches of partition 0 on the disk."""
    path = broker.folder / "data" / f"{topic}-0" / f"{0:020}.log"
    data, at, number = bytearray(path.read_bytes()), 0, 0
    while at < len(data):
        end = at + 12 + struct.unpack_from(">i", data, at + 8)[0]
        if number in numbers:
            batch = data[at:end]
            how(batch)
            data[at:end] = batch
        at, number = end, number + 1
    assert number == BATCHES
    with Path(path).open("r+b") as file:
        file.write(data)


@pytest.mark.long
@pytest.mark.parametrize("how", [flip, change_count, garble])
@pytest.mark.parametrize("codec", ["none", "zstd"])
@pytest.mark.parametrize("numbers", [{0}, {3, 7}, {4, 5}, {9}], ids=str)
def test_a_damaged_batch_is_a_dead_letter(
    broker: Broker, codec: str, numbers: set[int], how: Damage
) -> None:
    topic = f"damaged-{how.__name__}-{codec}-{'-'.join(map(str, numbers))}"
    broker.topic(topic)
    broker.send(
        topic, [GOOD] * EACH * BATCHES, times=[1000] * EACH * BATCHES, batch_num_messages=EACH,
        compression_type=codec, linger_ms=1000,
    )  # fmt: skip
    damage(broker, topic, numbers, how)
    record, letters = letters_of(broker, topic, format="nt", time="timestamp")
    assert record.elements == EACH * (BATCHES - len(numbers))
    assert (record.late, record.unaccounted_elements) == (0, 0)
    told = {(d["source"], d["offset"]): d["reason"] for d in letters}
    first = min(numbers) * EACH
    assert (f"{topic}/0", first) in told
    assert "cannot be read: the batch at the offset" in told[f"{topic}/0", first]
    assert record.dead_letters == len(letters) <= len(numbers)


def break_size(batch: bytearray) -> None:
    """Destroys the size by which the broker itself finds the next batch."""
    batch[8:12] = struct.pack(">i", 3)


def break_magic(batch: bytearray) -> None:
    """Destroys the version of the format."""
    batch[16] = 77


@pytest.mark.long
@pytest.mark.parametrize("how", [break_size, break_magic])
def test_a_batch_that_the_broker_cannot_read_does_not_end_the_engine(
    broker: Broker, how: Damage
) -> None:
    topic = f"unreadable-{how.__name__}"
    broker.topic(topic)
    broker.send(
        topic, [GOOD] * EACH * BATCHES, times=[1000] * EACH * BATCHES, batch_num_messages=EACH,
        linger_ms=1000,
    )  # fmt: skip
    damage(broker, topic, {4}, how)
    record, letters = letters_of(broker, topic, format="nt", time="timestamp")
    (letter,) = letters
    assert (letter["source"], letter["offset"]) == (f"{topic}/0", 4 * EACH)
    last = EACH * (BATCHES - 1) + 4 * EACH - record.elements + EACH - 1
    assert (
        f"the offsets {4 * EACH} to {last} cannot be read: the batch at the offset 80"
        in (letter["reason"])
    )
    assert 5 * EACH <= record.elements <= 9 * EACH
