"""Batches of Kafka as the kernels read them are those that the twin has written, whatever they
hold; and damaged ones are refused.
"""

from __future__ import annotations

import ctypes
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.connectors.sources.kafka.fetched_batches import Batches, Records, read
from levada.connectors.sources.kafka.wire_protocol import BrokerError
from levada.core.array_types import Bytes
from levada.kernels.kafka.record_batches import crc32c
from levada.kernels.kafka.records import OVER
from support.kafka_record_batches import (
    CODECS,
    Batch,
    Record,
    encoded,
    headers,
    marker,
    sealed,
    seen,
)
from support.kafka_record_batches import crc32c as bit_by_bit

BYTES = st.binary(max_size=40) | st.builds(lambda n: b"long" * n, st.integers(0, 300))
HEADERS = st.lists(st.tuples(st.text(max_size=5), st.none() | BYTES), max_size=3).map(tuple)


def in_room(data: bytes) -> Bytes:
    """Bytes with room behind them, as an answer has."""
    room = np.full(len(data) + OVER, 255, np.uint8)
    room[: len(data)] = np.frombuffer(data, np.uint8)
    return room[: len(data)]


def of(records: Records) -> list[Record]:
    """Records as the twin has them."""

    def piece(at: int, size: int) -> bytes | None:
        return None if size < 0 else ctypes.string_at(at, size)

    more = records.more.reshape(-1, 4).tolist()
    columns = (records.place, records.length, records.offset, records.time)
    found = []
    for (at, size, offset, time), (key, key_size, head, head_size) in zip(
        zip(*(c.tolist() for c in columns), strict=True), more, strict=True
    ):
        said = piece(head, head_size)
        assert said is not None
        found.append(Record(offset, time, piece(at, size), piece(key, key_size), headers(said)))
    return found


@st.composite
def logs(draw: st.DrawFn) -> tuple[list[Batch], list[tuple[int, int]]]:
    """Batches as a partition has them, with transactions of some producers, and which of these
    were aborted.
    """
    found: list[Batch] = []
    open_: dict[int, int] = {}
    aborted = []
    at = draw(st.integers(0, 1 << 40))
    for _ in range(draw(st.integers(0, 8))):
        producer = draw(st.integers(0, 2))
        if producer in open_ and draw(st.booleans()):
            kind = draw(st.sampled_from(["commit", "abort"]))
            if kind == "abort":
                aborted.append((producer, open_[producer]))
            del open_[producer]
            found.append(marker(Batch(at, at, (), producer=producer, marker=kind)))
            at += 1
            continue
        transactional = draw(st.booleans())
        batch = draw(batches(at, producer, transactional))
        if transactional:
            open_.setdefault(producer, at)
        found.append(batch)
        at = batch.last + 1 + draw(st.integers(0, 2))
    for producer, first in sorted(open_.items()):  # nothing is behind what is still open
        aborted.append((producer, first))
        found.append(marker(Batch(at, at, (), producer=producer, marker="abort")))
        at += 1
    return found, aborted


@st.composite
def batches(draw: st.DrawFn, at: int, producer: int, transactional: bool) -> Batch:
    last = at + draw(st.integers(0, 5))
    base = draw(st.integers(0, 1 << 41))
    times = st.integers(-(1 << 40), 1 << 40).map(lambda later: base + later)
    records = tuple(
        Record(offset, draw(times), draw(st.none() | BYTES), draw(st.none() | BYTES), draw(HEADERS))
        for offset in range(at, last + 1)
        if draw(st.integers(0, 4))  # some are compacted away
    )
    appended = draw(st.none() | st.integers(0, 1 << 41))
    codec = draw(st.sampled_from(CODECS))
    return Batch(at, last, records, codec, producer, transactional, "", appended, base)


@pytest.mark.long
@given(logs(), st.data())
def test_random_logs_are_read_as_the_twin_reads_them(
    log: tuple[list[Batch], list[tuple[int, int]]], data: st.DataObject
) -> None:
    written, aborted = log
    whole = b"".join(map(encoded, written))
    cut = len(whole) - data.draw(st.integers(0, min(40, len(whole))))
    low, high = (written[0].first, written[-1].last + 1) if written else (0, 0)
    start = data.draw(st.integers(low, high))
    stop = data.draw(st.integers(start, high))
    answer = in_room(whole)[:cut]
    found = Batches.parse(answer, low, aborted)
    assert found.behind == max([low, *(b.last + 1 for b in _within(written, cut))])
    records = read([(found.data, found.rows_before(stop))], start, stop, more=True)
    there = [
        one
        for batch in _within(written, cut)
        for one in seen(written, batch.first, batch.last + 1, aborted)
    ]
    assert of(records) == [one for one in there if start <= one.offset < stop]
    rest = found.rest(stop)
    if rest is not None:
        later = read([(rest.data, rest.rows_before(high))], stop, high, more=True)
        assert of(later) == [one for one in there if stop <= one.offset]
    _judge_text(records)


