"""The conversion of the source of a stream into a configuration. A source is a configuration, a
path, or data for a spool: a streaming DataFrame (``runtime.spark.dataframe_spool``), frames,
iterables and pushed rows (``connectors.spool.python_spool``), or a feed.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from levada.connectors.config.input_formats import PUSH, STDIN
from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.spool.feed_spool import FeedSpool, Receiver
from levada.connectors.spool.push_spool import push_spool
from levada.connectors.spool.python_spool import PythonSpool, Source, python_spool
from levada.connectors.spool.row_batches import Rows, Shape
from levada.connectors.spool.spool_folder import spool_folder
from levada.connectors.spool.stdin_spool import StdinSpool, stdin_spool
from levada.errors import UsageError


@runtime_checkable
class StreamingFrame(Protocol):
    """A DataFrame of Spark."""

    @property
    def isStreaming(self) -> bool:  # noqa: N802
        """Whether it comes from ``spark.readStream``."""


StreamSource = str | os.PathLike[str] | StreamConfig | StreamingFrame | Source
"""A path, a DataFrame, a frame, a graph, rows, a function of rows; None: rows are pushed."""


def _mqtt() -> Callable[[FeedSpool], Receiver]:
    from levada.connectors.spool.receivers.mqtt import MqttReceiver

    return MqttReceiver


def _sse() -> Callable[[FeedSpool], Receiver]:
    from levada.connectors.spool.receivers.sse import sse_receiver

    return sse_receiver


def _websocket() -> Callable[[FeedSpool], Receiver]:
    from levada.connectors.spool.receivers.websocket import websocket_receiver

    return websocket_receiver


_RECEIVERS = {"mqtt": _mqtt, "sse": _sse, "ws": _websocket}
"""The loader of the receiver of each kind of feed, called by its first stream."""


class Spool(Protocol):
    """Writes the batches of a source that is not a file."""

    config: StreamConfig

    def open_in(self, folder: Path) -> None:
        """Sets the folder of the batches, in place of the folder of its name. Call it before
        ``start``.
        """

    def start(self, *, once: bool) -> None:
        """Starts the spool. With ``once`` all present input is written before this returns."""

    def check(self) -> None:
        """Raises the error that made the spool fail."""

    def forget(self, position: Mapping[str, Any]) -> None:
        """Deletes the batches before a committed position."""

    def stop(self) -> None:
        """Stops after the current batch."""


class Spools:
    """The spools of an engine. ``lasting``: its checkpoint outlives it. ``elsewhere``: the object
    store of the checkpoint, on which spools are not kept.
    """

    def __init__(self, *, lasting: bool = False, elsewhere: str = "") -> None:
        self._all: list[Spool] = []
        self._lasting, self._elsewhere = lasting, elsewhere

    def config_of(
        self,
        name: str,
        source: StreamSource,
        root: Path,
        options: Mapping[str, Any],
    ) -> StreamConfig:
        """Returns the configuration of a source. A source that is not a path gets a spool. Raises
        ``UsageError``.
        """
        if isinstance(source, (str, os.PathLike)):
            source = StreamConfig.from_options(name, source, **options)
        if isinstance(source, StreamConfig) and source.path == PUSH:
            return self._add(push_spool(source, root.absolute()))
        if isinstance(source, StreamConfig) and source.feed is not None:
            return self._feed_spool(source, root.absolute())
        if isinstance(source, StreamConfig):
            return source if source.path != STDIN else self._stdin_spool(source, root)
        if isinstance(source, StreamingFrame):
            from levada.runtime.spark.dataframe_spool import spool_of

            return self._add(spool_of(name, source, root, options))
        return self._add(python_spool(name, source, root, options))

    def _add(self, spool: Spool) -> StreamConfig:
        if self._elsewhere:
            raise UsageError(
                f"The stream {spool.config.name} is sent once, and what has come of it would be on "
                f"this machine alone, not in the checkpoint {self._elsewhere}.",
                hint="Have it in files or in Kafka, or take a folder as checkpoint.",
            )
        self._all = [*self._all, spool]  # other threads may be iterating over the list
        return spool.config

    def _feed_spool(self, config: StreamConfig, root: Path) -> StreamConfig:
        assert config.feed is not None, "the stream is a feed"
        listen = _RECEIVERS[config.feed.kind]()
        return self._add(FeedSpool(config, root, listen, kept=self._lasting))

    def rows(self, config: StreamConfig, columns: tuple[str, ...], root: Path) -> StreamConfig:
        """Returns a stream of rows from Python as it was declared, whatever its source was. Its
        rows are pushed from now on.
        """
        lies = replace(config, path=str(spool_folder(root, config.name) / "data"))
        return self._add(PythonSpool(Shape(lies, columns), None))

    # -- one of them --

    def spool_of(self, name: str) -> Spool | None:
        """Returns the spool of a stream; None if it has none."""
        return next((spool for spool in self._all if spool.config.name == name), None)

    def remove_stream(self, name: str) -> None:
        """Stops the spool of a removed stream. Its batches stay."""
        removed = [spool for spool in self._all if spool.config.name == name]
        self._all = [spool for spool in self._all if spool not in removed]
        for spool in removed:
            spool.stop()

    @property
    def unavailable(self) -> dict[str, str]:
        """The streams whose feeds do not respond, with the reasons."""
        feeds = (spool for spool in self._all if isinstance(spool, FeedSpool))
        return {feed.stream: feed.away for feed in feeds if feed.away}

    def _stdin_spool(self, config: StreamConfig, root: Path) -> StreamConfig:
        for other in self._all:
            if isinstance(other, StdinSpool):
                message = f"The streams {other.config.name} and {config.name} are standard input."
                raise UsageError(message, hint="Only one can be; give the other a file.")
        return self._add(stdin_spool(config, root))

    def push(self, name: str, rows: Rows) -> None:
        """Pushes rows to a stream. Raises ``UsageError`` if the stream does not accept rows."""
        self._python_spool(name).push(rows)

    def durable_rows(self, name: str) -> int:
        """Returns the number of durable rows of a stream."""
        return self._python_spool(name).durable_rows

    def _python_spool(self, name: str) -> PythonSpool:
        for spool in self._all:
            if spool.config.name == name and isinstance(spool, PythonSpool):
                return spool
        raise UsageError(
            f"The stream {name} takes no rows from Python.",
            hint=f'Name it without a path: engine.stream("{name}").',
        )

    def start(self, *, once: bool) -> None:
        """Starts all spools."""
        for spool in self._all:
            spool.start(once=once)

    def check(self) -> None:
        """Raises the error that made a spool fail."""
        for spool in self._all:
            spool.check()

    def forget(self, positions: Mapping[str, Mapping[str, Any]]) -> None:
        """Deletes the batches that a manifest covers, given the positions of its streams by their
        paths.
        """
        for spool in self._all:
            if spool.config.path in positions:
                spool.forget(positions[spool.config.path])

    def stop(self) -> None:
        """Stops all spools, once."""
        ending, self._all = self._all, []
        for spool in reversed(ending):
            spool.stop()
