"""Records of CSV in raw bytes: their ends and their defects (RFC 4180).

A record ends at a line end outside quotes: a newline, a carriage return, or both. A quote opens
only at the beginning of a field. Blank records are not elements. The driver cuts ranges at records
and tasks read them with the same functions.

A quote that is never closed must not swallow the bytes behind it: a record over several lines has
at most ``RECORD_LINES`` of them, the last of which begins within ``RECORD_BYTES`` of the record's
beginning. A record that has more, or that breaks the rules of quotes, is only its first line; the
next record begins behind that. So a record follows from no more than so many bytes, for driver and
tasks alike, and a range never ends inside a record.

Cost: byte by byte, 0.5 to 1 GB a CPU-second. The twins in
``tests/unit/connectors/sources/test_lines.py`` use the module ``csv``.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import types

from levada.core.array_types import Bytes, Longs
from levada.kernels import FLAG, INT, U8, inline, kernel

SOUND, STRAY_QUOTE, OPEN_QUOTE = 0, 1, 2
RECORD_BYTES = 1 << 20
RECORD_LINES = 10_000

_UNKNOWN = 3  # an open quote at the end of the bytes: more of them may close it
_OUT = types.Array(types.int64, 1, "C")
_FAULTS = types.Array(types.uint8, 1, "C")


@inline
def _ends_line(c: int) -> bool:
    return c == 10 or c == 13


@inline
def _quoted_end(buf: Bytes, begin: int, at: int, comma: int, lines: int) -> tuple[int, int, int]:
    """As ``_field_end`` for a field that begins with a quote; ``lines`` have ended in the record
    that begins at ``begin``. Also how many have then.
    """
    n = len(buf)
    at += 1
    while at < n:
        if buf[at] == 34:
            if at + 1 >= n or buf[at + 1] != 34:
                break
            at += 1
        elif buf[at] == 10 or (buf[at] == 13 and (at + 1 >= n or buf[at + 1] != 10)):
            lines += 1
            if lines >= RECORD_LINES or at - begin >= RECORD_BYTES:
                return at, OPEN_QUOTE, lines
        at += 1
    if at >= n:
        return n, _UNKNOWN, lines
    at += 1
    fault = SOUND
    while at < n and buf[at] != comma and not _ends_line(buf[at]):
        fault = STRAY_QUOTE
        at += 1
    return at, fault, lines


@inline
def _field_end(buf: Bytes, begin: int, at: int, comma: int, lines: int) -> tuple[int, int, int]:
    """Returns the comma, line end or end of ``buf`` that ends the CSV field that begins at ``at``,
    and the defect of the field.
    """
    n = len(buf)
    if at < n and buf[at] == 34:
        return _quoted_end(buf, begin, at, comma, lines)
    fault = SOUND
    while at < n and buf[at] != comma and not _ends_line(buf[at]):
        if buf[at] == 34:
            fault = STRAY_QUOTE
        at += 1
    return at, fault, lines


@inline
def _record_end(buf: Bytes, begin: int, comma: int) -> tuple[int, int, int]:
    """Returns the line end or end that ends the CSV record at ``begin``, its number of fields, and
    its defect.
    """
    n = len(buf)
    fields = 1
    at, fault, lines = _field_end(buf, begin, begin, comma, 0)
    while fault < OPEN_QUOTE and at < n and buf[at] == comma:
        at, wrong, lines = _field_end(buf, begin, at + 1, comma, lines)
        fault = max(fault, wrong)
        fields += 1
    if fault != SOUND and (lines > 0 or fault >= OPEN_QUOTE):
        fault = max(fault, OPEN_QUOTE)  # whatever of it there is to see
        at = begin
        while at < n and not _ends_line(buf[at]):
            at += 1
    return at, fields, fault


@inline
def _next_record(buf: Bytes, end: int) -> int:
    """Where the record after one that ends at ``end`` begins."""
    n = len(buf)
    if end + 1 < n and buf[end] == 13 and buf[end + 1] == 10:
        return end + 2
    return min(end + 1, n)


@kernel((U8, INT, FLAG, INT))
def cut_records(buf: Bytes, rows: int, last: bool, comma: int) -> tuple[int, int]:
    """As ``cut_lines`` for CSV records; ``comma`` is the byte between two fields."""
    n = len(buf)
    at = 0
    records = 0
    while at < n:
        end, _, wrong = _record_end(buf, at, comma)
        if (end == n or wrong == _UNKNOWN) and not last:
            break
        if end > at:
            if records == rows:
                break
            records += 1
        at = _next_record(buf, end)
    return at, records


class Records(NamedTuple):
    """Records: begin, end (without the line's), number of fields, and SOUND or a defect."""

    start: Longs
    stop: Longs
    fields: Longs
    fault: Bytes


def scan_records(buf: Bytes, comma: int) -> Records:
    """The records of ``buf``."""
    most = int(np.count_nonzero(buf == 10)) + int(np.count_nonzero(buf == 13)) + 1
    start, stop, fields = (np.empty(most, np.int64) for _ in range(3))
    fault = np.empty(most, np.uint8)
    n = _scan(buf, comma, start, stop, fields, fault)
    return Records(start[:n], stop[:n], fields[:n], fault[:n])


@kernel((U8, INT, _OUT, _OUT, _OUT, _FAULTS))
def _scan(buf: Bytes, comma: int, start: Longs, stop: Longs, fields: Longs, fault: Bytes) -> int:
    """Fills the columns of ``Records``; returns how many there are."""
    n = len(buf)
    at = 0
    k = 0
    while at < n:
        end, count, wrong = _record_end(buf, at, comma)
        if end > at:
            start[k] = at
            stop[k] = end
            fields[k] = count
            fault[k] = min(wrong, OPEN_QUOTE)
            k += 1
        at = _next_record(buf, end)
    return k
