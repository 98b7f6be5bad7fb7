"""What the last manifest names, as its driver keeps it: who needs each file, and what an epoch
changes.

Several partitions may need one file, after groups have moved: a file is named as long as anybody
needs it, so it is counted by how many do. Stage tasks tell what is new and what has gone
(``told``); the driver's work follows from that. A driver that begins knows the names alone. So it
asks all tasks for all of their files once (``whole``), and needs what the manifest says until then.

An epoch is looked at in ``follow``, which changes nothing here, and counts with its commit
(``take``): one that fails is done again on the same names.

What is written (``inventory``) is what has changed since the last inventory. When that is more than
a part of all names there is a new one; where there are no more than ``FEW``, there is none. So a
name is written some ``SHARE`` times in all.

``going`` are files that neither of the last two manifests names: no later one will, whoever commits
it, for a task begins with what the last one names. So tasks of the next epoch delete them, however
often and late they run; what is left of them is an orphan (``checkpoint.leadership.orphan_files``).
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from contextlib import suppress
from dataclasses import field
from pathlib import Path

from levada.checkpoint.epoch_context import TaskOutcome
from levada.checkpoint.file_inventory import Inventory, names_of, write_inventory
from levada.checkpoint.manifest import Manifest
from levada.core.frozen import frozen
from levada.core.size_thresholds import register
from levada.errors import CheckpointError

FEW = register(f"{__name__}.FEW", 1024)
"""Names that stand in a manifest."""
SHARE = register(f"{__name__}.SHARE", 4)
"""What part of all names may have changed since an inventory."""
BEFORE, BESIDE = "before", "beside"
"""Who needs files, beside "STAGE.PARTITION": whoever it is, as a driver begins; the manifest."""
NOTHING = frozenset[str]()


@frozen
class FileDelta:
    """What has changed since an inventory; without one, all."""

    inventory: str = ""
    files: Collection[str] = ()  # in the order in which they came
    gone: Collection[str] = ()
    state: Mapping[str, str] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """How many names are written."""
        return len(self.files) + len(self.gone) + len(self.state)

    def with_changes(
        self, new: Iterable[str], gone: Iterable[str], state: Mapping[str, str | None]
    ) -> FileDelta:
        """With what an epoch has changed."""
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
    """What an epoch has changed: of each who needs files, those that are new to him and those that
    he needs no more; by how many more each is needed; what is named since, and what is not any
    more; the state's files that are others (None: there is none any more).
    """

    lists: dict[str, tuple[Set[str], Set[str]]]
    more: dict[str, int]
    new: list[str]
    gone: list[str]
    state: dict[str, str | None]
    lost: Collection[str]


class LiveFiles:
    """What the manifest ``last`` names, and beyond that the one ``before`` it, if that is whole.
    Raises ``CheckpointError``.
    """

    def __init__(self, root: Path, last: Manifest | None, before: Manifest | None = None) -> None:
        self._root, self.state = root, dict[str, str]()
        self._lists, self._many, self._since = dict[str, set[str]](), dict[str, int](), FileDelta()
        self._ahead: tuple[Manifest, Change, FileDelta] | None = None
        self.deletable = list[str]()
        self._left = list[str]()  # what the last manifest does not name, and the one before did
        if last is None:
            return
        files, self.state = names_of(root, last)
        with suppress(CheckpointError):
            self._left = sorted(names_of(root, before).files - files if before else ())
        files.discard(last.inventory)
        self._lists, self._many = {BEFORE: files}, dict.fromkeys(files, 1)
        self._since = FileDelta(last.inventory, last.files, last.gone, last.state)

    @property
    def whole(self) -> bool:
        """Whether tasks are to tell of all files that they need."""
        return BEFORE in self._lists

    @property
    def named_files(self) -> Collection[str]:
        """All files that the last manifest names, but for the inventory."""
        return self._many.keys()

    @property
    def of_last_two(self) -> set[str]:
        """All files that the last manifest names, or the one before it."""
        return {*self._many, *self._left, *filter(None, [self._since.inventory])}

    @property
    def bytes(self) -> int:
        """The size of these files. Cost: a look at each."""
        size = 0
        for name in self.named_files:
            with suppress(OSError):
                size += os.stat(self._root / name).st_size
        return size

    def follow(self, manifest: Manifest, done: Sequence[TaskOutcome], beside: Set[str]) -> None:
        """Has the manifest of the next epoch say what it names, from what its stage tasks tell;
        ``beside``: files that the manifest itself needs. Writes an inventory, if it is time.
        """
        change = self._change(done, beside)
        since = self._since.with_changes(change.new, change.gone, change.state)
        many = len(self._many) + len(change.new) - len(change.gone)
        if since.size > max(FEW, many // SHARE):
            since = self._full_delta(manifest.epoch, change)
            if since.inventory != self._since.inventory and self._since.inventory:
                change.gone.append(self._since.inventory)
        manifest.inventory, manifest.state = since.inventory, dict(since.state)
        manifest.files, manifest.gone = [*since.files], [*since.gone]
        self._ahead = manifest, change, since

    def _full_delta(self, epoch: int, change: Change) -> FileDelta:
        """All names, as a new inventory or, if they are few, as they are."""
        files = dict.fromkeys(self._many) | dict.fromkeys(change.new)
        for name in change.gone:
            del files[name]
        of = {**self.state, **change.state}
        state = {key: file for key, file in of.items() if file}
        if len(files) + len(state) <= FEW:
            return FileDelta("", files, (), state)
        return FileDelta(write_inventory(self._root, epoch, Inventory([*files], state)))

    def _change(self, done: Sequence[TaskOutcome], beside: Set[str]) -> Change:
        lists = dict[str, tuple[Set[str], Set[str]]]()
        state = dict[str, str | None]()
        stage_outcomes = [d for d in done if d.stage]
        for d in stage_outcomes:
            if not (d.whole or d.files or d.gone or d.state):
                continue
            key = key_of(d)
            if d.whole:
                lists[key] = self._difference(key, {*d.files})
            else:
                assert key in self._lists, "a task tells what is new after what is known"
                lists[key] = {*d.files}, {*d.gone}
            if d.state != self.state.get(key) and (d.whole or d.state):
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
        """Who needed files, and is not there any more."""
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
        """What there must be when the manifest that has been told last is committed: what it names,
        its plan with the catalog, and its group table.
        """
        assert self._ahead is not None and self._ahead[0] is manifest, "what it names is known"
        _, change, since = self._ahead
        named = ({*self._many, *change.new} - {*change.gone}) | {*manifest.segments}
        plans = {f"plans/{path.name}" for path in (plan, plan.with_suffix(".catalog"), groups)}
        return named | plans | {*filter(None, (since.inventory, manifest.setup)), "levada.json"}

    def folders(self, manifest: Manifest) -> list[str]:
        """The folders in which files are new that the manifest names which has been told last."""
        assert self._ahead is not None and self._ahead[0] is manifest, "what it names is known"
        _, change, since = self._ahead
        letters = (name for _, name, _ in manifest.side)
        made = [*change.new, *manifest.segments, *letters]
        if since.inventory != self._since.inventory:
            made.append(since.inventory)
        return sorted({name.partition("/")[0] for name in made if name})

    def commit(self, manifest: Manifest) -> None:
        """The manifest that has been told last is committed."""
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
    """Whose state it is, as manifests say it."""
    return f"{done.stage}.{done.partition}"
