"""Queries come and go over a network; what is paid is added up piece by piece between two changes
(STREAMREUSE, section 2.2). No row is made: rates, prices and choices are those of
``bench.papers.streamreuse.model``.
"""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from bench.papers.streamreuse.model.cost import NOTHING, Price
from bench.papers.streamreuse.model.network import Network
from bench.papers.streamreuse.model.planner import Planner, Query
from bench.papers.streamreuse.model.statistics import Statistics
from bench.papers.streamreuse.topology import transit_stub
from bench.papers.streamreuse.workload import Load, Workload, arrivals

EVERY = 20
"""So many queries come between two looks in the background."""
MODES = ("off", "exact", "containment", "relax")


@dataclass(frozen=True, slots=True)
class Place:
    """A network of so many stubs of so many nodes, where streams begin in it, and at how many of
    its nodes results are wanted (0: at any).
    """

    stubs: int = 10
    each: int = 20
    seed: int = 1
    sinks: int = 0

    def built(self) -> Network:
        return transit_stub(self.stubs, self.each, self.seed)

    def asked(self, workload: Workload, load: Load) -> Iterator[tuple[float, Query]]:
        """The queries with the second of their arrival."""
        at = self.wanted_at()
        for now, query in arrivals(workload, load, self.stubs * self.each, self.seed):
            yield now, replace(query, sink=at[query.sink % len(at)])

    def wanted_at(self) -> list[int]:
        """The nodes to which results go."""
        nodes = np.arange(self.stubs * self.each)
        drawn = np.random.default_rng(self.seed + 6).permutation(nodes)[: self.sinks]
        return [int(node) for node in (drawn if self.sinks else nodes)]


def simulate(
    workload: Workload, load: Load, place: Place, mode: str, *, locality: bool
) -> dict[str, Any]:
    """Means over time until the last arrival, and what planning took (CPU)."""
    planner = planned(workload, place, mode, locality=locality)
    paid, before, took, late, kinds = NOTHING, 0.0, [], [], dict[str, int]()
    behind, moved = [0.0], 0
    ends: list[tuple[float, str]] = []
    for now, query in place.asked(workload, load):
        while ends and ends[0][0] <= now:
            until, name = heapq.heappop(ends)
            paid, before = _paid(planner, paid, until - before), until
            planner.remove(name)
        paid, before = _paid(planner, paid, now - before), now
        started = time.process_time()
        kind = planner.add(query, now).chosen.kind
        took.append(time.process_time() - started)
        kinds[kind] = kinds.get(kind, 0) + 1
        late.append(planner.latency(query.name))
        if len(took) % EVERY == 0:
            started = time.process_time()
            moved += planner.gather()
            behind.append(time.process_time() - started)
        heapq.heappush(ends, (query.until, query.name))
    last = planner.dataflow.price()
    return {
        "network": round(paid.network / before, 1),
        "processors": round(paid.cpu / before, 5),
        "network_at_end": round(last.network, 1),
        "processors_at_end": round(last.cpu, 5),
        "queries_at_end": len(planner.queries),
        "operators_at_end": len(planner.dataflow.operators),
        "latency_ms": round(1000 * float(np.mean(late)), 1),
        "plan_ms_p50": round(1000 * float(np.quantile(took, 0.5)), 2),
        "plan_ms_p99": round(1000 * float(np.quantile(took, 0.99)), 2),
        "gathered": moved,
        "gather_ms_most": round(1000 * max(behind), 1),
        "chosen": kinds,
    }


def planned(workload: Workload, place: Place, mode: str, *, locality: bool) -> Planner:
    """A planner without queries; streams begin at nodes that the seed draws."""
    network = place.built()
    rng = np.random.default_rng(place.seed + 1)
    nodes = rng.choice(len(network.delay), len(workload.streams), replace=False)
    sources = {s: int(node) for s, node in zip(sorted(workload.streams), nodes, strict=True)}
    statistics = Statistics(workload.streams)
    return Planner(statistics, network, sources, mode=mode, locality=locality)


def queries(workload: Workload, load: Load, place: Place) -> list[Query]:
    """The queries alone."""
    return [query for _, query in place.asked(workload, load)]


def _paid(planner: Planner, before: Price, seconds: float) -> Price:
    now = planner.dataflow.price()
    return before + Price(now.network * seconds, now.cpu * seconds)
