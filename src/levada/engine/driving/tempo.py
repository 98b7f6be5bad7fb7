"""How the epochs of an engine follow each other, and the clock by which they do."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from levada.model.limits import MOST_ROWS
from levada.runtime.balance.balancing import Balancing
from levada.runtime.graph.placed import Placed


@dataclass(frozen=True, slots=True)
class Tempo:
    """How epochs follow each other. ``interval``: the least time between the starts of two, ms;
    ``epoch_rows``: the most elements in one. ``once``: what is there is read and the streams end,
    unless they are to be kept open. ``most_rows``: that an operator may make in an epoch.
    ``slices``: the length of the slices of event time whose send graphs are counted (""; 1d, 1mo).
    ``placed``: where tasks would best run. ``balancing``: what moves groups.
    ``cores``: on which (0: as many as partitions). ``follow``: has somebody told of each new
    placement, where one is learned.
    """

    interval: int
    epoch_rows: int
    once: bool = False
    keep_open: bool = False
    most_rows: int = MOST_ROWS
    slices: str = ""
    placed: Placed | None = None
    balancing: Balancing | None = None
    cores: int = 0
    follow: Callable[[Callable[[Placed], None]], None] | None = None


def wall() -> int:
    """The wall clock, in ms."""
    return time.time_ns() // 1_000_000
