"""Where a stream of Kafka is, and what one says of its connection: the description half of
``sources.kafka``.

    kafka://HOST:PORT[,HOST:PORT...]/TOPIC

    start     earliest | latest | TIME: where the stream begins on a new checkpoint
    lost      stop | skip: what happens if offsets are gone before they were read
    isolation read_committed | read_uncommitted
    tls, ca, cert, key, sasl, user, password
              of the connection; ``password`` says where it is (``env:NAME``, ``file:PATH``), so
              that no secret is part of a configuration
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from levada.errors import UsageError, near
from levada.model.durations import parse_time
from levada.streams.formats import DOCUMENTS, NAMES
from levada.streams.password import password_at, password_place

SCHEME = "kafka://"
_WHERE = re.compile(r"kafka://(?P<servers>[^/@?#\s]+)/(?P<topic>[A-Za-z0-9._-]{1,249})/?")
_SERVER = re.compile(r"(\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9._-]+):([0-9]{1,5})")
_SASL = ("plain", "scram-sha-256", "scram-sha-512")


@dataclass(frozen=True, slots=True)
class KafkaConfig:
    """A topic and how it is read. ``start_time``: with ``start=time``, ms."""

    servers: str
    topic: str
    start: str = "earliest"
    start_time: int = 0
    lost: str = "stop"
    isolation: str = "read_committed"
    tls: bool = False
    ca: str = ""
    cert: str = ""
    key: str = ""
    sasl: str = ""
    user: str = ""
    password: str = ""

    @property
    def secret(self) -> str:
        """The password itself, looked up now. Raises ``SourceError`` that does not say it."""
        return password_at(self.password)


def is_kafka(path: str) -> bool:
    """Whether a stream's path is a topic.

    >>> is_kafka("kafka://127.0.0.1:9092/obs"), is_kafka("obs.nt")
    (True, False)
    """
    return path.startswith(SCHEME)


def with_kafka(name: str, path: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a stream; those of a topic as one, ``kafka``. Raises ``UsageError``."""
    own = {word: value for word, value in values.items() if word in CONVERTERS}
    if is_kafka(path):
        rest = {word: value for word, value in values.items() if word not in CONVERTERS}
        return {"element": "message", **rest, "kafka": kafka_of(f"The stream {name}", path, own)}
    if own:
        raise UsageError(
            f"The stream {name}: {next(iter(own))}= is for a topic of Kafka.",
            hint=f"Leave it out, or say kafka://HOST:PORT/TOPIC in place of {path}.",
        )
    return dict(values)


def check_messages(name: str, values: Mapping[str, Any]) -> None:
    """What is for messages alone, and what is not there for them. Raises ``UsageError``."""
    element, kind = values.get("element", "line"), values.get("time", "column").partition(":")[0]
    rules = _of_messages(values, element, kind) if "kafka" in values else _of_files(element, kind)
    for broken, message, hint in rules:
        if broken:
            raise UsageError(f"The stream {name}: {message}", hint=hint)


def _of_files(element: str, kind: str) -> tuple[tuple[bool, str, str], ...]:
    return (
        (
            element == "message",
            "element=message is for a topic of Kafka.",
            "Say element=document for whole files.",
        ),
        (
            kind == "timestamp",
            "time=timestamp is for a topic of Kafka.",
            "Say where the times are.",
        ),
    )


