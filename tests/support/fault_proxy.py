"""A TCP proxy that disturbs chosen messages of a connection between the code under test and a real
server of this host. No time decides: a fault comes with the message that it names.

    reset   the message is dropped, and the connection ends without a farewell
    cut     half of the message passes, then the same
    hang    neither this message nor any later one of the connection passes

A message from the client is labelled ``> ...``, one from the server ``< ...``. So a reset of the
request means that the server has not done it, and a reset of the answer that it has.
"""

from __future__ import annotations

import re
import select
import socket
import struct
import subprocess
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from support.polling import PATIENCE, until

State = dict[str, Any]
Split = Callable[[bytearray, bool, State], tuple[str, int] | None]
"""Gives the label and size of the first message of a buffer, None while it is not whole. Arguments:
the buffer, whether the client sent it, and a dictionary that lives as long as the connection.
"""
CONNECT = "connect"
"""The label of a connection that opens, before anything passes."""


class FaultProxy:
    """Listens on ``port`` and passes connections on to ``server_port``. ``faults``: pairs of a
    label's pattern and a fault. Only the first one is looked for; then the next one is.
    """

    def __init__(
        self, server_port: int, split: Split, faults: Iterable[tuple[str, str]] = ()
    ) -> None:
        self.server_port, self._split = server_port, split
        self.labels: list[str] = []
        self.faults = list(faults)
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.port: int = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends all connections."""
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self._thread.join()
        with self._lock:
            for each in self._open:
                with suppress(OSError):
                    each.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._pass, args=(client,), daemon=True).start()

    def _fault(self, label: str) -> str:
        with self._lock:
            self.labels.append(label)
            if self.faults and re.search(self.faults[0][0], label):
                return self.faults.pop(0)[1]
        return ""

    def _pass(self, client: socket.socket) -> None:
        fault = self._fault(CONNECT)
        if fault and fault != "hang":
            return _reset(client)
        try:
            server = socket.create_connection(("127.0.0.1", self.server_port))
        except OSError:
            return _reset(client)
        for side in (client, server):
            side.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self._lock:
            self._open |= {client, server}
        try:
            self._pass_messages(client, server, hangs=bool(fault))
        finally:
            with self._lock:
                self._open -= {client, server}
            _reset(client)
            _reset(server)

    def _pass_messages(self, client: socket.socket, server: socket.socket, hangs: bool) -> None:
        """Passes what comes until one side ends, or a fault does."""
        buffers, state = {client: bytearray(), server: bytearray()}, State()
        with suppress(OSError):
            while True:
                for side in select.select([client] if hangs else [client, server], [], [])[0]:
                    other, buffer = server if side is client else client, buffers[side]
                    if not (data := side.recv(1 << 16)):
                        return other.sendall(b"" if hangs else buffer)
                    buffer += data
                    while not hangs and (message := self._split(buffer, side is client, state)):
                        label, size = message
                        fault = self._fault(label)
                        other.sendall(buffer[: {"": size, "cut": size // 2}.get(fault, 0)])
                        if fault in ("reset", "cut"):
                            return None
                        hangs = fault == "hang"
                        del buffer[:size]


def _reset(made: socket.socket) -> None:
    with suppress(OSError):
        made.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    made.close()


def postgres(buffer: bytearray, client: bool, state: State) -> tuple[str, int] | None:
    """Messages of PostgreSQL: statements have their text, and completions their tag, as label."""
    if not client and state.get("plain"):  # the answer to a wish for encryption is a letter
        state["plain"] = False
        return "< N", 1
    if client and not state.get("started"):
        if len(buffer) < 8 or len(buffer) < (size := _i32(buffer, 0)):
            return None
        state["plain"] = _i32(buffer, 4) in (80877103, 80877104)
        state["started"] = not state["plain"]
        return "> SSLRequest" if state["plain"] else "> Startup", size
    if len(buffer) < 5 or len(buffer) < (size := 1 + _i32(buffer, 1)):
        return None
    kind, text = chr(buffer[0]), bytes(buffer[5:size])
    if client and kind == "P":
        text = text.partition(b"\0")[2].partition(b"\0")[0]
    named = kind in ("PQ" if client else "CE")
    more = f" {text.rstrip(bytes(1)).decode(errors='replace')}" if named else ""
    return f"{'>' if client else '<'} {kind}{more}", size


_KAFKA = {
    0: "Produce", 1: "Fetch", 2: "ListOffsets", 3: "Metadata", 8: "OffsetCommit", 9: "OffsetFetch",
    10: "FindCoordinator", 18: "ApiVersions", 22: "InitProducerId", 24: "AddPartitionsToTxn",
    25: "AddOffsetsToTxn", 26: "EndTxn", 28: "TxnOffsetCommit", 75: "DescribeTopicPartitions",
}  # fmt: skip


def kafka(buffer: bytearray, client: bool, state: State) -> tuple[str, int] | None:
    """Requests and answers of Kafka, by the name of the request."""
    if len(buffer) < 12 or len(buffer) < (size := 4 + _i32(buffer, 0)):
        return None
    if client:
        key = int.from_bytes(buffer[4:6])
        state[str(_i32(buffer, 8))] = name = _KAFKA.get(key, str(key))
        return f"> {name}", size
    return f"< {state.get(str(_i32(buffer, 4)), '?')}", size


_MQTT = (
    "", "CONNECT", "CONNACK", "PUBLISH", "PUBACK", "PUBREC", "PUBREL", "PUBCOMP", "SUBSCRIBE",
    "SUBACK", "UNSUBSCRIBE", "UNSUBACK", "PINGREQ", "PINGRESP", "DISCONNECT", "AUTH",
)  # fmt: skip


def mqtt(buffer: bytearray, client: bool, state: State) -> tuple[str, int] | None:
    """Packets of MQTT, by their type."""
    length = 0
    for k, byte in enumerate(buffer[1:5]):
        length |= (byte & 127) << 7 * k
        if byte < 128:
            size = 2 + k + length
            if len(buffer) < size:
                return None
            return f"{'>' if client else '<'} {_MQTT[buffer[0] >> 4]}", size
    return None


def terminated(command: Sequence[str], proxy: FaultProxy, **given: Any) -> tuple[int, str]:
    """Runs a command until the proxy has had its faults, sends SIGTERM, and waits for the end. The
    exit code, and what was printed on standard error.
    """
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, **given) as process:
        until(lambda: not proxy.faults, "the faults", process=process)
        process.terminate()
        said = process.communicate(timeout=PATIENCE)[1]
    return process.returncode, said


def lines(buffer: bytearray, client: bool, state: State) -> tuple[str, int] | None:
    """Heads of HTTP and server-sent events: what an empty line ends, by its first line."""
    found = re.search(rb"\r?\n\r?\n", buffer)
    if found is None:
        return None
    first = bytes(buffer[: found.end()]).splitlines()[0]
    return f"{'>' if client else '<'} {first.decode(errors='replace')}", found.end()


def http(buffer: bytearray, client: bool, state: State) -> tuple[str, int] | None:
    """Whatever has arrived; a request, or a part of one, by its first line."""
    first = bytes(buffer).partition(b"\r\n")[0] if buffer else None
    if first is None:
        return None
    return f"{'>' if client else '<'} {first[:200].decode(errors='replace')}", len(buffer)


def _i32(buffer: bytearray, at: int) -> int:
    return int.from_bytes(buffer[at : at + 4])
