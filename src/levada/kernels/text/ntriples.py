"""N-Triples and N-Quads lines, optionally with an event time before the dot, from bytes to columns
in one pass.

A line is taken only if it is proved well-formed (``ntriples_scan``); every other line keeps its row
with all columns zero, and pyoxigraph decides about it later. Lines end at a line feed or a carriage
return (the grammar's EOL); empty lines and comments have no row. The buffer is the chunk, PAD
newlines, and the side area for texts that are not in the input.

Invariants: rows are in input order; a refused row is zero in every column but its line and time
(MIN). Cost: 80 to 140 ns a line, identities included.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from numba import types

from levada.core.array_types import Bytes, Words
from levada.core.event_time import MIN
from levada.kernels import INT, U8, fuse, kernel
from levada.kernels.text.byte_ops import COUNTED, SPACE, byte, is_in, routine, view_of
from levada.kernels.text.literals import PENDING, STRING_CODE, Facets
from levada.kernels.text.ntriples_scan import (
    REFUSED,
    line_end,
    scan_datatype,
    scan_string,
    skip_space,
)
from levada.kernels.text.ntriples_terms import (
    FULL,
    NEED,
    PENDINGS,
    POSITION,
    REFUSALS,
    ROW,
    Chunk,
    Term,
    graph,
    no_term,
    object_,
    predicate,
    skip,
    subject,
)
from levada.kernels.text.timestamps import bare_instant, typed_instant

NO_TIME = -100
"""The power of a unit of lines without times."""


@routine
def _quoted_time(chunk: Chunk, at: int, power: int) -> tuple[int, int]:
    """A time in quotes: (end, ms)."""
    close, rewrite = scan_string(chunk.text, at)
    if close < 0 or rewrite:
        return REFUSED, MIN
    end, code = close + 1, STRING_CODE
    if byte(chunk.text, end) == 94:
        end, code = scan_datatype(chunk.text, end)
    return (end, typed_instant(chunk.text, at + 1, close, code, power)) if end > 0 else (end, MIN)


@fuse
def _time(chunk: Chunk, at: int, power: int) -> tuple[int, int]:
    """Reads the event time: (end, ms); integers are of units of 10**power ms, ``NO_TIME``: there is
    no time. A number without quotes follows a blank.
    """
    at = skip(chunk, at)
    if at < 0 or power == NO_TIME:
        return at, MIN
    if byte(chunk.text, at) == 34:
        end, ms = _quoted_time(chunk, at, power)
    elif is_in(byte(chunk.text, at - 1), SPACE):
        ms, end = bare_instant(chunk.text, at, chunk.text[1], power)
    else:
        end, ms = REFUSED, MIN
    return (end, ms) if ms > MIN else (REFUSED, MIN)


@fuse
def _stop(chunk: Chunk, at: int) -> int:
    """The dot, perhaps a comment, and the end of the line: its place."""
    at = skip(chunk, at)
    if at < 0:
        return at
    if byte(chunk.text, at) != 46:
        return REFUSED
    at = skip_space(chunk.text, at + 1)
    if byte(chunk.text, at) == 35:
        at = line_end(chunk.text, at)
    c = byte(chunk.text, at)
    return at if c == 10 or c == 13 else REFUSED


@fuse
def _line(
    chunk: Chunk, at: int, quads: int, power: int
) -> tuple[int, Term, Term, Term, Term, Facets, int]:
    """One line from its first term on: (place of its end or a refusal, subject, predicate, object,
    graph, value, time).
    """
    s = subject(chunk, at)
    p = predicate(chunk, s[0])
    o, value = object_(chunk, p[0])
    g = graph(chunk, o[0], quads)
    after, time = _time(chunk, g[0], power)
    end = _stop(chunk, after)
    if end < 0:
        none = no_term(0)
        return end, none, none, none, none, (0, 0.0, 0, 0), MIN
    return end, s, p, o, g, value, time


@kernel((U8, INT))
def count_line_ends(buffer: Bytes, size: int) -> int:
    """Line feeds and carriage returns in the first ``size`` bytes, vectorised (see ``COUNTED``)."""
    whole = size - size % COUNTED
    total = 0
    for block in range(0, whole, COUNTED):
        count = np.uint8(0)
        for i in range(COUNTED):
            count = np.uint8(
                count + np.uint8((buffer[block + i] == 10) | (buffer[block + i] == 13))
            )
        total += int(count)
    for i in range(whole, size):
        total += int((buffer[i] == 10) | (buffer[i] == 13))
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
    buffer: Bytes,
    size: int,
    secret: Bytes,
    plain: Bytes,
    document: np.uint64,
    quads: int,
    power: int,
    memo: _Ints,
    line: _Ints,
    x: Words,
    y: Words,
    off: _Ints32,
    length: _Ints32,
    kind: Bytes,
    dbl: npt.NDArray[np.float64],
    man: _Ints,
    scale: Bytes,
    time: _Ints,
) -> None:
    """Parses the first ``size`` bytes of ``buffer`` from memo[POSITION] on; returns early if the
    side area is full.

    x to kind have a row of columns for subject, predicate, object and graph; dbl, man, scale are
    the object's value. Then memo[ROW] rows are there, memo[SIDE] is the end of the side area,
    memo[NEED] the bytes that it lacked (0: all is done).
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
        end, s, p, o, g, value, when = _line(chunk, first, quads, power)
        if end == FULL:
            break
        x[0, row], x[1, row], x[2, row], x[3, row] = s[4], p[4], o[4], g[4]
        y[0, row], y[1, row], y[2, row], y[3, row] = s[5], p[5], o[5], g[5]
        off[0, row], off[1, row], off[2, row], off[3, row] = s[1], p[1], o[1], g[1]
        length[0, row], length[1, row], length[2, row], length[3, row] = s[2], p[2], o[2], g[2]
        kind[0, row], kind[1, row], kind[2, row], kind[3, row] = s[3], p[3], o[3], g[3]
        line[row], dbl[row], man[row], scale[row], time[row] = (
            at,
            value[1],
            value[2],
            value[3],
            when,
        )
        memo[PENDINGS] += o[3] == PENDING
        memo[REFUSALS] += end < 0
        at = (end if end >= 0 else line_end(chunk.text, first)) + 1
        row += 1
    memo[POSITION], memo[ROW] = at, row
