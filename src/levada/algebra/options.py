"""How a query's text becomes a query: the options beside the text that change its meaning (design, section 1).

Each has the design's default, and each can be set for one query. The translation of every language reads them from here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

Bounds = Literal["[)", "(]"]
ReportPolicy = Literal["close", "change"]


@dataclass(frozen=True, slots=True)
class QueryOptions:
    """Options of one query.

    ``bounds``: which end of a closing window belongs to it. ``t0`` (ms since 1970): the first window starts there and what
    is before it is in no window; None aligns windows to 1970. ``report``: when a query is evaluated; None is on close where
    a window has a STEP and on content change elsewhere. ``empty_reports``: also evaluate where all windows are empty.

    >>> QueryOptions(report="change").bounds
    '[)'
    """

    bounds: Bounds = "[)"
    t0: int | None = None
    report: ReportPolicy | None = None
    empty_reports: bool = False

    def __post_init__(self) -> None:
        assert self.bounds in get_args(Bounds), "bounds are '[)' or '(]'"
        assert self.report is None or self.report in get_args(ReportPolicy), "a report policy is 'close' or 'change'"
