"""Atomic files: a file is there whole or not at all.

The bytes go to a hidden file in the same folder, whose name is random (an engine that has lost
leadership may write the same file), to the disk (fsync), and only then under their name (rename).
The folder is synced too, so that the name survives a power cut. Readers that list ``*.ndjson``
never see a part. Writing again replaces the file by an equal one. Cost: two fsyncs a file. Errors
of the system become one ``SinkError`` in a sentence.

A name is as durable as its folder: code that makes a folder also syncs the one above it.
"""

from __future__ import annotations

import errno
import os
import secrets
from functools import partial
from pathlib import Path

from levada.core.checkpoint_files import folder_mode, sync_folder
from levada.errors import SinkError

_FULL = (errno.ENOSPC, errno.EDQUOT)
_FORBIDDEN = (errno.EACCES, errno.EPERM, errno.EROFS)
_NO_FOLDER = (errno.ENOTDIR, errno.EEXIST)


def write_atomic(path: Path, data: bytes, mode: int = 0o666) -> None:
    """Publishes ``data`` at ``path``, and makes missing folders. ``mode``: the file's mode,
    restricted by the umask. Raises ``SinkError``.
    """
    try:
        make_folders(path.parent, folder_mode(mode))
        hidden = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
        try:
            _write(hidden, data, mode)
            hidden.replace(path)
        finally:
            hidden.unlink(missing_ok=True)
        sync_folder(path.parent)
    except OSError as error:
        raise sink_error(error, path.parent) from error


def sink_error(error: OSError, place: Path | str) -> SinkError:
    """Returns the error for a failed write, for people.

    >>> sink_error(OSError(errno.ENOSPC, "x"), "out").hint
    'Free some space and start again on the same checkpoint: no result is lost.'
    """
    if error.errno in _FULL:
        hint = "Free some space and start again on the same checkpoint: no result is lost."
        return SinkError(f"The disk that holds {place} is full.", hint=hint)
    if error.errno in _FORBIDDEN:
        return SinkError(f"{place} may not be written to: {os.strerror(error.errno or 0).lower()}.")
    if error.errno in _NO_FOLDER:
        return SinkError(f"{place} is not a folder.")
    return SinkError(f"{place} cannot be written: {error.strerror or error}.")


def _write(path: Path, data: bytes, mode: int) -> None:
    with open(path, "wb", opener=partial(os.open, mode=mode)) as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def make_folders(path: Path, mode: int = 0o777) -> None:
    """Makes a folder and the missing ones above it, durably. Raises ``OSError``."""
    if path.is_dir():
        return
    make_folders(path.parent, mode)
    path.mkdir(mode, exist_ok=True)
    sync_folder(path.parent)
