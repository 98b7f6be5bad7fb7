"""Files of a checkpoint: their modes, and the modes of their folders.

A folder's mode decides the users that may read and write its content.

A checkpoint contains rows, queries and the names of users that requested them, so a new one is
private to its owner. Every file that any process makes in it later has the mode of its folder; the
umask may restrict it. Cost: a ``stat`` a folder in each process.
"""

from __future__ import annotations

import os
from functools import lru_cache
from io import BufferedWriter, FileIO
from pathlib import Path
from typing import Literal

import msgspec

from levada.core.checksummed_files import ALTERED, unseal
from levada.errors import CheckpointError, UsageError, unreadable

MODES = {"owner": 0o700, "group": 0o770, "all": 0o755}
"""Modes of folders: only the owner may look; the group may read and write; all may read."""


def parse_mode(text: str) -> int | None:
    """The mode of folders that a word means; None: none is said. Raises ``UsageError``.

    >>> parse_mode("group") == 0o770, parse_mode("")
    (True, None)
    """
    if text not in ("", *MODES):
        raise UsageError(
            f"A checkpoint has no mode {text}.", hint=f"Say one of {', '.join(MODES)}."
        )
    return MODES[text] if text else None


@lru_cache(maxsize=4096)
def file_mode(folder: str | os.PathLike[str]) -> int:
    """The mode of new files in a folder. Raises ``OSError``."""
    return os.stat(folder).st_mode & 0o666


def folder_mode(mode: int) -> int:
    """Returns the mode of a folder for files of this mode: users that may read them may enter
    it.

    >>> oct(folder_mode(0o640))
    '0o750'
    """
    return mode | (mode & 0o444) >> 2


def create(path: Path, kind: Literal["wb", "ab"] = "wb") -> BufferedWriter:
    """Opens a file of the checkpoint to write it; a new one has its folder's mode."""
    how = os.O_TRUNC if kind == "wb" else os.O_APPEND
    flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | how
    return BufferedWriter(FileIO(os.open(path, flags, file_mode(path.parent)), kind))


def sync_folder(folder: Path | str) -> None:
    """Makes the names in a folder durable. Raises ``OSError``."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def set_mode(root: Path, mode: int) -> None:
    """Gives a checkpoint's folder and its content this mode. Files of other users stay
    unchanged.
    """
    if os.stat(root).st_mode & 0o777 == mode:
        return
    for folder, _, names in os.walk(root):
        _change(folder, mode)
        for name in names:
            _change(os.path.join(folder, name), mode & 0o666)
    file_mode.cache_clear()


def _change(path: str, mode: int) -> None:
    try:
        os.chmod(path, os.stat(path).st_mode & 0o7000 | mode)
    except (PermissionError, FileNotFoundError):
        return


# The facts that are fixed for a checkpoint, in its file ``levada.json``.


FORMAT = 27
_UPGRADE = (
    "Install the version that wrote it and run it with --once, which publishes all results. "
    "Then start this version with an empty folder: docs/upgrade.md."
)


class Facts(msgspec.Struct):
    """The fixed facts of a checkpoint."""

    format: int
    seed: int
    id: str


class _Version(msgspec.Struct):
    """The fields that every format of ``levada.json`` has."""

    format: int


def facts_of(root: Path) -> Facts:
    """Returns the fixed facts of the checkpoint in this folder. Raises ``CheckpointError`` if the
    folder is not a checkpoint, or has another format.
    """
    path = root / "levada.json"
    try:
        data = path.read_bytes()
        facts = unseal(data)
        made = msgspec.json.decode(data if facts is None else facts, type=_Version).format
        # formats before 9 are one line without a seal
        if made != FORMAT and (facts is not None or b"\n" not in data):
            raise CheckpointError(
                f"The checkpoint {root} has format {made}, and this version of Levada reads format "
                f"{FORMAT}: go on with the version that made it, or start anew in an empty folder.",
                hint="" if made > FORMAT else _UPGRADE,
            )
        if facts is None:
            raise unreadable(path, ALTERED)
        return msgspec.json.decode(facts, type=Facts)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise CheckpointError(f"{root} is not a checkpoint of Levada.") from error
    except PermissionError as error:
        raise CheckpointError(
            f"The checkpoint {root} may not be read: it is somebody else's.",
            hint="Its owner opens it: levada run --checkpoint-mode group, or all.",
        ) from error
    except OSError as error:
        raise unreadable(path, str(error.strerror)) from error
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise unreadable(path, ALTERED) from error