def _of_messages(
    values: Mapping[str, Any], element: str, kind: str
) -> tuple[tuple[bool, str, str], ...]:
    form = values["format"]
    return (
        (
            element not in ("message", "line"),
            f"element={element} is not there for messages.",
            "Say element=message or element=line.",
        ),
        (
            form in DOCUMENTS and element == "line",
            f"{NAMES[form]} has no lines that stand alone.",
            "Say element=message.",
        ),
        (
            form in DOCUMENTS and kind == "column",
            f"the statements of {NAMES[form]} carry no times.",
            "Say time=timestamp or time=predicate:IRI.",
        ),
        (kind == "filename", "time=filename is for files.", "Say time=timestamp."),
        (form == "parquet", "a message is no Parquet.", "Say format=ndjson or format=csv."),
        (
            values.get("schema") == (("auto", "auto"),),
            "schema=auto needs a file to look at.",
            "Say schema=k:integer;v:double.",
        ),
        (
            "files" in values,
            "files= is for folders; the partitions of a topic are read in parallel.",
            "Leave files= out.",
        ),
        (
            values.get("limit") is not None,
            "limit= needs one order of the elements, which a topic does not have.",
            "Leave limit= out.",
        ),
        (
            bool(values.get("closed")),
            "closed=element is not there for messages.",
            "Leave closed= out.",
        ),
    )


def kafka_of(who: str, path: str, options: Mapping[str, Any]) -> KafkaConfig:
    """The topic at ``path`` with the options of ``CONVERTERS``, converted. Raises ``UsageError``,
    whose sentence begins with ``who``.

    >>> kafka_of("The stream s", "kafka://a:9092,b:9092/obs", {"lost": "skip"}).servers
    'a:9092,b:9092'
    """
    found = _WHERE.fullmatch(path)
    servers = found["servers"].split(",") if found else []
    if found is None or not all(map(_SERVER.fullmatch, servers)):
        said = re.sub(r"//[^/]*@", "//...@", path)  # nobody's password is repeated
        raise UsageError(
            f"{who}: {said} is no topic of Kafka.",
            hint="Say kafka://HOST:PORT/TOPIC, and user and password as options.",
        )
    given = dict(options)
    start = given.pop("start", "earliest")
    if isinstance(start, int):
        given |= {"start": "time", "start_time": start}
    else:
        given["start"] = start
    config = KafkaConfig(",".join(servers), found["topic"], **given)
    _check(who, config)
    return config


def _check(who: str, config: KafkaConfig) -> None:
    for broken, message, hint in (
        (
            bool(config.sasl) != bool(config.user and config.password),
            "sasl, user and password go together.",
            "Say sasl=scram-sha-512,user=NAME,password=env:VARIABLE.",
        ),
        (
            not config.tls and bool(config.ca or config.cert or config.key),
            "ca, cert and key are for tls=true.",
            "Say tls=true.",
        ),
        (bool(config.cert) != bool(config.key), "cert and key go together.", ""),
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


def _one_of(*words: str) -> Callable[[Any], str]:
    def convert(value: Any) -> str:
        if str(value).lower() not in words:
            raise UsageError(f"{value} is none of {', '.join(words)}.", hint=near(value, words))
        return str(value).lower()

    return convert


def _file(value: Any) -> str:
    path = os.path.abspath(os.path.expanduser(str(value)))
    if not os.path.isfile(path):
        raise UsageError(f"there is no file {path}.")
    return path


def _flag(value: Any) -> bool:
    return _one_of("true", "false")(str(value).lower()) == "true"


CONVERTERS: dict[str, Callable[[Any], Any]] = {
    "start": _start,
    "lost": _one_of("stop", "skip"),
    "isolation": _one_of("read_committed", "read_uncommitted"),
    "tls": _flag,
    "ca": _file,
    "cert": _file,
    "key": _file,
    "sasl": _one_of(*_SASL),
    "user": str,
    "password": password_place,
}
CONNECTION = ("tls", "ca", "cert", "key", "sasl", "user", "password")


def connection_of(who: str, path: str, options: Mapping[str, Any]) -> KafkaConfig:
    """The topic at ``path`` with those options of ``CONNECTION`` that are there, as users say them.
    Raises ``UsageError``.
    """
    given = {}
    for key in CONNECTION:
        if options.get(key) is not None:
            try:
                given[key] = CONVERTERS[key](options[key])
            except UsageError as error:
                raise UsageError(f"{who}: {key}: {error.message}", hint=error.hint) from error
    return kafka_of(who, path, given)
