"""The nesting depth of a text: one pass over its bytes by a small automaton, before a parser sees
them.

The automaton (``connectors.ingest.parse.document_limits`` has one for each syntax) knows where
strings, comments and names begin and end, and which bytes outside of them open and close a level. A
step is ``table[16 * mode + kinds[byte]]``: the next mode, and a move of the depth above it. Cost:
about 500 MB a CPU-second. Twins in the tests: the parsers of Python's library.
"""

from __future__ import annotations

from numba import types

from levada.core.array_types import Bytes, Ints, Longs
from levada.kernels import I32, INT, U8, kernel

WIDTH = 16  # kinds of bytes
OPENS, CLOSES = 64, 128  # beside the next mode, which is less

_STATE = types.Array(types.int64, 1, "C")


@kernel((U8, U8, I32, _STATE, INT))
def descend(text: Bytes, kinds: Bytes, table: Ints, state: Longs, deepest: int) -> int:
    """Returns the place of the first byte at which the text is more than ``deepest`` levels deep,
    or -1.

    ``state`` is mode and depth, from which the next piece of the text continues.
    """
    mode, depth = state[0], state[1]
    too_deep = -1
    for at in range(len(text)):
        step = table[16 * mode + kinds[text[at]]]
        mode = step & 63
        if step >= 64:
            depth = max(depth - 1, 0) if step >= 128 else depth + 1
            if depth > deepest:
                too_deep = at
                break
    state[0], state[1] = mode, depth
    return too_deep
