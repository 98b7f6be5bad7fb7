"""STREAM's CQL scripts as they are: what a script declares and asks, its data files as CSV, its
outputs.

A script's statements are read by Levada's own parser. A data file's first line has a type per
field; the first field of each row is its time, the second of a relation its sign. An output line is
``[time]:+:value, value``.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from levada.language.cql.ast import Declared, Script, View, show
from levada.language.cql.parser import parse_script

DATA = Path(__file__).parents[3] / "shared" / "data" / "stream-cql"
SIGN = "sign"
Line = tuple[int, str, tuple[str | float, ...]]


@dataclass(frozen=True)
class Source:
    """A stream or relation of a script: its name, its schema, the path that the script gives."""

    name: str
    schema: dict[str, str]
    relation: bool
    path: str


def script_of(path: Path) -> Script:
    """A script of the suite."""
    return parse_script(path.read_text())


def sources(script: Script) -> list[Source]:
    """What the script declares."""
    return [_source(declared) for declared in script.declared]


def _source(declared: Declared) -> Source:
    columns = {name: kind.value for name, kind in declared.schema.columns}
    return Source(declared.schema.name, columns, declared.schema.relation, declared.source)


def texts(script: Script) -> list[str]:
    """Each query of a script, as one text with the views before it."""
    return [
        "\n".join([*map(_view, script.views[: asked.views]), show(asked.query)])
        for asked in script.queries
    ]


def _view(view: View) -> str:
    columns = ", ".join(
        f"{name} {kind}".replace(" double", " float") for name, kind in view.schema.columns
    )
    kind = "Relation" if view.schema.relation else "Stream"
    return f"Register {kind} {view.schema.name} ({columns}) As {show(view.query)};"


def write_csv(source: Source, data: Path, path: Path) -> Path:
    """A data file of the suite as CSV with a header; its times stay the numbers that they are."""
    head = ["ts", *([SIGN] if source.relation else []), *source.schema]
    rows = data.read_text().splitlines()[1:]
    path.write_text("\n".join([",".join(head), *rows]) + "\n")
    return path


def expected(path: Path) -> Counter[Line]:
    """The lines of an output, in no order."""
    return Counter(_line(line) for line in path.read_text().splitlines() if line.strip())


def _line(line: str) -> Line:
    time, sign, values = line.split(":", 2)
    return int(time.strip("[]")), sign, tuple(map(value, values.split(", ")))


@cache
def value(text: str) -> str | float:
    """A number by its value, anything else as it is."""
    try:
        return float(text)
    except ValueError:
        return text
