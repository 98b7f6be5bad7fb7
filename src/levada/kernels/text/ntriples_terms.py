"""The terms of a line: each function takes the place where the one before ended and returns a term
with its end.

A negative place is passed on: REFUSED (pyoxigraph decides about the line) or FULL (the side area
must grow first). So a line reads as its grammar (``ntriples``).

``memo`` is the state between calls, then IRIs seen before: regular data repeat their predicates in
the same sequence, the subject of the line before, and the object that a predicate had last. A guess
costs a comparison, a miss a scan and a hash.

Invariants: a text lies within the buffer, in the input or in the side area behind it; the memo's
IRIs do too.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from levada.core.rdf_terms import Kind
from levada.kernels import fuse, part
from levada.kernels.text.byte_ops import (
    View,
    W,
    as_int,
    byte,
    equal,
    number,
    put,
    routine,
    set_number,
)
from levada.kernels.text.canonical_text import BLANK_SIZE, copy_lower, copy_string, put_blank
from levada.kernels.text.literals import NO_VALUE, OTHER_, STRING_, STRING_CODE, Facets, value_of
from levada.kernels.text.ntriples_scan import (
    REFUSED,
    scan_blank,
    scan_datatype,
    scan_iri,
    scan_language,
    scan_string,
    skip_space,
)
from levada.kernels.text.xxh3 import identity

_Ints = npt.NDArray[np.int64]

FULL = -2

# Words of the memo: the state between calls, then five words for each remembered IRI.
POSITION, ROW, SIDE, NEED, REFUSALS, PENDINGS, _LAST, _STATE = range(8)
_OFFSET, _SIZE, _X, _Y, _NEXT, _ENTRY = range(6)
_SUBJECT = 256
# from a predicate's entry to that of the object that it had last
_OBJECTS = _ENTRY * (_SUBJECT + 1)
MEMO_WORDS = _STATE + 2 * _OBJECTS

_IRI, _BLANK, _LANG = int(Kind.IRI), int(Kind.BLANK), int(Kind.LANG)


class Chunk(NamedTuple):
    """The common data of the functions of terms: plain numbers only, so passing it is free."""

    text: View
    memo: View
    secret: View  # the schedule of the checkpoint's seed
    plain: View  # the schedule of seed 0
    document: np.uint64


Term = tuple[int, int, int, int, np.uint64, np.uint64]  # end, offset, size, kind, x, y


@part
def no_term(at: int) -> Term:
    """No term: an unbound position, or a refusal that is passed on."""
    return at, 0, 0, 0, W(0), W(0)


@part
def skip(chunk: Chunk, at: int) -> int:
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
def _is_remembered(chunk: Chunk, at: int, entry: int) -> bool:
    """Whether the IRI of this entry is at ``at``."""
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
    set_number(memo, entry + _X, as_int(term[4]))
    set_number(memo, entry + _Y, as_int(term[5]))


@routine
def _blank(chunk: Chunk, at: int) -> Term:
    """Reads a blank node; its text goes to the side area."""
    end = scan_blank(chunk.text, at)
    if end < 0:
        return no_term(end)
    side = _reserve(chunk, BLANK_SIZE + 8 + end - at)
    if side < 0:
        return no_term(side)
    put_blank(chunk.text, at + 2, end, chunk.document, chunk.plain, side)
    set_number(chunk.memo, SIDE, side + BLANK_SIZE)
    x, y = identity(chunk.text, side, BLANK_SIZE, chunk.secret)
    return end, side, BLANK_SIZE, _BLANK, x, y


@routine
def _iri(chunk: Chunk, at: int) -> Term:
    """An IRI."""
    end = scan_iri(chunk.text, at)
    if end < 0:
        return no_term(end)
    x, y = identity(chunk.text, at, end - at, chunk.secret)
    return end, at, end - at, _IRI, x, y


@routine
def _resource(chunk: Chunk, at: int) -> Term:
    """An IRI or blank node."""
    c = byte(chunk.text, at)
    if c == 60:
        return _iri(chunk, at)
    return _blank(chunk, at) if c == 95 else no_term(REFUSED)


@fuse
def subject(chunk: Chunk, at: int) -> Term:
    """An IRI or blank node, likely the IRI of the line before."""
    entry = _STATE + _ENTRY * _SUBJECT
    if _is_remembered(chunk, at, entry):
        return _recall(chunk, at, entry)
    term = _resource(chunk, at)
    if term[3] == _IRI:
        _remember(chunk, term, entry)
    return term


@fuse
def predicate(chunk: Chunk, at: int) -> Term:
    """An IRI, likely the one that followed the predicate of the line before last time."""
    at = skip(chunk, at)
    if at < 0 or byte(chunk.text, at) != 60:
        return no_term(min(at, REFUSED))
    last = number(chunk.memo, _LAST)
    guess = number(chunk.memo, last + _NEXT)
    if _is_remembered(chunk, at, guess):
        set_number(chunk.memo, _LAST, guess)
        return _recall(chunk, at, guess)
    term = _iri(chunk, at)
    if term[0] > 0:
        entry = _STATE + _ENTRY * as_int(term[4] & W(0xFF))
        _remember(chunk, term, entry)
        set_number(chunk.memo, last + _NEXT, entry)
        set_number(chunk.memo, _LAST, entry)
    return term


@fuse
def _copy_literal(chunk: Chunk, at: int, close: int, end: int) -> tuple[int, int]:
    """A canonical copy of the literal from ``at`` in the side area: (offset or refusal, size)."""
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


@fuse
def _suffix(chunk: Chunk, close: int, rewrite: bool) -> tuple[int, int, int, bool]:
    """Reads the suffix of a string: (end of the literal, code of its datatype, end of its canonical
    text, whether it is copied).

    The code is ``STRING_CODE`` for a string, ``NO_VALUE + 1`` for a language tag. Escapes in a
    typed literal are refused: its value would have to be taken from the copy.
    """
    c = byte(chunk.text, close + 1)
    if c == 64:
        end, upper = scan_language(chunk.text, close + 1)
        return end, NO_VALUE + 1, end, rewrite or upper
    if c != 94:
        return close + 1, STRING_CODE, close + 1, rewrite
    end, code = scan_datatype(chunk.text, close + 1)
    if code == STRING_CODE:
        return end, code, close + 1, rewrite
    return REFUSED if rewrite else end, code, end, False


@routine
def _literal(chunk: Chunk, at: int) -> tuple[Term, Facets]:
    """A literal with its value."""
    close, rewrite = scan_string(chunk.text, at)
    if close < 0:
        return no_term(close), (0, 0.0, 0, 0)
    end, code, text_end, rewrite = _suffix(chunk, close, rewrite)
    if end < 0:
        return no_term(end), (0, 0.0, 0, 0)
    offset, size = (at, text_end - at) if not rewrite else _copy_literal(chunk, at, close, text_end)
    if offset < 0:
        return no_term(offset), (0, 0.0, 0, 0)
    facets = (STRING_ if code == STRING_CODE else _LANG, 0.0, 0, 0)
    if code < NO_VALUE and code != STRING_CODE:
        facets = value_of(chunk.text, at + 1, close, code)
    elif code == NO_VALUE:
        facets = (OTHER_, 0.0, 0, 0)
    x, y = identity(chunk.text, offset, size, chunk.secret)
    return (end, offset, size, facets[0], x, y), facets


@fuse
def object_(chunk: Chunk, at: int) -> tuple[Term, Facets]:
    """Any term with its value."""
    at = skip(chunk, at)
    if at < 0:
        return no_term(at), (0, 0.0, 0, 0)
    c = byte(chunk.text, at)
    if c == 34:
        return _literal(chunk, at)
    entry = number(chunk.memo, _LAST) + _OBJECTS
    if c == 60 and _is_remembered(chunk, at, entry):
        return _recall(chunk, at, entry), (0, 0.0, 0, 0)
    term = _resource(chunk, at)
    if term[3] == _IRI:
        _remember(chunk, term, entry)
    return term, (0, 0.0, 0, 0)


@fuse
def graph(chunk: Chunk, at: int, quads: int) -> Term:
    """The graph name of a quad, or nothing (the default graph)."""
    place = skip(chunk, at)
    if place < 0 or quads == 0:
        return no_term(place)
    c = byte(chunk.text, place)
    return _resource(chunk, place) if c == 60 or c == 95 else no_term(place)


def new_memo(side: int) -> _Ints:
    """Returns the memo for a buffer whose side area begins at ``side``."""
    memo = np.zeros(MEMO_WORDS, np.int64)
    memo[SIDE] = side
    memo[_LAST] = _STATE
    memo[_STATE + _NEXT :: _ENTRY] = _STATE
    return memo
