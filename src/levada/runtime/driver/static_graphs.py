"""The static data of an engine, and their replacement while it runs
(docs/semantics.md#static-data-that-are-replaced).

A graph may be replaced if its source was declared so. Replaceable data are copied into the
checkpoint under a name by content. So repeated epochs read the same data, and equal content is not
a replacement. A file is read to its end before it counts: the caller learns of an ill-formed one,
and no epoch reads it. A file with ``reload`` is checked between epochs for another size, inode
or time, also of its status, since a writer can set the other. One thread runs epochs and may read
``files`` while others replace them: each change is one assignment of a tuple, under the lock.
"""

from __future__ import annotations

import os
import threading
import time
import warnings
from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import xxhash

from levada.connectors.config.input_formats import QUADS
from levada.connectors.ingest.static_files import StaticFile, check_sound, static_source
from levada.connectors.sources.regular_files import open_file
from levada.core.checkpoint_files import create, sync_folder
from levada.core.durable_files import hidden_name, make_folder, replace_file
from levada.errors import SourceError, UsageError, near

if TYPE_CHECKING:  # a check declares static data and keeps none
    import polars as pl

    from levada.checkpoint.leadership.commit_log import Leadership
    from levada.connectors.config.table_config import TableConfig
    from levada.runtime.driver.static_tables import StaticTables

LOOK = 0.2  # s between two looks at files that may change
BLOCK = 1 << 20
Source = str | os.PathLike[str] | Iterable[str]
Stamp = tuple[int, int, int, int]


