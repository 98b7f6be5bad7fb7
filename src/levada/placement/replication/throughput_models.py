"""Three models of a plan's throughput, behind one interface.

- ``paper`` (BriskStream, section 3.1): rates from spouts to sinks. An overloaded replica takes its
  capacity, of each producer in proportion (first come, first served). The rest waits, and nothing
  blocks.
- ``sustainable``: bounded queues block when full, so every replica of an operator takes an equal
  share, and the slowest replica bounds all. Several spouts each emit until they are blocked
  (``throughput_models``); in a search they emit in proportion to their input.
- ``epochs``: stages are barriers, as on Spark. An epoch takes the driver's time, and for each
  operator an overhead and the share of its fullest place.

A tuple costs its operator's time and, if it is remote, a latency for each of its cache lines
(formula 2 of the paper). A plan is a matrix of counts, operators by places and ``UNPLACED``. Tuples
are routed in turn, so each replica gets an equal share of each producer's.

The bound of a search is the same evaluation with unplaced replicas. For ``paper``, first come,
first served is not a bound: more tuples from afar displace near ones, so a slower producer can make
a faster consumer. With ``bound`` a replica takes the nearest tuples first, which is at least as
much and does not fall if a rate rises.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from levada.core.array_types import Doubles, Longs
from levada.core.frozen import frozen
from levada.placement.replication.model_arrays import Arrays, Problem
from levada.placement.replication.numba_cache import compile_function

# The model ``sustainable`` for dataflows with several spouts: the output of each spout.
#
# With one spout the slowest replica bounds all. With several each emits tuples until it is blocked
# itself. Full queues block, and a replica takes from its queues in turn, one for each replica of
# each producer. So all replicas that send more than they may send equally much (max-min fairness by
# queues). An operator takes in only tuples that it may pass on, by the same turns. So each operator
# has a limit, computed in passes down and up the dataflow that each go half of the way. Then tuples
# flow from the spouts, and none is lost.
#
# Cost: some ms a plan, so it is for a final plan (``throughput_models.estimate``). A search visits
# very many plans and lets all spouts emit in proportion to their input.


PASSES, RATE_TOLERANCE = 300, 1e-9


@frozen
class _Operator:
    """``sources``, ``selectivity``, ``senders``: for each input stream the producer, tuples for
    each that the producer takes, the producer's replicas. ``times``: s that this operator's
    replicas need for a tuple a second of each stream, in each of its ``places``.
    """

    sources: Longs
    selectivity: Doubles
    senders: Longs
    times: Doubles  # [stream, place]
    places: Longs

    def share_inputs(self, offers: Doubles, limit: float) -> Doubles:
        """Returns the tuples/s taken of each stream. Streams that offer too much get equal shares
        for each sending replica, up to the time of the replicas and ``limit``.
        """
        held = np.ones(len(offers), bool)
        while held.any():
            got = np.where(held, 0.0, offers)
            each = np.append(self.senders[held] @ self.times[held], self.senders[held].sum())
            left = np.append(1.0 - got @ self.times, limit - got.sum())
            level = float((np.maximum(left, 0.0) / np.maximum(each, 1e-300)).min())
            fits = held & (offers <= level * self.senders)
            if not fits.any():
                return np.where(held, level * self.senders, offers)
            held &= ~fits
        return offers


def several(a: Arrays, counts: Longs) -> tuple[float, Doubles, Doubles]:
    """Returns tuples/s at the sinks, and for operators by places the input and the busy fraction of
    a replica.
    """
    operators = [_operator(a, counts, o) for o in range(len(counts))]
    rate = _flow(operators, _solve(a, operators, counts.sum(axis=1)))
    busy = np.zeros(counts.shape)
    for o, op in enumerate(operators):
        load = _offers(op, rate) @ op.times if len(op.sources) else rate[o] * a.cost[o] / SECOND
        busy[o, op.places] = load / (1 if len(op.sources) else counts[o].sum())
    rate /= max(float(busy.max()), 1.0)
    busy /= max(float(busy.max()), 1.0)
    taken = np.where(counts, (rate / counts.sum(axis=1))[:, None], 0.0)
    return float(rate[a.sink].sum()), taken, busy


def _operator(a: Arrays, counts: Longs, o: int) -> _Operator:
    streams = np.arange(a.first[o], a.first[o + 1])
    sources, (places,) = a.source[streams], np.nonzero(counts[o])
    part = counts[sources] / counts[sources].sum(axis=1, keepdims=True)
    ns = a.cost[o] + a.lines[streams, None] * (part @ a.latency[:, places])
    times = ns / SECOND / counts[o].sum()
    return _Operator(sources, a.selectivity[streams], counts[sources].sum(axis=1), times, places)


def _offers(op: _Operator, rate: Doubles) -> Doubles:
    offers: Doubles = rate[op.sources] * op.selectivity
    return offers


def _flow(operators: list[_Operator], spout_rates: Doubles) -> Doubles:
    """Returns the input of operators if spouts emit ``spout_rates``."""
    rate = spout_rates.copy()
    for o, op in enumerate(operators):
        if len(op.sources):
            rate[o] = _offers(op, rate).sum()
    return rate


def _solve(a: Arrays, operators: list[_Operator], replicas: Longs) -> Doubles:
    """Returns the input of each operator in the steady state of blocking."""
    most = np.minimum(a.rate * a.weight, replicas * SECOND / a.cost)  # for spouts
    limit, rate = np.full(len(operators), math.inf), np.zeros(len(operators))
    for _ in range(PASSES):
        before = rate.copy()
        for o, op in enumerate(operators):
            alone = min(most[o], limit[o])
            rate[o] = (
                op.share_inputs(_offers(op, rate), limit[o]).sum() if len(op.sources) else alone
            )
        if (np.abs(rate - before) <= RATE_TOLERANCE * np.maximum(rate, before)).all():
            break
        _hold_up(operators, rate, limit)
    return rate


def _hold_up(operators: list[_Operator], rate: Doubles, limit: Doubles) -> None:
    """Computes each operator's ``limit`` from the shares that its consumers would take."""
    wanted = np.full(len(operators), math.inf)
    for o in reversed(range(len(operators))):
        op, new = operators[o], wanted[o]
        limit[o] = new if math.isinf(limit[o]) or math.isinf(new) else (limit[o] + new) / 2.0
        offers = _offers(op, rate)
        for e, source in enumerate(op.sources):
            if op.selectivity[e] > 0.0:
                all_of_it = offers.copy()
                all_of_it[e] = math.inf
                share = op.share_inputs(all_of_it, limit[o])[e] / op.selectivity[e]
                wanted[source] = min(wanted[source], share)


