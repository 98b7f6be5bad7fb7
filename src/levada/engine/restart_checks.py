"""The comparison of a run with the previous run on its checkpoint. Differences cause warnings, with
their effect on results, when the run builds its first plan. Some differences are errors.

A static file counts as changed if its size or time is, since large files are not read for that.
State of continued queries has its old content. ``runtime.driver.static_graphs`` watches replaceable
files.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
import xxhash

from levada.checkpoint.checkpoint_folder import Checkpoint
from levada.checkpoint.crash_counter import forget
from levada.checkpoint.epoch_context import Setup, load_setup
from levada.checkpoint.leadership.rollback import OPEN_INTENT, ROLLBACK_NOTICE
from levada.checkpoint.manifest import EpochIntent, Manifest, StreamRecord
from levada.connectors.config.option_changes import MIXING, OptionChange, option_changes
from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.ingest.static_files import StaticFile
from levada.connectors.ingest.tables.schema_inference import with_columns, with_first_schema
from levada.connectors.sources.split_enumerator import check_grown
from levada.core.checksummed_files import read_sealed, seal
from levada.core.durable_files import delete, replace_file
from levada.core.event_time import MIN, instant
from levada.errors import CheckpointError, UsageError
from levada.plan.execution.plan import QueryPlan
from levada.runtime.driver.source_coordinator import SourceCoordinator
from levada.runtime.publication.registered_query import Registered

STAMPS = "static-stamps.json"
Stamp = tuple[int, int]  # size, time (ns)
ACCEPT = (
    "Name the options as before, use a new checkpoint, or accept that windows mix both: "
    "--accept-changes, or accept_changes=True of Engine.start."
)


def columns_of(config: StreamConfig, checkpoint: Checkpoint | None) -> StreamConfig:
    """Returns a stream with its columns. Those of ``schema=auto`` are the columns of the first
    start on the checkpoint, if there is one.
    """
    last = None if checkpoint is None else checkpoint.last
    if checkpoint is not None and last is not None and last.setup:
        for before in checkpoint.setup(last.setup).streams:
            if before.name == config.name:
                return with_first_schema(config, before)
    return with_columns(config)


def check_streams(
    root: Path, last: Manifest | None, configs: Iterable[StreamConfig], strangers: Collection[str]
) -> None:
    """Raises ``UsageError`` for changed options of streams that would mix two meanings in one
    window. ``strangers``: names that other streams had in the previous run.
    """
    problems = [
        f"{_change_text(name, changes)} One window would hold elements of both runs."
        for name, changes in _changes(root, last, configs, strangers)
        if _has_elements(last, name) and any(change.effect in MIXING for change in changes)
    ]
    if problems:
        raise UsageError(" ".join(problems), hint=ACCEPT)


def warn_about_changed_streams(
    root: Path, last: Manifest | None, configs: Iterable[StreamConfig], strangers: Collection[str]
) -> None:
    """Warns of each stream whose options have changed, with the effect on old state."""
    for name, changes in _changes(root, last, configs, strangers):
        effects = dict.fromkeys(change.effect.value for change in changes)
        if not _has_elements(last, name):
            effects = {"None of its elements had been read.": None}
        warnings.warn(f"{_change_text(name, changes)} {' '.join(effects)}", stacklevel=2)


def _change_text(name: str, changes: Sequence[OptionChange]) -> str:
    return (
        f"The stream {name} has other options than in the run before on this checkpoint: "
        f"{'; '.join(map(str, changes))}."
    )


def _has_elements(last: Manifest | None, name: str) -> bool:
    """Returns whether elements of a stream have been read. An epoch that has only begun counts,
    too.
    """
    return last is None or last.streams.get(name, StreamRecord()).elements > 0


def _changes(
    root: Path, last: Manifest | None, configs: Iterable[StreamConfig], strangers: Collection[str]
) -> Iterator[tuple[str, list[OptionChange]]]:
    """Yields the streams whose options differ from those in the last epoch, with the changes."""
    setup = None if last is not None and last.has_ended else _last_setup(root, last)
    before = {} if setup is None else {config.name: config for config in setup.streams}
    for config in configs:
        if config.name not in before or config.name in strangers:
            continue
        if changes := option_changes(before[config.name], config):
            yield config.name, changes


def _last_setup(root: Path, last: Manifest | None) -> Setup | None:
    """Returns the streams of the last epoch, also if it has begun and is not committed. Returns
    None without an epoch, or for a first epoch that begins again with other options.
    """
    with suppress(CheckpointError, msgspec.MsgspecError):
        ahead = msgspec.json.decode(read_sealed(root / OPEN_INTENT), type=EpochIntent)
        goes_on = ahead.crashing_splits if last is None else ahead.epoch > last.epoch
        if goes_on and ahead.setup:
            return load_setup(str(root / ahead.setup))
    return load_setup(str(root / last.setup)) if last is not None and last.setup else None


def note_of_ended(
    checkpoint: Checkpoint, sourcing: SourceCoordinator, queries: Mapping[str, Registered]
) -> str:
    """Returns a note about a checkpoint whose streams have ended, and names new queries, which have
    no results; "" if they have not ended. Raises an error if the input has grown.
    """
    last = checkpoint.last
    if last is None or not last.has_ended:
        return ""
    for config in sourcing.configs:
        check_grown(sourcing.sources[config.name], sourcing.whole_position(last.positions, config))
    known = checkpoint.load_topology(last.plan)[1] if last.plan else {}
    new = [name for name, query in queries.items() if known.get(name) != query.identity]
    note = "This checkpoint had ended; its last results are published."
    if new:
        note += f" What it had not run before has no results: {', '.join(new)}."
    return note


def discard_incompatible_state(
    checkpoint: Checkpoint, configs: Sequence[StreamConfig], queries: Mapping[str, Registered]
) -> None:
    """Deletes the first epoch of a checkpoint if it was written ahead, is not committed, and
    belongs to other queries or streams. So a failed start, such as one without a cluster, can be
    corrected. New queries begin after the elements that were read, and no reader has results of
    that epoch.
    """
    path = checkpoint.root / OPEN_INTENT
    if checkpoint.last is not None or not path.exists():
        return
    try:
        ahead = msgspec.json.decode(read_sealed(path), type=EpochIntent)
        known = checkpoint.load_topology(ahead.plan)[1]
        read = {c.name: c for c in checkpoint.setup(ahead.setup).streams}
    except (CheckpointError, msgspec.MsgspecError):
        return  # the run reports the fault
    if ahead.crashing_splits:  # its poison input was identified, and is skipped
        return
    asked = {name: query.identity for name, query in queries.items()}
    if known != asked or read != {c.name: c for c in configs}:
        forget(checkpoint.root)
        (checkpoint.root / ROLLBACK_NOTICE).unlink(missing_ok=True)
        delete(path)


def warn_about_edited_queries(queries: Sequence[QueryPlan]) -> None:
    """Warns of queries that differ from the earlier ones of their names. Says from when on they
    count.
    """
    for query in queries:
        if not query.streams:
            counts = "it is answered anew"
        elif query.start <= MIN:
            counts = "it begins anew, with the first element"
        else:
            counts = f"it begins anew, with elements from {instant(query.start)} on"
        message = (
            f"The query {query.name} is another one than in the run before (its text, its options "
            f"or what it reads has changed): {counts}."
        )
        warnings.warn(message, stacklevel=2)


class StaticStamps:
    """The sizes and times of a run's static files at its start, and at their first read."""

    def __init__(self, root: Path, files: Sequence[StaticFile]) -> None:
        self._path = root / STAMPS
        self._now = dict(stamps(files))
        self._compared = not self._now

    def compare(self, *, old: bool) -> None:
        """Warns once of changed files, if ``old`` queries continue, and records the others."""
        if self._compared:
            return
        self._compared = True
        before = self._read() if old else {}
        for path, stamp in self._now.items():
            if before.get(path, stamp) != stamp:
                message = (
                    f"The static file {path} has changed since it was read: queries that go on "
                    "keep what it said then, new ones read what it says now. With reload=true "
                    "(in a new checkpoint) changes are taken in."
                )
                warnings.warn(message, stacklevel=2)
        remembered = self._now | before
        if remembered != before:
            replace_file(self._path, seal(msgspec.json.encode(remembered)))

    def _read(self) -> dict[str, Stamp]:
        if self._path.exists():
            with suppress(CheckpointError, msgspec.MsgspecError):
                return msgspec.json.decode(read_sealed(self._path), type=dict[str, Stamp])
        return {}


def stamps(files: Sequence[StaticFile]) -> tuple[tuple[str, Stamp], ...]:
    """Returns sizes and times of the files that are read in place."""
    return tuple((f.path, _stamp(f.path)) for f in files if f.path and not f.replaceable)


def version_of(files: Sequence[StaticFile]) -> int:
    """Returns the version of these files, equal in each run while they are unchanged."""
    return xxhash.xxh3_64_intdigest(repr(stamps(files)).encode()) >> 2


def _stamp(path: str) -> Stamp:
    with suppress(OSError):
        file_stat = os.stat(path)
        return file_stat.st_size, file_stat.st_mtime_ns
    return 0, 0  # the run reports a missing file when it reads it
