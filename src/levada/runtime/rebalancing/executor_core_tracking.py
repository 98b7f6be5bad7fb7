"""Keeps as many partitions as executors have cores, while executors join and leave: ``--partitions
cores``. With ``auto`` it acts when executors have joined or left, and otherwise the model decides
(``runtime.cost_model``).

A change is another group table, which copies nothing (docs/decisions/0028-a-move-is-a-list.md). But
the first epochs after it read state files of several old partitions. So an executor is used after
it has been present for ``MORE``, and a lost one counts for ``FEWER``: Spark replaces one that died
within seconds. A change moves the groups of partitions that leave, and some of each for new ones.
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
    """Decides for one run. ``cores``: of the executors in the last epoch (0: unknown, or there is
    no cluster). ``clock``: of durations, ms. ``always``: act on any difference; otherwise only if
    the cores differ from those of its last table (``known``).
    """

    def __init__(
        self, cores: Callable[[], int], clock: Callable[[], int], *, always: bool = True,
        known: int = 0,
    ) -> None:  # fmt: skip
        self._cores, self._clock, self._always, self._known = cores, clock, always, known
        self._seen, self._since = 0, 0

    def deal(self, epoch: int, table: GroupTable) -> GroupTable | None:
        """Returns the group table from an epoch on, if it changes."""
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