def _within(written: list[Batch], size: int) -> list[Batch]:
    found, at = [], 0
    for batch in written:
        at += len(encoded(batch))
        if at <= size:
            found.append(batch)
    return found


def _judge_text(records: Records) -> None:
    text, messages = records.join(timed=True, lost=())
    values = [one for one in of(records) if one.value is not None]
    assert text.tobytes() == b"".join(one.value + b"\n" for one in values if one.value is not None)
    assert messages.offsets.tolist() == [one.offset for one in values]
    assert messages.times.tolist() == [one.time for one in values]
    assert messages.nulls == len(records.offset) - len(values)
    assert (
        messages.starts.tolist()
        == np.cumsum([0, *(len(one.value) + 1 for one in values if one.value is not None)]).tolist()
    )


ONE = Batch(7, 9, tuple(Record(k, 5, b"value %d" % k, b"k") for k in (7, 8, 9)))


@pytest.mark.parametrize("codec", CODECS)
def test_a_byte_that_is_another_is_damage(codec: str, random_seed: int) -> None:
    draw = random.Random(random_seed)
    good = encoded(Batch(7, 9, ONE.records, codec))
    for at in range(17, len(good)):
        bad = bytearray(good)
        bad[at] ^= 1 << draw.randrange(8)
        with pytest.raises(BrokerError, match=r"offset 7 is damaged: its checksum"):
            Batches.parse(in_room(bytes(bad)), 7, [])
    behind = Batches.parse(in_room(good + bytes(bad)), 7, [])
    assert (len(behind.table), behind.behind) == (1, 10)  # what is sound is read first


def test_records_that_are_none_are_damage(random_seed: int) -> None:
    draw = random.Random(random_seed)
    inside = encoded(ONE)[61:]
    for k in range(300):
        bad = bytearray(inside)
        for _ in range(1 + k % 3):
            bad[draw.randrange(len(bad))] = draw.randrange(256)
        codec = CODECS[k % 6]
        data = in_room(sealed(Batch(7, 9, (), codec), bytes(bad), 3))
        table = Batches.parse(data, 7, [])
        try:
            found = read([(data, table.rows_before(10))], 7, 10, more=True)
        except BrokerError as trouble:
            assert "the batch at the offset 7 is damaged: " in str(trouble)
            assert trouble.final
        else:
            assert codec == "none"
            assert len(found.offset) <= 3
            low, high = data.ctypes.data, data.ctypes.data + len(data)
            sizes = np.maximum(found.length, 0)
            assert ((found.place >= low) & (found.place + sizes <= high)).all()
    for count in (-1, 100, 1 << 30):
        data = in_room(sealed(ONE, inside, count))
        with pytest.raises(BrokerError, match="as many records as it says"):
            read([(data, Batches.parse(data, 7, []).rows_before(10))], 7, 10)


def test_old_formats_are_named() -> None:
    old = bytearray(encoded(ONE))
    old[16] = 1
    with pytest.raises(
        BrokerError, match=r"offset 7 is damaged: its format, of before Kafka 0\.11"
    ):
        Batches.parse(in_room(bytes(old)), 7, [])


@given(st.binary(max_size=100), st.integers(0, 20), st.integers(0, 20))
def test_the_checksum_equals_the_twin_s(data: bytes, start: int, less: int) -> None:
    start = min(start, len(data))
    stop = max(start, len(data) - less)
    found = crc32c(np.frombuffer(data, np.uint8), start, stop)
    assert found == bit_by_bit(data[start:stop])


def test_the_checksum_of_the_specification_s_examples() -> None:
    for data, wanted in (
        (bytes(32), 0x8A9136AA), (b"\xff" * 32, 0x62A8AB43), (bytes(range(32)), 0x46DD794E),
        (b"123456789", 0xE3069283),
    ):  # fmt: skip
        assert crc32c(np.frombuffer(data, np.uint8), 0, len(data)) == wanted
