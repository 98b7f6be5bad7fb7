"""Small files of the checkpoint, written durably: there whole, or not at all."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from levada.errors import CheckpointError

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def write_once(path: Path, data: bytes) -> bool:
    """Creates a file with this content, durably, only if it is absent; else False."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        try:
            os.link(temporary, path)
        except FileExistsError:
            return False
        finally:
            temporary.unlink(missing_ok=True)
        _sync(path.parent)
    except OSError as error:
        raise unwritable(path.parent.parent, error) from error
    return True


def replace_file(path: Path, data: bytes) -> None:
    """Gives a file this content, durably; readers see the old one or the new one whole."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(exist_ok=True)
        with temporary.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
        _sync(path.parent)
    except OSError as error:
        raise unwritable(path.parent.parent, error) from error


def _sync(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def unwritable(root: str | Path, error: OSError) -> CheckpointError:
    """Why the checkpoint in this folder cannot be written, and what to do."""
    if not os.path.isdir(root):
        return CheckpointError(
            f"The checkpoint {root} is gone: it was deleted or moved while it was in use.",
            hint="Bring it back, or start anew in an empty folder.",
        )
    done = {
        **dict.fromkeys(_FULL, "Make room"),
        errno.ENOENT: "Bring back what was deleted there",
    }.get(error.errno or 0, "Mend that")
    return CheckpointError(
        f"The checkpoint {root} cannot be written: {error.strerror or error}.",
        hint=f"{done} and start again: the run goes on after the last epoch that was committed.",
    )
