"""Assigns each triple to its element and event time.

An element is a line, consecutive lines that describe one subject or have one graph as written
(subjects of documents: ``subject_descriptions``), lines without a blank one between
(``kernels.text.line_boundaries`` decides, as for the driver's cuts), a whole document, or a
message; of a derived stream, one report. Its time is in the lines, the graph's IRI, a predicate of
its own, the file's name, or the message's timestamp. An element without a time, with two different
ones, or unreadable becomes a dead letter as a whole. A line that does not parse becomes one alone:
the rest of its element is kept (and is dead only if its time was in that line). A document that
does not parse is dead as a whole (``documents``); its places are those of its N-Quads.

``kernels.text.timestamps`` decides which terms are times. The time triple stays in the element. A
graph that is a blank node, or the default graph, contains no time.

Cost: vectorised over the triples, about 10 ns each for ``element=line``; Python only per late or
dead element.
"""

from __future__ import annotations

from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.ingest.lateness import (
    NO_TIME,
    TWO_TIMES,
    WRONG_TIME,
    AdmissionBounds,
    Dead,
    ElementFates,
    Late,
    admit,
    clock_times,
    leading,
    likely_unit,
)
from levada.connectors.ingest.parse.ntriples import TermColumn, Triples
from levada.connectors.ingest.tables.row_event_times import file_time
from levada.connectors.sources.message_texts import Messages
from levada.connectors.sources.splits import FileSplit
from levada.core.array_types import Bools
from levada.core.event_time import MAX, MIN
from levada.core.frozen import frozen
from levada.core.rdf_terms import Kind
from levada.core.row_ranges import starts_segment
from levada.kernels.terms.term_ids import identify_one
from levada.kernels.text.element_runs import number_alike, one_time
from levada.kernels.text.line_boundaries import GRAPH, SUBJECT, number_blocks, number_elements
from levada.kernels.text.timestamps import last_instants, literal_instants

Times = npt.NDArray[np.int64]
_T = TypeVar("_T", bound=np.generic)


@frozen
class Elements:
    """The fates of the ``n`` triples of a reference.

    ``keep`` (bool[n]) are the rows that are kept. ``ts`` (int64[n], MIN if dead without a time) and
    ``element`` (int32[n], dense from 0) are for all rows. ``elements`` and ``triples`` count the
    kept ones. ``cut`` elements were outside from, to or limit; ``passed`` inside (the driver's
    limit counts these). ``max_ts`` is the greatest time of kept and late elements (MIN: none),
    ``lead`` the place of its element, ``times`` the distinct kept times, ascending. ``alone``: dead
    letters that are not elements of their own: parts of one, or lines outside all. ``unit``: as
    ``lateness.likely_unit``. ``blank``: messages without an element. ``empty_columns``: of a
    mapping, without a value in any kept row.
    """

    keep: Bools
    ts: Times
    element: npt.NDArray[np.int32]
    late: Late
    dead: list[Dead]
    elements: int
    triples: int
    cut: int
    passed: int
    max_ts: int
    times: Times
    alone: int = 0
    unit: str = ""
    blank: int = 0
    lead: int = 0
    empty_columns: tuple[str, ...] = ()


@frozen
class _Groups:
    """Rows by element: ``number`` of each row, and the first row of each element followed by the
    end of the last.
    """

    number: npt.NDArray[np.int32]
    edges: npt.NDArray[np.int64]

    @property
    def count(self) -> int:
        return len(self.edges) - 1


@frozen
class _ReadTimes:
    """The times in the rows: ``ts`` where ``speaks`` (``all``: everywhere), MIN if it is not a
    time.
    """

    ts: Times
    speaks: Bools
    all: bool = False


