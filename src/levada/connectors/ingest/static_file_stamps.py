"""Checks that a static file has not changed since its reading began.

A file may be read by several tasks, in parts, and again by a task that Spark repeats. All must read
one content. The driver writes the size and time of the file into its parts, and each task compares
them after reading. Cost: a ``stat`` a part.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime

from levada.connectors.ingest.static_files import StaticFile
from levada.errors import SourceError

Stamp = tuple[int, int]
"""Size (bytes) and time of the last change (ns)."""


def read_stamp(file: StaticFile) -> Stamp:
    """Returns the present stamp of the file. Raises ``SourceError``."""
    try:
        stat = os.stat(file.path)
    except OSError as error:
        raise SourceError(
            f"The static file {file.name} cannot be read: {error.strerror}."
        ) from error
    return stat.st_size, stat.st_mtime_ns


def check_seen(file: StaticFile, seen: Stamp) -> None:
    """Raises ``SourceError`` if the file has changed."""
    now = read_stamp(file)
    if now != seen:
        raise SourceError(
            f"The static file {file.name} was changed while it was read: "
            f"it was {_describe_stamp(seen)}, and is {_describe_stamp(now)}.",
            hint="Nothing of it was taken in. Start again when it is whole.",
        )


def _describe_stamp(stamp: Stamp) -> str:
    """Describes a stamp for people.

    >>> _describe_stamp((7, 1_500_000_000))
    '7 bytes of 1970-01-01T00:00:01.500000Z'
    """
    when = datetime.fromtimestamp(stamp[1] / 1e9, UTC)
    return f"{stamp[0]:,} bytes of {when:%Y-%m-%dT%H:%M:%S.%f}Z"
