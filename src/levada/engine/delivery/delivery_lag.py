"""The lag of outputs, read from the checkpoint, for ``levada status``. It works with and without a
running engine.
"""

from __future__ import annotations

from collections.abc import Container
from pathlib import Path

from levada.checkpoint.delivery_progress import Delivered, read_deliveries
from levada.checkpoint.result_index import Cursor, Entry
from levada.core.count_text import count_text
from levada.core.event_time import MAX
from levada.core.frozen import frozen
from levada.engine.suspended_queries import read_suspended


@frozen
class OutputStatus:
    """The state of an output. ``pending_reports``: the reports that it has not received.
    ``oldest_pending_ms``: when the first of these was published (ms by the clock; None without
    one). ``reason``: the reason why the target is unavailable. ``blocks_intake``: the intake waits
    for this output. ``note``: a remark about its query.
    """

    query: str
    target: str
    pending_reports: int
    oldest_pending_ms: int | None
    reason: str
    blocks_intake: bool
    note: str = ""

    @property
    def undelivered(self) -> str:
        """Returns the sentence about an output that is behind at the end of a run."""
        reports = count_text(self.pending_reports, "report")
        why = self.reason or f"{self.target} has not taken all yet."
        return f"{self.query}: {reports} left to deliver by the next run on the checkpoint: {why}"


def outputs_of(root: Path, now: list[Delivered] | None = None) -> tuple[OutputStatus, ...]:
    """Returns the outputs of a checkpoint. ``now``: their progress in the running engine; without
    it, as of the last second. Raises ``CheckpointError``.
    """
    known = read_deliveries(root) if now is None else now
    entries = Cursor(root).read_new() if known else []
    suspended = read_suspended(root) if known else {}
    return tuple(_status(one, entries, _note(one, suspended)) for one in known)


def _note(one: Delivered, suspended: Container[str]) -> str:
    """Describes an output whose query has been removed or suspended.

    >>> _note(Delivered("q", "kafka://b/t", 3, 0, 1, 3), ["q"])
    'The query q is suspended: kafka://b/t gets what it reported before, and more when it goes on.'
    """
    if one.last_epoch < MAX:
        return (
            f"The query {one.query} was dropped: this output ends when {one.target} has what it "
            f"reported up to epoch {one.last_epoch:,}."
        )
    if one.query in suspended:
        return (
            f"The query {one.query} is suspended: {one.target} gets what it reported before, and "
            "more when it goes on."
        )
    return ""


def _status(one: Delivered, entries: list[Entry], note: str) -> OutputStatus:
    first = max(one.delivered_epoch, one.after_epoch)
    left = [e for e in entries if first < e.epoch <= one.last_epoch and one.query in e.queries]
    behind = sum(e.queries[one.query][2] for e in left)
    oldest = left[0].wall_ms if left else None
    return OutputStatus(one.query, one.target, behind, oldest, one.reason, one.blocks_intake, note)
