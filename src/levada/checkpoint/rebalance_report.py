"""What a manifest says of balance: the loads of the last round, and what was decided of late, with
its reason, what was expected of it and what came of it.

Bounded: the busiest partitions, the latest decisions.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

MOST_DECIDED, MOST_LOADS = 32, 16
MOVE, GROW, SHRINK = "move", "grow", "shrink"
DIVIDE, UNITE = "divide", "unite"


class Decision(msgspec.Struct, frozen=True):
    """From ``epoch`` on so many ``groups`` are another partition's: those of a ``supplier`` that a
    ``consumer`` took (a move), or those that follow from another number of ``partitions`` (grow,
    shrink; ``supplier`` and ``consumer`` are -1); or one of the ``supplier`` is shared by several,
    or no longer (divide, unite; ``consumer`` is -1). ``before``, ``expected``, ``seen``: the time
    of the busiest partition by the mean one, in the round before, as it was to become, and in the
    round after (None: that is not over).
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
    """A partition in a round: its class, its mean occupancy (0 to 1), and what it took and was
    given an epoch: seconds that passed, of which CPU, rows.
    """

    partition: int
    kind: str
    occupancy: float
    seconds: float
    cpu: float
    rows: int


class RebalanceReport(msgspec.Struct, frozen=True):
    """Balance after the round that ended before ``epoch``. ``ratio``: the time of the busiest
    partition by the mean one. ``overloaded``: suppliers outnumber consumers, and there may be no
    more partitions. ``remark``: why what is uneven stays so ("": it is not, or it does not).
    ``loads``: of the busiest partitions; ``decided``: the latest decisions.
    """

    epoch: int
    partitions: int
    ratio: float
    overloaded: bool = False
    remark: str = ""
    loads: list[PartitionLoad] = []
    decided: list[Decision] = []


STAYS_WHOLE = "and a group stays whole."
"""How a remark ends of a group that no move helps with."""


def with_join_remark(report: RebalanceReport, whole: Sequence[str]) -> RebalanceReport:
    """What is told, with why joins do not divide a group that no move helps with."""
    if not whole or not report.remark.endswith(STAYS_WHOLE):
        return report
    return msgspec.structs.replace(
        report, remark=f"{report.remark} A join is not divided: {whole[0]}."
    )


def with_history(before: RebalanceReport | None, now: RebalanceReport) -> RebalanceReport:
    """What is told after a round: the decisions before it, with what has come of them, and its
    own.
    """
    known = before.decided if before is not None else []
    old = [d if d.seen is not None else msgspec.structs.replace(d, seen=now.ratio) for d in known]
    return msgspec.structs.replace(now, decided=[*old, *now.decided][-MOST_DECIDED:])
