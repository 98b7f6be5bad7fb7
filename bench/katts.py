"""``katts``: how good placements are, on KATTS' published graphs and on keys by Zipf's law.

The baseline is METIS, objective cut, on symmetric weights: the best of 32 of its cuts. Every figure
is predicted from a graph; nothing is run on machines. ``rows`` are placements here.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from bench.papers import katts as paper
from bench.papers import layouts
from bench.papers.katts import MACHINES
from bench.result import CountError, Result
from levada.cli.placement.place import quiet
from levada.placement import metis
from levada.placement.cost import Score, score
from levada.placement.local_search_placer import refine_placement
from levada.placement.placers import Placer
from levada.placement.problem import Problem
from levada.placement.send_graph import SendGraph

KEYS, FILES, GROUPS = 100_000, 12, 65_536
BOUNDS = (0.01, 0.024, 0.05)
FEWER = (2, 4, 8, 16)
"""Machines besides KATTS' 12."""


def zipf(keys: int, seed: int = 0) -> SendGraph:
    """Keys by Zipf's law with exponent 1, each in one of 12 files by a hash that is not the
    groups': files send to 65,536 groups.
    """
    rng = np.random.default_rng(seed)
    rows = np.maximum(np.rint(1e7 / np.arange(1, keys + 1) / np.log(keys)), 1).astype(np.int64)
    edge = rng.integers(0, FILES, keys) * GROUPS + rng.integers(0, GROUPS, keys)
    edges, at = np.unique(edge, return_inverse=True)
    total = np.zeros(edges.size, np.int64)
    np.add.at(total, at, rows)
    names = (*(f"file {i}" for i in range(FILES)), *map(str, range(GROUPS)))
    source, target = (edges // GROUPS).astype(np.int32), (FILES + edges % GROUPS).astype(np.int32)
    return SendGraph(names, source, target, total)


def timed(placer: Placer, graphs: Sequence[SendGraph], bounds: Sequence[float]) -> dict[str, Any]:
    """Mean scores of a placer, each graph within its bound, and its CPU time a graph."""
    start, scores = time.process_time(), []
    for graph, bound in zip(graphs, bounds, strict=True):
        found = placer(Problem(graph, MACHINES, bound=bound))
        scores.append(score(graph, found, MACHINES))
        if placer is refine_placement and scores[-1].rsd > bound + 1e-9:
            raise CountError(f"refined is at an RSD of {scores[-1].rsd}, above {bound}.")
    each = (time.process_time() - start) / len(graphs)
    return paper.mean(scores) | {"cpu_s": round(each, 2)}


def opengov(graphs: Sequence[SendGraph]) -> dict[str, Any]:
    """The same month, at METIS' own RSD, the trade-off, and learning."""
    peers = [score(g, metis.cut(Problem(g, MACHINES)), MACHINES) for g in graphs]
    own: list[Score] = []
    for graph, peer in zip(graphs, peers, strict=True):
        own.append(
            score(graph, refine_placement(Problem(graph, MACHINES, bound=peer.rsd)), MACHINES)
        )
    many = len(graphs)
    return {
        "bounds": {f"{b:.1%}": timed(refine_placement, graphs, [b] * many) for b in BOUNDS},
        "metis": timed(metis.cut, graphs, [1.0] * many),
        "metis_vol": timed(metis.vol, graphs, [1.0] * many),
        "at_metis_rsd": paper.mean(own),
        "months_above_metis": sum(o.share > p.share for o, p in zip(own, peers, strict=True)),
        "learned": {
            f"prev{n}": {
                "metis": paper.mean(paper.from_before(metis.cut, graphs, n, 0.05)),
                "metis_vol": paper.mean(paper.from_before(metis.vol, graphs, n, 0.05)),
                "refined": paper.mean(paper.from_before(refine_placement, graphs, n, 0.028)),
            }
            for n in (1, 2, 3)
        },
        "machines": {str(k): machines(graphs[0], k) for k in FEWER},
    }


def machines(graph: SendGraph, many: int) -> dict[str, float]:
    """``refined`` and METIS' cut on another number of machines, the first month, in per cent."""
    found = {
        name: score(graph, placer(Problem(graph, many, bound=0.024)), many)
        for name, placer in (("refined", refine_placement), ("metis", metis.cut))
    }
    return {
        f"{name}_{key}": round(100 * getattr(scored, key), 2)
        for name, scored in found.items()
        for key in ("share", "rsd")
    }


def srbench(graphs: Sequence[SendGraph]) -> dict[str, Any]:
    """The same day within 4 %, and from the day before."""
    return {
        "refined_4%": timed(refine_placement, graphs, [0.04] * len(graphs)),
        "metis": timed(metis.cut, graphs, [1.0] * len(graphs)),
        "prev1": {
            "metis": paper.mean(paper.from_before(metis.cut, graphs, 1, 0.04)),
            "refined": paper.mean(paper.from_before(refine_placement, graphs, 1, 0.04)),
        },
    }


def run(scale: float, stepped: bool) -> Result:
    """The whole table; what needs the published graphs is left out where they are absent."""
    with quiet():
        return _table(scale)


def _table(scale: float) -> Result:
    big = zipf(max(int(KEYS * scale), 1_000))
    small = zipf(1_000)
    refine_placement(Problem(small, MACHINES, bound=1.0))  # compiles
    more: dict[str, Any] = {
        "zipf": {
            "refined_5%": timed(refine_placement, [big], [0.05]),
            "metis": timed(metis.cut, [big], [1.0]),
        }
    }
    more["figures"] = {name: ": ".join(told) for name, told in paper.FIGURES.items()}
    more["figure_5"] = layouts.figure_5()
    if not paper.DATA.exists():
        return Result("katts", {}, more=more | {"absent": paper.ABSENT})
    graphs = paper.slices("opengov")
    more |= {"opengov": opengov(graphs), "srbench": srbench(paper.slices("srbench"))}
    more["published"] = {name: paper.published(name) for name in paper.SETS}
    more["savings"] = paper.savings(more["published"])
    more["table_1"] = {name: _rows(paper.table_1(name)) for name in paper.SETS}
    more["quoted"], more["quoted_rsd"] = paper.QUOTED, paper.QUOTED_RSD
    more["quoted_table_1"] = {name: _rows(paper.QUOTED_TABLE_1[name]) for name in paper.SETS}
    found = more["opengov"]
    return Result("katts", found["bounds"]["2.4%"], found["metis"], more=more)


def _rows(table: Mapping[str, Sequence[float]]) -> dict[str, str]:
    return {name: str(row) for name, row in table.items()}
