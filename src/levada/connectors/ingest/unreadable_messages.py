"""Isolates messages that make a reader raise, for any reason: each is one dead letter, and the
others are read.

A reader takes the messages of a spool file, or of a range of offsets, at once. If it raises, they
are tried by halves. A message that raises alone is blank in the second try, with its fault in the
metadata. Cost: nothing without an error; else log2(messages) readings for each such message.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeVar

import msgspec
import numpy as np

from levada.connectors.sources.file_errors import is_of_data, reason
from levada.connectors.sources.message_texts import Messages
from levada.connectors.sources.read_split import CsvChunk, JsonChunk
from levada.connectors.sources.source_reader import SplitContent
from levada.core.array_types import Bytes, Longs
from levada.errors import LevadaError

_T = TypeVar("_T")


def read_apart(read: Callable[[], SplitContent], work: Callable[[SplitContent], _T]) -> _T:
    """Returns the result of ``work`` on the output of ``read``, which is called again after a
    fault, since ``work`` may modify that output.
    """
    content = read()
    try:
        return work(content)
    except BaseException as error:
        if content.messages is None or not _is_of_message(error):
            raise
        content = read()
        faults = _faults(content, work, 0, len(content.messages or ()))
        if not faults:
            raise
    return work(_blank(content, faults))


def _is_of_message(error: BaseException) -> bool:
    return is_of_data(error) and not isinstance(error, LevadaError)


def _faults(
    content: SplitContent, work: Callable[[SplitContent], _T], low: int, high: int
) -> dict[int, str]:
    """Returns the reasons why messages of ``low:high`` raise, each alone."""
    if low == high:
        return {}
    assert content.messages is not None, "it is made of messages"
    others = dict.fromkeys((*range(low), *range(high, len(content.messages))), "")
    try:
        work(_blank(content, others))
    except BaseException as error:
        if not _is_of_message(error):
            raise
        if high - low == 1:
            return {low: f"it cannot be read: {reason(error)}"}
    else:
        return {}
    middle = (low + high) // 2
    return _faults(content, work, low, middle) | _faults(content, work, middle, high)


def _blank(content: SplitContent, faults: Mapping[int, str]) -> SplitContent:
    """Returns a copy in which these messages have no text, with their faults in the metadata."""
    messages, data = content.messages, content.text
    assert messages is not None and data is not None, "it is made of messages"
    inside = np.ones(len(data), np.bool_)
    size = np.diff(messages.starts)
    formats = list(messages.beside.formats or [""] * len(messages))
    for k in faults:
        inside[messages.starts[k] : messages.starts[k + 1] - 1] = False
        size[k], formats[k] = 1, "nt"  # a format without text
    text: Bytes = data[inside]
    starts: Longs = np.concatenate([np.zeros(1, np.int64), np.cumsum(size)])
    wrong = [(int(messages.offsets[k]), why) for k, why in faults.items() if why]
    said = replace(messages.beside, formats=formats, wrong=[*messages.beside.wrong, *wrong])
    blank: Messages = replace(messages, starts=starts, beside=said)
    rows = content.rows
    if isinstance(rows, CsvChunk | JsonChunk):
        rows = replace(rows, data=text)
    reference = msgspec.structs.replace(content.reference, stop=content.reference.start + len(text))
    return SplitContent(text, rows, reference, blank)
