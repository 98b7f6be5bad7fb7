"""A kernel and its twin over the same rows: what ``bench.kernel_cases`` and ``bench.text_cases`` make."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Call = Callable[[], Any]
SEED = 7


@dataclass(frozen=True, slots=True)
class Case:
    """A kernel and its twin over the same ``rows`` rows."""

    kernel: Call
    twin: Call
    rows: int
