"""``slices``: aggregates of 1,000 groups that differ in their window, function or condition.

    windows      SUM of each ?g, in 1, 10 and 120 windows of other ranges and steps
    shifted      the same, each window with one of ten t0
    functions    AVG, SUM, COUNT, MIN and MAX of each ?g in the same window
    conditions   SUM of each ?g, FILTER(?v > n) with 1 and 100 numbers that all values are above
    thresholds   the same with numbers between the values
    rare         the same with numbers that one value in a thousand is above: few results
    choices      SUM of each ?g, FILTER(?g = <e:gN>) of 1 and 100 groups

One pattern, ``?g <e:p> ?v``; a row is a triple. ``cost`` is the CPU of a triple by that with one
query of the same mode; ``results`` are counted first: each group has one at each close of a window
that holds something. They are part of what is measured: with 120 windows 0.4 to a triple.
``alone`` is what one query costs with ``relax``, by what it costs with ``off``.
"""

from __future__ import annotations

import tempfile
import warnings
from pathlib import Path
from typing import Any

from bench.apart import apart
from bench.marks import Marks, triples
from bench.result import Result, check_count
from levada import Engine

GROUPS, SECONDS, RATE = 1000, 60, 10_000
VALUES = 1003
MOST_VALUE = VALUES - 1
WARM = 2  # epochs that do not count
COUNTS = {
    "windows": (1, 10, 120),
    "shifted": (1, 120),
    "functions": (1, 5),
    "conditions": (1, 10, 100),
    "thresholds": (1, 10, 100),
    "rare": (1, 10, 100),
    "choices": (1, 10, 100),
}
MOST = {"off": 10, "relax": 120}
ROUNDS = 3  # the best counts
XSD = "http://www.w3.org/2001/XMLSchema#integer"
TEXT = """SELECT ?g ({function}(?v) AS ?a)
FROM NAMED WINDOW <e:w> ON <e:s> [RANGE PT{range}S STEP PT{step}S] {t0}
WHERE {{ WINDOW <e:w> {{ ?g <e:p> ?v }} {condition} }} GROUP BY ?g"""
FUNCTIONS = ("AVG", "SUM", "COUNT", "MIN", "MAX")


def write(path: Path, rate: int) -> None:
    """Writes the stream: each group in turn, ``rate`` triples a second."""
    lines = (
        f'<e:g{i % GROUPS}> <e:p> "{i // GROUPS * 7919 % VALUES}"^^<{XSD}> {i * 1000 // rate} .\n'
        for i in range(SECONDS * rate)
    )
    path.write_text("".join(lines))


def window(workload: str, i: int) -> tuple[int, int, int | None]:
    """Range, step and t0 (s) of query i."""
    if workload not in ("windows", "shifted"):
        return 20, 10, None
    length, step = 10 + i % 12 * 5, 10 + i // 12 * 5
    return length, step, i % 10 if workload == "shifted" else None


def text(workload: str, i: int) -> str:
    """Query i of a workload."""
    length, step, t0 = window(workload, i)
    return TEXT.format(
        function=FUNCTIONS[i] if workload == "functions" else "SUM",
        range=length,
        step=step,
        t0="" if t0 is None else f"T0 {t0 * 1000}",
        condition=condition(workload, i),
    )


def condition(workload: str, i: int) -> str:
    """Of query i."""
    match workload:
        case "conditions":
            return f"FILTER(?v > {-1 - i})"
        case "thresholds":
            return f"FILTER(?v > {10 * i})"
        case "rare":
            return f"FILTER(?v > {MOST_VALUE - 1 + i / 1000})"
        case "choices":
            return f"FILTER(?g = <e:g{i}>)"
        case _:
            return ""


def expected(workload: str, queries: int, rate: int) -> int:
    """The results of so many queries: one of each group at each close of a window that holds
    something, and that the stream has passed: it does not end.
    """
    each = rate // GROUPS  # triples of a group a second
    found = 0
    for i in range(queries):
        length, step, t0 = window(workload, i)
        first = (t0 or 0) + length
        every = range(first % step if t0 is None else first, SECONDS, step)
        held = [range(max(close - length, 0) * each, close * each) for close in every if close > 0]
        above = {"thresholds": 10 * i, "rare": MOST_VALUE - 1}.get(workload, -1)
        groups = 1 if workload == "choices" else GROUPS
        found += groups * sum(any(n * 7919 % VALUES > above for n in one) for one in held)
    return found


def side(path: str, mode: str, queries: int, workload: str, rate: int) -> dict[str, Any]:
    """One run: results, CPU of a triple after the warm-up."""
    marks = Marks(triples)
    warnings.simplefilter("ignore", UserWarning)  # windows whose step is longer than the range
    with (
        tempfile.TemporaryDirectory(prefix="levada-slices-") as folder,
        Engine(
            spark=False,
            checkpoint=Path(folder) / "c",
            partitions=1,
            seed=7,
            epoch_rows=5 * rate,
            keep_results=False,
            sharing=mode,
        ) as engine,
    ):
        engine.stream("e:s", path)
        with engine._registry.lock:
            for i in range(queries):
                engine.register(text(workload, i), name=f"q{i}")
        engine._on_epoch(marks.see)
        engine.start(once=True, keep_open=True)
        engine.await_end()
    return {"count": marks.results, "us": round(marks.from_epoch(WARM - 1), 2)}


def run(scale: float, stepped: bool) -> Result:
    """Each workload in each mode, side by side; the ratios to one query."""
    rate = max(int(RATE * scale) // GROUPS * GROUPS, GROUPS)
    with tempfile.TemporaryDirectory(prefix="levada-slices-") as folder:
        path = Path(folder) / "s.nt"
        write(path, rate)
        found = {workload: _workload(workload, str(path), rate) for workload in COUNTS}
    more = {
        f"{workload}_{mode}_{queries}": {**one, "cost": round(one["us"] / sides[1]["us"], 2)}
        for workload, modes in found.items()
        for mode, sides in modes.items()
        for queries, one in sides.items()
    }
    relax, off = found["windows"]["relax"], found["windows"]["off"]
    alone = {"alone": round(relax[1]["us"] / off[1]["us"], 3)}
    return Result(
        "slices", relax[10], off[10], round(off[10]["us"] / relax[10]["us"], 2), more | alone
    )


def _workload(workload: str, path: str, rate: int) -> dict[str, dict[int, dict[str, Any]]]:
    """What each mode costs, by the number of queries."""
    found: dict[str, dict[int, dict[str, Any]]] = {mode: {} for mode in MOST}
    for queries in COUNTS[workload]:
        right = expected(workload, queries, rate)
        for _ in range(ROUNDS):
            for mode in [m for m in MOST if queries <= MOST[m]]:
                got = apart(
                    "bench.slices:side", path=path, mode=mode, queries=queries, workload=workload,
                    rate=rate,
                )  # fmt: skip
                check_count(f"{workload} {mode} {queries}", got["count"], right)
                before = found[mode].get(queries, got)
                found[mode][queries] = min(before, got, key=lambda one: float(one["us"]))
    return found
