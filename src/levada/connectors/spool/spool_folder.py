"""Writes the batches in the folder of a spool, under ascending names with the hash of their content
(``connectors.sources.spooled_files``).

Delivery is exactly once: a batch is a file that is durable before it counts. The last one is never
deleted, since its name contains the progress. Cost: two fsyncs a batch.
"""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import polars as pl
import xxhash

from levada.connectors.sources.spooled_files import spooled_name
from levada.core.checkpoint_files import file_mode
from levada.core.durable_files import make_folder, write_atomic
from levada.core.text_columns import join_lines


def spool_folder(root: Path, stream: str) -> Path:
    """Returns the folder of a stream's spool below a checkpoint."""
    return root / "spool" / xxhash.xxh3_64_hexdigest(stream.encode())


class Batches:
    """The batches in a folder."""

    def __init__(self, data: Path) -> None:
        self.data = data
        self._forgotten = ""

    def make(self) -> None:
        """Makes the folder."""
        make_folder(self.data, parents=True)

    @property
    def last(self) -> str:
        """The name of the last batch, "" if there was none."""
        names = (path.name for path in self.data.iterdir() if _is_batch(path))
        return max(names, default="")

    def write(self, stem: str, ending: str, data: bytes) -> None:
        """Writes a batch durably. Raises ``SinkError``."""
        path = self.data / spooled_name(stem, ending, data)
        write_atomic(path, data, file_mode(self.data))

    def write_rows(self, stem: str, ending: str, rows: pl.DataFrame | pl.Series) -> None:
        """Writes a batch durably: a frame as Parquet, lines unchanged. Raises ``SinkError``."""
        if isinstance(rows, pl.Series):
            self.write(stem, ending, join_lines(rows))
            return
        made = io.BytesIO()
        rows.write_parquet(made)
        self.write(stem, ending, made.getvalue())

    def forget(self, position: Mapping[str, Any]) -> None:
        """Deletes the batches before that of a committed position: no epoch reads them again."""
        current = position.get("file", "")
        if current == self._forgotten:
            return
        for path in self.data.iterdir():
            if _is_batch(path) and path.name < current:
                path.unlink(missing_ok=True)
        self._forgotten = current


def _is_batch(path: Path) -> bool:
    return not path.name.startswith(".")
