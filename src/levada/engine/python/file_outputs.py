"""The files of single queries, as ``--out`` writes them. An engine claims each folder once."""

from __future__ import annotations

import os
from collections.abc import Iterable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from levada.checkpoint.checkpoint_folder import Checkpoint
from levada.connectors.serialization.result_formats import SHAPES, Format, meant
from levada.connectors.sinks import Sink
from levada.connectors.sinks.file_sink import FileSink, hold_claim
from levada.core.frozen import frozen
from levada.errors import UsageError, near
from levada.runtime.publication.relation_files import StateFiles


@frozen
class Files:
    """The folder and the format of a query's results."""

    folder: Path
    form: Format
    terms: bool
    overwrite: bool
    state: bool = False

    @classmethod
    def from_options(
        cls,
        folder: str | os.PathLike[str] | None,
        form: str,
        *,
        terms: bool,
        overwrite: bool,
        shape: str = "changes",
    ) -> Files | None:
        """Returns the options as a value; None without a folder. Raises ``UsageError``.

        >>> Files.from_options("out", "csv", terms=False, overwrite=False).form
        <Format.CSV: 'csv'>
        """
        if folder is None:
            if shape != "changes":
                raise UsageError("A state is a file: say where with out=.")
            return None
        if form not in list(Format):
            raise UsageError(f"There is no format of results {form}.", hint=meant(form))
        if shape not in SHAPES:
            raise UsageError(
                f"Results are written as changes or as state, not as {shape}.",
                hint=near(shape, SHAPES),
            )
        return cls(Path(folder), Format(form), terms, overwrite, shape == "state")


@dataclass
class Outputs:
    """The sinks of queries by name, and the folders that the engine has claimed."""

    sinks: dict[str, Sink] = field(default_factory=dict)
    _claimed: set[Path] = field(default_factory=set)

    def add(self, query: str, files: Files, checkpoint: Checkpoint, held: ExitStack) -> None:
        """Adds a query's files, and claims their folder for the checkpoint. Raises ``UsageError``,
        ``SinkError``.
        """
        folder = files.folder.absolute()
        if folder not in self._claimed:
            held.enter_context(hold_claim(folder, checkpoint.facts.id, overwrite=files.overwrite))
            self._claimed.add(folder)
        if files.state:
            self.sinks[query] = StateFiles(
                folder, files.form, terms=files.terms, checkpoint=checkpoint.root
            )
        else:
            self.sinks[query] = FileSink(folder, files.form, terms=files.terms, claimed=True)

    def forget(self, queries: Iterable[str]) -> None:
        """Removes the sinks of names that new queries take."""
        for query in queries:
            self.sinks.pop(query, None)
