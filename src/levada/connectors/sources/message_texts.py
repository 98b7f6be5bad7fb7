"""Represents many messages as one text, with the place, the offset and the time of each.

A message has at least one byte in the text, the newline after it. So each place in the text belongs
to one message.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

import numpy as np
import polars as pl

from levada.connectors.sources.message_headers import MessageHeaders
from levada.core.array_types import Bytes, Longs
from levada.core.frozen import frozen

Loss = tuple[int, str]
"""The first unreadable offset, and the reason."""
LONGEST_SHOWN = 4096
"""The most bytes of a message in a dead letter."""


@frozen
class Messages:
    """n messages in the order of their offsets. ``starts``: n + 1 places in the text, the last one
    at its end. ``offsets`` and ``times`` (ms) by message. ``nulls``: the number of messages without
    a value, which are not included. ``lost``: unreadable messages. ``topics``: by message, if they
    have several. ``beside``: the metadata in headers. ``columns``: metadata columns, by name.
    """

    starts: Longs
    offsets: Longs
    times: Longs
    nulls: int = 0
    lost: tuple[Loss, ...] = ()
    topics: pl.Series | None = None
    beside: MessageHeaders = field(default_factory=MessageHeaders)
    columns: Mapping[str, pl.Series] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.offsets)

    def number(self, places: Longs) -> Longs:
        """Returns the message of each place in the text; places usually ascend.

        >>> two = Messages(np.array([0, 4, 9]), np.array([7, 8]), np.array([1, 1]))
        >>> two.number(np.array([0, 3, 4, 8])).tolist()
        [0, 0, 1, 1]
        """
        n = len(self)
        if len(places) == n and bool(
            (places >= self.starts[:-1]).all() and (places < self.starts[1:]).all()
        ):
            return np.arange(n, dtype=np.int64)
        numbers: Longs = np.searchsorted(self.starts[:-1], places, "right") - 1
        return numbers

    def offset(self, places: Longs) -> Longs:
        """Returns the offset of the message at each place."""
        offsets: Longs = self.offsets[self.number(places)]
        return offsets

    def sources(self, offsets: Longs) -> list[str] | None:
        """Returns the topics of messages by their offsets (without gaps); None if all have one."""
        if self.topics is None or not len(self):
            return None
        return self.topics.gather(offsets - self.offsets[0]).to_list()

    def text(self, data: Bytes, number: int) -> str:
        """Returns a message for people, truncated."""
        start, stop = int(self.starts[number]), int(self.starts[number + 1]) - 1
        shown = data[start : min(stop, start + LONGEST_SHOWN)].tobytes().decode("utf-8", "replace")
        return shown if stop - start <= LONGEST_SHOWN else f"{shown}... ({stop - start} bytes)"
