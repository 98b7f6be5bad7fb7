"""The app file: a whole application in YAML, and the value that it or the command line becomes.

    streams:
      http://example.org/temp: {path: temp.nt.gz, lateness: 10s}
    static:
      - {path: rooms.ttl, graph: http://example.org/rooms}
    queries:
      hot: {file: hot.rq}
      pairs: {dialect: cql, text: "Istream(Select ...)", t0: 2013-01-01T00:00:00Z}
    options: {out: results, format: ndjson, epoch: 1s}

Invariant: an ``App`` is valid from birth; paths are those of the process (the loader resolves
relative ones against the file's folder). Every wrong key or value is a ``UsageError`` that says
where (``streams.temp.lateness``), what there is, and the near misses. Options of a query win over
those of the application. Cost: linear in the file.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, cast, get_args

from levada.algebra.options import WORDS, Bounds, QueryOptions, options_of, report_policy
from levada.algebra.schema import Regime
from levada.emission.formats import SHAPES, Format, check_stdout, meant
from levada.errors import UsageError, near
from levada.model.durations import parse_duration, parse_time
from levada.model.limits import MOST_ROWS
from levada.model.names import check_query_name, check_stream_name, is_iri
from levada.streams.formats import RDF, word_of
from levada.streams.options import OPTIONS
from levada.streams.stream_config import STDIN, StreamConfig
from levada.syntax.dialects.recognise import DIALECTS, dialect_of, dialect_of_ending

FORMATS = tuple(map(str, Format))
STDOUT = "-"
_FIELDS = {"as": "shape"}


@dataclass(frozen=True, slots=True)
class StaticSource:
    """A file of static RDF; ``graph``: the one graph for all of it, None as the file says.
    ``format`` None: by its ending.

    ``reload``: whenever the file changes on the disk, it is read anew.
    """

    path: str
    graph: str | None = None
    format: str | None = None
    reload: bool = False


@dataclass(frozen=True, slots=True)
class QuerySource:
    """A query's text and the options that it says itself, by the words of
    ``algebra.options.WORDS``; the others are the application's.
    """

    name: str
    text: str
    dialect: str | None = None
    said: Mapping[str, Any] = field(default_factory=dict)

    @property
    def spoken(self) -> str:
        """The dialect of the text: the one that is given, else the one that the text shows."""
        return dialect_of(self.text, self.dialect).name


@dataclass(frozen=True, slots=True)
class Options:
    """What holds for the whole application.

    ``epoch``: the least time between the starts of two epochs in ms (0: at once). ``epoch_rows``:
    the most elements in one. ``max_rows``: the most rows of an operator in one.
    ``out``: a folder, or ``-`` for standard output. ``roll``: how long results are held back for
    fuller files, ms. ``terms``: tables have N-Triples texts. ``shape``: changes, or state.
    ``ontology``: its files; none are the static data. None: not set.
    ``said``: what holds for queries that do not say, by the words of ``algebra.options.WORDS``.
    """

    out: str = STDOUT
    format: str = "ndjson"
    roll: int = 0
    terms: bool = False
    shape: str = "changes"
    checkpoint: str | None = None
    master: str | None = None
    epoch: int = 1000
    epoch_rows: int = 1_000_000
    max_rows: int = MOST_ROWS
    summary: str | None = None
    ontology: tuple[str, ...] = ()
    said: Mapping[str, Any] = field(default_factory=dict)

    def merged(self, given: Mapping[str, Any]) -> Options:
        """With these in the places of its own: options and words for queries alike."""
        words = {word: value for word, value in given.items() if word in WORDS}
        others = {_FIELDS.get(n, n): value for n, value in given.items() if n not in WORDS}
        return replace(self, **others, said={**self.said, **words})


@dataclass(frozen=True, slots=True)
class App:
    """A whole application: streams, static data, queries, options."""

    streams: tuple[StreamConfig, ...] = ()
    static: tuple[StaticSource, ...] = ()
    queries: tuple[QuerySource, ...] = ()
    options: Options = field(default_factory=Options)

    def query_options(self, query: QuerySource) -> QueryOptions:
        """The options under which a query is translated: its own, else the application's.

        >>> app = App(options=Options(said={"t0": 5, "bounds": "(]"}))
        >>> app.query_options(QuerySource("q", "", said={"t0": 7})).t0
        7
        """
        return options_of({**self.options.said, **query.said})

    def merged(self, other: App) -> App:
        """This application with another's streams, static data and queries after its own, and its
        own options.

        Raises ``UsageError`` if a stream or a query is there twice.
        """
        both = replace(
            self,
            streams=self.streams + other.streams,
            static=self.static + other.static,
            queries=self.queries + other.queries,
        )
        _check_once("stream", [stream.name for stream in both.streams])
        _check_once("query", [query.name for query in both.queries])
        return both

    def check_output(self) -> None:
        """Whether standard output, if it is used, can take this format. Raises ``UsageError``."""
        if self.options.out == STDOUT:
            if self.options.roll:
                raise UsageError("roll is for files.", hint="Say --out DIR, or leave --roll out.")
            if self.options.shape == "state":
                raise UsageError("A state is a file.", hint="Say --out DIR with --as state.")
            check_stdout(Format(self.options.format), len(self.queries))
        elif self.options.roll and self.options.shape == "state":
            raise UsageError("A state is one file: it does not roll.", hint="Leave --roll out.")


def _check_once(kind: str, names: list[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise UsageError(
                f"The {kind} {name} is there twice.", hint=f"Give one {kind} another name."
            )


def load_app(path: Path) -> App:
    """The application of an app file. Raises ``UsageError``."""
    from levada.streams.yaml_file import read_yaml  # here: only app files need YAML

    document = read_yaml(path, "app file")
    sections = _mapping(document, "", ("streams", "static", "queries", "options"))
    base = path.parent
    streams = _mapping(sections.get("streams"), "streams")
    queries = _mapping(sections.get("queries"), "queries")
    app = App(
        streams=tuple(_stream(base, name, value) for name, value in streams.items()),
        static=tuple(
            _static(base, i, value)
            for i, value in enumerate(_list(sections.get("static"), "static"))
        ),
        queries=tuple(_query(base, name, value) for name, value in queries.items()),
        options=_options(base, sections.get("options")),
    )
    return app.merged(App())


def _mapping(value: Any, place: str, known: tuple[str, ...] | None = None) -> dict[str, Any]:
    """A mapping with text keys, of ``known`` ones if given; nothing is the empty mapping."""
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise _wrong(place or "The app file", "a mapping", value)
    for key in value:
        if not isinstance(key, str):
            raise UsageError(
                f"{_at(place, str(key))}: a key is a text.", hint=f'Write "{key}" in quotes.'
            )
        if known is not None and key not in known:
            raise UsageError(f"{_at(place, key)} is not an option.", hint=near(key, known))
    return dict(value)


def _list(value: Any, place: str) -> list[Any]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise _wrong(place, "a list", value)
    return value


def _at(place: str, key: str) -> str:
    return f"{place}.{key}" if place else key


def _wrong(place: str, expected: str, value: Any) -> UsageError:
    return UsageError(f"{place} is {expected}, not {value!r}.")


def _inside(place: str, make: Callable[[], Any]) -> Any:
    """The value of ``make``; its usage errors say where."""
    try:
        return make()
    except UsageError as error:
        raise UsageError(f"{place}: {error.message}", hint=error.hint) from error


def _stream(base: Path, name: str, value: Any) -> StreamConfig:
    place = _at("streams", name)
    options = _mapping(value, place, ("path", *OPTIONS))
    path = _required(options, "path", place)
    path = STDIN if path == STDIN else _path(base, _at(place, "path"), path)
    given = {key: _plain_time(option) for key, option in options.items() if key != "path"}
    if "mapping" in given:
        given["mapping"] = _path(base, _at(place, "mapping"), given["mapping"])
    return cast(
        StreamConfig,
        _inside(place, lambda: StreamConfig.of(check_stream_name(name), path, **given)),
    )


def _plain_time(value: Any) -> Any:
    """YAML's own dates as ISO texts."""
    return value.isoformat() if isinstance(value, datetime.date) else value


