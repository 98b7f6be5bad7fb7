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
    """A decision: from ``epoch`` on, ``groups`` are in another partition. ``action``: a move from
    ``supplier`` to ``consumer``; grow or shrink to ``partitions`` (both are -1); divide or unite.
    The last two begin or end sharing one of the ``supplier`` among several (``consumer`` is -1).
    ``ratio_before``, ``expected_ratio``, ``measured_ratio``: the time of the busiest partition
    divided by the mean. They are of the round before, as predicted, and of the round after (None:
    not over).
    """

    epoch: int
    action: str
    supplier: int
    consumer: int
    groups: int
    partitions: int
    ratio_before: float
    expected_ratio: float
    reason: str
    measured_ratio: float | None = None


class PartitionLoad(msgspec.Struct, frozen=True):
    """The load of a partition in a round. ``kind``: its class. ``occupancy``: the mean, 0 to 1.
    ``seconds``, ``cpu_seconds``, ``input_rows``: of an epoch.
    """

    partition: int
    kind: str
    occupancy: float
    seconds: float
    cpu_seconds: float
    input_rows: int


class RebalanceReport(msgspec.Struct, frozen=True):
    """The report after the round that ended before ``epoch``. ``ratio``: the time of the busiest
    partition divided by the mean. ``is_overloaded``: suppliers outnumber consumers, and the number
    of partitions is at its maximum. ``imbalance_reason``: why the load stays uneven ("": it does
    not). ``loads``: of the busiest partitions. ``decisions``: the latest ones.
    """

    epoch: int
    partitions: int
    ratio: float
    is_overloaded: bool = False
    imbalance_reason: str = ""
    loads: list[PartitionLoad] = []
    decisions: list[Decision] = []


STAYS_WHOLE = "and a group stays whole."
"""The end of a remark on a group that no move relieves."""


def with_join_remark(report: RebalanceReport, whole: Sequence[str]) -> RebalanceReport:
    """Returns the report with the reason why joins do not divide a group that no move relieves."""
    if not whole or not report.imbalance_reason.endswith(STAYS_WHOLE):
        return report
    return msgspec.structs.replace(
        report, imbalance_reason=f"{report.imbalance_reason} A join is not divided: {whole[0]}."
    )


def with_history(before: RebalanceReport | None, now: RebalanceReport) -> RebalanceReport:
    """Returns the report after a round, with the previous decisions and their effects."""
    known = before.decisions if before is not None else []
    old = [
        d if d.measured_ratio is not None else msgspec.structs.replace(d, measured_ratio=now.ratio)
        for d in known
    ]
    return msgspec.structs.replace(now, decisions=[*old, *now.decisions][-MOST_DECIDED:])
