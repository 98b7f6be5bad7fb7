"""Logs the messages of a feed, which its sender does not repeat: they are durable before they are
acknowledged.

    spool/HASH/data/000000000000012-0000003.x78af5f94892f3950.parquet
            three messages, from the stream's number 12 on

A file is written completely or not at all, by one writer. Its name contains the number of messages
so far. The last file is never deleted, so that this number and the note of the sender (the id after
which it continues) survive. Cost: two fsyncs a file, for all messages since the previous one.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from levada.connectors.sources.feed_log import log_file, note_of, numbers_of, stem_of
from levada.connectors.sources.spooled_files import GIVEN_UP
from levada.connectors.spool.spool_folder import Batches
from levada.core.frozen import frozen

LARGEST = 8 << 20  # bytes of a file, unless one message is larger
MAX_WAITING_BYTES = 1 << 30  # the most unread bytes
LOOK = 0.5  # s between two counts of these


@frozen
class Message:
    """A received message. ``time``: its arrival, ms. ``note``: the id after which the sender
    continues once it is durable ("": none). ``receipt``: for its acknowledgement. ``headers``:
    names and values. ``fault``: why it cannot be read, if so: it is a dead letter.
    """

    payload: bytes
    topic: str
    time: int
    note: str = ""
    receipt: Any = None
    headers: Sequence[tuple[str, str]] = ()
    fault: str = ""

    @property
    def size(self) -> int:
        """The bytes of the payload and about those of the headers."""
        return len(self.payload) + sum(len(name) + len(value) for name, value in self.headers)


class Log:
    """The files of one stream, for their writer."""

    def __init__(self, data: Path) -> None:
        self._batches = Batches(data)
        self._batches.make()
        last = self._batches.last
        self.received = sum(numbers_of(last)) if last else 0
        self.note = note_of(data / last) if last and not last.endswith(GIVEN_UP) else ""
        self._size, self._looked = 0, float("-inf")

    def append(self, messages: Sequence[Message]) -> None:
        """Writes messages durably. Raises ``SinkError``."""
        for part in _parts(messages):
            note = next((m.note for m in reversed(part) if m.note), self.note)
            data = log_file(
                [m.payload for m in part],
                [m.time for m in part],
                [m.topic for m in part],
                [m.headers for m in part],
                [m.fault for m in part],
                note=note,
            )
            self._batches.write(stem_of(self.received, len(part)), ".parquet", data)
            self.received += len(part)
            self.note = note
            self._size += len(data)

    def full(self) -> bool:
        """Whether so much is unread that no more messages are accepted."""
        if self._size >= MAX_WAITING_BYTES and time.monotonic() - self._looked >= LOOK:
            self._looked = time.monotonic()
            self._size = sum(map(_size, self._batches.data.iterdir()))
        return self._size >= MAX_WAITING_BYTES

    def forget(self, position: Mapping[str, Any]) -> None:
        """Deletes the files before a committed position."""
        self._batches.forget(position)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except FileNotFoundError:  # read and deleted meanwhile
        return 0


def _parts(messages: Sequence[Message]) -> list[Sequence[Message]]:
    """Divides messages into files."""
    parts, start, size = [], 0, 0
    for at, message in enumerate(messages):
        if at > start and size + len(message.payload) > LARGEST:
            parts.append(messages[start:at])
            start, size = at, 0
        size += len(message.payload)
    return [*parts, messages[start:]]
