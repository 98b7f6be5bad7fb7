"""Implements Kafka's protocol for a reader of topics: requests as bytes, and answers that are
parsed from left to right.

Each request has one version, the newest before fields became optional (KIP-482). Brokers from 2.3
on support it, including those of Kafka 4.

Source: https://kafka.apache.org/protocol.html.
"""

from __future__ import annotations

import struct
from typing import Any

import numpy as np

from levada.core.array_types import Bytes
from levada.core.frozen import frozen

CLIENT = "levada"


@frozen
class Kind:
    """A kind of request: its key and version."""

    key: int
    version: int


FETCH = Kind(1, 11)
LIST_OFFSETS = Kind(2, 2)
METADATA = Kind(3, 7)
SASL_HANDSHAKE = Kind(17, 1)
API_VERSIONS = Kind(18, 0)
SASL_AUTHENTICATE = Kind(36, 0)

EARLIEST, LATEST = -2, -1  # as times of LIST_OFFSETS
NONE = -1  # no broker
UNKNOWN = 3  # error code: no such topic or partition


class BrokerError(Exception):  # it never leaves this folder
    """The refusal or failure of a broker; ``code``: its error's, 0 for none. The request is
    repeated unless the error is ``final``.
    """

    def __init__(self, said: str, code: int = 0, *, final: bool = False) -> None:
        super().__init__(said)
        self.code, self.final = code, final


class Answer:
    """The answer of a broker, parsed from left to right. Raises ``BrokerError`` if it is too
    short.
    """

    def __init__(self, data: Bytes) -> None:
        self.data = data
        self._view = data.data
        self._at = 0

    def _next(self, form: struct.Struct) -> Any:
        at = self._at
        self._at += form.size
        if self._at > len(self._view):
            raise BrokerError("its answer is cut off")
        return form.unpack_from(self._view, at)[0]

    def i8(self) -> int:
        """Parses a number of eight bits."""
        return int(self._next(_I8))

    def i16(self) -> int:
        """Parses a number of 16 bits."""
        return int(self._next(_I16))

    def i32(self) -> int:
        """Parses a number of 32 bits."""
        return int(self._next(_I32))

    def i64(self) -> int:
        """Parses a number of 64 bits."""
        return int(self._next(_I64))

    def text(self) -> str:
        """Parses a text; "" for null."""
        return self._piece(self.i16()).tobytes().decode("utf-8", "replace")

    def blob(self) -> Bytes:
        """Parses bytes, without a copy; empty for null."""
        return np.frombuffer(self._piece(self.i32()), np.uint8)

    def _piece(self, size: int) -> memoryview:
        start = self._at
        self._at += max(size, 0)
        if self._at > len(self._view):
            raise BrokerError("its answer is cut off")
        return self._view[start : self._at]


_I8, _I16, _I32, _I64 = (struct.Struct(form) for form in (">b", ">h", ">i", ">q"))


def text(value: str) -> bytes:
    """Encodes a text in a request."""
    data = value.encode()
    return struct.pack(">h", len(data)) + data


def blob(value: bytes) -> bytes:
    """Encodes bytes in a request."""
    return struct.pack(">i", len(value)) + value


def request(kind: Kind, number: int, body: bytes) -> bytes:
    """Encodes a request with its size and its header."""
    head = struct.pack(">hhi", kind.key, kind.version, number) + text(CLIENT)
    return struct.pack(">i", len(head) + len(body)) + head + body


def fetch_body(
    topic: str, partition: int, at: int, *, committed: bool, wait: int, size: int
) -> bytes:
    """Encodes a request for batches from an offset on: ``size`` bytes, or one batch if that is
    larger.
    """
    head = struct.pack(">iiiibii", -1, wait, 1, 0x7FFFFFFF, committed, 0, -1)
    one = struct.pack(">iiiqqi", 1, partition, -1, at, -1, size)
    return head + struct.pack(">i", 1) + text(topic) + one + struct.pack(">i", 0) + text("")


def offsets_body(topic: str, partition: int, at: int, *, committed: bool) -> bytes:
    """Encodes a request for the offset of a time."""
    one = struct.pack(">iiq", 1, partition, at)
    return struct.pack(">ibi", -1, committed, 1) + text(topic) + one


def metadata_body(topic: str) -> bytes:
    """Encodes a request for the metadata of a topic, which does not create it."""
    return struct.pack(">i", 1) + text(topic) + b"\0"


def leader_of(answer: Answer, partition: int) -> tuple[str, int]:
    """Returns host and port of the broker that leads a partition."""
    answer.i32()  # throttle time
    brokers = {}
    for _ in range(answer.i32()):
        node, host, port = answer.i32(), answer.text(), answer.i32()
        answer.text()  # rack
        brokers[node] = host, port
    answer.text()  # cluster
    answer.i32()  # controller
    code, leader = UNKNOWN, NONE
    for _ in range(answer.i32()):
        code, leader = _leader_in(answer, partition)
    if code or leader not in brokers:
        raise BrokerError("" if code else f"the partition {partition} has no leader", code)
    return brokers[leader]


def _leader_in(answer: Answer, partition: int) -> tuple[int, int]:
    """Returns the error and the leader of a partition, from a topic's metadata."""
    code = answer.i16()
    answer.text()
    answer.i8()  # whether it is internal
    leader_or_error = (code or UNKNOWN, NONE)
    for _ in range(answer.i32()):
        error, number, leader = answer.i16(), answer.i32(), answer.i32()
        answer.i32()  # leader epoch
        for _ in range(3):  # replicas: all, in sync, offline
            for _ in range(answer.i32()):
                answer.i32()
        if number == partition:
            leader_or_error = (code or (error if leader == NONE else 0), leader)
    return leader_or_error
