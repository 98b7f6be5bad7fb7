"""The rebalancing report in a manifest: the loads of the last round, and recent decisions with
reason, expectation and effect.

It is bounded: the busiest partitions, the latest decisions.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

MOST_DECIDED, MOST_LOADS = 32, 16
MOVE, GROW, SHRINK = "move", "grow", "shrink"
DIVIDE, UNITE = "divide", "unite"


class Decision(msgspec.Struct, frozen=True):
    """A decision: from ``epoch`` on, so many ``groups`` belong to another partition. A ``consumer``
    took them from a ``supplier`` (a move), or they follow from another number of ``partitions``
    (grow, shrink; ``supplier`` and ``consumer`` are -1), or one of the ``supplier`` is shared by
    several, or no longer (divide, unite; ``consumer`` is -1). ``before``, ``expected``, ``seen``:
    the time of the busiest partition by the mean, in the round before, as expected, and in the
    round after (None: not over yet).
    """

    epoch: int
    what: str
    supplier: int
    consumer: int
    groups: int
    partitions: int
    before: float
    expected: float
    why: str
    seen: float | None = None


class PartitionLoad(msgspec.Struct, frozen=True):
    """A partition in a round: its class, its mean occupancy (0 to 1), and per epoch its elapsed
    seconds, the CPU seconds of these, and its input rows.
    """

    partition: int
    kind: str
    occupancy: float
    seconds: float
    cpu: float
    rows: int


class RebalanceReport(msgspec.Struct, frozen=True):
    """The report after the round that ended before ``epoch``. ``ratio``: the time of the busiest
    partition by the mean. ``overloaded``: suppliers outnumber consumers, and the number of
    partitions is at its maximum. ``remark``: why the load stays uneven ("": it does not).
    ``loads``: of the busiest partitions. ``decided``: the latest decisions.
    """

    epoch: int
    partitions: int
    ratio: float
    overloaded: bool = False
    remark: str = ""
    loads: list[PartitionLoad] = []
    decided: list[Decision] = []


STAYS_WHOLE = "and a group stays whole."
"""The end of a remark on a group that no move relieves."""


def with_join_remark(report: RebalanceReport, whole: Sequence[str]) -> RebalanceReport:
    """Returns the report with the reason why joins do not divide a group that no move relieves."""
    if not whole or not report.remark.endswith(STAYS_WHOLE):
        return report
    return msgspec.structs.replace(
        report, remark=f"{report.remark} A join is not divided: {whole[0]}."
    )


def with_history(before: RebalanceReport | None, now: RebalanceReport) -> RebalanceReport:
    """Returns the report after a round, with the previous decisions and their effects."""
    known = before.decided if before is not None else []
    old = [d if d.seen is not None else msgspec.structs.replace(d, seen=now.ratio) for d in known]
    return msgspec.structs.replace(now, decided=[*old, *now.decided][-MOST_DECIDED:])
