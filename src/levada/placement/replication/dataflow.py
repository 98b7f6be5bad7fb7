"""Dataflows of operators, with the cost of a tuple at each.

Costs are in cycles, so that one graph fits machines of different clocks. Operators are sorted: each
follows its producers. An operator without producer is a spout, one without consumer a sink. A
stream has a selectivity and a size in bytes. Selectivity is the tuples sent for each tuple that its
producer takes in, from any stream. An operator with several outputs has several streams.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

from levada.core.frozen import frozen
from levada.errors import UsageError, near


@frozen
class Operator:
    """A step of a dataflow: cycles and bytes of memory traffic for each tuple that it takes in."""

    name: str
    cycles: float
    memory: float = 0.0


@frozen
class Stream:
    """A stream from producer to consumer: tuples for each tuple that the producer takes, bytes of a
    tuple.
    """

    producer: str
    consumer: str
    selectivity: float = 1.0
    size: float = 64.0


@dataclass(frozen=True)
class Graph:
    """A dataflow that is valid from birth. Raises ``UsageError``.

    >>> count = Graph("count", [Operator("words", 500), Operator("sink", 200)],
    ...               [Stream("words", "sink", selectivity=10)])
    >>> [op.name for op in count.operators], count.flow
    (['words', 'sink'], (1.0, 10.0))
    """

    name: str
    operators: tuple[Operator, ...]
    streams: tuple[Stream, ...]

    def __init__(self, name: str, operators: Iterable[Operator], streams: Iterable[Stream]) -> None:
        object.__setattr__(self, "name", name)
        object.__setattr__(self, "operators", tuple(operators))
        object.__setattr__(self, "streams", tuple(streams))
        self._check_names()
        for op in self.operators:
            self._check_cost(f"operator {op.name}", "cycles", op.cycles, least_is_wrong=True)
            self._check_cost(f"operator {op.name}", "memory", op.memory)
        for s in self.streams:
            what = f"stream from {s.producer} to {s.consumer}"
            self._check_cost(what, "selectivity", s.selectivity)
            self._check_cost(what, "size", s.size)
        object.__setattr__(self, "operators", self._sort_operators())

    def _check_names(self) -> None:
        names = [op.name for op in self.operators]
        twice = {n for n in names if names.count(n) > 1}
        if not names or twice:
            reason = f"has {min(twice)} twice" if twice else "has no operators"
            raise UsageError(f"The graph {self.name} {reason}; each operator has its own name.")
        for s in self.streams:
            for end in (s.producer, s.consumer):
                if end not in names:
                    raise UsageError(
                        f"A stream of the graph {self.name} names an operator {end}, "
                        "which is not there.",
                        hint=near(end, names),
                    )
        ends = [(s.producer, s.consumer) for s in self.streams]
        for producer, consumer in ends:
            if ends.count((producer, consumer)) > 1:
                raise UsageError(
                    f"The graph {self.name} has two streams from {producer} to {consumer}; "
                    "make them one with the sum of their selectivities."
                )

    def _check_cost(
        self, what: str, field: str, value: float, *, least_is_wrong: bool = False
    ) -> None:
        if not math.isfinite(value) or value < 0 or (least_is_wrong and value == 0):
            least = "more than 0" if least_is_wrong else "0 or more"
            raise UsageError(
                f"The {what} of the graph {self.name} has {field} {value}; it must be {least}."
            )

    def _sort_operators(self) -> tuple[Operator, ...]:
        waiting, done = list(self.operators), list[Operator]()
        while waiting:
            names = {op.name for op in waiting}
            held = {s.consumer for s in self.streams if s.producer in names}
            ready = [op for op in waiting if op.name not in held]
            if not ready:
                raise UsageError(
                    f"The streams of the graph {self.name} go round in a circle through "
                    f"{min(names)}; a dataflow has none."
                )
            done.append(ready[0])
            waiting.remove(ready[0])
        return tuple(done)

    @cached_property
    def place_of(self) -> dict[str, int]:
        """Returns the number of each operator."""
        return {op.name: i for i, op in enumerate(self.operators)}

    @cached_property
    def spouts(self) -> tuple[str, ...]:
        """Returns the operators without producer."""
        fed = {s.consumer for s in self.streams}
        return tuple(op.name for op in self.operators if op.name not in fed)

    @cached_property
    def flow(self) -> tuple[float, ...]:
        """Returns the tuples that each operator takes in if each spout emits one."""
        return self.flow_of(dict.fromkeys(self.spouts, 1.0))

    def flow_of(self, rates: Mapping[str, float]) -> tuple[float, ...]:
        """Returns the tuples that each operator takes in if spouts emit ``rates``.

        >>> both = Graph("g", [Operator("a", 1), Operator("b", 1), Operator("c", 1)],
        ...              [Stream("a", "c"), Stream("b", "c", selectivity=3)])
        >>> both.flow_of({"a": 2.0}), both.flow_of({"a": 1.0, "b": 1.0})
        ((2.0, 0.0, 2.0), (1.0, 1.0, 4.0))
        """
        flow = [rates.get(op.name, 0.0) for op in self.operators]
        for i, op in enumerate(self.operators):
            for s in self.streams:
                if s.consumer == op.name:
                    flow[i] += flow[self.place_of[s.producer]] * s.selectivity
        return tuple(flow)

    @cached_property
    def sinks(self) -> tuple[bool, ...]:
        """Returns whether each operator is a sink."""
        fed = {s.producer for s in self.streams}
        return tuple(op.name not in fed for op in self.operators)
