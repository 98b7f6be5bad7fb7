"""The engine's methods for streams: declare them before or during the run, and push rows of
Python.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

from levada.checkpoint.checkpoint_folder import Checkpoint
from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.config.stream_options import StreamOptions
from levada.connectors.sources.file_listing import check_regular
from levada.connectors.spool.row_batches import Rows
from levada.core.names import check_stream_name
from levada.engine.engine_driver import Driver
from levada.engine.registry import Registry
from levada.engine.restart_checks import columns_of
from levada.errors import UsageError
from levada.runtime.driver.spool_registry import Spools, StreamSource


class StreamApi:
    """The streams of an engine, in its registry, its spools and, after the start, its driver."""

    root: Path
    temporary: bool
    _registry: Registry
    _spools: Spools
    _driver: Driver | None

    if TYPE_CHECKING:

        @property
        def running(self) -> bool:
            """Returns whether more reports may come."""

        def _open(self) -> Checkpoint:
            """Opens the checkpoint for this engine."""

        def _wake(self) -> None:
            """Makes the epoch loop look for changes at once."""

    def stream(
        self, name: str, source: StreamSource = None, **options: Unpack[StreamOptions]
    ) -> None:
        """Declares a stream: its IRI or a plain word, and a source. The source is a path (options
        of ``StreamConfig.from_options``), a streaming DataFrame of Spark, or Python data. Without a
        source, rows are pushed.

        While the engine runs you can add any source but a DataFrame. The stream is read from the
        next epoch on, and an engine that starts on the checkpoint restores it. Raises
        ``UsageError``, ``SourceError``.
        """
        named = check_stream_name(name)
        if self._driver is not None:
            self._check_running("another stream")
            self._driver.streams.add(named, source, options)
            self._wake()
            return
        if not isinstance(source, StreamConfig) and isinstance(source, str | Path):
            source = StreamConfig.from_options(named, source, **options)
        config = self._spools.config_of(named, source, self.root, options)
        declared = source if isinstance(source, StreamConfig) else replace(config, path="")
        check_regular(config.name, config.path)
        before = self._open() if config.undecided and not self.temporary else None
        self._registry.add_stream(columns_of(config, before), declared)

    def remove_stream(self, name: str) -> None:
        """Removes a stream. From the next epoch on nothing of it is read. A later stream of the
        same name is new. Raises ``UsageError`` if the stream does not exist or if queries read it.
        """
        named = check_stream_name(name)
        if self._driver is None:
            self._registry.remove_stream(named)
            self._registry.removed_streams.discard(named)
            self._spools.remove_stream(named)
            return
        self._check_running("a stream less")
        self._driver.streams.remove(named)
        self._wake()

    def push(self, stream: str, rows: Rows) -> None:
        """Adds rows to a stream that is not a file. The rows are durable when the call returns.
        Rows that you push before the start wait for it. Raises ``UsageError`` for rows that do not
        fit.
        """
        self._check_running("these rows")
        if self._driver is not None and self._driver.once:
            raise UsageError("The engine reads what was there when it started.")
        self._spools.push(stream, rows)
        self._wake()

    def count_received(self, stream: str) -> int:
        """Counts the durable rows of a stream that is not a file."""
        return self._spools.durable_rows(stream)

    def _check_running(self, what: str) -> None:
        if self._driver is not None and not self.running:
            raise UsageError(f"The engine has ended; no report would see {what}.")
