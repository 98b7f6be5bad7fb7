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

from levada.connectors.config.input_formats import DOCUMENTS, ENDINGS, LINES, NAMES
from levada.connectors.serialization.result_formats import LINES as RECORDS
from levada.connectors.serialization.result_formats import REPORTS, Format, fitting
from levada.connectors.serialization.result_formats import TABLES as COLUMNS
from levada.core.query_model import Form, Output
from levada.errors import UsageError, near
from levada.language.dialects.detect import DIALECTS

# The options of a stream in words: the table of ``levada help streams`` and of
# docs/cli/streams.md, which a test compares.


OPTION_ROWS: tuple[tuple[str, str, str], ...] = (
    (
        "`format`",
        (
            "lines: `nt`, `nq`; documents: `ttl`, `trig`, `rdf` (RDF/XML), `jsonld`, `jelly`; "
            "tables: `csv`, `ndjson`, `json`, `parquet`. Packed: `.gz`, `.zst` (not Parquet)"
        ),
        "the file extension; required for messages",
    ),
    (
        "`time`",
        (
            "where the [event time](event-times.md) is: `column`, `graph`, `predicate:IRI`, "
            "`filename:REGEX`, `field:NAME`, `timestamp` or `arrival`"
        ),
        "`column`; tuples `field:ts`",
    ),
    (
        "`unit`",
        "unit of times that are numbers: `s`, `ms`, `us` or `ns`",
        "`ms`",
    ),
    (
        "`time_format`",
        (
            "[format](event-times.md#formats-of-your-own) of the times in a table's column or in "
            "names of files, such as `%d.%m.%Y %H:%M:%S`"
        ),
        "ISO 8601",
    ),
    (
        "`zone`",
        "time zone of such times that have none, such as `Europe/Berlin`",
        "`UTC`",
    ),
    (
        "`lateness`",
        "how far an element may be behind the largest time, such as `10s`",
        "`0`",
    ),
    (
        "`element`",
        (
            "one element: `line`, `subject` (with its [blank "
            "nodes](../semantics/elements.md)), `graph` (consecutive lines), "
            "`blankline`, `document`, `message`"
        ),
        "`line`; documents: `document`; messages: `message`",
    ),
    (
        "`schema`",
        (
            "columns of a table: `k:integer;v:double`; types: `integer`, `double`, `string`, "
            "`boolean`; or `auto`: [from the file](sample.md)"
        ),
        "required for CSV, NDJSON and JSON",
    ),
    (
        "`iterator`",
        "JSON: [path of an array](#rows-of-elements), such as `items[*]`: each element is a row",
        "",
    ),
    (
        "`separator`",
        "character between the fields of CSV, such as `;`, or the word `tab`",
        "a comma",
    ),
    (
        "`sign`",
        (
            "column of a table with `+` or `-`: the rows of a relation appear and disappear; CQL "
            "reads it without a window"
        ),
        "",
    ),
    (
        "`closed`",
        (
            "`element`: you promise that no subject appears in two elements of a window; for "
            "elements of more than a line; it is checked. `trusted`: it is not"
        ),
        "",
    ),
    (
        "`mapping`",
        "a [mapping file](mapping-files.md), also of [RML](map.md): the rows of a table as RDF",
        "",
    ),
    (
        "`unique`",
        (
            "`true`: you promise that no triple repeats, which is less work; the promise is not "
            "checked"
        ),
        "`false`",
    ),
    (
        "`idle`",
        "how long a silent stream delays the others, such as `30s`",
        "forever",
    ),
    (
        "`heartbeat`",
        (
            "how often the clock advances a stream [whose times follow the "
            "clock](../semantics/progress.md), such as `1s`, so that silence is reported"
        ),
        "never",
    ),
    (
        "`max_future`",
        (
            "how far an event time may be ahead of the clock, such as `1h`; beyond it an element "
            "is a [dead letter](../semantics/progress.md)"
        ),
        "a day",
    ),
    (
        "`files`",
        "`sequence`, or `parallel`: each file is a source partition",
        "`sequence`",
    ),
    (
        "`ahead`",
        "how many elements a stream may be ahead of the slowest stream of the same query",
        "1,000,000",
    ),
    (
        "`from`, `to`",
        "only event times in `[from, to)`",
        "",
    ),
    (
        "`limit`",
        "the maximum number of elements",
        "",
    ),
    (
        "`region`",
        "the origin of the stream: a [region](../semantics/lifetime.md#regions) of the engine",
        "anywhere",
    ),
    (
        "`start`",
        (
            "[Kafka](kafka.md): start of a new checkpoint: `earliest`, `latest`, or a time (the "
            "first message with that timestamp or a later one)"
        ),
        "`earliest`",
    ),
    (
        "`lost`",
        (
            "Kafka: if offsets are gone before they were read: `stop` with a message, or `skip` "
            "(they become dead letters)"
        ),
        "`stop`",
    ),
    (
        "`isolation`",
        "Kafka: `read_committed`, or `read_uncommitted`: also open and aborted transactions",
        "`read_committed`",
    ),
    (
        "`commit_group`",
        "Kafka: the consumer group to which Levada [commits read offsets](kafka.md#progress), for "
        "other tools",
        "none",
    ),
    (
        "`tls`, `tls_ca`, `tls_cert`, `tls_key`",
        (
            "Kafka and [MQTT](mqtt.md): `tls=true`; PEM files with the trusted authorities, your "
            "certificate and your key"
        ),
        "no TLS; the system's authorities",
    ),
    (
        "`sasl`, `user`, `password`",
        (
            "Kafka: `plain`, `scram-sha-256` or `scram-sha-512`; a name; where the password is: "
            "`env:VARIABLE` or `file:PATH`"
        ),
        "",
    ),
    (
        "`qos`",
        (
            "[MQTT](mqtt.md): `1` (a message is acknowledged when it is durable in the "
            "checkpoint) or `0`"
        ),
        "`1`",
    ),
    (
        "`retained`",
        "MQTT: `take` or `skip` the messages that the broker keeps for new subscribers",
        "`take`",
    ),
    (
        "`version`",
        "MQTT: `5` or `3.1.1`",
        "`5`",
    ),
)
"""Each key, or several related keys, in backticks; its meaning in Markdown; its default."""


