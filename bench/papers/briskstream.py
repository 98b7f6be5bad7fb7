"""BriskStream (Zhang, He, Zhou, He: SIGMOD 2019): its figures and tables, each with what became of
it here.

*quoted*: the paper's numbers. *re-derived*: computed from these. *simulated*: our search and models
on the paper's two servers, of whose applications most costs are made up
(``levada.placement.replication.example_applications``): signs and orders count, and not digits.
*measured*: seen on a machine here. *not measurable here*: eight sockets, or the programs of others.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from levada.core.array_types import Doubles
from levada.core.machine_file import Machine, shipped_machine
from levada.placement.replication.example_applications import APPLICATIONS
from levada.placement.replication.model_arrays import Problem, problem
from levada.placement.replication.rlas import Plan, Search, evaluate_plan, rlas
from levada.placement.replication.throughput_models import MODELS

SERVERS = {"A": "server-a", "B": "server-b"}
SOCKETS = (1, 2, 4, 8)
SUSTAINABLE = MODELS["sustainable"]

FIGURES = {
    "Fig. 3": ("measured", "p5, p50, p95 of each operator at three sizes: `levada profile`"),
    "Fig. 8": ("measured", "parts of a row's time by edge and distance, on Spark: `bench edges`"),
    "Fig. 9": ("simulated", "throughput on 1, 2, 4, 8 sockets: `scaling`"),
    "Fig. 10": ("simulated", "the gap to as many single sockets, with distances and without"),
    "Fig. 12": ("simulated", "plans by one distance: `bench rlas`, fix_l and fix_u"),
    "Fig. 13": (
        "simulated, measured",
        "unpinned, first fit, round robin: `bench rlas`, os, ff and rr; on Spark: `bench mappings`",
    ),
    "Fig. 14": ("simulated", "random plans: `bench rlas`, best_random_pct"),
    "Fig. 15": ("simulated", "who sends to whom: `traffic`"),
    "Fig. 16": ("measured", "factors of ours, on Spark: `bench factors`"),
    "Table 3": ("re-derived", "cache lines that the estimates are of: `lines_of_table_3`"),
    "Table 4": ("quoted, simulated", "errors of the model; ours: `bench rlas`, error_pct"),
    "Table 7": (
        "quoted, simulated",
        "replicas placed together: `compression`; times: `bench rlas`",
    ),
}
"""What each is here, and where."""

TABLE_3 = {
    "splitter": {0: 1612.8, 1: (1991.1, 1666.5), 3: (1994.9, 1708.2), 4: (2923.7, 2050.6),
                 7: (3196.4, 2371.3)},
    "counter": {0: 612.3, 1: (665.2, 611.4), 3: (665.9, 623.1), 4: (837.9, 889.9),
                7: (888.4, 870.2)},
}  # fmt: skip
"""Ns a tuple, from socket 0 to each: in place, else estimated and measured."""
TABLE_4 = {"WC": 0.08, "FD": 0.14, "SD": 0.02, "LR": 0.06}
TABLE_7 = {1: 10140.2, 3: 10079.5, 5: 96390.8, 10: 84955.9, 15: 77773.6}
"""Thousand tuples/s by how many replicas are placed together; the first two seem to have lost a
digit, since they say less than a ninth of the third and the text says that finer is better."""


def lines_of_table_3() -> dict[str, dict[int, float]]:
    """How many cache lines of a tuple each estimate of Table 3 stands for by formula 2, which has a
    whole number of them, the same at each distance.
    """
    latency = shipped_machine("server-a").latency[0]
    found = {}
    for operator, times in TABLE_3.items():
        local = times[0]
        told = {at: pair[0] for at, pair in times.items() if isinstance(pair, tuple)}
        assert isinstance(local, float), "in place it is one number"
        found[operator] = {
            at: round((estimated - local) / float(latency[at]), 2) for at, estimated in told.items()
        }
    return found


def errors_of_table_3() -> dict[str, float]:
    """How far the estimates of Table 3 are from what was measured, at most."""
    return {
        operator: round(
            max(abs(p[0] / p[1] - 1) for p in times.values() if isinstance(p, tuple)), 3
        )
        for operator, times in TABLE_3.items()
    }


def part(machine: Machine, sockets: int) -> Machine:
    """The first sockets of a machine.

    >>> len(part(shipped("server-b"), 2).places)
    2
    """
    return replace(
        machine,
        places=machine.places[:sockets],
        cores=machine.cores[:sockets],
        latency=machine.latency[:sockets, :sockets],
        bandwidth=machine.bandwidth[:sockets, :sockets],
    )


def _problem(app: str, server: str, sockets: int) -> Problem:
    return problem(APPLICATIONS[app](), part(shipped_machine(SERVERS[server]), sockets))


def scaling(app: str, server: str, search: Search) -> dict[int, dict[str, float]]:
    """Fig. 9, 10: of RLAS' plan on so many sockets, million tuples/s by the model ``sustainable``;
    what part that is of the fewest sockets' rate, as many times over; and the same where no tuple
    comes from afar. Sockets with fewer cores than operators are left out.
    """
    found: dict[int, dict[str, float]] = {}
    each = 0.0
    for sockets in SOCKETS:
        given = _problem(app, server, sockets)
        if given.cores < given.operators:
            continue
        plan = rlas(SUSTAINABLE, given, search)
        near = problem(given.graph, given.machine, distance="none")
        free = evaluate_plan(SUSTAINABLE, near, plan.counts).throughput
        each = each or plan.throughput / sockets
        found[sockets] = {
            "with": round(plan.throughput / 1e6, 2),
            "with_of_ideal": round(plan.throughput / each / sockets, 3),
            "without_of_ideal": round(free / each / sockets, 3),
        }
    return found


def traffic(app: str, server: str, search: Search) -> tuple[Plan, Doubles]:
    """Fig. 15: RLAS' plan, and million tuples/s from each socket to each, in turn over replicas."""
    given = _problem(app, server, SOCKETS[-1])
    plan = rlas(SUSTAINABLE, given, search)
    arrays, parts = given.arrays, plan.counts / plan.replication[:, None]
    sinks = float(arrays.flow[arrays.sink].sum())
    sent = np.zeros((given.places, given.places))
    for consumer in range(given.operators):
        for e in range(arrays.first[consumer], arrays.first[consumer + 1]):
            rate = plan.throughput / sinks * arrays.flow[arrays.source[e]] * arrays.selectivity[e]
            sent += rate / 1e6 * np.outer(parts[arrays.source[e]], parts[consumer])
    return plan, sent


def compression(app: str, server: str, search: Search) -> dict[int, float]:
    """Table 7: million tuples/s of RLAS' plan by how many replicas are placed together, by the
    model ``sustainable``.
    """
    given = _problem(app, server, SOCKETS[-1])
    plans = {r: rlas(SUSTAINABLE, given, replace(search, ratio=r)) for r in TABLE_7}
    return {r: round(plan.throughput / 1e6, 2) for r, plan in plans.items()}


def crossing(sent: Doubles) -> dict[str, float]:
    """Shares of what is sent: to another socket, to the other tray of four."""
    tray = np.arange(len(sent)) // 4
    apart = tray[:, None] != tray[None, :]
    whole = float(sent.sum())
    return {
        "sockets": round(1 - float(np.trace(sent)) / whole, 3),
        "trays": round(float(sent[apart].sum()) / whole, 3),
    }
