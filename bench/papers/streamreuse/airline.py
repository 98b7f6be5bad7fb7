"""An airline's operational information system: four streams, and the paper's Q1 and Q2 with other
carriers, terminals, columns, windows and refreshes.

Rates are ours, from a peak hour: 2,000 flights are told of every ten minutes, 150 passengers of
each check in within four hours, with a bag each, and 150 cities have a forecast every ten minutes.
"""

from __future__ import annotations

import numpy as np

from bench.papers.streamreuse.model.conditions import Where, where
from bench.papers.streamreuse.model.descriptor import Descriptor, descriptor
from bench.papers.streamreuse.model.statistics import Spread, StreamStatistics
from bench.papers.streamreuse.model.value_intervals import values
from bench.papers.streamreuse.model.windows import every
from bench.papers.streamreuse.workload import MINUTE, Workload, shared, some, span, zipf

FLIGHTS, CITIES = 2000, 150
CARRIERS = ("DL", "AA", "UA", "CO", "NW", "US", "WN", "AS", "B6", "F9")
TERMINALS = tuple(f"TERMINAL {letter}" for letter in "ABCDE")

STREAMS = {
    "FLIGHTS": StreamStatistics(
        FLIGHTS / 600,
        {
            "NUM": Spread(FLIGHTS, 6), "DEST": Spread(CITIES, 12), "GATE": Spread(100, 4),
            "CARRIER": shared(CARRIERS, 2), "TERMINAL": shared(TERMINALS, 10),
        },
    ),
    "WEATHER": StreamStatistics(
        CITIES / 600, {"CITY": Spread(CITIES, 12), "FORECAST": Spread(1000, 100)}
    ),
    "CHECK-INS": StreamStatistics(
        FLIGHTS * 150 / 14_400,
        {"FLIGHT": Spread(FLIGHTS, 6), "STATUS": Spread(5, 10), "VACANT": Spread(200, 4)},
    ),
    "BAGGAGE": StreamStatistics(
        FLIGHTS * 150 / 14_400, {"FLIGHT": Spread(FLIGHTS, 6), "AREA": Spread(20, 4)}
    ),
}  # fmt: skip


def overhead(rng: np.random.Generator) -> Descriptor:
    """Q1: what a display overhead shows of the flights of one carrier at one terminal."""
    conditions = where(
        {
            "FLIGHTS.CARRIER": values(zipf(rng, CARRIERS)),
            "FLIGHTS.TERMINAL": values(zipf(rng, TERMINALS)),
        }
    )
    columns = ["FLIGHTS.NUM", "FLIGHTS.GATE", "BAGGAGE.AREA", "CHECK-INS.STATUS",
               "WEATHER.FORECAST"]  # fmt: skip
    equal = [
        ("FLIGHTS.DEST", "WEATHER.CITY"),
        ("FLIGHTS.NUM", "CHECK-INS.FLIGHT"),
        ("FLIGHTS.NUM", "BAGGAGE.FLIGHT"),
    ]
    return _drawn(rng, equal, conditions, columns)


def vacancies(rng: np.random.Generator) -> Descriptor:
    """Q2: flights of some carriers that could be cancelled."""
    carriers = {zipf(rng, CARRIERS) for _ in range(int(rng.integers(1, 4)))}
    conditions = where({"FLIGHTS.CARRIER": values(*sorted(carriers))})
    columns = ["FLIGHTS.NUM", "CHECK-INS.STATUS", "CHECK-INS.VACANT"]
    return _drawn(rng, [("FLIGHTS.NUM", "CHECK-INS.FLIGHT")], conditions, columns)


def _drawn(
    rng: np.random.Generator,
    equal: list[tuple[str, str]],
    conditions: Where,
    columns: list[str],
) -> Descriptor:
    sources = sorted({a.partition(".")[0] for pair in equal for a in pair})
    return descriptor(
        {source: span(rng) for source in sources},
        equal,
        conditions,
        some(rng, columns),
        instants=every(int(rng.integers(1, 11)) * MINUTE),
    )


AIRLINE = Workload("airline", STREAMS, (overhead, vacancies), (0.5, 0.5))
