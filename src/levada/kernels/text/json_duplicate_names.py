"""Names that come again within a JSON object of a line: all but the last are superseded. Numbers
that a double does not hold.

RFC 8259 leaves the choice to the reader, and most readers take the last. The kernel compares
hashes of the decoded names, so ``"a"`` and ``"\\u0061"`` are one name. It looks at the names of the
object itself, not at those of objects within. Cost: byte by byte, about 1 GB a CPU-second. The twin
in the tests uses the module ``json``.
"""

from __future__ import annotations

import numpy as np
from numba import types

from levada.core.array_types import Bytes, Longs, Words
from levada.kernels import I64, INT, U8, U64, inline, kernel

_OUT = types.Array(types.int64, 1, "C")
_OFFSET, _PRIME = np.uint64(0xCBF29CE484222325), np.uint64(0x100000001B3)
_BYTE = np.uint64(255)


@inline
def _add(h: np.uint64, byte: int) -> np.uint64:
    """FNV-1a by one byte more."""
    return (h ^ (np.uint64(byte) & _BYTE)) * _PRIME


@inline
def _hex(buf: Bytes, at: int, end: int) -> int:
    """The number of four digits; -1 if they are not there."""
    if at + 4 > end:
        return -1
    number = 0
    for i in range(at, at + 4):
        c = int(buf[i])
        digit = c - 48 if c < 58 else (c | 32) - 87
        if digit < 0 or digit > 15:
            return -1
        number = number * 16 + digit
    return number


@inline
def _add_character(h: np.uint64, code: int) -> np.uint64:
    """The hash by the UTF-8 bytes of a character more."""
    if code < 0x80:
        return _add(h, code)
    if code < 0x800:
        return _add(_add(h, 0xC0 | code >> 6), 0x80 | code & 63)
    if code < 0x10000:
        h = _add(h, 0xE0 | code >> 12)
    else:
        h = _add(_add(h, 0xF0 | code >> 18), 0x80 | code >> 12 & 63)
    return _add(_add(h, 0x80 | code >> 6 & 63), 0x80 | code & 63)


@inline
def _escape(buf: Bytes, at: int, end: int) -> tuple[int, int]:
    """Returns the character of the escape whose backslash is at ``at``, and where it ends."""
    c = int(buf[at + 1]) if at + 1 < end else 0
    if c == 117:
        high = _hex(buf, at + 2, end)
        if 0xD800 <= high < 0xDC00 and at + 7 < end and buf[at + 6] == 92 and buf[at + 7] == 117:
            low = _hex(buf, at + 8, end)
            return 0x10000 + ((high & 0x3FF) << 10) + (low & 0x3FF), at + 12
        return max(high, 0), at + 6
    for letter, value in ((98, 8), (102, 12), (110, 10), (114, 13), (116, 9)):
        if c == letter:
            return value, at + 2
    return c, at + 2


@inline
def _string(buf: Bytes, at: int, end: int) -> tuple[np.uint64, int]:
    """Returns the hash of the string whose quote is at ``at``, and the place of its other quote."""
    h = _OFFSET
    at += 1
    while at < end and buf[at] != 34:
        if buf[at] == 92:
            code, at = _escape(buf, at, end)
            h = _add_character(h, code)
        else:
            h = _add(h, buf[at])
            at += 1
    return h, min(at, end)


@inline
def _close(buf: Bytes, at: int, end: int) -> int:
    """Where the quote is that ends the string within which ``at`` is."""
    while at < end and buf[at] != 34:
        at += 2 if buf[at] == 92 else 1
    return min(at, end)


@inline
def _digits_end(buf: Bytes, at: int, end: int) -> int:
    while at < end and 48 <= buf[at] <= 57:
        at += 1
    return at


@inline
def _number_behind(buf: Bytes, at: int, end: int) -> tuple[int, int]:
    """Returns the place and size of the number behind the name whose last quote is at ``at``; a
    size of 0 for anything else.
    """
    at += 1
    while at < end and (buf[at] <= 32 or buf[at] == 58):
        at += 1
    first = at + int(at < end and buf[at] == 45)
    here = _digits_end(buf, first, end)
    if here == first or (here > first + 1 and buf[first] == 48):
        return at, 0
    if here < end and buf[here] == 46:
        first = here + 1
        here = _digits_end(buf, first, end)
        if here == first:
            return at, 0
    if here < end and (buf[here] | 32) == 101:
        first = here + 1
        first += int(first < end and (buf[first] == 43 or buf[first] == 45))
        here = _digits_end(buf, first, end)
        if here == first:
            return at, 0
    return at, here - at


@kernel((U8,))
def hash_name(name: Bytes) -> np.uint64:
    """The hash of a name, as ``superseded_names`` has it."""
    h = _OFFSET
    for byte in name:
        h = _add(h, byte)
    return h


@kernel((U8, I64, I64, U64, _OUT, _OUT, _OUT, INT, _OUT, _OUT))
def superseded_names(
    buf: Bytes, start: Longs, stop: Longs, names: Words, seen: Longs, at: Longs, size: Longs,
    exact: int, number: Longs, digits: Longs,
) -> int:  # fmt: skip
    """Counts the names that are repeated in their line, and fills in their places.

    A place is within the quotes. ``start``, ``stop``: the lines. ``names``: hashes of the names
    that matter, ascending. ``seen``: as many -1. ``at`` and ``size`` are filled as far as they
    reach: with too few places, call again. ``number`` and ``digits``: for each line the place and
    size of the number that the last name ``exact`` has; a size of 0 without one.
    """
    count = 0
    for line in range(len(start)):
        end = stop[line]
        here = start[line]
        depth = 0
        named = False  # the next string is a name
        digits[line] = 0
        while here < end:
            c = buf[here]
            if c == 34:
                if not named:
                    here = _close(buf, here + 1, end)
                else:
                    h, close = _string(buf, here, end)
                    k = np.searchsorted(names, h)
                    if k < len(names) and names[k] == h:
                        before = seen[k]
                        if before >= start[line]:
                            if count < len(at):
                                at[count] = before
                                size[count] = _close(buf, before, end) - before
                            count += 1
                        seen[k] = here + 1
                        if k == exact:
                            number[line], digits[line] = _number_behind(buf, close, end)
                    named = False
                    here = close
            elif c == 123 or c == 91:
                depth += 1
                named = depth == 1 and c == 123
            elif c == 125 or c == 93:
                depth -= 1
            elif c == 44:
                named = depth == 1
            here += 1
    return count
