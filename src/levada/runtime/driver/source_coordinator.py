"""The choice of an epoch's input: the driver's side of the streams (docs/semantics.md#progress).

Streams share an epoch's budget; an epoch takes all input up to it. A stream that exceeds its bound
of elements ahead of the slowest stream that shares a query with it waits. Idleness (``idle``): a
stream without input for so long follows the streams that share a query with it. So does a partition
of a stream (``files=parallel``), while another one is active. Heartbeats (``heartbeat``): a stream
with times of the clock is complete up to the last beat, minus its lateness, when all its input is
read. The intention contains that time, so a repeated run has the same. Positions of files that are
no longer read are in a log (``checkpoint.file_read_log``); sources receive whole positions.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from levada.checkpoint.epoch_context import SourceReport, StreamState
from levada.checkpoint.file_read_log import ReadLog, stem_of
from levada.checkpoint.leadership.commit_log import Leadership
from levada.checkpoint.manifest import EpochIntent, StreamRecord
from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.sources.file_source import FileSource
from levada.connectors.sources.split_enumerator import SplitEnumerator, source_of
from levada.connectors.sources.splits import AnyReference, FileSplit, Measured
from levada.core.durable_files import make_folder
from levada.core.event_time import MAX, MIN
from levada.errors import SourceError
from levada.plan.execution.plan import Plan

Positions = dict[str, dict[str, Any]]
Silence = frozenset[tuple[str, str]]
RETRY_MS = 10_000
"""The time for which a stream that cannot be read is left out."""


class SourceCoordinator:
    """Coordinates the sources of all streams for the driver. ``once``: the run reads only the input
    that exists at its start.
    """

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
        # streams whose names belonged to other streams before this run, with their positions
        self.reused_names: frozenset[str] = frozenset()
        self._looked = MIN  # when sources were last looked at, by the clock
        # streams that cannot be read: the reason, and until when they are left out
        self._failed: dict[str, tuple[str, int]] = {}
        # (stream, partition or "") -> when its last data came, by the clock of durations
        self._heard: dict[tuple[str, str], int] = {}

    def follow(
        self,
        configs: Sequence[StreamConfig],
        removed: Collection[str],
        sources: Mapping[str, SplitEnumerator],
    ) -> None:
        """Sets the streams from the next epoch on. ``removed``: names of removed streams.
        ``sources``: the sources of new streams, already discovered.
        """
        for name in removed:
            self.sources.pop(name, None)
            self._logs.pop(name, None)
        self._heard = {key: since for key, since in self._heard.items() if key[0] not in removed}
        self.configs, self.reused_names = list(configs), frozenset()
        for config in configs:
            if config.name not in self.sources:
                self.sources[config.name] = sources[config.name]
                self._logs |= _logs_of([config], self._root)

    def discover(self, positions: Positions, wall: int) -> None:
        """Looks for new and growing files. ``wall``: the time by the clock."""
        if not self.once:
            self._looked = wall
            for config in self.configs:
                if not self._is_failed(config):
                    with _NamedStream(config.name):
                        position = self.whole_position(positions, config)
                        self.sources[config.name].discover(position=position)

    def set_aside(self, error: SourceError) -> None:
        """Leaves a stream out for a while, and warns. Raises the error if it names no stream, if
        no other stream is read, or if the run reads only what is there.
        """
        others = [c for c in self.configs if c.name != error.stream and not self._is_failed(c)]
        if self.once or not error.stream or not others:
            raise error
        before, _ = self._failed.get(error.stream, ("", MIN))
        self._failed[error.stream] = str(error), self._looked + RETRY_MS
        if before != str(error):
            warnings.warn(f"{error} The other streams are read meanwhile.", stacklevel=2)

    def _is_failed(self, config: StreamConfig) -> bool:
        """Whether a stream is left out."""
        return self._looked < self._failed.get(config.name, ("", MIN))[1]

    def whole_position(self, positions: Positions, config: StreamConfig) -> dict[str, Any]:
        """Returns the whole position of a stream."""
        if config.name in self.reused_names:
            return {}
        position = positions.get(config.name, {})
        log = self._logs.get(config.name)
        return position if log is None else log.expand(position)

    def by_path(self, positions: Positions) -> Positions:
        """Returns the positions of the present streams, by their paths."""
        configs = (c for c in self.configs if c.name not in self.reused_names)
        return {c.path: positions.get(c.name, {}) for c in configs}

    def _short(
        self, positions: Positions, config: StreamConfig, after: dict[str, Any]
    ) -> dict[str, Any]:
        """Returns a position as an intention has it, with finished files in the log."""
        log = self._logs.get(config.name)
        return after if log is None else log.abbreviate(positions.get(config.name, {}), after)

    def overtaken_files(self) -> dict[str, list[str]]:
        """Returns the files that arrived after a later name was read, and are not yet reported."""
        return {
            name: list(source.overtaken)
            for name, source in self.sources.items()
            if source.overtaken
        }

    def vanished_files(self) -> dict[str, list[str]]:
        """Returns the files that were deleted before they were read completely, and are not yet
        reported.
        """
        return {name: list(source.gone) for name, source in self.sources.items() if source.gone}

    def forget(self, positions: Positions, reign: Leadership) -> None:
        """Deletes unpacked copies of input that was read, after the commit of an epoch that ended
        at these positions. The first call also deletes those of previous runs. Raises an error if
        another engine leads.
        """
        for config in self.configs:
            self.sources[config.name].forget(self.whole_position(positions, config))
        if not self._swept:
            self._swept = True
            copies_in_use = set().union(*(source.copies() for source in self.sources.values()))
            copies = list(self._scratch.glob("*.plain"))
            reign.check()
            for path in copies:
                if str(path) not in copies_in_use:
                    path.unlink(missing_ok=True)

    def unreadable_files(
        self, positions: Positions, after: Positions
    ) -> tuple[dict[str, dict[str, str]], Positions]:
        """Returns the files that cannot be read and are not yet reported, and the positions that
        mark them as reported.
        """
        broken_files, reported = {}, dict(after)
        for name, source in self.sources.items():
            reported_files = positions.get(name, {}).get("broken", ())
            if new := {
                file: why for file, why in source.broken.items() if file not in reported_files
            }:
                broken_files[name] = new
                reported[name] = {**after.get(name, {}), "broken": sorted({*reported_files, *new})}
        return broken_files, reported

    def acknowledge_reported_files(
        self, overtaken: Mapping[str, Sequence[str]], deleted: Mapping[str, Sequence[str]]
    ) -> None:
        """Notes that an epoch has reported these files."""
        for name, source in self.sources.items():
            if files := overtaken.get(name, ()):
                source.overtaken = [file for file in source.overtaken if file not in files]
            if files := deleted.get(name, ()):
                source.gone = [file for file in source.gone if file not in files]

    def assign_splits(
        self, positions: Positions, records: Mapping[str, StreamRecord], rows: int
    ) -> tuple[list[AnyReference], Positions]:  # fmt: skip
        """Returns references of at most ``rows`` elements in all, and the positions after them."""
        able = [
            c for c in self.configs if self._may_read(c, records) and self._backlog(positions, c)
        ]
        references: list[AnyReference] = []
        after = {**positions, **self._start_positions(positions)}
        left = rows
        for n, config in enumerate(able):
            share = max(left // (len(able) - n), 1) if left else 0
            if not share:
                break
            with _NamedStream(config.name):
                splits, position = self.sources[config.name].take(
                    self.whole_position(after, config), share
                )
            references += splits
            after[config.name] = self._short(positions, config, position)
            left -= sum(r.elements for r in splits)
        return references, after

    def _start_positions(self, positions: Positions) -> Positions:
        """Returns the positions of streams whose start is known only now."""
        begun_positions = {}
        for config in self.configs:
            position = positions.get(config.name, {})
            begun = self.sources[config.name].start_position(position)
            if begun is not position:
                begun_positions[config.name] = begun
        return begun_positions

    def _may_read(self, config: StreamConfig, records: Mapping[str, StreamRecord]) -> bool:
        """Whether a stream may be read: it is not ahead, by its bound, of the streams that share a
        query with it.
        """
        record = records.get(config.name, StreamRecord())
        return record.ahead < config.ahead

    def _backlog(self, positions: Positions, config: StreamConfig) -> bool:
        """Whether a stream that is not left out has unread input."""
        if self._is_failed(config):
            return False
        with _NamedStream(config.name):
            return self.sources[config.name].backlog(self.whole_position(positions, config))

    def complete(
        self, intention: EpochIntent, controls: Sequence[SourceReport], plan: Plan
    ) -> dict[str, list[Measured]]:
        """Adds the measurements of tasks to the positions of an intention. Returns them by stream,
        without the hashes of blocks.
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
        """The streams that are not read, with the reasons."""
        away = {name: source.away for name, source in self.sources.items() if source.away}
        return away | {c.name: self._failed[c.name][0] for c in self.configs if self._is_failed(c)}

    @property
    def has_ending_streams(self) -> bool:
        """Whether streams end in this run."""
        return self.once and not self.keep_open

    def ended_streams(self, positions: Positions) -> list[bool]:
        """Returns the streams that have ended."""
        if not self.has_ending_streams:
            return [False] * len(self.configs)
        return [
            self.sources[c.name].is_ended(self.whole_position(positions, c)) for c in self.configs
        ]

    def has_backlog(self, positions: Positions, records: Mapping[str, StreamRecord]) -> bool:
        """Whether ``assign_splits`` would return anything now."""
        return any(self._may_read(c, records) and self._backlog(positions, c) for c in self.configs)

    def has_unread(self, positions: Positions) -> bool:
        """Whether there is unread input."""
        return any(self._backlog(positions, c) for c in self.configs)

    def has_newly_ended(self, ended: Sequence[bool], records: Mapping[str, StreamRecord]) -> bool:
        """Whether a stream has ended since the last epoch."""
        return any(
            has_ended and not records.get(config.name, StreamRecord()).has_ended
            for config, has_ended in zip(self.configs, ended, strict=True)
        )

    def states(
        self,
        references: Sequence[AnyReference],
        after: Positions,
        records: Mapping[str, StreamRecord],
        ended: Sequence[bool],
        silence: Silence,
    ) -> tuple[dict[str, StreamState], dict[str, list[str]]]:
        """Returns the state of each stream at the beginning of the epoch, and the partitions that
        this epoch finishes.
        """
        states = {}
        finished: dict[str, list[str]] = {}
        for config, has_ended in zip(self.configs, ended, strict=True):
            record = records.get(config.name, StreamRecord())
            now = {r.partition for r in references if r.stream == config.name}
            silent = {partition for stream, partition in silence if stream == config.name}
            state, done = self._state(config, record, now, after, silent)
            state.has_ended = has_ended
            state.is_idle = "" in silent
            state.clock_time = self._by_clock(config, after)
            states[config.name] = state
            finished[config.name] = done
        return states, finished

    @property
    def message_formats(self) -> dict[str, str]:
        """The formats of the messages of topics, by stream."""
        return {c.name: c.format for c in self.configs if c.kafka is not None}

    @property
    def follows_clock(self) -> bool:
        """Whether a stream follows the clock."""
        return not self.once and any(c.heartbeat for c in self.configs)

    def _by_clock(self, config: StreamConfig, after: Positions) -> int:
        """Returns up to when a stream is complete by the clock: the last beat before the look. MIN
        if it does not follow the clock, or has unread input.
        """
        last_look = self._looked
        if last_look <= MIN or not config.heartbeat or self._is_failed(config):
            return MIN
        if self._backlog(after, config):
            return MIN
        return last_look - last_look % config.heartbeat - config.lateness

    def _state(
        self,
        config: StreamConfig,
        record: StreamRecord,
        now: set[str],
        after: Positions,
        silent: set[str],
    ) -> tuple[StreamState, list[str]]:
        source = self.sources[config.name]
        failed = self._is_failed(config)
        floor = MIN if failed else MAX  # nothing gets complete of a stream that is left out
        reading: dict[str, int] = {}
        done: list[str] = []
        known = {} if failed else source.partition_states(self.whole_position(after, config))
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
            complete_until=record.complete_until,
            max_ts=record.max_ts,
        )
        return state, done

    def _is_finished(self, config: StreamConfig, partition: str, greatest: str) -> bool:
        """Whether a partition receives no more data. With ``keep_open`` it may in the next run,
        unless it is a whole file.
        """
        if not self.keep_open:
            return self.sources[config.name].is_finished(partition)
        return config.files == "parallel" and config.whole_files and partition < greatest

    def idle_sources(
        self,
        references: Sequence[AnyReference],
        positions: Positions,
        now: int,
        related_streams: Mapping[str, Collection[str]],
    ) -> Silence:
        """Returns the idle sources: streams (as partition "") and partitions without input for
        longer than the ``idle`` of the stream. Exempt is the last active one in its group, unless
        the group has a heartbeat. A group is the partitions of a stream, or ``related_streams``,
        which share a query with it. ``now``: by the clock of durations.

        The others became idle while that one was active, so they follow it. This also holds if an
        epoch took so long that all of them are found idle at once.
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
                # also partitions with their first data
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
            """Whether a stream beside it was active later, has a heartbeat, or delays the others
            for ever.
            """
            since = self._heard[stream, ""]
            return any(
                spoke.get((other, ""), MAX) > since for other in related_streams.get(stream, ())
            )

        return frozenset(key for key in silent if key[1] or follows(key[0]))


class _NamedStream:
    """Has errors in the block name the stream that cannot be read."""

    __slots__ = ("_name",)

    def __init__(self, name: str) -> None:
        self._name = name

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, SourceError):
            error.stream = self._name


def _logs_of(configs: Sequence[StreamConfig], root: Path) -> dict[str, ReadLog]:
    """Returns the read logs of streams with many files."""
    return {c.name: ReadLog(stem_of(root, c.name)) for c in configs if c.files == "parallel"}
