"""Parses many messages of RDF as one text, each with blank nodes of its own.

A message that is one element is kept completely or not at all: an ill-formed line makes all of it
dead. Documents (Turtle, ..) are first written as N-Quads, each separately. The label of a blank
node depends on its document, its own label and the message's offset; only messages with blank nodes
pay for that. A message whose header names another format than the stream's has that format. A
message with the prefix of a schema registry (a zero byte and four of a number) is reported as such.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec
import numpy as np
import numpy.typing as npt

from levada.connectors.config.input_formats import LINES
from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.ingest.parse.document_limits import Malformed
from levada.connectors.ingest.parse.documents import LARGEST, document_text, fault_of
from levada.connectors.ingest.parse.fallback_parser import Refused, read_line
from levada.connectors.ingest.parse.ntriples import TermColumn, Triples, line_at, parse
from levada.connectors.sources.message_texts import Messages
from levada.connectors.sources.splits import FileSplit
from levada.core.array_types import Bytes, Longs
from levada.core.rdf_terms import Kind
from levada.kernels.text.byte_ops import PAD
from levada.kernels.text.canonical_text import BLANK_SIZE
from levada.kernels.text.xxh3 import identify_slices, schedule

REGISTRY = "it begins with the prefix of a schema registry, which is not read"
MUCH = "it and the messages beside it are larger than a gigabyte as N-Quads"
_PREFIX = 5
_HEX = np.frombuffer(b"0123456789abcdef", np.uint8)
Bad = list[tuple[int, str, str]]


def parse_messages(
    data: Bytes, messages: Messages, reference: FileSplit, config: StreamConfig, seed: int
) -> tuple[Triples, FileSplit, Messages]:
    """Returns the statements of messages, the reference to their text, and the messages with their
    places in it. Faults are in ``bad``, by places of the text.
    """
    bad: Bad = []
    rewritten = config.documents or any(messages.beside.formats)
    if rewritten:
        data, messages, bad = _as_quads(data, messages, reference.format)
        reference = msgspec.structs.replace(reference, stop=len(data))
    quads = rewritten or reference.format == "nq"
    triples = parse(
        data, quads=quads, timed=config.timed, seed=seed, document=reference.document,
        unit_power=config.unit_power,
    )  # fmt: skip
    if rewritten:
        triples = _without_graphs(triples, data, messages, reference.format, config)
    if config.element == "message" and triples.bad:
        triples = _whole(triples, data, messages)
    triples.bad.extend(bad)
    _scope(triples, messages, seed)
    return triples, reference, messages


def _without_graphs(
    triples: Triples, data: Bytes, messages: Messages, form: str, config: StreamConfig
) -> Triples:
    """Returns the triples without the lines of N-Triples messages that name a graph. These lines
    are bad: in a batch with other formats all messages are read as N-Quads.
    """
    assert triples.g is not None, "N-Quads have graphs"
    formats = messages.beside.formats or [""] * len(messages)
    of_triples = np.array([(said or form) == "nt" for said in formats], np.bool_)
    rows = np.flatnonzero(triples.g.kind != Kind.UNBOUND)
    rows = rows[of_triples[messages.number(triples.line[rows])]]
    if not len(rows):
        return triples
    bad = []
    for place in triples.line[rows].tolist():
        text = line_at(data, place, len(data))
        try:
            read_line(
                text, quads=False, timed=config.timed, document=0, unit_power=config.unit_power
            )
        except Refused as fault:
            bad.append((place, str(fault), text.decode(errors="replace")))
    keep = np.ones(triples.n, np.bool_)
    keep[rows] = False
    remaining = triples.take(np.flatnonzero(keep))
    remaining.bad = sorted([*triples.bad, *bad])
    return remaining


def _as_quads(data: Bytes, messages: Messages, form: str) -> tuple[Bytes, Messages, Bad]:
    """Converts messages to N-Quads, each followed by a newline; ``form``: of those without a
    format.
    """
    raw, edges = data.tobytes(), messages.starts.tolist()
    formats = messages.beside.formats or [""] * len(messages)
    texts: list[bytes] = []
    faults: list[tuple[int, str]] = []
    size = 0
    for k in range(len(messages)):
        one = raw[edges[k] : edges[k + 1] - 1]
        try:
            texts.append(_quads(one, formats[k] or form))
        except Malformed as fault:
            texts.append(b"")
            faults.append((k, registry_or(one, fault_of(fault))))
        size += len(texts[k])
        if size > LARGEST:
            largest = max(range(k + 1), key=lambda each: len(texts[each]))
            size -= len(texts[largest])
            texts[largest] = b""
            faults.append((largest, MUCH))
    starts: Longs = np.zeros(len(texts) + 1, np.int64)
    np.cumsum(np.fromiter(map(len, texts), np.int64, len(texts)) + 1, out=starts[1:])
    joined = b"".join(text + b"\n" for text in texts)
    relocated = replace(messages, starts=starts)  # at their places in the new text
    bad = [(int(starts[k]), reason, messages.text(data, k)) for k, reason in faults]
    return np.frombuffer(joined, np.uint8), relocated, bad


def _quads(one: bytes, form: str) -> bytes:
    if form in LINES:
        return one
    if form.startswith("?"):
        raise Malformed(f"its RDF-Message-Content-Type is none of RDF: {form[1:] or 'empty'}")
    return document_text(one, form)


def registry_or(one: bytes, reason: str) -> str:
    """Returns the reason why a message cannot be read."""
    return REGISTRY if one[:1] == b"\0" and len(one) > _PREFIX else reason


def _whole(triples: Triples, data: Bytes, messages: Messages) -> Triples:
    """Returns the triples without those of messages with a bad line, each of which is one bad
    place.
    """
    numbers = messages.number(np.array([place for place, _, _ in triples.bad], np.int64))
    reasons: dict[int, str] = {}
    for number, (_, reason, _) in zip(numbers.tolist(), triples.bad, strict=True):
        reasons.setdefault(number, reason)
    dead = np.zeros(len(messages), np.bool_)
    dead[list(reasons)] = True
    remaining = triples.take(np.flatnonzero(~dead[messages.number(triples.line)]))
    remaining.bad = []
    for k, reason in reasons.items():
        start, stop = int(messages.starts[k]), int(messages.starts[k + 1]) - 1
        why = registry_or(data[start : min(stop, start + _PREFIX + 1)].tobytes(), reason)
        remaining.bad.append((start, why, messages.text(data, k)))
    return remaining


def _scope(triples: Triples, messages: Messages, seed: int) -> None:
    """Renames blank nodes, so that each belongs to its message."""
    columns = [c for c in (triples.s, triples.o, triples.g) if c is not None]
    rows = [np.flatnonzero(column.kind == Kind.BLANK) for column in columns]
    if not any(map(len, rows)):
        return
    offsets = messages.offset(triples.line)
    for column, at in zip(columns, rows, strict=True):
        if len(at):
            _rename(triples, column, at, offsets[at], seed)


def _rename(triples: Triples, column: TermColumn, rows: Longs, offsets: Longs, seed: int) -> None:
    """Writes new labels for some terms of a column, after the present texts."""
    place = column.off[rows].astype(np.int64)[:, None] + np.arange(BLANK_SIZE)
    number = offsets.astype("<i8").view(np.uint8).reshape(-1, 8)
    keys = np.ascontiguousarray(np.hstack([triples.buffer[place], number]))
    x, y = _identities(keys, 0)
    digest = np.stack([y, x], axis=1).astype(">u8").view(np.uint8).reshape(-1, 16)
    texts = np.empty((len(rows), BLANK_SIZE), np.uint8)
    texts[:, :3] = np.frombuffer(b"_:b", np.uint8)
    texts[:, 3::2], texts[:, 4::2] = _HEX[digest >> 4], _HEX[digest & 15]
    base = len(triples.buffer)
    triples.buffer = np.concatenate([triples.buffer, texts.ravel(), np.full(PAD, 10, np.uint8)])
    column.off[rows] = base + BLANK_SIZE * np.arange(len(rows))
    column.len[rows] = BLANK_SIZE
    column.x[rows], column.y[rows] = _identities(texts, seed)


def _identities(
    texts: npt.NDArray[np.uint8], seed: int
) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.uint64]]:
    """Returns the identities of texts of one length."""
    n, size = texts.shape
    x, y = np.empty(n, np.uint64), np.empty(n, np.uint64)
    start = size * np.arange(n, dtype=np.int64)
    identify_slices(
        np.ascontiguousarray(texts).ravel(), start, np.full(n, size, np.int64), schedule(seed), x, y
    )
    return x, y
