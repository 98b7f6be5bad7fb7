"""State files, written under names unique to the attempt and read by memory map.

A map holds no file descriptor, so there may be as many as there are files. Data are checked when
they are first read (``operators.state.checksummed_frames``).

A file that no manifest names has no meaning: a failed attempt leaves orphans, which the next start
deletes. The maps of a partition's state stay open from epoch to epoch, while it names them: an open
map holds a deleted file's memory. Partitions of one process share maps, so a partition that
receives groups need not read and check again.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple
from weakref import WeakValueDictionary

import numpy as np
import pyarrow as pa

from levada.checkpoint.epoch_context import EpochContext, load_groups
from levada.checkpoint.object_store.local_state_cache import host_copies
from levada.core.array_types import Bools
from levada.core.checkpoint_files import file_mode
from levada.core.checksummed_files import OTHER, seal
from levada.core.durable_files import unwritable_error
from levada.core.frame import Frame
from levada.core.size_thresholds import register
from levada.errors import DamagedError, unreadable
from levada.operators.state.checksummed_frames import MARKED, mark, unpack_checked
from levada.operators.state.state_handover import HandedOverGroups, Part, take_over
from levada.operators.state.state_parts import Bounded, State, read_head
from levada.plan.execution.key_group_table import Division, GroupTable, SplitKeyGroup

VECTOR = register(f"{__name__}.VECTOR", 512)  # buffers a call
# epochs after which a process closes the unused files of a partition
UNUSED = register(f"{__name__}.UNUSED", 16)
# partitions whose files a process keeps open
MOST_OPEN = register(f"{__name__}.MOST_OPEN", 1024)
SUFFIX = 8  # random digits in the names of attempts; as many depend on the content


def write(root: str, folder: str, stem: str, data: Sequence[bytes | memoryview]) -> str:
    """Writes buffers durably as a new file; returns its name relative to ``root``."""
    name = f"{folder}/{stem}-{os.urandom(SUFFIX // 2).hex()}{mark(data[0])}"
    try:
        mode = file_mode(f"{root}/{folder}")
        fd = os.open(f"{root}/{name}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
        try:
            for first in range(0, len(data), VECTOR):
                _write_all(fd, data[first : first + VECTOR])
            os.fdatasync(fd)
        finally:
            os.close(fd)
    except OSError as error:
        raise unwritable_error(root, error) from error
    return name


def size_of(root: str, name: str | None) -> int:
    """Returns the bytes of a file that has just been written; 0: there is none."""
    return 0 if name is None else os.stat(f"{root}/{name}").st_size


def delete(root: str, names: Collection[str]) -> None:
    """Deletes files that no manifest names, or will name. Files outside of ``root``, which a forged
    manifest may have named, stay.
    """
    for name in names:
        if ".." in name.split("/"):
            continue
        with suppress(OSError):  # otherwise it is an orphan, like those of a crashed attempt
            os.unlink(f"{root}/{name}")


def write_sealed(root: str, folder: str, stem: str, data: bytes) -> str:
    """Writes bytes that ``read_sealed`` reads, durably as a new file."""
    return write(root, folder, stem, [seal(data)])


def _write_all(fd: int, buffers: Sequence[bytes | memoryview]) -> None:
    """Writes all bytes of some buffers, in as many calls as necessary."""
    written = os.writev(fd, buffers)
    for part in buffers:
        buffer = memoryview(part)
        if written >= buffer.nbytes:
            written -= buffer.nbytes
            continue
        rest = buffer.cast("B")[written:]
        written = 0
        while rest:
            rest = rest[os.write(fd, rest) :]


class File:
    """An open file: its frames and its metadata. It is closed when no partition holds it."""

    __slots__ = ("__weakref__", "frames", "meta")

    def __init__(self, root: str, name: str) -> None:
        self.frames, self.meta = _map_copy(root, name)


_files: WeakValueDictionary[tuple[str, str], File] = WeakValueDictionary()
"""The files that partitions of this process hold open, by root and name."""


def file_of(root: str, name: str) -> File:
    """Returns a file, shared if another partition has it open. Raises ``DamagedError``."""
    file = _files.get((root, name))
    if file is None:
        file = _files[root, name] = File(root, name)
    return file


class Opened:
    """The open files of one partition's state in one stage, in this process."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._files: dict[str, File] = {}

    def __call__(self, name: str) -> tuple[Mapping[str, Frame], Any]:
        """Returns the frames and metadata of a file."""
        if name not in self._files:
            self._files[name] = file_of(self._root, name)
        file = self._files[name]
        return file.frames, file.meta

    def keep(self, names: Collection[str]) -> None:
        """Closes all other files."""
        for name in [n for n in self._files if n not in names]:
            del self._files[name]


