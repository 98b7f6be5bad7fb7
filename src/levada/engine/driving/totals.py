"""What a query has over several epochs, and may not have: reports of what was read at once, bytes
of its results that are kept, rows of state.

Manifests and the index have the numbers, so nothing is looked at for it. Reports that are too many
for one epoch are made by the next ones, which read nothing until they have: all of these count
together, since all other queries wait for them. What such a query has reported by then stays.
"""

from __future__ import annotations

from collections import Counter

from levada.errors import ExcessError, UsageError
from levada.model.counts import check_count
from levada.model.limits import Limited, QueryLimits
from levada.plan.install.sharing import Sharing
from levada.plan.sealed.plan import Plan
from levada.runtime.driver.epoch import Epochs
from levada.runtime.reported import Sums, living, names_of
from levada.runtime.store.manifest import Manifest
from levada.runtime.store.published import Index, Keep


def limits_of(said: str, max_rows: int, keep: Keep | None, sharing: Sharing) -> QueryLimits:
    """What one query may have, as it was said. Raises ``UsageError``."""
    limits = QueryLimits.of(said, check_count(max_rows, "max_rows"))
    check_kept(limits, keep)
    check_state(limits, sharing)
    return limits


def check_kept(limits: QueryLimits, keep: Keep | None) -> None:
    """Raises ``UsageError`` for a limit of what is kept where nothing is."""
    if limits.kept and keep is None:
        raise UsageError(
            "The limit kept is of results that are kept for other processes, and none are.",
            hint="Say how long they are kept (--keep 1h), or leave the limit out.",
        )


def check_state(limits: QueryLimits, sharing: Sharing) -> None:
    """Raises ``UsageError`` for a limit of rows of state where queries have rows together that no
    one of them would have alone.
    """
    if limits.state and sharing not in (Sharing.OFF, Sharing.EXACT):
        raise UsageError(
            f"The limit state is for --sharing off and exact: with {sharing} operators have rows "
            "of several queries that are no query's own.",
            hint="Leave the limit out, or say another --sharing.",
        )


class Totals:
    """Counts what the limits speak of."""

    def __init__(self, limits: Limited) -> None:
        self._limits = limits
        self._reports, self._empty = Sums(), Counter[str]()  # the latter: reports without rows
        self._epoch = -1
        self._behind = False

    def over(self, epochs: Epochs, index: Index | None) -> dict[str, ExcessError]:
        """Which queries have too much after an epoch, and what."""
        manifest = epochs.last
        limited = self._limits.any("reports") and manifest.epoch != self._epoch
        found = self._often(manifest, epochs.planned(manifest.plan)) if limited else {}
        for name, n in manifest.crowded.items():
            most = self._limits.of(name).state
            message = f"Its windows have {n:,} rows of state in reach; the limit is {most:,}."
            found[name] = ExcessError(message, limit="state")
        if index is not None:
            for name in manifest.sizes:
                most = self._limits.of(name).kept
                if most and index.sizes[name] > most:
                    message = (
                        f"{index.sizes[name]:,} bytes of its results are kept; "
                        f"the limit is {most:,}."
                    )
                    found[name] = ExcessError(message, limit="kept")
        return found

    def _often(self, manifest: Manifest, plan: Plan) -> dict[str, ExcessError]:
        if not self._behind:
            self._reports, self._empty = Sums(), Counter()
        self._epoch, self._behind = manifest.epoch, manifest.behind
        self._reports.add(manifest.counts)
        for name, times in manifest.shown_reports.items():
            rows = manifest.counts.of_query(plan.queries.get(name)) or (0, 0, 0, 0)
            self._empty[name] += max(len(times) - rows[3], 0)
        over = ((n, made, self._limits.of(n).reports) for n, made in self._made(plan).items())
        return {
            name: ExcessError(
                f"It has made {made:,} reports of what was read at once; the limit is {most:,}.",
                limit="reports",
            )
            for name, made, most in over
            if most and made > most
        }

    def _made(self, plan: Plan) -> dict[str, int]:
        """The reports of queries of which some may be over the limit."""
        limits = (self._limits.all, *self._limits.own.values())
        least = min(each.reports for each in limits if each.reports)
        rows = self._reports.above(least)
        rows = rows.where(living(plan, rows))
        made = dict(zip(names_of(plan, rows), rows["reports"].tolist(), strict=True))
        empty = {
            name: n + self._reports.of(plan.queries.get(name))[1] for name, n in self._empty.items()
        }
        return made | empty
