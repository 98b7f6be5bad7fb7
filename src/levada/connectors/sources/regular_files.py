"""Opens data files that other users may have put in place.

A name in a folder may have become a pipe, a device or a socket since it was listed. Opening a pipe
waits for a writer without an end, so files are opened without waiting, and anything but a regular
file is as good as deleted. Cost: one ``fstat`` for each file that is opened.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    import pyarrow as pa

T = TypeVar("T")
_FLAGS = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC


def open_regular(path: str | os.PathLike[str], _flags: int = 0) -> int:
    """Returns a descriptor of a regular file, to read. Raises ``FileNotFoundError`` for a pipe, a
    device or a socket.

    >>> open_regular(os.devnull)
    Traceback (most recent call last):
    FileNotFoundError: [Errno 2] It is no regular file: '/dev/null'
    """
    handle = os.open(path, _FLAGS)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        os.close(handle)
        raise FileNotFoundError(errno.ENOENT, "It is no regular file", os.fspath(path))
    return handle


def open_file(path: str | os.PathLike[str], buffering: int = -1) -> IO[bytes]:
    """Opens a regular file to read its bytes. Raises like ``open_regular``."""
    return open(path, "rb", buffering=buffering, opener=open_regular)


def open_arrow(path: str | os.PathLike[str]) -> pa.NativeFile:
    """Opens a regular file for Arrow, which cannot open without waiting: it is looked at just
    before. Raises like ``open_regular``.
    """
    import pyarrow as pa  # here: looking at queries needs no Arrow

    if not stat.S_ISREG(os.stat(path).st_mode):
        raise FileNotFoundError(errno.ENOENT, "It is no regular file", os.fspath(path))
    return pa.OSFile(os.fspath(path))


def reopen(path: str | os.PathLike[str], opener: Callable[[str], T]) -> T:
    """Opens a regular file by an opener that takes names only. Raises like ``open_regular``."""
    handle = open_regular(path)
    try:
        return opener(f"/dev/fd/{handle}")
    finally:
        os.close(handle)


def is_foreign_link(path: str | os.PathLike[str]) -> bool:
    """Whether a path is a link that neither this process's user nor root has made. It may lead to a
    file that its maker cannot read.
    """
    try:
        here = os.lstat(path)
    except OSError:  # the reader reports it
        return False
    return stat.S_ISLNK(here.st_mode) and here.st_uid not in (0, os.geteuid())
