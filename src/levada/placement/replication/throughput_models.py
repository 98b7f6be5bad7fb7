"""Three models of what a plan gives, behind one interface.

- ``paper`` (BriskStream, section 3.1): rates from spouts to sinks. A replica that gets more than it
  can take takes what it can, of each of those that feed it in proportion (first come, first
  served); what is left waits there, and nobody is blocked.
- ``sustainable``: queues are bounded and full ones block, so every replica of an operator takes an
  equal share, and the slowest replica of all bounds them all. Of several spouts each gives what it
  can until it is held up itself (``spouts``), but in a search, where they give in proportion to
  what comes to them.
- ``epochs``: stages are barriers, as on Spark. An epoch takes what the driver takes, and for each
  operator an overhead and its fullest place's share.

A tuple costs its operator's own time, and if it comes from elsewhere a latency for each of its
cache lines (formula 2 of the paper). A plan is a matrix of counts, operators by places and
``UNPLACED``. Tuples are routed in turn, so each replica gets an equal share of each producer's.

The bound of a search is the same evaluation of a plan with unplaced replicas. For ``paper`` first
come, first served will not do: more tuples from far away push out nearer ones, so a slower producer
can make a faster consumer. With ``bound`` a replica takes the nearest first, which is at least as
much and falls with no rate that rises.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from levada.core.array_types import Doubles, Longs
from levada.core.frozen import frozen
from levada.placement.replication.model_arrays import Arrays, Problem
from levada.placement.replication.multi_source_model import several
from levada.placement.replication.numba_cache import compile_function

PAPER, SUSTAINABLE, EPOCHS = 0, 1, 2
SECOND = 1e9
FED = 0.99
"""A replica that is busy for less of its time waits for input."""


class Model(NamedTuple):
    """Which model; the last four are of ``epochs``: tuples of a spout in an epoch, ns that the
    driver, each stage, each task takes.
    """

    kind: int
    rows: float = 1e6
    driver: float = 11e6
    stage: float = 15e6
    task: float = 10e6


MODELS = {"paper": Model(PAPER), "sustainable": Model(SUSTAINABLE), "epochs": Model(EPOCHS)}


@frozen
class Estimate:
    """Tuples/s that reach the sinks; tuples/s that a replica of each operator in each place takes
    in, and what part of its time it is busy with that.
    """

    throughput: float
    taken: Doubles
    busy: Doubles


def estimate(model: Model, problem: Problem, counts: Longs) -> Estimate:
    """What a model says of a plan (counts of replicas, operators by places).

    >>> from levada.placement.replication.dataflow import Graph, Operator, Stream
    >>> from levada.core.machine_file import shipped_machine
    >>> from levada.placement.replication.model_arrays import problem
    >>> graph = Graph("g", [Operator("a", 120), Operator("b", 240)], [Stream("a", "b")])
    >>> pair = problem(graph, shipped_machine("server-a"))
    >>> apart = np.zeros((2, 8), np.int64)
    >>> apart[0, 0] = apart[1, 1] = 1
    >>> round(estimate(MODELS["paper"], pair, apart).throughput)  # 1 s / (200 + 119.3 ns)
    3131851
    """
    wide = np.zeros((problem.operators, problem.places + 1), np.int64)
    wide[:, : counts.shape[1]] = counts
    if model.kind == SUSTAINABLE and np.count_nonzero(problem.arrays.weight) > 1:
        throughput, taken, busy = several(problem.arrays, wide)
        return Estimate(throughput, taken[:, :-1], busy[:, :-1])
    taken, busy = work = np.zeros(wide.shape), np.zeros(wide.shape)
    throughput = evaluate(model, problem.arrays, wide, work, False)
    return Estimate(throughput, taken[:, :-1], busy[:, :-1])


Work = tuple[Doubles, Doubles]
"""What an evaluation fills: tuples/s that a replica takes in, the part of its time that takes."""


@compile_function
def evaluate(model: Model, arrays: Arrays, counts: Longs, work: Work, bound: bool) -> float:
    """Tuples/s at the sinks; fills ``work``, operators by places and ``UNPLACED``."""
    if model.kind == PAPER:
        return _paper(arrays, counts, bound, work[0], work[1])
    if model.kind == SUSTAINABLE:
        return _sustainable(arrays, counts, work[0], work[1])
    return _epochs(model, arrays, counts, work[0], work[1])


@compile_function
def _paper(a: Arrays, counts: Longs, bound: bool, taken: Doubles, busy: Doubles) -> float:
    operators, places = counts.shape
    rates = np.empty(places * (len(a.source) + 1))
    times = np.empty(places * (len(a.source) + 1))
    total = 0.0
    for o in range(operators):
        k = counts[o].sum()
        for p in range(places):
            taken[o, p] = busy[o, p] = 0.0
            if counts[o, p] == 0:
                continue
            n, arrived, work = 0, 0.0, 0.0
            if a.first[o] == a.first[o + 1]:
                rates[0], times[0] = a.rate * a.weight[o] / k, a.cost[o]
                n, arrived, work = 1, rates[0], rates[0] * times[0]
            for e in range(a.first[o], a.first[o + 1]):
                s = a.source[e]
                for q in range(places):
                    if counts[s, q]:
                        rates[n] = taken[s, q] * counts[s, q] * a.selectivity[e] / k
                        times[n] = a.cost[o] + a.lines[e] * a.latency[q, p]
                        arrived += rates[n]
                        work += rates[n] * times[n]
                        n += 1
            if work <= SECOND:
                taken[o, p] = arrived
            elif bound:
                taken[o, p] = _nearest_first(rates, times, n)
            else:
                taken[o, p] = arrived * SECOND / work
            busy[o, p] = min(work / SECOND, 1.0)
            if a.sink[o]:
                total += taken[o, p] * counts[o, p]
    return total


@compile_function
def _nearest_first(rates: Doubles, times: Doubles, n: int) -> float:
    """The most tuples that a second has room for."""
    left, got = SECOND, 0.0
    order = np.argsort(times[:n])
    for i in order:
        take = min(rates[i], left / times[i])
        got += take
        left -= take * times[i]
    return got


@compile_function
def _share_time(a: Arrays, counts: Longs, o: int, p: int) -> float:
    """ns that a replica of o at p needs for its share of one tuple of the spout to which most
    comes, and of what the others give in that time.
    """
    k = counts[o].sum()
    time = a.cost[o] * a.flow[o]
    for e in range(a.first[o], a.first[o + 1]):
        s = a.source[e]
        ns = 0.0
        for q in range(counts.shape[1]):
            ns += counts[s, q] * a.latency[q, p]
        time += ns * a.lines[e] * a.selectivity[e] * a.flow[s] / counts[s].sum()
    return float(time / k)


@compile_function
def _fill(a: Arrays, counts: Longs, rate: float, taken: Doubles, busy: Doubles) -> float:
    """What equal shares of ``rate`` tuples/s of that spout come to; gives tuples/s at the sinks."""
    total = 0.0
    for o in range(counts.shape[0]):
        k = counts[o].sum()
        for p in range(counts.shape[1]):
            taken[o, p] = rate * a.flow[o] / k if counts[o, p] else 0.0
            busy[o, p] *= rate / SECOND
        if a.sink[o]:
            total += rate * a.flow[o]
    return total


@compile_function
def _sustainable(a: Arrays, counts: Longs, taken: Doubles, busy: Doubles) -> float:
    slowest = 0.0
    for o in range(counts.shape[0]):
        for p in range(counts.shape[1]):
            busy[o, p] = _share_time(a, counts, o, p) if counts[o, p] else 0.0
            slowest = max(slowest, busy[o, p])
    return _fill(a, counts, min(a.rate, SECOND / slowest), taken, busy)


@compile_function
def _epochs(m: Model, a: Arrays, counts: Longs, taken: Doubles, busy: Doubles) -> float:
    time = m.driver
    for o in range(counts.shape[0]):
        fullest = 0.0
        for p in range(counts.shape[1]):
            busy[o, p] = 0.0
            if counts[o, p]:
                busy[o, p] = _share_time(a, counts, o, p)
                waves = -(-counts[o, p] // a.cores[p])
                fullest = max(fullest, waves * (m.task + m.rows * busy[o, p]))
        time += m.stage + fullest
    return _fill(a, counts, min(a.rate, m.rows * SECOND / time), taken, busy)


@compile_function
def demand(a: Arrays, counts: Longs, taken: Doubles) -> float:
    """How much of the scarcest resource a plan needs; more than 1 is too much.

    Room (each replica is bound to a core, so that their time is never more either, unless they take
    turns on it), memory traffic of each place, channel between each two. Rates are of tuples taken
    in: with the output rates that the paper's formulas name, selectivities would be counted twice.
    """
    places = counts.shape[1]
    most = 0.0
    channel = _channels(a, counts, taken)
    for p in range(places):
        memory, replicas = 0.0, 0
        for o in range(counts.shape[0]):
            replicas += counts[o, p]
            memory += counts[o, p] * taken[o, p] * a.memory[o]
        most = max(most, replicas / a.room[p], memory / a.bandwidth[p, p])
        for q in range(places):
            if p != q:
                most = max(most, channel[p, q] / a.bandwidth[p, q])
    return most


@compile_function
def _channels(a: Arrays, counts: Longs, taken: Doubles) -> Doubles:
    """Bytes/s from each place to each."""
    places = counts.shape[1]
    channel = np.zeros((places, places))
    from_ = np.empty((len(a.source), places))  # tuples/s to one replica
    for o in range(counts.shape[0]):
        k = max(counts[o].sum(), 1)
        arrived = 0.0
        for e in range(a.first[o], a.first[o + 1]):
            s = a.source[e]
            for q in range(places):
                from_[e, q] = taken[s, q] * counts[s, q] * a.selectivity[e] / k
                arrived += from_[e, q]
        for p in range(places):
            kept = counts[o, p] * taken[o, p] / arrived if arrived > 0.0 else 0.0
            for e in range(a.first[o], a.first[o + 1]):
                for q in range(places):
                    channel[q, p] += from_[e, q] * kept * a.size[e]
    return channel
