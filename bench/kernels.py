"""``kernels``: each kernel beside its twin in NumPy, a library or Python, in one process.

Both give the same first, on the same rows (``bench.kernel_cases``); then each is called again and
again for a while. A row is what the kernel takes: a line, a triple, a text, a probe row, a row to
be summed. ``ratio_cpu`` is that of the geometric means over the kernels.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from bench.apart import apart
from bench.case import Call
from bench.kernel_cases import CASES
from bench.result import CountError, Result, ratio

ROWS = 400_000
FEW = 10_000  # for twins that are loops in Python
WHILE = 0.3  # CPU seconds a kernel


def levada(scale: float) -> dict[str, Any]:
    """All kernels and twins: name -> (rows a second, rows per CPU-second) of either, here."""
    found = {}
    for make, slow in CASES:
        n = max(int(ROWS * scale), 1000)
        case = make(n)
        few = make(min(n, FEW)) if slow else case
        if not same(few.kernel(), few.twin()):
            raise CountError(f"The kernel {make.__name__} and its twin differ.")
        found[make.__name__] = {
            "kernel": rate(case.kernel, case.rows),
            "twin": rate(few.twin, few.rows),
        }
    return found


def same(a: Any, b: Any) -> bool:
    """Whether two results are equal, whatever containers hold them; doubles to 1e-12."""
    if isinstance(a, tuple):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b, strict=True))
    x, y = np.asarray(a), np.asarray(b)
    close: Callable[..., bool] = np.allclose
    if x.dtype.kind == "f":
        return x.shape == y.shape and close(x, y, rtol=1e-12, atol=0, equal_nan=True)
    return bool(np.array_equal(x, y))


def rate(call: Call, rows: int) -> tuple[int, int]:
    """Rows a second, and rows per CPU-second of this thread."""
    calls, began, wall = 0, time.thread_time(), time.perf_counter()
    while (spent := time.thread_time() - began) < WHILE or not calls:
        call()
        calls += 1
    return round(calls * rows / (time.perf_counter() - wall)), round(calls * rows / spent)


def run(scale: float, stepped: bool) -> Result:
    """Kernels and twins. It is one process with Spark or without."""
    found = apart("bench.kernels:levada", scale=scale)
    ratios = {
        name: round(rates["kernel"][1] / rates["twin"][1], 2) for name, rates in found.items()
    }
    ours, theirs = (
        _side({name: rates[who] for name, rates in found.items()}) for who in ("kernel", "twin")
    )
    return Result("kernels", ours, theirs, ratio(ours, theirs), {"ratios": ratios})


def _side(rates: dict[str, tuple[int, int]]) -> dict[str, Any]:
    """Geometric means over all, and each one's rows per CPU-second."""
    means = [
        round(math.exp(sum(map(math.log, some)) / len(rates)))
        for some in zip(*rates.values(), strict=True)
    ]
    each = {name: per_cpu_s for name, (_, per_cpu_s) in rates.items()}
    return {"count": len(rates), "rows_per_s": means[0], "rows_per_cpu_s": means[1], "each": each}
