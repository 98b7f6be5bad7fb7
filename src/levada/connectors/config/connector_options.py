"""Assigns options to connectors that are not files, and rejects options that do not apply to
messages.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from levada.connectors.config import feed_config, kafka_config
from levada.connectors.config.feed_config import NAMES as FEEDS
from levada.connectors.config.feed_config import feed_of, is_feed
from levada.connectors.config.input_formats import DOCUMENTS, NAMES
from levada.connectors.config.kafka_config import is_kafka, kafka_of
from levada.connectors.config.secret_reference import without_secrets
from levada.errors import UsageError, near

CONVERTERS = {**feed_config.CONVERTERS, **kafka_config.CONVERTERS}
_SCHEMES = ("kafka", *feed_config.SCHEMES)
_URL = re.compile(r"([A-Za-z][A-Za-z0-9.+_-]*):/{1,2}[^/]")
_OF_KAFKA = kafka_config.CONVERTERS.keys() - feed_config.CONVERTERS.keys()
_OF_FEEDS = feed_config.CONVERTERS.keys() - kafka_config.CONVERTERS.keys()


def is_way(path: str) -> bool:
    """Whether a stream's path is the address of messages rather than a file.

    >>> is_way("kafka://127.0.0.1:9092/obs"), is_way("mqtt://h/t"), is_way("obs.nt")
    (True, True, False)
    """
    return is_kafka(path) or is_feed(path)


def with_way(name: str, path: str, values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the options of a stream, with those of its messages' connection as one, ``kafka`` or
    ``feed``. Raises ``UsageError``.
    """
    connector_options = {word: value for word, value in values.items() if word in CONVERTERS}
    others = (
        _OF_FEEDS if is_kafka(path) else _OF_KAFKA if is_feed(path) else connector_options.keys()
    )
    for word in connector_options:
        if word in others:
            raise UsageError(
                f"The stream {name}: {word}= is for {_takers(word)}.",
                hint=f"Leave it out, or say another address in place of {without_secrets(path)}.",
            )
    rest = {word: value for word, value in values.items() if word not in CONVERTERS}
    who = f"The stream {name}"
    if is_kafka(path):
        return {"element": "message", **rest, "kafka": kafka_of(who, path, connector_options)}
    if is_feed(path):
        return {"element": "message", **rest, "feed": feed_of(who, path, connector_options)}
    _check_scheme(who, path)
    return rest


def _takers(word: str) -> str:
    if word in _OF_KAFKA:
        return "a topic of Kafka"
    return "MQTT" if word in _OF_FEEDS else "Kafka, MQTT, server-sent events and WebSockets"


def _check_scheme(who: str, path: str) -> None:
    """Raises ``UsageError`` for an address of an unknown scheme: it is not a file name, either."""
    match = _URL.match(path)
    if match is None or len(match[1]) == 1:
        return
    scheme = match[1].lower()
    known = ", ".join(f"{word}://" for word in _SCHEMES)
    meant = {"http": "sse+http", "https": "sse+https"}.get(scheme, scheme)
    hint = f"Did you mean {meant}://?" if meant in _SCHEMES else near(scheme, _SCHEMES)
    raise UsageError(
        f"{who}: {without_secrets(path)} is no address that streams come from: these are {known}.",
        hint=hint or "Say a path if it is a file.",
    )


def check_messages(name: str, values: Mapping[str, Any]) -> None:
    """Raises ``UsageError`` for options that are only, or never, for messages."""
    element, kind = values.get("element", "line"), values.get("time", "column").partition(":")[0]
    if "kafka" in values or "feed" in values:
        rules = _of_messages(values, element, kind)
    else:
        rules = _of_files(element, kind)
    for broken, message, hint in rules:
        if broken:
            raise UsageError(f"The stream {name}: {message}", hint=hint)


def _of_files(element: str, kind: str) -> tuple[tuple[bool, str, str], ...]:
    return (
        (
            element == "message",
            "element=message is for a topic of Kafka, MQTT and other messages.",
            "Say element=document for whole files.",
        ),
        (
            kind == "timestamp",
            "time=timestamp is for a topic of Kafka.",
            "Say where the times are.",
        ),
    )


def _of_folders(values: Mapping[str, Any], feed: str) -> tuple[tuple[bool, str, str], ...]:
    """Returns the refusals of options that need an order; ``feed``: what the messages come by, ""
    for a topic.
    """
    return (
        (
            "files" in values,
            f"files= is for folders, and {feed} is one sequence."
            if feed
            else "files= is for folders; the partitions of a topic are read in parallel.",
            "Leave files= out.",
        ),
        (
            values.get("limit") is not None,
            f"limit= is not there for {feed}."
            if feed
            else "limit= needs one order of the elements, which a topic does not have.",
            "Leave limit= out.",
        ),
    )


def _of_messages(
    values: Mapping[str, Any], element: str, kind: str
) -> tuple[tuple[bool, str, str], ...]:
    form, listens = values["format"], values.get("feed")
    clock = "timestamp" if listens is None else "arrival"
    said = dict(values.get("schema", ()))
    what = "a topic" if listens is None else FEEDS[listens.kind]
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
            f"Say time={clock} or time=predicate:IRI.",
        ),
        (
            listens is not None and kind == "timestamp",
            "time=timestamp is for a topic of Kafka.",
            "Say time=arrival: when a message came here.",
        ),
        (kind == "filename", "time=filename is for files.", f"Say time={clock}."),
        (
            form == "csv" and bool(said) and len(feed_config.topic_columns(said)) == len(said),
            "its records have no field but what the topic says.",
            "Say schema=v:double;topic:string, for example.",
        ),
        (form == "parquet", "a message is no Parquet.", "Say format=ndjson or format=csv."),
        (
            form == "json",
            "a message is one JSON value.",
            "Say format=ndjson, and iterator=[*] if messages are arrays.",
        ),
        (
            values.get("schema") == (("auto", "auto"),),
            "schema=auto needs a file to look at.",
            "Say schema=k:integer;v:double.",
        ),
        (
            element == "line" and getattr(values.get("mapping"), "numbers_rows", False),
            "a message may have several rows, and {row} has one number for a message.",
            "Say element=message, or use columns in place of {row} that tell the rows apart.",
        ),
        *_of_folders(values, "" if listens is None else what),
        (
            bool(values.get("closed")),
            "closed=element is not there for messages.",
            "Leave closed= out.",
        ),
    )
