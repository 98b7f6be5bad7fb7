"""N-Triples and N-Quads lines, optionally with an event time before the dot, from bytes to columns in one pass.

A line is taken only if it is proved well-formed (``ntriples_scan``); every other line keeps its row with all columns zero, and
pyoxigraph decides about it later. Lines end at a line feed or a carriage return (the grammar's EOL); empty lines and
comments have no row. Every function of a term takes the place where the one before ended and passes a negative place on
(REFUSED, or FULL: the side area must grow before this line can be taken), so that a line reads as its grammar.

Memory: the buffer is the chunk, PAD newlines, and the side area for texts that are not in the input. ``memo`` holds the
state between calls, then IRIs seen before: regular data repeat their predicates in the same sequence, and the subject
of the line before. A guess costs a comparison, a miss a scan and a hash.

Invariants: rows are in input order; a refused row is zero in every column; a text lies within the buffer.
Cost: 60 to 160 ns a line, identities included.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from numba import types

from levada.kernels import INT, U8, kernel
from levada.kernels.bytes_ import (
    SPACE,
    Bytes,
    View,
    W,
    Words,
    byte,
    equal,
    is_in,
    number,
    part,
    put,
    routine,
    set_number,
    view_of,
)
from levada.kernels.literals import (
    DATATYPES,
    DATETIME_,
    INTEGER_,
    NO_VALUE,
    PENDING,
    STRING_,
    Facets,
    date_time,
    digits,
    integer,
    sign,
    value_of,
)
from levada.kernels.ntriples_scan import (
    REFUSED,
    line_end,
    scan_blank,
    scan_datatype,
    scan_iri,
    scan_language,
    scan_string,
    skip_space,
)
from levada.kernels.ntriples_text import BLANK_SIZE, copy_lower, copy_string, put_blank
from levada.kernels.xxh3 import identity
from levada.model.term import Kind
from levada.model.time import MAX, MIN

FULL = -2

# Words of the memo: the state between calls, then five words for each remembered IRI.
POSITION, ROW, SIDE, NEED, REFUSALS, PENDINGS, _LAST, _STATE = range(8)
_OFFSET, _SIZE, _X, _Y, _NEXT, _ENTRY = range(6)
_SUBJECT = 256
MEMO_WORDS = _STATE + _ENTRY * (_SUBJECT + 1)

_IRI, _BLANK, _LANG, _OTHER = int(Kind.IRI), int(Kind.BLANK), int(Kind.LANG), int(Kind.OTHER)
_PLAIN = next(code for code, datatype in enumerate(DATATYPES) if datatype[0] == "string")
_INTEGER = next(code for code, datatype in enumerate(DATATYPES) if datatype[0] == "integer")


class Chunk(NamedTuple):
    """What the functions of terms share: plain numbers only, so passing it is free."""

    text: View
    memo: View
    secret: View  # the schedule of the checkpoint's seed
    plain: View  # the schedule of seed 0
    document: np.uint64


Term = tuple[int, int, int, int, np.uint64, np.uint64]  # end, offset, size, kind, x, y


@part
def _nothing(at: int) -> Term:
    """No term: an unbound position, or a refusal that is passed on."""
    return at, 0, 0, 0, W(0), W(0)


@part
def _skip(chunk: Chunk, at: int) -> int:
    """Past spaces and tabs."""
    return skip_space(chunk.text, at) if at >= 0 else at


@part
def _reserve(chunk: Chunk, size: int) -> int:
    """The place in the side area where ``size`` bytes can be written, or FULL."""
    side = number(chunk.memo, SIDE)
    if side + size <= chunk.text[1]:
        return side
    set_number(chunk.memo, NEED, size)
    return FULL


@part
def _remembered(chunk: Chunk, at: int, entry: int) -> bool:
    """Whether the IRI of this entry stands at ``at``."""
    size = number(chunk.memo, entry + _SIZE)
    return size > 0 and equal(chunk.text, number(chunk.memo, entry + _OFFSET), at, size)


@part
def _recall(chunk: Chunk, at: int, entry: int) -> Term:
    """The IRI at ``at`` as the remembered one."""
    memo = chunk.memo
    size = number(memo, entry + _SIZE)
    x, y = W(number(memo, entry + _X)), W(number(memo, entry + _Y))
    return at + size, number(memo, entry + _OFFSET), size, _IRI, x, y


@part
def _remember(chunk: Chunk, term: Term, entry: int) -> None:
    """Keeps an IRI."""
    memo = chunk.memo
    set_number(memo, entry + _OFFSET, term[1])
    set_number(memo, entry + _SIZE, term[2])
    set_number(memo, entry + _X, np.int64(term[4]))
    set_number(memo, entry + _Y, np.int64(term[5]))


@routine
def _blank(chunk: Chunk, at: int) -> Term:
    """A blank node; its text goes to the side area."""
    end = scan_blank(chunk.text, at)
    if end < 0:
        return _nothing(end)
    side = _reserve(chunk, BLANK_SIZE + 8 + end - at)
    if side < 0:
        return _nothing(side)
    put_blank(chunk.text, at + 2, end, chunk.document, chunk.plain, side)
    set_number(chunk.memo, SIDE, side + BLANK_SIZE)
    x, y = identity(chunk.text, side, BLANK_SIZE, chunk.secret)
    return end, side, BLANK_SIZE, _BLANK, x, y


@routine
def _iri(chunk: Chunk, at: int) -> Term:
    """An IRI."""
    end = scan_iri(chunk.text, at)
    if end < 0:
        return _nothing(end)
    x, y = identity(chunk.text, at, end - at, chunk.secret)
    return end, at, end - at, _IRI, x, y


@routine
def _resource(chunk: Chunk, at: int) -> Term:
    """An IRI or blank node."""
    c = byte(chunk.text, at)
    if c == 60:
        return _iri(chunk, at)
    return _blank(chunk, at) if c == 95 else _nothing(REFUSED)


@part
def _subject(chunk: Chunk, at: int) -> Term:
    """An IRI or blank node, likely the IRI of the line before."""
    entry = _STATE + _ENTRY * _SUBJECT
    if _remembered(chunk, at, entry):
        return _recall(chunk, at, entry)
    term = _resource(chunk, at)
    if term[3] == _IRI:
        _remember(chunk, term, entry)
    return term


@part
def _predicate(chunk: Chunk, at: int) -> Term:
    """An IRI, likely the one that followed the predicate of the line before when that was seen last."""
    at = _skip(chunk, at)
    if at < 0 or byte(chunk.text, at) != 60:
        return _nothing(min(at, REFUSED))
    last = number(chunk.memo, _LAST)
    guess = number(chunk.memo, last + _NEXT)
    if _remembered(chunk, at, guess):
        set_number(chunk.memo, _LAST, guess)
        return _recall(chunk, at, guess)
    term = _iri(chunk, at)
    if term[0] > 0:
        entry = _STATE + _ENTRY * np.int64(term[4] & W(0xFF))
        _remember(chunk, term, entry)
        set_number(chunk.memo, last + _NEXT, entry)
        set_number(chunk.memo, _LAST, entry)
    return term


@part
def _copied(chunk: Chunk, at: int, close: int, end: int) -> tuple[int, int]:
    """A canonical copy of the literal ``at`` to ``end`` in the side area: (offset or refusal, size)."""
    side = _reserve(chunk, 6 * (end - at))
    if side < 0:
        return side, 0
    put(chunk.text, side, 34)
    stop = copy_string(chunk.text, at + 1, close, side + 1)
    if stop < 0:
        return stop, 0
    stop = copy_lower(chunk.text, close, end, stop)
    set_number(chunk.memo, SIDE, stop)
    return side, stop - side


@part
def _suffix(chunk: Chunk, close: int, rewrite: bool) -> tuple[int, int, int, bool]:
    """What follows a string: (end of the literal, code of its datatype, end of its canonical text, whether it is copied).

    The code is ``_PLAIN`` for a string, ``NO_VALUE + 1`` for a language tag. Escapes in a typed literal are refused: its
    value would have to be taken from the copy.
    """
    c = byte(chunk.text, close + 1)
    if c == 64:
        end, upper = scan_language(chunk.text, close + 1)
        return end, NO_VALUE + 1, end, rewrite or upper
    if c != 94:
        return close + 1, _PLAIN, close + 1, rewrite
    end, code = scan_datatype(chunk.text, close + 1)
    if code == _PLAIN:
        return end, code, close + 1, rewrite
    return REFUSED if rewrite else end, code, end, False


@routine
def _literal(chunk: Chunk, at: int) -> tuple[Term, Facets]:
    """A literal with its value."""
    close, rewrite = scan_string(chunk.text, at)
    if close < 0:
        return _nothing(close), (0, 0.0, 0, 0)
    end, code, text_end, rewrite = _suffix(chunk, close, rewrite)
    if end < 0:
        return _nothing(end), (0, 0.0, 0, 0)
    offset, size = (at, text_end - at) if not rewrite else _copied(chunk, at, close, text_end)
    if offset < 0:
        return _nothing(offset), (0, 0.0, 0, 0)
    facets = (STRING_ if code == _PLAIN else _LANG, 0.0, 0, 0)
    if code < NO_VALUE and code != _PLAIN:
        facets = value_of(chunk.text, at + 1, close, code)
    elif code == NO_VALUE:
        facets = (_OTHER, 0.0, 0, 0)
    x, y = identity(chunk.text, offset, size, chunk.secret)
    return (end, offset, size, facets[0], x, y), facets


@part
def _object(chunk: Chunk, at: int) -> tuple[Term, Facets]:
    """Any term with its value."""
    at = _skip(chunk, at)
    if at < 0:
        return _nothing(at), (0, 0.0, 0, 0)
    if byte(chunk.text, at) == 34:
        return _literal(chunk, at)
    return _resource(chunk, at), (0, 0.0, 0, 0)


@part
def _graph(chunk: Chunk, at: int, quads: int) -> Term:
    """The graph name of a quad, or nothing (the default graph)."""
    place = _skip(chunk, at)
    if place < 0 or quads == 0:
        return _nothing(place)
    c = byte(chunk.text, place)
    return _resource(chunk, place) if c == 60 or c == 95 else _nothing(place)


@routine
def _quoted_time(chunk: Chunk, at: int) -> tuple[int, int, int]:
    """A time in quotes: (end, kind INTEGER or DATETIME, value)."""
    close, rewrite = scan_string(chunk.text, at)
    if close < 0 or rewrite:
        return REFUSED, 0, 0
    end, code = close + 1, _PLAIN
    if byte(chunk.text, end) == 94:
        end, code = scan_datatype(chunk.text, end)
    if code == _PLAIN:
        code = _INTEGER
    kind = DATATYPES_KIND[code]
    if end < 0 or (kind != INTEGER_ and kind != DATETIME_):
        return REFUSED, 0, 0
    if kind == INTEGER_:
        found, _, value, _ = integer(chunk.text, at + 1, close, code)
        return (end, kind, value) if found == INTEGER_ else (REFUSED, 0, 0)
    found, value = date_time(chunk.text, at + 1, close)
    return (end, kind, value) if found < PENDING and found != _OTHER else (REFUSED, 0, 0)


DATATYPES_KIND = np.array([*(datatype[1] for datatype in DATATYPES), _OTHER], np.int64)


@part
def _bare_time(chunk: Chunk, at: int) -> tuple[int, int, int]:
    """An integer without quotes, after a space: (end, kind, value)."""
    if not is_in(byte(chunk.text, at - 1), SPACE):
        return REFUSED, 0, 0
    first, _ = sign(chunk.text, at)
    end, _, _ = digits(chunk.text, first, 0, 0)
    found, _, value, _ = integer(chunk.text, at, end, _INTEGER)
    return (end, INTEGER_, value) if found == INTEGER_ else (REFUSED, 0, 0)


@part
def _time(chunk: Chunk, at: int, unit: int) -> tuple[int, int]:
    """The event time: (end, ms); ``unit`` is the ms of an integer's unit, 0 if the lines have no time."""
    at = _skip(chunk, at)
    if at < 0 or unit == 0:
        return at, MIN
    end, kind, value = _quoted_time(chunk, at) if byte(chunk.text, at) == 34 else _bare_time(chunk, at)
    if end < 0 or kind == DATETIME_:
        return end, value
    return (end, value * unit) if abs(value) < MAX // unit else (REFUSED, MIN)


