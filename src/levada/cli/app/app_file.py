"""The app file: a whole application in YAML, and the ``App`` that it or the command line becomes.

    functions: ["rooms:comfort"]    # of Python, as module:name
    streams:
      http://example.org/temp: {path: temp.nt.gz, lateness: 10s}
    static:
      - {path: rooms.ttl, graph: http://example.org/rooms}
    tables: {sensors: sensors.csv}
    queries:
      hot: {file: hot.rq, to: "kafka://127.0.0.1:9092/hot"}
      pairs: {dialect: cql, text: "Istream(Select ...)", t0: 2013-01-01T00:00:00Z}
      "warm-{{sensor}}": {file: warm.rq, each: sensors.csv}    # a query for each row
    options: {out: results, format: ndjson, epoch: 1s}

Invariant: an ``App`` is valid from birth. The loader resolves relative paths against the file's
folder. Every wrong key or value is a ``UsageError`` with its place (``streams.temp.lateness``), the
valid words and the nearest one. Options of a query override those of the application. Cost: linear
in the file.
"""

from __future__ import annotations

import datetime
import io
import os
from collections.abc import Callable, Mapping
from dataclasses import field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, cast, get_args

from levada.checkpoint.object_store.store_url import Address
from levada.checkpoint.send_graph_options import check_slices
from levada.connectors.config.connector_options import is_way
from levada.connectors.config.input_formats import PUSH, RDF, STDIN, word_of
from levada.connectors.config.kafka_config import TLS_FILES, is_kafka
from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.config.stream_options import OPTIONS
from levada.connectors.serialization.result_formats import SHAPES, Format, check_stdout, meant
from levada.connectors.sources.file_errors import encoding_fault
from levada.core.checkpoint_files import MODES
from levada.core.durable_files import read_bounded
from levada.core.event_time import parse_duration, parse_time
from levada.core.frozen import frozen
from levada.core.integer_options import check_partitions, parse_count
from levada.core.names import check_query_name, check_stream_name, is_iri
from levada.core.query_limits import MOST_ROWS, check_limits, check_memory
from levada.core.user_functions import declare_places
from levada.engine.query_request import QueryRequest
from levada.errors import UsageError, near
from levada.language.dialects.detect import DIALECTS, dialect_of, dialect_of_ending
from levada.plan.execution.joins import JoinForm
from levada.plan.logical.ontology_schema import Regime
from levada.plan.logical.query_options import (
    WORDS,
    Bounds,
    QueryOptions,
    lifetime_of,
    narrow_options,
    options_of,
    region_of,
    report_policy,
    until_of,
)
from levada.plan.sharing.sharing_modes import OFFERED
from levada.runtime.spark.spark_settings import check_conf

if TYPE_CHECKING:
    from levada.connectors.config.table_config import TableConfig
    from levada.runtime.rebalancing.rebalancing_options import BalanceOptions


# The readers of values in an app file. Each checks a value; its ``UsageError`` names the place
# (``streams.temp.lateness``).