_Place = tuple[str, int, int]
_opened: dict[_Place, tuple[int, Opened]] = {}  # with the epoch in which they were used last


def open_(root: str, stage: int, partition: int, epoch: int) -> Opened:
    """Returns the open files of a partition's state. Closes those that this process has not used
    for some epochs: another process has that partition by now, and its files may be deleted.
    """
    key, known = (root, stage, partition), list(_opened.items())
    unused = [k for k, (last, _) in known if k[0] == root and last < epoch - UNUSED]
    for other in unused + [k for k, _ in known[: max(len(known) - MOST_OPEN, 0)]]:
        _opened.pop(other, None)
    _, opened = _opened.pop(key, (0, None))
    opened = Opened(root) if opened is None else opened
    _opened[key] = epoch, opened  # the last ones were used last
    return opened


def _map_copy(root: str, name: str) -> tuple[Mapping[str, Frame], Any]:
    """Maps a copy of the file on this host, if copies are kept."""
    copies = host_copies()
    if copies is None:
        return map_(root, name)
    try:
        return map_(root, name, copies.copy(root, name))
    except DamagedError:
        copies.forget(root, name)
        return map_(root, name)


def map_(root: str, name: str, copy: str = "") -> tuple[Mapping[str, Frame], Any]:
    """Returns the frames and metadata of a file, as views of a memory map, of a ``copy`` if one is
    named. Raises ``DamagedError``, also for an intact file under the name of another.
    """
    path = f"{root}/{name}"
    try:
        with pa.memory_map(copy or path) as file:
            data = np.frombuffer(file.read_buffer(), np.uint8)
    except OSError as error:
        why = os.strerror(error.errno) if error.errno else "it is no file"
        raise unreadable(path, why) from error
    frames = unpack_checked(data, f"{path} (its copy {copy}, to be deleted)" if copy else path)
    suffix = name.rpartition("-")[2]
    if len(suffix) == 2 * SUFFIX and suffix[SUFFIX:] != mark(data[:MARKED].tobytes()):
        raise unreadable(path, OTHER)
    return frames


# The state of a partition at the beginning of an epoch: its own list of parts or, if groups have
# moved, the combination of the lists of all previous owners of its groups (``operators/state``,
# ``taken_over``).
#
# The parts of a divided group, and the partitions that take them:
#
#     by a join that divides it      all that share the group have all of it; a new one takes
#                                    it from the first of them
#     by operators after that join   each has its own output; when others share the group, or no
#                                    partition does any more, all goes to the group's own partition


Opener = Callable[[str], tuple[Mapping[str, Frame], Any]]
Some = tuple[bool, HandedOverGroups]
"""Whether any groups are taken over, and which."""


def open_state(context: EpochContext, stage: int, partition: int, opener: Opener) -> State:
    """Opens the state of a partition in a stage. Raises ``CheckpointError``."""
    had = partial(_read_part, context, stage, opener)
    if (
        context.state_group_table
        and (moved := _handover_sources(context, partition, had)) is not None
    ):
        alike, parts = moved
        head = take_over(alike, parts) if alike or parts else None
        return State(head, "", opener, _bounded_writer(context, stage, partition))
    part = had(partition)
    bounded = _bounded_writer(context, stage, partition)
    return State(part and part.head, part.file if part else "", opener, bounded)


def _bounded_writer(context: EpochContext, stage: int, partition: int) -> Bounded | None:
    """Returns the writer of parts during a task, if memory is bounded; else None."""
    if not context.memory.bytes:
        return None
    stem = f"{context.epoch}-{stage}-{partition}"
    return Bounded(context.memory.theta, partial(write, context.root, "state", stem))


