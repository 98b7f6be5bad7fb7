"""Parses N-Triples and N-Quads bytes to columns: by the byte kernel, and by pyoxigraph for the
lines that it refuses.

The kernel (``kernels.text.ntriples``) proves most lines well-formed and leaves zero rows for the
rest. ``connectors.ingest.parse.fallback_parser`` decides those one by one, and its canonical texts
go to the end of the same buffer. ``connectors.ingest.parse.literal_values`` reads numbers that need
arbitrary precision from their texts. Lines that are not statements are in ``bad``, with place and
reason. If the kernel is not compiled yet (``ntriples``), pyoxigraph parses all lines.

Invariants: rows are in input order; a term's text is ``buffer[off : off + len]``; equal canonical
texts have equal identities. Cost: 80 to 160 ns a line in the kernel, some microseconds for each
line that pyoxigraph parses. Twin: ``ntriples_twin``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from levada.connectors.ingest.parse.fallback_parser import Refused, Row, read_line
from levada.connectors.ingest.parse.literal_values import Facets, facets_of
from levada.core.array_types import Bytes, Longs
from levada.core.event_time import MIN
from levada.core.frozen import frozen
from levada.core.rdf_terms import STRING, Kind
from levada.kernels import is_there
from levada.kernels.text import ntriples as kernel
from levada.kernels.text import ntriples_terms as state
from levada.kernels.text.byte_ops import PAD, parsing_room
from levada.kernels.text.literals import PENDING
from levada.kernels.text.ntriples import parse_lines
from levada.kernels.text.xxh3 import identify_slices, schedule

# Parses N-Triples without the kernel, while it is not compiled.
#
# The parser's kernel takes longest to compile, half of the cost of an empty cache. So if it is not
# in the cache, pyoxigraph parses all lines of small chunks, up to ``most`` bytes in this process.
# The first results of an installation do not wait for the kernel, and a stream does
# (docs/decisions/0019-here-until-spark-is-there.md).
#
# Cost: 20 to 40 us a line; so at most some 2 s before the kernel is compiled.


_NOTHING = re.compile(rb"[ \t]*(?:[\r\n#]|\Z)")


@dataclass
class InterpretedParserQuota:
    """The amount that this process may parse without the kernel: ``left`` bytes, in chunks of at
    most ``chunk``.
    """

    left: int = 4 << 20
    chunk: int = 256 << 10

    def allows(self, size: int) -> bool:
        """Whether to parse a chunk without the kernel; then counts it. After the first refusal all
        are refused.
        """
        if size > min(self.left, self.chunk) or is_there(parse_lines):
            self.left = -1
            return False
        self.left -= size
        return True


COLD = InterpretedParserQuota()


def line_starts(data: Bytes) -> Longs:
    """Returns where lines begin that are neither empty nor comments.

    >>> line_starts(np.frombuffer(b"a\\n # c\\nb\\r\\n", np.uint8)).tolist()
    [0, 7]
    """
    text = data.tobytes()
    ends = np.flatnonzero((data == 10) | (data == 13)).tolist()
    starts = (start for start in (0, *(end + 1 for end in ends)) if not _NOTHING.match(text, start))
    return np.fromiter(starts, np.int64)


Rows = npt.NDArray[np.integer[Any]]

_LARGEST = 2**31 - 1  # offsets are int32


@dataclass(slots=True)
class TermColumn:
    """One position of n triples: identity, place of the canonical text in the buffer, kind; for
    objects the value facets.
    """

    x: npt.NDArray[np.uint64]
    y: npt.NDArray[np.uint64]
    off: npt.NDArray[np.int32]
    len: npt.NDArray[np.int32]
    kind: npt.NDArray[np.uint8]
    dbl: npt.NDArray[np.float64] | None = None
    man: Longs | None = None
    scale: npt.NDArray[np.uint8] | None = None

    def take(self, rows: Rows) -> TermColumn:
        """Returns the terms of these rows, in this order."""
        columns = (self.x, self.y, self.off, self.len, self.kind, self.dbl, self.man, self.scale)
        picked = (None if column is None else column[rows] for column in columns)
        return TermColumn(*picked)  # type: ignore[arg-type]


@dataclass(slots=True)
class Triples:
    """The statements of a chunk as columns, in input order.

    ``line`` is the place of each statement's line in the input, in bytes; ``time`` its event time
    in ms (``core.event_time.MIN`` if lines have none); ``g`` the graph of N-Quads (UNBOUND: the
    default graph). ``bad`` lists (place, reason, text).
    """

    n: int
    buffer: Bytes
    line: Longs
    s: TermColumn
    p: TermColumn
    o: TermColumn
    g: TermColumn | None
    time: Longs
    bad: list[tuple[int, str, str]]

    def text(self, column: TermColumn, row: int) -> str:
        """Returns the canonical text of one term: for messages and tests, not for the data path."""
        start = int(column.off[row])
        return self.buffer[start : start + int(column.len[row])].tobytes().decode()

    def take(self, rows: Rows) -> Triples:
        """Returns the statements of these rows, in this order; the bad lines stay."""
        s, p, o = (column.take(rows) for column in (self.s, self.p, self.o))
        g = None if self.g is None else self.g.take(rows)
        return Triples(
            len(rows), self.buffer, self.line[rows], s, p, o, g, self.time[rows], self.bad
        )


@dataclass(slots=True)
class _Columns:
    """The output of the kernel: x to kind have a row each for subject, predicate, object, graph."""

    line: Longs
    x: npt.NDArray[np.uint64]
    y: npt.NDArray[np.uint64]
    off: npt.NDArray[np.int32]
    len: npt.NDArray[np.int32]
    kind: npt.NDArray[np.uint8]
    dbl: npt.NDArray[np.float64]
    man: Longs
    scale: npt.NDArray[np.uint8]
    time: Longs

    def arrays(self) -> tuple[npt.NDArray[Any], ...]:
        """Returns the arrays in the kernel's order."""
        terms = (self.x, self.y, self.off, self.len, self.kind)
        return (self.line, *terms, self.dbl, self.man, self.scale, self.time)


