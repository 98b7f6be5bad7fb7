"""``srbench_q3``: W3 with 20 and 500 stations against pyoxigraph, parsing included on both sides.

The baseline is one pyoxigraph store that holds the window: at each close the triples of the hour
that came are added, those of the hour that left are removed, and the query is evaluated. It has the
two ways that pyoxigraph offers, and the faster one counts: a graph for each hour, loaded from its
text and removed whole; or triples parsed, added and removed one by one. It reads the same triples
cut by the hour, of one round, so it has no times to find. Twenty stations tell for twenty days a
round. Levada's rounds go on until it is steady (``bench.steady``). A row is a triple.

An observation's three triples come together, so the stream is declared ``closed=element`` and its
star is joined where it is read; ``ratio_cpu`` is that of 500 stations. ``open`` is the same without
the promise: each triple is an element, all joins are windowed joins over the exchange.
"""

from __future__ import annotations

import tempfile
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pyoxigraph as ox

from bench.apart import apart, supplied
from bench.engine import run_engine
from bench.measure import Cpu, Tree, peak_memory
from bench.meter import side, spread
from bench.result import Result, best, check_count, ratio
from bench.srbench import (
    MINUTES,
    PATTERN,
    RANGE,
    STREAM,
    Weather,
    query,
    supply_of,
    write_hours,
    write_rounds,
)
from bench.steady import Supply


@dataclass(frozen=True, slots=True)
class Size:
    """Stations, days in a round, minutes in an epoch, epochs of warm-up, rounds at most."""

    stations: int
    days: int
    epoch: int
    warm: int
    rounds: int = 1

    @property
    def weather(self) -> Weather:
        """The days with their warm-up."""
        return Weather(self.stations, self.epoch * self.warm, self.days)


COLD, HOURS = 6, 30  # hours that pyoxigraph reads before it is measured, and at least then
SIZES = (Size(20, 20, MINUTES, 4, 8), Size(500, 1, 720, 2, 24))


def levada(supply: dict[str, Any], stepped: bool, closed: bool) -> dict[str, Any]:
    """The side ``levada``, in this process."""
    given = Supply.of(supply)
    more = {"element": "subject", "closed": "element"} if closed else {}
    return run_engine(
        {STREAM: {"source": str(given.into / "w3"), **more}},
        {"w3": {"text": query(), "dialect": "rspql"}},
        epoch_rows=given.epoch // (3 if closed else 1),
        warm=given.warm,
        stepped=stepped,
        by="triples",
        supply=given,
    )


def oxigraph(folder: str, whole: bool) -> dict[str, Any]:
    """The side ``baseline``; ``whole``: by graphs of an hour, else by single triples. The first
    hours are read once before; then all are, in a store that is empty at first, until there are
    ``HOURS``.
    """
    hours = [path.read_bytes() for path in sorted(Path(folder).iterdir())]
    tree = Tree()
    _evaluate(hours[:COLD], tree, whole=whole)
    wall, batches, count = 0.0, list[tuple[int, Cpu]](), 0
    for _ in range(-(-HOURS // len(hours))):
        began = time.perf_counter()
        count, own = _evaluate(hours, tree, whole=whole)
        wall += time.perf_counter() - began
        batches += own
    rows = sum(n for n, _ in batches)
    cpu = sum((spent for _, spent in batches), Cpu())
    told = side(count, rows, wall, cpu, memory=peak_memory())
    return told | {"spread": spread(batches), "hours": len(batches)}


def _evaluate(
    hours: Sequence[bytes], tree: Tree, *, whole: bool
) -> tuple[int, list[tuple[int, Cpu]]]:
    """The results of a store through which these hours go; the triples and the CPU of each."""
    text = f"SELECT ?sensor (MIN(?v) AS ?m) {{ {PATTERN} }} GROUP BY ?sensor HAVING (MIN(?v) >= 74)"
    store = ox.Store()
    step = _by_hours(store) if whole else _by_triples(store)
    count, batches = 0, []
    before = tree.cpu(scan=False)
    for came in [*hours, *[None] * (RANGE - 1)]:
        step(came)
        solutions = store.query(text, use_default_graph_as_union=whole)
        assert isinstance(solutions, ox.QuerySolutions), "a SELECT has solutions"
        count += len(list(solutions))
        after = tree.cpu(scan=False)
        batches.append(((came or b"").count(b"\n"), after - before))
        before = after
    return count, batches


def _by_hours(store: ox.Store) -> Callable[[bytes | None], None]:
    graphs: deque[ox.NamedNode] = deque()

    def step(came: bytes | None) -> None:
        graph = ox.NamedNode(f"http://example.org/hour/{len(graphs)}/{time.monotonic_ns()}")
        graphs.append(graph)
        if came is not None:
            store.load(came, ox.RdfFormat.N_TRIPLES, to_graph=graph)
        if len(graphs) > RANGE:
            store.remove_graph(graphs.popleft())

    return step


def _by_triples(store: ox.Store) -> Callable[[bytes | None], None]:
    held: deque[list[ox.Quad]] = deque()

    def step(came: bytes | None) -> None:
        quads = list(ox.parse(came, ox.RdfFormat.N_TRIPLES)) if came is not None else []
        store.extend(quads)
        held.append(quads)
        if len(held) > RANGE:
            for quad in held.popleft():
                store.remove(quad)

    return step


def compare(size: Size, *, stepped: bool) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Levada on closed and on open elements, and the baseline, with many stations."""
    weather = size.weather
    with tempfile.TemporaryDirectory(prefix="levada-w3-") as folder:
        root, hours = Path(folder), Path(folder) / "hours"
        write_rounds(root, weather, size.rounds)
        write_hours(hours, weather)
        given = supply_of(weather, size.rounds, size.epoch)
        closed, open_ = (
            supplied(
                "bench.srbench_q3:levada",
                root,
                given,
                weather.results,
                0,
                stepped=stepped,
                closed=closed,
            )
            for closed in (True, False)
        )
        theirs = [
            apart("bench.srbench_q3:oxigraph", folder=str(hours), whole=whole)
            for whole in (True, False)
        ]
    for measured in theirs:
        check_count("pyoxigraph", measured["count"], weather.results)
    return closed, open_, best(theirs)


def run(scale: float, stepped: bool) -> Result:
    """Both numbers of stations."""
    sizes = [
        replace(
            s,
            stations=max(int(s.stations * scale) // 4 * 4, 4),
            rounds=s.rounds if scale >= 1 else 1,
        )
        for s in SIZES
    ]
    (few, few_open, few_base), (many, many_open, many_base) = (
        compare(size, stepped=stepped) for size in sizes
    )
    more = {
        "open": many_open | {"ratio_cpu": ratio(many_open, many_base)},
        f"stations_{sizes[0].stations}": {
            "levada": few,
            "open": few_open,
            "baseline": few_base,
            "ratio_cpu": ratio(few, few_base),
        },
    }
    return Result("srbench_q3", many, many_base, ratio(many, many_base), more)
