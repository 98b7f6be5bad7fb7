"""Writes elements that are in no window as NDJSON: late elements and dead letters.

    dead-letter/000000007-0000.ndjson    {"stream", "source", "offset", "reason", "text"}
    late/000000007-0000.ndjson           {"stream", "source", "offset", "ts", "watermark", "text",
                                          "reason"}

They are in ``--out``, or in the checkpoint with ``--out -``. Names and atomicity are as in
``file_sink``. Cost: linear; letters are rare, so a Python mapping for each is cheap enough.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Any

import msgspec
import xxhash

from levada.core.durable_files import write_atomic
from levada.core.frozen import frozen


class Letter(StrEnum):
    """The two kinds; the value is the folder's name, which no query may have."""

    LATE = "late"
    DEAD = "dead-letter"


@frozen
class LetterFiles:
    """Publishes letters below ``folder``, as files of this ``mode``."""

    folder: Path
    mode: int = 0o666

    def publish(
        self, kind: Letter, epoch: int, records: Iterable[Mapping[str, Any]], part: int = 0
    ) -> list[str]:
        """Writes one file of an epoch's letters, in the given order; returns its name below
        ``folder``, or none without letters.
        """
        data = msgspec.json.Encoder().encode_lines([dict(record) for record in records])
        if not data:
            return []
        name = f"{kind}/{epoch:09d}-{part:04d}.ndjson"
        write_atomic(self.folder / name, data, self.mode)
        return [name]

    def publish_of_table(self, records: Iterable[Mapping[str, Any]]) -> None:
        """Writes the refused rows of a static table, which has no epoch, under a name by content:
        a table that is read again adds no letters.
        """
        data = msgspec.json.Encoder().encode_lines([dict(record) for record in records])
        path = self.folder / Letter.DEAD / f"{0:09d}-table-{xxhash.xxh3_64_hexdigest(data)}.ndjson"
        if not path.exists():
            write_atomic(path, data, self.mode)
