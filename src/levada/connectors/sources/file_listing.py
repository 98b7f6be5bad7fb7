"""Lists the files of a stream's path at this moment: a file, a directory or a glob.

Files are ordered by name; that order is the order of a sequence. Hidden files (``.x``) and
incomplete files by convention (``.tmp``, ``.part``) are skipped. Sub-directories are not entered.
Empty marker files such as ``_SUCCESS`` are not data. Cost: one ``scandir`` of the directory, no
``stat`` of a file.

A stream is listed again and again: a ``Listing`` returns the changes. If the directory's time of
change is unchanged, this costs one ``stat``. Otherwise the names are listed, and only new files are
examined.
"""

from __future__ import annotations

import glob
import os
import stat
import time
from collections.abc import Callable, Collection

from levada.core.frozen import frozen
from levada.errors import MissingError, SourceError

_UNFINISHED = (".tmp", ".part", ".crdownload")
# ns: two changes within such a time may look like one; _COARSE for whole seconds
_COARSE, _FINE = 3_000_000_000, 100_000_000
_TRUSTED = 30_000_000_000  # ns: the age at which a time of change is trusted on every file system


@frozen
class ListedFile:
    """A file: its name within the stream (a base name; for a glob the path) and its path."""

    name: str
    path: str


class Listing:
    """The files at a path, from call to call. ``clock`` is the wall clock in ns."""

    def __init__(self, stream: str, path: str, clock: Callable[[], int] = time.time_ns) -> None:
        self._stream, self._path, self._clock = stream, path, clock
        self._known: set[str] = set()
        self._no_data: set[str] = set()  # names in a directory that are not files of the stream
        self._changed: tuple[int, int] | None = None
        self._looked = 0

    def look(self) -> tuple[list[ListedFile], Collection[str]]:
        """Returns new files, by name, and the names of deleted ones. Raises like ``list_files``."""
        now, changed = self._clock(), _time_of_change(self._path)
        if changed is not None and changed == self._changed and 0 <= now - self._looked < _TRUSTED:
            return [], ()
        certain = changed is not None and now - changed[1] > (
            _FINE if changed[1] % 1_000_000_000 else _COARSE
        )
        self._changed, self._looked = (changed if certain else None), now
        if os.path.isdir(self._path):
            new, here = self._in_folder()
        else:
            files = list_files(self._stream, self._path)
            new, here = [f for f in files if f.name not in self._known], {f.name for f in files}
        gone = self._known - here
        self._known = (self._known & here) | {f.name for f in new}
        return new, gone

    def forget(self, name: str) -> None:
        """Notes that a file is gone. If it appears again, it is new."""
        self._known.discard(name)
        self._changed = None

    def _in_folder(self) -> tuple[list[ListedFile], set[str]]:
        try:
            here = set(os.listdir(self._path))
        except OSError as error:
            raise _listing_error(self._stream, self._path, error) from error
        self._no_data &= here
        new = []
        for name in sorted(here - self._known - self._no_data):
            path = os.path.join(self._path, name)
            if not _is_data(name):
                self._no_data.add(name)
            elif os.path.isfile(path):
                new.append(ListedFile(name, path))
        return new, here


def _time_of_change(path: str) -> tuple[int, int] | None:
    """Returns the directory's inode and time, which change when a file is added or removed; None if
    no single directory determines the files.
    """
    folder = path if os.path.isdir(path) else os.path.dirname(path) or "."
    if folder != path and (glob.has_magic(folder) or "**" in path or not is_glob(path)):
        return None
    try:
        stat = os.stat(folder)
    except OSError:
        return None
    return stat.st_ino, stat.st_mtime_ns


def _listing_error(stream: str, path: str, error: OSError) -> SourceError:
    return SourceError(f"The stream {stream} cannot be listed at {path}: {error.strerror}.")


def is_glob(path: str) -> bool:
    """Whether a path is a pattern: it has a wildcard and is not itself the name of a file.

    >>> is_glob("/data/*.nt"), is_glob("/data")
    (True, False)
    """
    return glob.has_magic(path) and not os.path.exists(path)


def list_files(stream: str, path: str) -> list[ListedFile]:
    """Returns the files at ``path``, by name; none for an unmatched glob or an empty directory.
    Raises SourceError for a missing path.
    """
    try:
        if is_glob(path):
            matches = sorted(glob.glob(path, recursive=True))
            return [
                ListedFile(match, match)
                for match in matches
                if _is_data(os.path.basename(match)) and os.path.isfile(match)
            ]
        if os.path.isdir(path):
            with os.scandir(path) as entries:
                names = sorted(e.name for e in entries if _is_data(e.name) and e.is_file())
            return [ListedFile(name, os.path.join(path, name)) for name in names]
    except OSError as error:
        raise _listing_error(stream, path, error) from error
    if not os.path.exists(path):
        raise MissingError(f"The stream {stream} is not there: no file or directory {path}.")
    check_regular(stream, path)
    return [ListedFile(os.path.basename(path), path)]


def check_regular(stream: str, path: str) -> None:
    """Raises ``SourceError`` if ``path`` is neither a file nor a folder: a stream is read by
    offsets, which a pipe does not have.
    """
    try:
        mode = os.stat(path).st_mode
    except OSError:
        return  # the listing reports it
    word = next((word for is_one, word in _KINDS if is_one(mode)), "")
    if word:
        raise SourceError(
            f"The stream {stream} cannot be read from {path}: it is no regular file but {word}.",
            hint="Copy it to a file, or into a folder that is read as it grows.",
        )


_KINDS = (
    (stat.S_ISFIFO, "a pipe"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def _is_data(name: str) -> bool:
    return not name.startswith(".") and not name.endswith(_UNFINISHED) and name != "_SUCCESS"
