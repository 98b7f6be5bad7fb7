"""The airline of STREAMREUSE's examples: streams, Q1 and Q2, and random queries like these."""

from __future__ import annotations

import numpy as np
from bench.papers.streamreuse.model.conditions import where
from bench.papers.streamreuse.model.descriptor import Descriptor, descriptor, part
from bench.papers.streamreuse.model.network import Network, network
from bench.papers.streamreuse.model.statistics import Spread, Statistics, StreamStatistics
from bench.papers.streamreuse.model.value_intervals import between, values
from bench.papers.streamreuse.model.windows import every

MINUTE = 60_000
JOINS = [
    ("FLIGHTS.DEST", "WEATHER.CITY"),
    ("FLIGHTS.NUM", "CHECK-INS.FLIGHT"),
    ("FLIGHTS.NUM", "BAGGAGE.FLIGHT"),
]
Q1 = descriptor(
    {"FLIGHTS": 5 * MINUTE, "WEATHER": 5 * MINUTE, "CHECK-INS": MINUTE, "BAGGAGE": MINUTE},
    JOINS,
    where({"FLIGHTS.TERMINAL": values("TERMINAL A"), "FLIGHTS.CARRIER": values("DL")}),
    ["FLIGHTS.NUM", "FLIGHTS.GATE", "BAGGAGE.AREA", "CHECK-INS.STATUS", "WEATHER.FORECAST"],
    instants=every(MINUTE),
)
Q1_JOIN = part(Q1, {"FLIGHTS", "CHECK-INS"})
"""The operator that the paper relaxes: FLIGHTS and CHECK-INS of Q1."""
Q2 = descriptor(
    {"FLIGHTS": 5 * MINUTE, "CHECK-INS": 5 * MINUTE},
    [("CHECK-INS.FLIGHT", "FLIGHTS.NUM")],
    where({"FLIGHTS.CARRIER": values("DL", "CO")}),
    ["FLIGHTS.NUM", "CHECK-INS.STATUS", "CHECK-INS.VACANT SEATS"],
    instants=every(5 * MINUTE),
)


def streams(flights: int = 2000) -> dict[str, StreamStatistics]:
    """The fewer the flights, the more meets."""
    return {
        "FLIGHTS": StreamStatistics(
            10.0,
            {
                "NUM": Spread(flights), "DEST": Spread(150), "GATE": Spread(100),
                "CARRIER": Spread(3), "TERMINAL": Spread(3), "DELAY": Spread(10, low=0, high=10),
            },
        ),
        "WEATHER": StreamStatistics(2.0, {"CITY": Spread(150), "FORECAST": Spread(1000, 100)}),
        "CHECK-INS": StreamStatistics(
            20.0, {"FLIGHT": Spread(flights), "STATUS": Spread(2), "VACANT SEATS": Spread(100)}
        ),
        "BAGGAGE": StreamStatistics(20.0, {"FLIGHT": Spread(flights), "AREA": Spread(20)}),
    }  # fmt: skip


SOURCES = {"FLIGHTS": 0, "WEATHER": 1, "CHECK-INS": 0, "BAGGAGE": 1}


def two_regions() -> Network:
    """Nodes 0 to 2 and 3 to 5 beside each other, 50 ms between both."""
    near = np.full((3, 3), 0.001) - 0.001 * np.eye(3)
    far = np.full((3, 3), 0.05)
    return network(np.block([[near, far], [far, near]]), [0, 0, 0, 1, 1, 1])


def statistics(flights: int = 2000) -> Statistics:
    return Statistics(streams(flights))


def drawn(rng: np.random.Generator, grouped: float = 0.0) -> Descriptor:
    """A query with some of the streams, conditions, columns, windows; values are few."""
    equal = [pair for pair in JOINS if rng.random() < 0.5]
    sources = sorted({"FLIGHTS"} | {a.partition(".")[0] for pair in equal for a in pair})
    box = {}
    if rng.random() < 0.6:
        box["FLIGHTS.CARRIER"] = values(*map(int, rng.integers(0, 3, int(rng.integers(1, 3)))))
    if rng.random() < 0.4:
        box["FLIGHTS.TERMINAL"] = values(int(rng.integers(0, 3)))
    if rng.random() < 0.4:
        low = int(rng.integers(0, 8))
        box["FLIGHTS.DELAY"] = between(low, low + int(rng.integers(0, 5)))
    clauses = []
    if "BAGGAGE" in sources and rng.random() < 0.3:
        clauses.append(frozenset({("GATE <= AREA", ("FLIGHTS.GATE", "BAGGAGE.AREA"))}))
    told = streams()
    names = [f"{s}.{a}" for s in sources for a in told[s].attributes]
    ranges = {s: int(rng.integers(1, 4)) for s in sources}
    instants = every(int(rng.integers(1, 4)), int(rng.integers(0, 3)))
    if rng.random() < grouped:
        return descriptor(
            ranges,
            equal,
            where(box, clauses),
            instants=instants,
            group=["FLIGHTS.CARRIER"] + (["FLIGHTS.GATE"] if rng.random() < 0.5 else []),
            aggregates=[("COUNT", "FLIGHTS.NUM"), ("SUM", "FLIGHTS.DELAY")][: rng.integers(1, 3)],
        )
    columns = [str(c) for c in rng.choice(names, int(rng.integers(1, 4)), replace=False)]
    return descriptor(ranges, equal, where(box, clauses), columns, instants=instants)