def keys() -> list[str]:
    """Returns the keys of the table, in its order.

    >>> from levada.connectors.config.stream_options import OPTIONS
    >>> set(keys()) == set(OPTIONS)
    True
    """
    return [word.strip("` ") for key, _, _ in OPTION_ROWS for word in key.split(",")]


_LINK = re.compile(r"\[([^\]]*)\]\([^)]*\)")
STEPS, TUMBLING, EACH = "by steps", "tumbling", "each element for a while"
NOW, ALL, LAST, BATCHES, SESSIONS = "of now", "all", "the last 10", "10 by 10", "sessions"
CLOSE, CHANGE, END = "at each close", "at each change", "at each end"
WINDOWS = (
    ("rspql", STEPS, CLOSE, "FROM NAMED WINDOW :w ON :s [RANGE PT10M STEP PT1M]"),
    ("rspql", TUMBLING, CLOSE, "FROM NAMED WINDOW :w ON :s [RANGE PT10M TUMBLING]"),
    ("rspql", EACH, CHANGE, "FROM NAMED WINDOW :w ON :s [RANGE PT10M]"),
    ("rspql", NOW, CHANGE, "FROM NAMED WINDOW :w ON :s [NOW]"),
    ("rspql", LAST, CHANGE, "FROM NAMED WINDOW :w ON :s [TRIPLES 10]"),
    ("rspql", SESSIONS, END, "FROM NAMED WINDOW :w ON :s [SESSION PT1M]"),
    ("rspql", ALL, CHANGE, "FROM NAMED WINDOW :w ON :s [ALL]"),
    ("csparql", STEPS, CLOSE, "FROM STREAM :s [RANGE 10m STEP 1m]"),
    ("csparql", EACH, CHANGE, "FROM STREAM :s [RANGE 10m]"),
    ("csparql", BATCHES, CHANGE, "FROM STREAM :s [TRIPLES 10]"),
    ("cqels", STEPS, CHANGE, "STREAM :s [RANGE 10m SLIDE 1m] { ?a :p ?b }"),
    ("cqels", EACH, CHANGE, "STREAM :s [RANGE 10m] { ?a :p ?b }"),
    ("cqels", NOW, CHANGE, "STREAM :s [NOW] { ?a :p ?b }"),
    ("cqels", LAST, CHANGE, "STREAM :s [TRIPLES 10] { ?a :p ?b }"),
    ("cqels2", TUMBLING, CHANGE, "FROM STREAM :s [RANGE 10m]"),
    ("sparqlstream", STEPS, CLOSE, "FROM NAMED STREAM :s [NOW-10 M SLIDE 1 M]"),
    ("sparqlstream", EACH, CHANGE, "FROM NAMED STREAM :s [NOW-10 M]"),
    ("cql", STEPS, CLOSE, "From S [Range 10 Minutes Slide 1 Minute]"),
    ("cql", EACH, CHANGE, "From S [Range 10 Minutes]"),
    ("cql", LAST, CHANGE, "From S [Rows 10]"),
    ("cql", f"{LAST} of each key", CHANGE, "From S [Partition By k Rows 10]"),
    ("cql", NOW, CHANGE, "From S [Now]"),
    ("cql", ALL, CHANGE, "From S [Range Unbounded]"),
)
"""The dialect, the kind of window, its reports by default, and its syntax; a test compares them
with the windows of the algebra.
"""


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
    rows = [(d.name, d.title, " ".join(d.endings), _output(d.output)) for d in DIALECTS.values()]
    yield _grid(("word", "dialect", "endings", "output unless said"), rows)
    yield Text("Without --dialect the file's ending says it, else the text.")


def _output(word: str) -> str:
    """Returns the default output of a dialect in words."""
    return "changes (+ and -)" if word == "RELATION" else word


def _windows() -> Iterator[RenderableType]:
    yield _grid(("dialect", "window", "reports", "written"), WINDOWS)
    yield Text(
        "--report says when they report, --bounds which end belongs to them, --t0 the start."
    )


def _functions() -> Iterator[RenderableType]:
    yield Text("Functions in Python, declared by @levada.function, @levada.aggregate and")
    yield Text('@levada.operator, and named in the app file: functions: ["module:name"]')
    rows = [
        ("integer", "xsd:integer, 64 bits", "Integer", "Int64"),
        ("double", "every number", "Float, Integer", "Float64"),
        ("boolean", "xsd:boolean", "Boolean", "Boolean"),
        ("string", "a string without a language", "String", "String"),
        ("iri", "an IRI", "", "String"),
        ("term", "every value, as N-Triples; arguments only", "", "String"),
    ]
    yield _grid(("type", "SPARQL", "CQL", "Polars"), rows)


TOPICS: dict[str, Callable[[], Iterator[RenderableType]]] = {
    "streams": _streams,
    "formats": _formats,
    "dialects": _dialects,
    "windows": _windows,
    "functions": _functions,
}
