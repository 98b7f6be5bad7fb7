"""Reads packed files: gzip (``.gz``) and Zstandard (``.zst``), directly or unpacked once.

A stream's packed files become plain files in scratch, so that ranges of them can be referenced and
read by many tasks. The plain file's name depends on the stream, the file's name, its size and its
time of change. It is written under another name, then renamed: a restart finds it again, and a file
that has grown gets another. All offsets are those of the unpacked text. Several gzip members or
Zstandard frames in one file are one text.
"""

from __future__ import annotations

import gzip
import io
import os
import secrets
import shutil
import zlib
from pathlib import Path
from typing import IO, cast

import pyarrow as pa
import xxhash

from levada.connectors.config.input_formats import PACKED
from levada.connectors.sources.regular_files import open_file, reopen
from levada.core.checkpoint_files import create
from levada.errors import FileFault, SourceError

_COPY = 1 << 20
_NAMES = {".gz": "gzip", ".zst": "Zstandard"}
DAMAGED = (EOFError, zlib.error, gzip.BadGzipFile)


def is_packed(name: str) -> bool:
    """Whether a file's name has the extension of a packed file.

    >>> is_packed("a.nt.gz"), is_packed("a.NQ.ZST"), is_packed("a.nt")
    (True, True, False)
    """
    return name.lower().endswith(PACKED)


def open_(path: str | os.PathLike[str]) -> IO[bytes]:
    """Opens a file and unpacks it by its extension.

    Reading damaged data raises one of ``DAMAGED`` or an ``OSError`` without a number.
    """
    name = os.fspath(path).lower()
    if name.endswith(".gz"):
        return cast(IO[bytes], reopen(path, gzip.open))
    if name.endswith(".zst"):
        return _Unpacked(path)
    return open_file(path)


class _Unpacked(io.BufferedReader):
    """A Zstandard file that is unpacked while it is read."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._stream = pa.CompressedInputStream(reopen(path, pa.OSFile), "zstd")
        super().__init__(cast(io.RawIOBase, self._stream), _COPY)


def inflate(stream: str, name: str, path: str, scratch: Path, *, finished: bool) -> Path | None:
    """Returns the plain file of the packed file at ``path``; None if it is not complete yet (an
    error if it is ``finished``).
    """
    try:
        status = os.stat(path)
        version = xxhash.xxh3_64_hexdigest(
            f"{stream}\0{name}\0{status.st_size}\0{status.st_mtime_ns}".encode()
        )
        target = scratch / f"{version}.plain"
        if status.st_size and not target.exists():
            scratch.mkdir(parents=True, exist_ok=True)
            _inflate_to(path, target)
        return target if status.st_size else None
    except (*DAMAGED, OSError) as error:
        damaged = isinstance(error, DAMAGED) or error.errno is None
        if damaged and not finished:
            return None
        if damaged:
            form = _NAMES[Path(path).suffix.lower()]
            raise FileFault(
                f"The file {path} of the stream {stream} is not a whole {form} file: {error}."
            ) from error
        raise SourceError(
            f"The file {path} of the stream {stream} cannot be unpacked: {error}."
        ) from error


def _inflate_to(path: str, target: Path) -> None:
    beside = target.with_suffix(f".{secrets.token_hex(8)}.tmp")
    try:
        with open_(path) as packed, create(beside) as plain:
            shutil.copyfileobj(packed, plain, _COPY)
        os.replace(beside, target)
    finally:
        beside.unlink(missing_ok=True)
