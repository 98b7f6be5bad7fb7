"""Shared count windows, in the axis of numbers (CQELS Cloud, shared joins over windows of other
lengths).

The elements of a stream are numbered in their order. A row of a shared count window has two
windows: the window of its event times, and behind it the window of its numbers
(``WindowKind.NUMBERS``). There ``lo`` is the least number of its triples, ``hi`` the number that
the stream had reached after the instant at which the last of them came, and ``prev`` the greatest
number of an earlier occurrence of any. The row is among the last n elements from number max(hi,
prev + n) until number lo + n, as in a time window of range n. (``hi`` is that of the whole instant,
since an element that comes and goes within one was never there.)

An earlier occurrence from before the start of a query hides nothing from it. The time of the
occurrence, ``prev`` of the other window, decides that. Cost: some operations of NumPy a row.
"""

from __future__ import annotations

import numpy as np

from levada.core import column_names as col
from levada.core.array_types import Longs
from levada.core.event_time import MAX, MIN, Times
from levada.core.frame import Frame
from levada.plan.execution.row_layout import Layout
from levada.plan.execution.window_table import WindowTable

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
