"""Infers the schema of a table from its first rows (and of a plain file its last ones): separator,
columns with their types, the column of times, their format, their unit.

    levada sample      tells a user, as an option to be pasted
    schema=auto        an engine takes it at the first start on a checkpoint, and keeps it there

A type fits every value seen; integers with leading zeros are codes, so strings. A column can be
that of the times if all of its values are read as times by ``row_event_times``: dateTimes, one of
``FORMATS``, or numbers. Among several, the name decides, then dateTimes, then ascending values. The
unit of numbers is the one in which they are between 1990 and 2100; small integers are ms, if the
name of the column or the user says that they are times. Cost: some hundred kilobytes, once.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import field, replace
from typing import IO

import polars as pl

from levada.connectors.config.column_names import number_names
from levada.connectors.config.input_formats import JSON
from levada.connectors.config.json_path import is_path
from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.ingest.tables.nested_schema import nested_columns
from levada.connectors.ingest.tables.row_event_times import field_times
from levada.connectors.sources.decompression import DAMAGED, is_packed, open_
from levada.connectors.sources.file_listing import list_files
from levada.connectors.sources.json_lines import NOT_LINES, spans_lines
from levada.connectors.sources.parquet_files import with_schema
from levada.core.event_time import MIN
from levada.core.frozen import frozen
from levada.errors import MissingError, SourceError, UsageError

HEAD, TAIL = 1 << 20, 1 << 18  # bytes
LARGEST_DOCUMENT = 64 << 20  # bytes
_BETWEEN = re.compile(r"[\s,]*")
SEPARATORS = (",", ";", "\t", "|")
_DAYS = ("%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%Y/%m/%d", "%d %b %Y", "%b %d %Y",
         "%d-%b-%Y", "%d/%b/%Y", "%Y-%m-%d", "%d.%m.%y", "%d/%m/%y", "%m/%d/%y")  # fmt: skip
_CLOCKS = (" %H:%M:%S", " %H:%M", " %H:%M:%S.%f", " %I:%M:%S %p", " %I:%M %p", ", %H:%M:%S",
           ":%H:%M:%S %z", " %H:%M:%S %z", "T%H:%M:%S%z", "")  # fmt: skip
FORMATS = tuple(day + clock for day in _DAYS for clock in _CLOCKS)
_LIKELY = ("ts", "time", "timestamp", "datetime", "date", "at")
_TIMELY = re.compile(r"time|date|stamp|_at$|_ts$|^when$", re.IGNORECASE)
_INTEGER = r"^\s*[+-]?[0-9]+\s*$"
_CODE = r"^\s*[+-]?0[0-9]"
_DOUBLE = r"^\s*(?:[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?|[+-]?INF|NaN)\s*$"
_BOOLEAN = r"(?i)^\s*(?:true|false)\s*$"
_EPOCHS = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}
_1990, _2100 = 631_152_000, 4_102_444_800  # s
_NUMBERED = re.compile(r"column_[0-9]+_*")  # as in pandas' index, which has no name in the file
_UNSAID = re.compile(r"[:;,]|^\s*$")  # names that schema= cannot express


@frozen
class InferredSchema:
    """The inferred schema. ``types``: every column, in order. ``time`` None: no column has times.
    ``texts``: the first rows. ``notes``: sentences on uncertain facts. ``paths``: those of columns
    with another name.
    """

    format: str
    types: dict[str, str]
    time: str | None = None
    unit: str = "ms"
    time_format: str = ""
    separator: str = ","
    texts: pl.DataFrame | None = None
    notes: tuple[str, ...] = ()
    paths: dict[str, str] = field(default_factory=dict)

    @property
    def time_path(self) -> str:
        """The path of the column of times."""
        return self.paths.get(self.time or "", self.time or "")

    @property
    def schema(self) -> tuple[tuple[str, str], ...]:
        """The columns that a schema can name; texts that are times are left to the time."""
        return tuple(
            (name, kind)
            for name, kind in self.types.items()
            if (not _UNSAID.search(name) or is_path(name))
            and not (name == self.time and kind == "string")
        )


def with_columns(config: StreamConfig) -> StreamConfig:
    """Returns a stream of a table with ``schema=auto`` with the schema of its first file; the
    user's options stay. Other streams are returned unchanged. Raises ``SourceError``.
    """
    if config.format == "parquet":
        return with_schema(replace(config, schema=()) if config.undecided else config)
    if not config.undecided:
        return config
    for file in list_files(config.name, config.path):
        return _apply_inferred(config, sniff(file.path, config))
    raise MissingError(
        f"The stream {config.name} says schema=auto, and there is no file at {config.path} yet.",
        hint="Put a first file there, or say the schema.",
    )


def with_first_schema(config: StreamConfig, before: StreamConfig) -> StreamConfig:
    """Returns a stream with the schema inferred at the first start; the user's options stay."""
    unsaid = {"time": "field:ts", "unit": "ms", "time_format": "", "separator": ","}
    undecided = [name for name, value in unsaid.items() if getattr(config, name) == value]
    return replace(
        config,
        schema=before.schema,
        paths=before.paths,
        **{n: getattr(before, n) for n in undecided},
    )