PAPER, SUSTAINABLE, EPOCHS = 0, 1, 2
SECOND = 1e9
FED = 0.99
"""A replica that is busy for a smaller fraction of its time waits for input."""


class Model(NamedTuple):
    """The kind of model. The other fields are for ``epochs``: tuples of a spout in an epoch, and ns
    of the driver, each stage and each task.
    """

    kind: int
    rows: float = 1e6
    driver: float = 11e6
    stage: float = 15e6
    task: float = 10e6


MODELS = {"paper": Model(PAPER), "sustainable": Model(SUSTAINABLE), "epochs": Model(EPOCHS)}


@frozen
class Estimate:
    """Tuples/s that reach the sinks. For a replica of each operator in each place: the tuples/s
    that it takes in, and its busy fraction.
    """

    throughput: float
    taken: Doubles
    busy: Doubles


def estimate(model: Model, problem: Problem, counts: Longs) -> Estimate:
    """Returns the rating of a plan (counts of replicas, operators by places) by a model.

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
"""The output of an evaluation: tuples/s that a replica takes in, and its busy fraction."""


@compile_function
def evaluate(model: Model, arrays: Arrays, counts: Longs, work: Work, bound: bool) -> float:
    """Returns tuples/s at the sinks; fills ``work``, operators by places and ``UNPLACED``."""
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
    """Returns the most tuples that fit into a second."""
    left, got = SECOND, 0.0
    order = np.argsort(times[:n])
    for i in order:
        take = min(rates[i], left / times[i])
        got += take
        left -= take * times[i]
    return got


@compile_function
def _share_time(a: Arrays, counts: Longs, o: int, p: int) -> float:
    """Returns the ns that a replica of o at p needs for its share of one tuple of the fastest
    spout. It includes the other spouts' output in that time.
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
    """Fills ``taken`` and ``busy`` with equal shares of ``rate`` tuples/s of the fastest spout;
    returns tuples/s at the sinks.
    """
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
    """Returns the use of the scarcest resource of a plan; more than 1 is too much.

    Resources are room, memory traffic of each place, and the channel between each two. Each replica
    has a core, which bounds its time, unless replicas share cores. Rates are of tuples taken in:
    with the output rates of the paper's formulas, selectivities would count twice.
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
    """Returns the bytes/s from each place to each."""
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
