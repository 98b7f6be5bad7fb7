"""How far the next epochs may go, where all reports up to the watermark would be too many for one.

A task that would make too many says up to which instant they are few enough (``ManyReportsError``).
That epoch is not run; the next ones end there, make their reports, and read nothing new until the
watermark has come to where the streams are complete. What they do is what smaller epochs would have
done, so no result depends on it, and nothing of it has to last but the watermarks.
"""

from __future__ import annotations

from levada.core.event_time import MAX, MIN
from levada.core.frozen import frozen
from levada.errors import ManyReportsError


@frozen
class ReportBacklog:
    """``until``: the next epoch goes no further; ``width``: how much time such an epoch covers;
    ``end``: where the reports end that are too many, beyond which no limit is known to be needed.

    >>> limit = ReportBacklog().before(ManyReportsError("", until=1000, width=100, end=1300))
    >>> [limit.until, limit.after(behind=True).until, limit.after(behind=True).after(behind=True)]
    [1000, 1125, ReportBacklog(until=1281, width=156, end=1300)]
    """

    until: int = MAX
    width: int = 0
    end: int = MIN

    def shortened_to(self, error: ManyReportsError) -> ReportBacklog:
        """The limit once a task has said where an epoch must end."""
        return ReportBacklog(error.until, error.width, max(self.end, error.end))

    def for_next_epoch(self, *, behind: bool) -> ReportBacklog:
        """The limit of the epoch that follows one; ``behind``: it has stopped short of where the
        streams are complete. What fits grows by a quarter.
        """
        width = self.width + max(self.width // 4, 1)
        if not behind or self.end - self.until <= width:
            return ReportBacklog()
        return ReportBacklog(self.until + width, width, self.end)
