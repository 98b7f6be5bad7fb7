"""Small files of the checkpoint, written durably: there whole, or not at all.

A file that is being written has a random hidden name: processes of several hosts may have equal
numbers, and must not write into one file.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from levada.core.checkpoint_files import file_mode, folder_mode, sync_folder
from levada.errors import CheckpointError, SinkError

HIDDEN = re.compile(r"\..+\.[0-9a-f]{16}")
"""The names of what is being written."""
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def hidden_name(path: str) -> str:
    """Returns a unique name for a file that will be moved to a path; sorts before it."""
    folder, slash, name = path.rpartition(os.sep)
    return f"{folder}{slash}.{name}.{os.urandom(8).hex()}"


def write_once(path: Path | str, data: bytes) -> bool:
    """Creates a file with this content, durably, only if it is absent; else False."""
    try:
        _place(str(path), data, _link)
    except FileExistsError:
        return False
    except OSError as error:
        raise unwritable_error(Path(path).parent.parent, error) from error
    return True


def replace_file(path: Path, data: bytes) -> None:
    """Gives a file this content, durably; readers see the old one or the new one whole."""
    try:
        make_folder(path.parent)
        _place(str(path), data, os.replace)
    except OSError as error:
        raise unwritable_error(path.parent.parent, error) from error


def make_folder(path: Path, *, parents: bool = False) -> None:
    """Makes a folder of the checkpoint, durably, if it is missing; it has the mode of the one above
    it. Raises ``OSError``, also if that is gone, unless ``parents`` are made, too.
    """
    if path.is_dir():
        return
    if parents:
        make_folder(path.parent, parents=True)
    make_alike(path)
    sync_folder(path.parent)


def make_alike(path: Path) -> None:
    """Makes a folder with the mode of the one above it, if it is missing. Raises ``OSError``."""
    mode = path.parent.stat().st_mode & 0o777
    path.mkdir(mode, exist_ok=True)
    if path.stat().st_mode & 0o777 != mode:
        path.chmod(mode)  # the umask has taken some of it


def delete(path: Path | str) -> None:
    """Deletes a file of a folder of the checkpoint, if it is there. Raises ``CheckpointError``."""
    try:
        os.unlink(path)
    except FileNotFoundError:
        return
    except OSError as error:
        raise unwritable_error(Path(path).parent.parent, error) from error


def _place(path: str, data: bytes, place: Callable[[str, str], None]) -> None:
    """Writes a hidden file and moves it to its place. If the hidden file is gone by then, an engine
    that has just started has removed it as a leftover: it is written again.
    """
    folder = path.rpartition(os.sep)[0] or os.curdir
    for last in (False, False, True):
        temporary = hidden_name(path)
        try:
            _write(temporary, data, file_mode(folder))
            place(temporary, path)
            break
        except FileNotFoundError:
            if last or not os.path.isdir(folder):
                raise
        except BaseException:
            _unlink(temporary)
            raise
    sync_folder(folder)


def _link(temporary: str, path: str) -> None:
    os.link(temporary, path)
    _unlink(temporary)


def _unlink(path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path)


def _write(path: str, data: bytes, mode: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
    try:
        view = memoryview(data)
        while view := view[os.write(descriptor, view) :]:
            pass  # a signal or a full disk may cut a write short
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def unwritable_error(root: str | Path, error: OSError) -> CheckpointError:
    """Returns why the checkpoint in this folder cannot be written, and the remedy."""
    if not os.path.isdir(root):
        return CheckpointError(
            f"The checkpoint {root} is gone: it was deleted or moved while it was in use.",
            hint="Bring it back, or start anew in an empty folder.",
        )
    if folder := next((p for p in (error.filename2, error.filename) if p and os.path.isdir(p)), ""):
        return CheckpointError(
            f"The checkpoint's file {folder} cannot be written or deleted: it is a folder.",
            hint="Take that away and start again.",
        )
    done = {
        **dict.fromkeys(_FULL, "Make room"),
        errno.ENOENT: "Bring back what was deleted there",
    }.get(error.errno or 0, "Mend that")
    return CheckpointError(
        f"The checkpoint {root} cannot be written: {error.strerror or error}.",
        hint=f"{done} and start again: the run goes on after the last epoch that was committed.",
    )


# Files of outputs, which are also there whole or not at all.
#
# The bytes go to a hidden file in the same folder, whose name is random (an engine that has lost
# leadership may write the same file), to the disk (fsync), and only then under their name (rename).
# The folder is synced too, so that the name survives a power cut. Readers that list ``*.ndjson``
# never see a part. Writing again replaces the file by an equal one. Cost: two fsyncs a file. Errors
# of the system become one ``SinkError`` in a sentence.
#
# A name is as durable as its folder: code that makes a folder also syncs the one above it.


_DISK_FULL = (errno.ENOSPC, errno.EDQUOT)
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
            _write_synced(hidden, data, mode)
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
    if error.errno in _DISK_FULL:
        hint = "Free some space and start again on the same checkpoint: no result is lost."
        return SinkError(f"The disk that holds {place} is full.", hint=hint)
    if error.errno in _FORBIDDEN:
        return SinkError(f"{place} may not be written to: {os.strerror(error.errno or 0).lower()}.")
    if error.errno in _NO_FOLDER:
        return SinkError(f"{place} is not a folder.")
    return SinkError(f"{place} cannot be written: {error.strerror or error}.")


def _write_synced(path: Path, data: bytes, mode: int) -> None:
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


def read_bounded(path: Path, most: int) -> bytes:
    """Reads a file of at most ``most`` bytes, possibly a pipe or a device. Raises ``OSError``."""
    with path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise OSError(errno.EFBIG, f"it has more than {most:,} bytes")
    return data
