"""The placers by name: functions of a problem that give each task a machine.

    uniform      the task's number modulo the machines (KATTS' baseline)
    random       as many tasks to each machine, by lot
    round_robin  in turn, in the order of the flow
    first_fit    in the order of the flow, to the first machine with room
    metis        METIS, objective cut
    metis_vol    METIS, objective vol (KATTS' choice; it looks at no weight)
    refined      a search under a bound on RSD, from METIS' cuts and greedy starts

Each is a function of the problem and its seed alone.
"""

from __future__ import annotations

from collections.abc import Callable

from levada.core.array_types import Ints
from levada.placement import baseline_placers, local_search_placer, metis
from levada.placement.problem import Problem

Placer = Callable[[Problem], Ints]

PLACERS: dict[str, Placer] = {
    "uniform": baseline_placers.uniform,
    "random": baseline_placers.place_evenly,
    "round_robin": baseline_placers.round_robin,
    "first_fit": baseline_placers.first_fit,
    "metis": metis.cut,
    "metis_vol": metis.vol,
    "refined": local_search_placer.refine_placement,
}


def applicable_placers(problem: Problem) -> dict[str, Placer]:
    """Returns the placers for a problem: METIS needs a least number of tasks a machine."""
    return {
        name: placer
        for name, placer in PLACERS.items()
        if not name.startswith("metis") or metis.fits(problem)
    }
