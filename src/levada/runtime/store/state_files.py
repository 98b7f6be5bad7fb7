"""State files: written under names unique to the attempt, read by memory map.

A name that no manifest holds means nothing: a failed attempt leaves orphans, which are deleted at
the next start. The maps of a partition's state stay open from epoch to epoch, those that it names
no more are dropped: an open map holds a deleted file's memory.
"""

from __future__ import annotations

import mmap
import os
import secrets
from collections.abc import Collection, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from levada.errors import CheckpointError
from levada.model.frame import Frame, unpack

VECTOR = 512  # buffers a call


def write(root: str, folder: str, stem: str, data: Sequence[bytes | memoryview]) -> str:
    """Writes buffers durably as a new file; returns its name relative to ``root``."""
    name = f"{folder}/{stem}-{secrets.token_hex(4)}"
    path = os.path.join(root, name)
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        try:
            for first in range(0, len(data), VECTOR):
                _write_all(fd, data[first : first + VECTOR])
            os.fdatasync(fd)
        finally:
            os.close(fd)
    except OSError as error:
        raise CheckpointError(
            f"The checkpoint {root} cannot be written: {error.strerror}."
        ) from error
    return name


def _write_all(fd: int, buffers: Sequence[bytes | memoryview]) -> None:
    """All bytes of some buffers, however many a call takes."""
    written = os.writev(fd, buffers)
    for buffer in buffers:
        if written >= len(buffer):
            written -= len(buffer)
            continue
        rest = memoryview(buffer)[written:]
        written = 0
        while rest:
            rest = rest[os.write(fd, rest) :]


class Opened:
    """The open files of one partition's state in one stage, in this process."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._files: dict[str, tuple[dict[str, Frame], Any]] = {}

    def __call__(self, name: str) -> tuple[dict[str, Frame], Any]:
        """The frames and meta of a file."""
        if name not in self._files:
            self._files[name] = map_(self._root, name)
        return self._files[name]

    def keep(self, names: Collection[str]) -> None:
        """Closes all others."""
        for name in [n for n in self._files if n not in names]:
            del self._files[name]


@lru_cache(maxsize=1024)
def open_(root: str, stage: int, partition: int) -> Opened:
    """The open files of a partition's state."""
    return Opened(root)


def map_(root: str, name: str) -> tuple[dict[str, Frame], Any]:
    """The frames and meta of a packed file, as views of a memory map."""
    path = Path(root) / name
    try:
        with path.open("rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise CheckpointError(
            f"The checkpoint's file {path} cannot be read: {error.strerror}."
        ) from error
    return unpack(np.frombuffer(data, np.uint8))
