"""Bounds the number of reports that are due at once: rows times reports, before any of them is
made.

Windows on close report at a rate, one in a step, while they are non-empty. So the number of reports
in intervals of time follows from their lengths: one sum shows whether it is too much for an epoch,
and only then a sort of their ends finds the instant up to which it is not.
"""

from __future__ import annotations

import numpy as np

from levada.core import column_names as col
from levada.core.array_types import Doubles, Longs
from levada.core.event_time import MAX, MIN, Times
from levada.core.frame import Frame
from levada.errors import ExcessError, ManyReportsError
from levada.plan.execution.row_layout import Layout
from levada.plan.execution.window_table import WindowTable

MOST_REPORTS = 500_000
"""The number of (row, report) pairs that an epoch may always have."""
MOST_OF_A_ROW = 16
"""The average number of reports that each row of an epoch may have."""


def most_reports(rows: int) -> int:
    """Returns the number of pairs that an epoch may have with so many rows; an epoch that ends
    early has half of them.
    """
    return max(MOST_REPORTS, MOST_OF_A_ROW * rows)


LEAST_SECONDS, MOST_SECONDS = 1, 100
"""Seconds of event time whose report rows a query may always have, and may have at most."""


def most_at_rate(rate: int, span: Times, rows: Doubles) -> Doubles:
    """How many report rows a query may have of ``span`` ms of event time that were read at once, at
    this rate (a second): as many as ``MOST_OF_A_ROW`` for each of its rows in any case.

    >>> most_at_rate(1000, np.array([10, 2500]), np.array([1.0, 1.0])).tolist()
    [1000.0, 2500.0]
    """
    at_rate = rate * np.clip(span / 1000, LEAST_SECONDS, MOST_SECONDS)
    most: Doubles = np.maximum(at_rate, MOST_OF_A_ROW * rows)
    return most


def check_rate(report_rows: Doubles, rows: Doubles, span: Times, rate: int) -> None:
    """Raises ``ExcessError`` for a member that makes more ``report_rows`` of its ``rows`` than it
    may have of ``span`` ms: all that were read at once, also if several epochs make them.

    >>> check_rate(np.array([900.0]), np.array([1.0]), np.array([10]), 1000)
    """
    excess = report_rows > most_at_rate(rate, span, rows)
    if excess.any():
        member = int(np.where(excess, report_rows, 0).argmax())
        raise too_many_reports(
            int(report_rows[member]), int(span[member]), rate, member=member, says="would make"
        )


def too_many_reports(
    report_rows: int, span: int, rate: int, *, says: str, member: int = -1
) -> ExcessError:
    """The error of a query with too many report rows of ``span`` ms."""
    seconds = f"{max(span / 1000, 0.001):,.3f}".rstrip("0").rstrip(".")
    return ExcessError(
        f"It {says} {report_rows:,} rows in reports of {seconds} s of event time that were read "
        f"at once; the limit is {rate:,} a second.",
        limit="rate",
        member=member,
    )


