"""What a query has over several epochs, and may not have: reports, and rows in them, of what was
read at once, bytes of its results that are kept, rows of state.

Manifests and the index have the numbers, so nothing is looked at for it. Reports that are too many
for one epoch are made by the next ones, which read nothing until they have: all of these count
together, since all other queries wait for them. What such a query has reported by then stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from levada.errors import ExcessError, UsageError
from levada.model.counts import check_count
from levada.model.limits import Limited, QueryLimits
from levada.model.time import MAX, MIN, TIMELESS
from levada.plan.install.sharing import Sharing
from levada.runtime.store.manifest import Manifest
from levada.runtime.store.published import Index, Keep
from levada.windows.report_bound import MOST_OF_A_ROW, most_at_rate, too_often

_NONE = (0, MAX, MIN, 0)


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


@dataclass
class _Reading:
    """What a query has reported of what was read at once: ``least`` and ``greatest``: the first and
    the last report (ms).
    """

    solutions: int = 0
    reports: int = 0
    least: int = MAX
    greatest: int = MIN

    def add(self, counts: Sequence[int], shown: int) -> None:
        """An epoch's counts of it; ``shown``: its reports, where it shows empty ones."""
        solutions, least, greatest, reports = counts
        self.reports += max(reports, shown)
        if solutions and greatest > TIMELESS:
            self.solutions += solutions
            self.least, self.greatest = min(self.least, least), max(self.greatest, greatest)

    def excess(self, limits: QueryLimits, elements: int) -> ExcessError | None:
        """What is too much, where so many elements were read."""
        if 0 < limits.reports < self.reports:
            return ExcessError(
                f"It has made {self.reports:,} reports of what was read at once; "
                f"the limit is {limits.reports:,}.",
                limit="reports",
            )
        span = max(self.greatest - self.least, 0)
        most = most_at_rate(limits.rate, np.array([span]), np.array([1.0 * elements]))[0]
        if limits.rate and self.reports > MOST_OF_A_ROW and self.solutions > most:
            return too_often(self.solutions, span, limits.rate, says="has made")
        return None


class Totals:
    """Counts what the limits speak of."""

    def __init__(self, limits: Limited) -> None:
        self._limits = limits
        self._of = dict[str, _Reading]()
        self._epoch = -1
        self._before = self._known = 0  # elements
        self._behind = False

    def over(self, manifest: Manifest, index: Index | None) -> dict[str, ExcessError]:
        """Which queries have too much after an epoch, and what."""
        counts = self._limits.any("reports") or self._limits.any("rate")
        found = self._often(manifest) if counts else {}
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

    def _often(self, manifest: Manifest) -> dict[str, ExcessError]:
        if manifest.epoch == self._epoch:
            return {}
        elements = sum(record.elements for record in manifest.streams.values())
        if not self._behind:
            self._of.clear()
            self._before = self._known
        self._known = elements
        self._epoch, self._behind = manifest.epoch, manifest.behind
        shown = manifest.shown_reports
        for name in {*manifest.counts, *shown}:
            counts = manifest.counts.get(name, _NONE)
            self._of.setdefault(name, _Reading()).add(counts, len(shown.get(name, ())))
        read = max(elements - self._before, 0)
        found = {n: of.excess(self._limits.of(n), read) for n, of in self._of.items()}
        return {name: error for name, error in found.items() if error is not None}
