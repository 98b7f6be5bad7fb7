"""The options of a stream that differ between two runs on a checkpoint, and the effect of each on
what the checkpoint holds.

Each option has one effect. ``MIXING`` are those after which one window could hold elements of two
meanings, or the same element twice.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import fields
from enum import Enum
from typing import Any

from levada.connectors.config.stream_config import StreamConfig
from levada.core.event_time import instant, shown_duration
from levada.core.frozen import frozen


class Effect(Enum):
    """The effect of a changed option on data that have been read."""

    TIMES = "Windows and the watermark keep the times that were read by the old options."
    ELEMENTS = "Windows keep the elements that were read by the old options."
    POSITIONS = "Positions of the old source mean nothing in the new one: elements may count twice."
    PLAN = "Queries that read the stream begin anew."
    PROGRESS = "The watermark does not go back; it follows the new options from here on."
    AMOUNT = "Elements that were read, or left out, stay so."
    SOURCE = "Elements that were read stay; the next ones come from the new place."
    NONE = "State stays as it is."


MIXING = frozenset({Effect.TIMES, Effect.ELEMENTS, Effect.POSITIONS})
EFFECTS: Mapping[str, Effect] = {
    "time": Effect.TIMES,
    "unit": Effect.TIMES,
    "time_format": Effect.TIMES,
    "zone": Effect.TIMES,
    "format": Effect.ELEMENTS,
    "element": Effect.ELEMENTS,
    "separator": Effect.ELEMENTS,
    "iterator": Effect.ELEMENTS,
    "paths": Effect.ELEMENTS,
    "mapping": Effect.ELEMENTS,
    "files": Effect.POSITIONS,
    "source": Effect.POSITIONS,
    "schema": Effect.PLAN,
    "sign": Effect.PLAN,
    "unique": Effect.PLAN,
    "closed": Effect.PLAN,
    "trusted": Effect.NONE,
    "lateness": Effect.PROGRESS,
    "idle": Effect.PROGRESS,
    "heartbeat": Effect.PROGRESS,
    "max_future": Effect.PROGRESS,
    "from": Effect.AMOUNT,
    "to": Effect.AMOUNT,
    "limit": Effect.AMOUNT,
    "path": Effect.SOURCE,
    "kafka": Effect.SOURCE,
    "feed": Effect.SOURCE,
    "ahead": Effect.NONE,
    "region": Effect.NONE,
}
_DURATIONS = ("lateness", "idle", "heartbeat")
_WITHIN_PATH = ("servers", "topic", "kind", "host", "port")


@frozen
class OptionChange:
    """An option, its old and new value for people, and the effect of the change."""

    option: str
    was: str
    now: str
    effect: Effect

    def __str__(self) -> str:
        if self.was == self.now:
            return f"{self.option} is another one"
        return f"{self.option} was {self.was} and is {self.now}"


def option_changes(before: StreamConfig, now: StreamConfig) -> list[OptionChange]:
    """Compares the options of a stream with those of a previous run.

    >>> old = StreamConfig.from_options("s", "s.nt", lateness="5s")
    >>> new = StreamConfig.from_options("s", "s.nt", unit="s")
    >>> [str(change) for change in option_changes(old, new)]
    ['unit was ms and is s', 'lateness was PT5S and is PT0S']
    """
    sources = _source(before), _source(now)
    if sources[0] != sources[1]:
        return [OptionChange("source", *sources, EFFECTS["source"])]
    return list(_changes(before, now))


def _source(config: StreamConfig) -> str:
    """Returns the kind of a stream's source, whose positions have one form."""
    if config.kafka is not None:
        return "a topic of Kafka"
    if config.feed is not None:
        return "a feed"
    return "rows that are pushed" if config.settled else "files"


def _changes(before: StreamConfig, now: StreamConfig) -> Iterator[OptionChange]:
    for field in fields(StreamConfig):
        option = field.name.rstrip("_")
        was, value = getattr(before, field.name), getattr(now, field.name)
        if option not in EFFECTS or was == value:
            continue
        if option in ("kafka", "feed"):
            yield from _changes_within(option, was, value)
        elif option != "path" or not _is_same_place(before, now):
            yield OptionChange(
                option, _format_value(option, was), _format_value(option, value), EFFECTS[option]
            )


def _changes_within(option: str, before: Any, now: Any) -> Iterator[OptionChange]:
    """Returns the changes of a connection; its address is in the path."""
    for field in fields(before):
        was, value = getattr(before, field.name), getattr(now, field.name)
        if was != value and field.name not in _WITHIN_PATH:
            shown = _format_value(field.name, was), _format_value(field.name, value)
            yield OptionChange(field.name, *shown, EFFECTS[option])


def _is_same_place(before: StreamConfig, now: StreamConfig) -> bool:
    """Whether two paths are equal; the folder of a spool depends on the checkpoint's."""
    if now.messages:
        return before.path == now.path
    return now.settled or os.path.abspath(before.path) == os.path.abspath(now.path)


def _format_value(option: str, value: Any) -> str:
    if value is None or value == "" or value == ():
        return "not set"
    if option in _DURATIONS:
        return shown_duration(value)
    if option in ("from", "to", "start_time"):
        return instant(value)
    if option == "schema":
        return ";".join(f"{name}:{kind}" for name, kind in value)
    if option == "paths":
        return ";".join(f"{name}={path}" for name, path in value)
    if option == "mapping":
        return "a mapping"
    return str(value).lower() if isinstance(value, bool) else str(value)
