"""The model ``epochs`` for a work on a cluster, and the placements that are compared by it.

What a job of Spark costs is probed with jobs that do nothing but send (``probe``): CPU of the
driver's side, of a stage, of a task, of a byte from the same executor and from another. What the
work costs is measured in this process (``bench.mapped.clock``). So nothing of the runs that are
predicted is in the predictions. A replica is a task; stages take turns on the cores of an executor.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.mapped.clock import PROBE
from bench.mapped.runs import MACHINES
from bench.measure import Tree
from levada.core.array_types import Longs
from levada.core.machine_file import Machine
from levada.placement.replication.baseline_plans import first_fit, round_robin, scatter
from levada.placement.replication.dataflow import Graph, Operator, Stream
from levada.placement.replication.local_search import refine
from levada.placement.replication.model_arrays import Problem, problem
from levada.placement.replication.rlas import Search, evaluate_plan, place
from levada.placement.replication.throughput_models import EPOCHS, Model, estimate
from levada.placement.send_graph import SendGraph
from levada.runtime.executor import Job
from levada.runtime.preferred_locations import LocalityStats, PreferredLocations

LINE = 64.0
"""Bytes: what a latency is of."""
SEEDS = (1, 2)
"""Of placements by lot."""
SLACK = 1.5
"""Times an even share of the tasks that an executor may have."""
TIMES, COLD = 6, 2
SHAPES = (
    (1, 4, 0, False), (3, 4, 0, False), (1, 12, 0, False), (3, 12, 0, False), (3, 8, 0, False),
    (1, 4, 500_000, False), (1, 4, 500_000, True), (2, 8, 100_000, False), (2, 8, 100_000, True),
)  # fmt: skip
"""Stages, tasks of each, bytes of a blob, whether from elsewhere."""


@dataclass(frozen=True, slots=True)
class Costs:
    """CPU seconds: the driver's of a job, of a stage, of a task, of a byte from the same executor
    and of one from another.
    """

    driver: float
    stage: float
    task: float
    near: float
    far: float

    def told(self) -> dict[str, float]:
        """In ms, of bytes in ms a MB."""
        found = {"driver": self.driver, "stage": self.stage, "task": self.task}
        found |= {"near_mb": self.near * 1e6, "far_mb": self.far * 1e6}
        return {name: round(value * 1e3, 2) for name, value in found.items()}


def probe(executor: Any) -> Costs:
    """What jobs cost that only send."""
    tree, spent = Tree(), dict.fromkeys(SHAPES, 0.0)
    for turn in range(TIMES):
        for shape in SHAPES:
            before = tree.cpu()
            executor.run(_sending(*shape))
            spent[shape] += (tree.cpu() - before).total if turn >= COLD else 0.0
    return fit([(shape, cpu / (TIMES - COLD)) for shape, cpu in spent.items()])


def _sending(stages: int, tasks: int, size: int, far: bool) -> Job:
    """Four tasks send, then stages of so many each."""
    half = MACHINES // 2
    own = tuple(n % half for n in range(4))
    at = [tuple(n % half + (half if far and i % 2 == 0 else 0) for n in range(tasks))
          for i in range(stages)]  # fmt: skip
    if not far:  # each blob within an executor: all on one
        own, at = (0,) * 4, [(0,) * tasks] * stages
    context = json.dumps([size, tasks, stages]).encode()
    places = PreferredLocations(MACHINES, own, tuple(at), LocalityStats())
    return Job(context, [b"."] * 4, stages, tasks, functions=PROBE, places=places)


def fit(seen: Sequence[tuple[tuple[int, int, int, bool], float]]) -> Costs:
    """Costs by least squares, none of them below 0.

    >>> exact = Costs(0.01, 0.005, 0.01, 4e-9, 6e-9)
    >>> sent = lambda n, t, b: b * t * (4 + (n - 1) * t)
    >>> fit([((n, t, b, far), 0.01 + 0.005 * n + 0.01 * (4 + n * t)
    ...       + sent(n, t, b) * (6e-9 if far else 4e-9)) for n, t, b, far in SHAPES]).told()
    {'driver': 10.0, 'stage': 5.0, 'task': 10.0, 'near_mb': 4.0, 'far_mb': 6.0}
    """
    rows = []
    for (stages, tasks, size, far), _ in seen:
        sent = size * tasks * (4 + (stages - 1) * tasks) / 1e6
        rows.append([1.0, stages, 4 + stages * tasks, 0.0 if far else sent, sent if far else 0.0])
    given = np.array(rows)
    free = list(range(given.shape[1]))
    while True:
        found = np.linalg.lstsq(given[:, free], np.array([cpu for _, cpu in seen]), rcond=None)[0]
        if (found >= 0).all():
            break
        free.pop(int(found.argmin()))
    every = np.zeros(given.shape[1])
    every[free] = found
    return Costs(*every[:3].tolist(), *(every[3:] / 1e6).tolist())


@dataclass(frozen=True, slots=True)
class Case:
    """A work on a cluster: ``tasks`` of each stage, those that read first; ``bytes`` that each of
    the others gets in an epoch; elements of an epoch.
    """

    given: Problem
    model: Model
    tasks: tuple[int, ...]
    bytes: tuple[float, ...]
    rows: float
    costs: Costs


def case(
    calls: Sequence[Counter[str]], epochs: int, rows: float, tasks: Sequence[int], costs: Costs
) -> Case:
    """``calls``: what those of each stage took in so many epochs, of which each has so many
    elements.
    """
    taken = [rows * epochs, *(float(max(c["rows"], 1)) for c in calls[1:])]
    sizes = [0.0, *(c["bytes"] / n for c, n in zip(calls[1:], taken[1:], strict=True))]
    names = ["read", *(f"stage {i}" for i in range(1, len(calls)))]
    operators = [
        Operator(name, max(c["cpu"] / n + size * costs.near * 1e9, 1e-3))
        for name, c, n, size in zip(names, calls, taken, sizes, strict=True)
    ]
    streams = [
        Stream(names[i - 1], names[i], taken[i] / taken[i - 1], sizes[i])
        for i in range(1, len(names))
    ]
    turns = int(np.ceil(SLACK * sum(tasks) / MACHINES))
    given = problem(Graph("tasks", operators, streams), _machine(costs), turns=turns)
    model = Model(EPOCHS, rows, costs.driver * 1e9, costs.stage * 1e9, costs.task * 1e9)
    each = tuple(c["bytes"] / epochs for c in calls[1:])
    return Case(given, model, tuple(tasks), each, rows, costs)


def _machine(costs: Costs) -> Machine:
    """Executors of a core each; what is from another one costs so much more a line."""
    far = max(costs.far - costs.near, 0.0) * 1e9 * LINE
    latency = np.full((MACHINES, MACHINES), far)
    np.fill_diagonal(latency, 0.0)
    names = tuple(f"executor {i}" for i in range(MACHINES))
    wide = np.full((MACHINES, MACHINES), 1e15)
    return Machine("cluster", 1.0, LINE, names, (1,) * MACHINES, latency, wide)


def placements(of: Case, search: Search) -> dict[str, Longs]:
    """Tasks by stage and executor, as RLAS, first fit, round robin and lots have them."""
    each = np.array(of.tasks, np.int64)
    found = place(of.model, of.given, each, search)
    better = refine(of.model, of.given, found.counts, seed=search.seed, steps=search.steps)
    plan = evaluate_plan(of.model, of.given, better)
    return {
        "rlas": plan.counts if plan.better(found) else found.counts,
        "ff": first_fit(of.model, of.given, each),
        "rr": round_robin(of.model, of.given, each),
        **{f"os_{seed}": scatter(of.given, each, seed) for seed in SEEDS},
    }


def remote(of: Case, counts: Longs) -> float:
    """Bytes from other executors in an epoch: each task sends as much to each."""
    shares = counts / counts.sum(axis=1, keepdims=True)
    near = (shares[:-1] * shares[1:]).sum(axis=1)
    return float(((1 - near) * np.array(of.bytes)).sum())


def predicted(of: Case, counts: Longs, cores: int) -> dict[str, Any]:
    """Rows/s with a core for each executor, and where all of them have so many cores; CPU of an
    epoch; bytes from elsewhere a row if each task sends as much to each.
    """
    found = estimate(of.model, of.given, counts)
    rate = float(found.taken[0] @ counts[0])
    epoch = of.rows / rate * 1e9
    each = of.model.rows * found.busy / max(rate / 1e9, 1e-300) + of.model.task
    load = counts * each
    here = of.model.driver + sum(
        of.model.stage + max(float(own.max()), float(own.sum()) / cores) for own in load
    )
    cpu = of.model.driver + of.model.stage * len(counts) + float(load.sum())
    return {
        "rows_per_s": round(of.rows / epoch * 1e9),
        "rows_per_s_here": round(of.rows / here * 1e9),
        "rows_per_cpu_s": round(of.rows / cpu * 1e9),
        "cpu_ms_an_epoch": round(cpu / 1e6, 1),
        "in_turn_bytes_a_row": round(remote(of, counts) / of.rows, 1),
    }


def sent_far(graph: SendGraph, at: Mapping[str, int]) -> int:
    """The bytes that tasks with a machine get from other machines: exchanges by the same key one
    after the other keep rows in their partition, and then not every task sends to each.
    """
    place = np.array([at.get(task, -1) for task in graph.tasks])
    source, target = place[graph.source], place[graph.target]
    return int(graph.sent("bytes")[(source >= 0) & (target >= 0) & (source != target)].sum())


def machines(stages: Sequence[Sequence[str]], counts: Longs) -> Mapping[str, int]:
    """The machine of each task by its name.

    >>> machines([["r"], ["1.0", "1.1"]], np.array([[0, 1], [1, 1]]))
    {'r': 1, '1.0': 0, '1.1': 1}
    """
    return {
        task: int(at)
        for own, row in zip(stages, counts, strict=True)
        for task, at in zip(own, np.repeat(np.arange(len(row)), row), strict=True)
    }