def _static(base: Path, index: int, value: Any) -> StaticSource:
    place = f"static[{index}]"
    if isinstance(value, str):
        return StaticSource(_path(base, place, value))
    options = _mapping(value, place, ("path", *_STATIC_VALUES))
    path = _path(base, place, _required(options, "path", place))
    return StaticSource(path, **_values(options, place, _STATIC_VALUES))


def check_graph(text: str) -> str:
    """A graph's IRI without angle brackets. Raises ``UsageError``."""
    bare = text[1:-1] if text.startswith("<") and text.endswith(">") else text
    if not is_iri(bare):
        raise UsageError(f"{text!r} is not an absolute IRI, as a graph's name is.")
    return bare


def _query(base: Path, name: str, value: Any) -> QuerySource:
    place = _at("queries", name)
    _inside(place, lambda: check_query_name(name))
    options = _mapping(value, place, ("file", "text", *_QUERY_VALUES))
    if ("file" in options) == ("text" in options):
        raise UsageError(f"{place} needs one of file and text.")
    given = _values(options, place, _QUERY_VALUES)
    dialect = given.pop("dialect", None)
    if "text" in options:
        return QuerySource(name, _text(options["text"], _at(place, "text")), dialect, given)
    file = Path(_path(base, _at(place, "file"), options["file"]))
    return replace(read_query(file, dialect), name=name, said=given)


