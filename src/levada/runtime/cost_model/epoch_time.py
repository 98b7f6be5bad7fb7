"""Predicts the time of an epoch, as one task or spread over tasks: the model ``epochs`` for a
running plan (BriskStream's rate model, Zhang et al., SIGMOD 2019, section 3, for barriers).

    alone   all calls one after the other
    apart   reading, spread over readers; then stage after stage, each as long as its fullest core

Both times are the CPU time on the critical path. A line over them adds Spark's overhead and the
slowdown of cores that work at once (``epoch_time_trend``). Times are in ms. Cost: linear in the
stages.
"""

from __future__ import annotations

import math
from dataclasses import replace

from levada.core.frozen import frozen


@frozen
class StageLoad:
    """The load of a stage in an epoch: fixed ms of each partition's call, ms of all rows, and the
    share of the rows that the fullest partition has.
    """

    fixed: float
    rows: float
    fullest: float = 1.0


@frozen
class Load:
    """The load of an epoch: ms of reading, and its stages."""

    reading: float
    stages: tuple[StageLoad, ...]


def time_as_one_task(load: Load, partitions: int) -> float:
    """Predicts the time of an epoch that runs as one task.

    >>> time_as_one_task(Load(5.0, (StageLoad(1.0, 10.0, 0.6),)), 2)
    17.0
    """
    return load.reading + sum(partitions * stage.fixed + stage.rows for stage in load.stages)


def time_as_many_tasks(load: Load, partitions: int, cores: int, readers: int) -> float:
    """Predicts the time of an epoch with a task for each partition and so many readers. The busiest
    core has the fullest partition, or its share of all.

    >>> time_as_many_tasks(Load(5.0, (StageLoad(1.0, 10.0, 0.6),)), 2, 2, 1)
    12.0
    """
    waves = math.ceil(partitions / cores)
    share = 1.0 / min(cores, partitions)
    return load.reading / max(min(readers, cores), 1) + sum(
        waves * stage.fixed + stage.rows * max(stage.fullest, share) for stage in load.stages
    )


def over_partitions(load: Load, now: int, partitions: int) -> Load:
    """Scales a load to another number of partitions. The fullest partition keeps its excess over
    its share.

    >>> over_partitions(Load(5.0, (StageLoad(1.0, 10.0, 0.6),)), 2, 4).stages[0].fullest
    0.3
    """
    return replace(
        load,
        stages=tuple(
            replace(stage, fullest=min(stage.fullest * now / partitions, 1.0))
            for stage in load.stages
        ),
    )