def mapping_at(value: Any, place: str, known: tuple[str, ...] | None = None) -> dict[str, Any]:
    """Returns a mapping with text keys, which must be in ``known`` unless that is None. None
    becomes the empty mapping.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise wrong_value(place or "The app file", "a mapping", value)
    for key in value:
        if not isinstance(key, str):
            raise UsageError(
                f"{join_place(place, str(key))}: a key is a text.", hint=f'Write "{key}" in quotes.'
            )
        if known is not None and key not in known:
            raise UsageError(f"{join_place(place, key)} is not an option.", hint=near(key, known))
    return dict(value)


def list_at(value: Any, place: str) -> list[Any]:
    """Returns a list; None becomes the empty list."""
    if value is None:
        return []
    if not isinstance(value, list):
        raise wrong_value(place, "a list", value)
    return value


def join_place(place: str, key: str) -> str:
    """Returns the place of a key within a place."""
    return f"{place}.{key}" if place else key


def wrong_value(place: str, expected: str, value: Any) -> UsageError:
    """Returns the error for a value of another kind than ``expected``."""
    return UsageError(f"{place} is {expected}, not {value!r}.")


def with_place(place: str, make: Callable[[], Any]) -> Any:
    """Returns the value of ``make``; adds the place to its usage errors."""
    try:
        return make()
    except UsageError as error:
        raise UsageError(f"{place}: {error.message}", hint=error.hint) from error


def duration_at(value: Any, place: str) -> int:
    """Returns a duration in ms."""
    return cast(int, with_place(place, lambda: parse_duration(value)))


def plain_time(value: Any) -> Any:
    """Converts a date of YAML to ISO text; returns other values unchanged."""
    return value.isoformat() if isinstance(value, datetime.date) else value


def time_at(value: Any, place: str) -> int:
    """Returns an instant in ms."""
    if isinstance(value, bool) or not isinstance(value, (str, int, datetime.date)):
        raise wrong_value(place, "a time", value)
    return cast(int, with_place(place, lambda: parse_time(value)))


def until_at(value: Any, place: str) -> int:
    """Returns the last instant of a query's reports, in ms."""
    return cast(int, with_place(place, lambda: until_of(time_at(value, place))))


def lifetime_at(value: Any, place: str) -> int:
    """Returns the lifetime of a query in ms."""
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise wrong_value(place, "a duration", value)
    return cast(int, with_place(place, lambda: lifetime_of(value)))


def limits_at(value: Any, place: str) -> str:
    """Returns the limits of a query as text."""
    text = text_at(value, place)
    return cast(str, with_place(place, lambda: check_limits(text)))


def slice_at(value: Any, place: str) -> str:
    """Returns the slices in which sent rows are counted, as text."""
    text = text_at(value, place)
    return cast(str, with_place(place, lambda: check_slices(text)))


def memory_at(value: Any, place: str) -> str:
    """Returns the memory limit of a task as text."""
    text = text_at(value, place)
    return cast(str, with_place(place, lambda: check_memory(text)))


def read_required(options: Mapping[str, Any], key: str, place: str) -> Any:
    """Returns the value of a required key."""
    if options.get(key) is None:
        raise UsageError(f"{place} needs a {key}.")
    return options[key]


def text_at(value: Any, place: str) -> str:
    """Returns a text that is not empty."""
    if not isinstance(value, str) or not value:
        raise wrong_value(place, "a text", value)
    return value


def texts_at(value: Any, place: str) -> list[str]:
    """Returns a text or a list of texts as a list."""
    return [text_at(item, place) for item in (value if isinstance(value, list) else [value])]


def conf_at(value: Any, place: str) -> dict[str, str]:
    """Returns settings of Spark by name. Numbers and booleans become texts as Spark has them."""
    if not isinstance(value, dict):
        raise wrong_value(place, "settings of Spark by name", value)
    conf = {str(k): str(v).lower() if isinstance(v, bool) else str(v) for k, v in value.items()}
    return cast(dict[str, str], with_place(place, lambda: check_conf(conf)))


def contexts_at(value: Any, place: str) -> dict[str, str]:
    """Returns the files of JSON-LD contexts by URL."""
    files = mapping_at(value, place)
    return {url: text_at(file, join_place(place, url)) for url, file in files.items()}


def flag_at(value: Any, place: str) -> bool:
    """Returns a boolean."""
    if not isinstance(value, bool):
        raise wrong_value(place, "true or false", value)
    return value


def count_at(value: Any, place: str) -> int:
    """Returns a positive number, which may be a text such as ``100k``."""
    if isinstance(value, str):
        return cast(int, with_place(place, lambda: parse_count(value, "the number")))
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise wrong_value(place, "a positive number", value)
    return value


def balance_at(value: Any, place: str) -> BalanceOptions | bool:
    """Returns the options of balance; False: it is off, also where the default is on."""
    # imported here: only a run with balance needs the runtime
    from levada.runtime.rebalancing.rebalancing_options import balance_of

    options: BalanceOptions | None = with_place(place, lambda: balance_of(value))
    return options or False


