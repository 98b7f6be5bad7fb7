"""What an epoch reads: the driver's side of the streams (docs/semantics.md#progress).

Streams share an epoch's budget; one that is ahead of the slowest of those that it shares a query
with, by its bound of elements, waits until it is the slowest again. Big epochs under backlog, small
ones for latency: whatever is there is taken, up to the budget.

Silence (``idle``): a stream that says nothing for so long follows those that it shares a query
with, and so does a partition of a stream (``files=parallel``) follow the others, as long as one of
them is lively.

What files that are not read from any more are like is in a log (``checkpoint.file_read_log``); a
source is given whole positions.

Heartbeats (``heartbeat``): a stream whose times are those of the clock is complete up to the last
beat, less its lateness, once all that is there of it is read: also where all streams are silent.
How far that is stands in the intention, so running it again gives the same.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from levada.checkpoint.epoch_context import SourceReport, StreamState
from levada.checkpoint.file_read_log import ReadLog, stem_of
from levada.checkpoint.manifest import EpochIntent, StreamRecord
from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.sources.file_source import FileSource
from levada.connectors.sources.split_enumerator import SplitEnumerator, source_of
from levada.connectors.sources.splits import AnyReference, FileSplit, Measured
from levada.core.durable_files import make_folder
from levada.core.event_time import MAX, MIN
from levada.plan.execution.plan import Plan

Positions = dict[str, dict[str, Any]]
Silence = frozenset[tuple[str, str]]


class SourceCoordinator:
    """The sources of all streams, seen from the driver. ``once``: what is there at first is all."""

    def __init__(
        self, configs: Sequence[StreamConfig], root: Path, *, once: bool, keep_open: bool
    ) -> None:
        self.configs = list(configs)
        self.once = once
        self.keep_open = keep_open
        scratch = root / "scratch"
        make_folder(scratch, parents=True)
        self.sources: dict[str, SplitEnumerator] = {c.name: source_of(c, scratch) for c in configs}
        for source in self.sources.values():
            source.discover(final=once)
        self._root, self._logs = root, _logs_of(configs, root)
        self._scratch, self._swept = scratch, False
        # positions of these are those of other streams, which had their names before this run
        self.reused_names: frozenset[str] = frozenset()
        self._looked = MIN  # when sources were last looked at, by the clock
        # (stream, partition or "") -> when its last data came, by the clock of durations
        self._heard: dict[tuple[str, str], int] = {}

    def follow(
        self,
        configs: Sequence[StreamConfig],
        left: Collection[str],
        sources: Mapping[str, SplitEnumerator],
    ) -> None:
        """The streams as they are from the next epoch on. ``left``: names of those that are no
        more; ``sources``: those of the streams that came, which have been looked at.
        """
        for name in left:
            self.sources.pop(name, None)
            self._logs.pop(name, None)
        self._heard = {key: since for key, since in self._heard.items() if key[0] not in left}
        self.configs, self.reused_names = list(configs), frozenset()
        for config in configs:
            if config.name not in self.sources:
                self.sources[config.name] = sources[config.name]
                self._logs |= _logs_of([config], self._root)

    def discover(self, positions: Positions, wall: int) -> None:
        """Looks for new files and growth; ``wall``: the time by the clock."""
        if not self.once:
            self._looked = wall
            for config in self.configs:
                self.sources[config.name].discover(position=self.whole_position(positions, config))

    def whole_position(self, positions: Positions, config: StreamConfig) -> dict[str, Any]:
        """The whole position of a stream."""
        if config.name in self.reused_names:
            return {}
        position = positions.get(config.name, {})
        log = self._logs.get(config.name)
        return position if log is None else log.expand(position)

    def by_path(self, positions: Positions) -> Positions:
        """The positions of the streams that there are, by their paths."""
        configs = (c for c in self.configs if c.name not in self.reused_names)
        return {c.path: positions.get(c.name, {}) for c in configs}

    def _short(
        self, positions: Positions, config: StreamConfig, after: dict[str, Any]
    ) -> dict[str, Any]:
        """A position as an intention has it, with what is no longer read from in the log."""
        log = self._logs.get(config.name)
        return after if log is None else log.abbreviate(positions.get(config.name, {}), after)

    def overtaken_files(self) -> dict[str, list[str]]:
        """The files that came when a later name was read already, and are not yet told of."""
        return {
            name: list(source.overtaken)
            for name, source in self.sources.items()
            if source.overtaken
        }

    def vanished_files(self) -> dict[str, list[str]]:
        """The files that went before all of them was read, and are not yet told of."""
        return {name: list(source.gone) for name, source in self.sources.items() if source.gone}

    def forget(self, positions: Positions, check: Callable[[], None]) -> None:
        """An epoch that ended at these positions is committed: unpacked copies of what has been
        read go; at the first time also those that a run of before has left. ``check`` raises if
        that is not for us to do any more.
        """
        for config in self.configs:
            self.sources[config.name].forget(self.whole_position(positions, config))
        if not self._swept:
            self._swept = True
            kept = set().union(*(source.copies() for source in self.sources.values()))
            copies = list(self._scratch.glob("*.plain"))
            check()
            for path in copies:
                if str(path) not in kept:
                    path.unlink(missing_ok=True)

    def unreadable_files(
        self, positions: Positions, after: Positions
    ) -> tuple[dict[str, dict[str, str]], Positions]:
        """The files that cannot be read and of which nobody has been told; and the positions that
        say that it has been told.
        """
        broken_files, said = {}, dict(after)
        for name, source in self.sources.items():
            reported_files = positions.get(name, {}).get("broken", ())
            if new := {
                file: why for file, why in source.broken.items() if file not in reported_files
            }:
                broken_files[name] = new
                said[name] = {**after.get(name, {}), "broken": sorted({*reported_files, *new})}
        return broken_files, said

    def acknowledge_reported_files(
        self, overtaken: Mapping[str, Sequence[str]], gone: Mapping[str, Sequence[str]]
    ) -> None:
        """An epoch has told of these files."""
        for name, source in self.sources.items():
            if files := overtaken.get(name, ()):
                source.overtaken = [file for file in source.overtaken if file not in files]
            if files := gone.get(name, ()):
                source.gone = [file for file in source.gone if file not in files]

    def assign_splits(
        self, positions: Positions, records: Mapping[str, StreamRecord], rows: int
    ) -> tuple[list[AnyReference], Positions]:  # fmt: skip
        """References of at most ``rows`` elements in all, and the positions behind them."""
        able = [
            c
            for c in self.configs
            if self._may_read(c, records)
            and self.sources[c.name].backlog(self.whole_position(positions, c))
        ]
        references: list[AnyReference] = []
        after = {**positions, **self._start_positions(positions)}
        left = rows
        for n, config in enumerate(able):
            share = max(left // (len(able) - n), 1) if left else 0
            if not share:
                break
            taken, position = self.sources[config.name].take(
                self.whole_position(after, config), share
            )
            references += taken
            after[config.name] = self._short(positions, config, position)
            left -= sum(r.elements for r in taken)
        return references, after

    def _start_positions(self, positions: Positions) -> Positions:
        """The positions of streams of which it is known only now where they begin."""
        begun_positions = {}
        for config in self.configs:
            position = positions.get(config.name, {})
            begun = self.sources[config.name].start_position(position)
            if begun is not position:
                begun_positions[config.name] = begun
        return begun_positions

    def _may_read(self, config: StreamConfig, records: Mapping[str, StreamRecord]) -> bool:
        """Not if it is ahead of those that it shares a query with by its bound."""
        record = records.get(config.name, StreamRecord())
        return record.ahead < config.ahead

    def complete(
        self, intention: EpochIntent, controls: Sequence[SourceReport], plan: Plan
    ) -> dict[str, list[Measured]]:
        """Adds to the positions of an intention what tasks have measured of what they have read
        first; returns that, by stream, without the hashes of blocks.
        """
        measurements: dict[str, list[Measured]] = {}
        for control in controls:
            if control.measured is not None:
                measurements.setdefault(plan.streams[control.stream], []).append(control.measured)
        for name, measured in measurements.items():
            source, position = self.sources.get(name), intention.positions.get(name)
            if isinstance(source, FileSource) and position is not None:
                files = (r for r in intention.references if isinstance(r, FileSplit))
                source.complete(position, [r for r in files if r.stream == name], measured)
        return {
            name: [msgspec.structs.replace(m, blocks="") for m in measured]
            for name, measured in measurements.items()
        }

    @property
    def unavailable(self) -> dict[str, str]:
        """Which streams' sources do not answer, and why."""
        return {name: source.away for name, source in self.sources.items() if source.away}

    @property
    def has_ending_streams(self) -> bool:
        """Whether streams end in this run."""
        return self.once and not self.keep_open

    def ended_streams(self, positions: Positions) -> list[bool]:
        """Which streams have nothing more to come."""
        if not self.has_ending_streams:
            return [False] * len(self.configs)
        return [
            self.sources[c.name].is_ended(self.whole_position(positions, c)) for c in self.configs
        ]

    def has_backlog(self, positions: Positions, records: Mapping[str, StreamRecord]) -> bool:
        """Whether a take would give anything now."""
        return any(
            self._may_read(c, records)
            and self.sources[c.name].backlog(self.whole_position(positions, c))
            for c in self.configs
        )

    def has_unread(self, positions: Positions) -> bool:
        """Whether anything is there that is not read."""
        return any(
            self.sources[c.name].backlog(self.whole_position(positions, c)) for c in self.configs
        )

    def has_newly_ended(self, ended: Sequence[bool], records: Mapping[str, StreamRecord]) -> bool:
        """Whether a stream is over that was not."""
        return any(
            over and not records.get(config.name, StreamRecord()).ended
            for config, over in zip(self.configs, ended, strict=True)
        )

    def states(
        self,
        references: Sequence[AnyReference],
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
            state.clock = self._by_clock(config, after)
            states[config.name] = state
            finished[config.name] = done
        return states, finished

    @property
    def follows_clock(self) -> bool:
        """Whether a stream goes by the clock."""
        return not self.once and any(c.heartbeat for c in self.configs)

    def _by_clock(self, config: StreamConfig, after: Positions) -> int:
        """How far a stream is complete by the clock: up to the last beat before it was looked at.
        MIN if it does not go by the clock, or something of it is left to read.
        """
        looked = self._looked
        if looked <= MIN or not config.heartbeat:
            return MIN
        if self.sources[config.name].backlog(self.whole_position(after, config)):
            return MIN
        return looked - looked % config.heartbeat - config.lateness

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
        known = source.partition_states(self.whole_position(after, config))
        greatest = max(known, default="")
        for partition, unread in known.items():
            before = record.partitions.get(partition, MIN)
            if not unread and self._is_finished(config, partition, greatest):
                if partition in now or partition in record.partitions:
                    done.append(partition)
            elif partition in now:
                reading[partition] = before
            elif partition not in silent or unread:
                floor = min(floor, before)
        state = StreamState(
            record.watermark,
            floor,
            reading,
            config.lateness,
            known=record.known,
            latest=record.max_ts,
        )
        return state, done

    def _is_finished(self, config: StreamConfig, partition: str, greatest: str) -> bool:
        """Whether a partition gets no more data. With ``keep_open`` it may: in the next run, unless
        it is a whole file.
        """
        if not self.keep_open:
            return self.sources[config.name].is_finished(partition)
        return config.files == "parallel" and config.whole_files and partition < greatest

    def idle_sources(
        self,
        references: Sequence[AnyReference],
        positions: Positions,
        now: int,
        beside: Mapping[str, Collection[str]],
    ) -> Silence:
        """Who has said nothing for longer than its stream's ``idle``: streams (as partition ""),
        and partitions; but for who spoke last among its like, the partitions of a stream or the
        streams ``beside`` one, with which it shares a query, unless one of these has a heartbeat.
        ``now``: by the clock of durations.

        The others fell silent while that one was lively, so they follow it, also where an epoch
        took so long that all of them are found silent at once.
        """
        heard = {(r.stream, r.partition) for r in references}
        heard |= {(r.stream, "") for r in references}
        silent: set[tuple[str, str]] = set()
        for config in self.configs:
            if config.idle is None:
                continue
            stream_keys = {(config.name, "")}
            if config.partitioned:
                read = self.sources[config.name].read(self.whole_position(positions, config))
                last = max(read, default="")
                stream_keys |= {
                    (config.name, p) for p in read if not self._is_finished(config, p, last)
                }
                # also those that speak for the first time
                stream_keys |= {key for key in heard if key[0] == config.name}
            for key in stream_keys:
                since = now if key in heard else self._heard.get(key, now)
                self._heard[key] = since
                if key not in heard and now - since >= config.idle:
                    silent.add(key)
            partitions = [self._heard[key] for key in stream_keys if key[1]]
            silent -= {key for key in stream_keys if key[1] and self._heard[key] == max(partitions)}
        beating = () if self.once else (c.name for c in self.configs if c.heartbeat)
        spoke = self._heard | {(name, ""): MAX for name in beating}

        def follows(stream: str) -> bool:
            """Whether one beside it spoke later, beats, or holds the others back for ever."""
            since = self._heard[stream, ""]
            return any(spoke.get((other, ""), MAX) > since for other in beside.get(stream, ()))

        return frozenset(key for key in silent if key[1] or follows(key[0]))


def _logs_of(configs: Sequence[StreamConfig], root: Path) -> dict[str, ReadLog]:
    """The logs of what has been read, of streams of many files."""
    return {c.name: ReadLog(stem_of(root, c.name)) for c in configs if c.files == "parallel"}
