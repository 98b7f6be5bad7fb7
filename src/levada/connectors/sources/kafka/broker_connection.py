"""Connects to one broker: a socket, with TLS and a login if configured, with one request at a time.

Any failure is a ``BrokerError``, and the connection is useless then.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import socket
import ssl
import struct
from collections.abc import Callable

import numpy as np

from levada.connectors.config.kafka_config import KafkaConfig
from levada.connectors.sources.kafka.wire_protocol import (
    API_VERSIONS,
    FETCH,
    SASL_AUTHENTICATE,
    SASL_HANDSHAKE,
    Answer,
    BrokerError,
    Kind,
    blob,
    request,
    text,
)
from levada.core.array_types import Bytes
from levada.kernels.kafka.records import OVER

# Authenticates to a broker: SASL PLAIN and SCRAM with SHA-256 or SHA-512. Each step is a message
# and its answer.
#
# SCRAM never sends the password, and requires the server to prove that it knows it as well.
#
# Source: RFC 4616 (PLAIN), RFC 5802 and 7677 (SCRAM), KIP-84.


Say = Callable[[bytes], bytes]
MECHANISMS = {"plain": "PLAIN", "scram-sha-256": "SCRAM-SHA-256", "scram-sha-512": "SCRAM-SHA-512"}


def authenticate(config: KafkaConfig, say: Say, nonce: str | None = None) -> None:
    """Authenticates; ``nonce``: of the client, random by default. Raises ``BrokerError``, and
    ``SourceError`` for a missing password.
    """
    if config.sasl == "plain":
        say(f"\0{config.user}\0{config.secret}".encode())
        return
    _scram(config, say, nonce or secrets.token_urlsafe(24))


def _scram(config: KafkaConfig, say: Say, nonce: str) -> None:
    name = config.sasl.removeprefix("scram-").replace("-", "")
    user = config.user.replace("=", "=3D").replace(",", "=2C")
    first = f"n={user},r={nonce}"
    challenge = say(f"n,,{first}".encode())
    said = _fields(challenge, "r", "s", "i")
    if not said["r"].startswith(nonce):
        raise BrokerError("it answers to another one's login")
    salt, rounds = base64.b64decode(said["s"]), int(said["i"])
    salted = hashlib.pbkdf2_hmac(name, config.secret.encode(), salt, rounds)
    last = f"c=biws,r={said['r']}"  # biws: n,, by base64
    signed = b",".join((first.encode(), challenge, last.encode()))
    key = hmac.digest(salted, b"Client Key", name)
    signature = hmac.digest(hashlib.new(name, key).digest(), signed, name)
    proof = bytes(a ^ b for a, b in zip(key, signature, strict=True))
    answer = _fields(say(f"{last},p={base64.b64encode(proof).decode()}".encode()), "v")
    server_signature = hmac.digest(hmac.digest(salted, b"Server Key", name), signed, name)
    if not hmac.compare_digest(base64.b64decode(answer["v"]), server_signature):
        raise BrokerError("it does not know the password of its user")


def _fields(message: bytes, *names: str) -> dict[str, str]:
    """Parses the fields of a server's message. Raises ``BrokerError`` if one of these is
    missing.
    """
    parts = message.decode("utf-8", "replace").split(",")
    fields = dict(part.partition("=")[::2] for part in parts)
    if "e" in fields or not fields.keys() >= set(names):
        raise BrokerError(f"it refuses the login: {fields.get('e', 'its answer is no SCRAM')}")
    return fields


PATIENCE = 10.0  # s for an answer
MAX_REPLY_BYTES = 16 << 20  # the most bytes of an answer without data


def address_of(server: str) -> tuple[str, int]:
    """Splits a server's address into host and port.

    >>> address_of("[::1]:9092"), address_of("kafka-1:9092")
    (('::1', 9092), ('kafka-1', 9092))
    """
    host, _, port = server.rpartition(":")
    return host.strip("[]"), int(port)


class BrokerConnection:
    """An open connection that is logged in. Raises ``BrokerError``, ``SourceError``."""

    def __init__(self, config: KafkaConfig, where: tuple[str, int]) -> None:
        self.where = where
        self._number = 0
        try:
            self._socket = _connect(config, where)
        except (OSError, ValueError) as error:
            raise BrokerError(_describe_error(error)) from error
        try:
            self._greet()
            if config.sasl:
                self._log_in(config)
        except BaseException:
            self.close()
            raise

    def ask(self, kind: Kind, body: bytes) -> Answer:
        """Sends a request and returns the answer."""
        self._number += 1
        try:
            self._socket.sendall(request(kind, self._number, body))
            (size,) = struct.unpack(">i", self._read(4).data)
            if size < 4 or (kind != FETCH and size > MAX_REPLY_BYTES):
                raise BrokerError("what it says is not Kafka's protocol (is tls right?)")
            answer = Answer(self._read(size))
        except OSError as error:
            raise BrokerError(_describe_error(error)) from error
        if answer.i32() != self._number:
            raise BrokerError("it answers another question")
        return answer

    def close(self) -> None:
        """Closes the connection."""
        self._socket.close()

    def _read(self, size: int) -> Bytes:
        """Reads so many bytes, followed by ``OVER`` padding bytes that a kernel may touch."""
        whole: Bytes = np.empty(size + OVER, np.uint8)
        left = whole.data[:size]
        while left:
            got = self._socket.recv_into(left)
            if not got:
                raise BrokerError("it has closed the connection")
            left = left[got:]
        return whole[:size]

    def _greet(self) -> None:
        """Checks that the broker supports the versions used here."""
        answer = self.ask(API_VERSIONS, b"")
        code = answer.i16()
        spoken = {}
        for _ in range(answer.i32()):
            key, least, most = answer.i16(), answer.i16(), answer.i16()
            spoken[key] = least, most
        least, most = spoken.get(FETCH.key, (0, -1))
        if code or not least <= FETCH.version <= most:
            raise BrokerError(
                f"it is older than Kafka 2.3, or newer than 4: it speaks {least} to {most} of "
                f"Fetch, and not {FETCH.version}",
                code,
                final=True,
            )

    def _log_in(self, config: KafkaConfig) -> None:
        mechanism = MECHANISMS[config.sasl]
        answer = self.ask(SASL_HANDSHAKE, text(mechanism))
        if code := answer.i16():
            offered = ", ".join(answer.text() for _ in range(answer.i32()))
            raise BrokerError(f"it has no {mechanism}, but {offered}", code)

        def say(message: bytes) -> bytes:
            answer = self.ask(SASL_AUTHENTICATE, blob(message))
            code, why = answer.i16(), answer.text()
            if code:
                raise BrokerError(why or "it refuses the login", code)
            return answer.blob().tobytes()

        authenticate(config, say)


def _connect(config: KafkaConfig, where: tuple[str, int]) -> socket.socket:
    made = socket.create_connection(where, PATIENCE)
    try:
        made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        if not config.tls:
            return made
        context = ssl.create_default_context(cafile=config.ca or None)
        if config.cert:
            context.load_cert_chain(config.cert, config.key)
        return context.wrap_socket(made, server_hostname=where[0])
    except BaseException:
        made.close()
        raise


def _describe_error(error: Exception) -> str:
    """Describes a system or TLS error in a few words."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}"
    if isinstance(error, TimeoutError):
        return "it does not answer"
    if isinstance(error, OSError) and error.strerror:
        return str(error.strerror)
    return str(error)
