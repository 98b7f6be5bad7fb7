"""``levada sample``: a table's columns, types and times, as an option to be pasted, or as a mapping
file.

What it finds is what ``schema=auto`` takes (``intake.tables.sniff``).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path, PurePath

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from levada.errors import MissingError, SourceError, UsageError
from levada.intake.tables.sniff import Sniffed, sniff
from levada.sources.inflate import open_
from levada.streams.formats import PACKED, TABLES, format_of
from levada.streams.options import AUTO
from levada.streams.stream_config import StreamConfig

_WIDE = 40
_PLAIN = re.compile(r"[^\W\d][\w.-]*")


def sample(path: Path, *, mapping: bool) -> None:
    """Prints what a file shows. Raises ``SourceError`` and ``UsageError``."""
    form = _format(path)
    found = sniff(str(path), StreamConfig(_name(path), str(path), form, "field:ts", schema=AUTO))
    if mapping:
        print(mapping_of(found, path))
        return
    print(f"--stream {shlex.quote(option(found, path))}")
    told = Console(stderr=True, highlight=False)
    for part in _told(found):
        told.print(part, soft_wrap=isinstance(part, Text))


def _format(path: Path) -> str:
    """The format by the file's ending, else by its first character. Raises ``UsageError``."""
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
        return "ndjson" if first.startswith(b"{") else "csv"
    if form not in TABLES:
        raise UsageError(f"{path} is {form}, which has no columns.", hint="It needs no schema.")
    if form == "parquet":
        raise UsageError(f"{path} says its own columns.", hint="Leave schema= out.")
    return form


def _name(path: Path) -> str:
    """The stream's name: that of the file, as a plain word."""
    stem = PurePath(path.stem).stem if path.suffix.lower() in PACKED else path.stem
    word = re.sub(r"\W", "_", stem)
    return word if _PLAIN.fullmatch(word) else f"s_{word}"


def option(found: Sniffed, path: Path) -> str:
    """The value of ``--stream``; what is so by default is left out."""
    options = {
        "format": found.format if format_of(path.name) is None else "",
        "schema": ";".join(f"{name}:{kind}" for name, kind in found.schema),
        "time": f"field:{found.time}" if found.time not in (None, "", "ts") else "",
        "unit": found.unit if found.unit != "ms" else "",
        "time_format": found.time_format,
        "separator": {",": "", "\t": "tab"}.get(found.separator, found.separator),
    }
    if found.time == "":  # no option can name a column that has no name
        options |= {"schema": "auto", "unit": "", "time_format": "", "separator": ""}
    said = "".join(f",{key}={value}" for key, value in options.items() if value)
    return f"{_name(path)}={path}{said}"


def mapping_of(found: Sniffed, path: Path) -> str:
    """A mapping file: a triple for each column, of a subject for each row."""
    columns = [name for name in found.types if re.fullmatch(r"\w+", name)]
    typed = {name: found.types[name] for name in columns if found.types[name] != "string"}
    head = [f'prefixes: {{e: "http://example.org/{_name(path)}#"}}']
    if typed:
        head.append("columns: {" + ", ".join(f"{n}: {kind}" for n, kind in typed.items()) + "}")
    lines = [f"  - <http://example.org/{_name(path)}/{{row}}> e:{n} {{{n}}}" for n in columns]
    time = f",time=field:{found.time}" if found.time not in (None, "", "ts") else ""
    comment = f"# --stream {_name(path)}={path},mapping=THIS_FILE{time}"
    return "\n".join([comment, *head, "triples:", *lines])


def _told(found: Sniffed) -> Iterator[RenderableType]:
    """The columns, and what is not certain."""
    grid = Table(box=None, pad_edge=False, header_style="bold")
    for head in ("column", "type", "first value", ""):
        grid.add_column(head)
    for name, kind in found.types.items():
        time = "the event time" if name == found.time else ""
        grid.add_row(*map(Text, (name, kind, _first(found, name), time)))
    yield grid
    for note in found.notes:
        yield Text(note)
    if found.time is None:
        yield Text("No column has times that are known: say time=field:NAME and time_format=.")


def _first(found: Sniffed, name: str) -> str:
    assert found.texts is not None, "a table has rows"
    seen = found.texts[name].drop_nulls()
    return str(seen[0])[:_WIDE] if len(seen) else ""
