"""``levada sample``: a table's columns, types and times, as an option to be pasted or as a mapping
file. It infers the same schema as ``schema=auto`` (``connectors.ingest.tables.schema_inference``).
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path, PurePath
from urllib.parse import quote

import polars as pl
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from levada.connectors.config.column_names import place_of
from levada.connectors.config.input_formats import PACKED, TABLES, format_of
from levada.connectors.config.row_mapping import ROW
from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.config.stream_options import AUTO
from levada.connectors.ingest.tables.schema_inference import InferredSchema, sniff
from levada.connectors.sources.decompression import open_
from levada.errors import MissingError, SourceError, UsageError

_WIDE = 40
_PLAIN = re.compile(r"[^\W\d][\w.-]*")
_PLAIN_YAML = re.compile(r"[^\W\d]\w*|<[^<>\s]*> [^\s\"\\]+ \{[^{}\"\\:#\x00-\x1f\x7f-\x9f]*\}")


def sample(path: Path, *, mapping: bool, iterator: str = "") -> None:
    """Prints the option or the mapping file for a table. Raises ``SourceError`` and
    ``UsageError``.
    """
    form = _format(path)
    options = {"iterator": iterator} if iterator else {}
    config = StreamConfig.from_options(_name(path), path, format=form, schema=AUTO, **options)
    inferred = sniff(str(path), config)
    print(
        mapping_of(inferred, path, iterator)
        if mapping
        else f"--stream {shlex.quote(option(inferred, path, iterator))}"
    )
    console = Console(stderr=True, highlight=False)
    for part in _remarks(inferred):
        console.print(part, soft_wrap=isinstance(part, Text))


def _format(path: Path) -> str:
    """Returns the format by the file's extension, else by its first character. Raises
    ``UsageError``.
    """
    if path.is_dir():
        raise UsageError(f"{path} is a folder.", hint="Name one of its files.")
    form = format_of(path.name)
    if form is None:
        try:
            with open_(path) as file:
                first = file.read(4096).lstrip(b"\xef\xbb\xbf \t\r\n")
        except OSError as error:
            kind = MissingError if isinstance(error, FileNotFoundError) else SourceError
            raise kind(f"The file {path} cannot be read: {error.strerror}.") from error
        return "ndjson" if first.startswith(b"{") else "json" if first.startswith(b"[") else "csv"
    if form not in TABLES:
        raise UsageError(f"{path} is {form}, which has no columns.", hint="It needs no schema.")
    if form == "parquet":
        raise UsageError(f"{path} says its own columns.", hint="Leave schema= out.")
    return form


def _name(path: Path) -> str:
    """Returns the stream's name: the name of the file as a plain word."""
    stem = PurePath(path.stem).stem if path.suffix.lower() in PACKED else path.stem
    word = re.sub(r"\W", "_", stem)
    return word if _PLAIN.fullmatch(word) else f"s_{word}"


def option(inferred: InferredSchema, path: Path, iterator: str = "") -> str:
    """Returns the value of ``--stream``, without defaults."""
    return _option(inferred, path, iterator, "schema", ";".join(_columns(inferred)))


def _columns(inferred: InferredSchema) -> Iterator[str]:
    """Yields the columns of a schema with their types, and with their paths if these differ."""
    for name, kind in inferred.schema:
        path = inferred.paths.get(name, "")
        yield f"{name}={path}:{kind}" if path else f"{name}:{kind}"


def _option(inferred: InferredSchema, path: Path, iterator: str, key: str, value: str) -> str:
    """Returns the value of ``--stream`` with a schema or a mapping."""
    options = {
        "format": inferred.format if format_of(path.name) is None else "",
        "iterator": iterator,
        key: value,
        "time": "arrival" if inferred.time is None else f"field:{inferred.time_path}",
        "unit": inferred.unit if inferred.unit != "ms" else "",
        "time_format": inferred.time_format,
        "separator": {",": "", "\t": "tab"}.get(inferred.separator, inferred.separator),
    }
    if inferred.time_path == "ts":
        del options["time"]
    said = "".join(f",{key}={value}" for key, value in options.items() if value)
    return f"{_name(path)}={path}{said}"


def mapping_of(inferred: InferredSchema, path: Path, iterator: str = "") -> str:
    """Returns a mapping file: a triple for each column, a subject for each row."""
    base = f"http://example.org/{_name(path)}"
    columns = {name: kind for name, kind in inferred.types.items() if name and name != ROW}
    paths = {name: inferred.paths.get(name, name) for name in columns}
    typed = [f"{_yaml(paths[name])}: {kind}" for name, kind in columns.items() if kind != "string"]
    lines = [f"# --stream {shlex.quote(_option(inferred, path, iterator, 'mapping', 'THIS_FILE'))}"]
    if inferred.format == "csv":
        header = ", ".join(map(_yaml, inferred.types))
        lines.append(f"# For messages, which have no header line, add: header: [{header}]")
    if ROW in inferred.types:
        lines.append(f"# The column {ROW} is left out: {{{ROW}}} is the number of the row.")
    if iterator and inferred.format == "ndjson":
        lines.append(f"# Elements of one record have the same {{{ROW}}}: add what differs in them.")
    lines.append(f'prefixes: {{e: "{base}#"}}')
    if typed:
        lines.append(f"columns: {{{', '.join(typed)}}}")
    lines.append("triples:")
    for name in columns:
        local = f"e:{name}" if re.fullmatch(r"\w+", name) else f"<{base}#{quote(name, safe='')}>"
        lines.append(f"  - {_yaml(f'<{base}/{{{ROW}}}> {local} {place_of(paths[name])}')}")
    return "\n".join(lines)


def _yaml(text: str) -> str:
    """Returns a text as YAML, plain where all readers agree on it."""
    return text if _PLAIN_YAML.fullmatch(text) else json.dumps(text, ensure_ascii=False)


def _remarks(inferred: InferredSchema) -> Iterator[RenderableType]:
    """Yields the columns, and the uncertain facts."""
    grid = Table(box=None, pad_edge=False, header_style="bold")
    for head in ("column", "type", "first value", ""):
        grid.add_column(head)
    assert inferred.texts is not None, "a table has rows"
    first = inferred.texts.select(pl.all().drop_nulls().first()).row(0)
    for (name, kind), value in zip(inferred.types.items(), first, strict=True):
        time = "the event time" if name == inferred.time else ""
        grid.add_row(*map(Text, (name, kind, (value or "")[:_WIDE], time)))
    yield grid
    for note in inferred.notes:
        yield Text(note)
    if inferred.time is None:
        yield Text(
            "No column has times that are known, so the time of arrival is taken. Else say "
            "time=field:NAME and time_format=FORMAT."
        )
