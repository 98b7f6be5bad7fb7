"""Writes results to files for ``--out DIR``: those of query q are ``DIR/q/*.<format>``, each
published whole.

    out/q1/000000007-0000.ndjson      query q1, results of epoch 7, part 0
    out/q1/000000007-0001.ndjson      part 1: part 0 had reached its size
    out/q1/000000000004000.srj        formats without a place for the report time: a file a report
                                      (at 4000 ms)

A name is a function of (query, epoch, part) or of (query, report), so publishing twice writes the
same file. Parts are cut at ``Roll.bytes``, at records only. With ``Roll.age`` results of several
epochs arrive as one batch (``runtime.publication.file_rolling``). Cost: linear, two fsyncs a file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path

import filelock
import numpy as np
import numpy.typing as npt

from levada.connectors.serialization.encode_batch import contents
from levada.connectors.serialization.result_formats import Format
from levada.connectors.serialization.serialize import Batch
from levada.connectors.serialization.unwritable_results import (
    Unwritable,
    is_of_result,
    without_unwritable,
)
from levada.core.checkpoint_files import sync_folder
from levada.core.durable_files import make_folders, sink_error, write_atomic
from levada.core.event_time import MIN
from levada.core.frozen import frozen
from levada.errors import SinkError, UsageError

OWNER, LOCK = ".levada", ".levada.lock"
_RESULT = re.compile(r"([0-9]{9}-[0-9]{4}|-?[0-9]{14,}|static|state)\.(" + "|".join(Format) + ")")


@frozen
class Roll:
    """The limits of a file: ``bytes``, and the ``age`` of its first result in ms (0: each epoch has
    its own files).

    >>> Roll(bytes=100, age=1000).is_due(size=10, age=1500)
    True
    """

    bytes: int = 64 << 20
    age: int = 0

    def is_due(self, size: int, age: int) -> bool:
        """Whether to publish results of ``size`` bytes, the oldest ``age`` ms old."""
        return size >= self.bytes or age >= self.age

    def cut(self, sizes: npt.NDArray[np.int64]) -> list[tuple[int, int]]:
        """Divides consecutive records into parts, each begun within ``bytes`` of the last one's
        start; no part is empty.

        >>> Roll(bytes=100).cut(np.array([60, 60, 60]))
        [(0, 2), (2, 3)]
        """
        if not len(sizes):
            return []
        part = (np.cumsum(sizes) - sizes) // self.bytes
        starts = np.flatnonzero(np.diff(part, prepend=-1)).tolist()
        return list(zip(starts, [*starts[1:], len(sizes)], strict=True))


@frozen
class FileSink:
    """Publishes batches as files below ``out``. ``terms``: tables have texts in place of values.
    ``hold_claim``: the folder was claimed for the run, and is not created again if it is deleted.
    ``unwritable``: the results that the format could not represent, until they are fetched.

    >>> FileSink(Path("out"), Format.CSV).name("q1", 7, 0)
    'q1/000000007-0000.csv'
    """

    out: Path
    format: Format
    roll: Roll = Roll()
    terms: bool = False
    claimed: bool = False
    unwritable: list[Unwritable] = field(default_factory=list, compare=False)

    def publish(self, query: str, variables: Sequence[str], epoch: int, batch: Batch) -> list[str]:
        """Writes the batch's files; returns their names below ``out``. A batch without lines makes
        none. Raises ``SinkError``.
        """
        if self.claimed and not (self.out / OWNER).exists():
            raise SinkError(
                f"The folder {self.out} is gone: it was deleted or moved while results were "
                "written to it.",
                hint="Start again on the same checkpoint: what comes next is not lost.",
            )
        names: list[str] = []
        try:
            self._write(query, variables, epoch, batch, names)
        except BaseException as error:
            if not is_of_result(error):
                raise
            batch, unwritable = without_unwritable(self.format, query, variables, batch)
            before, names = names, []
            self._write(query, variables, epoch, batch, names)
            for name in set(before) - set(names):
                (self.out / name).unlink(missing_ok=True)
            self.unwritable.extend(unwritable)
        return names

    def _write(
        self, query: str, variables: Sequence[str], epoch: int, batch: Batch, names: list[str]
    ) -> None:
        """Writes the files, and adds the name of each."""
        for part, (report, data) in enumerate(
            contents(self.format, query, variables, batch, self.roll.cut, terms=self.terms)
        ):
            name = (
                self.name(query, epoch, part) if report is None else self.report_name(query, report)
            )
            write_atomic(self.out / name, data)
            names.append(name)

    def name(self, query: str, epoch: int, part: int) -> str:
        """Returns the name of a file below ``out``, for a format with a place for the report
        time.
        """
        return f"{query}/{epoch:09d}-{part:04d}.{self.format}"

    def report_name(self, query: str, report: int) -> str:
        """Returns the name of the file of a report; ``static`` for a query without windows, whose
        report has no time (MIN).
        """
        return f"{query}/{'static' if report == MIN else f'{report:015d}'}.{self.format}"


@contextmanager
def hold_claim(out: Path, owner: str, *, overwrite: bool, alone: bool = True) -> Iterator[None]:
    """Claims ``out`` as the folder of a checkpoint's results, like ``claim``, exclusively for the
    duration of the block. Not ``alone``: an overtaken run on the same checkpoint may still have it.
    """
    try:
        make_folders(out)
        sync_folder(out)  # folders of queries that a killed run has created
        lock = filelock.FileLock(str(out / LOCK))
        lock.acquire(timeout=0)
    except filelock.Timeout as error:
        if alone:
            raise UsageError(
                f"Another run is writing to {out}.", hint="Choose another folder."
            ) from error
    except OSError as error:
        raise sink_error(error, out) from error
    try:
        claim(out, owner, overwrite=overwrite)
        yield
    finally:
        lock.release()


def claim(out: Path, owner: str, *, overwrite: bool) -> None:
    """Claims ``out`` as the folder of a checkpoint's results. A hidden file in it contains
    ``owner``, the checkpoint's id.

    Results of another owner are refused with ``UsageError``, or removed with ``overwrite``: two
    runs' results never mix.
    """
    mark = out / OWNER
    there = existing_results(out)
    if there and not (mark.is_file() and mark.read_text() == owner):
        if not overwrite:
            hint = "Choose another folder, or say --overwrite."
            raise UsageError(
                f"{out} holds results of another run, such as {min(there)}.", hint=hint
            )
        for name in there:
            try:
                (out / name).unlink()
            except OSError as error:
                raise SinkError(f"{out / name} cannot be removed: {error.strerror}.") from error
    for left in out.glob("*/.*.tmp"):  # files of a killed run
        left.unlink(missing_ok=True)
    write_atomic(mark, owner.encode())


def existing_results(out: Path) -> set[str]:
    """Returns the names (below ``out``) of all files that runs have published, including letters.

    A missing folder has none. Files with other names belong to others. Raises ``SinkError``.
    """
    try:
        if not out.exists():
            return set()
        return {
            f"{folder.name}/{file.name}"
            for folder in out.iterdir()
            if folder.is_dir()
            for file in folder.iterdir()
            if _RESULT.fullmatch(file.name)
        }
    except OSError as error:
        if isinstance(error, NotADirectoryError):
            raise SinkError(f"{out} is not a folder.") from error
        raise sink_error(error, out) from error
