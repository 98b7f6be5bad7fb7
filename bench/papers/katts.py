"""KATTS (Fischer, Scharrenbach, Bernstein: network-aware workload scheduling, 2013) on the graphs
that its authors published: OpenGov 2001, months 01 to 08, and SRBench query 3, days 08 to 11.

The graphs are read from ``LEVADA_KATTS``, else from ``../shared/data/katts``; they are not part of
the repository. Each figure says whether it is *quoted* (from the paper), *re-derived* (our scorer
on the published graphs and METIS answers), *predicted* (placements of our own on graphs that were
counted), *measured* or *not measurable here* (12 machines, licensed data).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from levada.core.array_types import Ints
from levada.placement.baseline_placers import uniform
from levada.placement.cost import Score, score
from levada.placement.formats import read_graph
from levada.placement.placement_file import place_by_past
from levada.placement.placers import Placer
from levada.placement.problem import Problem
from levada.placement.send_graph import SendGraph

MACHINES = 12
ROOT = Path(__file__).parents[2]
DATA = Path(os.environ.get("LEVADA_KATTS", ROOT.parent / "shared" / "data" / "katts"))
FIRST = {"opengov": 1, "srbench": 8}
"""The number of the first month, of the first day."""
SETS = {"opengov": "opengov-2001-months", "srbench": "srbench-q3-charley-days"}
ABSENT = f"KATTS' graphs are not in {DATA}; LEVADA_KATTS names another folder"

FIGURES = {
    "Fig. 1": ("measured", "tasks on machines: `levada graph sankey --placement`"),
    "Fig. 2": (
        "measured",
        "topologies: `levada explain --stage topology`; `bench placed` runs both",
    ),
    "Fig. 3": ("quoted, re-derived", "shares: `quoted`, `published`; prev2 and prev3: `learned`"),
    "Fig. 4": ("quoted, re-derived", "RSDs: `quoted_rsd`, `published`"),
    "Fig. 5": ("predicted", "two hashes of files, on synthetic weather: `figure_5`"),
    "Table 1": ("quoted, re-derived", "`quoted_table_1`, `table_1`"),
    "12 machines": ("not measurable here", "`bench placed` measures bytes between four executors"),
}
"""What each is here, and where."""

QUOTED = {
    "opengov": {"uniform": 69.3, "oracle": 28.0, "prev1": 29.5, "prev2": 34.7, "prev3": 35.8},
    "srbench": {"uniform": 100.0, "oracle": 0.13, "prev1": 0.15},
}
"""Fig. 3, in per cent, over the paper's 12 months and its days."""

QUOTED_RSD = {
    "opengov": {"uniform": 5.27, "oracle": 7.04},
    "srbench": {"uniform": 2.68, "oracle": 3.74},
}
"""Fig. 4, in per cent."""

QUOTED_TABLE_1 = {
    "opengov": {"02": [69.5, 29.0, 36.0], "03": [69.8, 32.1, 30.1], "04": [69.8, 37.7, 32.1]},
    "srbench": {"09": [100.0, 0.7, 0.0], "10": [100.0, 0.0, 0.7], "11": [100.0, 0.0, 0.0]},
}
"""Table 1, in per cent: uniform, oracle, and the slice before."""


def slices(name: str) -> list[SendGraph]:
    """The published graphs of a data set, in order."""
    return [read_graph(path) for path in sorted((DATA / SETS[name]).glob("*.json"))]


def answers(name: str) -> list[dict[str, int]]:
    """The published answers of METIS: line i is the machine of task i (from 0 on)."""
    paths = sorted((DATA / SETS[name]).glob("*.metis.part.12"))
    return [{str(i): int(at) for i, at in enumerate(path.read_text().split())} for path in paths]


def by_answer(graph: SendGraph, answer: dict[str, int]) -> Ints:
    """The published placement of a graph's tasks."""
    return np.array([answer[task] for task in graph.tasks], np.int32)


def mean(scores: Sequence[Score]) -> dict[str, float]:
    """Mean share and RSD, and the greatest RSD, in per cent."""
    shares, rsds = [s.share for s in scores], [s.rsd for s in scores]
    told = {"share": np.mean(shares), "rsd": np.mean(rsds), "rsd_max": np.max(rsds)}
    return {key: round(100 * float(value), 4) for key, value in told.items()}


def published(name: str) -> dict[str, dict[str, float]]:
    """Fig. 3 and 4 re-derived: uniform, the oracle's answers, and those of the slice before."""
    graphs, found = slices(name), answers(name)

    def scored(first: int, place: Callable[[int], Ints]) -> dict[str, float]:
        return mean([score(g, place(i), MACHINES) for i, g in enumerate(graphs) if i >= first])

    return {
        "uniform": scored(0, lambda i: uniform(Problem(graphs[i], MACHINES))),
        "oracle": scored(0, lambda i: by_answer(graphs[i], found[i])),
        "prev1": scored(1, lambda i: by_answer(graphs[i], found[i - 1])),
    }


def table_1(name: str = "opengov") -> dict[str, list[float]]:
    """Table 1 re-derived, in per cent: OpenGov's months 02, 03, 04, or SRBench's days 09, 10, 11;
    uniform, oracle and the slice before.
    """
    graphs, found, first = slices(name), answers(name), FIRST[name]
    rows = {}
    for i in (1, 2, 3):
        places = [
            uniform(Problem(graphs[i], MACHINES)),
            by_answer(graphs[i], found[i]),
            by_answer(graphs[i], found[i - 1]),
        ]
        rows[f"{i + first:02}"] = [
            round(100 * score(graphs[i], place, MACHINES).share, 2) for place in places
        ]
    return rows


def savings(published: dict[str, dict[str, dict[str, float]]]) -> dict[str, dict[str, float]]:
    """How many times less than uniform crosses machines, of each set; the paper says 2 to 3 of
    OpenGov, and over 99 % less of SRBench.
    """
    return {
        name: {
            way: round(found["uniform"]["share"] / found[way]["share"], 2)
            for way in ("oracle", "prev1")
        }
        for name, found in published.items()
    }


def from_before(
    placer: Placer, graphs: Sequence[SendGraph], many: int, bound: float
) -> list[Score]:
    """Each slice that has so ``many`` before it, placed by these."""
    return [
        score(
            graphs[i],
            place_by_past(placer, graphs[i - many : i], Problem(graphs[i], MACHINES, bound=bound)),
            MACHINES,
        )
        for i in range(many, len(graphs))
    ]
