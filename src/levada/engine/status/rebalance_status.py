"""What is known of balance, as users get it: what a manifest tells, as plain values."""

from __future__ import annotations

import msgspec

from levada.checkpoint.rebalance_report import RebalanceReport
from levada.core.frozen import frozen


@frozen
class DecisionStatus:
    """From ``epoch`` on so many ``groups`` are another partition's: ``what`` is a move from
    ``supplier`` to ``consumer``, or grow or shrink (both are -1), to so many ``partitions``; divide
    or unite: one of the ``supplier`` is shared by several, or no longer (``consumer`` is -1).
    ``before``, ``expected``, ``seen``: the time of the busiest partition by the mean one, in the
    round before, as it was to become, and in the round after (None: that is not over). ``why``: in
    words.
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


@frozen
class LoadStatus:
    """A partition in a round: its class, its mean occupancy (0 to 1); an epoch took so many
    ``seconds``, of which ``cpu``, for so many ``rows``.
    """

    partition: int
    kind: str
    occupancy: float
    seconds: float
    cpu: float
    rows: int


@frozen
class BalanceStatus:
    """Balance after the round that ended before ``epoch``. ``ratio``: the time of the busiest
    partition by the mean one. ``overloaded``: suppliers outnumber consumers, and there may be no
    more partitions. ``remark``: why what is uneven stays so. ``loads``: of the busiest partitions;
    ``decided``: the latest decisions.
    """

    epoch: int
    partitions: int
    ratio: float
    overloaded: bool
    remark: str
    loads: tuple[LoadStatus, ...]
    decided: tuple[DecisionStatus, ...]


def balance_status(report: RebalanceReport | None) -> BalanceStatus | None:
    """What a manifest tells of balance; None: nothing."""
    return None if report is None else msgspec.convert(msgspec.to_builtins(report), BalanceStatus)
