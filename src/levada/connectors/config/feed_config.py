"""Describes feeds that send a stream's messages once, and the options of the connection: the
description half of ``connectors.spool.feed_spool``.

    mqtt://HOST[:PORT]/FILTER, mqtts://       topics of MQTT, + and # as everywhere there
    sse+http://HOST[:PORT]/PATH, sse+https:// server-sent events
    ws://HOST[:PORT]/PATH, wss://             messages of a WebSocket

    qos       0 | 1: of MQTT; with 1 a message is durable here before it is acknowledged     1
    retained  take | skip: of MQTT, what the broker has kept for newcomers                take
    version   5 | 3.1.1: of MQTT                                                             5
    tls, ca, cert, key, user, password
              of the connection; ``password`` says where it is
              (``levada.connectors.config.secret_reference``); without a user it is a bearer's
              token, which MQTT does not have

Default values are at the right. The topic of a message is in the columns ``topic``, ``topic_1``
(its first level), ``topic_2``, ..
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from levada.connectors.config import kafka_config
from levada.connectors.config.message_metadata import HEADER
from levada.connectors.config.secret_reference import password_at, without_secrets
from levada.core.frozen import frozen
from levada.errors import UsageError

_WHERE = re.compile(
    r"(?P<scheme>mqtts?|sse\+https?|wss?)://"
    r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+)(:(?P<port>[0-9]{1,5}))?(?P<path>/\S*)?"
)
_KINDS = {
    "mqtt": "mqtt",
    "mqtts": "mqtt",
    "sse+http": "sse",
    "sse+https": "sse",
    "ws": "ws",
    "wss": "ws",
}
SCHEMES = tuple(_KINDS)
_PORTS = {"mqtt": 1883, "mqtts": 8883}
_SHAPES = {"mqtt": "mqtt://HOST/FILTER", "sse": "sse+http://HOST/PATH", "ws": "ws://HOST/PATH"}
NAMES = {"mqtt": "MQTT", "sse": "server-sent events", "ws": "a WebSocket"}
_TOPIC = re.compile(r"topic(_[1-9][0-9]?)?")
_LONGEST = 65_535  # bytes of a topic


@frozen
class FeedConfig:
    """A feed and its options. ``kind``: mqtt, sse or ws. ``topic``: MQTT's filter, else path and
    query. ``port`` 0: the scheme's default.
    """

    kind: str
    host: str
    port: int
    topic: str
    tls: bool = False
    qos: int = 1
    retained: str = "take"
    version: str = "5"
    ca: str = ""
    cert: str = ""
    key: str = ""
    user: str = ""
    password: str = ""

    @property
    def secret(self) -> str:
        """Returns the password, looked up now. Raises ``SourceError`` without the password in
        it.
        """
        return password_at(self.password)

    @property
    def server(self) -> str:
        """Host and port, for people."""
        return f"{self.host}:{self.port}" if self.port else self.host

    @property
    def url(self) -> str:
        """The address in the form of the web libraries."""
        plain = {"sse": "http", "ws": "ws"}[self.kind]
        return f"{plain}{'s' if self.tls else ''}://{self.server}{self.topic}"

    def metadata_columns(self, names: Iterable[str]) -> list[str]:
        """Returns the columns among these that are metadata of a message."""
        if self.kind != "mqtt":
            return []
        headers = [n for n in names if n.startswith(HEADER)] if self.version == "5" else []
        return [*topic_columns(names), *headers]


def is_feed(path: str) -> bool:
    """Whether a stream's path is the address of a feed.

    >>> is_feed("mqtt://127.0.0.1/sensors/+/t"), is_feed("obs.nt")
    (True, False)
    """
    return path.partition("://")[0] in SCHEMES and "://" in path


def topic_columns(names: Iterable[str]) -> list[str]:
    """Returns the columns among these that a message's topic provides.

    >>> topic_columns(["v", "topic", "topic_2", "topics"])
    ['topic', 'topic_2']
    """
    return [name for name in names if _TOPIC.fullmatch(name)]


def feed_of(who: str, path: str, options: Mapping[str, Any]) -> FeedConfig:
    """Returns the feed at ``path`` with the options of ``CONVERTERS``, converted. Raises
    ``UsageError``, with a message that begins with ``who``.

    >>> feed_of("The stream s", "mqtts://h/a/+/t", {"qos": 0}).server
    'h:8883'
    """
    match, kind = _WHERE.fullmatch(path), _KINDS[path.partition("://")[0]]
    if match is None or int(match["port"] or 1) not in range(1, 65_536):
        raise UsageError(
            f"{who}: {without_secrets(path)} is no address of {NAMES[kind]}.",
            hint=f"Say {_SHAPES[kind]}, and user and password as options.",
        )
    scheme, topic = match["scheme"], match["path"] or ""
    secure = scheme in ("mqtts", "sse+https", "wss")
    settings = {"tls": secure, **kafka_config.fields_of(options)}
    port = int(
        match["port"] or _PORTS.get("mqtts" if settings["tls"] and kind == "mqtt" else scheme, 0)
    )
    config = FeedConfig(
        kind, match["host"], port, topic[1:] if kind == "mqtt" else topic or "/", **settings
    )
    _check(who, config, options, secure=secure)
    return config


def _check(who: str, config: FeedConfig, options: Mapping[str, Any], *, secure: bool) -> None:
    mqtt_option = next((word for word in ("qos", "retained", "version") if word in options), "")
    wrong = filter_fault(config.topic) if config.kind == "mqtt" else ""
    for broken, message, hint in (
        (
            bool(wrong),
            f"{config.topic or 'nothing'} is no topic filter: {wrong}.",
            "Say for example mqtt://HOST/sensors/+/t or mqtt://HOST/sensors/#.",
        ),
        (
            config.kind != "mqtt" and bool(mqtt_option),
            f"{mqtt_option}= is for MQTT.",
            "Leave it out.",
        ),
        (
            config.kind != "mqtt" and options.get("tls") is not None,
            "its scheme says whether there is TLS.",
            "Leave tls= out, and say sse+https:// or wss:// for TLS.",
        ),
        (
            secure and not config.tls,
            "mqtts:// is MQTT with TLS.",
            "Leave tls= out, or say mqtt://.",
        ),
        (
            not config.tls and bool(config.ca or config.cert or config.key),
            "tls_ca, tls_cert and tls_key are for TLS.",
            "Say mqtts://, sse+https:// or wss://.",
        ),
        (bool(config.cert) != bool(config.key), "tls_cert and tls_key go together.", ""),
        (
            bool(config.user) and not config.password,
            "user and password go together.",
            "Say user=NAME,password=env:VARIABLE.",
        ),
        (
            config.kind == "mqtt" and bool(config.password) and not config.user,
            "user and password go together.",
            "Say user=NAME,password=env:VARIABLE.",
        ),
    ):
        if broken:
            raise UsageError(f"{who}: {message}", hint=hint)


def filter_fault(text: str) -> str:
    """Describes the fault of a topic filter; "" if it is valid.

    >>> filter_fault("sensors/+/t"), filter_fault("a/#/b")
    ('', '# stands at the end only')
    """
    levels = text.split("/")
    wrong = (
        (not text, "it is empty"),
        (len(text.encode()) > _LONGEST, f"it has more than {_LONGEST} bytes"),
        ("\0" in text, "it has a byte 0"),
        (any("#" in level for level in levels[:-1]), "# stands at the end only"),
        (
            any(len(level) > 1 and ("+" in level or "#" in level) for level in levels),
            "+ and # stand for a whole level",
        ),
    )
    return next((what for broken, what in wrong if broken), "")


def _qos(value: Any) -> int:
    if str(value) not in ("0", "1"):
        raise UsageError(
            f"{value} is neither 0 nor 1.",
            hint="Say qos=1: each message is durable here before it is acknowledged.",
        )
    return int(str(value))


CONVERTERS: dict[str, Callable[[Any], Any]] = {
    "qos": _qos,
    "retained": kafka_config.one_of("take", "skip"),
    "version": kafka_config.one_of("5", "3.1.1"),
    **{
        word: kafka_config.CONVERTERS[word]
        for word in ("tls", *kafka_config.TLS_FILES, "user", "password")
    },
}
