"""Runs of lines with one subject, cut by guessing where lines end and proving the guess by a count.

Elements of one stream look alike: behind its subject the k-th line of an element has about as many
bytes as the k-th line of the one before. So a line's end is guessed, and searched only where the
guess is not a newline. A guess could jump over a newline; then fewer lines were seen than there are
newlines, and the walk is discarded. ``line_boundaries.cut_groups`` decides the remaining lines.

Only lines that begin with ``<`` are walked, and no line of the last 64 bytes. Cost: 15 ns a line of
166 bytes, where searching each newline takes 60. Twin: ``line_boundaries.cut_descriptions``.
"""

from __future__ import annotations

import numpy as np

from levada.core.array_types import Bytes
from levada.kernels import INT, U8, kernel, part
from levada.kernels.text.byte_ops import (
    COUNTED,
    PAD,
    View,
    W,
    as_int,
    byte,
    equal,
    view_of,
    word,
)

_LINES = 16  # of an element whose lengths are remembered
_LOW_BITS, _HIGH_BITS = W(0x0101010101010101), W(0x8080808080808080)
_NEWLINES, _CLOSES = W(0x0A0A0A0A0A0A0A0A), W(0x3E3E3E3E3E3E3E3E)
_ZERO, _ONE = W(0), W(1)


@part
def _find(view: View, at: int, stop: int, eight: np.uint64) -> int:
    """The first place from ``at`` on of the byte that ``eight`` repeats; ``stop`` or more: none
    before; reads 8 bytes more.
    """
    while at < stop:
        x = word(view, at) ^ eight
        hit = (x - _LOW_BITS) & ~x & _HIGH_BITS
        if hit != _ZERO:
            low = hit >> W(7)
            # one bit for each byte before the first hit
            before = ((low & (~low + _ONE)) - _ONE) & _LOW_BITS
            return at + as_int((before * _LOW_BITS) >> W(56))
        at += 8
    return stop


@kernel((U8, INT))
def guess_subjects(buf: Bytes, rows: int) -> tuple[int, int, int]:
    """Walks elements by subject: where the last that begins begins, how many there are before it,
    and lines seen before it.
    """
    view = view_of(buf)
    stop = len(buf) - PAD
    rest = np.zeros(_LINES, np.int64)
    at = key = size = place = 0
    lines = begun = 0
    boundary = before = seen = 0
    while at < stop:
        if size and at + size < stop and equal(view, key, at, size):
            place = (place + 1) % _LINES
        else:
            end = _find(view, at, stop, _CLOSES)
            # as above, so that one test follows from the other
            if byte(view, at) != 60 or end + 1 >= stop:
                break
            boundary, before, seen, place = at, begun, lines, 0
            if begun == rows:
                break
            begun += 1
            key, size = at, end + 1 - at
        end = at + size + rest[place]
        if end >= stop or byte(view, end) != 10:
            end = _find(view, at + size, stop, _NEWLINES)
            if end >= stop:
                break
            rest[place] = end - at - size
        lines += 1
        at = end + 1
    return boundary, before, seen


@kernel((U8, INT, INT))
def count_byte(buf: Bytes, stop: int, byte: int) -> int:
    """How often a byte is in ``buf[:stop]``, vectorised (a kernel of its own; see ``COUNTED``)."""
    wanted = np.uint8(byte)
    whole = stop - stop % COUNTED
    total = 0
    for block in range(0, whole, COUNTED):
        count = np.uint8(0)
        for i in range(COUNTED):
            count = np.uint8(count + np.uint8(buf[block + i] == wanted))
        total += int(count)
    for i in range(whole, stop):
        total += int(buf[i] == wanted)
    return total


def cut_subjects(buf: Bytes, rows: int) -> tuple[int, int]:
    """The bytes and elements at the beginning of ``buf`` that surely are at most ``rows`` whole
    elements by subject.

    A line of another element follows there, so ``buf`` may be cut; (0, 0) where nothing is sure.
    """
    at, elements, lines = guess_subjects(buf, rows)
    return (at, elements) if count_byte(buf, at, 10) == lines else (0, 0)
