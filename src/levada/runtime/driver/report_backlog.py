"""The limit on how far the next epochs advance, if all reports up to the watermark would be too
many for one epoch.

A task with too many reports returns the instant up to which they are few enough
(``ManyReportsError``). Its epoch is not run. The next epochs end at that instant, make their
reports, and read nothing new until the watermark has reached the completeness of the streams.
Smaller epochs would have done the same, so no result depends on the limit. Only the watermarks are
persistent.
"""

from __future__ import annotations

from levada.core.event_time import MAX, MIN
from levada.core.frozen import frozen
from levada.errors import ManyReportsError


@frozen
class ReportBacklog:
    """A limit in event time. ``until``: the next epoch advances no further. ``width``: the time
    that such an epoch covers. ``end``: the end of the reports that are too many, after which no
    limit is known to be necessary.

    >>> limit = ReportBacklog().shortened_to(ManyReportsError("", until=1000, width=100, end=1300))
    >>> following = limit.for_next_epoch(behind=True)
    >>> [limit.until, following.until, following.for_next_epoch(behind=True)]
    [1000, 1125, ReportBacklog(until=1281, width=156, end=1300)]
    """

    until: int = MAX
    width: int = 0
    end: int = MIN

    def shortened_to(self, error: ManyReportsError) -> ReportBacklog:
        """Returns the limit after a task has said where an epoch must end."""
        return ReportBacklog(error.until, error.width, max(self.end, error.end))

    def for_next_epoch(self, *, behind: bool) -> ReportBacklog:
        """Returns the limit of the next epoch. ``behind``: the last one stopped before the
        completeness of the streams. The width that fits grows by a quarter.
        """
        width = self.width + max(self.width // 4, 1)
        if not behind or self.end - self.until <= width:
            return ReportBacklog()
        return ReportBacklog(self.until + width, width, self.end)
