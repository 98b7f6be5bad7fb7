"""``levada help TOPIC``: tables of the options of streams, the formats, the dialects and the
windows.

The contents of a table come from the program, or a test compares them with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from levada.cli.help.stream_help import OPTION_ROWS
from levada.connectors.config.input_formats import DOCUMENTS, ENDINGS, LINES, NAMES
from levada.connectors.serialization.result_formats import LINES as RECORDS
from levada.connectors.serialization.result_formats import REPORTS, Format, fitting
from levada.connectors.serialization.result_formats import TABLES as COLUMNS
from levada.core.query_model import Form, Output
from levada.errors import UsageError, near
from levada.language.dialects.detect import DIALECTS

_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
WINDOWS = (
    ("rspql", "a time window", "FROM NAMED WINDOW :w ON :s [RANGE PT10M STEP PT1M]"),
    ("rspql", "tumbling", "FROM NAMED WINDOW :w ON :s [RANGE PT10M]"),
    ("rspql", "elements of now", "FROM NAMED WINDOW :w ON :s [NOW]"),
    ("csparql", "a time window", "FROM STREAM :s [RANGE 10m STEP 1m]"),
    ("csparql", "triples", "FROM STREAM :s [TRIPLES 10]"),
    ("cqels", "a time window", "STREAM :s [RANGE 10m SLIDE 1m] { ?a :p ?b }"),
    ("cqels", "elements of now", "STREAM :s [NOW] { ?a :p ?b }"),
    ("cqels", "triples", "STREAM :s [TRIPLES 10] { ?a :p ?b }"),
    ("sparqlstream", "a time window", "FROM NAMED STREAM :s [NOW-10 M SLIDE 1 M]"),
    ("cql", "a time window", "From S [Range 10 Minutes]"),
    ("cql", "a time window by steps", "From S [Range 10 Minutes Slide 1 Minute]"),
    ("cql", "rows", "From S [Rows 10]"),
    ("cql", "rows of each key", "From S [Partition By k Rows 10]"),
    ("cql", "elements of now, all", "From S [Now], S [Range Unbounded]"),
)
"""The dialect, the kind of window and its syntax."""


def tell(topic: str) -> None:
    """Prints a topic. Raises ``UsageError`` for an unknown topic."""
    if topic not in TOPICS:
        raise UsageError(f"There is no help on {topic}.", hint=near(topic, TOPICS))
    console = Console(highlight=False)
    for part in TOPICS[topic]():
        console.print(part)


def plain(markdown: str) -> str:
    """Converts a cell of the documentation's table to text for a terminal.

    >>> plain("`a`: [as the file shows](#x)")
    'a: as the file shows'
    """
    return _LINK.sub(r"\1", markdown).replace("`", "")


def _grid(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    for i, head in enumerate(heads):
        table.add_column(head, no_wrap=i == 0)
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _streams() -> Iterator[RenderableType]:
    yield Text(
        "--stream NAME=PATH[,key=value...]; PATH is a file, a folder, a pattern, or - (stdin)"
    )
    yield _grid(("key", "values", "default"), [[*map(plain, row)] for row in OPTION_ROWS])


def _formats() -> Iterator[RenderableType]:
    rows = []
    for word, name in NAMES.items():
        kind = "lines" if word in LINES else "documents" if word in DOCUMENTS else "tables"
        rows.append((word, name, kind, " ".join(e for e, w in ENDINGS.items() if w == word)))
    yield Text("Streams and static data; all but Parquet also as .gz and .zst")
    yield _grid(("word", "format", "of", "endings"), rows)
    yield Text("")
    yield Text("Results (--format)")
    yield _grid(
        ("word", "for", "a file is", "standard output"),
        [(str(f), _for(f), _what(f), "yes" if f in RECORDS else "no") for f in Format],
    )


def _for(form: Format) -> str:
    if form not in fitting(Form.SELECT, Output.RSTREAM):
        return "CONSTRUCT"
    return "all" if form in fitting(Form.CONSTRUCT, Output.RSTREAM) else "SELECT, ASK"


def _what(form: Format) -> str:
    if form in REPORTS:
        return "a report"
    return "columns" if form in COLUMNS else "lines" if form in RECORDS else "a document"


def _dialects() -> Iterator[RenderableType]:
    rows = [(d.name, d.title, " ".join(d.endings), d.output) for d in DIALECTS.values()]
    yield _grid(("word", "dialect", "endings", "output unless said"), rows)
    yield Text("Without --dialect the file's ending says it, else the text.")


def _windows() -> Iterator[RenderableType]:
    yield _grid(("dialect", "window", "written"), WINDOWS)
    yield Text(
        "--report says when they report, --bounds which end belongs to them, --t0 the start."
    )


TOPICS: dict[str, Callable[[], Iterator[RenderableType]]] = {
    "streams": _streams,
    "formats": _formats,
    "dialects": _dialects,
    "windows": _windows,
}
