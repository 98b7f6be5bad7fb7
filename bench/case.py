"""A kernel and its twin over the same rows: what ``bench.kernel_cases``, ``bench.time_cases`` and
``bench.text_cases`` make; and columns for them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

Call = Callable[[], Any]
SEED = 7


@dataclass(frozen=True, slots=True)
class Case:
    """A kernel and its twin over the same ``rows`` rows."""

    kernel: Call
    twin: Call
    rows: int


@dataclass(frozen=True, slots=True)
class Rows:
    """Keys (ten rows each, so that something meets), times, values, codes of a thousand groups."""

    n: int

    def keys(self, seed: int = 1) -> tuple[Any, Any]:
        """Both halves of a key."""
        of = np.random.default_rng(seed).integers(0, max(self.n // 10, 1), self.n)
        x = np.random.default_rng(0).integers(0, 2**64, (2, max(self.n // 10, 1)), dtype=np.uint64)
        return x[0][of].copy(), x[1][of].copy()

    @property
    def ts(self) -> Any:
        """Times, one a millisecond."""
        return np.arange(self.n, dtype=np.int64)

    @property
    def codes(self) -> Any:
        """A group of each row."""
        return np.random.default_rng(2).integers(0, 1000, self.n).astype(np.int32)

    @property
    def weights(self) -> Any:
        """All 1."""
        return np.ones(self.n, np.int8)

    @property
    def values(self) -> Any:
        """Doubles."""
        return np.random.default_rng(3).random(self.n) * 1000

    @property
    def which(self) -> Any:
        """The window of each row."""
        return (np.arange(self.n) % 2).astype(np.int32)
