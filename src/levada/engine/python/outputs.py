"""Files of single queries, as ``--out`` writes them: a folder is claimed once for an engine."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from levada.emission.formats import Format, meant
from levada.errors import UsageError
from levada.sinks import Sink
from levada.sinks.files import FileSink, claimed


@dataclass(frozen=True, slots=True)
class Files:
    """Where a query's results go, and how."""

    folder: Path
    form: Format
    terms: bool
    overwrite: bool

    @classmethod
    def of(
        cls, folder: str | os.PathLike[str], form: str, *, terms: bool, overwrite: bool
    ) -> Files:
        """As they are said. Raises ``UsageError``.

        >>> Files.of("out", "csv", terms=False, overwrite=False).form
        <Format.CSV: 'csv'>
        """
        if form not in list(Format):
            raise UsageError(f"There is no format of results {form}.", hint=meant(form))
        return cls(Path(folder), Format(form), terms, overwrite)


@dataclass
class Outputs:
    """The sinks of queries by name, and the folders that are the engine's."""

    sinks: dict[str, Sink] = field(default_factory=dict)
    _claimed: set[Path] = field(default_factory=set)

    def add(self, query: str, files: Files, owner: str, held: ExitStack) -> None:
        """A query's files; ``owner`` is the checkpoint's id. Raises ``UsageError``,
        ``SinkError``.
        """
        folder = files.folder.absolute()
        if folder not in self._claimed:
            held.enter_context(claimed(folder, owner, overwrite=files.overwrite))
            self._claimed.add(folder)
        self.sinks[query] = FileSink(folder, files.form, terms=files.terms, claimed=True)

    def forget(self, queries: Iterable[str]) -> None:
        """Of queries that come under a name that had files."""
        for query in queries:
            self.sinks.pop(query, None)
