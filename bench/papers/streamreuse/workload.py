"""What a workload is: streams with their rates, and queries that come and go."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bench.papers.streamreuse.model.descriptor import Descriptor
from bench.papers.streamreuse.model.planner import Query
from bench.papers.streamreuse.model.statistics import Spread, StreamStatistics

MINUTE = 60_000
Draw = Callable[[np.random.Generator], Descriptor]


@dataclass(frozen=True, slots=True)
class Workload:
    """Streams, and templates, of which each query fills one."""

    name: str
    streams: Mapping[str, StreamStatistics]
    templates: Sequence[Draw]
    weights: Sequence[float]


@dataclass(frozen=True, slots=True)
class Load:
    """``queries`` arrive as a Poisson process, one each ``between`` seconds; lives are exponential
    with the mean ``life`` in seconds.
    """

    queries: int = 1000
    between: float = 1.0
    life: float = 1000.0


def arrivals(
    workload: Workload, load: Load, nodes: int, seed: int
) -> Iterator[tuple[float, Query]]:
    """The queries with the second of their arrival."""
    rng = np.random.default_rng(seed)
    now = 0.0
    for number in range(load.queries):
        now += float(rng.exponential(load.between))
        draw = workload.templates[int(rng.choice(len(workload.templates), p=workload.weights))]
        until = now + float(rng.exponential(load.life))
        yield now, Query(f"q{number}", draw(rng), int(rng.integers(nodes)), until)


def zipf(rng: np.random.Generator, values: Sequence[Any]) -> Any:
    """One of some values, the first twice as often as the second, and so on."""
    weights = 1 / np.arange(1, len(values) + 1)
    return values[int(rng.choice(len(values), p=weights / weights.sum()))]


def some(rng: np.random.Generator, columns: Sequence[str]) -> list[str]:
    """Some columns, at least one."""
    count = int(rng.integers(1, len(columns) + 1))
    return [columns[int(i)] for i in rng.choice(len(columns), count, replace=False)]


def span(rng: np.random.Generator) -> int:
    """1 to 10 minutes, in ms."""
    return int(rng.integers(1, 11)) * MINUTE


def shared(values: Sequence[str], size: int) -> Spread:
    """Texts of which each next one is rarer (``zipf``)."""
    weights = 1 / np.arange(1, len(values) + 1)
    shares = dict(zip(values, (weights / weights.sum()).tolist(), strict=True))
    return Spread(len(values), size, shares=shares)
