"""The limits of a query over several epochs: reports and their rows from input that was read at
once, kept bytes, rows of state.

Manifests and the index have the numbers, so nothing else is read. If reports are too many for one
epoch, the next epochs make the rest and read nothing meanwhile. All of these count together, since
all other queries wait for them. Reports published before a suspension stay.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

import numpy as np

from levada.checkpoint.manifest import Manifest
from levada.checkpoint.result_counts import NONE, living_rows, merge_counts, names_of
from levada.checkpoint.result_index import Index, Keep
from levada.core.array_types import Bools
from levada.core.event_time import TIMELESS
from levada.core.frame import Frame
from levada.core.integer_options import check_count
from levada.core.query_limits import Limited, QueryLimits
from levada.errors import ExcessError, UsageError
from levada.operators.windowing.report_count_bound import (
    MOST_OF_A_ROW,
    most_at_rate,
    too_many_reports,
)
from levada.plan.execution.plan import Plan
from levada.plan.sharing.sharing_modes import Sharing
from levada.runtime.epoch_pipeline import EpochRunner

_NO_ROWS = NONE.frame()


def limits_of(said: str, max_rows: int, keep: Keep | None, sharing: Sharing) -> QueryLimits:
    """Returns the limits of one query from the options. Raises ``UsageError``."""
    limits = QueryLimits.parse(said, check_count(max_rows, "max_rows"))
    check_kept(limits, keep)
    check_state(limits, sharing)
    return limits


def check_kept(limits: QueryLimits, keep: Keep | None) -> None:
    """Raises ``UsageError`` for a limit on kept results if no results are kept."""
    if limits.kept and keep is None:
        raise UsageError(
            "The limit kept is of results that are kept for other processes, and none are.",
            hint="Say how long they are kept (--keep 1h), or leave the limit out.",
        )


def check_state(limits: QueryLimits, sharing: Sharing) -> None:
    """Raises ``UsageError`` for a limit on rows of state if queries share rows that no single query
    would have.
    """
    if limits.state and sharing not in (Sharing.OFF, Sharing.EXACT):
        raise UsageError(
            f"The limit state is for --sharing off and exact: with {sharing} operators have rows "
            "of several queries that are no query's own.",
            hint="Leave the limit out, or say another --sharing.",
        )


class QueryQuotas:
    """The quantities that the limits bound. ``_rows``: rows of queries from input that was read at
    once, by node and member. ``_empty``: reports without rows.
    """

    def __init__(self, limits: Limited) -> None:
        self._limits = limits
        self._rows, self._empty = _NO_ROWS, Counter[str]()
        self._epoch = -1
        self._before = self._known = 0  # elements
        self._behind = False

    def find_excesses(self, epochs: EpochRunner, index: Index | None) -> dict[str, ExcessError]:
        """Returns the queries that exceed a limit after an epoch, with the error."""
        manifest = epochs.last
        counts = self._limits.any("reports") or self._limits.any("rate")
        new = counts and manifest.epoch != self._epoch
        excesses = self._find_too_frequent(manifest, epochs.load_plan(manifest.plan)) if new else {}
        for name, n in manifest.excess_state_rows.items():
            most = self._limits.limits_of_query(name).state
            message = f"Its windows have {n:,} rows of state in reach; the limit is {most:,}."
            excesses[name] = ExcessError(message, limit="state")
        if index is not None:
            for name in manifest.result_bytes:
                most = self._limits.limits_of_query(name).kept
                if most and index.sizes[name] > most:
                    message = (
                        f"{index.sizes[name]:,} bytes of its results are kept; "
                        f"the limit is {most:,}."
                    )
                    excesses[name] = ExcessError(message, limit="kept")
        return excesses

    def _find_too_frequent(self, manifest: Manifest, plan: Plan) -> dict[str, ExcessError]:
        counts = manifest.counts.frame()
        if self._behind:
            counts, _ = merge_counts([self._rows, counts])
        else:
            self._empty, self._before = Counter(), self._known
        self._rows = counts
        self._known = sum(record.elements for record in manifest.streams.values())
        self._epoch, self._behind = manifest.epoch, manifest.behind
        for name, times in manifest.shown_reports.items():
            rows = manifest.counts.query_counts(plan.queries.get(name)) or (0, 0, 0, 0)
            self._empty[name] += max(len(times) - rows[3], 0)
        return {**self._find_too_dense(plan), **dict(self._find_too_many(plan))}

    def _find_too_many(self, plan: Plan) -> Iterator[tuple[str, ExcessError]]:
        """Yields the queries with too many reports."""
        if not self._limits.any("reports"):
            return
        rows = self._living_rows(plan, self._rows["reports"] > self._limits.lowest("reports"))
        made = Counter(dict(zip(names_of(plan, rows), rows["reports"].tolist(), strict=True)))
        for name, empty in self._empty.items():
            made[name] = empty + self._reports_of(plan, name)
        for name, n in made.items():
            most = self._limits.limits_of_query(name).reports
            if 0 < most < n:
                message = (
                    f"It has made {n:,} reports of what was read at once; the limit is {most:,}."
                )
                yield name, ExcessError(message, limit="reports")

    def _find_too_dense(self, plan: Plan) -> dict[str, ExcessError]:
        """Returns the queries with too many rows in reports for the event time of the reports."""
        if not self._limits.any("rate"):
            return {}
        rows = self._rows
        rows = rows.where((rows["most"] > TIMELESS) & (rows["reports"] > MOST_OF_A_ROW))
        excesses = {}
        read = np.full(rows.n, max(self._known - self._before, 0), np.float64)
        span = np.maximum(rows["most"] - rows["least"], 0)
        over = rows["n"] > most_at_rate(self._limits.lowest("rate"), span, read)
        rows, span, read = rows.where(over), span[over], read[over]
        alive = living_rows(plan, rows)
        rows, span, read = rows.where(alive), span[alive], read[alive]
        for i, name in enumerate(names_of(plan, rows)):
            rate, n = self._limits.limits_of_query(name).rate, int(rows["n"][i])
            if rate and n > most_at_rate(rate, span[i : i + 1], read[i : i + 1])[0]:
                excesses[name] = too_many_reports(n, int(span[i]), rate, says="has made")
        return excesses

    def _living_rows(self, plan: Plan, at: Bools) -> Frame:
        rows = self._rows.where(at)
        return rows.where(living_rows(plan, rows))

    def _reports_of(self, plan: Plan, name: str) -> int:
        """Counts the reports with rows of a query."""
        query = plan.queries.get(name)
        if query is None:
            return 0
        at = (self._rows["node"] == query.node) & (self._rows["op"] == query.member)
        return int(self._rows["reports"][at].sum())
