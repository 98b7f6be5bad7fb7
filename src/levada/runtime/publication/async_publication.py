"""Publishes an epoch beside the next one: on a thread of its own, one at a time
(docs/decisions/0055-publication-beside-the-next-epoch.md).

    commit n | intention n + 1 | job n + 1 ......... | commit n + 1
             | results of n to sinks, letters ... |  ^ joined here

Only expensive work runs beside: sinks and letters. The index and deletions stay on the loop's
thread. So nothing is ever deleted that the last manifest's publication reads, since a crash repeats
it. ``look`` or ``join`` raises a failure once, on the loop's thread.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import NamedTuple

from levada.checkpoint.manifest import Manifest
from levada.core.size_thresholds import register

MIN_ASYNC_BYTES = register(f"{__name__}.MIN_ASYNC_BYTES", 128 << 10)
"""Bytes of segments from which on a publication goes beside: some 3,000 rows, 10 ms."""
A_QUERY = register(f"{__name__}.A_QUERY", 4 << 10)
"""What a query with results counts beyond its bytes: its file, which goes to the disk."""


class PendingPublication(NamedTuple):
    """The remaining work of an epoch's publication."""

    epoch: int
    work: Callable[[], None]


class PublicationThread:
    """The publication that runs beside the loop. It calls ``ended`` on its own thread when it is
    over.
    """

    def __init__(self, ended: Callable[[], None]) -> None:
        self._ended = ended
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None

    def begin(self, work: Callable[[], None]) -> None:
        """Begins a publication. The previous one must be over."""
        assert self._thread is None, "one publication at a time"
        self._thread = threading.Thread(
            target=self._run, args=(work,), name="levada publication", daemon=True
        )
        self._thread.start()

    def _run(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            self._failure = error
        finally:
            self._ended()

    def look(self) -> None:
        """Raises the failure of the publication, if it is over."""
        if self._thread is not None and not self._thread.is_alive():
            self.join()

    def join(self) -> None:
        """Waits until the publication is over; raises its failure."""
        if self._thread is None:
            return
        self._thread.join()
        self._thread, failure, self._failure = None, self._failure, None
        if failure is not None:
            raise failure


def is_worth(manifest: Manifest) -> bool:
    """Whether a thread costs less than it may gain for a manifest's results."""
    size = sum(held.segment_bytes for held in manifest.results_to_publish)
    return size > 0 and size + A_QUERY * len(manifest.counts) >= MIN_ASYNC_BYTES
