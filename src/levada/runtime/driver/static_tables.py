"""The static tables of an engine: they are read at the start, and again whenever they change.

    source --read_table--> N-Triples in the checkpoint, named by content --> a replaced static graph

A thread looks for changes, reads them, and leaves a copy for the driver, which takes it between two
epochs (``take_changes``). So a large or slow table holds no query back. A source that cannot be
read keeps its last content, also after a restart: ``static-tables.json`` says what that is, and
why it is old. Refused rows are dead letters, in a file that is named by its content, so that they
are written once.
"""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec
import polars as pl
import xxhash

from levada.connectors.config.table_config import TableConfig
from levada.connectors.ingest.static_load_report import (
    STATES,
    TableState,
    describe_table,
    read_states,
)
from levada.connectors.ingest.tables.static_table import (
    TableContent,
    read_table,
    with_columns,
)
from levada.connectors.sinks.dead_letter_files import LetterFiles
from levada.connectors.sources.file_errors import is_of_data, reason
from levada.connectors.sources.postgres_table import shown_source
from levada.connectors.spool.row_batches import schema_of
from levada.core.checksummed_files import seal
from levada.core.durable_files import make_folder, replace_file
from levada.errors import LevadaError, SourceError, UsageError

CLOSING = 2.0  # s, for a look that is under way
Stamp = tuple[int, int, int, int]
RETRY = 5.0  # s until a table is looked at again after a failure of Levada or the checkpoint


@dataclass
class _Table:
    """A table with its next look (monotonic seconds) and the stamp of its file when it was read."""

    config: TableConfig
    frame: pl.DataFrame | None = None
    next_look: float = 0.0
    stamp: Stamp | None = None
    failure: str = ""  # of the last look


