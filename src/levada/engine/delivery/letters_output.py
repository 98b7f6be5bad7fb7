"""Sends dead letters and late elements to a topic or a table (``--letters-to``), each once.

    files of an epoch --read--> rows --write, with the epoch as position--> target

The target stores the last epoch in the transaction of its rows. So after a crash a thread continues
behind that epoch; the files are the same. The files of an epoch are complete when a later one is
published, or when the engine has ended. A target may refuse one letter, which is longer than a
message may be: the letters of its epoch are then written in parts, with the number of those that
are done as report of the position. That letter is left out, with a warning. Letters that are added
to an epoch later, by outputs whose target refuses a value, and those of static tables stay in
files. An unavailable target is tried again, in this run or the next.
"""

from __future__ import annotations

import re
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import polars as pl

from levada.checkpoint.checkpoint_folder import Checkpoint
from levada.checkpoint.manifest import Manifest
from levada.connectors.serialization.serialize import Batch
from levada.connectors.sinks.dead_letter_files import Letter
from levada.connectors.sinks.sink_url import Destination
from levada.connectors.sinks.transactional_sink import Piece, Position, Target
from levada.core.event_time import MAX, MIN
from levada.core.query_model import Form, Output
from levada.core.rdf_terms import XSD, Literal
from levada.errors import RefusedValueError, TargetAwayError
from levada.plan.execution.plan import QueryPlan, QuerySettings

NAME = str(Letter.DEAD)  # which no query has
COLUMNS = ("kind", "stream", "source", "offset", "ts", "reason", "text")
_NUMBERS = ("offset", "ts")
_FILE = re.compile(r"([0-9]{9,})-[0-9]+\.ndjson")
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 5.0  # s between two attempts
ENDING = 10.0  # s at the end of an engine for the last letters
QUERY = QueryPlan(
    NAME, -1, -1, QuerySettings(Form.SELECT, Output.RSTREAM, COLUMNS, (), (), MIN, False)
)
"""The letters as a query's results."""


class LettersOutput:
    """A thread that sends the letters of ``folder`` to a target."""

    def __init__(self, folder: Path, target: Target) -> None:
        target.check(NAME, QUERY.form, QUERY.output, COLUMNS)
        self._folder, self._target = folder, target
        self._complete = 0  # the epochs below it are complete
        self._has_new = True  # the last one may have letters
        self._position: Position | None = None
        self._refused = 0
        self._woken, self._ended = threading.Event(), threading.Event()
        self._thread = threading.Thread(target=self._run, name="levada letters", daemon=True)

    def start(self) -> None:
        """Opens the target, and starts. Raises ``SinkError`` if the target refuses Levada."""
        with suppress(TargetAwayError):
            self._open()
        self._thread.start()

    def note(self, manifest: Manifest) -> None:
        """Notes a published epoch: those before it are complete."""
        self._complete = manifest.epoch
        if self._has_new:
            self._woken.set()
        self._has_new = bool(manifest.letter_files)

    def stop(self) -> None:
        """Sends the last letters, for a limited time."""
        self._complete = MAX
        self._ended.set()
        self._woken.set()
        self._thread.join(ENDING)
        if self._refused > 1:
            message = f"{self._refused} letters were refused by the target of --letters-to."
            warnings.warn(message, stacklevel=2)

    def _open(self) -> None:
        self._position = self._target.open(None) or Position()

    def _run(self) -> None:
        pause = FIRST_PAUSE
        until = None
        while True:
            self._woken.wait()
            self._woken.clear()
            if (is_last := self._ended.is_set()) and until is None:
                until = time.monotonic() + ENDING
            try:
                if self._position is None:
                    self._open()
                self._send()
                pause = FIRST_PAUSE
                if is_last:
                    break
            except Exception as error:  # also of a file: no letter is lost, so it is tried again
                if pause == FIRST_PAUSE:
                    warnings.warn(f"{error} It is tried again.", stacklevel=1)
                self._position = None
                if until is not None and time.monotonic() > until:
                    break
                time.sleep(pause)
                pause = min(2 * pause, LONGEST_PAUSE)
                self._woken.set()
        self._target.close()

    def _send(self) -> None:
        """Writes the complete epochs behind the position."""
        assert self._position is not None, "the target is open"
        behind = self._position.epoch - (self._position.report != MIN)
        for epoch, files in self._files(behind, self._complete):
            letters = [letter for path, kind in files for letter in _read(path, kind)]
            done = self._position.report if epoch == self._position.epoch else 0
            self._write(epoch, letters, done)
            self._position = Position(epoch)

    def _write(self, epoch: int, letters: list[dict[str, Any]], done: int) -> None:
        """Writes the letters of an epoch behind the first ``done``, without refused ones."""
        size = len(letters)
        while done < len(letters):
            end = min(done + size, len(letters))
            position = Position(epoch, end if end < len(letters) else MIN)
            try:
                self._target.write(Piece(QUERY, batch_of(letters[done:end]), position))
            except RefusedValueError as error:
                self._open()
                if end - done > 1:
                    size = (end - done) // 2
                    continue
                # fails if the table or topic is at fault, and not the letter
                self._target.write(Piece(QUERY, batch_of([]), position))
                if not self._refused:
                    message = f"{error} This letter is left out, and is in the files of letters."
                    warnings.warn(message, stacklevel=1)
                self._refused += 1
            done, size = end, 2 * size

    def _files(self, behind: int, before: int) -> Iterator[tuple[int, list[tuple[Path, Letter]]]]:
        """Yields the epochs in a range that have letters, in order, each with its files."""
        files: dict[int, list[tuple[Path, Letter]]] = {}
        for kind in Letter:
            folder = self._folder / kind
            for path in sorted(folder.iterdir()) if folder.exists() else ():
                match = _FILE.fullmatch(path.name)
                if match and behind < int(match[1]) < before:
                    files.setdefault(int(match[1]), []).append((path, kind))
        yield from sorted(files.items())


def open_output(
    folder: Path, checkpoint: Checkpoint, url: str, options: Mapping[str, str]
) -> LettersOutput:
    """Starts the output of the letters in ``folder``. Raises ``SinkError``, ``UsageError``."""
    default = {"table": "letters", "columns": "offset bigint;ts bigint"}
    default = {"format": "json"} if url.startswith("kafka://") else default
    target = Destination(url, {**default, **options}).target(NAME, checkpoint.facts.id)
    output = LettersOutput(folder, target)
    output.start()
    return output


def _read(path: Path, kind: Letter) -> list[dict[str, Any]]:
    lines = path.read_bytes().split(b"\n")
    return [{**msgspec.json.decode(line), "kind": str(kind)} for line in lines if line]


def batch_of(letters: list[dict[str, Any]]) -> Batch:
    """Returns letters as a batch of results without a time.

    >>> batch_of([{"kind": "late", "ts": 5, "text": "a"}]).columns["text"].to_list()
    ['"a"']
    """
    columns = {}
    for name in COLUMNS:
        datatype = XSD + ("integer" if name in _NUMBERS else "string")
        values = [letter.get(name) for letter in letters]
        terms = [None if v is None else str(Literal(str(v), datatype)) for v in values]
        columns[name] = pl.Series(terms, dtype=pl.String)
    return Batch(np.full(len(letters), MIN, np.int64), columns=columns)