def elements_of(
    triples: Triples,
    config: StreamConfig,
    reference: FileSplit,
    *,
    late_below: int,
    future_above: int,
    seed: int,
    messages: Messages | None = None,
    number: npt.NDArray[np.int32] | None = None,
) -> Elements:
    """Returns the elements of a parsed reference.

    ``late_below`` is the stream's watermark after the previous epoch (MIN at first),
    ``future_above`` the latest accepted time (ms), ``seed`` that of the identities in ``triples``.
    ``messages``: those of the text, if it consists of messages. ``number``: the element of each
    triple, if known (``subject_descriptions``).
    """
    message = None if messages is None else messages.number(triples.line)
    gate = AdmissionBounds.for_split(config, reference, late_below, future_above)
    groups = _groups(triples, config, reference, message, number)
    if config.time_kind in ("timestamp", "arrival"):
        message_times = None if messages is None else messages.times[message]
        times = clock_times(config, message_times, triples.n, gate)
        said = _ReadTimes(times, np.ones(triples.n, np.bool_), all=True)
    else:
        said = _read_times(triples, config, reference, seed)
    ts, reasons = _element_times(groups, said)
    verdict = admit(ts, gate)
    texts = _Texts(triples, groups, reference, messages, apart=number is not None)
    kept = int(np.count_nonzero(verdict.keep))
    keep = _spread(verdict.keep, groups) if kept < groups.count else np.ones(triples.n, np.bool_)
    late = verdict.late.nonzero()[0]
    return Elements(
        keep=keep,
        ts=said.ts if not reasons and said.all else _spread(ts, groups),
        element=groups.number,
        late=Late(texts.offsets(late), ts[late], [texts.text_of_element(e) for e in late.tolist()]),
        dead=_dead(triples, verdict, reasons, texts, gate.future),
        elements=kept,
        triples=int(np.count_nonzero(keep)),
        cut=int(np.count_nonzero(ts > MIN)) - verdict.passed,
        passed=verdict.passed,
        max_ts=verdict.max_ts,
        times=verdict.times,
        alone=0 if config.element in ("line", "message") else len(triples.bad),
        unit=likely_unit(ts, config, future_above, verdict.max_ts),
        blank=0 if messages is None else len(messages) - groups.count - len(triples.bad),
        lead=int(texts.offsets(leading(ts, verdict)).sum()),
    )


def _groups(
    triples: Triples,
    config: StreamConfig,
    reference: FileSplit,
    message: Times | None,
    number: npt.NDArray[np.int32] | None,
) -> _Groups:
    n = triples.n
    if number is not None:
        return _Groups(*number_alike(*2 * (number.astype(np.uint64),)))
    each = message is not None and n > 0 and bool((np.diff(message) > 0).all())
    if config.element == "line" or (config.element == "message" and each):
        return _Groups(np.arange(n, dtype=np.int32), np.arange(n + 1, dtype=np.int64))
    if config.element == "document":
        return _Groups(np.zeros(n, np.int32), np.array([0, n] if n else [0], np.int64))
    text = triples.buffer[: reference.stop - reference.start]
    term = triples.s if config.element == "subject" else triples.g
    raw: npt.NDArray[np.integer[Any]]
    if config.element == "message":
        assert message is not None, "the text is made of messages"
        raw = message
    elif config.element == "report":
        raw = triples.time
    elif config.element == "blankline":
        raw = number_blocks(text, np.ascontiguousarray(triples.line, np.int64))
    elif (
        term is None
        or triples.bad
        or not ((term.off < len(text)) | (term.kind == Kind.BLANK)).all()
        or (config.element == "subject" and (term.kind == Kind.BLANK).any())
    ):
        by = SUBJECT if config.element == "subject" else GRAPH
        raw = number_elements(text, np.ascontiguousarray(triples.line, np.int64), by)
    else:  # all terms are slices of the text: equal texts are equal terms
        return _Groups(*number_alike(term.x, term.y))
    # An element with only malformed lines has no row, so numbers have gaps: they are made dense.
    same = raw.astype(np.uint64)
    return _Groups(*number_alike(same, same))


def _spread(values: npt.NDArray[_T], groups: _Groups) -> npt.NDArray[_T]:
    """Expands one value an element to one a row."""
    return values if groups.count == len(groups.number) else values[groups.number]


# -- times --


def _read_times(
    triples: Triples, config: StreamConfig, reference: FileSplit, seed: int
) -> _ReadTimes:
    match config.time_kind:
        case "column":
            return _ReadTimes(triples.time, np.ones(triples.n, np.bool_), all=True)
        case "graph":
            return _read_graph_times(triples, config.unit_power)
        case "predicate":
            return _read_predicate_times(triples, config, seed)
        case _:
            ts = np.full(triples.n, file_time(config, reference.name), np.int64)
            return _ReadTimes(ts, ts > MIN)


def _read_graph_times(triples: Triples, power: int) -> _ReadTimes:
    """Reads the times in graph IRIs, each once for consecutive lines of one graph."""
    graph, n = triples.g, triples.n
    if graph is None or not n:
        return _ReadTimes(np.full(n, MIN, np.int64), np.zeros(n, np.bool_))
    new = starts_segment(graph.x, graph.y)
    first = new.nonzero()[0]
    times = last_instants(triples.buffer, *_ranges(graph, first), power)
    times[graph.kind[first] != Kind.IRI] = MIN
    ts = times[np.cumsum(new) - 1]
    return _ReadTimes(ts, ts > MIN)


