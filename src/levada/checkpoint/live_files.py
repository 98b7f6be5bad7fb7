"""The files that the last manifest names: the partitions that need each file, and the changes of an
epoch.

Several partitions may need one file after groups have moved, so the driver counts references. Stage
tasks report new and removed files, and the driver's work is linear in these. A driver that starts
knows only the names, so it asks all tasks once for all of their files (``whole``). ``follow``
computes an epoch without a change here; ``commit`` applies it, so a failed epoch is repeated on the
same names. A manifest contains the changes since the last inventory. When these exceed a part of
all names, a new inventory is written, unless there are no more than ``MAX_INLINE_NAMES`` names. So
a name is written some ``SHARE`` times in all.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import field
from pathlib import Path

import msgspec

from levada.checkpoint.epoch_context import TaskOutcome
from levada.checkpoint.file_inventory import Inventory, names_of, write_inventory
from levada.checkpoint.file_read_log import logs_of
from levada.checkpoint.manifest import EpochIntent, Manifest, read_manifest
from levada.core.checksummed_files import read_sealed
from levada.core.durable_files import HIDDEN
from levada.core.frozen import frozen
from levada.core.size_thresholds import register
from levada.errors import CheckpointError

MAX_INLINE_NAMES = register(f"{__name__}.MAX_INLINE_NAMES", 1024)
"""The most names in a manifest without an inventory."""
SHARE = register(f"{__name__}.SHARE", 4)
"""The divisor of all names that limits the changes since an inventory."""
BEFORE, BESIDE = "before", "beside"
"""Owners beside "STAGE.PARTITION": unknown owners, when a driver begins; the manifest."""
NOTHING = frozenset[str]()


@frozen
class FileDelta:
    """The changes since an inventory; without one, all names."""

    inventory: str = ""
    files: Collection[str] = ()  # in order of arrival
    gone: Collection[str] = ()
    state: Mapping[str, str] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """The number of names that are written."""
        return len(self.files) + len(self.gone) + len(self.state)

    def with_changes(
        self, new: Iterable[str], gone: Iterable[str], state: Mapping[str, str | None]
    ) -> FileDelta:
        """Returns the delta with the changes of an epoch."""
        files, left = dict.fromkeys(self.files), dict.fromkeys(self.gone)
        files |= dict.fromkeys(new)
        for name in gone:
            if name in files:
                del files[name]
            else:
                left[name] = None
        of = {**self.state, **{key: file or "" for key, file in state.items()}}
        if not self.inventory:
            of = {key: file for key, file in of.items() if file}
        return FileDelta(self.inventory, files, left, of)


@frozen
class Change:
    """The changes of an epoch: for each owner, its new files and those that it needs no more; by
    how many references each file changes; the files that are named since, and no longer; the
    changed state files (None: there is none any more).
    """

    lists: dict[str, tuple[Set[str], Set[str]]]
    more: dict[str, int]
    new: list[str]
    gone: list[str]
    state: dict[str, str | None]
    lost: Collection[str]


class LiveFiles:
    """The files that the manifest ``last`` names, and those of the one ``before`` it, if that is
    intact. Raises ``CheckpointError``.

    ``deletable`` are files that neither of the last two manifests names. No later one will, since a
    task begins with the files of the last one. Tasks of the next epoch delete them, however often
    and late they run. The rest are orphans (``checkpoint.leadership.orphan_files``).
    """

    def __init__(self, root: Path, last: Manifest | None, before: Manifest | None = None) -> None:
        self._root, self.state = root, dict[str, str]()
        self._lists, self._many, self._since = dict[str, set[str]](), dict[str, int](), FileDelta()
        self._ahead: tuple[Manifest, Change, FileDelta] | None = None
        self.deletable = list[str]()
        # files of the manifest before the last that the last does not name
        self._left = list[str]()
        if last is None:
            return
        files, self.state = names_of(root, last)
        with suppress(CheckpointError):
            self._left = sorted(names_of(root, before).files - files if before else ())
        files.discard(last.inventory)
        self._lists, self._many = {BEFORE: files}, dict.fromkeys(files, 1)
        self._since = FileDelta(last.inventory, last.files, last.unneeded_files, last.state)

    @property
    def whole(self) -> bool:
        """Whether tasks must report all files that they need."""
        return BEFORE in self._lists

    @property
    def named_files(self) -> Collection[str]:
        """All files that the last manifest names, except the inventory."""
        return self._many.keys()

    @property
    def last_two_manifests(self) -> set[str]:
        """All files that the last manifest names, or the one before it."""
        return {*self._many, *self._left, *filter(None, [self._since.inventory])}

    @property
    def bytes(self) -> int:
        """The size of these files. Cost: one ``stat`` call for each."""
        size = 0
        for name in self.named_files:
            with suppress(OSError):
                size += os.stat(self._root / name).st_size
        return size

    def follow(self, manifest: Manifest, done: Sequence[TaskOutcome], beside: Set[str]) -> None:
        """Writes the names into the manifest of the next epoch, from the reports of its stage
        tasks. ``beside``: files that the manifest itself needs. Writes an inventory if one is due.
        """
        change = self._change(done, beside)
        since = self._since.with_changes(change.new, change.gone, change.state)
        many = len(self._many) + len(change.new) - len(change.gone)
        if since.size > max(MAX_INLINE_NAMES, many // SHARE):
            since = self._full_delta(manifest.epoch, change)
            if since.inventory != self._since.inventory and self._since.inventory:
                change.gone.append(self._since.inventory)
        manifest.inventory, manifest.state = since.inventory, dict(since.state)
        manifest.files, manifest.unneeded_files = [*since.files], [*since.gone]
        self._ahead = manifest, change, since

    def _full_delta(self, epoch: int, change: Change) -> FileDelta:
        """Returns all names, as a new inventory or, if they are few, in the delta."""
        files = dict.fromkeys(self._many) | dict.fromkeys(change.new)
        for name in change.gone:
            del files[name]
        of = {**self.state, **change.state}
        state = {key: file for key, file in of.items() if file}
        if len(files) + len(state) <= MAX_INLINE_NAMES:
            return FileDelta("", files, (), state)
        return FileDelta(write_inventory(self._root, epoch, Inventory([*files], state)))

    def _change(self, done: Sequence[TaskOutcome], beside: Set[str]) -> Change:
        lists = dict[str, tuple[Set[str], Set[str]]]()
        state = dict[str, str | None]()
        stage_outcomes = [d for d in done if d.stage]
        for d in stage_outcomes:
            if not (d.lists_all_files or d.files or d.unneeded_files or d.state):
                continue
            key = key_of(d)
            if d.lists_all_files:
                lists[key] = self._difference(key, {*d.files})
            else:
                assert key in self._lists, "a task tells what is new after what is known"
                lists[key] = {*d.files}, {*d.unneeded_files}
            if d.state != self.state.get(key) and (d.lists_all_files or d.state):
                state[key] = d.state
        lost = self._lost_keys(stage_outcomes, lists)
        lists[BESIDE] = self._difference(BESIDE, beside)
        state |= {key: None for key in lost if key in self.state}
        lists |= {key: (NOTHING, self._lists[key]) for key in lost if key in self._lists}
        return self._count_references(lists, state, lost)

    def _difference(self, key: str, files: Set[str]) -> tuple[Set[str], Set[str]]:
        had = self._lists.get(key, NOTHING)
        return files - had, had - files

    def _lost_keys(
        self, stage_outcomes: Sequence[TaskOutcome], lists: Mapping[str, object]
    ) -> list[str]:
        """Returns the owners that needed files and no longer exist."""
        known = len(self._lists) - (BESIDE in self._lists)
        if len(stage_outcomes) - sum(key not in self._lists for key in lists) == known:
            return []
        there = {BESIDE, *(key_of(d) for d in stage_outcomes)}
        return [key for key in {**self._lists, **self.state} if key not in there]

    def _count_references(
        self,
        lists: dict[str, tuple[Set[str], Set[str]]],
        state: dict[str, str | None],
        lost: Sequence[str],
    ) -> Change:
        more = dict[str, int]()
        for new, old in lists.values():
            for name in new:
                more[name] = more.get(name, 0) + 1
            for name in old:
                more[name] = more.get(name, 0) - 1
        many = self._many
        come = [name for name, by in more.items() if by > 0 and name not in many]
        gone = [name for name, by in more.items() if by < 0 and many[name] + by == 0]
        return Change(lists, more, come, gone, state, lost)

    def needed_files(self, manifest: Manifest, plan: Path, groups: Path) -> set[str]:
        """Returns the files that must exist when the manifest passed to ``follow`` is committed:
        those that it names, its plan with the catalog, and its group table.
        """
        assert self._ahead is not None and self._ahead[0] is manifest, "what it names is known"
        _, change, since = self._ahead
        named = ({*self._many, *change.new} - {*change.gone}) | {*manifest.segments}
        plans = {f"plans/{path.name}" for path in (plan, plan.with_suffix(".catalog"), groups)}
        return named | plans | {*filter(None, (since.inventory, manifest.setup)), "levada.json"}

    def folders(self, manifest: Manifest) -> list[str]:
        """Returns the folders with new files of the manifest passed to ``follow``."""
        assert self._ahead is not None and self._ahead[0] is manifest, "what it names is known"
        _, change, since = self._ahead
        letters = (name for _, name, _ in manifest.letter_files)
        made = [*change.new, *manifest.segments, *letters]
        if since.inventory != self._since.inventory:
            made.append(since.inventory)
        return sorted({name.partition("/")[0] for name in made if name})

    def commit(self, manifest: Manifest) -> None:
        """Applies the manifest passed to ``follow``, which is committed."""
        assert self._ahead is not None and self._ahead[0] is manifest, "what it names is known"
        _, change, self._since = self._ahead
        self._ahead = None
        for key, (new, old) in change.lists.items():
            names = self._lists.setdefault(key, set())
            names -= old
            names |= new
        for key in change.lost:
            self._lists.pop(key, None)
        for name, by in change.more.items():
            if by:
                self._many[name] = self._many.get(name, 0) + by
        for name in change.gone:
            self._many.pop(name, None)
        for key, file in change.state.items():
            if file is None:
                self.state.pop(key, None)
            else:
                self.state[key] = file
        self.deletable, self._left = self._left, change.gone


def key_of(done: TaskOutcome) -> str:
    """Returns the owner of a state, as manifests name it."""
    return f"{done.stage}.{done.partition}"


# The files of incomplete attempts in a checkpoint, which nothing names.
#
# An overtaken driver may be in any phase of its work. So a driver first lists the files to delete,
# then checks that it still leads, and only then deletes the listed files. They existed before any
# takeover, and no later driver names them. Files of committed epochs need no such check: if the
# last two manifests do not name a file, no later one does.


MADE = ("state", "side", "graph")
"""The folders of the files that tasks write; names begin with the epoch."""
_WRITTEN = ("", "standby", "commits", "manifests", "plans", "intentions", "positions", "tables")


def find_leftovers(
    root: Path, last: Manifest | None, before: Manifest | None, named: Set[str]
) -> list[Path]:
    """Returns the leftovers that a driver finds when its leadership begins after this manifest,
    except old manifests. ``named``: the files that it and the previous manifest name
    (``checkpoint``).
    """
    kept = named | _letters(last) | _letters(before)
    orphans = [path for path in _task_files(root) if f"{path.parent.name}/{path.name}" not in kept]
    for folder in _WRITTEN:
        with suppress(OSError):
            orphans += [p for p in (root / folder).iterdir() if HIDDEN.fullmatch(p.name)]
    ahead = _open_intention(root)
    known = [m.positions for m in (last, before, ahead) if m is not None]
    logs = {name for positions in known for name in logs_of(positions)}
    with suppress(OSError):
        there = (root / "positions").glob("*.*")
        orphans += [p for p in there if p.name[0] != "." and f"positions/{p.name}" not in logs]
    return orphans


def orphans(root: Path, last: Manifest, named: Set[str]) -> list[Path]:
    """Returns the files of failed attempts at committed epochs."""
    kept = named | _letters(last) | _letters(previous(root, last))
    return [
        path
        for path in _task_files(root)
        if f"{path.parent.name}/{path.name}" not in kept and _epoch(path.name) <= last.epoch
    ]


def previous(root: Path, last: Manifest | None) -> Manifest | None:
    """Returns the previous manifest, if it is present and intact."""
    if last is not None:
        with suppress(CheckpointError):
            return read_manifest(root / "manifests" / str(last.epoch - 1))
    return None


def _letters(manifest: Manifest | None) -> set[str]:
    return set() if manifest is None else {name for _, name, _ in manifest.letter_files}


def _task_files(root: Path) -> Iterator[Path]:
    for folder in MADE:
        yield from (root / folder).iterdir()


def _epoch(name: str) -> int:
    number = name.split("-", 1)[0]
    return int(number) if number.isdigit() else 0


def _open_intention(root: Path) -> EpochIntent | None:
    """Returns the open intention, if it is present and intact."""
    with suppress(CheckpointError, msgspec.MsgspecError):
        return msgspec.json.decode(read_sealed(root / "intentions" / "open"), type=EpochIntent)
    return None