def _apply_inferred(config: StreamConfig, inferred: InferredSchema) -> StreamConfig:
    schema = inferred.schema
    if config.sign and config.sign not in inferred.types:
        raise UsageError(f"The stream {config.name} has no column {config.sign} of signs.")
    if config.time_kind == "field" and inferred.time is None:
        raise SourceError(
            _no_times(config, inferred),
            hint="Say time=field:NAME and time_format=FORMAT, or time=filename:REGEX.",
        )
    schema = tuple((n, "string" if n == config.sign else kind) for n, kind in schema)
    paths = tuple((name, path) for name, path in inferred.paths.items() if name in dict(schema))
    settled = replace(config, schema=schema, paths=paths, separator=inferred.separator)
    if config.time_kind != "field":
        return settled
    return replace(
        settled,
        time=f"field:{inferred.time_path}",
        unit=inferred.unit,
        time_format=inferred.time_format,
    )


def _no_times(config: StreamConfig, inferred: InferredSchema) -> str:
    """Describes that the named column has no times, with its first value, or that no column has."""
    column = config.time_argument
    if inferred.texts is None or column not in inferred.texts or inferred.texts.is_empty():
        return f"No column of the stream {config.name} has times that are known."
    return (
        f"The column {column} of the stream {config.name} has no times that are known: "
        f"it begins with {inferred.texts[column][0]!r}."
    )


def sniff(path: str, config: StreamConfig) -> InferredSchema:
    """Infers the schema of a file; ``config``: the user's options. Raises ``SourceError``."""
    head, tail = _ends(path)
    if not head.strip():
        raise SourceError(f"The file {path} is empty: there is nothing to be seen of it.")
    if config.format in JSON:
        records = (
            _lines(path, head + tail)
            if config.format == "ndjson"
            else _document(path, config.steps is None)
        )
        return _with_times(_of_json(path, records, config), config)
    separator = config.separator if config.separator != "," else _separator(head)
    return _with_times(_of_csv(path, head, tail, separator), config)


def _ends(path: str) -> tuple[str, str]:
    """Returns the first whole lines, and of a plain file the last ones."""
    try:
        with open_(path) as file:
            head = file.read(HEAD)
            whole = len(head) < HEAD
            tail = b"" if whole or is_packed(path) else _tail(file)
    except FileNotFoundError as error:
        raise MissingError(f"The file {path} cannot be read: {error.strerror}.") from error
    except (OSError, *DAMAGED) as error:
        raise SourceError(f"The file {path} cannot be read: {error}.") from error
    cut = head if whole else head[: head.rfind(b"\n") + 1]
    return cut.decode("utf-8-sig", "replace"), tail.decode("utf-8", "replace")


def _tail(file: IO[bytes]) -> bytes:
    size = file.seek(0, io.SEEK_END)
    file.seek(max(size - TAIL, HEAD))
    data = file.read()
    return data[data.find(b"\n") + 1 : data.rfind(b"\n") + 1]


