"""Sets of key groups: the rows of a state part that belong to a partition, after groups have moved
(docs/architecture.md#state).

A set is a mask with a place for each group. It is written as a text: its bits, deflated. So groups
that are dealt round robin take some sixty characters, and any of 65,536 eleven thousand.
"""

from __future__ import annotations

import base64
import zlib
from functools import lru_cache

import numpy as np

from levada.core.array_types import Bools


def encode(groups: Bools) -> str:
    """A set of groups as text.

    >>> decode(encode(np.array([True, False, True]))).tolist()
    [True, False, True]
    """
    return _text(len(groups), np.packbits(groups).tobytes())


@lru_cache(maxsize=64)
def _text(size: int, bits: bytes) -> str:
    """Returns the text of a set of ``size`` groups, cached: parts of a partition mostly have the
    same set.
    """
    return f"{size}:{base64.b64encode(zlib.compress(bits)).decode()}"


@lru_cache(maxsize=256)
def decode(text: str) -> Bools:
    """The set that a text says; do not change it."""
    size, bits = text.split(":", 1)
    packed = np.frombuffer(zlib.decompress(base64.b64decode(bits)), np.uint8)
    return np.unpackbits(packed, count=int(size)).astype(np.bool_)
