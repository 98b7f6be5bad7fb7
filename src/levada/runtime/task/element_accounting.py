"""Accounts for the elements of a reference: each is kept, late, dead or cut, and none is lost.

The driver counts the elements of a reference when it cuts it from a file, or a task does before it
parses them. Then the task counts the elements whose fate it knows. Different code makes the two
counts, so a difference is a bug in one of them. If the driver can only guess (the elements in a
document), nothing is compared.

In elements of several lines, an unreadable line is dead alone, as a part of its element or all of
it. Then as many elements may be missing as there are such lines.
"""

from __future__ import annotations

from levada.connectors.config.input_formats import DERIVED
from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.ingest.elements import Elements
from levada.connectors.ingest.lateness import Dead, future
from levada.connectors.ingest.tables.tuple_rows import Tuples
from levada.connectors.sources.message_headers import MessageHeaders
from levada.connectors.sources.message_texts import Messages
from levada.connectors.sources.splits import FileSplit
from levada.core.event_time import MIN


def count_accounted(
    config: StreamConfig, reference: FileSplit, content: Elements | Tuples, messages: int | None
) -> int:
    """Counts the elements of the reference with a known fate. ``messages``: the number of messages
    of the reference, if it has messages.
    """
    counted = reference.elements
    kept = content.n if isinstance(content, Tuples) else content.elements
    explained = kept + len(content.late) + len(content.dead) - content.alone + content.cut
    if messages is not None:  # offsets without one are not missing
        lines = config.element == "line"
        return counted if lines else counted - messages + explained + content.blank
    guessed = config.documents and config.element != "document"
    if guessed or reference.format == DERIVED:
        return counted
    if config.element == "document" and not explained and not content.dead:
        return counted  # without a statement it is no element
    if config.element != "line":
        explained += min(max(counted - explained, 0), content.alone)
    return explained


def apply_message_headers(
    content: Elements | Tuples,
    messages: Messages | None,
    beside: MessageHeaders,
    *,
    wall: int,
    ahead: int,
) -> int:
    """Adds unreadable offsets and headers to the dead letters. Returns the watermark that the
    producer declares (MIN: none), if it is at most ``ahead`` of the clock.
    """
    for offset, reason in (*(messages.lost if messages is not None else ()), *beside.wrong):
        content.dead.append(Dead(offset, reason, ""))
    if beside.complete > wall + ahead:
        content.dead.append(Dead(beside.complete_at, f"Levada-Watermark: {future(ahead)}", ""))
        return MIN
    return beside.complete