def _separator(head: str) -> str:
    """Returns the separator that divides the first rows into the most fields, equally many in
    all.
    """
    best, most = ",", 1
    for separator in SEPARATORS:
        rows = [row for _, row in zip(range(50), _rows(head, separator), strict=False)]
        widths = {len(row) for row in rows[:-1] or rows}
        if len(widths) == 1 and (width := widths.pop()) > most:
            best, most = separator, width
    return best


def _rows(text: str, separator: str) -> Iterator[list[str]]:
    try:
        yield from (
            row for row in csv.reader(io.StringIO(text, newline=""), delimiter=separator) if row
        )
    except csv.Error:
        return


def _of_csv(path: str, head: str, tail: str, separator: str) -> InferredSchema:
    rows = list(_rows(head, separator))
    header = [name.strip() for name in rows[0]] if rows else []
    _check_header(path, header)
    names = number_names(header)
    # the tail may begin within a quoted field
    records = rows[1:] + [row for row in _rows(tail, separator) if len(row) == len(names)]
    records = [row for row in records if len(row) == len(names)]
    if not records:
        raise SourceError(f"The file {path} has a header and no row yet.")
    texts = pl.DataFrame(
        {name: [row[i] or None for row in records] for i, name in enumerate(names)},
        schema=dict.fromkeys(names, pl.String()),
    )
    nameless = [made for name, made in zip(header, names, strict=True) if not name]
    empty = [name for name in nameless if texts[name].null_count() == texts.height]
    texts = texts.drop(empty)
    types = _types(texts)
    notes = (*_renamed_columns(header, names, empty), *_odd(texts, types))
    return InferredSchema("csv", types, separator=separator, texts=texts, notes=notes)


def _renamed_columns(
    header: Sequence[str], names: Sequence[str], empty: Sequence[str]
) -> Iterator[str]:
    """Returns sentences on columns whose names differ from the header, or that are left out."""
    numbered: dict[str, list[str]] = {}
    for old, new in zip(header, names, strict=True):
        numbered.setdefault(old, []).append(new)
    for old, new_names in numbered.items():
        if old and len(new_names) > 1:
            shown = ", ".join(new_names)
            yield f"The header has the column {old} {len(new_names)} times: they are {shown}."
    left_out = set(empty)
    for i, (old, new) in enumerate(zip(header, names, strict=True), 1):
        if not old and new in left_out:
            yield f"Column {i} has neither a name nor values: it is left out."
        elif not old:
            yield f"Column {i} has no name: it is called {new}."


def _check_header(path: str, names: Sequence[str]) -> None:
    numbers = [name for name in names if re.match(_DOUBLE, name)]
    if not names or numbers:
        shown = f", such as {numbers[0]}" if numbers else ""
        raise SourceError(
            f"The first line of {path} is no header: it holds values{shown}.",
            hint="Write the names of the columns there, or say them as header: in a mapping file.",
        )


def _lines(path: str, text: str) -> list[object]:
    """Returns the objects of lines."""
    if spans_lines(text.encode()):
        raise SourceError(f"The file {path} is {NOT_LINES}.", hint="Say format=json.")
    records: list[object] = []
    for line in text.split("\n"):
        try:
            value = json.loads(line) if line.strip() else None
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict | list):
            records.append(value)
    return records


def _document(path: str, by_element: bool) -> list[object]:
    """Returns a document; ``by_element``: the first elements of one that is an array. Raises
    ``SourceError``.
    """
    with open_(path) as file:
        data = file.read(LARGEST_DOCUMENT + 1)
    text = data.decode("utf-8-sig", "replace").strip()
    if by_element and text.startswith("["):
        return list(_elements(text[: HEAD + TAIL]))
    if len(data) > LARGEST_DOCUMENT:
        raise SourceError(
            f"The file {path} has more than {LARGEST_DOCUMENT >> 20} MB: it is not examined.",
            hint="Say the schema.",
        )
    try:
        return [json.loads(text)]
    except (ValueError, RecursionError) as error:
        hint = "If it has an object on each line, say format=ndjson."
        raise SourceError(f"The file {path} is not a JSON document: {error}.", hint=hint) from error