class StaticTables:
    """The tables of an engine, whose copies are in ``folder``."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.letters = folder, folder.parent
        self._file = folder.parent / STATES
        self._tables: dict[str, _Table] = {}
        self._states = {state.name: state for state in read_states(folder.parent)}
        self._changed: dict[str, str] = {}  # new copies by graph
        self._written = ""  # the copy that is being written
        self._lock = threading.Lock()
        self._end = threading.Event()
        self._thread: threading.Thread | None = None

    @property
    def schemas(self) -> dict[str, Mapping[str, str]]:
        """The columns of all tables, with their types."""
        return {name: dict(table.config.schema) for name, table in self._tables.items()}

    @property
    def graphs(self) -> set[str]:
        """The static graphs of all tables."""
        return {table.config.graph for table in self._tables.values()}

    @property
    def copies(self) -> set[str]:
        """The copies that are needed, or will be."""
        names = {self._written, *(state.copy for state in list(self._states.values()))}
        return {str(self.folder / name) for name in names} | {*self._changed.values()}

    # -- before the start --

    def declare(self, config: TableConfig, frame: pl.DataFrame | None = None) -> TableConfig:
        """Adds a table, and returns it with its columns. Raises ``SourceError``, ``UsageError``."""
        if config.name in self._tables:
            raise UsageError(f"There are two tables {config.name}.")
        known = self._states.get(config.name)
        try:
            inferred = with_columns(config) if frame is None else _with_frame(config, frame)
        except LevadaError:
            if known is None and not config.schema:
                raise
            inferred = config
        if not config.schema:
            kept = dict(known.schema) if known is not None else {}
            new = {name: kept.get(name, kind) for name, kind in inferred.schema}
            inferred = replace(inferred, schema=tuple({**kept, **new}.items()))
        else:
            inferred = replace(inferred, schema=config.schema)
        self._tables[config.name] = _Table(inferred, frame)
        return inferred

    def place(self) -> dict[str, str]:
        """Reads all tables; returns their copies by graph. Raises ``SourceError`` for a table that
        was never read.
        """
        make_folder(self.folder)
        copies = {}
        for name, table in self._tables.items():
            failure = self._read(table)
            if name not in self._states:
                raise failure or SourceError(f"The table {name} cannot be read.")
            _warn(self._states[name])
            copies[table.config.graph] = str(self.folder / self._states[name].copy)
        self._states = {name: self._states[name] for name in self._tables}
        self._save()
        return copies

    # -- while epochs run --

    def watch(self) -> None:
        """Starts the thread that looks for changes."""
        if self._thread is None and any(t.frame is None for t in self._tables.values()):
            self._thread = threading.Thread(target=self._look, name="levada-tables", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Ends the thread."""
        self._end.set()
        if self._thread is not None:
            self._thread.join(CLOSING)  # a database may not answer

    def replace(self, name: str, frame: pl.DataFrame) -> None:
        """Replaces the rows of a table of the program. Raises ``UsageError``, ``SourceError``."""
        table = self._tables.get(name)
        if table is None or table.frame is None:
            message = f"There is no table {name} of this program."
            raise UsageError(message, hint="Name it before the engine starts.")
        missing = [column for column, _ in table.config.schema if column not in frame.columns]
        if missing:
            raise UsageError(f"The new rows of the table {name} have no column {missing[0]}.")
        with self._lock:
            table.frame = frame
            if failure := self._read_change(table):
                raise failure

    def take_changes(self) -> dict[str, str]:
        """Returns the new copies by graph, each once."""
        taken = {}
        while self._changed:
            graph, copy = self._changed.popitem()
            taken[graph] = copy
        return taken

    def _look(self) -> None:
        while not self._end.wait(0.05):
            now = time.monotonic()
            for table in list(self._tables.values()):
                if table.frame is None and now >= table.next_look and not self._end.is_set():
                    self._look_safely(table)

    def _look_safely(self, table: _Table) -> None:
        """Looks at a table. A failure of Levada or the checkpoint is reported, and tried again."""
        try:
            self._look_at(table)
            table.failure = ""
        except Exception as error:
            said = reason(error)
            if said != table.failure:
                name = table.config.name
                warnings.warn(
                    f"Changes of the table {name} cannot be taken in: {said}. Its last rows stay. "
                    "It is tried again.",
                    stacklevel=1,
                )
            table.failure, table.stamp = said, None
            table.next_look = time.monotonic() + RETRY

    def _look_at(self, table: _Table) -> None:
        config = table.config
        stamp = None if config.is_database else _stamp(config.source)
        if config.is_database or stamp != table.stamp:
            with self._lock:
                self._read_change(table)
        table.next_look = time.monotonic() + config.every / 1000

    def _read_change(self, table: _Table) -> LevadaError | None:
        """Reads a table, and leaves a changed copy for the driver."""
        config = table.config
        before = self._states[config.name]
        failure = self._read(table)
        if (state := self._states[config.name]) != before:
            try:
                self._save()
            except BaseException:
                self._states[config.name] = before  # otherwise the next look sees no change
                raise
        if state.copy != before.copy:
            self._changed[config.graph] = str(self.folder / state.copy)
        if state != before:
            _warn(state)
        return failure

    def _read(self, table: _Table) -> LevadaError | None:
        """Reads a table into a copy, and notes its state. Returns the error of a failure."""
        config, stamp = table.config, None
        try:
            if table.frame is None and not config.is_database:
                stamp = _stamp(config.source)
                if stamp is None:
                    raise SourceError(f"The table {config.source} is not there.")
            content = read_table(config, table.frame)
            if stamp is not None and stamp != _stamp(config.source):
                stamp = None  # it changed while it was read: the next look reads it again
                if config.name in self._states:
                    return None
            self._note(config, content)
        except BaseException as error:
            failure = _as_failure(error, config)
            if config.name in self._states:
                state = self._states[config.name]
                self._states[config.name] = msgspec.structs.replace(state, failure=str(failure))
            return failure
        finally:
            table.stamp = stamp
        return None

    def _note(self, config: TableConfig, content: TableContent) -> None:
        copy = f"{xxhash.xxh3_128_hexdigest(content.lines)}.nt"
        self._written = copy
        if not (self.folder / copy).exists():
            replace_file(self.folder / copy, content.lines)
        self._write_letters(config, content)
        before = self._states.get(config.name)
        state = TableState(
            config.name, shown_source(config), config.schema, copy, content.rows, len(content.dead)
        )
        if before is not None and state == msgspec.structs.replace(before, read_ms=0):
            return
        self._states[config.name] = msgspec.structs.replace(state, read_ms=time.time_ns() // 10**6)

    def _write_letters(self, config: TableConfig, content: TableContent) -> None:
        if content.dead:
            source = shown_source(config)
            LetterFiles(self.letters).publish_of_table(
                {"stream": config.name, "source": source, "offset": dead.offset,
                 "reason": dead.reason, "text": dead.text}
                for dead in content.dead
            )  # fmt: skip

    def _save(self) -> None:
        data = msgspec.json.encode(list(self._states.values()))
        replace_file(self._file, seal(data))


def _warn(state: TableState) -> None:
    """Warns about refused rows, and about a source that cannot be read."""
    if state.failure or state.dead_letters:
        warnings.warn(describe_table(state), stacklevel=1)


def _as_failure(error: BaseException, config: TableConfig) -> LevadaError:
    """Returns the error of a table that cannot be read or copied. Raises those that end a
    process.
    """
    if isinstance(error, LevadaError):
        return error
    if not is_of_data(error):
        raise error
    return SourceError(f"The table {shown_source(config)} cannot be read: {reason(error)}.")


def _with_frame(config: TableConfig, frame: pl.DataFrame) -> TableConfig:
    return replace(config, schema=tuple(schema_of(frame).items()))


def _stamp(path: str) -> Stamp | None:
    with suppress(OSError):
        stat = os.stat(path)
        return stat.st_size, stat.st_mtime_ns, stat.st_ino, stat.st_ctime_ns
    return None
