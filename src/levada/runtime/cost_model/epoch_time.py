"""What an epoch of the engine takes, as one task or spread over tasks: the model ``epochs`` for a
plan that is there (BriskStream's rate model, Zhang et al., SIGMOD 2019, section 3, for barriers).

    alone   all calls one after the other
    apart   reading, spread over readers; then stage after stage, each as long as its fullest core

Both are the CPU time on the way that nothing shortens; what Spark adds, and what cores that work at
once take from each other, is a line over it (``trend``). Times are in ms. Cost: by stages.
"""

from __future__ import annotations

import math
from dataclasses import replace

from levada.core.frozen import frozen


@frozen
class StageLoad:
    """Of a stage in an epoch: ms of each partition's call whatever rows it gets, ms of all rows,
    and what part of these the fullest partition has.
    """

    fixed: float
    rows: float
    fullest: float = 1.0


@frozen
class Load:
    """An epoch: ms of reading, and its stages."""

    reading: float
    stages: tuple[StageLoad, ...]


def time_as_one_task(load: Load, partitions: int) -> float:
    """As one task.

    >>> alone(Load(5.0, (StageLoad(1.0, 10.0, 0.6),)), 2)
    17.0
    """
    return load.reading + sum(partitions * stage.fixed + stage.rows for stage in load.stages)


def time_as_many_tasks(load: Load, partitions: int, cores: int, readers: int) -> float:
    """As a task for each partition, and so many that read. A core has the fullest partition, or its
    share of all.

    >>> apart(Load(5.0, (StageLoad(1.0, 10.0, 0.6),)), 2, 2, 1)
    12.0
    """
    waves = math.ceil(partitions / cores)
    share = 1.0 / min(cores, partitions)
    return load.reading / max(min(readers, cores), 1) + sum(
        waves * stage.fixed + stage.rows * max(stage.fullest, share) for stage in load.stages
    )


def over_partitions(load: Load, now: int, partitions: int) -> Load:
    """The same epoch over another number of partitions: the fullest has as much more than its share
    as it has now.

    >>> over(Load(5.0, (StageLoad(1.0, 10.0, 0.6),)), 2, 4).stages[0].fullest
    0.3
    """
    return replace(
        load,
        stages=tuple(
            replace(stage, fullest=min(stage.fullest * now / partitions, 1.0))
            for stage in load.stages
        ),
    )
