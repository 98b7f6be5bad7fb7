"""``planning``: what parsing and planning a query of CityBench costs, in three languages; the
promise is under 10 ms.

The texts are read where the suite lies, ``../shared/data``; a text that is not valid is no case.
Each query is planned a number of times into a catalog of its own, after rounds that do not count:
the median CPU time of the thread, parsing included. The baseline is what parsing alone takes.
``modes``: the median of all texts in the other modes of sharing.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from bench.apart import SideError
from bench.result import Result
from levada.core.stream_facts import StreamFacts
from levada.engine.name_resolution import NameScope
from levada.engine.query_pipeline import prepare, share
from levada.engine.query_request import QueryRequest
from levada.errors import QueryError
from levada.language import parse
from levada.plan.sharing.sharing_modes import DEFAULT, Sharing

DATA = Path(__file__).parents[2] / "shared/data"
TEXTS = {
    "cqels": (DATA / "citybench/cqels_query", "Q*.txt"),
    "csparql": (DATA / "citybench/csparql_query", "Q*.txt"),
    "rspql": (DATA / "rsp4j/csparql2/src/test/resources/citybench", "q*.rspql"),
}
ROUNDS, WARM = 30, 3
_STREAM = re.compile(r"\b(?:STREAM|ON)\s+(?:<([^>\s]+)>|(\w+:\w+))", re.IGNORECASE)
_GRAPH = re.compile(r"\bFROM\s+(?:NAMED\s+)?<([^>]+)>|\bGRAPH\s*<([^>]+)>", re.IGNORECASE)
_PREFIX = re.compile(r"\bPREFIX\s+(\w+):\s*<([^>]+)>", re.IGNORECASE)


def known_to(text: str) -> NameScope:
    """The streams and graphs that a text names, as an engine would know them."""
    prefixes = dict(_PREFIX.findall(text))
    names = {iri or _whole(short, prefixes) for iri, short in _STREAM.findall(text)}
    graphs = {a or b for a, b in _GRAPH.findall(text)}
    return NameScope(dict.fromkeys(names, StreamFacts()), {None, *graphs})


def _whole(short: str, prefixes: dict[str, str]) -> str:
    prefix, _, local = short.partition(":")
    return prefixes.get(prefix, "") + local


def plan(text: str, known: NameScope, mode: Sharing = DEFAULT) -> None:
    """All that a query costs before it reads anything: parsed, translated, optimized, planned."""
    known.said.clear()  # each time as an engine's first query
    share([prepare(QueryRequest(text, "q"), known)], known, mode)


def texts() -> Iterator[tuple[str, str, NameScope]]:
    """The name, the text and what is known beside each query that is valid."""
    for language, (folder, pattern) in TEXTS.items():
        for path in sorted(folder.glob(pattern)):
            text = path.read_text(encoding="utf-8")
            try:
                plan(text, known_to(text))
            except QueryError:
                continue
            yield f"{language} {path.stem}", text, known_to(text)


def spent(work: Callable[[], object], rounds: int) -> float:
    """The median CPU time of some work, ms."""
    times = []
    for _ in range(WARM + rounds):
        before = time.thread_time()
        work()
        times.append(1000 * (time.thread_time() - before))
    return median(times[WARM:])


def run(scale: float, stepped: bool) -> Result:
    """All texts; ``worst_ms`` is the dearest. It is one thread's work, ``stepped`` or not."""
    rounds = max(int(ROUNDS * scale), 3)
    cases = list(texts())
    if not cases:
        raise SideError(f"The texts of CityBench are not there: {DATA}")
    planned = {name: spent(partial(plan, text, known), rounds) for name, text, known in cases}
    modes = {mode: [spent(partial(plan, text, known, mode), rounds) for _, text, known in cases]
             for mode in Sharing if mode is not DEFAULT}  # fmt: skip
    parsed = {name: spent(partial(parse, text), rounds) for name, text, _ in cases}
    worst = max(planned, key=lambda name: planned[name])
    more = {
        "worst_ms": round(planned[worst], 2),
        "worst": worst,
        "modes": {str(mode): round(median(times), 2) for mode, times in modes.items()},
        "each": {n: round(ms, 2) for n, ms in planned.items()},
    }
    return Result("planning", _side(planned), _side(parsed), more=more)


def _side(times: dict[str, float]) -> dict[str, Any]:
    return {
        "count": len(times),
        "median_ms": round(median(times.values()), 2),
        "most_ms": round(max(times.values()), 2),
    }
