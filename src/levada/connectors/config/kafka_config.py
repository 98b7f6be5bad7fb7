"""Describes a stream of Kafka and its connection: the description half of
``connectors.sources.kafka``.

    kafka://HOST:PORT[,HOST:PORT...]/TOPIC

    start     earliest | latest | TIME: where the stream begins on a new checkpoint
    lost      stop | skip: what happens if offsets are gone before they were read
    isolation read_committed | read_uncommitted
    commit_group
              the consumer group to which read offsets are committed, for tools of Kafka
    tls, ca, cert, key, sasl, user, password
              of the connection; ``password`` says where it is (``env:NAME``, ``file:PATH``), so
              that no secret is part of a configuration
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from levada.connectors.config.secret_reference import password_at, password_place, without_secrets
from levada.core.event_time import parse_time
from levada.core.frozen import frozen
from levada.errors import UsageError, near

SCHEME = "kafka://"
_WHERE = re.compile(r"kafka://(?P<servers>[^/@?#\s]+)/(?P<topic>[A-Za-z0-9._-]{1,249})/?")
_SERVER = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):([0-9]{1,5})")
_SASL = ("plain", "scram-sha-256", "scram-sha-512")


@frozen
class KafkaConfig:
    """A topic and its options. ``start_time``: with ``start=time``, ms."""

    servers: str
    topic: str
    start: str = "earliest"
    start_time: int = 0
    lost: str = "stop"
    isolation: str = "read_committed"
    commit_group: str = ""
    tls: bool = False
    ca: str = ""
    cert: str = ""
    key: str = ""
    sasl: str = ""
    user: str = ""
    password: str = ""

    @property
    def secret(self) -> str:
        """Returns the password, looked up now. Raises ``SourceError`` without the password in
        it.
        """
        return password_at(self.password)


def is_kafka(path: str) -> bool:
    """Whether a stream's path is a topic.

    >>> is_kafka("kafka://127.0.0.1:9092/obs"), is_kafka("obs.nt")
    (True, False)
    """
    return path.startswith(SCHEME)


def kafka_of(who: str, path: str, options: Mapping[str, Any]) -> KafkaConfig:
    """Returns the topic at ``path`` with the options of ``CONVERTERS``, converted. Raises
    ``UsageError``, with a message that begins with ``who``.

    >>> kafka_of("The stream s", "kafka://a:9092,b:9092/obs", {"lost": "skip"}).servers
    'a:9092,b:9092'
    """
    match = _WHERE.fullmatch(path)
    servers = match["servers"].split(",") if match else []
    if match is None or not all(map(_SERVER.fullmatch, servers)):
        raise UsageError(
            f"{who}: {without_secrets(path)} is no topic of Kafka.",
            hint="Say kafka://HOST:PORT/TOPIC, and user and password as options.",
        )
    settings = fields_of(options)
    start = settings.pop("start", "earliest")
    if isinstance(start, int):
        settings |= {"start": "time", "start_time": start}
    else:
        settings["start"] = start
    config = KafkaConfig(",".join(servers), match["topic"], **settings)
    _check(who, config)
    return config


def _check(who: str, config: KafkaConfig) -> None:
    for broken, message, hint in (
        (
            len({bool(config.sasl), bool(config.user), bool(config.password)}) > 1,
            "sasl, user and password go together.",
            "Say sasl=scram-sha-512,user=NAME,password=env:VARIABLE.",
        ),
        (
            not config.tls and bool(config.ca or config.cert or config.key),
            "tls_ca, tls_cert and tls_key are for tls=true.",
            "Say tls=true.",
        ),
        (bool(config.cert) != bool(config.key), "tls_cert and tls_key go together.", ""),
    ):
        if broken:
            raise UsageError(f"{who}: {message}", hint=hint)


def _start(value: Any) -> str | int:
    if str(value) in ("earliest", "latest"):
        return str(value)
    try:
        return parse_time(value)
    except UsageError as error:
        raise UsageError(
            f"{value} is neither earliest nor latest nor a time.",
            hint=near(str(value), ("earliest", "latest")) or error.hint,
        ) from error


def one_of(*words: str) -> Callable[[Any], str]:
    """Returns a converter that accepts these words, in any case."""

    def convert(value: Any) -> str:
        if str(value).lower() not in words:
            raise UsageError(
                f"{value} is none of {', '.join(words)}.", hint=near(str(value), words)
            )
        return str(value).lower()

    return convert


def _file(value: Any) -> str:
    path = os.path.abspath(os.path.expanduser(str(value)))
    if not os.path.isfile(path):
        hint = "The options tls_ca, tls_cert and tls_key are PEM files."
        raise UsageError(f"there is no file {path}.", hint=hint)
    return path


def _flag(value: Any) -> bool:
    return one_of("true", "false")(str(value).lower()) == "true"


TLS_FILES = ("tls_ca", "tls_cert", "tls_key")


def fields_of(options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns options by the fields of a configuration.

    >>> fields_of({"tls": True, "tls_ca": "/ca.pem"})
    {'tls': True, 'ca': '/ca.pem'}
    """
    return {word.removeprefix("tls_"): value for word, value in options.items()}


def hint_of(word: str, words: Iterable[str]) -> str:
    """Returns a hint for an unknown option: its present name, or near misses.

    >>> hint_of("ca", TLS_FILES)
    'Say tls_ca=FILE.'
    """
    if f"tls_{word}" not in TLS_FILES:
        return near(word, words)
    message_key = "message_key=COLUMN for the keys of messages, or "
    return f"Say {message_key if word == 'key' else ''}tls_{word}=FILE."


CONVERTERS: dict[str, Callable[[Any], Any]] = {
    "start": _start,
    "lost": one_of("stop", "skip"),
    "isolation": one_of("read_committed", "read_uncommitted"),
    "commit_group": str,
    "tls": _flag,
    **dict.fromkeys(TLS_FILES, _file),
    "sasl": one_of(*_SASL),
    "user": str,
    "password": password_place,
}
CONNECTION = ("tls", *TLS_FILES, "sasl", "user", "password")


def connection_of(who: str, path: str, options: Mapping[str, Any]) -> KafkaConfig:
    """Returns the topic at ``path`` with the present options of ``CONNECTION``, as users write
    them. Raises ``UsageError``.
    """
    settings = {}
    for key in CONNECTION:
        if options.get(key) is not None:
            try:
                settings[key] = CONVERTERS[key](options[key])
            except UsageError as error:
                raise UsageError(f"{who}: {key}: {error.message}", hint=error.hint) from error
    return kafka_of(who, path, settings)