def _read_predicate_times(triples: Triples, config: StreamConfig, seed: int) -> _ReadTimes:
    x, y = identify_one(f"<{config.time_argument}>", seed)
    speaks = (triples.p.x == np.uint64(x)) & (triples.p.y == np.uint64(y))
    rows = speaks.nonzero()[0]
    ts = np.full(triples.n, MIN, np.int64)
    ts[rows] = literal_instants(triples.buffer, *_ranges(triples.o, rows), config.unit_power)
    return _ReadTimes(ts, speaks)


def _ranges(column: TermColumn, rows: Times) -> tuple[Times, Times]:
    return column.off[rows].astype(np.int64), column.len[rows].astype(np.int64)


def _element_times(groups: _Groups, said: _ReadTimes) -> tuple[Times, dict[int, str]]:
    """Returns the time of each element (MIN: it is dead) and the reasons of dead ones."""
    if not groups.count:
        return np.empty(0, np.int64), {}
    if said.all:
        one, agree = one_time(said.ts, groups.edges)
        if agree:
            return one, {}
    first = groups.edges[:-1]
    valid = said.ts > MIN
    if groups.count == len(said.ts):
        least = greatest = said.ts
        wrong = said.speaks & ~valid
    else:
        least = np.minimum.reduceat(np.where(valid, said.ts, MAX), first)
        greatest = np.maximum.reduceat(said.ts, first)
        wrong = np.logical_or.reduceat(said.speaks & ~valid, first)
    ts = np.where((least == greatest) & ~wrong, greatest, MIN)
    reasons = {}
    for e in (ts == MIN).nonzero()[0].tolist():
        reasons[e] = WRONG_TIME if wrong[e] else NO_TIME if greatest[e] == MIN else TWO_TIMES
    return ts, reasons


# -- late and dead --


class _Texts:
    """The texts of elements, cut from the reference's bytes when the first is requested."""

    def __init__(
        self,
        triples: Triples,
        groups: _Groups,
        reference: FileSplit,
        messages: Messages | None,
        *,
        apart: bool,
    ) -> None:
        self._start, self._messages, self._apart = reference.start, messages, apart
        self._line, self._edges = triples.line, groups.edges
        self._text = triples.buffer[: reference.stop - reference.start]
        self._raw: bytes | None = None

    def positions(self, places: Times) -> Times:
        """Returns the positions of places in the text: in the file, or the offsets of their
        messages.
        """
        if self._messages is not None:
            return self._messages.offset(places)
        return places + self._start

    def offsets(self, elements: Times) -> Times:
        """Returns where elements begin."""
        lines: Times = self._line[self._edges[elements]]
        return self.positions(lines.astype(np.int64))

    def text_of_element(self, element: int) -> str:
        """Returns all lines of an element, from its first triple's to its last one's; if other
        lines may be between these, those of its triples.
        """
        if self._raw is None:
            self._raw = self._text.tobytes()
        lines = self._line[self._edges[element] : self._edges[element + 1]].tolist()
        if self._apart:
            return "\n".join(self._between(at, at) for at in dict.fromkeys(lines))
        return self._between(lines[0], lines[-1])

    def _between(self, begin: int, last: int) -> str:
        """Returns the lines from one that begins at a place to one that begins at another."""
        assert self._raw is not None, "the text is there"
        end = self._raw.find(b"\n", last)
        text = self._raw[begin : end if end >= 0 else len(self._raw)]
        return text.decode("utf-8", "replace").rstrip("\r")


def _dead(
    triples: Triples, verdict: ElementFates, reasons: dict[int, str], texts: _Texts, future: str
) -> list[Dead]:
    """Returns the ill-formed lines and the rejected elements, by their place in the file."""
    dead = list[Dead]()
    if triples.bad:
        places = texts.positions(np.array([place for place, _, _ in triples.bad], np.int64))
        lines = zip(places.tolist(), triples.bad, strict=True)
        dead = [Dead(at, reason, text) for at, (_, reason, text) in lines]
    fates = {**reasons, **dict.fromkeys(verdict.future.nonzero()[0].tolist(), future)}
    if not fates and not dead:
        return []
    offsets = texts.offsets(np.fromiter(fates, np.int64, len(fates))).tolist()
    dead += [
        Dead(at, reason, texts.text_of_element(e))
        for at, (e, reason) in zip(offsets, fates.items(), strict=True)
    ]
    return sorted(dead)
