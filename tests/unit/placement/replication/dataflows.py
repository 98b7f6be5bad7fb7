"""Random dataflows, machines and plans, and what the simulator is told of them."""

import numpy as np
from bench.papers.throughput_simulator import Edge, Pipeline

from levada.core.machine_file import Machine
from levada.placement.replication.dataflow import Graph, Operator, Stream
from levada.placement.replication.model_arrays import Problem, problem


def random_graph(rng: np.random.Generator, operators: int, spouts: int = 1) -> Graph:
    """Each operator but the first (``spouts``) is fed by one or two before it."""
    ops = [Operator(f"o{i}", float(rng.integers(100, 2000))) for i in range(operators)]
    streams = []
    for i in range(spouts, operators):
        for p in rng.choice(i, size=min(i, int(rng.integers(1, 3))), replace=False):
            selectivity = float(rng.choice([0.5, 1.0, 1.0, 3.0]))
            streams.append(Stream(f"o{p}", f"o{i}", selectivity, float(rng.integers(1, 400))))
    return Graph("random", ops, streams)


def machine(latency: np.ndarray, cores: int, bandwidth: float = 1e15) -> Machine:
    n = len(latency)
    names = tuple(f"S{i}" for i in range(n))
    return Machine("m", 1.0, 64.0, names, (cores,) * n, latency, np.full((n, n), bandwidth))


def random_machine(
    rng: np.random.Generator, places: int, cores: int, bandwidth: float = 1e15
) -> Machine:
    latency = rng.choice([100.0, 100.0, 250.0, 700.0], size=(places, places))
    if rng.random() < 0.5:
        latency = (latency + latency.T) / 2
    np.fill_diagonal(latency, 0.0)
    return machine(latency, cores, bandwidth)


def random_problem(
    rng: np.random.Generator, operators: int = 4, cores: int = 5, bandwidth: float = 1e15
) -> Problem:
    return problem(random_graph(rng, operators), random_machine(rng, 3, cores, bandwidth))


def random_plan(rng: np.random.Generator, given: Problem, total: int) -> np.ndarray:
    counts = np.zeros((given.operators, given.places), np.int64)
    extra = rng.integers(0, given.operators, total - given.operators)
    for o in [*range(given.operators), *extra]:
        room = np.flatnonzero(counts.sum(axis=0) < np.array(given.machine.cores))
        counts[o, rng.choice(room)] += 1
    return counts


def random_rates(rng: np.random.Generator, given: Problem) -> dict[str, float]:
    """Of each spout what keeps it busy, or less than it could give."""
    graph = given.graph
    cost = {op.name: op.cycles / given.machine.clock for op in graph.operators}
    return {
        name: 1e18 if rng.random() < 0.5 else float(rng.uniform(0.05, 1.2)) * 1e9 / cost[name]
        for name in graph.spouts
    }


def pipeline(
    given: Problem, counts: np.ndarray | None = None, rates: dict[str, float] | None = None
) -> Pipeline:
    """The same dataflow and machine, from what a user gives: with ``rates`` a spout's replicas of
    ``counts`` are busy with each tuple until the next one comes.
    """
    graph, m = given.graph, given.machine
    costs = [op.cycles / m.clock for op in graph.operators]
    for name, rate in (rates or {}).items():
        o = graph.place_of[name]
        assert counts is not None, "rates are shared among replicas"
        costs[o] = max(costs[o], counts[o].sum() * 1e9 / rate)
    edges = [
        Edge(graph.place_of[s.producer], graph.place_of[s.consumer], s.selectivity, s.size)
        for s in graph.streams
    ]
    return Pipeline(costs, edges, m.latency, m.line)


def replicas(counts: np.ndarray) -> list[tuple[int, int]]:
    return [(int(o), int(p)) for o, p in np.argwhere(counts) for _ in range(counts[o, p])]
