"""Fetches a partition from its leader: batch by batch, without a consumer group.

The connection stays open. It goes to the leader in the metadata. After a failure it is closed and
the leader is looked up again, until nothing has been received for ``PATIENCE``. The part of an
answer after a range is kept for the next one. Transactions and compaction leave gaps, so a range
ends with an answer that goes beyond it, or that is empty though the partition does.

A damaged batch is fetched again. If it stays damaged, reading continues after it: at the next
offset, and then twice as far each time, if its header does not contain its end.

Source: KIP-74 (a batch that is bigger than what was asked for comes alone), KIP-98.
"""

from __future__ import annotations

import time
from dataclasses import replace
from itertools import starmap

from levada.connectors.config.kafka_config import KafkaConfig
from levada.connectors.sources.kafka.broker_connection import BrokerConnection, address_of
from levada.connectors.sources.kafka.fetched_batches import (
    CORRUPT,
    Batches,
    DamagedBatchError,
    Records,
    Table,
    read,
)
from levada.connectors.sources.kafka.librdkafka import library
from levada.connectors.sources.kafka.wire_protocol import (
    EARLIEST,
    FETCH,
    LATEST,
    LIST_OFFSETS,
    METADATA,
    Answer,
    BrokerError,
    fetch_body,
    leader_of,
    metadata_body,
    offsets_body,
)
from levada.connectors.sources.message_texts import Loss
from levada.core.array_types import Bytes
from levada.core.pending_requests import mark_pending
from levada.errors import AwayError, SourceError
from levada.kernels.kafka.record_batches import FIRST

PATIENCE = 10.0  # s without a message
BROKER_WAIT_MS = 200  # ms that a broker waits for new messages
ANSWER_BYTES = 4 << 20  # the most bytes of an answer, unless a batch is larger
RETRY_PAUSE = 0.05  # s before a retry
_GONE = 1  # error code: the offset is out of range
TRIES = 3  # to read a damaged batch
_FINAL = {17, 29, 35, 76}
"""Codes of permanent errors: an invalid topic, no permission, an unknown request or codec."""
Damaged = tuple[int, int, DamagedBatchError]
"""The range of damaged offsets (end exclusive), and the error."""


class GoneError(Exception):
    """A missing offset; ``first`` is the first present one, and ``behind`` the one after the
    last.
    """

    def __init__(self, said: str, first: int, behind: int) -> None:
        super().__init__(said)
        self.first, self.behind = first, behind


