"""Which files a stream's path names at this moment: a file, a directory or a glob.

The order of files is the order of their names; that order is the order of a sequence. Hidden files (``.x``) and files that
somebody is still writing by convention (``.tmp``, ``.part``) are not there yet. Sub-directories are not entered. Empty marker
files such as ``_SUCCESS`` are no data. Cost: one ``scandir`` of the directory, no ``stat`` of a file.
"""

from __future__ import annotations

import glob
import os
from dataclasses import dataclass

from levada.errors import SourceError

_UNFINISHED = (".tmp", ".part", ".crdownload")


@dataclass(frozen=True, slots=True)
class Found:
    """A file: its name within the stream (a base name; for a glob the path) and its path."""

    name: str
    path: str


def is_glob(path: str) -> bool:
    """Whether a path is a pattern: it has a wildcard and is not itself the name of something.

    >>> is_glob("/data/*.nt"), is_glob("/data")
    (True, False)
    """
    return glob.has_magic(path) and not os.path.exists(path)


def list_files(stream: str, path: str) -> list[Found]:
    """The files at ``path``, by name; an unmatched glob or an empty directory gives none. A missing path: SourceError."""
    try:
        if is_glob(path):
            matches = sorted(glob.glob(path, recursive=True))
            return [
                Found(match, match) for match in matches if _is_data(os.path.basename(match)) and os.path.isfile(match)
            ]
        if os.path.isdir(path):
            with os.scandir(path) as entries:
                names = sorted(e.name for e in entries if _is_data(e.name) and e.is_file())
            return [Found(name, os.path.join(path, name)) for name in names]
    except OSError as error:
        raise SourceError(f"The stream {stream} cannot be listed at {path}: {error.strerror}.") from error
    if not os.path.exists(path):
        raise SourceError(f"The stream {stream} is not there: no file or directory {path}.")
    return [Found(os.path.basename(path), path)]


def _is_data(name: str) -> bool:
    return not name.startswith(".") and not name.endswith(_UNFINISHED) and name != "_SUCCESS"
