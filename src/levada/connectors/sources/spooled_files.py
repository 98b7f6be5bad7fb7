"""Files of a spool, whose names have the hash of their bytes: rows that were accepted, and wait in
the checkpoint for their epoch (``connectors.spool``).

    000000000000012.x78af5f94892f3950.nq

A file is there whole or not at all: it was durable under another name before it got this one, and
nobody adds to it. So one with other bytes is damage, never what a crash has left, and nothing of it
is used. The driver checks the whole file when it first looks at it, and cuts the bytes that it has
checked; a task checks a text by the hashes of the pieces that were cut, Parquet as a whole.

Cost: xxh3 at the speed of memory, in a driver and a task. What is larger than ``WHOLE`` is not held
in memory: it is checked by blocks when the driver first looks at it, and Parquet by nobody after
that.
"""

from __future__ import annotations

import os
import re

import numpy as np
import pyarrow as pa
import xxhash

from levada.core.array_types import Bytes
from levada.core.checksum_messages import ALTERED
from levada.errors import CheckpointError, SourceError, unreadable

WHOLE = 64 << 20
"""Bytes of a file that is read as a whole."""
GIVEN_UP = ".part"
"""The ending of a file that is not read any more; its name still says what has been here."""
_BLOCK = 1 << 20
_DIGEST = re.compile(r"\.x([0-9a-f]{16})\.")
_NUMBERS = re.compile(r"([0-9]{15})(?:-([0-9]{7}))?\.")


def spooled_name(stem: str, ending: str, data: bytes) -> str:
    """The name of a file with these bytes.

    >>> spooled_name("12", ".nq", b"abc")
    '12.x78af5f94892f3950.nq'
    """
    return f"{stem}.x{xxhash.xxh3_64_hexdigest(data)}{ending}"


def damage_error(path: str, reason: str = ALTERED) -> CheckpointError:
    """The error of a file whose bytes are others than were accepted."""
    name = os.path.basename(path)
    way = f"rename that file to {name}{GIVEN_UP}: the rows in it are lost then"
    return unreadable(path, reason, way=way)


def check_spooled(path: str, digest: str) -> None:
    """Raises ``CheckpointError`` if the bytes with this hash are not what the name of a file says.

    >>> check_spooled("spool/12.x78af5f94892f3950.nq", "78af5f94892f3950")
    """
    name = _DIGEST.search(os.path.basename(path))
    if name is None or name[1] != digest:
        raise damage_error(path)


def check_file(path: str) -> int:
    """Reads a file to its end, by blocks; its bytes. Raises ``CheckpointError``."""
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
    """The bytes of a file; None if it is larger than ``WHOLE``. Raises ``CheckpointError`` if they
    are others than its name says.
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
    """The number of a file, or of its first message, and that of the file behind it; None for one
    of a spool whose numbers have gaps.

    >>> numbers("000000000000012.x78af5f94892f3950.nq"), numbers("000000000012.nt")
    ((12, 13), None)
    >>> numbers("000000000000012-0000003.x78af5f94892f3950.parquet")
    (12, 15)
    """
    match = _NUMBERS.match(name)
    return None if match is None else (int(match[1]), int(match[1]) + int(match[2] or 1))


def is_next(folder: str, before: str, name: str) -> bool:
    """Whether nothing is between these two files of a spool but what is not read any more; False
    also if it has just come. Raises ``CheckpointError`` if something is missing.
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


def parquet_of(path: str, data: Bytes | None) -> str | pa.BufferReader:
    """What Parquet is read from: its bytes, if they are there."""
    return path if data is None else pa.BufferReader(data)