class Partition:
    """The fetcher of one partition."""

    def __init__(self, kafka: KafkaConfig, number: int) -> None:
        self._kafka, self._number = kafka, number
        self._where = f"{kafka.servers}, {kafka.topic}/{number}"
        self._committed = kafka.isolation == "read_committed"
        self._link: BrokerConnection | None = None
        self._rest: Batches | None = None
        self._rest_at = -1
        self._heard = 0.0

    def records(self, start: int, stop: int, *, more: bool = False) -> Records:
        """Returns the records of [start, stop), in order. Raises ``GoneError``, ``AwayError``,
        ``SourceError``.
        """
        answers, damaged = self._fetch(start, stop)
        while True:
            try:
                records = read(answers, start, stop, more=more)
            except DamagedBatchError as damage:
                answers = [(data, rows[rows[:, FIRST] != damage.first]) for data, rows in answers]
                damaged.append((max(damage.first, start), min(damage.behind, stop), damage))
            else:
                return replace(records, damaged=tuple(starmap(_loss, damaged)))

    def _fetch(self, start: int, stop: int) -> tuple[list[tuple[Bytes, Table]], list[Damaged]]:
        """Returns the batches with these records, by answers, and the unreadable ones."""
        rest, self._rest = self._rest, None
        if self._rest_at != start:
            rest = None
        answers: list[tuple[Bytes, Table]] = []
        damaged: list[Damaged] = []
        at, step, self._heard = start, 1, time.monotonic()
        while at < stop:
            try:
                answer, rest = rest or self._answer(at, stop), None
            except DamagedBatchError as damage:
                behind = min(max(damage.behind, at + step), stop)
                first, _, why = damaged.pop() if step > 1 else (at, at, damage)  # damage continues
                damaged.append((first, behind, why))
                at, step = behind, 1 if damage.behind else 2 * step
                continue
            if answer is None:
                break
            if step > 1 and len(answer.table):
                first, _, why = damaged.pop()
                damaged.append((first, min(at, int(answer.table[0, FIRST])), why))
            step = 1
            answers.append((answer.data, answer.rows_before(stop)))
            at = answer.behind
            self._rest, self._rest_at = answer.rest(stop), stop
        return answers, damaged

    def _answer(self, at: int, stop: int) -> Batches | None:
        """Returns the next batches, from ``at`` on; None if the partition has none before ``stop``.
        Raises ``DamagedBatchError``.
        """
        size, tries = ANSWER_BYTES, 1
        while True:
            try:
                with mark_pending(f"Kafka at {self._kafka.servers}"):
                    data, end, aborted = self._ask(at, size)
                batches = Batches.parse(data, at, aborted)
            except BrokerError as trouble:
                if trouble.code == CORRUPT:
                    tries += 1
                    if tries > TRIES:
                        raise _damage(trouble, at) from None
                self._handle_error(trouble, at)
                continue
            if batches.behind > at:
                self._heard = time.monotonic()
                return batches
            if len(data):  # an incomplete batch, or batches before ``at``
                size = min(2 * size, 1 << 30)
            elif end >= stop:
                return None
            self._handle_error(None, at)

    def _ask(self, at: int, size: int) -> tuple[Bytes, int, list[tuple[int, int]]]:
        """Returns an answer's data, the visible end of the partition, and the aborted
        transactions.
        """
        body = fetch_body(
            self._kafka.topic,
            self._number,
            at,
            committed=self._committed,
            wait=BROKER_WAIT_MS,
            size=size,
        )
        answer = self._open().ask(FETCH, body)
        answer.i32()  # throttle time
        _check(answer.i16())
        answer.i32()  # session
        for _ in range(answer.i32()):
            answer.text()
            for _ in range(answer.i32()):
                return self._of_partition(answer)
        return answer.data[:0], -1, []  # throttled

    def _of_partition(self, answer: Answer) -> tuple[Bytes, int, list[tuple[int, int]]]:
        answer.i32()
        _check(answer.i16())
        high, stable, _ = answer.i64(), answer.i64(), answer.i64()
        aborted = [(answer.i64(), answer.i64()) for _ in range(answer.i32())]
        answer.i32()  # preferred replica
        return answer.blob(), stable if self._committed else high, aborted

    def _handle_error(self, trouble: BrokerError | None, at: int) -> None:
        """Waits before the next attempt, unless a person must act; then raises."""
        if trouble is not None:
            if trouble.code == _GONE:
                raise GoneError(str(trouble), *self._ends())
            if trouble.code != CORRUPT and (trouble.final or trouble.code in _FINAL):
                raise self._refusal(trouble) from trouble
            self.close()
        if time.monotonic() - self._heard > PATIENCE:
            why = f": {self._error_text(trouble)}" if trouble is not None else ""
            raise AwayError(f"The broker does not answer ({self._where}){why}.")
        time.sleep(RETRY_PAUSE)

    def _refusal(self, trouble: BrokerError) -> SourceError:
        return SourceError(f"Kafka cannot be read ({self._where}): {self._error_text(trouble)}.")

    def _error_text(self, trouble: BrokerError) -> str:
        """Returns our own message for an error, or the library's for its code."""
        return str(trouble) or str(library().KafkaError(trouble.code).str())

    def _ends(self) -> tuple[int, int]:
        """Returns the first offset, and the one after the last. Raises ``AwayError``."""
        try:
            return self._offset(EARLIEST), self._offset(LATEST)
        except BrokerError as trouble:
            self.close()
            why = self._error_text(trouble)
            raise AwayError(f"The broker does not answer ({self._where}): {why}.") from trouble

    def _offset(self, of_time: int) -> int:
        body = offsets_body(self._kafka.topic, self._number, of_time, committed=self._committed)
        answer = self._open().ask(LIST_OFFSETS, body)
        answer.i32()  # throttle time
        for _ in range(answer.i32()):
            answer.text()
            for _ in range(answer.i32()):
                answer.i32()
                _check(answer.i16())
                answer.i64()
                return answer.i64()
        raise BrokerError("it says nothing of the partition")

    def _open(self) -> BrokerConnection:
        """Returns the connection to the leader."""
        if self._link is None:
            self._link = self._find_leader()
        return self._link

    def _find_leader(self) -> BrokerConnection:
        """Connects to the leader, which one of the servers names."""
        trouble = BrokerError("there is no server")
        for server in self._kafka.servers.split(","):
            link = None
            try:
                link = BrokerConnection(self._kafka, address_of(server))
                leader = leader_of(
                    link.ask(METADATA, metadata_body(self._kafka.topic)), self._number
                )
                if leader == link.where:
                    return link
                link.close()
                return BrokerConnection(self._kafka, leader)
            except BrokerError as failed:
                if link is not None:
                    link.close()
                trouble = failed
        raise trouble

    def close(self) -> None:
        """Closes the connection; the next request opens another one."""
        if self._link is not None:
            self._link.close()
        self._link = None


def _damage(trouble: BrokerError, at: int) -> DamagedBatchError:
    """Returns the damage at an offset, found here or on the broker."""
    return (
        trouble
        if isinstance(trouble, DamagedBatchError)
        else DamagedBatchError(at, 0, "the broker cannot read it")
    )


def _loss(first: int, behind: int, damage: DamagedBatchError) -> Loss:
    return first, f"the offsets {first} to {behind - 1} cannot be read: {damage}"


def _check(code: int) -> None:
    """Raises ``BrokerError`` for an error's code."""
    if code:
        raise BrokerError("", code)
