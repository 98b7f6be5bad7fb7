"""``rlas``: replication and placement of BriskStream's four applications on its two servers, each
plan run in the simulator.

Word count, fraud detection, spike detection and Linear Road (``applications.py``: what of their
costs is made up) on servers A and B. RLAS searches with the model ``sustainable``; at its
replication first fit, round robin and placements without pinning (the mean of three) are its
rivals, and the same search that believes every tuple to come from farthest away, or from beside.
All of these run in the simulator, which shares no code with the models; gains are of RLAS over
each, in percent. ``errors``: how far the models are from the simulator, on RLAS' own plans and on
random ones. ``best_random_pct``: the best of 1,000 random plans of all cores, by the model, in
percent of RLAS' plan.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from bench.papers.throughput_simulator import Edge, Pipeline, simulate
from bench.result import Result
from levada.core.machine_file import shipped_machine
from levada.placement.replication.baseline_plans import (
    first_fit,
    random_replication,
    round_robin,
    scatter,
)
from levada.placement.replication.example_applications import APPLICATIONS
from levada.placement.replication.model_arrays import Problem, problem
from levada.placement.replication.rlas import Plan, Search, evaluate_plan, rlas
from levada.placement.replication.throughput_models import MODELS

SERVERS = {"A": "server-a", "B": "server-b"}
SEARCH = Search(steps=100_000)
RANDOM, PLANS, SEEDS = 1000, 50, 3
SUSTAINABLE, PAPER = MODELS["sustainable"], MODELS["paper"]


def simulated(given: Problem, counts: Any, jumbos: int = 1_000_000) -> float:
    """Million tuples/s at the sinks, routed in turn."""
    graph, machine = given.graph, given.machine
    ends = graph.place_of
    edges = [Edge(ends[s.producer], ends[s.consumer], s.selectivity, s.size) for s in graph.streams]
    costs = [op.cycles / machine.clock for op in graph.operators]
    pipeline = Pipeline(costs, edges, machine.latency, machine.line)
    replicas = [(int(o), int(p)) for o, p in np.argwhere(counts) for _ in range(counts[o, p])]
    return simulate(pipeline, replicas, jumbos=jumbos) / 1e6


def run(scale: float, stepped: bool) -> Result:
    """All eight cases; ``stepped`` changes nothing, since no engine runs."""
    search = replace(SEARCH, steps=max(int(SEARCH.steps * scale), 1000))
    timed(lambda: rlas(SUSTAINABLE, _case("WC", "B"), replace(search, steps=100)))  # compiles
    cases = {
        f"{app} {server}": _compare(_case(app, server), search, scale)
        for server in SERVERS
        for app in APPLICATIONS
    }
    errors = _random_errors(max(int(PLANS * scale), 4), _jumbos(scale))
    own = [case["error_pct"] for case in cases.values()]
    more = {
        "errors": {
            "own_sustainable_most_pct": max(abs(e["sustainable"]) for e in own),
            "own_paper_most_pct": max(abs(e["paper"]) for e in own),
            **errors,
        },
        "least_gain_pct": {
            rival: min(case["gain_pct"][rival] for case in cases.values())
            for rival in next(iter(cases.values()))["gain_pct"]
        },
    }
    return Result("rlas", {"count": len(cases), **cases}, more=more)


def _case(app: str, server: str) -> Problem:
    return problem(APPLICATIONS[app](), shipped_machine(SERVERS[server]))


def _jumbos(scale: float) -> int:
    return max(int(1_000_000 * scale), 20_000)


def timed(work: Callable[[], Plan]) -> tuple[Plan, float]:
    """What some work gives, and its CPU-seconds."""
    before = time.process_time()
    found = work()
    return found, round(time.process_time() - before, 2)


def _compare(given: Problem, search: Search, scale: float) -> dict[str, Any]:
    jumbos = _jumbos(scale)
    plan, seconds = timed(lambda: rlas(SUSTAINABLE, given, search))
    fine, fine_seconds = timed(lambda: rlas(SUSTAINABLE, given, replace(search, ratio=1)))
    k = plan.replication
    rivals = {
        "ff": [first_fit(SUSTAINABLE, given, k)],
        "rr": [round_robin(SUSTAINABLE, given, k)],
        "os": [scatter(given, k, seed) for seed in range(SEEDS)],
        "fix_l": [_blind(given, search, "farthest")],
        "fix_u": [_blind(given, search, "none")],
    }
    ours = simulated(given, plan.counts, jumbos)
    theirs = {
        name: float(np.mean([simulated(given, counts, jumbos) for counts in plans]))
        for name, plans in rivals.items()
    }
    said = {
        name: evaluate_plan(MODELS[name], given, plan.counts).throughput / 1e6
        for name in ("sustainable", "paper")
    }
    return {
        "simulated_m": round(ours, 2),
        "rivals_m": {name: round(value, 2) for name, value in theirs.items()},
        "gain_pct": {name: round(100 * (ours / value - 1), 1) for name, value in theirs.items()},
        "error_pct": {name: round(100 * (v / ours - 1), 1) for name, v in said.items()},
        "replication": " ".join(map(str, k)),
        "best_random_pct": round(
            100 * _best_random(given, max(int(RANDOM * scale), 10)) / plan.throughput, 1
        ),
        "cpu_s": seconds,
        "r1": {
            "cpu_s": fine_seconds,
            "gain_pct": round(100 * (fine.throughput / plan.throughput - 1), 2),
        },
    }


def _blind(given: Problem, search: Search, distance: Any) -> Any:
    """The plan of a search that takes every tuple to come from the same distance."""
    believed = problem(given.graph, given.machine, distance=distance)
    return rlas(SUSTAINABLE, believed, search).counts


def _random_errors(plans: int, jumbos: int) -> dict[str, Any]:
    """The models on random plans of all cores, in turn over the eight cases."""
    names = [(app, server) for server in SERVERS for app in APPLICATIONS]
    errors: dict[str, list[float]] = {"sustainable": [], "paper": []}
    for seed in range(plans):
        given = _case(*names[seed % len(names)])
        counts = scatter(given, random_replication(given, given.cores, seed), seed)
        seen = simulated(given, counts, jumbos)
        for name, found in errors.items():
            found.append(
                abs(evaluate_plan(MODELS[name], given, counts).throughput / 1e6 / seen - 1)
            )
    told: dict[str, Any] = {"random_plans": plans}
    for name, found in errors.items():
        told[f"random_{name}_within_10_pct"] = sum(error <= 0.1 for error in found)
        told[f"random_{name}_most_pct"] = round(100 * max(found), 1)
    return told


def _best_random(given: Problem, plans: int) -> float:
    """By the model, tuples/s of the best of random plans of all cores."""
    drawn = (
        scatter(given, random_replication(given, given.cores, seed), seed) for seed in range(plans)
    )
    return max(evaluate_plan(SUSTAINABLE, given, counts).throughput for counts in drawn)
