"""As many partitions as executors have cores, while executors come and go: ``--partitions cores``;
with ``auto`` when they have come or gone, and from there the model says (``runtime.cost_model``).

A change is another group table, which copies nothing (docs/decisions/0028-a-move-is-a-list.md); but
the first epochs behind it look into files of several old partitions. So an executor that is there
for ``MORE`` is used, one that is gone is missed for ``FEWER`` first: Spark replaces one that died
within seconds. What moves are the groups of partitions that leave, and some of each for new ones.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from levada.core.integer_options import MOST_PARTITIONS
from levada.plan.execution.key_group_table import GroupTable, table_of_partitions
from levada.runtime.rebalancing.partition_scaling import spread

MORE, FEWER = 1_000, 10_000
"""ms for which the cores must have been as many, before there are more or fewer partitions."""


class ExecutorCoreTracker:
    """Decides for one run. ``cores``: of the executors that there were for the last epoch (0: that
    is not known, or there is no cluster); ``clock``: of durations, ms. ``always``: else only when
    there are other cores than for the last table that it gave, of so many (``known``).
    """

    def __init__(
        self, cores: Callable[[], int], clock: Callable[[], int], *, always: bool = True,
        known: int = 0,
    ) -> None:  # fmt: skip
        self._cores, self._clock, self._always, self._known = cores, clock, always, known
        self._seen, self._since = 0, 0

    def deal(self, epoch: int, table: GroupTable) -> GroupTable | None:
        """The table from an epoch on, if it is to be another one."""
        cores, now = min(self._cores(), MOST_PARTITIONS), self._clock()
        if cores != self._seen:
            self._seen, self._since = cores, now
        wait = MORE if cores > table.partitions else FEWER
        if cores in (0, *(() if self._always else (self._known,))) or now - self._since < wait:
            return None
        self._known = cores
        if cores == table.partitions:
            return None
        return table_of_partitions(spread(table, np.ones(table.groups), cores), cores)
