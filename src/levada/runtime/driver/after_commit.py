"""The steps after a commit: publish results to sinks, notify readers, and delete rows that were
read.

If the next epoch runs in other processes, the first two overlap it
(docs/decisions/0055-publication-beside-the-next-epoch.md): ``publish`` returns them as a
``PendingPublication``. All else runs on the loop's thread before the next epoch is decided.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from levada.checkpoint.manifest import Manifest
from levada.core.frozen import frozen
from levada.runtime.driver.source_coordinator import SourceCoordinator
from levada.runtime.driver.spool_registry import Spools
from levada.runtime.executor import Executor
from levada.runtime.publication.publication import PendingPublication, Publication
from levada.runtime.warmup_executor import all_here

Tell = Callable[[Manifest], None]


@frozen
class Publishing:
    """The publication of epochs that ``executor`` has run. ``tell``: called after each.
    ``promises``: results have a promised delay, so publication must not overlap the next epoch.
    """

    publication: Publication
    executor: Executor
    sourcing: SourceCoordinator
    spools: Spools
    tell: Sequence[Tell]
    promises: bool

    def publish(self, manifest: Manifest) -> PendingPublication | None:
        """Publishes all results of an epoch. Returns the unfinished part if it overlaps the next
        epoch.
        """
        self.publication.checkpoint.reign.check()
        beside = not (self.promises or all_here(self.executor))
        rest = self.publication.publish(manifest, in_background=beside)
        self.spools.forget(self.sourcing.by_path(manifest.positions))
        finish = partial(self._finish, manifest, rest)
        if rest is not None:
            return PendingPublication(manifest.epoch, finish)
        finish()
        return None

    def _finish(self, manifest: Manifest, rest: Callable[[], None] | None) -> None:
        """Finishes an epoch, on the loop's thread, or on the publication's thread if there is a
        rest.
        """
        if rest is not None:
            rest()
        for tell in list(self.tell):
            tell(manifest)

    def again(self, epoch: int, last: Manifest) -> bool:
        """Publishes the last epoch as a whole if ``epoch`` is its number. Returns whether it
        was.
        """
        if epoch != last.epoch:
            return False
        rest = self.publish(last)
        if rest is not None:
            rest.work()
        return True
