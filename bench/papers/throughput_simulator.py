"""A machine of replicas, event by event: what a plan gives where nothing is assumed about rates.

It is the measured side of the models of ``levada.placement.replication``, and shares no code with
them. Each replica is a server that takes one jumbo tuple (64 tuples) after the other; a tuple costs
its operator's time and a latency for each cache line if it was made elsewhere, and each jumbo tuple
varies by ``noise`` (uniform). Spouts always have input. Between each producer and each consumer is
a queue of 32 jumbo tuples; a consumer looks at its queues in turn. A producer that has made a jumbo
tuple for a stream sends it to the consumers in turn and, if that one's queue is full, waits
(``turn``); or to the one whose queue is shortest, and waits only if all are full (``least``).

Not in it: links that are busy, memory traffic, cores that are shared (a plan binds each replica to
one), keys (fields grouping is taken to be even).

Cost: some hundred ns a jumbo tuple. Twin: a small one in simpy, in the tests.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple, TypeVar, cast

import numba
import numpy as np

from levada.core.array_types import Bools, Doubles, Longs
from levada.core.cache_folder import cache_compiled
from levada.core.frozen import frozen

JUMBO, QUEUE = 64, 32
"""Tuples of a jumbo tuple, jumbo tuples of a queue."""
F = TypeVar("F", bound=Callable[..., Any])


def _compiled(function: F) -> F:
    dispatcher = numba.njit(error_model="numpy")(function)
    if dispatcher is not function and not numba.config.BOUNDSCHECK:
        cache_compiled(dispatcher)
    return cast(F, dispatcher)


NOTHING, ANY = -1, -2
"""What a replica waits for beside a queue's number."""


class _Network(NamedTuple):
    """Replicas i, queues q by (producer, stream, consumer), groups g: the queues of one producer
    and one stream.
    """

    costs: Doubles  # [i] ns a tuple of a spout
    sinks: Bools  # [i]
    queues: Longs  # [q] producer, stream, consumer
    times: Doubles  # [q] ns a tuple
    inputs: Longs  # [i + 1] where those of a consumer begin
    order: Longs  # [q] by consumer
    groups: Longs  # [g] producer, stream, first and last + 1 queue
    out: Longs  # [i + 1] where those of a producer begin
    selectivity: Doubles  # [g]


class _State(NamedTuple):
    """``stack`` holds replicas that may have something to do, its first entry where its top is."""

    length: Longs  # [q]
    waits: Longs  # [i] for which queue
    turn: Longs  # [g] whose turn it is
    left: Doubles  # [g] tuples that are made and not sent
    look: Longs  # [i] at which queue next
    stack: Longs  # [i + 1]
    called: Bools  # [i] whether it is on the stack


@frozen
class Edge:
    """Tuples to the consumer for each that the producer takes, bytes of a tuple."""

    producer: int
    consumer: int
    selectivity: float
    size: float


@frozen
class Pipeline:
    """ns a tuple of each operator, the streams, ns between places, bytes of a cache line."""

    costs: Sequence[float]
    edges: Sequence[Edge]
    latency: Doubles
    line: float

    def fetch(self, edge: Edge, source: int, target: int) -> float:
        """ns to get a tuple from another place."""
        return math.ceil(edge.size / self.line) * float(self.latency[source, target])


def simulate(
    pipeline: Pipeline,
    replicas: Sequence[tuple[int, int]],
    *,
    jumbos: int = 1_000_000,
    noise: float = 0.3,
    routing: Literal["turn", "least"] = "turn",
    seed: int = 0,
) -> float:
    """Tuples/s that the sinks take in, of replicas (operator, place); measured over the last two
    fifths of ``jumbos`` jumbo tuples.

    >>> one = Pipeline([100.0, 200.0], [Edge(0, 1, 1.0, 64)], np.zeros((1, 1)), 64)
    >>> round(simulate(one, [(0, 0), (1, 0)], jumbos=5000, noise=0.0) / 1e6, 1)
    5.0
    """
    costs = np.array([pipeline.costs[op] for op, _ in replicas], np.float64)
    queues = [
        (i, e, j, pipeline.costs[edge.consumer] + pipeline.fetch(edge, p, q))
        for i, (o, p) in enumerate(replicas)
        for e, edge in enumerate(pipeline.edges)
        if edge.producer == o
        for j, (c, q) in enumerate(replicas)
        if c == edge.consumer
    ]
    fed = {edge.producer for edge in pipeline.edges}
    sinks = np.array([op not in fed for op, _ in replicas])
    table = np.array([q[:3] for q in queues], np.int64).reshape(-1, 3)
    starts = np.flatnonzero(np.any(np.diff(table[:, :2], axis=0, prepend=-1), axis=1))
    groups = np.column_stack(
        [table[starts, 0], table[starts, 1], starts, np.append(starts[1:], len(table))]
    )
    selectivity = np.array([edge.selectivity for edge in pipeline.edges], np.float64)
    net = _Network(
        costs,
        sinks,
        table,
        np.array([q[3] for q in queues], np.float64),
        _offsets(table[:, 2], len(replicas)),
        np.argsort(table[:, 2], kind="stable"),
        groups,
        _offsets(groups[:, 0], len(replicas)),
        selectivity[groups[:, 1]],
    )
    return float(_run(net, jumbos, noise, routing == "least", seed))