def check_reports(start: Times, end: Times, rate: Doubles, longest: int) -> None:
    """Raises ``ManyReportsError`` if [start, end) at these rates (reports a ms) have too many.

    ``longest``: of the steps; an epoch that ends early goes that far, so that it makes a report.

    >>> check_reports(np.array([0]), np.array([1000]), np.array([0.001]), 1000)
    """
    counts = start < end
    start, end, rate = start[counts], end[counts], rate[counts]
    most = most_reports(len(start))
    if ((end - start) * rate).sum() <= most:
        return
    at = np.concatenate([start, end])
    order = np.argsort(at, kind="stable")
    at = at[order]
    slope = np.cumsum(np.concatenate([rate, -rate])[order])
    cumulative = np.append(0.0, np.cumsum(slope[:-1] * np.diff(at)))
    first, last = int(at[0]), int(at[-1]) - 1
    until = max(int(np.interp(most // 2, cumulative, at)), first + longest)
    if until < last:
        raise ManyReportsError(
            f"An epoch would make more than {most:,} reports of rows.",
            until=until,
            width=until - first,
            end=last,
        )


def check_due(start: Times, end: Times, rate: float, most: int) -> None:
    """Raises ``ExcessError`` if there are more than ``most`` reports in the instants of any of
    [start, end) at a rate (0: there may be as many as there are).

    >>> check_due(np.array([0, 500]), np.array([1000, 1500]), 0.001, 1)
    """
    counts = start < end
    start, end = start[counts], end[counts]
    if not most or int((end - start).sum()) * rate <= most:
        return
    order = np.argsort(start, kind="stable")
    start, end = start[order], np.maximum.accumulate(end[order])
    fresh = np.maximum(start, np.append(start[0], end[:-1]))
    due = int(np.maximum(end - fresh, 0).sum() * rate)
    if due > most:
        raise ExcessError(
            f"It would make {due:,} reports of what was read at once; the limit is {most:,}.",
            limit="reports",
        )


def check_listed(times: Times, at: Longs, rows: int) -> None:
    """Raises ``ManyReportsError`` if ``rows`` rows have too many reports. ``at``: the number of
    rows at each of these unordered instants.

    An epoch that ends early goes beyond the first instant: reports on change at that instant are
    made once the watermark is above it, so an epoch that ends there would make nothing, nor would
    the next.

    >>> check_listed(np.array([0, 10]), np.array([3, 3]), 3)
    """
    most = most_reports(rows)
    if at.sum() <= most:
        return
    order = np.argsort(times, kind="stable")
    times, report_counts = times[order], np.cumsum(at[order])
    first, last = int(times[0]), int(times[-1])
    until = max(int(times[np.searchsorted(report_counts, most // 2)]), first + 1)
    if until < last:
        raise ManyReportsError(
            f"An epoch would make more than {most:,} reports of rows.",
            until=until,
            width=until - first,
            end=last,
        )


# Shared count windows, in the axis of numbers (CQELS Cloud, shared joins over windows of other
# lengths).
#
# The elements of a stream are numbered in their order. A row of a shared count window has two
# windows: the window of its event times, and behind it the window of its numbers
# (``WindowKind.NUMBERS``). There ``lo`` is the least number of its triples, ``hi`` the number that
# the stream had reached after the instant at which the last of them came, and ``prev`` the greatest
# number of an earlier occurrence of any. The row is among the last n elements from number max(hi,
# prev + n) until number lo + n, as in a time window of range n. (``hi`` is that of the whole
# instant, since an element that comes and goes within one was never there.)
#
# An earlier occurrence from before the start of a query hides nothing from it. The time of the
# occurrence, ``prev`` of the other window, decides that. Cost: some operations of NumPy a row.


LAST = 1
"""Where the window of the numbers stands: behind that of the times."""


def has_numbers(table: WindowTable) -> bool:
    """Whether the rows of these members have numbers."""
    return table.has_numbers


def reach(frame: Frame, table: WindowTable) -> tuple[Longs, Longs]:
    """Returns the numbers [s, e) beyond which no row counts, by its member's window, wherever equal
    rows came before.
    """
    n = table.range[LAST][frame["op"]]
    return frame[col.greatest(LAST)], frame[col.least(LAST)] + n


def exact_interval(
    frame: Frame, layout: Layout, table: WindowTable, start: Times
) -> tuple[Longs, Longs]:
    """The numbers [s, e) at which each row counts, for queries that begin at ``start`` (ms, of each
    member).
    """
    s, e = reach(frame, table)
    if layout.windows[LAST].prev:
        hides = frame[col.earlier(0)] >= np.maximum(start, MIN + 1)[frame["op"]]
        n = table.range[LAST][frame["op"]]
        s = np.maximum(s, np.where(hides, frame[col.earlier(LAST)] + n, 0))
    return s, e


def max_run_span(table: WindowTable) -> int:
    """A quarter of the longest window: how many elements a run of state may span."""
    return max(int(table.range[LAST].max(initial=0)) // 4, 1)


def leave_numbers(n: int, least: Longs) -> Longs:
    """Returns the number from which on rows are not among the last n; MAX if there is no such
    number.
    """
    return np.minimum(least + n, MAX)
