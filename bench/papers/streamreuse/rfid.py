"""Tags that readers see: select, join and count by zone. All parameters are ours."""

from __future__ import annotations

import numpy as np

from bench.papers.streamreuse.model.conditions import where
from bench.papers.streamreuse.model.descriptor import Descriptor, descriptor
from bench.papers.streamreuse.model.statistics import Spread, StreamStatistics
from bench.papers.streamreuse.model.value_intervals import between, values
from bench.papers.streamreuse.model.windows import every
from bench.papers.streamreuse.workload import MINUTE, Workload, shared, some, span, zipf

TAGS, READERS = 10_000, 50
ZONES = tuple(f"zone {i}" for i in range(10))
KINDS = tuple(f"kind {i}" for i in range(20))

STREAMS = {
    "READINGS": StreamStatistics(
        100.0,
        {
            "TAG": Spread(TAGS, 12), "READER": Spread(READERS, 4), "ZONE": shared(ZONES, 8),
            "SIGNAL": Spread(100, 4, low=0, high=100),
        },
    ),
    "PRODUCTS": StreamStatistics(
        10.0,
        {"TAG": Spread(TAGS, 12), "KIND": shared(KINDS, 8),
         "PRICE": Spread(1000, 8, low=0, high=1000)},
    ),
    "LOCATIONS": StreamStatistics(
        1.0, {"READER": Spread(READERS, 4), "SITE": Spread(10, 20), "HEAT": Spread(50, 4)}
    ),
}  # fmt: skip


def seen(rng: np.random.Generator) -> Descriptor:
    """Readings of a zone that are strong enough."""
    low = float(rng.integers(0, 10)) * 10
    box = {"READINGS.ZONE": values(zipf(rng, ZONES)), "READINGS.SIGNAL": between(low)}
    columns = ["READINGS.TAG", "READINGS.READER", "READINGS.SIGNAL"]
    return descriptor({"READINGS": span(rng)}, (), where(box), some(rng, columns))


def priced(rng: np.random.Generator) -> Descriptor:
    """Products of a kind above a price that are seen somewhere, and by which reader's site."""
    box = {
        "PRODUCTS.KIND": values(zipf(rng, KINDS)),
        "PRODUCTS.PRICE": between(float(rng.integers(0, 10)) * 100),
    }
    equal = [("READINGS.TAG", "PRODUCTS.TAG")]
    ranges = {"READINGS": span(rng), "PRODUCTS": span(rng)}
    columns = ["READINGS.TAG", "READINGS.ZONE", "PRODUCTS.PRICE"]
    if rng.random() < 0.5:
        equal.append(("READINGS.READER", "LOCATIONS.READER"))
        ranges["LOCATIONS"] = span(rng)
        columns.append("LOCATIONS.SITE")
    step = int(rng.integers(1, 11)) * MINUTE
    return descriptor(ranges, equal, where(box), some(rng, columns), instants=every(step))


def counted(rng: np.random.Generator) -> Descriptor:
    """Readings of each zone, or of each reader in each zone."""
    group = ["READINGS.ZONE"] + (["READINGS.READER"] if rng.random() < 0.5 else [])
    return descriptor(
        {"READINGS": span(rng)},
        group=group,
        aggregates=[("COUNT", "READINGS.TAG")],
        instants=every(int(rng.integers(1, 11)) * MINUTE),
    )


RFID = Workload("rfid", STREAMS, (seen, priced, counted), (0.3, 0.5, 0.2))
