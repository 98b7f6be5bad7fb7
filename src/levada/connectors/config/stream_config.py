"""Describes a stream and its event times: the description half of ``connectors.sources`` and
``connectors.ingest``.

A ``StreamConfig`` is a value. ``StreamConfig.of`` makes it from the words that the command line,
the app file and the Python API share. It is always valid, so all later code may trust it. An
invalid word is a ``UsageError`` with near misses or the valid values.
All durations and times are integer milliseconds (docs/semantics.md#streams).

    format    a word of ``input_formats``; text formats also as .gz and .zst. By the
              file's ending unless given
    time      column | graph | predicate:IRI | filename:REGEX | field:NAME |     column, field:ts
              arrival (when it came here, by the clock)
    unit      ms | s | us | ns: of times that are numbers                        ms
    time_format  how times are written (``connectors.config.time_format``), in    ISO 8601
              columns and names of files
    zone      the time zone of times without one, in columns and names of files  UTC
    lateness  how far behind the largest event time an element may be            0
    element   line | subject | graph | blankline | document: what one is         line, document
    schema    k:integer;v:double, a mapping, or auto (tuple streams; due for CSV)
              name=$.path:type is a column under another name (``connectors.config.json_path``)
    iterator  items[*]: each element of that array is a row (JSON)                none: each line
    sign      the column of a relation that holds + or -: a row comes, or goes   none: all rows come
    separator the character between the fields of CSV                            ,
    unique    a promise that no triple repeats; it is not checked                false
    closed    element: a promise that no subject spans two elements of a window; then patterns of
              one subject are joined where they are read. It is checked: if a stream breaks it, its
              queries are suspended. trusted: the same promise without the check
    idle      how long a silent stream holds the others back                     for ever
    heartbeat how often silence is a sign of time, of streams that go by the     never
              clock: they are complete up to the beat, less the lateness
    max_future  how far ahead of the clock an event time may be                  a day
    mapping   a file that says which triples a row is: then the stream is RDF    none
    files     sequence | parallel: the files of a directory are one partition, or one each
    ahead     elements that a stream may run ahead of those of its queries        1,000,000
    from, to  event times [from, to); what is outside is no element
    limit     the most elements, counted after from and to
    region    where it comes from, of an engine that has regions                 anywhere
    start, lost, isolation, commit_group, tls, tls_ca, tls_cert, tls_key, sasl, user,
              password
              of streams of Kafka (``connectors.config.kafka_config``), which also have
              element=message and time=timestamp
    qos, retained, version, tls, tls_ca, tls_cert, tls_key, user, password
              of MQTT, server-sent events and WebSockets (``connectors.config.feed_config``), which
              also have element=message

Default values are at the right: of ``time`` for RDF and for tuples, of ``element`` for lines and
for documents.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

from levada.connectors.config.connector_options import check_messages, is_way, with_way
from levada.connectors.config.feed_config import FeedConfig
from levada.connectors.config.input_formats import (
    DOCUMENTS,
    JSON,
    NAMES,
    PUSH,
    QUADS,
    STDIN,
    TABLES,
    format_of,
)
from levada.connectors.config.json_path import (
    Steps,
    column_path,
    list_path,
    parse_iterator,
    split_alias,
)
from levada.connectors.config.kafka_config import KafkaConfig, hint_of
from levada.connectors.config.message_metadata import is_beside
from levada.connectors.config.stream_options import AUTO, CONVERTERS, FORMATS, say_one_of
from levada.connectors.config.time_format import UTC
from levada.core.event_time import UNITS
from levada.core.frozen import frozen
from levada.core.stream_facts import StreamFacts
from levada.errors import UsageError

if TYPE_CHECKING:
    from levada.connectors.config.row_mapping import RowMapping


@frozen
class StreamConfig:
    """A stream of files, made by ``from_options``. The module head explains each field; None means
    "not set".

    >>> config = StreamConfig.from_options("temp", "temp.nq.gz", time="graph", lateness="10s")
    >>> config.format, config.element, config.lateness, config.quads
    ('nq', 'line', 10000, True)
    """

    name: str
    path: str
    format: str
    time: str = "column"
    unit: str = "ms"
    time_format: str = ""
    zone: str = UTC
    lateness: int = 0
    element: str = "line"
    schema: tuple[tuple[str, str], ...] = ()
    paths: tuple[tuple[str, str], ...] = ()
    iterator: str = ""
    sign: str = ""
    separator: str = ","
    unique: bool = False
    closed: bool = False
    trusted: bool = False
    idle: int | None = None
    heartbeat: int | None = None
    max_future: int | None = None
    files: str = "sequence"
    ahead: int = 1_000_000
    from_: int | None = None
    to: int | None = None
    limit: int | None = None
    region: str = ""
    mapping: RowMapping | None = None
    kafka: KafkaConfig | None = None
    feed: FeedConfig | None = None
    settled: bool = (
        False  # whether a file is complete when it appears (internal: for a spool's files)
    )

    @classmethod
    def from_options(cls, name: str, path: str | os.PathLike[str], **options: Any) -> StreamConfig:
        """Makes the stream ``name`` at ``path`` (file, directory or glob) with options by their
        words.

        ``from`` may be spelled ``from_``. Values may be texts or the values of YAML. Raises
        ``UsageError``.
        """
        if not name or not str(path):
            raise UsageError("A stream needs a name and a path.", hint="Say NAME=PATH.")
        values: dict[str, Any] = {}
        for key, value in options.items():
            word = "from" if key == "from_" else key
            if word not in CONVERTERS:
                raise UsageError(
                    f"The stream {name} has no option {key}.", hint=hint_of(key, CONVERTERS)
                )
            if value is not None:
                values["from_" if word == "from" else word] = _convert(name, word, value)
        location = os.path.expanduser(os.fspath(path))
        values = with_way(name, location, values)
        values["format"] = values.get("format") or format_at(name, location, values)
        if values["format"] in TABLES and values.get("time", "column") == "column":
            values["time"] = "field:ts"
        if values["format"] in DOCUMENTS:
            values.setdefault("element", "document")
        if (mapping := values.get("mapping")) and mapping.iterator not in ("", "$"):
            values.setdefault("iterator", mapping.iterator)
        if schema := values.get("schema"):
            pairs = [(*split_alias(column), kind) for column, kind in schema]
            values["schema"] = tuple((column, kind) for column, _, kind in pairs)
            values["paths"] = tuple((column, path) for column, path, _ in pairs if column != path)
        if (
            (sign := values.get("sign"))
            and (schema := values.get("schema"))
            and schema != AUTO
            and sign not in dict(schema)
        ):
            values["schema"] = (*schema, (sign, "string"))
        check_messages(name, values)
        if closed := values.get("closed"):
            values |= {"closed": True, "trusted": closed == "trusted"}
        else:
            values["closed"] = False
        config = cls(name, location, **values)
        _check(config)
        return config

    @property
    def facts(self) -> StreamFacts:
        """The facts about the stream that plans depend on."""
        columns = self.columns if self.tabular else None
        return StreamFacts(columns, self.unique, self.time_column, self.closed, self.sign)

    def check_once(self) -> None:
        """Raises ``UsageError`` for a feed of which ``once`` cannot find the end."""
        if self.feed is not None and self.idle is None:
            raise UsageError(
                f"The stream {self.name} has no end, so --once cannot tell when it is over.",
                hint="Say idle=5s: it is over when nothing has come for so long. Or leave --once.",
            )

    @property
    def tabular(self) -> bool:
        """Whether the elements are rows of a schema (else graphs)."""
        return self.format in TABLES and self.mapping is None

    @property
    def undecided(self) -> bool:
        """Whether the columns of a table are still to be inferred (``schema=auto``)."""
        return self.schema == AUTO

    @property
    def header(self) -> tuple[str, ...]:
        """The names of the columns of CSV without a header; empty: it has one. Messages have the
        columns of the schema and, if that does not contain it, the time's.
        """
        if self.mapping is not None or not self.messages:
            return () if self.mapping is None else self.mapping.header
        said, names, field = self.beside_columns, tuple(dict(self.schema)), self.time_field
        whole = names if field is None or field in names else (*names, field)
        return tuple(name for name in whole if name not in said)

    @property
    def messages(self) -> bool:
        """Whether the stream consists of messages."""
        return self.kafka is not None or self.feed is not None

    @property
    def steps(self) -> Steps | None:
        """The steps of the iterator; None without one."""
        return parse_iterator(self.iterator) if self.iterator else None

    def path_of(self, column: str) -> str:
        """Returns the path of a column of nested data, usually its name."""
        return dict(self.paths).get(column, column)

    @property
    def beside_columns(self) -> tuple[str, ...]:
        """The columns that are metadata of a message, such as its topic."""
        names = dict.fromkeys([*dict(self.read_columns), self.time_field or ""])
        if self.kafka is not None:
            return tuple(filter(is_beside, names))
        return () if self.feed is None else tuple(self.feed.metadata_columns(names))

    @property
    def read_columns(self) -> tuple[tuple[str, str], ...]:
        """The columns to read from a table, with their types, without that of the event time."""
        return self.schema if self.mapping is None else tuple(self.mapping.needed_columns.items())

    @property
    def time_field(self) -> str | None:
        """The column of a table with the event times; None if no column of the data has them."""
        made = () if self.mapping is None else dict(self.mapping.let)
        return (
            self.time_argument
            if self.time_kind == "field" and self.time_argument not in made
            else None
        )

    @property
    def quads(self) -> bool:
        """Whether statements may contain a graph."""
        return self.format in QUADS or (self.mapping is not None and self.mapping.has_graphs)

    @property
    def timed(self) -> bool:
        """Whether each line carries its time as a further term."""
        return self.time == "column"

    @property
    def unit_power(self) -> int:
        """The unit of numbers as a power of ten, in milliseconds."""
        return {"s": 3, "ms": 0, "us": -3, "ns": -6}[self.unit]

    @property
    def future_ms(self) -> int:
        """The largest distance of an event time ahead of the clock, ms."""
        return UNITS["d"] if self.max_future is None else self.max_future

    @property
    def time_kind(self) -> str:
        """``column``, ``graph``, ``predicate``, ``filename``, ``field`` or ``timestamp``."""
        return self.time.partition(":")[0]

    @property
    def time_argument(self) -> str:
        """The text after the colon: a predicate's IRI, a regular expression, a field's name."""
        return self.time.partition(":")[2]

    @property
    def time_column(self) -> str | None:
        """The column of a tuple stream whose values are the event times: an integer field in ms."""
        plain = self.unit == "ms" and not self.time_format
        name = self.time_argument if self.time_kind == "field" and plain else ""
        return name if dict(self.schema).get(name) == "integer" else None

    @property
    def columns(self) -> dict[str, str]:
        """The columns that queries see, with their types: those of the schema without the sign."""
        return {column: kind for column, kind in self.schema if column != self.sign}

    @property
    def bounded(self) -> bool:
        """Whether ``from`` or ``to`` cuts the stream."""
        return self.from_ is not None or self.to is not None

    @property
    def partitioned(self) -> bool:
        """Whether the stream has source partitions of its own."""
        return self.files == "parallel" or self.kafka is not None

    @property
    def documents(self) -> bool:
        """Whether each file, or message, is an RDF document, which one task reads completely."""
        return self.format in DOCUMENTS

    @property
    def whole_files(self) -> bool:
        """Whether a file is read completely or not at all: such files do not grow by lines."""
        whole = self.documents or self.format in ("parquet", "json")
        return self.element == "document" or whole

    @property
    def guessed(self) -> bool:
        """Whether the driver can only guess how many elements a file has."""
        return self.format == "json" or (self.documents and self.element != "document")

    @property
    def counted_late(self) -> bool:
        """Whether only a task can count the elements for the limit: with from and to, with an
        iterator, and in documents.
        """
        return self.limit is not None and (self.bounded or bool(self.iterator) or self.guessed)


def _convert(name: str, key: str, value: Any) -> Any:
    try:
        return CONVERTERS[key](value)
    except UsageError as error:
        raise UsageError(f"{key} of the stream {name}: {error.message}", hint=error.hint) from error


Rule = tuple[bool, str, str]  # whether it is violated, the error, the hint


def _check(config: StreamConfig) -> None:
    """Checks the relations between options. Raises one ``UsageError`` for a fault."""
    for broken, message, hint in chain(*(check(config) for check in _CHECKS)):
        if broken:
            raise UsageError(f"The stream {config.name}: {message}", hint=hint)
    if config.format in JSON:
        _check_paths(config)


def _check_paths(config: StreamConfig) -> None:
    """Checks that every column that is a path can be read."""
    names = [*dict(config.read_columns), *([config.time_field] if config.time_field else [])]
    said = config.beside_columns
    lists = config.mapping is not None and config.mapping.is_rml
    for name in names:
        if name not in said and not (lists and list_path(name)):
            try:
                column_path(config.path_of(name), config.steps or ())
            except UsageError as error:
                message = f"The stream {config.name}: {error.message}"
                raise UsageError(message, hint=error.hint) from error


def _check_tables(config: StreamConfig) -> Iterator[Rule]:
    """Checks the options that tables need, and those for tables alone."""
    tuples, kind = config.format in TABLES, config.time_kind
    yield from (
        (
            tuples and kind in ("graph", "predicate"),
            f"time={kind} is for RDF streams.",
            "Say time=field:NAME.",
        ),
        (
            tuples and config.element not in ("line", "message"),
            "the elements of a table are its rows.",
            "Leave element= out.",
        ),
        (
            config.format in ("csv", *JSON) and not config.schema and config.mapping is None,
            f"{NAMES[config.format]} needs a schema.",
            "Say schema=auto, schema=k:integer;v:double, or mapping=FILE for RDF.",
        ),
        (
            not tuples and bool(config.schema),
            f"a schema is for {', '.join(TABLES)}.",
            "Leave schema= out.",
        ),
        (
            not tuples and kind == "field",
            f"time=field is for {', '.join(TABLES)}.",
            "Say time=column or predicate:IRI.",
        ),
        (
            kind not in ("field", "filename") and (bool(config.time_format) or config.zone != UTC),
            "time_format and zone are for a column of a table and for the name of a file.",
            "Leave them out: a time in an RDF term that names no zone is UTC.",
        ),
        (
            bool(config.iterator) and config.format not in JSON,
            "an iterator is for NDJSON and JSON.",
            "Leave iterator= out.",
        ),
        (
            bool(config.paths) and config.format not in JSON,
            "a column under another name (name=$.path) is for NDJSON and JSON.",
            "Say the names of the columns.",
        ),
        (
            config.separator != "," and config.format != "csv",
            "a separator is for csv.",
            "Leave separator= out.",
        ),
        (
            bool(config.sign)
            and (not tuples or dict(config.schema).get(config.sign, "string") != "string"),
            f"the sign {config.sign} is no string column of a tuple stream.",
            "Say sign=COLUMN, where the column holds + or -.",
        ),
    )


def _check_mapping(config: StreamConfig) -> Iterator[Rule]:
    """Checks the mapping with the format."""
    if config.mapping is None:
        return
    is_json = config.format in JSON
    yield from (
        (bool(config.schema), "the mapping says the columns, too.", "Leave schema= out."),
        (
            config.format not in TABLES,
            f"a mapping is for {', '.join(TABLES)}.",
            "Leave mapping= out.",
        ),
        (
            config.mapping.is_rml and config.mapping.is_csv == is_json,
            f"the references of the mapping are not those of {NAMES[config.format]}.",
            "Say rml:CSV for CSV and Parquet, rml:JSONPath for JSON.",
        ),
    )


def _check_elements(config: StreamConfig) -> Iterator[Rule]:
    """Checks the options of elements and their times."""
    tuples, kind = config.format in TABLES, config.time_kind
    yield from (
        (
            config.documents and kind == "column",
            f"the statements of {NAMES[config.format]} carry no times.",
            "Say time=filename:REGEX or time=predicate:IRI"
            + (" or time=graph." if config.quads else "."),
        ),
        (
            config.documents and config.element == "blankline",
            "element=blankline is for lines.",
            "Say element=document, subject or graph.",
        ),
        (
            kind == "predicate" and config.element == "line",
            "time=predicate needs elements of more than a line.",
            say_one_of(("subject", "graph", "blankline", "document"), "element="),
        ),
        (
            not tuples and not config.quads and "graph" in (kind, config.element),
            "time=graph and element=graph need quads.",
            "Say format=nq, trig, jsonld or jelly.",
        ),
        (
            config.closed and config.element == "line",
            "closed=element needs elements of more than a line.",
            say_one_of(("subject", "graph", "document"), "element="),
        ),
        (
            config.limit is not None and config.files == "parallel",
            "limit= needs one order of the elements.",
            "Say files=sequence.",
        ),
        (
            config.from_ is not None and config.to is not None and config.from_ >= config.to,
            "from is not before to.",
            "",
        ),
    )


_CHECKS = (_check_tables, _check_mapping, _check_elements)

# Detects the format of a stream without ``format=``: by the extensions of its files, else by its
# other options.


_PREFERRED = (
    "nq",
    "nt",
    "trig",
    "ttl",
    "jsonld",
    "rdf",
    "jelly",
    "csv",
    "ndjson",
    "json",
    "parquet",
)


def format_at(name: str, path: str, values: Mapping[str, Any]) -> str:
    """Returns the format by extension; of a directory by its files, else by the other options."""
    if not is_way(path) and (path_format := format_of(path)):
        return path_format
    if path == STDIN:
        return "nt"
    if path == PUSH:
        return "ndjson" if "schema" in values or "mapping" in values else "nq"
    if os.path.isdir(path):
        endings = {format_of(entry) for entry in os.listdir(path) if not entry.startswith(".")}
        if known := [word for word in _PREFERRED if word in endings]:
            return known[0]
        if "schema" in values:
            return "csv"
        return "nq" if "graph" in (values.get("time"), values.get("element")) else "nt"
    if is_way(path):
        raise UsageError(
            f"The stream {name}: messages do not say their format.",
            hint="Say format=nq, for example.",
        )
    raise UsageError(
        f"The format of the stream {name} does not show in its path {path}.",
        hint=say_one_of(FORMATS, "format="),
    )