def one_of(
    words: tuple[str, ...], hint_of: Callable[[str, tuple[str, ...]], str] = near
) -> Callable[[Any, str], str]:
    """Returns a reader of one of these words. ``hint_of`` makes the hint for another word."""

    def read(value: Any, place: str) -> str:
        if value not in words:
            hint = hint_of(value, words) if isinstance(value, str) else ""
            said = f"{', '.join(words[:-1])} or {words[-1]}"
            raise UsageError(f"{place} is {said}, not {value!r}.", hint=hint)
        return str(value)

    return read


def region_at(value: Any, place: str) -> str:
    """Returns the regions of a query as text."""
    text = text_at(value, place)
    return cast(str, with_place(place, lambda: region_of(text)))


def policy_at(value: Any, place: str) -> str:
    """Returns a report policy as text."""
    with_place(place, lambda: report_policy(value))
    return str(value)


FORMATS = tuple(map(str, Format))
STDOUT = "-"
_FIELDS = {"as": "shape"}


@frozen
class StaticSource:
    """A file of static RDF.

    ``graph``: the graph of all its triples; None: the graphs in the file. ``format`` None: by the
    file's extension. ``reload``: the file is read again whenever it changes.
    """

    path: str
    graph: str | None = None
    format: str | None = None
    reload: bool = False


class To(NamedTuple):
    """A further output of a query's reports: a URL and its options
    (``connectors.sinks.sink_url``).
    """

    url: str
    options: Mapping[str, Any]


@frozen
class QuerySource:
    """A query's text and the options in its own entry, by the words of
    ``plan.logical.query_options.WORDS``. The application supplies the other options. ``to``: its
    outputs.
    """

    name: str
    text: str
    dialect: str | None = None
    said: Mapping[str, Any] = field(default_factory=dict)
    to: tuple[To, ...] = ()

    @property
    def spoken(self) -> str:
        """Returns the dialect of the text: ``dialect``, or the one that the text shows."""
        return dialect_of(self.text, self.dialect).name


@frozen
class Options:
    """The options of the whole application.

    ``epoch``: the least time between the starts of two epochs in ms (None: by the cost of epochs, a
    second with files as output, a quarter of a delay; 0: at once). ``epoch_rows``: the most
    elements in one. ``delay``: the latency to keep, ms. ``max_rows``: the most rows of an operator
    in an epoch. ``limits``: of one query. ``max_future``: how far ahead of the clock event times
    may be, ms, for streams without the option. ``memory``: of a task. ``partitions``: a number,
    auto or cores. ``slice``: how sent rows are counted. ``sharing``, ``join``: words of ``Sharing``
    and ``JoinForm``. ``regions``: names, or a machine file. ``place``: a placement,
    learn or off. ``checkpoint_mode``: a word of ``MODES``. ``balance``: its thresholds.
    ``out``: a folder, or ``-``. ``roll``: how long results are held back, ms. ``terms``: tables
    contain N-Triples texts. ``letters_to``: a further place of letters. ``shape``: changes or
    state. ``ontology``: its files; () means the static data. ``spark_conf``: settings of Spark.
    ``contexts``: the file of each JSON-LD context. ``said``: options for queries that lack them, by
    ``WORDS``.
    """

    out: str = STDOUT
    format: str = "ndjson"
    roll: int = 0
    terms: bool = False
    shape: str = "changes"
    checkpoint: str | None = None
    master: str | None = None
    epoch: int | None = None
    epoch_rows: int = 1_000_000
    delay: int | None = None
    max_rows: int = MOST_ROWS
    max_future: int | None = None
    limits: str = ""
    memory: str = ""
    partitions: int | str | None = None
    slice: str = ""
    place: str = ""
    checkpoint_mode: str = ""
    balance: BalanceOptions | bool | None = None
    sharing: str = ""
    join: str = JoinForm.BINARY
    regions: str = ""
    summary: str | None = None
    letters_to: To | None = None
    ontology: tuple[str, ...] = ()
    spark_conf: Mapping[str, str] = field(default_factory=dict)
    contexts: Mapping[str, str] = field(default_factory=dict)
    said: Mapping[str, Any] = field(default_factory=dict)

    def merge(self, options: Mapping[str, Any]) -> Options:
        """Returns these options with some replaced, and with the words for queries among them in
        ``said``.
        """
        words = {word: value for word, value in options.items() if word in WORDS}
        others = {_FIELDS.get(n, n): value for n, value in options.items() if n not in WORDS}
        return replace(self, **others, said=narrow_options(self.said, words))


