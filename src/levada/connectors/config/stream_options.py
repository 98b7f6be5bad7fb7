"""Converts the options of a stream from a user's words. Each converter raises ``UsageError`` with
the valid values.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from levada.connectors.config import connector_options
from levada.connectors.config.input_formats import RDF, TABLES, word_of
from levada.connectors.config.json_path import parse_iterator, split_alias
from levada.connectors.config.time_format import check_format, check_zone
from levada.core.event_time import parse_duration, parse_time
from levada.core.integer_options import parse_count
from levada.errors import UsageError, near

if TYPE_CHECKING:
    from levada.connectors.config.row_mapping import RowMapping

FORMATS = RDF + TABLES
TYPES = ("integer", "double", "string", "boolean")


class StreamOptions(TypedDict, total=False):
    """The words of ``engine.stream``; ``connectors.config.stream_config`` explains them. Durations
    and times are ms, or texts. From ``start`` on they are options of Kafka
    (``connectors.config.kafka_config``) and other messages (``connectors.config.feed_config``); the
    last three are of sources that are neither.
    """

    format: str
    time: str
    unit: Literal["s", "ms", "us", "ns"]
    time_format: str
    zone: str
    lateness: int | str
    element: Literal["line", "subject", "graph", "blankline", "document", "message"]
    schema: str | Mapping[str, str] | Sequence[tuple[str, str]]
    iterator: str
    sign: str
    unique: bool | str
    closed: Literal["element", "trusted", "none"]
    idle: int | str
    heartbeat: int | str
    max_future: int | str
    files: Literal["sequence", "parallel"]
    mapping: str | os.PathLike[str]
    ahead: int | str
    from_: int | str
    to: int | str
    limit: int | str
    region: str
    separator: str
    start: str | int
    lost: Literal["stop", "skip"]
    isolation: Literal["read_committed", "read_uncommitted"]
    commit_group: str
    tls: bool | str
    tls_ca: str | os.PathLike[str]
    tls_cert: str | os.PathLike[str]
    tls_key: str | os.PathLike[str]
    sasl: Literal["plain", "scram-sha-256", "scram-sha-512"]
    user: str
    password: str
    qos: Literal[0, 1] | str
    retained: Literal["take", "skip"]
    version: str
    columns: Sequence[str]
    text: str
    tuples: bool


class TableOptions(TypedDict, total=False):
    """The words of ``engine.table``; ``connectors.config.table_config`` explains them."""

    schema: str | Mapping[str, str] | Sequence[tuple[str, str]]
    format: str
    separator: str
    every: int | str
    password: str


_ELEMENTS = ("line", "subject", "graph", "blankline", "document", "message")
AUTO = (("auto", "auto"),)
"""The schema of a table whose columns are inferred
(``connectors.ingest.tables.schema_inference``).
"""
_COLUMN = re.compile(r"""(?:\[(?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*"|[^\]'"])*\]|[^;,])+""")
"""A column and its type; brackets of a path may hold the characters between columns."""
SEPARATORS = {"tab": "\t", "comma": ",", "semicolon": ";"}
_TIMES = ("column", "graph", "predicate", "filename", "field", "timestamp", "arrival")


def say_one_of(words: tuple[str, ...], prefix: str = "") -> str:
    """Returns a hint that names the words.

    >>> say_one_of(("ms", "s"), "unit=")
    'Say unit=ms or unit=s.'
    """
    return "Say " + " or ".join(prefix + word for word in words) + "."


def _word(words: tuple[str, ...]) -> Callable[[Any], str]:
    def convert(value: Any) -> str:
        if value not in words:
            raise UsageError(
                f"{value} is none of {', '.join(words)}.", hint=near(str(value), words)
            )
        return str(value)

    return convert


def _time(value: Any) -> str:
    """Checks ``time=``; strips the angle brackets of a predicate."""
    kind, colon, argument = str(value).partition(":")
    if kind not in _TIMES:
        hint = near(kind, _TIMES)
        if not hint.startswith("Did you mean"):
            hint = f"The column {kind} of a table is time=field:{kind}."
        raise UsageError(f"{kind} is none of {', '.join(_TIMES)}.", hint=hint)
    if kind in ("column", "graph", "timestamp", "arrival"):
        if colon:
            raise UsageError(
                f"{kind} takes nothing behind a colon.",
                hint=f"A table's column is time=field:{argument}.",
            )
        return kind
    if not argument:
        shape = {"predicate": "predicate:IRI", "filename": "filename:REGEX", "field": "field:NAME"}[
            kind
        ]
        raise UsageError(f"{kind} needs an argument.", hint=f"Say {shape}.")
    if kind == "predicate":
        argument = (
            argument[1:-1] if argument.startswith("<") and argument.endswith(">") else argument
        )
    if kind == "filename":
        _check_pattern(argument)
    return f"{kind}:{argument}"


def _check_pattern(pattern: str) -> None:
    try:
        groups = re.compile(pattern).groups
    except (re.error, RecursionError, OverflowError) as error:
        raise UsageError(f"{pattern} is not a regular expression: {error}.") from error
    if groups < 1:
        raise UsageError(
            f"The regular expression {pattern} has no group.", hint="Put the time in parentheses."
        )


def _region(value: Any) -> str:
    """Checks ``region=``: one name, shared with queries."""
    name = str(value).strip()
    if not name or name == "any" or "+" in name or " " in name:
        raise UsageError(f"A stream is in one region, not {value!r}.", hint="Say region=east.")
    return name


def _schema(value: Any) -> tuple[tuple[str, str], ...]:
    """Parses ``k:integer;v:double`` or a mapping, in order; ``auto``."""
    if value == "auto" or value == AUTO:
        return AUTO
    if isinstance(value, Mapping):
        pairs = [(str(k), str(v)) for k, v in value.items()]
    elif isinstance(value, (tuple, list)):
        if not all(isinstance(pair, (tuple, list)) and len(pair) == 2 for pair in value):
            raise UsageError(
                "a list of columns has pairs of a name and a type.", hint="Say [[k, integer]]."
            )
        pairs = [(str(k), str(v)) for k, v in value]
    else:
        texts = [part if ":" in part else f"{part}:" for part in _COLUMN.findall(str(value))]
        parts = [part.rpartition(":") for part in texts if part.strip(" :")]
        pairs = [(column.strip(), kind.strip()) for column, _, kind in parts]
    if not pairs:
        raise UsageError(
            "a schema names at least one column.",
            hint="Say for example k:integer;v:double, or auto.",
        )
    for column, kind in pairs:
        if not column or kind not in TYPES:
            raise UsageError(
                f"the column {column} has the type {kind or '(none)'}.", hint=say_one_of(TYPES)
            )
    if len({split_alias(column)[0] for column, _ in pairs}) < len(pairs):
        raise UsageError("a column stands twice in the schema.")
    return tuple(pairs)


def _iterator(value: Any) -> str:
    text = str(value).strip()
    parse_iterator(text)
    return text


def parse_flag(value: Any) -> bool:
    """Parses true or false, also yes or no. Raises ``UsageError``."""
    words = {"true": True, "yes": True, "false": False, "no": False}
    if str(value).lower() not in words:
        raise UsageError(f"{value} is neither true nor false.")
    return words[str(value).lower()]


def _parse_closed(value: Any) -> str:
    words = {"element": "element", "trusted": "trusted", "none": "", "false": ""}
    if str(value).lower() not in words:
        raise UsageError(
            f"{value} is nothing that can be closed.",
            hint="Say closed=element, or closed=trusted if the promise needs no check.",
        )
    return words[str(value).lower()]


def _separator(value: Any) -> str:
    text = SEPARATORS.get(str(value), "\t" if value == "\\t" else str(value))
    if len(text) != 1 or not text.isascii() or text in '"\r\n':
        raise UsageError(
            f"{value} is no separator.",
            hint="Say one character, such as separator=; or separator=tab.",
        )
    return text


def _count(value: Any) -> int:
    return parse_count(str(value), "the number")


def _positive(value: Any) -> int:
    if (duration := parse_duration(value)) == 0:
        raise UsageError("the duration is not positive.")
    return duration


def _mapping(value: Any) -> RowMapping:
    from levada.connectors.config.mapping_file import load_mapping  # here: few streams have one

    return load_mapping(os.path.expanduser(str(value)))


CONVERTERS: dict[str, Callable[[Any], Any]] = {
    "format": lambda value: _word(FORMATS)(word_of(str(value))),
    "time": _time,
    "unit": _word(("ms", "s", "us", "ns")),
    "time_format": check_format,
    "zone": check_zone,
    "lateness": parse_duration,
    "element": _word(_ELEMENTS),
    "schema": _schema,
    "iterator": _iterator,
    "sign": str,
    "separator": _separator,
    "unique": parse_flag,
    "closed": _parse_closed,
    "idle": _positive,
    "heartbeat": _positive,
    "max_future": parse_duration,
    "files": _word(("sequence", "parallel")),
    "mapping": _mapping,
    "ahead": _count,
    "from": parse_time,
    "to": parse_time,
    "limit": _count,
    "region": _region,
    **connector_options.CONVERTERS,
}
OPTIONS = tuple(CONVERTERS)
