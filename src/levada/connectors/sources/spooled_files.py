"""Checks the files of a spool, whose names contain the hash of their bytes: accepted rows that wait
in the checkpoint for their epoch (``connectors.spool``).

    000000000000012.x78af5f94892f3950.nq

A file exists completely or not at all: it was durable under another name before it got this one,
and nothing appends to it. So other bytes are damage, never the effect of a crash, and nothing of
the file is used. The driver checks the whole file at the first look, and cuts the checked bytes. A
task checks a text by the hashes of the cut pieces, Parquet as a whole.

Cost: xxh3 at the speed of memory, in a driver and a task. A file larger than ``WHOLE`` is not kept
in memory: the driver checks it by blocks at the first look, and nothing checks Parquet after that.
"""

from __future__ import annotations

import os
import re

import numpy as np
import pyarrow as pa
import xxhash

from levada.connectors.sources.regular_files import open_arrow
from levada.core.array_types import Bytes
from levada.core.checksummed_files import ALTERED
from levada.errors import CheckpointError, SourceError, unreadable

WHOLE = 64 << 20
"""The most bytes of a file that is read as a whole."""
GIVEN_UP = ".part"
"""The extension of a file that is no longer read; its name still records its contents."""
_BLOCK = 1 << 20
_DIGEST = re.compile(r"\.x([0-9a-f]{16})\.")
_NUMBERS = re.compile(r"([0-9]{15})(?:-([0-9]{7}))?\.")


def spooled_name(stem: str, ending: str, data: bytes) -> str:
    """Returns the name of a file with these bytes.

    >>> spooled_name("12", ".nq", b"abc")
    '12.x78af5f94892f3950.nq'
    """
    return f"{stem}.x{xxhash.xxh3_64_hexdigest(data)}{ending}"


def damage_error(path: str, reason: str = ALTERED) -> CheckpointError:
    """Returns the error of a file whose bytes have changed."""
    name = os.path.basename(path)
    way = f"rename that file to {name}{GIVEN_UP}: the rows in it are lost then"
    return unreadable(path, reason, way=way)


def check_spooled(path: str, digest: str) -> None:
    """Raises ``CheckpointError`` if the hash of the bytes differs from the name of a file.

    >>> check_spooled("spool/12.x78af5f94892f3950.nq", "78af5f94892f3950")
    """
    name = _DIGEST.search(os.path.basename(path))
    if name is None or name[1] != digest:
        raise damage_error(path)


def check_file(path: str) -> int:
    """Reads a file to its end, by blocks; returns its size in bytes. Raises ``CheckpointError``."""
    digest, size = xxhash.xxh3_64(), 0
    try:
        with open(path, "rb", buffering=0) as file:
            while block := file.read(_BLOCK):
                digest.update(block)
                size += len(block)
    except OSError as error:
        raise SourceError(f"The file {path} cannot be read: {error.strerror}.") from error
    check_spooled(path, digest.hexdigest())
    return size


def read_spooled(path: str) -> Bytes | None:
    """Reads the bytes of a file; None if it is larger than ``WHOLE``. Raises ``CheckpointError`` if
    they differ from its name.
    """
    try:
        with open(path, "rb", buffering=0) as file:
            size = os.fstat(file.fileno()).st_size
            if size > WHOLE:
                return None
            data = np.empty(size, np.uint8)
            done = 0
            while done < size and (n := file.readinto(data.data[done:])):
                done += n
    except OSError as error:
        raise SourceError(f"The file {path} cannot be read: {error.strerror}.") from error
    check_spooled(path, xxhash.xxh3_64_hexdigest(data[:done].data))
    return data


def numbers(name: str) -> tuple[int, int] | None:
    """Returns the number of a file, or of its first message, and that of the next file; None for a
    file of a spool whose numbers have gaps.

    >>> numbers("000000000000012.x78af5f94892f3950.nq"), numbers("000000000012.nt")
    ((12, 13), None)
    >>> numbers("000000000000012-0000003.x78af5f94892f3950.parquet")
    (12, 15)
    """
    match = _NUMBERS.match(name)
    return None if match is None else (int(match[1]), int(match[1]) + int(match[2] or 1))


def is_next(folder: str, before: str, name: str) -> bool:
    """Whether there is no unread file between these two files of a spool; False also if one has
    just been added. Raises ``CheckpointError`` if a file is missing.
    """
    first, second = numbers(before), numbers(name)
    if first is None or second is None or first[1] >= second[0]:
        return True
    there = sorted(n for n in os.listdir(folder) if n[0] != "." and before < n < name)
    wanted = first[1]
    for numbers_of_file in map(numbers, there):
        if numbers_of_file is not None and numbers_of_file[0] == wanted:
            wanted = numbers_of_file[1]
    if wanted != second[0]:
        count = f"-{second[0] - wanted:07d}" if "-" in name else ""
        way = f"make an empty file {wanted:015d}{count}{GIVEN_UP} there: the rows are lost then"
        raise unreadable(folder, f"its file number {wanted} is missing", way=way)
    return all(between.endswith(GIVEN_UP) for between in there)


def parquet_of(path: str, data: Bytes | None) -> pa.NativeFile:
    """Returns the source from which Parquet is read: its bytes, if they are present."""
    return open_arrow(path) if data is None else pa.BufferReader(data)
