"""What a stream's source may be: a configuration, a path, or a streaming DataFrame, which goes
through a ``spark.spool``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

from levada.streams.stream_config import StreamConfig


class Spool(Protocol):
    """What writes a DataFrame's batches."""

    config: StreamConfig

    def start(self, *, once: bool) -> None:
        """Starts; with ``once`` what is there now is written before this returns."""

    def check(self) -> None:
        """Raises what made it fail."""

    def forget(self, position: Mapping[str, Any]) -> None:
        """Deletes what lies before a committed position."""

    def stop(self) -> None:
        """Ends after the current batch."""


class Spools:
    """The spools of an engine."""

    def __init__(self) -> None:
        self._all: list[Spool] = []

    def config_of(
        self, name: str, source: Any, root: Path, options: Mapping[str, Any]
    ) -> StreamConfig:
        """The stream that a source is; a DataFrame gets a spool. Raises ``UsageError``."""
        if isinstance(source, StreamConfig):
            return source
        if not hasattr(source, "isStreaming"):
            return StreamConfig.of(name, source, **options)
        from levada.runtime.spark.spool import spool_of

        self._all.append(spool_of(name, source, root, options))
        return self._all[-1].config

    def start(self, *, once: bool) -> None:
        """Starts them."""
        for spool in self._all:
            spool.start(once=once)

    def check(self) -> None:
        """Raises what made one fail."""
        for spool in self._all:
            spool.check()

    def forget(self, positions: Mapping[str, Mapping[str, Any]]) -> None:
        """Deletes the batches that a manifest with these positions covers."""
        for spool in self._all:
            spool.forget(positions.get(spool.config.name, {}))

    def stop(self) -> None:
        """Ends them."""
        for spool in self._all:
            spool.stop()