def _new_columns(n: int) -> _Columns:
    identity, place = np.uint64, np.int32
    return _Columns(
        line=np.empty(n, np.int64),
        x=np.empty((4, n), identity),
        y=np.empty((4, n), identity),
        off=np.empty((4, n), place),
        len=np.empty((4, n), place),
        kind=np.empty((4, n), np.uint8),
        dbl=np.empty(n, np.float64),
        man=np.empty(n, np.int64),
        scale=np.empty(n, np.uint8),
        time=np.empty(n, np.int64),
    )


@frozen
class _Setting:
    """The settings of a parse."""

    quads: bool
    timed: bool
    seed: int
    document: int
    unit_power: int


def parse(
    data: bytes | memoryview | Bytes,
    *,
    quads: bool,
    timed: bool,
    seed: int,
    document: int,
    unit_power: int = 0,
    line_ends: int | None = None,
) -> Triples:
    """Parses a chunk of N-Triples or N-Quads lines; the last line may lack its line end.

    ``timed``: each line has an additional term before its dot, its event time: a number of units of
    ``10**unit_power`` ms, bare or quoted, or another literal (``kernels.text.timestamps``).
    ``seed`` (64 bits) is the checkpoint's, ``document`` (64 bits) the number that distinguishes
    this document's blank nodes from others'. ``line_ends``: how many newlines and carriage returns
    the chunk has, if they are counted.

    >>> line = b'<a:s> <a:p> "5"^^<http://www.w3.org/2001/XMLSchema#int> 17 .'
    >>> found = parse(line, quads=False, timed=True, seed=1, document=1)
    >>> found.n, int(found.time[0]), found.text(found.p, 0), float(found.o.dbl[0])
    (1, 17, '<a:p>', 5.0)
    """
    source = data if isinstance(data, np.ndarray) else np.frombuffer(data, np.uint8)
    assert 0 <= document < 2**64, "a document's number has 64 bits"
    assert source.size < _LARGEST // 2, "a chunk is at most a gigabyte"
    setting = _Setting(quads, timed, seed, document, unit_power)
    if COLD.allows(source.size):
        buffer, columns, memo = _run_nothing(source, setting)
    else:
        buffer, columns, memo = _run_kernel(source, setting, line_ends)
    n, size = int(memo[state.ROW]), source.size
    used = int(memo[state.SIDE])
    if memo[state.PENDINGS]:
        memo[state.REFUSALS] += _settle(buffer, columns, n)
    bad: list[tuple[int, str, str]] = []
    keep = None
    if memo[state.REFUSALS]:
        buffer, keep = _judge(buffer, size, used, columns, n=n, setting=setting, bad=bad)
    triples = _triples(buffer, columns, n, quads, bad)
    return triples if keep is None else triples.take(keep)


