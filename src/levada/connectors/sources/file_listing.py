"""Lists the files of a stream's path at this moment: a file, a directory or a glob.

Files are ordered by name; that order is the order of a sequence. Hidden files (``.x``) and
incomplete files by convention (``.tmp``, ``.part``) are skipped. Empty marker files such as
``_SUCCESS`` are not data. Files of directories below have their path from the first directory as
name. Hidden directories, those of writers (``_temporary``, ``_delta_log``) and links to directories
are not entered. Cost: one ``scandir`` of each directory, no ``stat`` of a file.

A stream is listed again and again: a ``Listing`` returns the changes. If a directory's time of
change is unchanged, this costs one ``stat``. Otherwise its names are listed, and only new ones are
examined.
"""

from __future__ import annotations

import glob
import os
import stat
import time
from collections.abc import Callable, Collection
from dataclasses import dataclass

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
        self._time = _FolderTime()
        self._folder: _Folder | None = None

    def look(self) -> tuple[list[ListedFile], Collection[str]]:
        """Returns new files, by name, and the names of deleted ones. Raises like ``list_files``."""
        if os.path.isdir(self._path):
            if self._folder is None:
                self._folder = _Folder(self._stream, self._path, "")
            return self._folder.look(self._clock())
        self._folder = None
        if self._time.is_unchanged(self._path, self._clock()):
            return [], ()
        files = list_files(self._stream, self._path)
        new, here = [f for f in files if f.name not in self._known], {f.name for f in files}
        gone, self._known = self._known - here, here
        return new, gone

    def forget(self, name: str) -> None:
        """Notes that a file is gone. If it appears again, it is new."""
        self._known.discard(name)
        self._time.changed = None
        if self._folder is not None:
            self._folder.forget(name)


@dataclass(slots=True)
class _FolderTime:
    """The time of the last look at a path, and its time of change then if that is certain."""

    changed: tuple[int, int] | None = None
    at: int = 0

    def is_unchanged(self, path: str, now: int) -> bool:
        """Whether nothing was added or removed since the last look; notes this one."""
        changed = _time_of_change(path)
        if changed is not None and changed == self.changed and 0 <= now - self.at < _TRUSTED:
            return True
        certain = changed is not None and now - changed[1] > (
            _FINE if changed[1] % 1_000_000_000 else _COARSE
        )
        self.changed, self.at = (changed if certain else None), now
        return False


class _Folder:
    """A directory of a stream. ``prefix``: the beginning of the names of its files."""

    def __init__(self, stream: str, path: str, prefix: str) -> None:
        self._stream, self._path, self._prefix = stream, path, prefix
        self._files: set[str] = set()  # base names
        self._no_data: set[str] = set()
        self._below: dict[str, _Folder] = {}
        self._time = _FolderTime()

    def look(self, now: int) -> tuple[list[ListedFile], Collection[str]]:
        """Returns new files, by name, and the names of deleted ones, also of the directories
        below.
        """
        new, gone = list[ListedFile](), set[str]()
        if not self._time.is_unchanged(self._path, now):
            self._list(new, gone)
        for folder in self._below.values():
            more, lost = folder.look(now)
            new += more
            gone |= set(lost)
        if self._below:
            new.sort(key=lambda file: file.name)
        return new, gone

    def _list(self, new: list[ListedFile], gone: set[str]) -> None:
        try:
            here = set(os.listdir(self._path))
        except OSError as error:
            if self._prefix and isinstance(error, FileNotFoundError):
                here = set()  # removed since its parent was listed
            else:
                raise _listing_error(self._stream, self._path, error) from error
        for name in self._files - here:
            gone.add(self._prefix + name)
        for name in self._below.keys() - here:
            gone |= self._below.pop(name).names()
        self._files &= here
        self._no_data &= here
        for name in sorted(here - self._files - self._no_data - self._below.keys()):
            path = os.path.join(self._path, name)
            if _is_data(name) and os.path.isfile(path):
                self._files.add(name)
                new.append(ListedFile(self._prefix + name, path))
            elif _is_entered(name) and not os.path.islink(path) and os.path.isdir(path):
                self._below[name] = _Folder(self._stream, path, f"{self._prefix}{name}/")
            elif not _is_data(name):
                self._no_data.add(name)

    def names(self) -> set[str]:
        """Returns the names of all files."""
        names = {self._prefix + name for name in self._files}
        return names.union(*(folder.names() for folder in self._below.values()))

    def forget(self, name: str) -> None:
        """Notes that a file is gone."""
        self._time.changed = None
        first, _, rest = name.partition("/")
        if not rest:
            self._files.discard(name)
        elif first in self._below:
            self._below[first].forget(rest)


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
            return list(_Folder(stream, path, "").look(0)[0])
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


def _is_entered(name: str) -> bool:
    return not name.startswith((".", "_"))


def _is_data(name: str) -> bool:
    return not name.startswith(".") and not name.endswith(_UNFINISHED) and name != "_SUCCESS"
