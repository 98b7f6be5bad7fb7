"""Boundaries of elements in raw bytes: where a stream may be cut, and the element of each line.

The driver cuts byte ranges for tasks, and tasks count and number the elements of a range. Both use
the functions here, so the place of a cut never changes a result: bytes decide an element, not the
result of a parser.

* a *line* is an element unless it is blank or a comment;
* consecutive lines whose *graph* is written alike are one element, or that describe one *subject*
  (``subject_descriptions``); blank lines, comments and lines that do not begin with ``<`` or ``_:``
  belong to their neighbours;
* lines that blank ones (not comments) do not separate are one *block*; comments alone are none.

Cost: lines are counted by blocks where all are elements, else newlines are searched by eight bytes
at a time (16 and 4 GB a CPU-second); keys are read by eight bytes, too (1.5 GB). The twins in
``tests/unit/connectors/sources/test_lines.py`` compute the same with ``bytes.split``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from levada.core.array_types import Bytes, Longs, Words
from levada.kernels import FLAG, I64, INT, U8, inline, kernel
from levada.kernels.text.byte_ops import COUNTED, View, byte, equal, view_of, word
from levada.kernels.text.subject_descriptions import (
    BEGUN,
    KEY,
    KEY_END,
    MERGED,
    PARTS,
    RELEASED,
    SIZE,
    USED,
    grow,
    new_walk,
    shift,
    step,
)
from levada.kernels.text.subject_runs import cut_subjects

SUBJECT, GRAPH = 1, 2
LEAP = 65_536  # bytes that are counted at once

_ZERO = np.uint64(0)
_NEWLINES = np.uint64(0x0A0A0A0A0A0A0A0A)
_CLOSES = np.uint64(0x3E3E3E3E3E3E3E3E)
_LOW_BITS = np.uint64(0x0101010101010101)
_HIGH_BITS = np.uint64(0x8080808080808080)


@inline
def _words(buf: Bytes) -> Words:
    """``buf`` by eight bytes, its last few left out."""
    words: Words = buf[: len(buf) // 8 * 8].view(np.uint64)
    return words


@inline
def _line_end(buf: Bytes, words: Words, at: int) -> int:
    """Where the newline at or after ``at`` is, or ``buf`` ends; ``words`` is ``_words(buf)``."""
    n = len(buf)
    while at < n and at & 7 != 0:
        if buf[at] == 10:
            return at
        at += 1
    word = at >> 3
    while word < len(words):
        x = words[word] ^ _NEWLINES
        if (x - _LOW_BITS) & ~x & _HIGH_BITS != _ZERO:
            break
        word += 1
    at = max(at, word << 3)
    while at < n and buf[at] != 10:
        at += 1
    return at


@inline
def _after_iri(buf: Bytes, at: int, end: int) -> int:
    """Behind the ``>`` of the IRI at ``at``."""
    view = view_of(buf)
    while at + 8 <= end:
        x = word(view, at) ^ _CLOSES
        if (x - _LOW_BITS) & ~x & _HIGH_BITS != _ZERO:
            break
        at += 8
    while at < end and buf[at] != 62:
        at += 1
    return min(at + 1, end)


@inline
def _begins_element(buf: Bytes, at: int, n: int) -> bool:
    """Whether the line that begins at ``at`` is neither blank nor a comment."""
    while at < n and (buf[at] == 32 or buf[at] == 9):
        at += 1
    return at < n and buf[at] != 10 and buf[at] != 13 and buf[at] != 35


@inline
def _after_term(buf: Bytes, at: int, end: int) -> int:
    """The end of the term that begins at ``at``: IRI, blank node, literal with tag or datatype."""
    if buf[at] == 60:
        return _after_iri(buf, at, end)
    if buf[at] == 34:
        at += 1
        while at < end and buf[at] != 34:
            at += 2 if buf[at] == 92 else 1
        at = min(at + 1, end)
        if at + 2 < end and buf[at] == 94 and buf[at + 2] == 60:
            return _after_iri(buf, at + 2, end)
    while at < end and buf[at] > 32 and buf[at] != 60 and buf[at] != 34:
        at += 1
    return at


@inline
def _after_blanks(buf: Bytes, at: int, end: int) -> int:
    while at < end and (buf[at] == 32 or buf[at] == 9 or buf[at] == 13):
        at += 1
    return at


@inline
def _key(buf: Bytes, at: int, end: int, element: int) -> tuple[int, int]:
    """Returns the place of the key of the line ``at:end``: its subject or its graph (empty: the
    default graph); -1, -1: no key.
    """
    at = _after_blanks(buf, at, end)
    if at >= end or not (buf[at] == 60 or (buf[at] == 95 and at + 1 < end and buf[at + 1] == 58)):
        return -1, -1
    stop = _after_term(buf, at, end)
    if element == SUBJECT:
        return at, stop
    for _ in range(2):
        at = _after_blanks(buf, stop, end)
        if at >= end:
            return -1, -1
        stop = _after_term(buf, at, end)
    at = _after_blanks(buf, stop, end)
    if at < end and (buf[at] == 60 or (buf[at] == 95 and at + 1 < end and buf[at + 1] == 58)):
        return at, _after_term(buf, at, end)
    return at, at


@inline
def _has_equal_bytes(buf: Bytes, a: int, a_end: int, b: int, b_end: int) -> bool:
    if a_end - a != b_end - b:
        return False
    for i in range(a_end - a):  # noqa: SIM110 (numba compiles no generators)
        if buf[a + i] != buf[b + i]:
            return False
    return True


@kernel((U8, INT, INT))
def scan_ends(buf: Bytes, at: int, stop: int) -> tuple[int, int, int, int]:
    """Returns the newlines of ``buf[at:stop]``, the number of them behind which a line may not be
    an element, the carriage returns, and where the line behind the last newline begins (``at``:
    there is no newline).

    ``stop < len(buf)``. The loop is vectorised (see ``COUNTED``) over slices; as a part of a larger
    kernel it is not.
    """
    here, behind = buf[at:stop], buf[at + 1 : stop + 1]
    whole = len(here) - len(here) % COUNTED
    total = odd = returns = 0
    for block in range(0, whole, COUNTED):
        count = np.uint8(0)
        other = np.uint8(0)
        other_ends = np.uint8(0)
        for i in range(COUNTED):
            ends = np.uint8(here[block + i] == 10)
            count = np.uint8(count + ends)
            other = np.uint8(other + (ends & np.uint8(behind[block + i] <= 35)))
            other_ends = np.uint8(other_ends + np.uint8(here[block + i] == 13))
        total += int(count)
        odd += int(other)
        returns += int(other_ends)
    for i in range(whole, len(here)):
        ends = np.uint8(here[i] == 10)
        total += int(ends)
        odd += int(ends & np.uint8(behind[i] <= 35))
        returns += int(here[i] == 13)
    while stop > at and buf[stop - 1] != 10:
        stop -= 1
    return total, odd, returns, stop


@kernel((U8, INT, INT, INT, FLAG))
def _line_by_line(buf: Bytes, at: int, until: int, rows: int, last: bool) -> tuple[int, int, bool]:
    """Whole lines, at most ``rows`` elements, from ``at`` to one that ends at ``until`` or later.

    Returns where the next line begins, the elements, and whether there can be more.
    """
    n = len(buf)
    words = _words(buf)
    elements = 0
    while at < until:
        end = _line_end(buf, words, at)
        if end == n and not last:
            return at, elements, False
        if _begins_element(buf, at, end):
            if elements == rows:
                return at, elements, False
            elements += 1
        at = min(end + 1, n)
    return at, elements, at < n


def cut_lines(buf: Bytes, rows: int, last: bool) -> tuple[int, int]:
    """The longest beginning of ``buf`` of whole lines with at most ``rows`` elements: (its length,
    its elements).

    ``buf`` begins at a line. ``last``: the file ends with it, so a tail without newline is a line.
    """
    at = elements = 0
    more = len(buf) > 0
    while more:
        stop = min(at + LEAP, len(buf))
        lines = odd = 0
        if stop < len(buf) and buf[at] > 35:
            lines, odd, _, behind = scan_ends(buf, at, stop)
        if not odd and 0 < lines <= rows - elements:
            at, elements = behind, elements + lines
        else:
            at, elements_, more = _line_by_line(buf, at, stop, rows - elements, last)
            elements += elements_
    return at, elements


@kernel((U8, INT, INT))
def _count_elements(buf: Bytes, at: int, stop: int) -> int:
    """How many lines behind newlines of ``buf[at:stop]``, and at the beginning, are elements."""
    elements = int(at == 0 and _begins_element(buf, 0, len(buf)))
    for i in range(at, stop):
        elements += int(buf[i] == 10 and _begins_element(buf, i + 1, len(buf)))
    return elements


class LineCounts(NamedTuple):
    """How many lines of a text are elements; its newlines and carriage returns."""

    elements: int
    newlines: int
    returns: int


def count_lines(buf: Bytes) -> LineCounts:
    r"""Counts lines in one pass over the text; elements as ``cut_lines`` does, ``last``.

    >>> count_lines(np.frombuffer(b"<a> .\n# b\r\n\n<c> .", np.uint8))
    LineCounts(elements=2, newlines=3, returns=1)
    """
    n = len(buf)
    elements = newlines = returns = 0
    for at in range(0, n, LEAP):
        stop = min(at + LEAP, n - 1)
        ends, odd, others, _ = scan_ends(buf, at, stop)
        plain = not odd and (at > 0 or buf[0] > 35)
        elements += ends + (at == 0) if plain else _count_elements(buf, at, stop)
        newlines += ends
        returns += others
    last = buf[n - 1] if n else 0
    return LineCounts(int(elements), int(newlines + (last == 10)), int(returns + (last == 13)))


def cut_groups(buf: Bytes, element: int, rows: int, last: bool) -> tuple[int, int]:
    """As ``cut_lines`` for ``element`` SUBJECT or GRAPH; an element is whole when another begins or
    the file ends.
    """
    if element == GRAPH:
        return cut_graphs(buf, rows, last)
    at, before = cut_subjects(buf, rows)
    length, elements = cut_descriptions(buf[at:], rows - before, last)
    return at + length, before + elements


@kernel((U8, INT, FLAG))
def cut_graphs(buf: Bytes, rows: int, last: bool) -> tuple[int, int]:
    """``cut_groups`` by graph."""
    n = len(buf)
    words = _words(buf)
    at = 0
    begun = 0
    boundary = 0
    key = 0
    key_end = 0
    while at < n:
        end = _line_end(buf, words, at)
        if end == n and not last:
            break
        a, b = _key(buf, at, end, GRAPH)
        if a >= 0:
            if begun == 0 or not _has_equal_bytes(buf, key, key_end, a, b):
                if begun == rows:
                    return at, begun
                begun += 1
                boundary = at
            key = a
            key_end = b
        at = min(end + 1, n)
    if last or begun == 0:
        return at, begun
    return boundary, begun - 1


@inline
def _continues(view: View, n: int, at: int, key: int, key_end: int) -> bool:
    """Whether the line at ``at`` surely has the subject at ``key``: an IRI, byte for byte."""
    size = key_end - key
    if at + size + 8 > n or byte(view, key) != 60 or byte(view, key_end - 1) != 62:
        return False
    return equal(view, key, at, size)


@inline
def _blank_object(buf: Bytes, at: int, end: int) -> tuple[int, int]:
    """Returns the place of the blank node that is the object behind the subject that ends at
    ``at``; an empty place for another object.
    """
    at = _after_blanks(buf, at, end)
    if at < end and buf[at] == 60:
        at = _after_blanks(buf, _after_iri(buf, at, end), end)
        if at + 1 < end and buf[at] == 95 and buf[at + 1] == 58:
            return at, _after_term(buf, at, end)
    return at, at


@kernel((U8, INT, FLAG))
def cut_descriptions(buf: Bytes, rows: int, last: bool) -> tuple[int, int]:
    """``cut_groups`` by subject, line by line."""
    n = len(buf)
    words = _words(buf)
    view = view_of(buf)
    walk = new_walk()
    state = walk.state
    at = 0
    begun = 0
    boundary = 0
    while at < n:
        key, key_end = state[KEY], state[KEY_END]
        same = begun > 0 and _continues(view, n, at, key, key_end)
        end = _line_end(buf, words, at + key_end - key if same else at)
        if end == n and not last:
            break
        a, b = (at, at + key_end - key) if same else _key(buf, at, end, SUBJECT)
        if a >= 0:
            if 2 * state[USED] > len(walk.label):
                walk = grow(walk)
            o, o_end = _blank_object(buf, b, end)
            step(walk, view, at, a, b, o, o_end)
            for part in range(0 if begun == 0 else 1, state[RELEASED] + 1):
                if begun == rows:
                    return walk.at[part], begun
                begun += 1
                boundary = walk.at[part]
            shift(walk)
        at = min(end + 1, n)
    if not last and begun > 0:
        return boundary, begun - 1
    for part in range(1, state[SIZE]):
        if begun == rows:
            return walk.at[part], begun
        begun += 1
    return at, begun


@inline
def _only_blanks(buf: Bytes, at: int, end: int) -> bool:
    return _after_blanks(buf, at, end) == end


@kernel((U8, INT, FLAG))
def cut_blocks(buf: Bytes, rows: int, last: bool) -> tuple[int, int]:
    """As ``cut_lines`` for blocks; a block is whole when a blank line follows or the file ends."""
    n = len(buf)
    words = _words(buf)
    at = 0
    begun = 0
    inside = False
    boundary = 0
    whole = 0
    while at < n:
        end = _line_end(buf, words, at)
        if end == n and not last:
            break
        if _only_blanks(buf, at, end):
            inside = False
            boundary = min(end + 1, n)
            whole = begun
        elif not inside and _begins_element(buf, at, end):
            if begun == rows:
                return at, begun
            begun += 1
            inside = True
        at = min(end + 1, n)
    if last or begun == 0:
        return at, begun
    return boundary, whole


def cut_elements(buf: Bytes, element: str, rows: int, last: bool) -> tuple[int, int]:
    """``cut_lines``, ``cut_blocks`` or ``cut_groups``, by the word for an element."""
    if element == "line":
        return cut_lines(buf, rows, last)
    if element == "blankline":
        return cut_blocks(buf, rows, last)
    return cut_groups(buf, SUBJECT if element == "subject" else GRAPH, rows, last)


@kernel((U8, I64))
def number_blocks(buf: Bytes, line: Longs) -> npt.NDArray[np.int32]:
    """The block (0, 1, ...) of each row, as ``number_elements``."""
    out = np.zeros(len(line), np.int32)
    words = _words(buf)
    at = 0
    number = -1
    inside = False
    row = 0
    while at < len(buf) and row < len(line):
        end = _line_end(buf, words, at)
        if _only_blanks(buf, at, end):
            inside = False
        elif not inside and _begins_element(buf, at, end):
            number += 1
            inside = True
        while row < len(line) and line[row] <= end:
            out[row] = max(number, 0)
            row += 1
        at = end + 1
    return out


@kernel((U8, I64, INT))
def number_elements(buf: Bytes, line: Longs, element: int) -> npt.NDArray[np.int32]:
    """The element (0, 1, ...) of each row: ``line`` has the rows' lines in ``buf``, ascending.

    ``element`` is SUBJECT or GRAPH. Lines without a row count as boundaries too, as they do for
    ``cut_groups``.
    """
    out = np.zeros(len(line), np.int32)
    words = _words(buf)
    view = view_of(buf)
    walk = new_walk()
    state = walk.state
    at = 0
    number = -1
    key = 0
    key_end = 0
    row = 0
    first = np.zeros(PARTS + 2, np.int64)  # the first row of each part
    while at < len(buf) and row < len(line):
        end = _line_end(buf, words, at)
        a, b = _key(buf, at, end, element)
        if a >= 0 and element == GRAPH:
            if number < 0 or not _has_equal_bytes(buf, key, key_end, a, b):
                number += 1
            key = a
            key_end = b
        elif a >= 0:
            if 2 * state[USED] > len(walk.label):
                walk = grow(walk)
            o, o_end = _blank_object(buf, b, end)
            step(walk, view, at, a, b, o, o_end)
            number = max(number, 0)
            if state[MERGED] >= 0:
                out[first[state[MERGED] + 1] : row] = number + state[MERGED]
            released = state[RELEASED]
            first[: PARTS + 2 - released] = first[released:].copy()
            number += released
            if state[BEGUN]:
                first[state[SIZE] - 1] = row
            shift(walk)
        while row < len(line) and line[row] <= end:
            out[row] = max(number + max(state[SIZE] - 1, 0), 0)
            row += 1
        at = end + 1
    return out
