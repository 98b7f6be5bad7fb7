"""Publishes reports as messages of a topic: the results of an epoch are a transaction.

    transactional id, group   levada-CHECKPOINT-QUERY-TOPIC (behind a query with a hyphen: /TOPIC)
    message                   key: the query's name, so that its reports are in one partition, in
                              their order; value: a record (ndjson, json, csv, tsv) or a report
                              (others). With ``message_key`` the key is a row's columns
    position                  the group's committed offset of the topic's partition 0 is the epoch,
                              its metadata the rest; it is part of the transaction

The position is not derived from the topic: others may write to it, and it may drop messages. A new
producer of the id aborts the open transaction of the previous one, and fences it; a
``read_committed`` reader never sees that. After any failure the producer is replaced.

Source: KIP-98 (transactions), KIP-447 (offsets in them). docs/decisions/0032.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar

import msgspec
import polars as pl

from levada.connectors.config.kafka_config import CONNECTION, KafkaConfig, connection_of
from levada.connectors.serialization.encode_batch import contents, records
from levada.connectors.serialization.flat_rows import keyed_rows
from levada.connectors.serialization.result_formats import REPORTS, Format, check_fits, meant
from levada.connectors.serialization.serialize import Batch
from levada.connectors.serialization.unwritable_results import (
    Unwritable,
    is_of_result,
    without_unwritable,
)
from levada.connectors.sinks.transactional_sink import Piece, Position, skips_of
from levada.connectors.sources.kafka.librdkafka import error_text, library, settings
from levada.core.event_time import TIMELESS
from levada.core.query_model import Form, Output
from levada.errors import (
    RefusedValueError,
    SinkError,
    SourceError,
    TargetAwayError,
    TargetTakenError,
    UsageError,
    near,
)
from levada.plan.execution.plan import QueryPlan

SCHEME = "kafka://"
FORMATS = (
    Format.NDJSON, Format.JSON, Format.CSV, Format.TSV, Format.NQ, Format.TRIG, Format.NT,
    Format.SRJ, Format.SRX,
)  # fmt: skip
_MEDIA = {
    Format.NDJSON: "application/json",
    Format.JSON: "application/json",
    Format.CSV: "text/csv",
    Format.TSV: "text/tab-separated-values",
    Format.NQ: "application/n-quads",
    Format.TRIG: "application/trig",
    Format.NT: "application/n-triples",
    Format.SRJ: "application/sparql-results+json",
    Format.SRX: "application/sparql-results+xml",
}
_RDF = (Format.NQ, Format.TRIG, Format.NT)
_SILENT = logging.Logger("levada.kafka", logging.CRITICAL + 1)  # errors are raised, not logged
ANSWER = 10.0  # s until a broker must answer
LARGEST = 1_000_000_000  # librdkafka's largest message in bytes; the topic may accept less
STALE = 60_000  # ms after which the broker aborts the transaction of a silent producer
_FENCED = ("_FENCED", "PRODUCER_FENCED", "INVALID_PRODUCER_EPOCH")
_FOR_PEOPLE = (
    "_AUTHENTICATION", "SASL_AUTHENTICATION_FAILED", "TOPIC_AUTHORIZATION_FAILED",
    "GROUP_AUTHORIZATION_FAILED", "CLUSTER_AUTHORIZATION_FAILED",
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", "UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC",
    "TOPIC_EXCEPTION",
)  # fmt: skip


@dataclass
class KafkaTarget:
    """A topic for the reports of one query; ``identity``: of the transactions."""

    OPTIONS: ClassVar[tuple[str, ...]] = ("format", "message_key", "lost", *CONNECTION)

    query: str
    config: KafkaConfig
    form: Format
    skips: bool
    identity: str
    whole: bool = False
    interval_ms: int = 0
    _producer: Any = None
    _consumer: Any = None
    _open: bool = False  # whether a transaction is open
    _begun: bool = False  # whether it has worked once: later errors are temporary
    _refused: list[str] = field(default_factory=list)  # why brokers refuse access
    unwritable: list[Unwritable] = field(default_factory=list)
    key: tuple[str, ...] = ()  # the columns by which messages are keyed; (): the query's name

    @classmethod
    def from_url(cls, query: str, url: str, options: Mapping[str, Any], owner: str) -> KafkaTarget:
        """Makes the target of a URL and its options. Raises ``UsageError``."""
        who = f"The output of {query}"
        config = connection_of(who, url, options)
        word = str(options.get("format") or Format.NDJSON)
        if word not in FORMATS:
            hint = near(word, FORMATS) if word in list(Format) else meant(word)
            raise UsageError(f"{who}: messages are not written as {word}.", hint=hint)
        key = tuple(filter(None, str(options.get("message_key") or "").split(";")))
        if key and word != Format.JSON:
            raise UsageError(
                f"{who}: message_key is for messages of one row, and {word} has other ones.",
                hint="Say format=json, too.",
            )
        parts = "/" if "-" in query else "-"  # (a-b, c) and (a, b-c) must not fence each other
        identity = f"levada-{owner}-{query}{parts}{config.topic}"
        skips = skips_of(who, options)
        return cls(query, config, Format(word), skips, identity, key=key)

    @property
    def name(self) -> str:
        """The URL of the topic."""
        return f"{SCHEME}{self.config.servers}/{self.config.topic}"

    def check(self, query: str, form: Form, output: Output, variables: tuple[str, ...]) -> None:
        """Raises ``UsageError`` if the format cannot represent the results of such a query, or it
        lacks a column of the key.
        """
        check_fits(self.form, query, form, output)
        for name in self.key:
            if form is not Form.SELECT or name not in variables:
                message = f"The output of {query}: message_key={name} is no column of the results."
                raise UsageError(message, hint=near(name, variables))

    def open(self, known: Position | None) -> Position | None:
        """Creates a producer; returns the position that its id has committed. If the broker has
        forgotten it (``offsets.retention.minutes`` after the last commit), returns that of the
        checkpoint.
        """
        self.close()
        with self._translated_errors():
            kafka = library()
            producer_settings = {
                "transactional.id": self.identity,
                "transaction.timeout.ms": STALE,
                "compression.type": "lz4",
                "linger.ms": 5,
                "message.max.bytes": LARGEST,
                "error_cb": self._hear,
                "logger": _SILENT,
            }
            self._producer = kafka.Producer(settings(self.config) | producer_settings)
            self._check_topic()
            self._producer.init_transactions(ANSWER)
            group = {"group.id": self.identity, "isolation.level": "read_committed"}
            self._consumer = kafka.Consumer(settings(self.config) | group)
            marker = kafka.TopicPartition(self.config.topic, 0)
            committed = self._consumer.committed([marker], timeout=ANSWER)[0]
            if committed.error is not None:
                raise kafka.KafkaException(committed.error)
        self._begun = True
        if committed.offset < 0:
            return known
        return msgspec.json.decode(committed.metadata, type=Position)

    def _check_topic(self) -> None:
        topic = self._producer.list_topics(self.config.topic, timeout=ANSWER)
        error = topic.topics[self.config.topic].error
        absent = error is not None and error.name() in ("UNKNOWN_TOPIC_OR_PART", "_UNKNOWN_TOPIC")
        if absent and not self._begun:
            raise SinkError(
                f"Kafka at {self.config.servers} has no topic {self.config.topic} for the results "
                f"of {self.query}.",
                hint="Make it, and start again.",
            )
        if error is not None:
            raise TargetAwayError(self._sentence(error_text(error)))

    def write(self, piece: Piece) -> None:
        """Writes a transaction: messages, and the position."""
        with self._translated_errors():
            kafka, position = library(), piece.position
            self._producer.begin_transaction()
            self._open = True
            name = self.query.encode()
            if self.key:
                headers = [("content-type", _MEDIA[self.form].encode())]
                query = piece.query
                for key, row in keyed_rows(query.name, query.variables, piece.batch, self.key):
                    self._produce(
                        None if key is None else key.encode(),
                        None if row is None else row.rstrip("\n").encode(),
                        headers,
                    )
            else:
                for value, headers in messages(self.form, piece, self.unwritable):
                    self._produce(name, value, headers)
            self._producer.poll(0)  # serves callbacks
            if self._producer.flush(ANSWER):  # the next calls would wait for STALE
                raise TargetAwayError(self._sentence("the broker does not answer"))
            text = msgspec.json.encode(position).decode()
            marker = kafka.TopicPartition(self.config.topic, 0, position.epoch, metadata=text)
            group = self._consumer.consumer_group_metadata()
            self._in_time(partial(self._producer.send_offsets_to_transaction, [marker], group))
            self._producer.commit_transaction(ANSWER)
            self._open = False

    def _in_time(self, call: Callable[[float], None]) -> None:
        """Makes a call with a time limit. librdkafka may exceed its own: it waits for the broker
        that was the group's coordinator, though that has died and another one is. Then that call
        keeps the producer, which the next one fences.
        """
        raised: list[BaseException] = []

        def run() -> None:
            try:
                call(ANSWER)
            except BaseException as error:
                raised.append(error)

        calling = threading.Thread(target=run, name="levada kafka", daemon=True)
        calling.start()
        calling.join(2 * ANSWER)
        if calling.is_alive():
            self._producer = None
            raise TargetAwayError(self._sentence("the coordinator does not answer"))
        if raised:
            raise raised[0]

    def _produce(
        self, key: bytes | None, value: bytes | None, headers: list[tuple[str, bytes]]
    ) -> None:
        while True:
            try:
                self._producer.produce(self.config.topic, value, key=key, headers=headers)
            except BufferError:  # librdkafka's queue is full
                self._producer.poll(0.01)
            else:
                return

    def close(self) -> None:
        """Aborts an open transaction, if the broker responds at once; otherwise the next producer
        does so.
        """
        producer, consumer = self._producer, self._consumer
        self._producer = self._consumer = None
        if producer is not None:
            with suppress(Exception):
                producer.purge()
                if self._open:
                    producer.abort_transaction(1)
        if consumer is not None:
            with suppress(Exception):
                consumer.close()
        self._open = False
        self._refused.clear()

    def _hear(self, error: Any) -> None:
        if error.name() in _FOR_PEOPLE:
            self._refused.append(error_text(error))

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        """Turns errors of librdkafka into errors for users."""
        try:
            yield
        except SourceError as error:  # no package or password; temporary if it has worked once
            kind = TargetAwayError if self._begun else SinkError
            raise kind(error.message, hint=error.hint) from error
        except SinkError:
            raise
        except Exception as failure:
            kafka_error: Any = failure.args[0] if failure.args else None
            if not hasattr(kafka_error, "fatal"):
                raise
            if self._producer is not None:
                with suppress(Exception):
                    self._producer.poll(0)  # serves callbacks
            raise self._sink_error(kafka_error) from failure

    def _sink_error(self, error: Any) -> SinkError:
        if error.name() in _FENCED:
            return TargetTakenError(
                f"Another engine writes the results of {self.query} to {self.name}, as the same "
                "checkpoint's.",
                hint="End one of the two, and start the other again: nothing is lost.",
            )
        if not self._begun and (self._refused or error.name() in _FOR_PEOPLE):
            why = self._refused[-1] if self._refused else error_text(error)
            return SinkError(self._sentence(why), hint="Mend that and start again.")
        why = error_text(error)
        # a large message must not end the engine: the topic's limit may be raised
        large = error.name() == "MSG_SIZE_TOO_LARGE" or "size too large" in why
        hint = f"Raise max.message.bytes of {self.config.topic}." if large else ""
        kind = RefusedValueError if large else TargetAwayError
        return kind(self._sentence(why), hint=hint)

    def _sentence(self, why: str) -> str:
        return f"The results of {self.query} cannot be written to {self.name}: {why}."


def messages(
    form: Format, piece: Piece, unwritable: list[Unwritable]
) -> Iterator[tuple[bytes, list[tuple[str, bytes]]]]:
    """Yields the messages of an epoch, with their headers: one for each record or, in formats
    without a place for the report's time, for each report, with the time as a header. Adds the
    results that the format cannot represent to ``unwritable``.
    """
    query, batch = piece.query, piece.batch
    headers: list[tuple[str, bytes]] = [("content-type", _MEDIA[form].encode())]
    if form in _RDF:
        headers.append(("RDF-Message-Content-Type", _MEDIA[form].encode()))
    try:
        encoded = _contents(form, query, batch)
    except BaseException as error:
        if not is_of_result(error):
            raise
        batch, more = without_unwritable(form, query.name, query.variables, batch)
        unwritable.extend(more)
        encoded = _contents(form, query, batch)
    if isinstance(encoded, pl.Series):
        for value in encoded:
            yield value, headers
        return
    for report, data in encoded:
        time = [] if report is None or report == TIMELESS else [("report", str(report).encode())]
        yield data, headers + time


def _contents(
    form: Format, query: QueryPlan, batch: Batch
) -> pl.Series | list[tuple[int | None, bytes]]:
    """Returns the values of messages, with the times of reports if the format has no place for
    them.
    """
    if form in REPORTS:
        return list(contents(form, query.name, query.variables, batch, lambda sizes: []))
    texts = records(form, query.name, query.variables, batch)
    return texts.str.strip_chars_end("\n").cast(pl.Binary)
