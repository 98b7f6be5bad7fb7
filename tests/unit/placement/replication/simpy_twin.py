"""The simulator's twin: the same rules as processes of simpy, tuple lists apart."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Generator
from typing import Any

import simpy
from bench.papers.throughput_simulator import JUMBO, QUEUE, Pipeline


class Twin:
    """Replicas as processes; a queue between each two that a stream joins."""

    def __init__(
        self, pipeline: Pipeline, replicas: list[tuple[int, int]], noise: float, seed: int
    ) -> None:
        self.env = simpy.Environment()
        self.pipeline, self.replicas, self.noise = pipeline, replicas, noise
        self.random = random.Random(seed)
        self.into: dict[int, list[tuple[simpy.Store, float]]] = defaultdict(list)
        self.out: dict[int, list[tuple[float, list[tuple[simpy.Store, int]]]]] = defaultdict(list)
        self.bells = [self.env.event() for _ in replicas]
        self.taken = 0
        for edge in pipeline.edges:
            for i, (o, p) in enumerate(replicas):
                if o == edge.producer:
                    self.out[i].append((edge.selectivity, self._join(edge, p)))
        for i in range(len(replicas)):
            self.env.process(self._replica(i))

    def _join(self, edge: Any, source: int) -> list[tuple[simpy.Store, int]]:
        joined = []
        for j, (o, q) in enumerate(self.replicas):
            if o == edge.consumer:
                store = simpy.Store(self.env, QUEUE)
                ns = self.pipeline.costs[o] + self.pipeline.fetch(edge, source, q)
                self.into[j].append((store, ns))
                joined.append((store, j))
        return joined

    def _replica(self, i: int) -> Generator[simpy.Event, None, None]:
        look, own = 0, self.pipeline.costs[self.replicas[i][0]]
        left = [0.0] * len(self.out[i])
        turn = [self.random.randrange(len(to)) for _, to in self.out[i]]
        while True:
            ns, queues = own, self.into[i]
            if queues:
                while not any(store.items for store, _ in queues):
                    self.bells[i] = self.env.event()
                    yield self.bells[i]
                while not queues[look % len(queues)][0].items:
                    look += 1
                store, ns = queues[look % len(queues)]
                look += 1
                yield store.get()
            vary = 1 + self.noise * (2 * self.random.random() - 1)
            yield self.env.timeout(JUMBO * ns * vary)
            self.taken += 0 if self.out[i] else JUMBO
            for g, (selectivity, to) in enumerate(self.out[i]):
                left[g] += JUMBO * selectivity
                while left[g] >= JUMBO:
                    store, j = to[turn[g]]
                    yield store.put(JUMBO)
                    left[g] -= JUMBO
                    turn[g] = (turn[g] + 1) % len(to)
                    if not self.bells[j].triggered:
                        self.bells[j].succeed()

    def run(self, ns: float) -> float:
        """Tuples/s at the sinks, over the last two fifths of the time."""
        self.env.run(until=0.6 * ns)
        before = self.taken
        self.env.run(until=ns)
        return (self.taken - before) * 1e9 / (0.4 * ns)
