"""A partition, read from its leader: batch by batch, without a consumer group.

The connection stays open; it goes where metadata say that the leader is, and when something fails
it is given up and looked for anew, for as long as nothing has been heard for ``PATIENCE``. What an
answer holds beyond a range is kept for the next one. Transactions and compaction leave gaps, so a
range ends with an answer that goes beyond it, or that is empty though the partition does.

Source: KIP-74 (a batch that is bigger than what was asked for comes alone), KIP-98.
"""

from __future__ import annotations

import time

from levada.errors import AwayError, SourceError
from levada.model.arrays import Bytes
from levada.model.pending import pending
from levada.sources.kafka.batches import Batches, Records, Table, read
from levada.sources.kafka.client import library
from levada.sources.kafka.link import Link, address_of
from levada.sources.kafka.wire import (
    EARLIEST,
    FETCH,
    LATEST,
    LIST_OFFSETS,
    METADATA,
    Answer,
    Trouble,
    fetch_body,
    leader_of,
    metadata_body,
    offsets_body,
)
from levada.streams.kafka import KafkaConfig

PATIENCE = 10.0  # s without a message
WAIT = 200  # ms that a broker waits for something to come
SIZE = 4 << 20  # bytes of an answer, or one batch
PAUSE = 0.05  # s before it is tried again
_GONE = 1  # an error's code: the offset is out of range
_FINAL = {2, 17, 29, 35, 76}
"""Codes of what stays as it is: a corrupt message, a topic that cannot be, one that is not for us,
a request or a codec that is not known.
"""


class GoneError(Exception):
    """An offset is not there; ``first`` is the first one that is, and ``behind`` the one after the
    last.
    """

    def __init__(self, said: str, first: int, behind: int) -> None:
        super().__init__(said)
        self.first, self.behind = first, behind


class Partition:
    """What reads one partition."""

    def __init__(self, kafka: KafkaConfig, number: int) -> None:
        self._kafka, self._number = kafka, number
        self._where = f"{kafka.servers}, {kafka.topic}/{number}"
        self._committed = kafka.isolation == "read_committed"
        self._link: Link | None = None
        self._rest: Batches | None = None
        self._rest_at = -1
        self._heard = 0.0

    def records(self, start: int, stop: int, *, more: bool = False) -> Records:
        """The records of [start, stop), in order. Raises ``GoneError``, ``AwayError``,
        ``SourceError``.
        """
        found = self._fetched(start, stop)
        try:
            return read(found, start, stop, more=more)
        except Trouble as trouble:
            raise self._refused(trouble) from trouble

    def _fetched(self, start: int, stop: int) -> list[tuple[Bytes, Table]]:
        """The batches that hold them, by answers."""
        rest, self._rest = self._rest, None
        if self._rest_at != start:
            rest = None
        found: list[tuple[Bytes, Table]] = []
        at, self._heard = start, time.monotonic()
        while at < stop:
            answer, rest = rest or self._answer(at, stop), None
            if answer is None:
                break
            found.append((answer.data, answer.before(stop)))
            at = answer.behind
            self._rest, self._rest_at = answer.rest(stop), stop
        return found

    def _answer(self, at: int, stop: int) -> Batches | None:
        """The next batches, from ``at`` on; None if the partition has none before ``stop``."""
        size = SIZE
        while True:
            try:
                with pending(f"Kafka at {self._kafka.servers}"):
                    data, end, aborted = self._ask(at, size)
                batches = Batches.of(data, at, aborted)
            except Trouble as trouble:
                self._troubled(trouble, at)
                continue
            if batches.behind > at:
                self._heard = time.monotonic()
                return batches
            if len(data):  # the beginning of one only, or of what was read before
                size = min(2 * size, 1 << 30)
            elif end >= stop:
                return None
            self._troubled(None, at)

    def _ask(self, at: int, size: int) -> tuple[Bytes, int, list[tuple[int, int]]]:
        """An answer's data, how far the partition goes for us, and the aborted transactions."""
        body = fetch_body(
            self._kafka.topic, self._number, at, committed=self._committed, wait=WAIT, size=size
        )
        answer = self._opened().ask(FETCH, body)
        answer.i32()  # throttled so long
        _check(answer.i16())
        answer.i32()  # the session
        for _ in range(answer.i32()):
            answer.text()
            for _ in range(answer.i32()):
                return self._of_partition(answer)
        return answer.data[:0], -1, []  # it is throttled

    def _of_partition(self, answer: Answer) -> tuple[Bytes, int, list[tuple[int, int]]]:
        answer.i32()
        _check(answer.i16())
        high, stable, _ = answer.i64(), answer.i64(), answer.i64()
        aborted = [(answer.i64(), answer.i64()) for _ in range(answer.i32())]
        answer.i32()  # a replica that is nearer
        return answer.blob(), stable if self._committed else high, aborted

    def _troubled(self, trouble: Trouble | None, at: int) -> None:
        """What went wrong is tried again a little later, unless it is for people."""
        if trouble is not None:
            if trouble.code == _GONE:
                raise GoneError(str(trouble), *self._ends())
            if trouble.final or trouble.code in _FINAL:
                raise self._refused(trouble) from trouble
            self.close()
        if time.monotonic() - self._heard > PATIENCE:
            why = f": {self._said(trouble)}" if trouble is not None else ""
            raise AwayError(f"The broker does not answer ({self._where}){why}.")
        time.sleep(PAUSE)

    def _refused(self, trouble: Trouble) -> SourceError:
        return SourceError(f"Kafka cannot be read ({self._where}): {self._said(trouble)}.")

    def _said(self, trouble: Trouble) -> str:
        """Our own words, or the library's for an error's code."""
        return str(trouble) or str(library().KafkaError(trouble.code).str())

    def _ends(self) -> tuple[int, int]:
        """The first offset, and the one behind the last. Raises ``AwayError``."""
        try:
            return self._offset(EARLIEST), self._offset(LATEST)
        except Trouble as trouble:
            self.close()
            why = self._said(trouble)
            raise AwayError(f"The broker does not answer ({self._where}): {why}.") from trouble

    def _offset(self, of_time: int) -> int:
        body = offsets_body(self._kafka.topic, self._number, of_time, committed=self._committed)
        answer = self._opened().ask(LIST_OFFSETS, body)
        answer.i32()  # throttled so long
        for _ in range(answer.i32()):
            answer.text()
            for _ in range(answer.i32()):
                answer.i32()
                _check(answer.i16())
                answer.i64()
                return answer.i64()
        raise Trouble("it says nothing of the partition")

    def _opened(self) -> Link:
        """The connection to the leader."""
        if self._link is None:
            self._link = self._found()
        return self._link

    def _found(self) -> Link:
        """A connection to the leader, whom one of the servers names."""
        trouble = Trouble("there is no server")
        for server in self._kafka.servers.split(","):
            link = None
            try:
                link = Link(self._kafka, address_of(server))
                leader = leader_of(
                    link.ask(METADATA, metadata_body(self._kafka.topic)), self._number
                )
                if leader == link.where:
                    return link
                link.close()
                return Link(self._kafka, leader)
            except Trouble as failed:
                if link is not None:
                    link.close()
                trouble = failed
        raise trouble

    def close(self) -> None:
        """Ends the connection; the next question opens another one."""
        if self._link is not None:
            self._link.close()
        self._link = None


def _check(code: int) -> None:
    """Raises ``Trouble`` for an error's code."""
    if code:
        raise Trouble("", code)
