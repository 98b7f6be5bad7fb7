"""The cache folder, for files that any run can make again: compiled kernels, tables of parsers, a
Java home.

``LEVADA_CACHE``, else ``~/.cache/levada``. Kernels, tables and the Java home are code: numba and
Lark keep theirs as pickles. So Levada loads them only from a folder that no other user can write
(``unsafe``). If the folder fails that check, or cannot be written, Levada warns and uses its own
folder below the temporary folder, which passes the same check, or else a new one.
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
from typing import Any


def cache_folder(environ: Mapping[str, str] | None = None) -> Path:
    """``LEVADA_CACHE``, else ``~/.cache/levada``; of a user without a home, in the temporary
    folder.

    >>> cache_folder({"LEVADA_CACHE": "/tmp/cache"}).as_posix()
    '/tmp/cache'
    """
    configured = (os.environ if environ is None else environ).get("LEVADA_CACHE", "")
    if configured:
        return Path(configured)
    try:
        return Path.home() / ".cache" / "levada"
    except RuntimeError:
        return _temporary()


def code_folder(environ: Mapping[str, str] | None = None) -> Path:
    """The folder that has code below it: ``cache_folder()`` if it is safe and can be written."""
    return _code_folder(cache_folder(environ))


@functools.cache
def _code_folder(wanted: Path) -> Path:
    real = Path(os.path.realpath(wanted))
    if not (reason := _unusable(real, CODE)):
        return real
    fallback = _temporary()
    if fallback.is_symlink() or _unusable(fallback, CODE):
        fallback = Path(tempfile.mkdtemp(prefix="levada-cache-"))
    warnings.warn(
        f"The cache folder {wanted} is not used: {reason}. Compiled kernels are kept in "
        f"{fallback}. Set LEVADA_CACHE to a folder that lasts and that only you can write.",
        stacklevel=2,
    )
    return fallback


CODE = ("kernels", "parsers", "java")
"""Beginnings of the names of folders with code below a cache folder."""


def parser_file(grammar: str) -> str:
    """The file for the tables of a grammar's parser; "" if it cannot be written.

    They follow from the grammar (0.3 s a grammar), and Lark makes them anew if it is another.
    """
    folder = code_folder() / "parsers"
    if not _is_writable(folder):
        return ""
    name = hashlib.sha256(grammar.encode()).hexdigest()[:16]
    return str(folder / f"{name}-{sys.version_info[0]}.{sys.version_info[1]}.lark")


@functools.cache
def kernel_folder() -> Path:
    """The folder of compiled kernels: ``NUMBA_CACHE_DIR`` if that is set and safe, else below
    ``code_folder()``.
    """
    if configured := os.environ.get("NUMBA_CACHE_DIR", ""):
        real = Path(os.path.realpath(configured))
        if not (reason := _unusable(real, None)):
            return real
        warnings.warn(f"NUMBA_CACHE_DIR {configured} is not used: {reason}.", stacklevel=2)
    folder = code_folder() / "kernels"
    _is_writable(folder)
    return folder


def cache_compiled(dispatcher: Any, stamp: str = "") -> None:
    """Has numba keep a function's compiled code in ``kernel_folder()`` and load it from there.

    ``stamp``: the version of the function's source, where its file does not say all.
    """
    import numba  # here: most of what needs a cache folder needs no numba

    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = str(kernel_folder())
    try:
        dispatcher.enable_caching()
    finally:
        numba.config.CACHE_DIR = before
    if stamp:
        dispatcher._cache._cache_file._source_stamp = stamp


def warn_not_cached(error: OSError) -> None:
    """Warns, once a process, that something could not be written into the cache; work continues
    without it.
    """
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


def _unusable(folder: Path, parts: tuple[str, ...] | None) -> str:
    """Why code must not be loaded from a folder, or cannot be kept there; "" if it may and can."""
    try:
        return unsafe(folder, parts) or ("" if _is_writable(folder) else "it cannot be written")
    except OSError as error:
        return f"it cannot be read ({error.strerror})"


def unsafe(folder: Path, parts: tuple[str, ...] | None = None) -> str:
    """Returns how another user could write into a folder; "" if no other user can.

    The folders above it belong to this user or to root, and no others can write them or rename what
    is there. The folder and all below it (``parts``: below those entries whose names begin so)
    belong to this user or to root, and others cannot reach or cannot write them. A folder that does
    not exist yet is safe if those above it are. Cost: some microseconds an entry.

    >>> unsafe(Path(tempfile.mkdtemp()))
    ''
    """
    for above in reversed(folder.parents):
        if not above.exists():
            return ""
        if reason := _unsafe_entry(above, sticky=True):
            return reason
    return _unsafe_tree(folder, parts) if os.path.lexists(folder) else ""


_BY_OTHERS = stat.S_IWGRP | stat.S_IWOTH


def _unsafe_entry(path: str | Path, *, sticky: bool = False, hidden: bool = False) -> str:
    """Returns how another user could write an entry. ``sticky``: others may make files there, if
    they cannot rename those of this user; ``hidden``: no others can reach it.
    """
    state = os.lstat(path)
    if state.st_uid not in (0, os.getuid()):
        return f"{path} belongs to another user"
    if stat.S_ISLNK(state.st_mode):
        return f"{path} is a link"
    open_to = 0 if hidden or (sticky and state.st_mode & stat.S_ISVTX) else _BY_OTHERS
    return f"other users can write {path}" if state.st_mode & open_to else ""


def _unsafe_tree(folder: Path, parts: tuple[str, ...] | None) -> str:
    pending = [(str(folder), False)]
    while pending:
        path, hidden = pending.pop()
        if reason := _unsafe_entry(path, hidden=hidden):
            return reason
        if os.path.isdir(path):
            hidden = hidden or not os.lstat(path).st_mode & (stat.S_IRWXG | stat.S_IRWXO)
            names = os.listdir(path)
            if parts is not None and path == str(folder):
                names = [name for name in names if name.startswith(parts)]
            pending += [(os.path.join(path, name), hidden) for name in names]
    return ""


def _is_writable(folder: Path) -> bool:
    """Whether files can be made in a folder; makes the folder, for its owner alone."""
    try:
        folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        folder.mkdir(exist_ok=True, mode=0o700)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False