class StaticGraphs:
    """The static sources of an engine. ``folder`` contains copies and lines."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.files: tuple[StaticFile, ...] = ()
        self._lock = threading.RLock()
        # of the checked files, by path and graphs: a file may fill several graphs
        self._stamps: dict[tuple[str, frozenset[str | None]], Stamp] = {}
        self._looked = 0.0
        self.tables: StaticTables | None = None

    @property
    def size(self) -> int:
        """The bytes of all present files."""
        return sum(os.path.getsize(f.path) for f in self.files if os.path.exists(f.path))

    @property
    def graphs(self) -> set[str | None]:
        """The present graphs (None: the default graph)."""
        return {g for file in self.files for g in file.graphs}

    @property
    def replaceable(self) -> frozenset[str | None]:
        """The graphs that may be replaced."""
        return frozenset(g for file in self.files if file.replaceable for g in file.graphs)

    def names(self, graph: str | None) -> list[str]:
        """Returns the names of a graph's files. They depend on the content if the graph may be
        replaced.
        """
        return sorted(Path(file.path).name for file in self.files if graph in file.graphs)

    # -- before the start --

    def add(
        self,
        source: Source,
        graph: str | None,
        form: str | None,
        *,
        replaceable: bool,
        reload: bool,
    ) -> None:
        """Adds a source. Raises ``SourceError``, ``UsageError``."""
        file = static_source(source, graph, form)
        if reload and not file.path:
            raise UsageError(
                "Only a file is looked at for changes.",
                hint="Lines are replaced by engine.static(lines, graph).",
            )
        if replaceable or reload:
            _check_one_graph(file)
            file = replace(file, replaceable=True, copied_from=file.path)
        if reload:
            self._stamps[file.path, file.graphs] = _stamp(file.path)
        self.files = (*self.files, file)

    def add_table(self, config: TableConfig, frame: pl.DataFrame | None = None) -> None:
        """Adds a static table. Raises ``SourceError``, ``UsageError``."""
        # imported here: most engines have no tables
        from levada.connectors.sources.postgres_table import shown_source
        from levada.runtime.driver.static_tables import StaticTables

        if self.tables is None:
            self.tables = StaticTables(self.folder)
        if config.graph in self.graphs - self.tables.graphs:
            raise UsageError(f"There is a static graph <{config.graph}> beside the table.")
        self.tables.declare(config, frame)
        source = shown_source(config) or config.name
        graphs = frozenset({config.graph})
        file = StaticFile("", "nt", graphs, replaceable=True, copied_from=source)
        self.files = (*self.files, file)

    def place(self) -> None:
        """Copies data into the folder that are not read in place: lines, and replaceable data."""
        make_folder(self.folder)
        tables = {} if self.tables is None else self.tables.place()
        placed = []
        for i, file in enumerate(self.files):
            if (graph := min(file.graphs, key=str)) in tables:
                file = replace(file, path=tables[graph])
            elif file.replaceable:
                file = self._with_copy(file)
            elif not file.path:  # also without lines
                path, data = self.folder / f"{i}.nt", "".join(file.lines).encode()
                # otherwise its time has changed
                if not (path.exists() and path.read_bytes() == data):
                    replace_file(path, data)
                file = replace(file, path=str(path), lines=())
            placed.append(file)
        self.files = tuple(placed)
        if self.tables is not None:
            self.tables.watch()

    # -- while epochs run --

    def replace(self, source: Source, graph: str | None, form: str | None) -> None:
        """Replaces the content of a graph. Raises ``SourceError``, ``UsageError``."""
        self._check_declared(graph)
        file = static_source(source, graph, form)
        _check_one_graph(file)
        file = replace(file, replaceable=True, copied_from=file.path)
        with self._lock:
            copy = self._verified_copy(file)
            others = (replace(f, graphs=f.graphs - {graph}) for f in self.files)
            self.files = (*(f for f in others if f.graphs), copy)
            kept = self._stamps.keys() & {(f.copied_from, f.graphs) for f in self.files}
            self._stamps = {key: self._stamps[key] for key in kept}

    def _check_declared(self, graph: str | None) -> None:
        """Checks that a graph was declared. GRAPH ?g ranges over the declared graphs when queries
        are planned, so none can be added later.
        """
        if self.tables is not None and graph in self.tables.graphs:
            message = f"The graph <{graph}> is a table, which changes with its source."
            raise UsageError(message, hint="Change the rows of the table.")
        if graph in self.replaceable:
            return
        name = "The default graph" if graph is None else f"The static graph <{graph}>"
        close = near(graph or "", [g for g in self.replaceable if g])
        hint = "Say replaceable=True where it is named, before the engine starts."
        if graph in self.graphs or graph is None:
            raise UsageError(
                f"{name} was not declared replaceable.",
                hint=close if close.startswith("Did") else hint,
            )
        hint = (
            f'Declare it before, empty if there is nothing yet: engine.static([], "{graph}", '
            "replaceable=True)."
        )
        message = f"{name} was not there when the engine started, so no query would see it."
        raise UsageError(message, hint=f"{close} {hint}" if close.startswith("Did") else hint)

    def reload(self) -> None:
        """Reads files that have changed on the disk. Warns about ill-formed ones and keeps their
        previous content.
        """
        if self.tables is not None:
            self._take_tables(self.tables.take_changes())
        if not self._stamps or time.monotonic() - self._looked < LOOK:
            return
        self._looked = time.monotonic()
        with self._lock:
            for i, file in enumerate(self.files):
                if (file.copied_from, file.graphs) in self._stamps:
                    self._reload_one(i, file)

    def _take_tables(self, copies: Mapping[str, str]) -> None:
        """Takes the changed tables, by graph."""
        with self._lock:
            for graph, path in copies.items():
                self.files = tuple(
                    replace(file, path=path) if graph in file.graphs else file
                    for file in self.files
                )

    def _reload_one(self, i: int, file: StaticFile) -> None:
        key, stamp = (file.copied_from, file.graphs), None
        try:
            stamp = _stamp(file.copied_from)
            if stamp == self._stamps[key]:
                return
            copy = self._verified_copy(file)
            if _stamp(file.copied_from) != stamp:
                return  # it changed while it was read: the next check will detect it
        except SourceError as error:
            if stamp is not None and os.path.exists(file.copied_from):
                self._stamps[key] = stamp
                warnings.warn(f"{error} What was there before stays.", stacklevel=1)
            return  # a file that is not there is about to appear
        self._stamps[key] = stamp
        self.files = (*self.files[:i], copy, *self.files[i + 1 :])

    def sweep(self, needed: Collection[StaticFile], reign: Leadership) -> None:
        """Deletes the copies that are neither in use nor ``needed``. Raises an error if another
        engine leads.
        """
        with self._lock:
            # listed first: what is written from now on is not
            copies = [*self.folder.glob("[0-9a-f]" * 32 + "*"), *self.folder.glob(".*")]
            named = {f.path for f in (*self.files, *needed)}
            if self.tables is not None:
                named |= self.tables.copies
            reign.check()
            for path in copies:
                if str(path) not in named:
                    path.unlink(missing_ok=True)

    def _verified_copy(self, file: StaticFile) -> StaticFile:
        """Returns a copy that has been read to its end."""
        copy = self._with_copy(file)
        if copy.path not in {f.path for f in self.files}:
            check_sound(copy)
        return copy

    def _with_copy(self, file: StaticFile) -> StaticFile:
        """Returns the file with its content in the folder."""
        if not file.copied_from:
            data = "".join(file.lines).encode()
            path = self.folder / f"{xxhash.xxh3_128_hexdigest(data)}.nt"
            if not path.exists():
                replace_file(path, data)
            return replace(file, path=str(path), lines=())
        try:
            return replace(file, path=str(_copy(Path(file.copied_from), self.folder)))
        except OSError as error:
            raise SourceError(
                f"The static file {file.copied_from} cannot be read: {error.strerror}."
            ) from error


def _check_one_graph(file: StaticFile) -> None:
    if file.format in QUADS and not file.whole:
        raise UsageError(
            f"The static file {file.path} names its graphs itself: it cannot be replaced as one.",
            hint="Which graphs there are stays as it is: say graph=IRI for the whole file, "
            "or give triples.",
        )


def _stamp(path: str) -> Stamp:
    try:
        stat = os.stat(path)
    except OSError as error:
        raise SourceError(f"The static file {path} cannot be read: {error.strerror}.") from error
    return stat.st_size, stat.st_mtime_ns, stat.st_ino, stat.st_ctime_ns


def _copy(source: Path, folder: Path) -> Path:
    """Writes a durable copy of a file, named by its content, with its extensions."""
    temporary = Path(hidden_name(str(folder / "copy")))
    digest = xxhash.xxh3_128()
    with open_file(source) as file, create(temporary) as out:
        while block := file.read(BLOCK):
            digest.update(block)
            out.write(block)
        out.flush()
        os.fsync(out.fileno())
    path = folder / (digest.hexdigest() + "".join(source.suffixes[-2:]))
    os.replace(temporary, path)
    sync_folder(folder)
    return path
