"""Enumerates the splits of a topic, for the driver: the partitions, their ends, the next offsets
(``connectors.sources.split_enumerator``).

A position contains for each partition the offset up to which it is read (``offsets``) and its start
(``begin``), the id of the topic (``topic``), and ``taken``. Under read_committed an end is the last
stable offset: records of an open transaction are invisible. A partition that is found later begins
at its first offset, whatever ``start`` is.

Missing offsets (retention, a truncated log, another topic of the name) are a ``LostError``. With
``lost=skip`` they are in ``broken`` until they are reported, and reading continues after them.

If a broker does not respond, the source waits: ``away`` contains the reason, and there is no input
meanwhile. At the first look it retries for ``PATIENCE``, and then raises a ``SourceError``. Cost: a
request for all ends at most every ``BUSY_INTERVAL`` while messages arrive, every ``IDLE_EVERY``
otherwise, and two more every ``REFRESH``.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from concurrent.futures import Future, wait
from functools import partial
from typing import Any

from levada.connectors.config.kafka_config import KafkaConfig
from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.sources.file_splitter import Position
from levada.connectors.sources.kafka.consumer_group import ConsumerGroup
from levada.connectors.sources.kafka.librdkafka import error_text, library, settings
from levada.connectors.sources.splits import OffsetSplit, document_id
from levada.connectors.sources.unread_input import ArrivalTimes, Unread
from levada.core.pending_requests import mark_pending
from levada.errors import LostError, SourceError, near

PATIENCE = 30.0  # s, for the first look
BUSY_INTERVAL = 0.01  # s between looks, until ``BUSY`` s after the last message
IDLE_EVERY = 0.05  # s
BUSY = 1.0
REFRESH = 5.0  # s
SHORT = 0.3  # s that a look waits for an answer while the engine runs
ANEW = 2.0  # s between new clients while a broker is away
TIMEOUT = 10.0  # s after which a request is repeated
RETRY_PAUSE = 0.2  # s until a broker that is not ready gets another request
NOT_READY = (5, 6, 9, 56, 74, 75, 78)
"""Error codes of a broker that leads a partition soon or no longer: it has just started, or lags
behind its state before a crash.
"""
PIECE = 200_000
"""The most offsets of a reference: tasks read pieces of a large partition in parallel."""
NONE = -1  # the offset for a time after all messages
BYTES = 256  # the assumed size of a message

Asked = Mapping[Any, "Future[Any]"]


class KafkaSource:
    """The topic of one stream. Raises ``SourceError`` if it does not exist."""

    def __init__(self, config: StreamConfig) -> None:
        assert config.kafka is not None, "the stream is a topic"
        self.config = config
        self.overtaken: list[str] = []
        self.gone: list[str] = []
        self.broken: dict[str, str] = {}
        self.away = ""
        self.frozen = False
        self._kafka: KafkaConfig = config.kafka
        self._library = library()
        self._connect()
        self._topic = ""  # its id
        self._lows: dict[int, int] = {}
        self._ends: dict[int, int] = {}
        self._starts: dict[int, int] = {}
        self._position: Position = {}  # after the last commit
        self._arrivals: dict[int, ArrivalTimes] = {}
        self._group = ConsumerGroup(self._kafka)
        self._asked: Asked = {}
        self._since = self._looked = self._refreshed = self._changed = float("-inf")

    def discover(self, final: bool = False, position: Position | None = None) -> None:
        """Fetches the ends of the partitions; at times also the partitions and their beginnings."""
        self._position = self._position if position is None else position
        if self.frozen:
            return
        now = time.monotonic()
        if not self._topic:
            with mark_pending(f"Kafka at {self._kafka.servers}"):
                self._look_first()
        elif final:
            self._refresh(PATIENCE)
            self._take_ends(PATIENCE)
        elif now - self._looked >= (BUSY_INTERVAL if now - self._changed < BUSY else IDLE_EVERY):
            if now - self._refreshed >= REFRESH and not self.away:
                self._refresh(SHORT)
            self._take_ends(SHORT / 10 if self.away else SHORT)
            self._looked = time.monotonic()
        self.frozen = final

    def start_position(self, position: Position) -> Position:
        """Returns the position with all known partitions; with ``lost=skip`` after missing offsets.
        Raises ``LostError``.
        """
        if not self._topic:
            return position
        offsets = {int(p): at for p, at in position.get("offsets", {}).items()}
        anew = position.get("topic", self._topic) != self._topic
        if anew:
            read = ", ".join(f"of {p} up to {at}" for p, at in sorted(offsets.items()))
            message = f"The topic is another one of its name; of partitions was read {read}"
            self._lose(f"{self._kafka.topic}, made anew", message)
        begun_offsets = {} if anew else dict(offsets)
        for number, end in self._ends.items():
            first = self._lows[number]
            if number not in begun_offsets:
                begun_offsets[number] = first if offsets else self._starts[number]
            elif begun_offsets[number] < first:
                self._lose_offsets(number, begun_offsets[number], first)
                begun_offsets[number] = first
            elif begun_offsets[number] > end:
                self._cut(number, begun_offsets[number], end)
                begun_offsets[number] = end
        if begun_offsets == offsets and not anew:
            return position
        begin = {} if anew else position.get("begin", {})
        return {
            **position,
            "topic": self._topic,
            "offsets": {str(p): at for p, at in sorted(begun_offsets.items())},
            "begin": {str(p): begin.get(str(p), at) for p, at in sorted(begun_offsets.items())},
        }

    def take(self, position: Position, rows: int) -> tuple[list[OffsetSplit], Position]:
        """Returns the next offsets of all partitions, at most ``rows`` in all, evenly shared."""
        assert rows > 0, "an epoch takes at least one element"
        after = self.start_position(position)
        offsets: dict[str, int] = dict(after.get("offsets", {}))
        left = {p: n for p, at in offsets.items() if (n := self._end(p) - at) > 0}
        shares = _shares(left, rows)
        if not shares:
            return [], after
        splits = []
        for partition, share in shares.items():
            start = offsets[partition]
            offsets[partition] = start + share
            splits += self._pieces(int(partition), start, start + share)
        taken = after.get("taken", 0) + sum(shares.values())
        return splits, {**after, "offsets": offsets, "taken": taken}

    def backlog(self, position: Position) -> bool:
        """Whether a take would return anything."""
        return any(self._unread(self.start_position(position)).values())

    def is_ended(self, position: Position) -> bool:
        """Whether everything is read and nothing follows."""
        return self.frozen and not self.backlog(position)

    def partition_states(self, position: Position) -> dict[str, bool]:
        """Returns the partitions that have contained a message since the stream began, and whether
        each has unread ones.
        """
        position = self.start_position(position)
        begin = position.get("begin", {})
        unread = self._unread(position)
        return {
            p: unread[p]
            for p, at in position.get("offsets", {}).items()
            if unread[p] or at > begin.get(p, at)
        }

    def read(self, position: Position) -> Collection[str]:
        """Returns the partitions that have been read from."""
        begin = position.get("begin", {})
        return [p for p, at in position.get("offsets", {}).items() if at > begin.get(p, at)]

    def is_finished(self, partition: str) -> bool:
        """Whether a partition receives no more data."""
        return self.frozen

    def forget(self, position: Position) -> None:
        """Notes the position for ``unread``: read messages stay in the topic."""
        self._position = position

    def copies(self) -> set[str]:
        """Returns nothing: messages are read in place."""
        return set()

    def unread(self, now: int) -> Unread:
        """Returns the messages between the position and the ends of the partitions as last
        fetched. Commits the position to the group of ``commit_group``. Asks the broker for a
        message if the oldest one was there at the start.
        """
        position, ends = self._position, dict(self._ends)
        offsets = {int(p): at for p, at in position.get("offsets", {}).items()}
        left = {
            p: max(end - offsets.get(p, self._starts.get(p, end)), 0) for p, end in ends.items()
        }
        oldest = []
        for number, end in ends.items():
            times = self._arrivals.setdefault(number, ArrivalTimes())
            times.note(now, end)
            at = end - left[number]
            arrived = times.arrival(at, partial(self._group.time_of, number, at))
            oldest += [] if arrived is None else [arrived]
        group, is_committed = self._kafka.commit_group, True
        if group:
            is_committed = not self.away and self._group.commit(group, offsets)
        taken = position.get("taken", 0)
        return Unread(sum(left.values()), None, min(oldest, default=None), taken, is_committed)

    # -- positions --

    def _end(self, partition: str) -> int:
        return self._ends.get(int(partition), 0)

    def _unread(self, position: Position) -> dict[str, bool]:
        return {p: self._end(p) > at for p, at in position.get("offsets", {}).items()}

    def _pieces(self, number: int, start: int, stop: int) -> list[OffsetSplit]:
        kafka = self._kafka
        document = document_id(self.config.name, f"{kafka.topic}/{number}/{self._topic}")
        return [
            OffsetSplit(
                self.config.name, kafka.topic, number, at, min(at + PIECE, stop), BYTES, document
            )
            for at in range(start, stop, PIECE)
        ]

    def _cut(self, number: int, at: int, end: int) -> None:
        self._lose(
            f"{self._kafka.topic}/{number}, cut at {end}",
            f"The log of the partition {number} was cut: it ends at the offset {end}, "
            f"and was read up to {at}",
        )

    def _lose_offsets(self, number: int, start: int, stop: int) -> None:
        self._lose(
            f"{self._kafka.topic}/{number}, offsets {start} to {stop - 1}",
            f"The offsets {start} to {stop - 1} of the partition {number} are gone before they "
            f"were read: {stop - start} in all",
        )

    def _lose(self, what: str, reason: str) -> None:
        """Records lost input, or raises ``LostError``."""
        if self._kafka.lost == "stop":
            raise LostError(
                f"The stream {self.config.name} of the topic {self._kafka.topic}: {reason}.",
                hint="Say lost=skip to go on without them, or start on a new checkpoint.",
            )
        self.broken.setdefault(what, f"{reason}.")

    # -- the broker --

    def _connect(self) -> None:
        """Connects a new client, without cached leaders of an unavailable broker."""
        self._admin = self._library.admin.AdminClient(settings(self._kafka))
        self._connected = time.monotonic()

    def _look_first(self) -> None:
        """Finds the topic, its partitions, and the beginning of the stream."""
        until = time.monotonic() + PATIENCE
        while True:
            try:
                self._find()
                return
            except SourceError as error:
                if not self._passes(error.__cause__) or time.monotonic() >= until:
                    raise
            time.sleep(RETRY_PAUSE)
            self._asked = {}
            self._connect()

    def _passes(self, error: BaseException | None) -> bool:
        """Whether a broker did not respond, or reports that it is not ready."""
        if isinstance(error, self._library.KafkaException):
            kafka = self._library.KafkaError
            lost = (kafka._TIMED_OUT, kafka._TRANSPORT, kafka._ALL_BROKERS_DOWN)
            return error.args[0].code() in (*NOT_READY, *lost)
        return isinstance(error, TimeoutError)

    def _find(self) -> None:
        self._refresh(TIMEOUT, first=True)
        self._take_ends(TIMEOUT, first=True)
        match self._kafka.start:
            case "earliest":
                self._starts = dict(self._lows)
            case "latest":
                self._starts = dict(self._ends)
            case _:
                of_time = self._library.admin.OffsetSpec.for_timestamp(self._kafka.start_time)
                try:
                    offsets = self._offsets(of_time, TIMEOUT, list(self._ends))
                except (self._library.KafkaException, TimeoutError) as error:
                    self._is_away(error, first=True)
                    raise
                # -1: the time is after all messages
                self._starts = {p: at if at >= 0 else self._ends[p] for p, at in offsets.items()}

    def _refresh(self, patience: float, *, first: bool = False) -> None:
        """Fetches the partitions and their beginnings."""
        described = self._describe(patience, first=first)
        if described is None:
            return
        numbers = [p.id for p in described.partitions]
        earliest = self._library.admin.OffsetSpec.earliest()
        try:
            lows = self._offsets(earliest, patience, numbers)
        except (self._library.KafkaException, TimeoutError) as error:
            self._is_away(error, first=first)
            return
        self._topic, self._lows = str(described.topic_id), lows
        self._refreshed = time.monotonic()

    def _describe(self, patience: float, *, first: bool) -> Any:
        """Returns the topic; None if the broker does not respond."""
        topics = self._library.TopicCollection([self._kafka.topic])
        asked = self._admin.describe_topics(topics, request_timeout=max(patience, 1.0))
        try:
            return asked[self._kafka.topic].result(patience)
        except self._library.KafkaException as error:
            code = error.args[0].code()
            if code != self._library.KafkaError.UNKNOWN_TOPIC_OR_PART:
                self._is_away(error, first=first)
                return None
        except TimeoutError as error:
            self._is_away(error, first=first)
            return None
        if not first:
            self._lose(f"{self._kafka.topic}, deleted", "The topic was deleted")
            return None
        known = self._admin.list_topics(timeout=patience).topics
        raise SourceError(
            f"The stream {self.config.name}: {self._kafka.servers} has no topic "
            f"{self._kafka.topic}.",
            hint=near(self._kafka.topic, [t for t in known if not t.startswith("__")]),
        )

    def _ask(self, spec: Any, numbers: Collection[int]) -> Asked:
        committed = self._kafka.isolation == "read_committed"
        level = self._library.IsolationLevel
        asked: Asked = self._admin.list_offsets(
            {self._library.TopicPartition(self._kafka.topic, p): spec for p in numbers},
            isolation_level=level.READ_COMMITTED if committed else level.READ_UNCOMMITTED,
            request_timeout=TIMEOUT,
        )
        return asked

    def _offsets(self, spec: Any, patience: float, numbers: Collection[int]) -> dict[int, int]:
        return _answers(self._ask(spec, numbers), patience)

    def _take_ends(self, patience: float, *, first: bool = False) -> None:
        """Fetches the ends of the partitions, if the broker responds in time. Pending requests are
        kept.
        """
        if not self._asked:
            self._asked = self._ask(self._library.admin.OffsetSpec.latest(), list(self._lows))
        if wait(self._asked.values(), patience).not_done:
            self._is_away(TimeoutError(), first=first)
            return
        asked, self._asked = self._asked, {}
        try:
            ends = _answers(asked, 0)
            if ends.items() - self._ends.items():
                self._ends |= ends
                self._changed = time.monotonic()
        except (self._library.KafkaException, TimeoutError) as error:
            self._is_away(error, first=first)
            return
        self.away = ""

    def _is_away(self, error: Exception, *, first: bool) -> None:
        """Notes that the broker did not respond."""
        reason = "it does not answer"
        if isinstance(error, self._library.KafkaException):
            reason = error_text(error.args[0])
        message = f"The stream {self.config.name} waits for {self._kafka.servers}: {reason}."
        if first:
            raise SourceError(
                f"The stream {self.config.name}: {self._kafka.servers} cannot be reached: "
                f"{reason}.",
                hint="Is the broker there, and are tls, sasl, user and password what it wants?",
            ) from error
        self.away = message
        if time.monotonic() - self._connected >= ANEW:
            self._asked = {}
            self._connect()


def _answers(asked: Asked, patience: float) -> dict[int, int]:
    """Returns the answers; raises ``TimeoutError`` if one is missing. An answer below -1 does not
    count: librdkafka reports the loss of the broker so.
    """
    wait(asked.values(), patience)
    offsets = {tp.partition: int(future.result(0).offset) for tp, future in asked.items()}
    if min(offsets.values(), default=0) < NONE:
        raise TimeoutError
    return offsets


def _shares(left: Mapping[str, int], rows: int) -> dict[str, int]:
    """Returns equal shares of each partition, until ``rows`` are assigned.

    >>> _shares({"0": 10, "1": 2}, 8)
    {'0': 6, '1': 2}
    """
    shares: dict[str, int] = {}
    open_ = sorted(left.items(), key=lambda pair: pair[1])  # the others get the rest of small ones
    for k, (partition, n) in enumerate(open_):
        share = min(n, -(-rows // (len(open_) - k)))
        if share > 0:
            shares[partition] = share
            rows -= share
    return {p: shares[p] for p in left if p in shares}
