"""METIS as a placer: parts of equal load with few messages between them.

Its graph is undirected: an edge weighs the messages of both directions, a task its received
messages plus one, so that tasks without input are also distributed. Objective *cut* is the share.
*vol*, KATTS' choice, counts for each task the other parts with neighbours and ignores weights.
METIS draws many partitionings and returns the best (``ncuts``). Weights are scaled to the range of
its integers.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import pymetis

from levada.core.array_types import Ints, Longs
from levada.placement.annealing import Net
from levada.placement.problem import Problem, net

FEWEST = 10
"""The least tasks a machine for METIS, which else may leave a part without tasks, and prints."""
CUTS = 32
_MAX_WEIGHT = 1 << 30


def fits(problem: Problem) -> bool:
    """Returns whether METIS is applicable."""
    return problem.machines > 1 and len(problem.graph.tasks) >= FEWEST * problem.machines


def cut(problem: Problem) -> Ints:
    """Places with few messages across machines."""
    return partition(net(problem), problem.machines, problem.seed)


def vol(problem: Problem) -> Ints:
    """Places with few other machines as receivers of each task."""
    return partition(net(problem), problem.machines, problem.seed, aim="vol")


def partition(
    net: Net,
    machines: int,
    seed: int,
    *,
    aim: Literal["cut", "vol"] = "cut",
    uneven: int = 30,
    cuts: int = CUTS,
) -> Ints:
    """Returns METIS' best result of ``cuts``. A part may be ``uneven`` thousandths above an equal
    share.
    """
    options = pymetis.Options(
        seed=seed % _MAX_WEIGHT,
        ufactor=uneven,
        ncuts=cuts if net.load.size <= 2_000 else 1,
        objtype=int(aim == "vol"),
    )
    _, parts = pymetis.part_graph(
        machines,
        pymetis.CSRAdjacency(net.first, net.other.astype(np.int64)),
        vweights=_whole(net.load) + 1,
        eweights=np.maximum(_whole(net.out + net.back), 1),
        recursive=False,
        options=options,
    )
    return np.asarray(parts, np.int32)


def _whole(part: np.ndarray[tuple[int], np.dtype[np.float64]]) -> Longs:
    return np.rint(part * _MAX_WEIGHT / max(1.0, float(part.sum()))).astype(np.int64)