@frozen
class App:
    """An application: its streams, static data, queries and options."""

    streams: tuple[StreamConfig, ...] = ()
    static: tuple[StaticSource, ...] = ()
    queries: tuple[QuerySource, ...] = ()
    options: Options = field(default_factory=Options)
    tables: tuple[TableConfig, ...] = ()

    def query_options(self, query: QuerySource) -> QueryOptions:
        """Returns the options of a query: those of its own entry before those of the application.

        >>> app = App(options=Options(said={"t0": 5, "bounds": "(]"}))
        >>> app.query_options(QuerySource("q", "", said={"t0": 7})).t0
        7
        """
        return options_of(narrow_options(self.options.said, query.said))

    def merge(self, other: App) -> App:
        """Returns this application with the streams, static data and queries of another after its
        own. The options of this one remain. Raises ``UsageError`` if a stream or a query is
        repeated.
        """
        both = replace(
            self,
            streams=self.streams + other.streams,
            static=self.static + other.static,
            tables=self.tables + other.tables,
            queries=self.queries + other.queries,
        )
        _check_once("stream", [stream.name for stream in both.streams])
        _check_once("table", [table.name for table in both.tables])
        _check_once("query", [query.name for query in both.queries])
        return both

    def check_output(self) -> None:
        """Checks that standard output, if it is the output, accepts the format. Raises
        ``UsageError``.
        """
        if self.options.out == STDOUT:
            if self.options.roll:
                raise UsageError("roll is for files.", hint="Say --out DIR, or leave --roll out.")
            if self.options.shape == "state":
                raise UsageError("A state is a file.", hint="Say --out DIR with --as state.")
            check_stdout(Format(self.options.format), len(self.queries))