def _run_kernel(
    source: Bytes, setting: _Setting, line_ends: int | None
) -> tuple[Bytes, _Columns, Longs]:
    """Runs the kernel over the whole chunk; grows the side area as often as it demands."""
    size = source.size
    buffer = _room_behind(source)
    if line_ends is None:
        line_ends = int(kernel.count_line_ends(buffer, size))
    columns = _new_columns(line_ends + 1)
    memo = state.new_memo(size + PAD)
    secret, plain = schedule(setting.seed), schedule(0)
    power = setting.unit_power if setting.timed else kernel.NO_TIME
    while True:
        kernel.parse_lines(
            buffer,
            size,
            secret,
            plain,
            np.uint64(setting.document),
            int(setting.quads),
            power,
            memo,
            *columns.arrays(),
        )
        if memo[state.NEED] == 0:
            return buffer, columns, memo
        buffer = _pad(buffer, max(buffer.size // 2, 2 * int(memo[state.NEED])))


def _run_nothing(source: Bytes, setting: _Setting) -> tuple[Bytes, _Columns, Longs]:
    """Returns the result of a kernel that refuses each line."""
    size, starts = source.size, line_starts(source)
    columns = _new_columns(len(starts))
    for column in columns.arrays():
        column[...] = 0
    columns.line[:], columns.time[:] = starts, MIN
    memo = state.new_memo(size + PAD)
    memo[state.ROW] = memo[state.REFUSALS] = len(starts)
    return _room_behind(source), columns, memo


def _room_behind(source: Bytes) -> Bytes:
    """Returns the chunk with room for texts after it: in the array that it was read into, if
    possible.
    """
    room, whole = parsing_room(source.size), source.base
    if (
        isinstance(whole, np.ndarray)
        and whole.size == source.size + room
        and whole.ctypes.data == source.ctypes.data
    ):
        whole[source.size : source.size + PAD] = 10
        return whole
    return _pad(source, room)


def _pad(data: Bytes, more: int) -> Bytes:
    """Returns a copy with more bytes after it, PAD newlines first."""
    size = data.size
    assert size + more <= _LARGEST, "the texts of a chunk fit into two gigabytes"
    buffer = np.empty(size + more, np.uint8)
    buffer[:size] = data
    buffer[size : size + PAD] = 10
    return buffer


def _settle(buffer: Bytes, columns: _Columns, n: int) -> int:
    """Reads the pending values from their texts; returns the number of rows that it refuses."""
    refusals = 0
    for row in (columns.kind[2, :n] == PENDING).nonzero()[0].tolist():
        start = int(columns.off[2, row])
        try:
            value = text_facets(buffer[start : start + int(columns.len[2, row])].tobytes().decode())
        except Exception:
            columns.kind[0, row] = 0  # ``_judge`` reports why
            refusals += 1
        else:
            _set_value(columns, row, value)
    return refusals


def _set_value(columns: _Columns, row: int, value: Facets) -> None:
    columns.kind[2, row], columns.dbl[row], columns.man[row], columns.scale[row] = value


def text_facets(text: str) -> Facets:
    """Returns the facets of a term by its canonical text.

    >>> text_facets("<a:b>").kind.name
    'IRI'
    """
    if not text.startswith('"'):
        return Facets(Kind.IRI if text.startswith("<") else Kind.BLANK)
    close = text.rindex('"')
    tail = text[close + 1 :]
    if tail.startswith("@"):
        return Facets(Kind.LANG)
    # A lexical form with an escape has no value in any case: valid forms of typed literals
    # contain no character that needs one.
    return facets_of(text[1:close], tail[3:-1] if tail else STRING)


def _judge(
    buffer: Bytes,
    size: int,
    used: int,
    columns: _Columns,
    *,
    n: int,
    setting: _Setting,
    bad: list[tuple[int, str, str]],
) -> tuple[Bytes, Longs]:
    """Parses the refused rows by pyoxigraph; returns the buffer with their texts, and the rows to
    keep.
    """
    keep = np.ones(n, np.bool_)
    taken: list[tuple[int, Row]] = []
    for row in (columns.kind[0, :n] == 0).nonzero()[0]:
        place = int(columns.line[row])
        text = line_at(buffer, place, size)
        try:
            statement = read_line(
                text,
                quads=setting.quads,
                timed=setting.timed,
                document=setting.document,
                unit_power=setting.unit_power,
            )
        except Refused as reason:
            bad.append((place, str(reason), text.decode(errors="replace")))
            statement = None
        if statement is None:
            keep[row] = False
        else:
            taken.append((int(row), statement))
    return _fill(buffer, used, columns, taken, setting.seed), keep.nonzero()[0]


def line_at(buffer: Bytes, start: int, size: int) -> bytes:
    """Returns the line that starts here, without its end; most lines are short."""
    reach = 1024
    while True:
        part = buffer[start : min(start + reach, size)].tobytes()
        ends = [end for end in (part.find(b"\n"), part.find(b"\r")) if end >= 0]
        if ends or start + reach >= size:
            return part[: min(ends)] if ends else part
        reach *= 8


def _fill(
    buffer: Bytes, used: int, columns: _Columns, taken: list[tuple[int, Row]], seed: int
) -> Bytes:
    """Writes the statements of pyoxigraph into their rows, the texts after the buffer's."""
    if not taken:
        return buffer
    texts = [text.encode() for _, statement in taken for text in statement.texts]
    rows = np.array([row for row, _ in taken], np.int64)
    size = np.array([len(text) for text in texts], np.int64)
    start = used + np.cumsum(size) - size
    buffer = np.concatenate(
        [buffer[:used], np.frombuffer(b"".join(texts), np.uint8), np.full(PAD, 10, np.uint8)]
    )
    assert buffer.size <= _LARGEST, "the texts of a chunk fit into two gigabytes"
    x, y = np.empty(len(texts), np.uint64), np.empty(len(texts), np.uint64)
    identify_slices(buffer, start, size, schedule(seed), x, y)
    x[size == 0] = 0
    y[size == 0] = 0
    for target, source in (
        (columns.x, x),
        (columns.y, y),
        (columns.off, start),
        (columns.len, size),
    ):
        target[:, rows] = source.reshape(-1, 4).T
    columns.off[:, rows] *= columns.len[:, rows] > 0
    columns.kind[:, rows] = np.array([statement.kinds for _, statement in taken], np.uint8).T
    for row, statement in taken:
        _set_value(columns, row, statement.value)
        columns.time[row] = statement.time
    return buffer


def _triples(
    buffer: Bytes, columns: _Columns, n: int, quads: bool, bad: list[tuple[int, str, str]]
) -> Triples:
    """Returns the first n rows as triples."""
    c = columns

    def term(position: int) -> TermColumn:
        at = (position, slice(n))
        return TermColumn(c.x[at], c.y[at], c.off[at], c.len[at], c.kind[at])

    o = term(2)
    o.dbl, o.man, o.scale = c.dbl[:n], c.man[:n], c.scale[:n]
    return Triples(
        n, buffer, c.line[:n], term(0), term(1), o, term(3) if quads else None, c.time[:n], bad
    )


def columns_of(terms: Iterable[str], seed: int) -> tuple[Bytes, TermColumn]:
    """Returns terms by their canonical texts (a query's constants): (buffer, column with values).

    Blank nodes' texts are taken unchanged. An empty text is unbound.

    >>> buffer, column = columns_of(['"7"^^<http://www.w3.org/2001/XMLSchema#integer>'], seed=1)
    >>> column.man.tolist()
    [7]
    """
    texts = [term.encode() for term in terms]
    size = np.array([len(text) for text in texts], np.int64)
    start = np.cumsum(size) - size
    buffer = np.frombuffer(b"".join(texts) + b"\n" * PAD, np.uint8)
    x, y = np.empty(len(texts), np.uint64), np.empty(len(texts), np.uint64)
    identify_slices(buffer, start, size, schedule(seed), x, y)
    x[size == 0] = 0
    y[size == 0] = 0
    values = [text_facets(text.decode()) if text else Facets(Kind.UNBOUND) for text in texts]
    kind = np.array([value.kind for value in values], np.uint8)
    dbl = np.array([value.dbl for value in values], np.float64)
    man = np.array([value.man for value in values], np.int64)
    scale = np.array([value.scale for value in values], np.uint8)
    return buffer, TermColumn(
        x, y, start.astype(np.int32), size.astype(np.int32), kind, dbl, man, scale
    )
