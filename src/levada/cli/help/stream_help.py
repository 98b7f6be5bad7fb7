"""The options of a stream in words: the table of ``levada help streams`` and of
docs/cli/streams.md, which a test compares.
"""

from __future__ import annotations

OPTION_ROWS: tuple[tuple[str, str, str], ...] = (
    (
        "`format`",
        (
            "lines: `nt`, `nq`; documents: `ttl`, `trig`, `rdf` (RDF/XML), `jsonld`, `jelly`; "
            "tables: `csv`, `ndjson`, `parquet`. Packed as `.gz` or `.zst`, but not Parquet"
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
        "required for CSV and NDJSON",
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
            "elements of more than a line; the promise is checked"
        ),
        "",
    ),
    (
        "`mapping`",
        "a [mapping file](mapping-files.md): the rows of a table as RDF, instead of `schema`",
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
        "`tls`, `ca`, `cert`, `key`",
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
