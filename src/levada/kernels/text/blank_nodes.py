"""Blank nodes in N-Quads as pyoxigraph prints them: their places, and the text with other labels.

pyoxigraph names the anonymous blank nodes of a document at random;
``connectors.ingest.parse.documents`` gives them the names n0, n1, ... by these two passes over the
bytes, without an object a statement. The text must be pyoxigraph's own print: one statement a line,
terms apart by one blank, nothing else. Cost: about 1 GB a CPU-second. Twin: a regular expression in
the tests.
"""

from __future__ import annotations

from numba import types

from levada.core.array_types import Bytes, Longs
from levada.kernels import I64, U8, kernel

_OUT = types.Array(types.int64, 1, "C")
_BYTES_OUT = types.Array(types.uint8, 1, "C")


@kernel((U8, _OUT, _OUT))
def blank_places(text: Bytes, start: Longs, size: Longs) -> int:
    """Fills the places of the labels (behind ``_:``), in order. Returns their number, also beyond
    the arrays' ends.
    """
    n, room = len(text), len(start)
    at, count = 0, 0
    while at < n:
        c = text[at]
        if c == 34:  # a literal, to its closing quote
            at += 1
            while at < n and text[at] != 34:
                at += 2 if text[at] == 92 else 1
            at += 1
        elif c == 60:
            while at < n and text[at] != 62:
                at += 1
            at += 1
        elif c == 95:
            begin = at + 2
            at = begin
            while at < n and text[at] != 32:
                at += 1
            if count < room:
                start[count] = begin
                size[count] = at - begin
            count += 1
        else:
            at += 1
    return count


@kernel((U8, I64, I64, I64, _BYTES_OUT))
def relabel(text: Bytes, start: Longs, size: Longs, number: Longs, out: Bytes) -> int:
    """Copies ``text`` with label k replaced by ``n`` and ``number[k]``; returns the bytes written.

    ``out`` has room for 20 bytes a label more than ``text``.
    """
    at, to = 0, 0
    for k in range(len(start)):
        while at < start[k]:
            out[to] = text[at]
            at += 1
            to += 1
        out[to] = 110
        to += 1
        digits, rest = 1, number[k] // 10
        while rest > 0:
            digits += 1
            rest //= 10
        rest = number[k]
        for d in range(digits):
            out[to + digits - 1 - d] = 48 + rest % 10
            rest //= 10
        to += digits
        at += size[k]
    while at < len(text):
        out[to] = text[at]
        at += 1
        to += 1
    return to
