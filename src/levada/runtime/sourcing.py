"""What an epoch reads: the driver's side of the streams (design, sections 1 "Progress" and 3 "Intention").

Streams share an epoch's budget; one that is ahead of the slowest by its bound of pending elements waits until it is the slowest again.
Big epochs under backlog, small ones for latency: whatever is there is taken, up to the budget.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from levada.config import StreamConfig
from levada.model.time import MAX, MIN
from levada.runtime.context import StreamState
from levada.runtime.manifest import StreamRecord
from levada.sources.files import FileSource
from levada.sources.reference import Reference

Positions = dict[str, dict[str, Any]]


class Sourcing:
    """The sources of all streams, seen from the driver. ``once``: what is there at the start is all."""

    def __init__(self, configs: Sequence[StreamConfig], scratch: Path, *, once: bool, keep_open: bool) -> None:
        self.configs = list(configs)
        self.once = once
        self.keep_open = keep_open
        scratch.mkdir(parents=True, exist_ok=True)
        self.sources = {c.name: FileSource(c, scratch) for c in configs}
        for source in self.sources.values():
            source.discover(final=once)
        self._silent_since: dict[str, int] = {}

    def discover(self) -> None:
        """Looks for new files and growth."""
        if not self.once:
            for source in self.sources.values():
                source.discover()

    def take(
        self, positions: Positions, records: Mapping[str, StreamRecord], rows: int
    ) -> tuple[list[Reference], Positions]:  # fmt: skip
        """References of at most ``rows`` elements in all, and the positions behind them."""
        able = [
            c for c in self.configs if self._may_read(c, records) and self.sources[c.name].backlog(_at(positions, c))
        ]
        references: list[Reference] = []
        after = dict(positions)
        left = rows
        for n, config in enumerate(able):
            share = max(left // (len(able) - n), 1) if left else 0
            if not share:
                break
            taken, position = self.sources[config.name].take(_at(positions, config), share)
            references += taken
            after[config.name] = position
            left -= sum(r.elements for r in taken)
        return references, after

    def _may_read(self, config: StreamConfig, records: Mapping[str, StreamRecord]) -> bool:
        """Not if it is ahead of the slowest by its bound."""
        own = records.get(config.name, StreamRecord())
        return own.ahead < config.ahead

    def ended(self, positions: Positions) -> list[bool]:
        """Which streams have nothing more to come."""
        if not self.once or self.keep_open:
            return [False] * len(self.configs)
        return [self.sources[c.name].ended(_at(positions, c)) for c in self.configs]

    def backlog(self, positions: Positions, records: Mapping[str, StreamRecord]) -> bool:
        """Whether a take would give anything now."""
        return any(self._may_read(c, records) and self.sources[c.name].backlog(_at(positions, c)) for c in self.configs)

    def unread(self, positions: Positions) -> bool:
        """Whether anything is there that is not read."""
        return any(self.sources[c.name].backlog(_at(positions, c)) for c in self.configs)

    def states(
        self, references: Sequence[Reference], after: Positions, records: Mapping[str, StreamRecord], ended: Sequence[bool],
        idle: frozenset[str],
    ) -> tuple[list[StreamState], dict[str, list[str]]]:  # fmt: skip
        """Each stream as the epoch begins, and the partitions that this epoch finishes."""
        states = []
        finished: dict[str, list[str]] = {}
        for config, over in zip(self.configs, ended, strict=True):
            record = records.get(config.name, StreamRecord())
            now = {r.partition for r in references if r.stream == config.name}
            state, done = self._state(config, record, now, after)
            state.ended = over
            state.idle = config.name in idle
            states.append(state)
            finished[config.name] = done
        return states, finished

    def _state(
        self, config: StreamConfig, record: StreamRecord, now: set[str], after: Positions
    ) -> tuple[StreamState, list[str]]:  # fmt: skip
        source = self.sources[config.name]
        floor = MAX
        reading: dict[str, int] = {}
        done: list[str] = []
        for partition, unread in source.known(_at(after, config)).items():
            before = record.partitions.get(partition, MIN)
            if not unread and source.finished(partition):
                done.append(partition)
            elif partition in now:
                reading[partition] = before
            else:
                floor = min(floor, before)
        return StreamState(record.watermark, floor, reading, config.lateness), done

    def silent(self, references: Sequence[Reference], wall: int) -> frozenset[str]:
        """The streams that have said nothing for longer than their ``idle``."""
        heard = {r.stream for r in references}
        silent = set()
        for config in self.configs:
            if config.name in heard:
                self._silent_since[config.name] = wall
            since = self._silent_since.setdefault(config.name, wall)
            if config.idle is not None and config.name not in heard and wall - since >= config.idle:
                silent.add(config.name)
        return frozenset(silent)


def _at(positions: Positions, config: StreamConfig) -> dict[str, Any]:
    return positions.get(config.name, {})
