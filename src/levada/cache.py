"""Where Levada keeps what any run may make again: compiled kernels, tables of parsers, a Java home.

``LEVADA_CACHE``, else ``~/.cache/levada``. Kernels must lie somewhere, also where neither can be
written or there is no home: then in a folder of the user's below the temporary folder, with a
warning. A folder there that somebody else made is not trusted: what lies in it is run.
"""

from __future__ import annotations

import functools
import hashlib
import os
import stat
import sys
import tempfile
import warnings
from collections.abc import Mapping
from pathlib import Path


def cache_folder(environ: Mapping[str, str] | None = None) -> Path:
    """``LEVADA_CACHE``, else ``~/.cache/levada``; of a user without a home, in the temporary
    folder.

    >>> cache_folder({"LEVADA_CACHE": "/tmp/cache"}).as_posix()
    '/tmp/cache'
    """
    given = (os.environ if environ is None else environ).get("LEVADA_CACHE", "")
    if given:
        return Path(given)
    try:
        return Path.home() / ".cache" / "levada"
    except RuntimeError:
        return _temporary()


@functools.cache
def parser_file(grammar: str) -> str:
    """Where the tables of the parser of a grammar are kept; "" if nothing can be.

    They follow from the grammar (0.3 s a grammar), and Lark makes them anew if it is another.
    """
    folder = cache_folder() / "parsers"
    if not _is_writable(folder) or not _is_mine(folder.parent):
        return ""
    name = hashlib.sha256(grammar.encode()).hexdigest()[:16]
    return str(folder / f"{name}-{sys.version_info[0]}.{sys.version_info[1]}.lark")


@functools.cache
def kernel_folder() -> Path:
    """Where compiled kernels are kept: a folder that can be written. Looked for once a process."""
    wanted = cache_folder() / "kernels"
    if _is_writable(wanted):
        return wanted
    found = _temporary() / "kernels"
    if not _is_writable(found) or not _is_mine(found.parent):
        found = Path(tempfile.mkdtemp(prefix="levada-kernels-"))
    warnings.warn(
        f"The cache folder {wanted} cannot be written; compiled kernels are kept in {found}. "
        "Set LEVADA_CACHE to a folder that lasts.",
        stacklevel=2,
    )
    return found


def not_kept(error: OSError) -> None:
    """Something could not be written into the cache: it goes on without. Says so once a process."""
    if _TOLD:
        return
    _TOLD.append(error)
    warnings.warn(
        f"The cache {cache_folder()} cannot be written ({os.strerror(error.errno or 0)}): what is "
        "compiled is kept for this process alone, and every start takes seconds longer. Make room "
        "there, or set LEVADA_CACHE to a folder that has some.",
        stacklevel=2,
    )


_TOLD: list[OSError] = []


def _temporary() -> Path:
    return Path(tempfile.gettempdir()) / f"levada-cache-{os.getuid()}"


def _is_writable(folder: Path) -> bool:
    try:
        folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder.mkdir(exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _is_mine(folder: Path) -> bool:
    found = folder.lstat()
    mine = stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid()
    return mine and not found.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
