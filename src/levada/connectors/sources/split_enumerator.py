"""What the driver asks of a stream's source, whatever it is: files, a topic of Kafka, a log of
messages.

    discover  -> looks what is there (``final``: what is there now is all there will be)
    begun     -> the position at which the stream begins, once that is known
    take      -> the next references from a position, and the position behind them
    known     -> the source partitions that have held data, and whether each has unread data

``take`` is a function of the position and of what was discovered: the caller writes the new
position ahead, and a replay of the epoch reads the same references. A position is JSON; ``{}`` is
the beginning, and what it holds else only its source knows, but for ``taken``, ``passed``,
``broken`` and ``replaced`` (``connectors.sources.file_source``). A source reads no element: that is
for tasks (``connectors.sources.source_reader``).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Protocol

from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.sources.feed_log import files_of
from levada.connectors.sources.file_source import FileSource
from levada.connectors.sources.file_splits import Position
from levada.connectors.sources.kafka.kafka_enumerator import KafkaSource
from levada.connectors.sources.splits import AnyReference
from levada.errors import CheckpointError


class SplitEnumerator(Protocol):
    """The source of one stream, as the driver sees it.

    ``overtaken``, ``gone``, ``broken``: what is not read, by name, until it is told
    (``connectors.sources.file_source``). ``away``: why nothing is known of it now; "" if it
    answers.
    """

    config: StreamConfig
    overtaken: list[str]
    gone: list[str]
    broken: dict[str, str]
    away: str

    def discover(self, final: bool = False, position: Position | None = None) -> None:
        """Looks what is there. Raises ``SourceError``."""

    def start_position(self, position: Position) -> Position:
        """The position, or where the stream begins if it says nothing yet."""

    def take(self, position: Position, rows: int) -> tuple[Sequence[AnyReference], Position]:
        """The references of the next elements, at most ``rows``, and the position behind them."""

    def backlog(self, position: Position) -> bool:
        """Whether a take would give anything."""

    def is_ended(self, position: Position) -> bool:
        """Whether everything is read and nothing more will come."""

    def partition_states(self, position: Position) -> dict[str, bool]:
        """The partitions that have held data, and whether each has unread data."""

    def read(self, position: Position) -> Collection[str]:
        """The partitions of a partitioned stream of which something has been read."""

    def is_finished(self, partition: str) -> bool:
        """Whether a partition gets nothing more than is there."""

    def forget(self, position: Position) -> None:
        """An epoch that ended at ``position`` is committed."""

    def copies(self) -> set[str]:
        """The unpacked copies that may still be read."""


def source_of(config: StreamConfig, scratch: Path) -> SplitEnumerator:
    """The source of a stream; ``scratch`` is a folder for unpacked copies."""
    if config.kafka is not None:
        return KafkaSource(config)
    return FileSource(config if config.feed is None else files_of(config), scratch)


def check_grown(source: SplitEnumerator, position: Position) -> None:
    """Raises ``CheckpointError`` if there is data behind where the stream once ended."""
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
        message, hint="Use a new checkpoint, or run with --keep-open from the beginning."
    )
