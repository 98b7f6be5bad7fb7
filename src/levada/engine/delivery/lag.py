"""How far outputs are behind, as the checkpoint tells it: for ``levada status``, also while an
engine runs on it, and when none does.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from levada.runtime.store.deliveries import Delivered, read_deliveries
from levada.runtime.store.published import Cursor, Entry


@dataclass(frozen=True, slots=True)
class OutputStatus:
    """An output: ``behind``: the reports that it has not had; ``oldest``: when the first of them
    was published (ms by the clock; None: there is none); ``why`` it is away; ``holds``: the intake
    waits for it.
    """

    query: str
    to: str
    behind: int
    oldest: int | None
    why: str
    holds: bool

    @property
    def undelivered(self) -> str:
        """What a run says at its end of an output that is behind."""
        reports = "1 report" if self.behind == 1 else f"{self.behind:,} reports"
        why = self.why or f"{self.to} has not taken all yet."
        return f"{self.query}: {reports} left to deliver by the next run on the checkpoint: {why}"


def outputs_of(root: Path, now: list[Delivered] | None = None) -> tuple[OutputStatus, ...]:
    """The outputs of a checkpoint; ``now``: as the engine itself knows them, else as they were
    within the last second. Raises ``CheckpointError``.
    """
    known = read_deliveries(root) if now is None else now
    entries = Cursor(root).more() if known else []
    return tuple(_status(one, entries) for one in known)


def _status(one: Delivered, entries: list[Entry]) -> OutputStatus:
    left = [e for e in entries if e.epoch > one.reached and one.query in e.queries]
    behind = sum(e.queries[one.query][2] for e in left)
    oldest = left[0].wall if left else None
    return OutputStatus(one.query, one.to, behind, oldest, one.why, one.holds)
