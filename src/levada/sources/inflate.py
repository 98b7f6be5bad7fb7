"""Gzip files become plain files once, in scratch, so that ranges of them can be referenced and read by many tasks.

The plain file's name follows from the stream, the file's name, its size and its time of change, and it appears whole or not
at all (written beside, then renamed): a restart finds it again, a file that has grown gets another. Offsets everywhere are
those of the decompressed text. Several gzip members in one file are one text.
"""

from __future__ import annotations

import gzip
import os
import shutil
import zlib
from pathlib import Path

import xxhash

from levada.errors import SourceError

_COPY = 1 << 20


def inflate(stream: str, name: str, path: str, scratch: Path, *, finished: bool) -> Path | None:
    """The plain file of the gzip file at ``path``; None if it is not whole yet (an error once it is ``finished``)."""
    try:
        status = os.stat(path)
        version = xxhash.xxh3_64_hexdigest(f"{stream}\0{name}\0{status.st_size}\0{status.st_mtime_ns}".encode())
        target = scratch / f"{version}.plain"
        if status.st_size and not target.exists():
            scratch.mkdir(parents=True, exist_ok=True)
            _inflate_to(path, target)
        return target if status.st_size else None
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        if not finished:
            return None
        raise SourceError(f"The file {path} of the stream {stream} is not a whole gzip file: {error}.") from error
    except OSError as error:
        raise SourceError(f"The file {path} of the stream {stream} cannot be decompressed: {error}.") from error


def _inflate_to(path: str, target: Path) -> None:
    beside = target.with_suffix(f".{os.getpid()}.tmp")
    try:
        with gzip.open(path, "rb") as packed, open(beside, "wb") as plain:
            shutil.copyfileobj(packed, plain, _COPY)
        os.replace(beside, target)
    finally:
        beside.unlink(missing_ok=True)
