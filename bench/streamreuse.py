"""``streamreuse``: queries of an airline and of RFID readers that come and go over a network of 200
nodes, in each mode of sharing, with locality and without; and how long the lattice is searched.

``airline at five places`` has its queries stay, and all their results wanted at five nodes.
``network`` is the mean of bytes in transit, ``processors`` of CPU-seconds a second, both by the
cost model (``bench.papers.streamreuse.model``): no row is made. ``saved`` compares with ``off``,
with locality in both. ``search`` has CPU times over lattices of 100 to 100,000 operators: to find
the first candidates of a query, all of whose kinds of search are asked, and to insert an operator.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from bench.papers import streamreuse as paper
from bench.papers.streamreuse.airline import AIRLINE
from bench.papers.streamreuse.model.lattice import Lattice
from bench.papers.streamreuse.rfid import RFID
from bench.papers.streamreuse.simulate import MODES, Place, simulate
from bench.papers.streamreuse.wide import WIDE, operators
from bench.papers.streamreuse.workload import Load
from bench.result import Result

SIZES = (100, 1_000, 10_000, 100_000)
SEARCHES, FIRST = 1000, 16


def run(scale: float, stepped: bool) -> Result:
    """Both workloads; ``stepped`` changes nothing, since no engine runs."""
    load = Load(queries=max(int(1000 * scale), 20))
    found: dict[str, Any] = {}
    for workload in (AIRLINE, RFID):
        sides = {
            mode + ("" if locality else " without locality"): simulate(
                workload, load, Place(), mode, locality=locality
            )
            for mode in MODES
            for locality in (True, False)
        }
        found[workload.name] = sides | {"saved": saved(sides)}
    found["airline at five places"] = at_places(load.queries, 5)
    sizes = [size for size in SIZES if size <= SIZES[-1] * scale or size == SIZES[0]]
    more = {
        "search": {size: search(size) for size in sizes},
        "figures": {name: ": ".join(told) for name, told in paper.FIGURES.items()},
    }
    return Result("streamreuse", {"count": load.queries, **found}, more=more)


def at_places(queries: int, places: int) -> dict[str, Any]:
    """The airline's queries, none of which ends, whose results are wanted at so many nodes."""
    load, place = Load(queries, life=1e9), Place(sinks=places)
    sides = {m: simulate(AIRLINE, load, place, m, locality=True) for m in ("off", "relax")}
    relax, off = (sides[mode]["network_at_end"] for mode in ("relax", "off"))
    return sides | {"saved": saved(sides), "saved_at_end_pct": round(100 * (1 - relax / off), 1)}


def saved(sides: dict[str, dict[str, Any]]) -> dict[str, dict[str, float]]:
    """Of each mode, what it has less than ``off`` on the same network."""
    off = sides["off"]
    return {
        name: {
            "network_saved_pct": round(100 * (1 - side["network"] / off["network"]), 1),
            "cpu_times_less": round(off["processors"] / side["processors"], 1),
            "latency_more_pct": round(100 * (side["latency_ms"] / off["latency_ms"] - 1), 1),
        }
        for name, side in sides.items()
    }


def search(size: int) -> dict[str, Any]:
    """CPU ms of searches in a lattice of ``size`` operators in 20 regions."""
    rng = np.random.default_rng(5)
    lattice = Lattice()
    started = time.process_time()
    for number, definition in enumerate(operators(rng, size)):
        lattice.insert(number, definition, 1 << int(rng.integers(WIDE)))
    inserted = (time.process_time() - started) / size
    took: dict[str, list[float]] = {"containing": [], "relaxable": [], "masked": []}
    counts: dict[str, list[int]] = {name: [] for name in took}
    for wanted in operators(rng, SEARCHES):
        mask = 1 << int(rng.integers(WIDE))
        for name, found in (
            ("containing", lattice.containing(wanted)),
            ("relaxable", lattice.relaxable(wanted)),
            ("masked", lattice.relaxable(wanted, mask)),
        ):
            started = time.process_time()
            count = sum(1 for _ in zip(range(FIRST), found, strict=False))
            took[name].append(time.process_time() - started)
            counts[name].append(count)
    return {
        "insert_ms": round(1000 * inserted, 3),
        **{
            f"{name}_ms_{label}": round(1000 * float(np.quantile(times, q)), 3)
            for name, times in took.items()
            for label, q in (("p50", 0.5), ("p99", 0.99))
        },
        **{f"{name}_p99": int(np.quantile(found, 0.99)) for name, found in counts.items()},
        "nodes": lattice.counts(),
    }
