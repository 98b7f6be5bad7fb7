"""Parses N-Triples without the kernel, while it is not compiled.

The parser's kernel takes longest to compile, half of the cost of an empty cache. So if it is not in
the cache, pyoxigraph parses all lines of small chunks, up to ``most`` bytes in this process. The
first results of an installation do not wait for the kernel, and a stream does
(docs/decisions/0019-here-until-spark-is-there.md).

Cost: 20 to 40 us a line; so at most some 2 s before the kernel is compiled.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from levada.core.array_types import Bytes, Longs
from levada.kernels import is_there
from levada.kernels.text.ntriples import parse_lines

_NOTHING = re.compile(rb"[ \t]*(?:[\r\n#]|\Z)")


@dataclass
class InterpretedParserQuota:
    """The amount that this process may parse without the kernel: ``left`` bytes, in chunks of at
    most ``chunk``.
    """

    left: int = 4 << 20
    chunk: int = 256 << 10

    def allows(self, size: int) -> bool:
        """Whether to parse a chunk without the kernel; then counts it. After the first refusal all
        are refused.
        """
        if size > min(self.left, self.chunk) or is_there(parse_lines):
            self.left = -1
            return False
        self.left -= size
        return True


COLD = InterpretedParserQuota()


def line_starts(data: Bytes) -> Longs:
    """Returns where lines begin that are neither empty nor comments.

    >>> line_starts(np.frombuffer(b"a\\n # c\\nb\\r\\n", np.uint8)).tolist()
    [0, 7]
    """
    text = data.tobytes()
    ends = np.flatnonzero((data == 10) | (data == 13)).tolist()
    starts = (start for start in (0, *(end + 1 for end in ends)) if not _NOTHING.match(text, start))
    return np.fromiter(starts, np.int64)
