"""Records of CSV in raw bytes: where they end, and what is wrong with them (RFC 4180).

A record ends at a newline outside quotes; a quote opens only at the beginning of a field. Blank
records are no elements. The driver cuts ranges at records and tasks read them with the same
functions.

Cost: byte by byte, 0.5 to 1 GB a CPU-second. The twins in ``tests/unit/sources/test_lines.py`` use
the module ``csv``.
"""

from __future__ import annotations

from numba import types

from levada.kernels import FLAG, INT, U8, inlined, kernel
from levada.model.arrays import Bytes, Longs

SOUND, STRAY_RETURN, STRAY_QUOTE, OPEN_QUOTE = 0, 1, 2, 3

_OUT = types.Array(types.int64, 1, "C")
_FAULTS = types.Array(types.uint8, 1, "C")


@inlined
def _quoted_end(buf: Bytes, at: int, n: int) -> tuple[int, int]:
    """As ``_field_end`` for a field that begins with a quote."""
    at += 1
    while at < n:
        if buf[at] != 34:
            at += 1
        elif at + 1 < n and buf[at + 1] == 34:
            at += 2
        else:
            break
    if at >= n:
        return n, OPEN_QUOTE
    at += 1
    fault = SOUND
    while at < n and buf[at] != 44 and buf[at] != 10:
        if buf[at] != 13 or (at + 1 < n and buf[at + 1] != 10):
            fault = STRAY_QUOTE
        at += 1
    return at, fault


@inlined
def _field_end(buf: Bytes, at: int, n: int) -> tuple[int, int]:
    """The comma, newline or end (``n``) that ends the CSV field that begins at ``at``, and what is
    wrong with it.
    """
    if at < n and buf[at] == 34:
        return _quoted_end(buf, at, n)
    fault = SOUND
    while at < n and buf[at] != 44 and buf[at] != 10:
        if buf[at] == 34:
            fault = STRAY_QUOTE
        elif buf[at] == 13 and at + 1 < n and buf[at + 1] != 10:
            fault = max(fault, STRAY_RETURN)
        at += 1
    return at, fault


@inlined
def _record_end(buf: Bytes, at: int, n: int) -> tuple[int, int, int]:
    """The newline or end that ends the CSV record at ``at``, its number of fields, and what is
    wrong with it.
    """
    fields = 1
    fault = SOUND
    at, wrong = _field_end(buf, at, n)
    fault = max(fault, wrong)
    while at < n and buf[at] == 44:
        at, wrong = _field_end(buf, at + 1, n)
        fault = max(fault, wrong)
        fields += 1
    return at, fields, fault


@inlined
def _is_blank(buf: Bytes, begin: int, end: int) -> bool:
    return end == begin or (end == begin + 1 and buf[begin] == 13)


@kernel((U8, INT, FLAG))
def cut_records(buf: Bytes, rows: int, last: bool) -> tuple[int, int]:
    """As ``cut_lines`` for CSV records."""
    n = len(buf)
    at = 0
    records = 0
    while at < n:
        end, _, _ = _record_end(buf, at, n)
        if end == n and not last:
            break
        if not _is_blank(buf, at, end):
            if records == rows:
                break
            records += 1
        at = min(end + 1, n)
    return at, records


@kernel((U8, _OUT, _OUT, _OUT, _FAULTS))
def scan_records(buf: Bytes, start: Longs, stop: Longs, fields: Longs, fault: Bytes) -> int:
    """The records of ``buf``: begin, end (without the line's end), number of fields, and SOUND or
    what is wrong.

    The four outputs hold at least one entry for each newline and one more; returns how many are
    filled.
    """
    n = len(buf)
    at = 0
    k = 0
    while at < n:
        end, count, wrong = _record_end(buf, at, n)
        if not _is_blank(buf, at, end):
            start[k] = at
            stop[k] = end - 1 if end < n and buf[end - 1] == 13 else end
            fields[k] = count
            fault[k] = wrong
            k += 1
        at = end + 1
    return k
