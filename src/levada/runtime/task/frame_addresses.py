"""Names the frames of a blob by their purpose. Only this module makes and parses the names."""

from __future__ import annotations

from enum import StrEnum
from functools import lru_cache
from typing import NamedTuple


class FrameKind(StrEnum):
    """The content of a frame: rows of a node's input, folded panes or slices, the subjects of
    closed elements, or the event times of a stream's elements.
    """

    ROWS = "n"
    PANES = "p"
    SLICES = "s"
    CLOSED = "closed"
    TIMES = "times"


class FrameAddress(NamedTuple):
    """The address of a frame. ``number``: of the node (ROWS, PANES, SLICES), or of the stream.
    ``input``: of the node.
    """

    what: FrameKind
    number: int
    input: int = 0

    @property
    def name(self) -> str:
        """The name of the frame in a blob.

        >>> FrameAddress(FrameKind.ROWS, 7, 1).name, FrameAddress(FrameKind.TIMES, 2).name
        ('n.7.1', 'times.2')
        """
        rest = f".{self.input}" if self.what is FrameKind.ROWS else ""
        return f"{self.what}.{self.number}{rest}"

    @staticmethod
    @lru_cache(maxsize=4096)
    def parse(name: str) -> FrameAddress | None:
        """Parses a name; None: a frame of the table of texts.

        >>> FrameAddress.parse("n.7.1") == (FrameKind.ROWS, 7, 1), FrameAddress.parse("terms.id")
        (True, None)
        """
        what, *numbers = name.split(".")
        return FrameAddress(FrameKind(what), *map(int, numbers)) if what in _KNOWN else None


_KNOWN = frozenset(map(str, FrameKind))
