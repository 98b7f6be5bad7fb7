"""Estimates of the state rows of relaxed joins from measurements (``share_limit``;
docs/decisions/0079-regions-and-bounds-of-state.md).

    rate      rows that a join was given for each ms of event time, between the last two plans that
              followed an event
    of each   its queries want equal parts of these rows, each for as long as its windows reach
    rows      the sum over its queries, and over the new query

Unmeasured joins have no bound: queries that are added together, and a join before its second plan.
No result depends on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from levada.core.event_time import Window
from levada.plan.execution.joins import GIVEN
from levada.plan.execution.plan import At
from levada.plan.sharing.share_relaxed_joins import BlockDemand


@dataclass(slots=True)
class SharedStateEstimates:
    """The rates of the relaxed joins."""

    rows: dict[At, float] = field(default_factory=dict)
    _before: dict[At, int] = field(default_factory=dict)
    _at: int | None = None

    def observe(self, met: Mapping[str, Sequence[int]], at: int) -> None:
        """Records the counts up to this event time.

        >>> rates = SharedStateEstimates()
        >>> rates.observe({}, 1000), rates.observe({"7 0": [100, 900, 30, 100]}, 3000), rates.rows
        (None, None, {(7, 0): 0.05})
        """
        counted_rows = {_at(place): counts[GIVEN] for place, counts in met.items()}
        if self._at is not None and at > self._at:
            for join, rows in counted_rows.items():
                since = rows - self._before.get(join, 0)
                if since >= 0:  # otherwise old counts have faded
                    self.rows[join] = since / (at - self._at)
        self.rows = {join: rate for join, rate in self.rows.items() if join in counted_rows}
        if self._at is None or at > self._at:
            self._before, self._at = counted_rows, at

    def state(self, join: At, reaches: Sequence[int], newcomer: int) -> float | None:
        """Returns the state rows of a join with a new query; None: it has not been measured.

        ``reaches``: the retention of its queries' windows, ms.

        >>> SharedStateEstimates({(7, 0): 0.05}).state((7, 0), [4000, 8000], 60_000)
        1800.0
        """
        rate = self.rows.get(join)
        if rate is None:
            return None
        return rate / max(len(reaches), 1) * (sum(reaches) + newcomer)


def explain_refusal(
    rates: SharedStateEstimates,
    joins: Iterable[At],
    wants: Iterable[BlockDemand],
    newcomer: BlockDemand,
    limit: int,
) -> str:
    """Returns why a new query cannot share joins with these demands; "": it can."""
    measured = [join for join in joins if join in rates.rows]
    if not measured:
        return ""  # so queries that are added together do not examine all others
    reaches = [retention_of(one.windows) for one in wants if one != newcomer]
    for join in measured:
        rows = rates.state(join, reaches, retention_of(newcomer.windows))
        if rows is not None and rows > limit:
            return describe_excess(rows, limit)
    return ""


def retention_of(windows: Sequence[Window]) -> int:
    """Returns how long rows of these windows are kept, ms."""
    return max((window.range for window in windows), default=0)


def describe_excess(rows: float, limit: int) -> str:
    """Returns the reason for a separate join as a text.

    >>> describe_excess(1800.4, 1000)
    'with it the join of others would have some 1,800 rows of state, share_limit is 1,000'
    """
    return (
        f"with it the join of others would have some {rows:,.0f} rows of state, share_limit is "
        f"{limit:,}"
    )


def _at(place: str) -> At:
    node, member = map(int, place.split())
    return node, member
