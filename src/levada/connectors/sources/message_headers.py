"""Reads the headers of messages, which add metadata to the texts
(``levada.connectors.config.message_metadata``).

Cost: Python for each header; nothing for messages without headers.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

import numpy as np
import polars as pl

from levada.connectors.config.message_metadata import (
    CONTENT,
    HEADER,
    SHOWN,
    WATERMARK,
    format_said,
    header_column,
)
from levada.core.event_time import MIN
from levada.kernels.text.timestamps import instants

Header = tuple[str, bytes | None]
_PUSHED = re.compile(r"\.w(-?[0-9]+)\.[a-z]+$")


def time_said(value: bytes | None) -> int:
    """Parses the time of a watermark, in ms; MIN if it is not one.

    >>> time_said(b"1970-01-01T00:00:01Z"), time_said(b"7"), time_said(b"soon") == MIN
    (1000, 7, True)
    """
    text = np.frombuffer(value or b"", np.uint8)
    return int(instants(text, np.zeros(1, np.int64), np.array([len(text)]), 0)[0])


def complete_at_end(name: str) -> int:
    """Returns the watermark in the name of a pushed file (``connectors.spool.push_spool``); MIN:
    none.

    >>> complete_at_end("000000000000012.x78af5f94892f3950.w70.nq"), complete_at_end("12.nq") == MIN
    (70, True)
    """
    match = _PUSHED.search(name)
    return int(match[1]) if match is not None else MIN


@dataclass(slots=True)
class MessageHeaders:
    """The metadata in the headers of n messages. ``formats``: of each message, "" for the stream's
    own; empty if no header declares one. ``complete``: the greatest watermark (ms; MIN: none),
    declared at the offset ``complete_at``. ``wrong``: offsets with a faulty header, and the faults.
    """

    formats: list[str] = field(default_factory=list)
    complete: int = MIN
    complete_at: int = 0
    wrong: list[tuple[int, str]] = field(default_factory=list)

    def hear(self, offset: int, name: str, value: bytes | None) -> None:
        """Adds a watermark, if this header is one."""
        if name.lower() != WATERMARK:
            return
        time = time_said(value)
        if time == MIN:
            said = (value or b"")[:SHOWN].decode("utf-8", "replace")
            self.wrong.append((offset, f"its Levada-Watermark is no time: {said}"))
        elif time > self.complete:
            self.complete, self.complete_at = time, offset


def read_headers(
    headers: Iterable[tuple[int, Sequence[Header]]], taken: Sequence[int], *, rdf: bool
) -> MessageHeaders:
    """Reads headers by the offsets of their messages, of which ``taken`` have a text, in order.
    Messages without headers may be left out. ``rdf``: whether headers may declare a format.
    """
    declared, formats = MessageHeaders(), dict[int, str]()
    for offset, all_ in headers:
        for name, value in all_ or ():
            declared.hear(offset, name, value)
            if rdf and name.lower() == CONTENT:
                formats[offset] = format_said(value)
    if formats:
        declared.formats = [formats.get(offset, "") for offset in taken]
    return declared


def header_columns(
    names: Iterable[str], headers: Sequence[Sequence[Header] | None]
) -> dict[str, pl.Series]:
    """Returns the columns among ``names`` that are headers: for each message the last value, as
    text; null without one.
    """
    columns: dict[str, pl.Series] = {}
    for wanted in names:
        if wanted.startswith(HEADER):
            column = header_column(wanted.removeprefix(HEADER))
            values = [_value(all_ or (), column) for all_ in headers]
            columns[wanted] = pl.Series(wanted, values, pl.String)
    return columns


def _value(headers: Sequence[Header], column: str) -> str | None:
    said = [value for name, value in headers if header_column(name) == column]
    return None if not said or said[-1] is None else said[-1].decode("utf-8", "replace")
