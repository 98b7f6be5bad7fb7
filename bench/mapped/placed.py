"""Placements of tasks by their names, as files that an engine goes by, and the send graph that the
names are of.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from bench.mapped.runs import MACHINES, run
from bench.mapped.works import Work, Written
from levada.engine.placement.measured_send_graph import flow_order, read_send_graph
from levada.placement.send_graph import SendGraph
from levada.runtime.placement.task_graph import OUTPUT

SLICE = "1mo"


def counted(work: Work, written: Written, root: Path) -> SendGraph:
    """What tasks send each other, of a run in this process over ``PARTITIONS`` partitions."""
    run(work, written, root, options={"spark": False, "slices": SLICE})
    return read_send_graph(root, None)


def by_stage(graph: SendGraph) -> list[list[str]]:
    """The tasks of each stage, those that read first."""
    tasks = [task for task in graph.tasks if task != OUTPUT]
    last = max(flow_order(task)[0] for task in tasks)
    return [[task for task in tasks if flow_order(task)[0] == i] for i in range(last + 1)]


def near(stages: list[list[str]]) -> dict[str, int]:
    """All tasks on one machine."""
    return {task: 0 for own in stages for task in own}


def apart(stages: list[list[str]]) -> dict[str, int]:
    """Each stage on the half of the machines on which that before it is not: all blobs are from
    elsewhere.

    >>> apart([["r"], ["1.0", "1.1"]]) == {"r": 0, "1.0": MACHINES // 2, "1.1": MACHINES // 2 + 1}
    True
    """
    half = MACHINES // 2
    assert half, "on one machine nothing is from elsewhere"
    return {
        task: n % half + i % 2 * half for i, own in enumerate(stages) for n, task in enumerate(own)
    }


def write(path: Path, placer: str, machine: Mapping[str, int]) -> Path:
    """A placement's file."""
    told = {"levada": "placement", "machines": MACHINES, "placer": placer, "machine": machine}
    path.write_text(json.dumps(told))
    return path
