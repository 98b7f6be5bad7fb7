"""``levada graph``: send graphs in other formats, and as a picture."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import numpy as np

from levada.core.array_types import Longs
from levada.engine.placement.measured_send_graph import read_group_send_graph, read_send_graph
from levada.errors import UsageError
from levada.placement import placement_file as placements
from levada.placement import sankey as chart
from levada.placement.formats import FORMATS, format_of, read_graph
from levada.placement.placement_file import is_group
from levada.placement.send_graph import SendGraph
from levada.runtime.placement.task_graph import OUTPUT, STATIC

# A send graph by operators in place of tasks, for pictures (KATTS, fig. 5).
#
# The tasks of a stream are one operator, those of a stage another, and so are all groups of keys. A
# task with any other name is an operator by itself.


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


def export(
    file: Path,
    format_: str | None,
    out: Path | None,
    slice_: str | None = None,
    groups: int | None = None,
) -> None:
    """Writes a send graph in the format ``format_``, else in that of the extension of ``out``.

    ``file`` may be a checkpoint: then the measured graph is written, as JSON by default. ``groups``
    makes tasks of that many groups of keys. Raises ``UsageError``.
    """
    if file.is_dir():
        name = format_ or ("json" if out is None else format_of(out))
        graph = (
            read_group_send_graph(file, slice_, groups) if groups else read_send_graph(file, slice_)
        )
        _write(FORMATS[name].write(graph), out)
        return
    if not file.exists():
        raise UsageError(f"{file} cannot be read: there is no such file, and no such checkpoint.")
    for option, value in (("--slice", slice_), ("--groups", groups)):
        if value is not None:
            hint = f"Leave {option} out."
            raise UsageError(f"{option} is for a checkpoint, and {file} is none.", hint=hint)
    if format_ is None and out is None:
        raise UsageError("No format is said.", hint="Say --format metis, or --out FILE.")
    name = format_ or format_of(out or file)
    _write(FORMATS[name].write(read_graph(file, "json")), out)


def import_(file: Path, format_: str | None, out: Path | None) -> None:
    """Writes a graph of any format as JSON. Raises ``UsageError``."""
    _write(FORMATS["json"].write(read_graph(file, format_)), out)


def sankey(
    file: Path, placement: Path | None, machines: int, out: Path | None, by: str = "task"
) -> None:
    """Writes the picture of tasks or of operators (``by``). Raises ``UsageError``."""
    if by == "operator" and placement is not None:
        raise UsageError(
            "Operators have no machine, their tasks have.", hint="Leave out --placement or --by."
        )
    graph = read_graph(file)
    if not graph.rows.sum():
        raise UsageError(f"{file} has no messages, so there is nothing to draw.")
    place, missing = (None, 0) if placement is None else placements.read(placement, graph, machines)
    if missing:
        raise UsageError(f"{placement} has no machine for {missing} of the graph's tasks.")
    _write(chart.page(by_operator(graph) if by == "operator" else graph, place), out)


def _write(text: str, out: Path | None) -> None:
    if out is None:
        sys.stdout.write(text)
        return
    try:
        out.write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(f"{out} cannot be written: {error.strerror}.") from error
