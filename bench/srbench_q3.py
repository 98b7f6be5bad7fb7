"""``srbench_q3``: W3 with 20 and 500 stations against pyoxigraph, parsing included on both sides.

The baseline is one pyoxigraph store that holds the window: at each close the triples of the hour
that came are added, those of the hour that left are removed, and the query is evaluated. It has the
two ways that pyoxigraph offers, and the faster one counts: a graph for each hour, loaded from its
text and removed whole; or triples parsed, added and removed one by one. It reads the same triples
cut by the hour, so it has no times to find. Twenty stations tell for twenty days. A row is a
triple.

An observation's three triples come together, so the stream is declared ``closed=element`` and its
star is joined where it is read; ``ratio_cpu`` is that of 500 stations. ``open`` is the same without
the promise: each triple is an element, all joins are windowed joins over the exchange.
"""

from __future__ import annotations

import tempfile
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyoxigraph as ox

from bench.apart import apart
from bench.engine import run_engine
from bench.measure import Tree, peak_memory
from bench.meter import side
from bench.result import Result, best, check_count, ratio
from bench.srbench import MINUTES, PATTERN, STREAM, Weather, query, write_hours, write_timed

RANGE = 3  # hours


@dataclass(frozen=True, slots=True)
class Size:
    """Stations, days, minutes in an epoch, epochs of warm-up."""

    stations: int
    days: int
    epoch: int
    warm: int

    @property
    def weather(self) -> Weather:
        """The days with their warm-up."""
        return Weather(self.stations, self.epoch * self.warm, self.days)


SIZES = (Size(20, 20, MINUTES, 4), Size(500, 1, 720, 2))


def levada(path: str, epoch: int, warm: int, stepped: bool, closed: bool) -> dict[str, Any]:
    """The side ``levada``, in this process; ``epoch`` and ``warm`` in triples."""
    streams = {
        STREAM: {"source": path, **({"element": "subject", "closed": "element"} if closed else {})}
    }
    return run_engine(
        streams, {"w3": {"text": query(), "dialect": "rspql"}}, epoch_rows=epoch // (3 if closed else 1), warm=warm,
        stepped=stepped, by="triples",
    )  # fmt: skip


def oxigraph(folder: str, whole: bool) -> dict[str, Any]:
    """The side ``baseline``; ``whole``: by graphs of an hour, else by single triples."""
    hours = [path.read_bytes() for path in sorted(Path(folder).iterdir())]
    text = f"SELECT ?sensor (MIN(?v) AS ?m) {{ {PATTERN} }} GROUP BY ?sensor HAVING (MIN(?v) >= 74)"
    tree = Tree()
    before, began = tree.cpu(), time.perf_counter()
    step: Callable[[bytes | None], None]
    store = ox.Store()
    step = _by_hours(store) if whole else _by_triples(store)
    count = 0
    for came in [*hours, *[None] * (RANGE - 1)]:
        step(came)
        solutions = store.query(text, use_default_graph_as_union=whole)
        assert isinstance(solutions, ox.QuerySolutions), "a SELECT has solutions"
        count += len(list(solutions))
    wall, cpu = time.perf_counter() - began, tree.cpu() - before
    rows = sum(hour.count(b"\n") for hour in hours)
    return side(count, rows, wall, cpu, memory=peak_memory())


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
    """Levada on closed and on open elements, and the baseline, with so many stations; counts
    checked.
    """
    weather = size.weather
    with tempfile.TemporaryDirectory(prefix="levada-w3-") as folder:
        timed, hours = Path(folder) / "w3.nt", Path(folder) / "hours"
        write_timed(timed, weather)
        write_hours(hours, weather)
        rows = size.epoch * weather.minute_rows
        given = {"path": str(timed), "epoch": rows, "warm": size.warm * rows, "stepped": stepped}
        closed, open_ = (
            apart("bench.srbench_q3:levada", **given, closed=closed) for closed in (True, False)
        )
        theirs = [
            apart("bench.srbench_q3:oxigraph", folder=str(hours), whole=whole)
            for whole in (True, False)
        ]
    for name, measured in (
        ("levada", closed),
        ("levada, open", open_),
        *(("pyoxigraph", t) for t in theirs),
    ):
        check_count(name, measured["count"], weather.results)
    return closed, open_, best(theirs)


def run(scale: float, stepped: bool) -> Result:
    """Both numbers of stations."""
    sizes = [Size(max(int(s.stations * scale) // 4 * 4, 4), s.days, s.epoch, s.warm) for s in SIZES]
    (few, few_open, few_base), (many, many_open, many_base) = (
        compare(size, stepped=stepped) for size in sizes
    )
    more = {
        "open": many_open | {"ratio_cpu": ratio(many_open, many_base)},
        f"stations_{sizes[0].stations}": {
            "levada": few, "open": few_open, "baseline": few_base, "ratio_cpu": ratio(few, few_base),
        },
    }  # fmt: skip
    return Result("srbench_q3", many, many_base, ratio(many, many_base), more)