def _offsets(keys: Longs, n: int) -> Longs:
    """Where the rows of each key begin, sorted by it."""
    return np.searchsorted(np.sort(keys), np.arange(n + 1)).astype(np.int64)


@_compiled
def _call(state: _State, i: int) -> None:
    """A replica may have something to do."""
    if not state.called[i]:
        state.called[i] = True
        state.stack[0] += 1
        state.stack[state.stack[0]] = i


@_compiled
def _send(net: _Network, state: _State, i: int, least: bool) -> bool:
    """Sends what a replica has made; gives whether all of it went."""
    for g in range(net.out[i], net.out[i + 1]):
        a, b = net.groups[g, 2], net.groups[g, 3]
        while state.left[g] >= JUMBO:
            q = a + state.turn[g]
            if least:
                for other in range(a, b):
                    if state.length[other] < state.length[q]:
                        q = other
            if state.length[q] == QUEUE:
                state.waits[i] = ANY if least else q
                return False
            state.length[q] += 1
            state.left[g] -= JUMBO
            state.turn[g] = (state.turn[g] + 1) % (b - a)
            _call(state, net.queues[q, 2])
    state.waits[i] = NOTHING
    return True


@_compiled
def _next_queue(net: _Network, state: _State, i: int) -> int:
    """The next queue of a replica in turn that is not empty, or -1."""
    n = net.inputs[i + 1] - net.inputs[i]
    for k in range(n):
        at = (state.look[i] + k) % n
        q = net.order[net.inputs[i] + at]
        if state.length[q]:
            state.look[i] = (at + 1) % n
            return int(q)
    return -1


@_compiled
def _begin(net: _Network, state: _State, i: int, least: bool) -> float:
    """Has a replica go on, if it can; gives ns a tuple of what it has begun, 0 if nothing."""
    if state.waits[i] != NOTHING and not _send(net, state, i, least):
        return 0.0
    if net.inputs[i] == net.inputs[i + 1]:
        return float(net.costs[i])
    q = _next_queue(net, state, i)
    if q < 0:
        return 0.0
    state.length[q] -= 1
    producer = net.queues[q, 0]
    if state.waits[producer] == q or state.waits[producer] == ANY:
        _call(state, producer)
    return float(net.times[q])


@_compiled
def _start(net: _Network) -> _State:
    n, queues, groups = len(net.costs), len(net.queues), len(net.groups)
    turn = np.zeros(groups, np.int64)
    for g in range(groups):
        turn[g] = np.random.randint(net.groups[g, 3] - net.groups[g, 2])
    stack = np.arange(-1, n)
    stack[0] = n
    return _State(
        np.zeros(queues, np.int64),
        np.full(n, NOTHING),
        turn,
        np.zeros(groups),
        np.zeros(n, np.int64),
        stack,
        np.ones(n, np.bool_),
    )


@_compiled
def _run(net: _Network, jumbos: int, noise: float, least: bool, seed: int) -> float:
    """The clock goes from one finished jumbo tuple to the next."""
    np.random.seed(seed)
    state = _start(net)
    finish = np.full(len(net.costs), np.inf)
    now, begin, got = 0.0, 0.0, 0.0
    for done in range(jumbos):
        if done == jumbos * 3 // 5:
            begin, got = now, 0.0
        while state.stack[0]:
            i = state.stack[state.stack[0]]
            state.stack[0] -= 1
            state.called[i] = False
            if finish[i] == np.inf:
                ns = _begin(net, state, i, least)
                if ns > 0.0:
                    vary = 1.0 + noise * (2.0 * np.random.random() - 1.0)
                    finish[i] = now + JUMBO * ns * vary
        i = int(np.argmin(finish))
        now = finish[i]
        finish[i] = np.inf
        if net.sinks[i]:
            got += JUMBO
        for g in range(net.out[i], net.out[i + 1]):
            state.left[g] += JUMBO * net.selectivity[g]
        _send(net, state, i, least)
        _call(state, i)
    return got * 1e9 / (now - begin)
