"""KATTS' fig. 5: query 3 of SRBench over files that are cut as Levada groups keys, and by another
hash.

It is run in one process, and who sends to whom is counted; placements are predicted from that, on
12 machines. Units are 48 tasks (a task has as many groups as each other one, in a row), as in the
paper, and Levada's 65,536 groups.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import polars as pl

import levada
from bench.papers.katts import MACHINES
from bench.placed import Q3
from bench.result import check_count
from bench.srbench import MINUTE, Weather
from levada import Engine
from levada.engine.placement.measured_send_graph import read_group_send_graph
from levada.placement.cost import score
from levada.placement.local_search_placer import evenest
from levada.placement.placement_file import FINEST, group_number, is_group
from levada.placement.placers import PLACERS
from levada.placement.problem import BOUND, Problem
from levada.placement.send_graph import SendGraph, add

FILES, TASKS = 12, 48
LAYOUTS: dict[str, Callable[[int], int]] = {
    "same hash": lambda station: levada.group_of(station, FILES),
    "another hash": lambda station: crc32(str(station).encode()) % FILES,
}


def counted(layout: str, stations: int) -> SendGraph:
    """What readers of files that are cut so, and groups, send to groups; a day of weather."""
    weather = Weather(stations)
    speeds = weather.speeds()
    file = np.array([LAYOUTS[layout](s) for s in range(stations)])
    with tempfile.TemporaryDirectory(prefix="levada-layouts-") as folder:
        root = Path(folder)
        (root / "W").mkdir()
        for i in range(FILES):
            own = np.flatnonzero(file == i)
            ts = np.repeat(np.arange(len(speeds)) * MINUTE + MINUTE // 2, own.size)
            rows = {"s": np.tile(own, len(speeds)), "v": speeds[:, own].ravel(), "ts": ts}
            pl.DataFrame(rows).write_csv(root / "W" / f"{i:02}.csv")
        with Engine(
            spark=False, checkpoint=root / "c", epoch_rows=60 * stations,
            slices=f"1mo,groups={FINEST}",
            keep_results=False,
        ) as engine:  # fmt: skip
            engine.stream("W", root / "W", schema="s:integer;v:double", files="parallel")
            engine.register(Q3, name="q", dialect="cql")
            engine.start(once=True)
            engine.await_end()
            assert engine._driver is not None, "it has been started"
            check_count(layout, engine._driver.last.results, weather.results)
        return read_group_send_graph(root / "c", None, FINEST)


def by_tasks(graph: SendGraph) -> SendGraph:
    """The same with tasks in place of groups."""
    names = tuple(
        f"task {group_number(name) * TASKS // FINEST}" if is_group(name) else name
        for name in graph.tasks
    )
    return add([replace(graph, tasks=names)])


def figure_5(stations: int = 240) -> dict[str, Any]:
    """Of each layout and unit: edges, and what two placers leave, as shares with RSDs."""
    found: dict[str, Any] = {}
    for layout in LAYOUTS:
        groups = counted(layout, stations)
        for unit, graph in ((f"{TASKS} tasks", by_tasks(groups)), ("groups", groups)):
            problem = Problem(graph, MACHINES)
            problem = replace(problem, bound=max(BOUND, 1.05 * evenest(problem)))
            told: dict[str, Any] = {"edges": len(graph.rows)}
            for name in ("random", "refined"):
                scored = score(graph, PLACERS[name](problem), MACHINES)
                told[name] = {"share": round(scored.share, 4), "rsd": round(scored.rsd, 4)}
            found[f"{layout}, {unit}"] = told
    return found
