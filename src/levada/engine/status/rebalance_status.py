"""The state of balance for users: the report of a manifest as plain values."""

from __future__ import annotations

import msgspec

from levada.checkpoint.rebalance_report import RebalanceReport
from levada.core.frozen import frozen


@frozen
class DecisionStatus:
    """A decision of balance: from ``epoch`` on ``groups`` are in another partition. ``what``: a
    move from ``supplier`` to ``consumer``; grow or shrink to ``partitions`` (both are -1); divide
    or unite. The last two begin or end sharing one of the ``supplier`` among several (``consumer``
    is -1). ``before``, ``expected``, ``seen``: the busiest partition's time divided by the mean.
    They are of the round before, as predicted, and of the round after (None: not over). ``why``:
    the reason.
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
    """The load of a partition in a round. ``kind``: its class. ``occupancy``: the mean, 0 to 1.
    ``seconds``, ``cpu``, ``rows``: of an epoch.
    """

    partition: int
    kind: str
    occupancy: float
    seconds: float
    cpu: float
    rows: int


@frozen
class BalanceStatus:
    """The state of balance after the round that ended before ``epoch``. ``ratio``: the time of the
    busiest partition divided by the mean. ``overloaded``: suppliers outnumber consumers, at the
    most partitions. ``remark``: the reason for which an imbalance stays. ``loads``: the busiest
    partitions. ``decided``: the latest decisions.
    """

    epoch: int
    partitions: int
    ratio: float
    overloaded: bool
    remark: str
    loads: tuple[LoadStatus, ...]
    decided: tuple[DecisionStatus, ...]


def balance_status(report: RebalanceReport | None) -> BalanceStatus | None:
    """Converts the report of a manifest; None if it has none."""
    return None if report is None else msgspec.convert(msgspec.to_builtins(report), BalanceStatus)
