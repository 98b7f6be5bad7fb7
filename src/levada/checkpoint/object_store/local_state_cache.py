"""A cache of state files on the host's own disk, for a checkpoint on storage that hosts share.

A state file never changes once a manifest names it, and its name contains a part of its hash. A
host copies a file when a task first reads it there. So the state of a partition that stays is
transferred once, and a moved partition transfers its moved bytes. Without ``LEVADA_HOST_CACHE``
(bytes) there are no copies: the page cache serves data that fit into memory.

A copy is written to a temporary name and renamed, so workers share copies without a lock. A file
that cannot be copied or read back is read from its original place, so the cache causes no failure.
A full disk is reported once a process.
"""

from __future__ import annotations

import os
import secrets
import shutil
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from hashlib import blake2b
from pathlib import Path

from levada.core.cache_folder import cache_folder
from levada.core.query_limits import most_of
from levada.errors import UsageError

VARIABLE = "LEVADA_HOST_CACHE"
LARGEST = 4  # a file that takes more than such a part of the room is not copied
LOOKS = 16  # a process looks at all copies whenever it has added such a part of the room


@dataclass(slots=True)
class HostCopies:
    """The copies below ``folder``, of at most ``most`` bytes, plus those that each process of the
    host has added since its last check. The least recently used ones are deleted first.
    """

    folder: Path
    most: int
    _added: int = field(default=-1, init=False)  # bytes; below 0: it has not looked yet
    _off: bool = field(default=False, init=False)

    def copy(self, root: str, name: str) -> str:
        """Returns the copy of a state file of the checkpoint in ``root``, and makes it if possible;
        "": there is none.
        """
        path = os.path.join(root, name)
        copy = self._copy_of(path)
        try:
            os.utime(copy)  # the last ones used are kept
            return copy
        except OSError:
            return copy if not self._off and self._make_copy(path, copy) else ""

    def forget(self, root: str, name: str) -> None:
        """Deletes a wrong copy."""
        with suppress(OSError):
            os.unlink(self._copy_of(os.path.join(root, name)))

    def _copy_of(self, path: str) -> str:
        digest = blake2b(os.path.abspath(path).encode(), digest_size=16).hexdigest()
        return os.path.join(self.folder, digest)

    def _make_copy(self, path: str, copy: str) -> bool:
        beside = f"{copy}.{secrets.token_hex(4)}"
        try:
            size = os.path.getsize(path)
            if size * LARGEST > self.most:
                return False
            self._make_room(size)
            shutil.copyfile(path, beside)
            os.rename(beside, copy)
            return True
        except FileNotFoundError:
            return False  # whoever reads it says so
        except OSError as error:
            self._off = True
            with suppress(OSError):
                os.unlink(beside)
            warnings.warn(
                f"State cannot be kept in {self.folder} ({os.strerror(error.errno or 0)}): it is "
                f"read from the checkpoint. Make room there, or say less in {VARIABLE}.",
                stacklevel=2,
            )
            return False

    def _make_room(self, size: int) -> None:
        """Deletes the least recently used copies, now and then."""
        if 0 <= self._added < self.most // LOOKS:
            self._added += size
            return
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        copies = []
        for entry in os.scandir(self.folder):
            with suppress(OSError):  # another process has deleted it
                stat = entry.stat()
                copies.append((stat.st_mtime_ns, stat.st_size, entry.path))
        over = sum(one[1] for one in copies) + size - self.most
        for _, freed, path in sorted(copies):
            if over <= 0:
                break
            with suppress(OSError):
                os.unlink(path)
            over -= freed
        self._added = size


@cache
def host_copies() -> HostCopies | None:
    """Returns this host's copies, if they are enabled. Raises ``UsageError``."""
    most = bytes_of(os.environ)
    return HostCopies(cache_folder() / "state", most) if most else None


def bytes_of(environ: Mapping[str, str]) -> int:
    """Returns the limit of copies in bytes; 0: there are none.

    >>> bytes_of({"LEVADA_HOST_CACHE": "10GB"}), bytes_of({})
    (10000000000, 0)
    """
    text = environ.get(VARIABLE, "")
    if text in ("", "0"):
        return 0
    try:
        return most_of(VARIABLE, text, sized=True)
    except UsageError:
        raise UsageError(
            f"{VARIABLE} is {text!r}.", hint=f"Say a size: {VARIABLE}=10GB, or 0 for none."
        ) from None
