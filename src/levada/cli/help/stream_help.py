"""The options of a stream in words: the table of ``levada help streams`` and of docs/cli.md, which
a test compares.
"""

from __future__ import annotations

OPTION_ROWS: tuple[tuple[str, str, str], ...] = (
    (
        "`format`",
        (
            "lines: `nt`, `nq`; documents: `ttl`, `trig`, `rdf` (RDF/XML), `jsonld`, "
            "`jelly`; tables: `csv`, `ndjson`, `parquet`. All but Parquet also as `.gz` and"
            " `.zst`"
        ),
        "by the file's ending; due for messages",
    ),
    (
        "`time`",
        (
            "where [event times](#event-times) come from: `column` (a further term before the "
            "dot, as above), `graph` (the last time in the graph's IRI), `predicate:IRI`, "
            "`filename:REGEX` (its first group), `field:NAME` (tuples), `timestamp` (a "
            "message's, of [Kafka](#kafka)), `arrival` ([when it came](#arrival), by the clock)"
        ),
        "`column`; tuples `field:ts`",
    ),
    (
        "`unit`",
        "`s`, `ms`, `us` or `ns`: of times that are numbers",
        "`ms`",
    ),
    (
        "`time_format`",
        (
            "how the column with a table's times is [written](#event-times), such as "
            "`%d.%m.%Y %H:%M:%S`"
        ),
        "ISO 8601",
    ),
    (
        "`zone`",
        "the time zone of a table's times that name none, such as `Europe/Berlin`",
        "`UTC`",
    ),
    (
        "`lateness`",
        "how far behind the largest time an element may be, such as `10s`",
        "`0`",
    ),
    (
        "`element`",
        (
            "what one element is: `line`, `subject` (with its "
            "[blank nodes](semantics.md#elements-by-subject)), `graph` (consecutive lines), "
            "`blankline` (lines up to a blank one), `document` (a file), `message` (of Kafka, "
            "MQTT, ..)"
        ),
        "`line`; documents: `document`; messages: `message`",
    ),
    (
        "`schema`",
        (
            "columns of a table: `k:integer;v:double`; types `integer`, `double`, `string`,"
            " `boolean`; or `auto`: [as the file shows](#levada-sample)"
        ),
        "due for CSV and NDJSON",
    ),
    (
        "`separator`",
        "the character between the fields of CSV, such as `;`, or the word `tab`",
        "a comma",
    ),
    (
        "`sign`",
        (
            "the column of a table that holds `+` or `-`: the rows are those of a relation,"
            " they come and go; CQL reads it without a window"
        ),
        "",
    ),
    (
        "`closed`",
        (
            "`element` promises that no subject comes in two elements of a window (with "
            "elements of more than a line): patterns of one subject are then joined where "
            "they are read, before any exchange. The promise is checked: a subject that "
            "comes again suspends the queries of the stream, with a sentence that says where"
        ),
        "",
    ),
    (
        "`mapping`",
        ("a [mapping file](#mapping-files): the rows of a table as RDF, in place of `schema`"),
        "",
    ),
    (
        "`unique`",
        ("`true` promises that no triple comes twice: less work. The promise is not checked"),
        "`false`",
    ),
    (
        "`idle`",
        "after how long a silent stream holds the others back no more, such as `30s`",
        "for ever",
    ),
    (
        "`heartbeat`",
        (
            "how often the clock says that time goes on, such as `1s`, of a stream "
            "[whose times are those of the clock](semantics.md#progress): silence is reported then"
        ),
        "never",
    ),
    (
        "`max_future`",
        (
            "how far ahead of the clock an event time may be, such as `1h`: an element of more is "
            "a [dead letter](semantics.md#progress)"
        ),
        "a day",
    ),
    (
        "`files`",
        "`sequence`, or `parallel`: each file a source partition of its own",
        "`sequence`",
    ),
    (
        "`ahead`",
        ("how many elements a stream may be ahead of the slowest that it shares a query with"),
        "1,000,000",
    ),
    (
        "`from`, `to`",
        (
            "only event times in `[from, to)`; all is read nevertheless, since what is late"
            " beyond `to` is told as late"
        ),
        "",
    ),
    (
        "`limit`",
        "at most so many elements",
        "",
    ),
    (
        "`region`",
        "where the stream comes from: one of the engine's [regions](semantics.md#regions)",
        "anywhere",
    ),
    (
        "`start`",
        (
            "of [Kafka](#kafka): where a new checkpoint begins: `earliest`, `latest`, or a time"
            " (the first message whose timestamp is as late)"
        ),
        "`earliest`",
    ),
    (
        "`lost`",
        (
            "what happens if offsets are gone before they were read: `stop` with a sentence, or"
            " `skip`: they are dead letters, counted"
        ),
        "`stop`",
    ),
    (
        "`isolation`",
        ("`read_committed`, or `read_uncommitted`: also what open and aborted transactions wrote"),
        "`read_committed`",
    ),
    (
        "`tls`, `ca`, `cert`, `key`",
        (
            "of Kafka and [MQTT](#mqtt) `tls=true`; files in PEM: whom to trust, and who one is "
            "oneself"
        ),
        "no TLS; the system's",
    ),
    (
        "`sasl`, `user`, `password`",
        (
            "`plain`, `scram-sha-256` or `scram-sha-512` (of Kafka); a name; where the password "
            "is: `env:VARIABLE` or `file:PATH`"
        ),
        "",
    ),
    (
        "`qos`",
        "of [MQTT](#mqtt): `1`: a message is acknowledged when it is durable here; or `0`",
        "`1`",
    ),
    (
        "`retained`",
        "of MQTT: `take` what the broker has kept for newcomers, or `skip` it",
        "`take`",
    ),
    ("`version`", "of MQTT: `5` or `3.1.1`", "`5`"),
)
"""Each key, or several related keys, in backticks; its meaning in Markdown; its default."""


def keys() -> list[str]:
    """Returns the keys of the table, in its order.

    >>> from levada.connectors.config.stream_options import OPTIONS
    >>> set(keys()) == set(OPTIONS)
    True
    """
    return [word.strip("` ") for key, _, _ in OPTION_ROWS for word in key.split(",")]