@part
def _stop(chunk: Chunk, at: int) -> int:
    """The dot, perhaps a comment, and the end of the line: its place."""
    at = _skip(chunk, at)
    if at < 0:
        return at
    if byte(chunk.text, at) != 46:
        return REFUSED
    at = skip_space(chunk.text, at + 1)
    if byte(chunk.text, at) == 35:
        at = line_end(chunk.text, at)
    c = byte(chunk.text, at)
    return at if c == 10 or c == 13 else REFUSED


@part
def _line(chunk: Chunk, at: int, quads: int, unit: int) -> tuple[int, Term, Term, Term, Term, Facets, int]:
    """One line from its first term on: (place of its end or a refusal, subject, predicate, object, graph, value, time)."""
    s = _subject(chunk, at)
    p = _predicate(chunk, s[0])
    o, value = _object(chunk, p[0])
    g = _graph(chunk, o[0], quads)
    after, time = _time(chunk, g[0], unit)
    end = _stop(chunk, after)
    if end < 0:
        none = _nothing(0)
        return end, none, none, none, none, (0, 0.0, 0, 0), MIN
    return end, s, p, o, g, value, time


@kernel((U8, INT))
def count_line_ends(buffer: Bytes, size: int) -> int:
    """How many line feeds and carriage returns the first ``size`` bytes hold: in blocks that a byte can count, so it vectorises."""
    total = 0
    for block in range(0, size, 128):
        count = np.uint8(0)
        for i in range(block, min(block + 128, size)):
            count = np.uint8(count + np.uint8((buffer[i] == 10) | (buffer[i] == 13)))
        total += count
    return total


