"""What an engine does with streams: they are named before it starts or while it runs, and rows of
Python go into them.
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
    """An engine's streams, by its registry and spools and, once it has been started, its driver."""

    root: Path
    temporary: bool
    _registry: Registry
    _spools: Spools
    _driver: Driver | None

    if TYPE_CHECKING:

        @property
        def running(self) -> bool:
            """Whether more may come."""

        def _open(self) -> Checkpoint:
            """The checkpoint, taken for the engine."""

        def _wake(self) -> None:
            """Has the loop look at what has changed at once."""

    def stream(
        self, name: str, source: StreamSource = None, **options: Unpack[StreamOptions]
    ) -> None:
        """A stream: its IRI or a plain word, and a path (options of ``StreamConfig.of``), a
        streaming DataFrame of Spark, or what Python has; without a source rows are pushed.

        While the engine runs (but no DataFrame): it is read from the next epoch on, and is there
        again when an engine is started on the checkpoint. Raises ``UsageError``, ``SourceError``.
        """
        named = check_stream_name(name)
        if self._driver is not None:
            self._check_running("another stream")
            self._driver.streams.add(named, source, options)
            self._wake()
            return
        if not isinstance(source, StreamConfig) and isinstance(source, str | Path):
            source = StreamConfig.of(named, source, **options)
        config = self._spools.config_of(named, source, self.root, options)
        declared = source if isinstance(source, StreamConfig) else replace(config, path="")
        check_regular(config.name, config.path)
        before = self._open() if config.undecided and not self.temporary else None
        self._registry.add_stream(columns_of(config, before), declared)

    def remove_stream(self, name: str) -> None:
        """Takes a stream away; nothing of it is read from the next epoch on. Another one of its
        name is new. Raises ``UsageError`` if there is none, or queries read it.
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
        """More rows for a stream that is no file; when it returns they are durable. Before the
        start they are kept for it. Raises ``UsageError`` for rows that do not fit.
        """
        self._check_running("these rows")
        if self._driver is not None and self._driver.once:
            raise UsageError("The engine reads what was there when it started.")
        self._spools.push(stream, rows)
        self._wake()

    def received(self, stream: str) -> int:
        """How many rows of a stream that is no file have been durable so far."""
        return self._spools.durable_rows(stream)

    def _check_running(self, what: str) -> None:
        if self._driver is not None and not self.running:
            raise UsageError(f"The engine has ended; no report would see {what}.")
