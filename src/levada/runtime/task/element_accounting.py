"""What became of the elements of a reference: each is kept, late, dead or cut, and none vanishes.

The driver counts the elements of a reference when it cuts it from a file, by bytes, or a task does
before it parses them; the task says how many of these it knows the fate of. The two are counted by
different code, so a difference is a mistake in one of them. Where the driver can only guess (the
elements within a document) there is nothing to compare.

Of elements of several lines a line that cannot be read is dead alone, beside its element or as all
of it: there as many may be missing as there are such lines.
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
    """Of how many of the reference's elements it is known what became of them; ``messages``: how
    many it was made of, if it was.
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
    """Offsets and headers that could not be read are among the dead from here on; how far the
    producer says that it is (MIN: it does not), which is believed up to ``ahead`` of the clock.
    """
    for offset, reason in (*(messages.lost if messages is not None else ()), *beside.wrong):
        content.dead.append(Dead(offset, reason, ""))
    if beside.complete > wall + ahead:
        content.dead.append(Dead(beside.complete_at, f"Levada-Watermark: {future(ahead)}", ""))
        return MIN
    return beside.complete
