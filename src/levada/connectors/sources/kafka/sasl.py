"""Authenticates to a broker: SASL PLAIN and SCRAM with SHA-256 or SHA-512. Each step is a message
and its answer.

SCRAM never sends the password, and requires the server to prove that it knows it as well.

Source: RFC 4616 (PLAIN), RFC 5802 and 7677 (SCRAM), KIP-84.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Callable

from levada.connectors.config.kafka_config import KafkaConfig
from levada.connectors.sources.kafka.wire_protocol import BrokerError

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