def _handover_sources(
    context: EpochContext, partition: int, had: Callable[[int], Part | None]
) -> tuple[Part | None, list[Part]] | None:
    """Returns the part for state that all partitions share, and the parts for groups; None: the
    partition keeps its own.
    """
    before, now = load_groups(context.state_group_table), load_groups(context.group_table_file)
    takes = list(_takes(before, now, partition))
    if [t.owner for t in takes] == [partition] and takes[0].is_all:
        return None
    parts = [
        part._replace(taken=take.taken, joins=take.joins)
        for take in takes
        if (part := had(take.owner)) is not None
    ]
    return had(partition if partition < before.partitions else 0), parts


class _Take(NamedTuple):
    """The state that is taken from an old owner, as in ``Part``."""

    owner: int
    taken: HandedOverGroups
    joins: Mapping[int, HandedOverGroups]

    @property
    def is_all(self) -> bool:
        """Whether it is the whole state of the owner."""
        return all(taken.groups is None for taken in (self.taken, *self.joins.values()))


def _takes(before: GroupTable, now: GroupTable, partition: int) -> Iterator[_Take]:
    """Yields the owners from which a partition takes state."""
    mine = now.partition == partition
    ways = _ways(before.division, now.division)
    for owner in range(before.partitions):
        theirs = before.partition == owner
        rest = _select_groups(theirs, mine, _groups_passed_on(before, now, owner, partition))
        joins = {
            node: _select_groups(
                theirs, mine, _divided_join_groups(before, now, node, owner, partition)
            )
            for node in ways
        }
        if rest[0] or any(some for some, _ in joins.values()):
            yield _Take(owner, rest[1], {node: taken for node, (_, taken) in joins.items()})


def _ways(before: Division, now: Division) -> list[int]:
    """Returns the joins in which groups are or were divided."""
    there = {join for by in (before, now) if by.heavy for join in by.joins}
    return sorted(there)


Heavies = Iterator[tuple[int, bool, bool]]
"""For each group that is or was divided: whether the owner had rows of it, and whether these
leave.
"""


def _select_groups(theirs: Bools, mine: Bools, heavy: Heavies) -> Some:
    groups, had = theirs & mine, theirs.copy()
    for group, was, goes in heavy:
        had[group], groups[group] = was, goes
    is_all = groups.any() and (groups == had).all()
    return bool(groups.any()), HandedOverGroups(None if is_all else groups, had)


def _groups_passed_on(before: GroupTable, now: GroupTable, owner: int, partition: int) -> Heavies:
    """Yields the groups that follow from divided joins."""
    old, new = _by_group(before), _by_group(now)
    for group in sorted({*old, *new}):
        had = owner in _parts(before, old, group)
        if old.get(group) == new.get(group):
            yield group, had, had and owner == partition
        else:
            yield group, had, had and partition == int(now.partition[group])


def _divided_join_groups(
    before: GroupTable, now: GroupTable, node: int, owner: int, partition: int
) -> Heavies:  # fmt: skip
    """Yields the groups that a divided join keeps."""
    old = _by_group(before) if node in before.division.joins else {}
    new = _by_group(now) if node in now.division.joins else {}
    for group in sorted({h.group for t in (before, now) for h in t.division.heavy}):
        had, has = _parts(before, old, group), _parts(now, new, group)
        source = partition if partition in had else had[0]
        yield group, owner in had, partition in has and owner == source


def _by_group(table: GroupTable) -> dict[int, SplitKeyGroup]:
    return {h.group: h for h in table.division.heavy}


def _parts(table: GroupTable, heavy: Mapping[int, SplitKeyGroup], group: int) -> tuple[int, ...]:
    """Returns the partitions with rows of a group, its own one first."""
    return heavy[group].parts if group in heavy else (int(table.partition[group]),)


def _read_part(context: EpochContext, stage: int, opener: Opener, partition: int) -> Part | None:
    """Returns the whole state of a partition; None: it had none."""
    name = context.state.get(f"{stage}.{partition}")
    return None if name is None else Part(read_head(opener(name)[1]), name, HandedOverGroups(None))