def _elements(text: str) -> Iterator[object]:
    """Yields the whole elements at the beginning of an array."""
    at, decoder = 1, json.JSONDecoder()
    while (next_ := _BETWEEN.match(text, at)) is not None:
        try:
            value, at = decoder.raw_decode(text, next_.end())
        except (ValueError, RecursionError):
            return
        yield value


def _of_json(path: str, records: list[object], config: StreamConfig) -> InferredSchema:
    cells, paths, notes = nested_columns(records, config.steps)
    if not cells:
        what = "line that is a JSON object" if config.format == "ndjson" else "object"
        where = f" at {config.iterator}" if config.iterator else ""
        raise SourceError(f"The file {path} has no {what}{where}.")
    types = {
        name: _json_type([v for v in values if v is not None]) for name, values in cells.items()
    }
    texts = pl.DataFrame(
        {name: list(map(_json_text, values)) for name, values in cells.items()},
        schema=dict.fromkeys(cells, pl.String()),
    )
    return InferredSchema(
        config.format, types, texts=texts, notes=(*_odd(texts, types), *notes), paths=paths
    )


def _json_text(value: object) -> str | None:
    return None if value is None else value if isinstance(value, str) else json.dumps(value)


def _json_type(values: Sequence[object]) -> str:
    kinds = {type(value) for value in values}
    if kinds == {bool}:
        return "boolean"
    if kinds and kinds <= {int, float}:
        whole = kinds == {int} and all(
            abs(value) < 2**63 for value in values if isinstance(value, int)
        )
        return "integer" if whole else "double"
    return "string"


def _types(texts: pl.DataFrame) -> dict[str, str]:
    """Returns the type of each column that all of its texts fit. All columns are examined together:
    a call of Polars costs as much as some thousand texts.
    """
    every, whole = pl.all(), pl.all().str.strip_chars().cast(pl.Int64, strict=False)
    facts = [
        texts.select(fact).row(0)
        for fact in (
            every.count() > 0,
            every.str.contains(_INTEGER).all() & ~every.str.contains(_CODE).any(),
            whole.count() == every.count(),
            every.str.contains(_DOUBLE).all() & ~every.str.contains(_CODE + r"[0-9]*\s*$").any(),
            every.str.contains(_BOOLEAN).all(),
        )
    ]
    return {
        name: _type(*column)
        for name, column in zip(texts.columns, zip(*facts, strict=True), strict=True)
    }


def _type(is_there: bool, is_integer: bool, fits: bool, is_double: bool, is_boolean: bool) -> str:
    """Returns the type from the properties of all texts of a column."""
    if not is_there:
        return "string"
    if is_integer:
        return "integer" if fits else "double"
    return "double" if is_double else "boolean" if is_boolean else "string"


def _odd(texts: pl.DataFrame, types: dict[str, str]) -> Iterator[str]:
    """Yields notes on odd columns for a reader."""
    counts = texts.select(pl.all().count()).row(0)
    commas = texts.select(pl.all().str.contains(r"^\s*[+-]?[0-9]+,[0-9]+\s*$").all()).row(0)
    for (name, kind), count, has_commas in zip(types.items(), counts, commas, strict=True):
        if not count:
            yield f"The column {name} has no value in what was looked at: it is taken for a string."
        elif kind == "string" and has_commas:
            yield f"The column {name} has decimal commas: its values are strings, not numbers."
        if _UNSAID.search(name) and not is_path(name):
            said = f"The column {name}" if name.strip() else "A column without a name"
            yield f"{said} cannot be said in a schema: it is left out."