def read_query(file: Path, dialect: str | None = None) -> QuerySource:
    """The query of a file, under the file's stem; ``dialect`` None: by its ending, if that says.

    Raises ``UsageError`` if the file cannot be read. The name is not checked here.
    """
    try:
        text = file.read_text(encoding="utf-8-sig")  # some editors write a byte order mark
    except OSError as error:
        raise UsageError(f"The query file {file} cannot be read: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"The query file {file} is not UTF-8.") from error
    return QuerySource(file.stem, text, dialect or dialect_of_ending(file.suffix))


def _options(base: Path, value: Any) -> Options:
    given = _values(_mapping(value, "options", tuple(_OPTION_VALUES)), "options", _OPTION_VALUES)
    if "ontology" in given:
        given["ontology"] = tuple(
            _path(base, f"options.ontology[{i}]", file) for i, file in enumerate(given["ontology"])
        )
    for name in ("out", "checkpoint", "summary"):
        if name in given and given[name] != STDOUT:
            given[name] = _path(base, _at("options", name), given[name])
    return Options().merged(given)


def _values(
    options: Mapping[str, Any], place: str, readers: Mapping[str, Callable[[Any, str], Any]]
) -> dict[str, Any]:
    return {
        key: readers[key](value, _at(place, key))
        for key, value in options.items()
        if key in readers and value is not None
    }


def _required(options: Mapping[str, Any], key: str, place: str) -> Any:
    if options.get(key) is None:
        raise UsageError(f"{place} needs a {key}.")
    return options[key]


def _path(base: Path, place: str, value: Any) -> str:
    """A path of the app file; relative ones are relative to its folder."""
    return str(base / os.path.expanduser(_text(value, place)))


def _text(value: Any, place: str) -> str:
    if not isinstance(value, str) or not value:
        raise _wrong(place, "a text", value)
    return value


def _texts(value: Any, place: str) -> list[str]:
    """A text, or a list of texts."""
    return [_text(item, place) for item in (value if isinstance(value, list) else [value])]


def _flag(value: Any, place: str) -> bool:
    if not isinstance(value, bool):
        raise _wrong(place, "true or false", value)
    return value


def _count(value: Any, place: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 1:
        raise _wrong(place, "a positive number", value)
    return value


def _one_of(
    words: tuple[str, ...], hint_of: Callable[[str, tuple[str, ...]], str] = near
) -> Callable[[Any, str], str]:
    def read(value: Any, place: str) -> str:
        if value not in words:
            hint = hint_of(value, words) if isinstance(value, str) else ""
            raise UsageError(
                f"{place} is {', '.join(words[:-1])} or {words[-1]}, not {value!r}.", hint=hint
            )
        return str(value)

    return read


def _duration(value: Any, place: str) -> int:
    return cast(int, _inside(place, lambda: parse_duration(value)))


def _time(value: Any, place: str) -> int:
    if isinstance(value, bool) or not isinstance(value, (str, int, datetime.date)):
        raise _wrong(place, "a time", value)
    return cast(int, _inside(place, lambda: parse_time(value)))


def _policy(value: Any, place: str) -> str:
    _inside(place, lambda: report_policy(value))
    return str(value)


_STATIC_VALUES: dict[str, Callable[[Any, str], Any]] = {
    "graph": lambda value, place: check_graph(_text(value, place)),
    "format": lambda value, place: _one_of(RDF)(word_of(_text(value, place)), place),
    "reload": _flag,
}
_WORD_VALUES: dict[str, Callable[[Any, str], Any]] = {
    "bounds": _one_of(get_args(Bounds)),
    "t0": _time,
    "report": _policy,
    "empty_reports": _flag,
    "entailment": _one_of(tuple(map(str, Regime))),
}
assert tuple(_WORD_VALUES) == WORDS, "each word has a reader"
_QUERY_VALUES = {"dialect": _one_of(tuple(DIALECTS)), **_WORD_VALUES}
_OPTION_VALUES: dict[str, Callable[[Any, str], Any]] = {
    "out": _text,
    "format": _one_of(FORMATS, lambda word, _: meant(word)),
    "roll": _duration,
    "terms": _flag,
    "as": _one_of(SHAPES),
    "checkpoint": _text,
    "master": _text,
    "epoch": _duration,
    "epoch_rows": _count,
    "max_rows": _count,
    "summary": _text,
    "ontology": _texts,
    **_WORD_VALUES,
}
