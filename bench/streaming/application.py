"""What an application is: texts of queries, streams as frames, answers by plain Python."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import polars as pl

Frames = Mapping[str, pl.DataFrame]
"""The rows of each stream, with their event times (ms) in ``ts``, which ascend."""

Answer = tuple[object, ...]
"""A row of a result: the report (ms), then the values of the query's columns."""

_HERE = Path(__file__).parent / "queries"


def text(*names: str) -> str:
    """The text of a query, from the files of its views and its own.

    >>> text("spike_views", "spikes").count("Select")
    2
    """
    return "\n".join((_HERE / f"{name}.cql").read_text() for name in names)


@dataclass(frozen=True, slots=True)
class Application:
    """``make(n, seed)``: streams of about n events; ``answers``: of each query over these.
    ``measured``: the queries that a measurement runs; ``target``: events per CPU-second that it
    should reach, in millions; ``brisk``: what BriskStream reaches per core, in millions.
    ``relations``: the streams that have a column ``sign``. ``events``, ``epoch``: how many are
    measured, and in epochs of how many, as suits it.
    """

    name: str
    queries: Mapping[str, str]
    measured: Sequence[str]
    make: Callable[[int, int], Frames]
    answers: Callable[[Frames], Mapping[str, list[Answer]]]
    target: float
    brisk: float
    events: int
    epoch: int
    relations: tuple[str, ...] = ()