def _with_times(inferred: InferredSchema, config: StreamConfig) -> InferredSchema:
    """Returns the schema with the column of times, and their format."""
    asked = config.time_argument if config.time != "field:ts" or "ts" in inferred.types else ""
    names = [name for name in inferred.types if name.strip()]
    if asked in names and config.time_kind == "field":
        names = [asked]
    ranked: list[tuple[tuple[int, int, int], int, str, StreamConfig]] = []
    for name in names:
        for way in _ways(inferred, name, config):
            ranked.append((_rank(inferred, name, way), -len(ranked), name, way))
    if not ranked:
        return inferred
    best, _, name, way = max(ranked, key=lambda each: each[:2])
    notes = list(inferred.notes)
    alike = [w for rank, _, n, w in ranked if n == name and rank == best and w != way]
    if alike:
        notes.append(f"The times of {name} could also be {alike[0].time_format}.")
    if _zoneless(inferred, name, way):
        notes.append(f"The times of {name} name no zone: they are taken for {config.zone}.")
    # a time format reads days such as 20240301 as texts
    types = inferred.types | ({name: "string"} if way.time_format else {})
    return replace(
        inferred,
        types=types,
        time=name,
        unit=way.unit,
        time_format=way.time_format,
        notes=tuple(notes),
    )


def _ways(inferred: InferredSchema, name: str, config: StreamConfig) -> Iterator[StreamConfig]:
    """Yields the options by which all values of a column are times."""
    assert inferred.texts is not None, "a table has rows"
    seen = inferred.texts[name].alias("").drop_nulls()
    if not len(seen) or inferred.types[name] == "boolean":
        return
    if inferred.types[name] in ("integer", "double") and not config.time_format:
        whole = inferred.types[name] == "integer"  # 0.5, 1.0, .. are hardly ms
        unit = config.unit if config.unit != "ms" else _unit(seen, name if whole else "")
        unit = unit or ("ms" if config.time == f"field:{name}" else "")  # as the user has named it
        if unit:
            yield replace(config, unit=unit)
        return
    if config.time_format:
        formats: tuple[str, ...] = (config.time_format,)
    elif _reads(seen, replace(config, time_format="")):
        yield replace(config, time_format="")
        return
    else:
        formats = FORMATS
    first = seen.head(5)
    for form in formats:
        way = replace(config, time_format=form)
        if _reads(first, way) and _reads(seen, way):
            yield way


def _reads(texts: pl.Series, way: StreamConfig) -> bool:
    return bool((field_times(texts, way) > MIN).all())


def _unit(seen: pl.Series, name: str) -> str:
    """Returns the unit in which integers are times; "" if they are hardly any."""
    values = seen.str.strip_chars().cast(pl.Float64, strict=False).drop_nulls()
    if not len(values):
        return ""
    low, high = float(values.min() or 0), float(values.max() or 0)  # type: ignore[arg-type]
    for unit, factor in _EPOCHS.items():
        if _1990 * factor <= low and high <= _2100 * factor:
            return unit
    return "ms" if name.lower() in _LIKELY or _TIMELY.search(name) else ""


def _rank(inferred: InferredSchema, name: str, way: StreamConfig) -> tuple[int, int, int]:
    """Ranks a column as that of the times: the larger, the likelier."""
    assert inferred.texts is not None, "a table has rows"
    timely = _TIMELY.search(name) or _NUMBERED.fullmatch(name)
    known = 2 if name.lower() in _LIKELY else 1 if timely else 0
    times = field_times(inferred.texts[name].alias("").drop_nulls(), way)
    rising = int(bool((times[1:] >= times[:-1]).all()))
    return known, int(inferred.types[name] == "string"), rising


def _zoneless(inferred: InferredSchema, name: str, way: StreamConfig) -> bool:
    """Whether the times are local ones, whose zone must be known."""
    assert inferred.texts is not None, "a table has rows"
    if inferred.types[name] in ("integer", "double") or way.zone != "UTC":
        return False
    if way.time_format:
        return "%z" not in way.time_format
    return not bool(
        inferred.texts[name].alias("").drop_nulls().str.contains(r"(?:Z|[+-][0-9:]{4,6})\s*$").all()
    )
