"""Operators of many kinds, for a lattice of 100,000: 50 airports, each with the airline's streams,
whose queries compare numbers, texts and ranges, or nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from bench.papers.streamreuse.model.conditions import where
from bench.papers.streamreuse.model.descriptor import Descriptor, descriptor
from bench.papers.streamreuse.model.value_intervals import Spans, between, values
from bench.papers.streamreuse.model.windows import every
from bench.papers.streamreuse.workload import MINUTE, some, span, zipf

WIDE = 20
"""Regions."""
AIRPORTS = range(50)
OTHERS = ("CHECKINS", "BAGGAGE", "WEATHER")
CONDITIONS = ("CARRIER", "TERMINAL", "GATE", "DELAY")


def operators(rng: np.random.Generator, count: int) -> Iterator[Descriptor]:
    """So many, of airports of which each next one is rarer."""
    for _ in range(count):
        yield _drawn(rng, int(zipf(rng, AIRPORTS)))


def _drawn(rng: np.random.Generator, airport: int) -> Descriptor:
    flights = f"FLIGHTS{airport}"
    streams = [f"{name}{airport}" for name in OTHERS if rng.random() < 0.4]
    compared = [name for name in CONDITIONS if rng.random() < 0.4]
    box = {f"{flights}.{name}": _values(rng, name) for name in compared}
    columns = [f"{flights}.NUM", f"{flights}.GATE", f"{flights}.TERMINAL"]
    return descriptor(
        {source: span(rng) for source in (flights, *streams)},
        [(f"{flights}.NUM", f"{source}.FLIGHT") for source in streams],
        where(box),
        some(rng, columns) + list(box),
        instants=every(int(rng.integers(1, 11)) * MINUTE),
    )


def _values(rng: np.random.Generator, name: str) -> Spans:
    if name == "DELAY":
        low = int(rng.integers(0, 1000))
        return between(low, low + int(rng.integers(1, 300)))
    count = {"CARRIER": 20, "TERMINAL": 8, "GATE": 500}[name]
    chosen = rng.integers(0, count, int(rng.integers(1, 3)))
    return values(*(f"{name} {int(i)}" for i in chosen))