def _check_once(kind: str, names: list[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            hint = f"Give one {kind} another name."
            raise UsageError(f"The {kind} {name} is there twice.", hint=hint)
        seen.add(name)


_SECTIONS = ("functions", "streams", "static", "tables", "queries", "options")


def load_app(path: Path) -> App:
    """Reads an app file. Raises ``UsageError``."""
    from levada.connectors.config.yaml_file import read_yaml  # here: only app files need it

    document = read_yaml(path, "app file")
    sections = mapping_at(document, "", _SECTIONS)
    base = path.parent
    functions = list_at(sections.get("functions"), "functions")
    wanted = [text_at(place, f"functions[{i}]") for i, place in enumerate(functions)]
    with_place("functions", lambda: declare_places(wanted, [str(base.absolute())]))
    streams = mapping_at(sections.get("streams"), "streams")
    queries = mapping_at(sections.get("queries"), "queries")
    app = App(
        streams=tuple(_stream(base, name, value) for name, value in streams.items()),
        static=tuple(
            _static(base, i, value)
            for i, value in enumerate(list_at(sections.get("static"), "static"))
        ),
        tables=tuple(
            _table(base, name, value)
            for name, value in mapping_at(sections.get("tables"), "tables").items()
        ),
        queries=tuple(q for name, value in queries.items() for q in _queries(base, name, value)),
        options=_options(base, sections.get("options")),
    )
    return app.merge(App())


def _stream(base: Path, name: str, value: Any) -> StreamConfig:
    place = join_place("streams", name)
    options = mapping_at(value, place, ("path", *OPTIONS))
    path = read_required(options, "path", place)
    elsewhere = path in (STDIN, PUSH) or is_way(str(path))
    path = path if elsewhere else _path(base, join_place(place, "path"), path)
    values = {key: plain_time(option) for key, option in options.items() if key != "path"}
    for key in values.keys() & {"mapping", *TLS_FILES}:
        values[key] = _path(base, join_place(place, key), values[key])
    stream = with_place(
        place, lambda: StreamConfig.from_options(check_stream_name(name), path, **values)
    )
    return cast(StreamConfig, stream)


def _static(base: Path, index: int, value: Any) -> StaticSource:
    place = f"static[{index}]"
    if isinstance(value, str):
        return StaticSource(_path(base, place, value))
    options = mapping_at(value, place, ("path", *_STATIC_VALUES))
    path = _path(base, place, read_required(options, "path", place))
    return StaticSource(path, **_values(options, place, _STATIC_VALUES))


def _table(base: Path, name: str, value: Any) -> TableConfig:
    from levada.connectors.config.table_config import (  # here: few files have tables
        TABLE_OPTIONS,
        TableConfig,
    )

    place = join_place("tables", name)
    options = {"path": value} if isinstance(value, str) else value
    said = mapping_at(options, place, ("path", *TABLE_OPTIONS))
    source = read_required(said, "path", place)
    if "://" not in str(source):
        source = _path(base, join_place(place, "path"), source)
    values = {key: option for key, option in said.items() if key != "path"}
    table = with_place(place, lambda: TableConfig.from_options(name, source, **values))
    return cast("TableConfig", table)


def check_graph(text: str) -> str:
    """Returns a graph's IRI without angle brackets. Raises ``UsageError``."""
    bare = text[1:-1] if text.startswith("<") and text.endswith(">") else text
    if not is_iri(bare):
        raise UsageError(f"{text!r} is not an absolute IRI, as a graph's name is.")
    return bare


def _queries(base: Path, name: str, value: Any) -> list[QuerySource]:
    """Returns a query, or one for each row of a table."""
    place = join_place("queries", name)
    if not isinstance(value, Mapping) or "each" not in value:
        with_place(place, lambda: check_query_name(name))
        return [_query(base, name, value)]
    from levada.engine.templates.query_per_row import (
        RowQueryTemplate,  # imported here: few files have tables
    )

    table = _path(base, join_place(place, "each"), value["each"])
    one = _query(base, name, {key: said for key, said in value.items() if key != "each"})
    each = RowQueryTemplate(one.text, name, one.dialect)
    asked = cast(
        list[QueryRequest],
        with_place(place, lambda: each.make_requests(table, QueryOptions(), str)),
    )
    return [replace(one, name=query.name, text=query.text) for query in asked]


def _query(base: Path, name: str, value: Any) -> QuerySource:
    place = join_place("queries", name)
    options = mapping_at(value, place, ("file", "text", "to", *_QUERY_VALUES))
    if ("file" in options) == ("text" in options):
        raise UsageError(f"{place} needs one of file and text.")
    values = _values(options, place, _QUERY_VALUES)
    dialect = values.pop("dialect", None)
    to = _outputs(base, options.get("to"), join_place(place, "to"))
    if "text" in options:
        return QuerySource(
            name, text_at(options["text"], join_place(place, "text")), dialect, values, to
        )
    file = Path(_path(base, join_place(place, "file"), options["file"]))
    return replace(read_query(file, dialect), name=name, said=values, to=to)


def _outputs(base: Path, value: Any, place: str) -> tuple[To, ...]:
    """Reads a URL, a mapping with a ``url``, or a list of these."""
    several = list_at(value, place) if isinstance(value, list) else [value] * (value is not None)
    return tuple(_output(base, each, place) for each in several)


def _output(base: Path, value: Any, place: str) -> To:
    if isinstance(value, str):
        return To(value, {})
    options = mapping_at(value, place)
    url = text_at(read_required(options, "url", place), join_place(place, "url"))
    values = {key: option for key, option in options.items() if key != "url"}
    for key in values.keys() & (TLS_FILES if is_kafka(url) else ()):
        values[key] = _path(base, join_place(place, key), values[key])
    return To(url, values)


MAX_QUERY_BYTES = 64_000_000


def read_query(file: Path, dialect: str | None = None) -> QuerySource:
    """Reads the query of a file and names it after the file. ``dialect`` None: by the file's
    extension, if it has one of a dialect.

    Raises ``UsageError`` if the file cannot be read. The name is not checked here.
    """
    try:
        data = read_bounded(file, MAX_QUERY_BYTES)
        if fault := encoding_fault(data):
            raise UsageError(f"The query file {file} cannot be read. {fault}")
        # some editors write a byte order mark
        text = io.StringIO(data.decode("utf-8-sig"), newline=None).read()
    except OSError as error:
        raise UsageError(f"The query file {file} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"The query file {file} is not UTF-8.") from error
    return QuerySource(file.stem, text, dialect or dialect_of_ending(file.suffix))


def _options(base: Path, value: Any) -> Options:
    values = _values(mapping_at(value, "options", tuple(_OPTION_VALUES)), "options", _OPTION_VALUES)
    files = enumerate(values.get("ontology", ()))
    values["ontology"] = tuple(_path(base, f"options.ontology[{i}]", file) for i, file in files)
    if "contexts" in values:
        values["contexts"] = {
            url: _path(base, join_place("options.contexts", url), file)
            for url, file in values["contexts"].items()
        }
    if "letters_to" in values:
        values["letters_to"] = _output(base, values["letters_to"], "options.letters_to")
    stored = Address.parse(values.get("checkpoint", ""))
    for name in ("out", "summary") if stored else ("out", "checkpoint", "summary"):
        if name in values and values[name] != STDOUT:
            values[name] = _path(base, join_place("options", name), values[name])
    return Options().merge(values)


def _values(
    options: Mapping[str, Any], place: str, readers: Mapping[str, Callable[[Any, str], Any]]
) -> dict[str, Any]:
    return {
        key: readers[key](value, join_place(place, key))
        for key, value in options.items()
        if key in readers and value is not None
    }


def _path(base: Path, place: str, value: Any) -> str:
    """Resolves a path of the app file against the file's folder."""
    return str(base / os.path.expanduser(text_at(value, place)))


_STATIC_VALUES: dict[str, Callable[[Any, str], Any]] = {
    "graph": lambda value, place: check_graph(text_at(value, place)),
    "format": lambda value, place: one_of(RDF)(word_of(text_at(value, place)), place),
    "reload": flag_at,
}
_WORD_VALUES: dict[str, Callable[[Any, str], Any]] = {
    "bounds": one_of(get_args(Bounds)),
    "t0": time_at,
    "report": policy_at,
    "empty_reports": flag_at,
    "until": until_at,
    "lifetime": lifetime_at,
    "entailment": one_of(tuple(map(str, Regime))),
    "region": region_at,
}
assert tuple(_WORD_VALUES) == WORDS, "each word has a reader"
_QUERY_VALUES = {"dialect": one_of(tuple(DIALECTS)), **_WORD_VALUES}
_OPTION_VALUES: dict[str, Callable[[Any, str], Any]] = {
    "format": one_of(FORMATS, lambda word, _: meant(word)),
    "terms": flag_at,
    "letters_to": lambda value, place: value,
    "as": one_of(SHAPES),
    **dict.fromkeys(("roll", "epoch", "delay", "max_future"), duration_at),
    **dict.fromkeys(("epoch_rows", "max_rows"), count_at),
    "limits": limits_at,
    "memory": memory_at,
    "partitions": lambda value, place: with_place(place, lambda: check_partitions(value)),
    "slice": slice_at,
    **dict.fromkeys(("checkpoint", "master", "out", "place", "regions", "summary"), text_at),
    "checkpoint_mode": one_of(tuple(MODES)),
    "balance": balance_at,
    "sharing": one_of(tuple(map(str, OFFERED))),
    "join": one_of(tuple(map(str, JoinForm))),
    "ontology": texts_at,
    "spark_conf": conf_at,
    "contexts": contexts_at,
    **_WORD_VALUES,
}
