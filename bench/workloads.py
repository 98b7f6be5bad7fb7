"""Workloads of ``bench against`` and of budgets of ``tests/counts``: a query, and how its streams
are written.

A workload writes as many epochs as are asked for, each a step later in event time. The files are
written once, by the process that compares, and read by all sides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from bench import aggregate, join, parse
from bench.data import events, write
from bench.srbench import MINUTES, STREAM, Weather, query, write_minutes
from bench.tree_engine import Spec

CLOSED = {"element": "subject", "closed": "element"}
TRIPLES = 3  # of an observation
SMALL_STATIONS, PARSED_STATIONS = 100, 1000
SMALL = 201  # triples


@dataclass(frozen=True, slots=True)
class Workload:
    """A query with the sizes of its epochs; ``write`` gives the streams' options.

    ``epochs`` are those that count where sides are compared; ``warm`` those before them, at most.
    """

    text: str
    dialect: str
    elements: int
    rows: int
    write: Callable[[Path, int], Mapping[str, Mapping[str, Any]]]
    epochs: int = 40
    warm: int = 60
    partitions: int = 2
    is_empty: bool = False

    def with_epochs(self, epochs: int) -> Workload:
        """The same with another number of epochs that count."""
        return replace(self, epochs=epochs)

    def prepare(self, folder: Path, epochs: int) -> Spec:
        """Writes streams of so many epochs, and gives all that an engine needs."""
        streams = self.write(folder, 1 if self.is_empty else epochs)
        return Spec(
            streams, self.text, self.dialect, self.elements, self.rows,
            self.partitions, self.is_empty,
        )  # fmt: skip


def _write_w1(folder: Path, epochs: int) -> dict[str, dict[str, Any]]:
    each = join.EPOCH // 2
    for seed, (name, value) in enumerate((("A", "v"), ("B", "w")), 1):
        write(folder / name, events(seed, each * epochs, 100_000, rate=1.0), each, value)
    return {name: {"source": str(folder / name)} for name in "AB"}


def _write_w2(folder: Path, epochs: int) -> dict[str, dict[str, Any]]:
    each = aggregate.Shape().epoch
    write(folder / "S", events(1, each * epochs, aggregate.Shape().keys, rate=1.0), each)
    return {"S": {"source": str(folder / "S")}}


def _write_weather(
    stations: int, minutes: int, folder: Path, epochs: int, *, closed: bool = True
) -> dict[str, dict[str, Any]]:
    """Epochs of so many minutes, and a minute more."""
    write_minutes(folder / "w3", Weather(stations), minutes * epochs + 1)
    return {STREAM: {"source": str(folder / "w3"), **(CLOSED if closed else {})}}


def _write_small(folder: Path, epochs: int) -> dict[str, dict[str, Any]]:
    minutes = -(-SMALL * epochs // (TRIPLES * SMALL_STATIONS))
    return _write_weather(SMALL_STATIONS, minutes, folder, 1)


def weather(stations: int, minutes: int, epochs: int = 40, warm: int = 60) -> Workload:
    """W3 of so many stations, by epochs of so many minutes."""
    elements = stations * minutes
    return Workload(
        query(), "rspql", elements, TRIPLES * elements,
        partial(_write_weather, stations, minutes), epochs, warm,
    )  # fmt: skip


def parsed(minutes: int, epochs: int = 10, warm: int = 20) -> Workload:
    """``bench parse``, by epochs of so many minutes; each triple is an element."""
    triples = TRIPLES * PARSED_STATIONS * minutes
    return Workload(
        parse.QUERY, "rspql", triples, triples,
        partial(_write_weather, PARSED_STATIONS, minutes, closed=False), epochs, warm,
    )  # fmt: skip


def _small(epochs: int, *, is_empty: bool = False) -> Workload:
    return Workload(
        query(), "rspql", SMALL // TRIPLES, 0 if is_empty else SMALL,
        _write_small, epochs, is_empty=is_empty,
    )  # fmt: skip


WORKLOADS: dict[str, Workload] = {
    "w1": Workload(join.query(join.WIDTH), "cql", join.EPOCH, join.EPOCH, _write_w1),
    "w2": Workload(aggregate.QUERY, "cql", 100_000, 100_000, _write_w2),
    "w3_20": weather(20, MINUTES),
    "w3_500": weather(500, MINUTES // 2, 12, 20),
    "parse": parsed(parse.EPOCH),
    "empty": _small(200, is_empty=True),
    "small": _small(100),
}
"""W1, W2, W3 of 20 and 500 stations, ``bench parse``; W3 without data, and by 201 triples."""
