"""Reads the file of a logical source: unpacks it, and decodes it to UTF-8.

Cost: the text in memory, and once more to unpack or decode.
"""

from __future__ import annotations

import gzip
import io
import lzma
import tarfile
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import IO, cast

import numpy as np
import pyarrow as pa

from levada.connectors.config.rml.logical_source import LogicalSource
from levada.core.array_types import Bytes
from levada.errors import SourceError

MAX_BYTES = 4 << 30
"""The most bytes of a source, unpacked."""
_BY_NAME = {".tar.gz": "targz", ".tar.xz": "tarxz", ".gz": "gzip", ".zip": "zip", ".zst": "zstd"}
_DAMAGED = (
    EOFError,
    zlib.error,
    lzma.LZMAError,
    gzip.BadGzipFile,
    tarfile.TarError,
    zipfile.BadZipFile,
)


def read_file(source: LogicalSource, path: Path) -> Bytes:
    """Returns the text of a source as UTF-8. Raises ``SourceError`` for a file that cannot be read,
    unpacked or decoded.
    """
    try:
        data = _unpack(path, _compression(source, path))
    except OSError as error:
        raise SourceError(f"The file {path} cannot be read: {error.strerror or error}.") from error
    except (*_DAMAGED, RuntimeError, NotImplementedError) as error:
        # zipfile raises these for members with a password, or packed in a way that it lacks
        raise SourceError(f"The file {path} cannot be unpacked: {error}.") from error
    if source.encoding != "utf-8":
        try:
            data = data.decode(source.encoding).encode()
        except UnicodeError as error:
            raise SourceError(f"The file {path} is not {source.encoding.upper()}.") from error
    return np.frombuffer(bytearray(data), np.uint8)


def _compression(source: LogicalSource, path: Path) -> str:
    """Returns how a file is packed; without a word of the mapping by its name."""
    name = path.name.lower()
    by_name = next((word for ending, word in _BY_NAME.items() if name.endswith(ending)), "none")
    return source.compression or by_name


def _unpack(path: Path, compression: str) -> bytes:
    match compression:
        case "none":
            return _read_bounded(path.open("rb"), path)
        case "gzip":
            return _read_bounded(cast(IO[bytes], gzip.open(path, "rb")), path)
        case "zstd":
            packed = pa.CompressedInputStream(pa.OSFile(str(path)), "zstd")
            return _read_bounded(io.BufferedReader(cast(io.RawIOBase, packed)), path)
        case "zip":
            with zipfile.ZipFile(path) as archive:
                names = [each.filename for each in archive.infolist() if not each.is_dir()]
                return _read_bounded(archive.open(_only(names, path)), path)
        case _:
            mode = "r:gz" if compression == "targz" else "r:xz"
            with tarfile.open(path, mode) as archive:  # type: ignore[call-overload]
                files = [each for each in archive if each.isfile()]
                name = _only([each.name for each in files], path)
                member = archive.extractfile(name)
                assert member is not None, "a file has a content"
                return _read_bounded(member, path)


def _only(names: Sequence[str], path: Path) -> str:
    if len(names) != 1:
        raise SourceError(f"The archive {path} has {len(names)} files: a source is one.")
    return names[0]


def _read_bounded(file: IO[bytes], path: Path) -> bytes:
    """Reads a file of a bounded size."""
    with file:
        data = file.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise SourceError(f"The file {path} has more than {MAX_BYTES >> 30} GB.")
    return data