_M32, _M64 = types.int32[:, ::1], types.uint64[:, ::1]
_SIGNATURE = (
    *(types.uint8[::1], INT, U8, U8, types.uint64, INT, INT),
    *(types.int64[::1], types.int64[::1], _M64, _M64, _M32, _M32, types.uint8[:, ::1]),
    *(types.float64[::1], types.int64[::1], types.uint8[::1], types.int64[::1]),
)
_Ints = npt.NDArray[np.int64]
_Ints32 = npt.NDArray[np.int32]


@kernel(_SIGNATURE)
def parse_lines(
    buffer: Bytes, size: int, secret: Bytes, plain: Bytes, document: np.uint64, quads: int, unit: int,
    memo: _Ints, line: _Ints, x: Words, y: Words, off: _Ints32, length: _Ints32, kind: Bytes,
    dbl: npt.NDArray[np.float64], man: _Ints, scale: Bytes, time: _Ints,
) -> None:  # fmt: skip
    """Parses the first ``size`` bytes of ``buffer`` from memo[POSITION] on; returns early if the side area is full.

    x to kind have a row of columns for subject, predicate, object and graph; dbl, man, scale are the object's value. Then
    memo[ROW] rows are there, memo[SIDE] is the end of the side area, memo[NEED] the bytes that it lacked (0: all is done).
    """
    chunk = Chunk(view_of(buffer), view_of(memo), view_of(secret), view_of(plain), document)
    at, row = memo[POSITION], memo[ROW]
    memo[NEED] = 0
    while at < size:
        first = skip_space(chunk.text, at)
        c = byte(chunk.text, first)
        if c == 10 or c == 13 or c == 35:
            at = line_end(chunk.text, first) + 1
            continue
        end, s, p, o, g, value, when = _line(chunk, first, quads, unit)
        if end == FULL:
            break
        x[0, row], x[1, row], x[2, row], x[3, row] = s[4], p[4], o[4], g[4]
        y[0, row], y[1, row], y[2, row], y[3, row] = s[5], p[5], o[5], g[5]
        off[0, row], off[1, row], off[2, row], off[3, row] = s[1], p[1], o[1], g[1]
        length[0, row], length[1, row], length[2, row], length[3, row] = s[2], p[2], o[2], g[2]
        kind[0, row], kind[1, row], kind[2, row], kind[3, row] = s[3], p[3], o[3], g[3]
        line[row], dbl[row], man[row], scale[row], time[row] = at, value[1], value[2], value[3], when
        memo[PENDINGS] += o[3] == PENDING
        memo[REFUSALS] += end < 0
        at = (end if end >= 0 else line_end(chunk.text, first)) + 1
        row += 1
    memo[POSITION], memo[ROW] = at, row


def new_memo(side: int) -> _Ints:
    """The memo for a buffer whose side area begins at ``side``."""
    memo = np.zeros(MEMO_WORDS, np.int64)
    memo[SIDE] = side
    memo[_LAST] = _STATE
    memo[_STATE + _NEXT :: _ENTRY] = _STATE
    return memo
