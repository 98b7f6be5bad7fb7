"""Canonical texts that are not in the input: unescaped strings, lower-case language tags, blank
nodes' global labels.

They are written to the side area of a chunk's buffer, in the form that pyoxigraph prints (N-Triples
canonicalisation, with letter escapes for backspace, tab, line feed, form feed, carriage return,
``\\u00XX`` for other control characters, and every other character as it is). A blank node's label
is ``b`` and 32 hex digits of the unseeded xxh3_128 of the document's number (eight bytes,
little-endian) and the label: one node within its document, and never another document's.

Invariant: a text is at most six times as long as its source; the callers reserve that. Cost: about
2 ns a byte.
"""

from __future__ import annotations

import numpy as np

from levada.kernels import fuse, part
from levada.kernels.text.byte_ops import HEX, UPPER, View, W, as_int, byte, is_in, put, routine
from levada.kernels.text.ntriples_scan import REFUSED
from levada.kernels.text.xxh3 import hash128

BLANK_SIZE = 35  # "_:b" and 32 hex digits
# the document of texts that come from the engine: their nodes keep their names
ENGINE = W(0xFFFF_FFFF_FFFF_FFFF)


@routine
def _put_escaped(side: View, at: int, point: int) -> int:
    """Writes a quote, a backslash or a control character as an escape; returns the end."""
    letter = 0
    if point == 34 or point == 92:
        letter = point
    elif point == 9:
        letter = 116
    elif point == 10:
        letter = 110
    elif point == 13:
        letter = 114
    elif point == 8:
        letter = 98
    elif point == 12:
        letter = 102
    put(side, at, 92)
    if letter > 0:
        put(side, at + 1, letter)
        return at + 2
    put(side, at + 1, 117)
    for k in range(4):
        put(side, at + 2 + k, _hex_digit((point >> (12 - 4 * k)) & 15, 65))
    return at + 6


@part
def _hex_digit(value: int, ten: int) -> int:
    """The digit of 0 to 15; ``ten`` is the letter for 10."""
    return value + 48 if value < 10 else value - 10 + ten


@routine
def put_character(side: View, at: int, point: int) -> int:
    """Writes a character in canonical form; returns the end."""
    if point < 32 or point == 34 or point == 92 or point == 127:
        return _put_escaped(side, at, point)
    if point < 0x80:
        put(side, at, point)
        return at + 1
    size = 2 if point < 0x800 else 3 if point < 0x10000 else 4
    put(side, at, (0xF00 >> size) & 0xFF | point >> (6 * (size - 1)))
    for k in range(1, size):
        put(side, at + k, 0x80 | (point >> (6 * (size - 1 - k))) & 63)
    return at + size


@routine
def _numeric_escape(view: View, i: int, size: int) -> int:
    """Returns the character of ``size`` hex digits at i, or a negative number for cases that
    pyoxigraph must decide (surrogates and the like).
    """
    point = 0
    for k in range(size):
        c = byte(view, i + k)
        if not is_in(c, HEX):
            return -1
        point = point * 16 + (c - 48 if c < 58 else (c | 32) - 87)
    unusual = 0xD800 <= point < 0xE000 or 0xFDD0 <= point <= 0xFDEF or (point & 0xFFFE) == 0xFFFE
    return -1 if unusual or point > 0x10FFFF else point


@routine
def copy_string(view: View, i: int, stop: int, at: int) -> int:
    """Writes the scanned body of a string, bytes i to stop, canonically at ``at``; returns the end
    or REFUSED.
    """
    while i < stop:
        c = byte(view, i)
        if c == 92:
            letter = byte(view, i + 1)
            i += 2
            if letter == 117 or letter == 85:
                size = 4 if letter == 117 else 8
                point = _numeric_escape(view, i, size)
                if point < 0:
                    return REFUSED
                at = put_character(view, at, point)
                i += size
            else:
                if letter != 39:
                    put(view, at, 92)
                    at += 1
                put(view, at, letter)
                at += 1
        else:
            if c < 32 or c == 127:
                at = _put_escaped(view, at, c)
            else:
                put(view, at, c)
                at += 1
            i += 1
    return at


@routine
def copy_lower(view: View, i: int, stop: int, at: int) -> int:
    """Copies bytes i to stop with letters in lower case; returns the end."""
    for k in range(i, stop):
        c = byte(view, k)
        put(view, at + k - i, c | 32 if is_in(c, UPPER) else c)
    return at + stop - i


@fuse
def _put_hex(side: View, at: int, value: np.uint64) -> None:
    for k in range(16):
        put(side, at + k, _hex_digit(as_int((value >> W(60 - 4 * k)) & W(15)), 97))


@routine
def put_blank(view: View, i: int, stop: int, document: np.uint64, plain: View, at: int) -> None:
    """Writes the global text (BLANK_SIZE bytes) of the node with label bytes i to stop at ``at``.

    In the document ``ENGINE`` labels of that size are global already: they are taken as they are.
    ``plain`` is the hash schedule of seed 0. The area from ``at`` also serves as scratch, 8 bytes
    and the label.
    """
    if document == ENGINE and stop - i == BLANK_SIZE - 2:
        put(view, at, 95)
        put(view, at + 1, 58)
        for k in range(BLANK_SIZE - 2):
            put(view, at + 2 + k, byte(view, i + k))
        return
    for k in range(8):
        put(view, at + k, as_int((document >> W(8 * k)) & W(0xFF)))
    for k in range(stop - i):
        put(view, at + 8 + k, byte(view, i + k))
    low, high = hash128(view, at, 8 + stop - i, plain)
    put(view, at, 95)
    put(view, at + 1, 58)
    put(view, at + 2, 98)
    _put_hex(view, at + 3, high)
    _put_hex(view, at + 19, low)
