"""The outputs of an engine: what the index keeps for them, when the intake waits for one, and when
they have everything.

Each has a thread (``delivery``). What the checkpoint is to know of them is written at most every
``PAUSE`` seconds: where an output is stands in its target, too.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import msgspec

from levada.engine.delivery.delivery import ENDING, Delivery
from levada.errors import CheckpointError, UsageError
from levada.model.query import Form, Output
from levada.model.time import MAX
from levada.runtime.store.checkpoint import Checkpoint
from levada.runtime.store.deliveries import Delivered, read_deliveries, write_deliveries
from levada.runtime.store.published import Entry, Index
from levada.sinks.destination import Destination

PAUSE = 1.0  # s
KEEP = "256MB"  # what outputs may be behind, unless the engine is told


@dataclass(frozen=True, slots=True)
class Shape:
    """What the results of a query are like."""

    query: str
    form: Form
    output: Output
    variables: tuple[str, ...]


@dataclass
class Deliveries:
    """The outputs that have been named. They begin with the engine."""

    all: list[Delivery] = field(default_factory=list)
    _checkpoint: Checkpoint | None = None
    _before: dict[tuple[str, str], Delivered] = field(default_factory=dict)
    _kept: dict[tuple[str, str], Delivered] = field(default_factory=dict)
    _written: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _running: bool = False
    _over: bool = False

    def add(
        self, shape: Shape, url: str, options: Mapping[str, Any], checkpoint: Checkpoint
    ) -> None:
        """One more output, which begins now if the engine has. Raises ``UsageError``."""
        if self._checkpoint is None:
            self._checkpoint = checkpoint
            before = read_deliveries(checkpoint.root)
            quiet = (msgspec.structs.replace(d, why="", holds=False) for d in before)
            self._before = {(d.query, d.to): d for d in quiet}
        target = Destination(url, options).target(shape.query, checkpoint.facts.id)
        target.check(shape.query, shape.form, shape.output, shape.variables)
        if any(d.query == shape.query and d.target.name == target.name for d in self.all):
            raise UsageError(f"The results of {shape.query} go to {target.name} already.")
        known = self._before.get((shape.query, target.name))
        last = checkpoint.last
        said = 0 if last is None else last.totals.get(shape.query, [0])[0]
        if target.whole and known is None and said:
            raise UsageError(
                f"What the relation {shape.query} holds is not known: a run before on the "
                f"checkpoint has had its changes without {target.name}.",
                hint="Start on an empty checkpoint, or leave as=state out.",
            )
        delivery = Delivery(shape.query, target, checkpoint.root, known, self._changed)
        self.all.append(delivery)
        if self._running:
            delivery.start()

    def start(self) -> None:
        """The engine begins."""
        self._running = True
        for delivery in self.all:
            delivery.start()

    def stop(self) -> None:
        """All end, and the checkpoint knows how far they are."""
        for delivery in self.all:
            delivery.stop()
        until = time.monotonic() + ENDING
        for delivery in self.all:
            delivery.join(max(until - time.monotonic(), 0.0))
        with suppress(CheckpointError):  # the checkpoint may be gone
            self._write()
        with self._lock:
            self._over = True

    def wake(self, *_: object) -> None:
        """An epoch has been published."""
        for delivery in self.all:
            delivery.wake()

    def needed(self) -> int:
        """The first epoch that one of them may need."""
        return min((d.reached + 1 for d in self.all), default=MAX)

    def held_by(self, index: Index | None) -> str:
        """Why the intake is to wait: "" if it is not. Raises what one of them has failed with."""
        for delivery in self.all:
            if delivery.failure is not None:
                raise delivery.failure
        if index is None or not self.all or not index.holds():
            self._holds(MAX)
            return ""
        needed = self.needed()
        self._holds(needed)
        return _waits(next(d for d in self.all if d.reached < needed))

    def _holds(self, needed: int) -> None:
        """Those that need this epoch are what the intake waits for."""
        for delivery in self.all:
            holds = delivery.reached + 1 <= needed < MAX
            if holds != delivery.holds:
                delivery.holds = holds
                self._changed(True)

    def behind(self, index: Index | None) -> str:
        """Which has not all that the index has: "" if none."""
        entries = () if index is None else index.entries
        slow = next((d for d in self.all if _left(d, entries)), None)
        return "" if slow is None else _waits(slow)

    def _changed(self, at_once: bool) -> None:
        """What the checkpoint knows is written anew, unless it was just now."""
        if at_once or time.monotonic() - self._written >= PAUSE:
            with suppress(CheckpointError):  # the engine tells of that
                self._write()

    def _write(self) -> None:
        with self._lock:
            if self._checkpoint is None or self._over:
                return
            own = {(d.query, d.target.name): d.told for d in self.all}
            if own != self._kept:
                write_deliveries(self._checkpoint.root, list((self._before | own).values()))
                self._kept, self._written = own, time.monotonic()


def _left(delivery: Delivery, entries: Sequence[Entry]) -> bool:
    """Whether there are reports that an output has not had."""
    for entry in reversed(entries):
        if entry.epoch <= delivery.reached:
            return False
        if delivery.query in entry.queries:
            return True
    return False


def _waits(slow: Delivery) -> str:
    return slow.why or f"The results of {slow.query} wait for {slow.target.name}."
