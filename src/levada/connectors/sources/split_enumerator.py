"""Defines the interface of a stream's source for the driver: files, a topic of Kafka, a log of
messages.

    discover         -> looks what is there (``final``: what is there now is all there will be)
    start_position   -> the position at which the stream begins, once that is known
    take             -> the next references from a position, and the position behind them
    partition_states -> the source partitions that have held data, and whether each has unread data

``take`` is a function of the position and of the discovered data: the caller writes the new
position ahead, and a replay of the epoch reads the same references. A position is JSON; ``{}`` is
the beginning. Only its source knows the rest of its content, except ``taken``, ``passed``,
``broken`` and ``replaced`` (``connectors.sources.file_source``). A source reads no elements: that
is for tasks (``connectors.sources.source_reader``).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Protocol

from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.sources.feed_log import files_of
from levada.connectors.sources.file_source import FileSource
from levada.connectors.sources.file_splitter import Position
from levada.connectors.sources.kafka.kafka_enumerator import KafkaSource
from levada.connectors.sources.splits import AnyReference
from levada.connectors.sources.unread_input import Unread
from levada.errors import CheckpointError


class SplitEnumerator(Protocol):
    """The source of one stream, for the driver.

    ``overtaken``, ``gone``, ``broken``: unread files, by name, until they are reported
    (``connectors.sources.file_source``). ``away``: the reason why the source does not respond; ""
    if it does.
    """

    config: StreamConfig
    overtaken: list[str]
    gone: list[str]
    broken: dict[str, str]
    away: str

    def discover(self, final: bool = False, position: Position | None = None) -> None:
        """Looks for data. Raises ``SourceError``."""

    def start_position(self, position: Position) -> Position:
        """Returns the position, or the beginning of the stream if the position does not contain it
        yet.
        """

    def take(self, position: Position, rows: int) -> tuple[Sequence[AnyReference], Position]:
        """Returns the references of the next elements, at most ``rows``, and the position after
        them.
        """

    def backlog(self, position: Position) -> bool:
        """Whether a take would return anything."""

    def is_ended(self, position: Position) -> bool:
        """Whether everything is read and nothing follows."""

    def partition_states(self, position: Position) -> dict[str, bool]:
        """Returns the partitions that have contained data, and whether each has unread data."""

    def read(self, position: Position) -> Collection[str]:
        """Returns the partitions of a partitioned stream that have been read from."""

    def is_finished(self, partition: str) -> bool:
        """Whether a partition receives no more data."""

    def forget(self, position: Position) -> None:
        """Notes the commit of an epoch that ended at ``position``."""

    def copies(self) -> set[str]:
        """Returns the unpacked copies that may still be read."""

    def unread(self, now: int) -> Unread:
        """Returns the unread input after the last committed position. ``now``: by the clock (ms).
        Another thread than that of the other methods calls it.
        """


def source_of(config: StreamConfig, scratch: Path) -> SplitEnumerator:
    """Returns the source of a stream; ``scratch`` is a folder for unpacked copies."""
    if config.kafka is not None:
        return KafkaSource(config)
    return FileSource(config if config.feed is None else files_of(config), scratch)


def check_grown(source: SplitEnumerator, position: Position) -> None:
    """Raises ``CheckpointError`` if there is data after the former end of the stream."""
    source.discover(final=True)
    if not source.backlog(position):
        return
    config = source.config
    where = position.get("file", config.path)
    message = (
        f"The stream {config.name} has grown behind {where} since the run on this checkpoint ended."
    )
    if not position:
        message = (
            "The run on this checkpoint has ended, "
            f"and has read nothing of the stream {config.name}."
        )
    raise CheckpointError(
        message,
        hint="`levada rollback CHECKPOINT` opens it again. Without --close, --once leaves the "
        "windows open for the next run.",
    )
