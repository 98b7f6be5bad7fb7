"""``--out DIR``: the results of query q are the files ``DIR/q/*.<format>``, each published whole.

    out/q1/000000007-0000.ndjson      query q1, results of epoch 7, part 0
    out/q1/000000007-0001.ndjson      part 1: part 0 had reached its size

A name is a function of (query, epoch, part), so publishing twice gives the same file. Parts are cut at ``Roll.bytes``, at
records only. Small epochs need not make a file each: the caller may hold a query's segments back until ``Roll.due`` and then
publish them as one batch under the first of their epochs; what is held back is in its manifest. Cost: linear, two fsyncs a file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl

from levada.emission.serialize import Batch, Format, heading, joined, lines
from levada.errors import SinkError, UsageError
from levada.sinks.whole import sink_error, write_whole

OWNER = ".levada"


@dataclass(frozen=True, slots=True)
class Roll:
    """When a file is full: at ``bytes`` of text, or at an ``age`` of its first result in ms.

    >>> Roll(bytes=100, age=1000).due(size=10, age=1500)
    True
    """

    bytes: int = 64 << 20
    age: int = 10_000

    def due(self, size: int, age: int) -> bool:
        """Whether results of ``size`` bytes, the oldest of them ``age`` ms old, are to be published now."""
        return size >= self.bytes or age >= self.age

    def cut(self, records: pl.Series) -> list[pl.Series]:
        """The parts of consecutive records, each begun within ``bytes`` of the last one's start; no part is empty."""
        if not len(records):
            return []
        sizes = records.str.len_bytes().to_numpy().astype(np.int64)
        part = (np.cumsum(sizes) - sizes) // self.bytes
        starts = np.flatnonzero(np.diff(part, prepend=-1))
        return [records[a:b] for a, b in zip(starts, [*starts[1:], len(records)], strict=True)]


@dataclass(frozen=True, slots=True)
class FileSink:
    """Publishes batches as files below ``out``.

    >>> FileSink(Path("out"), Format.CSV).name("q1", 7, 0)
    'q1/000000007-0000.csv'
    """

    out: Path
    format: Format
    roll: Roll = Roll()

    def publish(self, query: str, variables: Sequence[str], epoch: int, batch: Batch) -> list[str]:
        """Writes the batch's files; returns their names below ``out``. A batch without a line makes no file."""
        records = lines(self.format, query, variables, batch)
        names = []
        for part, piece in enumerate(self.roll.cut(records)):
            name = self.name(query, epoch, part)
            write_whole(self.out / name, heading(self.format, variables, batch) + joined(piece))
            names.append(name)
        return names

    def name(self, query: str, epoch: int, part: int) -> str:
        """The name of a file below ``out``."""
        return f"{query}/{epoch:09d}-{part:04d}.{self.format}"


def claim(out: Path, owner: str, *, overwrite: bool) -> None:
    """Makes ``out`` the folder of a checkpoint's results; ``owner`` is the checkpoint's id, which a hidden file there keeps.

    Results of another owner are refused with ``UsageError``, or removed with ``overwrite``: two runs' results never mix.
    """
    mark = out / OWNER
    there = existing_results(out)
    if there and not (mark.is_file() and mark.read_text() == owner):
        if not overwrite:
            hint = "Choose another folder, or say --overwrite."
            raise UsageError(f"{out} holds results of another run, such as {min(there)}.", hint=hint)
        for name in there:
            try:
                (out / name).unlink()
            except OSError as error:
                raise SinkError(f"{out / name} cannot be removed: {error.strerror}.") from error
    write_whole(mark, owner.encode())


def existing_results(out: Path) -> set[str]:
    """The names (below ``out``) of all files that runs have published there, late and dead letters among them.

    A folder that does not exist has none. Hidden files are leftovers of a crash, not results. Raises ``SinkError``.
    """
    try:
        if not out.exists():
            return set()
        endings = {f".{form}" for form in Format}
        return {
            f"{folder.name}/{file.name}"
            for folder in out.iterdir()
            if folder.is_dir()
            for file in folder.iterdir()
            if file.suffix in endings and not file.name.startswith(".")
        }
    except OSError as error:
        if isinstance(error, NotADirectoryError):
            raise SinkError(f"{out} is not a folder.") from error
        raise sink_error(error, out) from error
