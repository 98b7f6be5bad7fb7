"""METIS as a placer: parts of equal load, cut where little is sent.

Its graph is undirected, so an edge weighs what is sent both ways; a task weighs what it receives
and one, so that tasks that receive nothing are dealt out, too. Objective *cut* is the share;
*vol*, KATTS' choice, counts for each task the other parts that it has neighbours in, and looks at
no weight. METIS draws many partitionings and gives the best (``ncuts``). Weights are scaled to what
its integers hold.
"""

from __future__ import annotations

from typing import Literal

import numpy as np
import pymetis

from levada.core.array_types import Ints, Longs
from levada.placement.annealing import Net
from levada.placement.problem import Problem, net

FEWEST = 10
"""Tasks a machine below which METIS is not asked: it may find a part without tasks, and prints."""
CUTS = 32
_MAX_WEIGHT = 1 << 30


def fits(problem: Problem) -> bool:
    """Whether METIS is asked."""
    return problem.machines > 1 and len(problem.graph.tasks) >= FEWEST * problem.machines


def cut(problem: Problem) -> Ints:
    """Little is sent across machines."""
    return partition(net(problem), problem.machines, problem.seed)


def vol(problem: Problem) -> Ints:
    """Few other machines to send to, of each task."""
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
    """METIS' best answer of ``cuts``; a part may be ``uneven`` thousandths above an equal share."""
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
