"""The watch on a folder that other processes write into. The caller lists it only when it may have
changed.

A folder's time changes with each name that is added or removed. File systems store it in steps of
up to ``STEP`` s, so a second change within a step is invisible. So a list counts only if it was
made that long after the time was seen first. Cost: one call of ``stat``.
"""

from __future__ import annotations

import os
from dataclasses import dataclass

STEP = 2.0
"""s: the coarsest resolution of a file system's times."""
_UNKNOWN, _ABSENT = -2, -1


@dataclass
class WatchedFolder:
    """The folder at ``path``; the caller lists it whenever ``may_have_changed`` is true."""

    path: str
    _time: int = _UNKNOWN
    _since: float = 0.0
    _listed: bool = False

    def may_have_changed(self, now: float) -> bool:
        """Whether names may have been added or removed since the last list. ``now``: seconds of a
        monotonic clock.
        """
        try:
            time = os.stat(self.path).st_mtime_ns
        except OSError:
            time = _ABSENT
        if time != self._time:
            self._time, self._since, self._listed = time, now, False
        if self._listed or time == _ABSENT:
            return False
        self._listed = now - self._since > STEP
        return True
