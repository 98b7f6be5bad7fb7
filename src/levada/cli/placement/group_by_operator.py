"""A send graph by operators in place of tasks, for pictures (KATTS, fig. 5).

The tasks of a stream are one operator, those of a stage another, and so are all groups of keys. A
task with any other name is an operator by itself.
"""

from __future__ import annotations

import re

import numpy as np

from levada.core.array_types import Longs
from levada.placement.placement_file import is_group
from levada.placement.send_graph import SendGraph
from levada.runtime.placement.task_graph import OUTPUT, STATIC

_TASK = re.compile(r"(\d+)\.\d+")


def operator_of(task: str) -> str:
    """Returns the operator of a task.

    >>> [operator_of(task) for task in ("2.0", "http://e/s a.nt", "group 1/2", "output", "17")]
    ['stage 2', 'http://e/s', 'groups', 'output', '17']
    """
    if task in (STATIC, OUTPUT):
        return task
    if is_group(task):
        return "groups"
    match = _TASK.fullmatch(task)
    return f"stage {match[1]}" if match else task.partition(" ")[0]


def by_operator(graph: SendGraph) -> SendGraph:
    """Returns the graph between operators, with rows only."""
    operators = [operator_of(task) for task in graph.tasks]
    names = tuple(dict.fromkeys(operators))
    place = {name: i for i, name in enumerate(names)}
    at = np.array([place[name] for name in operators], np.int64)
    keys = at[graph.source] * len(names) + at[graph.target]
    edges, edge_of = np.unique(keys, return_inverse=True)
    rows: Longs = np.zeros(edges.size, np.int64)
    np.add.at(rows, edge_of, graph.rows)
    source, target = (edges // len(names)).astype(np.int32), (edges % len(names)).astype(np.int32)
    return SendGraph(names, source, target, rows)
