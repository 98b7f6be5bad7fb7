"""``operators``: each operator of docs/architecture.md by a query that it dominates.

Rows per CPU-second of the stepped engine, from the epoch after which the window is full to the last
before the streams end, over so many rows that they take two CPU-seconds, counts of results checked
against the generator's own formula; and how much more a row costs with a window, an epoch, and a
number of keys ten times as large (``growth``). A case's windows and formula are in
``operator_cases`` and ``operator_forms``.
"""

from __future__ import annotations

import math
import os
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bench.apart import apart
from bench.operator_data import Size
from bench.operator_forms import CASES
from bench.result import Result, check_count
from bench.steady import LEAST
from levada import Engine
from levada.checkpoint.manifest import Manifest

TIMES = 10
MORE = 1.2  # times what is expected to be enough
ONLY = "LEVADA_OPERATORS"  # names of cases, with | between, in place of all


@dataclass(slots=True)
class _Clock:
    """CPU seconds of this process, and rows read, as the measurement begins and ends."""

    size: Size
    begin: tuple[float, int] = (0.0, 0)
    end: tuple[float, int] = (0.0, 0)

    def see(self, manifest: Manifest) -> None:
        read = sum(stream.elements for stream in manifest.streams.values())
        now = (time.process_time(), read)
        if read <= self.size.warm:
            self.begin = now
        if read <= self.size.until:
            self.end = now


def go(name: str, size: Size, see: Callable[[Manifest], None]) -> int:
    """Runs a case in this process, ``see`` told of each epoch; its number of results, checked."""
    with tempfile.TemporaryDirectory(prefix="levada-operators-") as folder:
        asked = CASES[name](Path(folder), size)
        with Engine(
            spark=False,
            checkpoint=Path(folder) / "c",
            epoch_rows=size.epoch,
            partitions=1,
            keep_results=False,
            seed=7,
        ) as engine:
            for stream, options in asked.streams.items():
                engine.stream(stream, **options)
            if asked.static:
                engine.static(asked.static)
            engine.register(asked.text, name="q", dialect=asked.dialect, **asked.options)
            engine._on_epoch(see)
            engine.start(once=True)
            engine.await_end()
            found = engine._solutions()["q"]
    check_count(name, found, asked.expected)
    return asked.expected


def cost(name: str, size: dict[str, int], least: float) -> dict[str, Any]:
    """One case at one size, in this process: results and CPU seconds, over so many rows that they
    are ``least`` at least.
    """
    shape = Size(**size)
    while (told := _cost(name, shape))["cpu_s"] < least:
        shape = replace(
            shape, measured=math.ceil(MORE * told["rows"] * least / max(told["cpu_s"], 0.01))
        )
    return told


def _cost(name: str, shape: Size) -> dict[str, Any]:
    clock = _Clock(shape)
    count = go(name, shape, clock.see)
    (before, first), (after, last) = clock.begin, clock.end
    seconds, rows = after - before, last - first
    return {
        "count": count,
        "rows": rows,
        "cpu_s": round(seconds, 3),
        "rows_per_cpu_s": round(rows / seconds),
    }


def sizes(scale: float) -> dict[str, Size]:
    """The size of which figures are told, and those with one thing ten times as large."""
    base = Size()
    base = Size(
        *(max(int(n * scale) // 1000 * 1000, 1000) for n in (base.epoch, base.window)),
        base.groups,
        max(int(base.measured * scale), 1000),
    )
    wide = TIMES * base.window
    return {
        "base": base,
        # with a close of it
        "window": replace(base, window=wide, measured=max(base.measured, wide)),
        "epoch": replace(base, epoch=TIMES * base.epoch),
        "groups": replace(base, groups=TIMES * base.groups),
    }


def run(scale: float, stepped: bool) -> Result:
    """All cases at all sizes; ``levada`` is the slowest case, ``each`` has them all."""
    each: dict[str, dict[str, Any]] = {}
    for name in chosen():
        found = {
            what: apart(
                "bench.operators:cost",
                name=name,
                size=_fields(size),
                least=LEAST if scale >= 1 else 0.0,
            )
            for what, size in sizes(scale).items()
        }
        base = found.pop("base")
        growth = {
            what: round(base["rows_per_cpu_s"] / side["rows_per_cpu_s"], 2)
            for what, side in found.items()
        }
        each[name] = {"rows_per_cpu_s": base["rows_per_cpu_s"], "count": base["count"]} | growth
        print(f"{name}: {each[name]}", flush=True, file=sys.stderr)
    slowest = min(each, key=lambda name: each[name]["rows_per_cpu_s"])
    return Result("operators", each[slowest] | {"operator": slowest}, more={"each": each})


def chosen() -> list[str]:
    """All cases, or those that the environment names."""
    only = os.environ.get(ONLY)
    return only.split("|") if only else list(CASES)


def _fields(size: Size) -> dict[str, int]:
    return {
        "epoch": size.epoch,
        "window": size.window,
        "groups": size.groups,
        "measured": size.measured,
    }
