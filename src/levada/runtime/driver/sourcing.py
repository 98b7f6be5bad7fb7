"""What an epoch reads: the driver's side of the streams (docs/semantics.md#progress).

Streams share an epoch's budget; one that is ahead of the slowest of those that it shares a query
with, by its bound of elements, waits until it is the slowest again. Big epochs under backlog, small
ones for latency: whatever is there is taken, up to the budget.

Silence (``idle``): a stream that says nothing for so long follows those that it shares a query
with, and so does a partition of a stream (``files=parallel``) follow the others, as long as one of
them is lively.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from levada.model.time import MAX, MIN
from levada.runtime.context import StreamState
from levada.runtime.store.manifest import StreamRecord
from levada.sources.files import FileSource
from levada.sources.reference import Reference
from levada.streams.stream_config import StreamConfig

Positions = dict[str, dict[str, Any]]
Silence = frozenset[tuple[str, str]]


class Sourcing:
    """The sources of all streams, seen from the driver. ``once``: what is there at first is all."""

    def __init__(
        self, configs: Sequence[StreamConfig], scratch: Path, *, once: bool, keep_open: bool
    ) -> None:
        self.configs = list(configs)
        self.once = once
        self.keep_open = keep_open
        scratch.mkdir(parents=True, exist_ok=True)
        self.sources = {c.name: FileSource(c, scratch) for c in configs}
        for source in self.sources.values():
            source.discover(final=once)
        # (stream, partition or "") -> wall time of its last data
        self._heard: dict[tuple[str, str], int] = {}

    def discover(self, positions: Positions) -> None:
        """Looks for new files and growth."""
        if not self.once:
            for config in self.configs:
                self.sources[config.name].discover(position=_at(positions, config))

    def overtaken(self) -> dict[str, list[str]]:
        """The files that came when a later name was read already, and are not yet told of."""
        return {
            name: list(source.overtaken)
            for name, source in self.sources.items()
            if source.overtaken
        }

    def broken(
        self, positions: Positions, after: Positions
    ) -> tuple[dict[str, dict[str, str]], Positions]:
        """The files that cannot be read and of which nobody has been told; and the positions that
        say that it has been told.
        """
        found, said = {}, dict(after)
        for name, source in self.sources.items():
            told = positions.get(name, {}).get("broken", ())
            if new := {file: why for file, why in source.broken.items() if file not in told}:
                found[name] = new
                said[name] = {**after.get(name, {}), "broken": sorted({*told, *new})}
        return found, said

    def told(self, overtaken: Mapping[str, Sequence[str]]) -> None:
        """An epoch has told of these files."""
        for name, files in overtaken.items():
            source = self.sources[name]
            source.overtaken = [file for file in source.overtaken if file not in files]

    def take(
        self, positions: Positions, records: Mapping[str, StreamRecord], rows: int
    ) -> tuple[list[Reference], Positions]:  # fmt: skip
        """References of at most ``rows`` elements in all, and the positions behind them."""
        able = [
            c
            for c in self.configs
            if self._may_read(c, records) and self.sources[c.name].backlog(_at(positions, c))
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
        """Not if it is ahead of those that it shares a query with by its bound."""
        own = records.get(config.name, StreamRecord())
        return own.ahead < config.ahead

    @property
    def ends(self) -> bool:
        """Whether streams end in this run."""
        return self.once and not self.keep_open

    def ended(self, positions: Positions) -> list[bool]:
        """Which streams have nothing more to come."""
        if not self.ends:
            return [False] * len(self.configs)
        return [self.sources[c.name].ended(_at(positions, c)) for c in self.configs]

    def backlog(self, positions: Positions, records: Mapping[str, StreamRecord]) -> bool:
        """Whether a take would give anything now."""
        return any(
            self._may_read(c, records) and self.sources[c.name].backlog(_at(positions, c))
            for c in self.configs
        )

    def unread(self, positions: Positions) -> bool:
        """Whether anything is there that is not read."""
        return any(self.sources[c.name].backlog(_at(positions, c)) for c in self.configs)

    def states(
        self,
        references: Sequence[Reference],
        after: Positions,
        records: Mapping[str, StreamRecord],
        ended: Sequence[bool],
        silence: Silence,
    ) -> tuple[dict[str, StreamState], dict[str, list[str]]]:
        """Each stream as the epoch begins, and the partitions that this epoch finishes."""
        states = {}
        finished: dict[str, list[str]] = {}
        for config, over in zip(self.configs, ended, strict=True):
            record = records.get(config.name, StreamRecord())
            now = {r.partition for r in references if r.stream == config.name}
            silent = {partition for stream, partition in silence if stream == config.name}
            state, done = self._state(config, record, now, after, silent)
            state.ended = over
            state.idle = "" in silent
            states[config.name] = state
            finished[config.name] = done
        return states, finished

    def _state(
        self,
        config: StreamConfig,
        record: StreamRecord,
        now: set[str],
        after: Positions,
        silent: set[str],
    ) -> tuple[StreamState, list[str]]:
        source = self.sources[config.name]
        floor = MAX
        reading: dict[str, int] = {}
        done: list[str] = []
        known = source.known(_at(after, config))
        greatest = max(known, default="")
        for partition, unread in known.items():
            before = record.partitions.get(partition, MIN)
            if not unread and self._finished(config, partition, greatest):
                done.append(partition)
            elif partition in now:
                reading[partition] = before
            elif partition not in silent or unread:
                floor = min(floor, before)
        return StreamState(record.watermark, floor, reading, config.lateness), done

    def _finished(self, config: StreamConfig, partition: str, greatest: str) -> bool:
        """Whether a partition gets no more data. With ``keep_open`` it may: in the next run, unless
        it is a whole file.
        """
        if not self.keep_open:
            return self.sources[config.name].finished(partition)
        return config.files == "parallel" and config.whole_files and partition < greatest

    def silence(
        self, references: Sequence[Reference], records: Mapping[str, StreamRecord], wall: int
    ) -> Silence:
        """Who has said nothing for longer than its stream's ``idle``: streams (as partition ""),
        and partitions.
        """
        heard = {(r.stream, r.partition) for r in references}
        heard |= {(r.stream, "") for r in references}
        silent: set[tuple[str, str]] = set()
        for config in self.configs:
            if config.idle is None:
                continue
            own = {(config.name, "")}
            if config.files == "parallel":
                own |= {
                    (config.name, p) for p in records.get(config.name, StreamRecord()).partitions
                }
                # also those that speak for the first time
                own |= {key for key in heard if key[0] == config.name}
            for key in own:
                since = wall if key in heard else self._heard.get(key, wall)
                self._heard[key] = since
                if key not in heard and wall - since >= config.idle:
                    silent.add(key)
        return frozenset(silent)


def _at(positions: Positions, config: StreamConfig) -> dict[str, Any]:
    return positions.get(config.name, {})
