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
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from typing import Any
from weakref import WeakValueDictionary

import numpy as np
import pyarrow as pa

from levada.checkpoint.object_store.local_state_cache import host_copies
from levada.core.checkpoint_files import file_mode
from levada.core.checksum_messages import OTHER
from levada.core.checksummed_files import seal
from levada.core.durable_files import unwritable_error
from levada.core.frame import Frame
from levada.core.size_thresholds import register
from levada.errors import DamagedError, unreadable
from levada.operators.state.checksummed_frames import MARKED, mark, unpack_checked

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
