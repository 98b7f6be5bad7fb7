"""A topology's document as a send graph, to place queries before their first run.

Tasks have the names that they have in a run. Stages and groupings determine the edges. The document
says how many rows an edge carries; without them it is refused, since a placement by assumed rows
means nothing. The rows are spread evenly over the tasks of the edge; those of ``home`` go to the
first.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from levada.errors import UsageError
from levada.placement.formats import read_graph
from levada.placement.send_graph import SendGraph
from levada.plan.topology.topology_document import Document, is_document, read_document
from levada.runtime.placement.task_graph import OUTPUT, STATIC, reader, task

MAX_TASK_PAIRS = 10_000_000
"""The most pairs of tasks that send to each other, of all edges together."""


def read(path: Path) -> SendGraph:
    """Reads the send graph of a file: a measured one, or that of a topology. Raises
    ``UsageError``.
    """
    return graph_of(read_document(path), str(path)) if is_document(path) else read_graph(path)


def graph_of(document: Document, path: str) -> SendGraph:
    """Returns the send graph of a topology. Raises ``UsageError`` if an edge has no rows, or if it
    has too many pairs of tasks.
    """
    sent = list(_messages(document))
    if silent := sum(rows is None for _, _, rows in sent):
        raise UsageError(
            f"{path} does not say how many rows {silent} of its {len(sent)} edges between stages "
            "carry.",
            hint="Place the send graph of a run (levada run --slice 1d, levada graph export), or "
            "write rows on its edges and output.",
        )
    if (pairs := sum(len(a) * len(b) for a, b, _ in sent)) > MAX_TASK_PAIRS:
        raise UsageError(
            f"{path}: {pairs:,} pairs of its tasks send to each other; "
            f"{MAX_TASK_PAIRS:,} can be placed.",
            hint="Give its stages fewer tasks.",
        )
    tasks = tuple(dict.fromkeys(name for a, b, _ in sent for name in (*a, *b)))
    number = {name: i for i, name in enumerate(tasks)}
    counts: dict[tuple[int, int], int] = {}
    for sources, targets, rows in sent:
        ends_of = [(number[a], number[b]) for a in sources for b in targets]
        each, rest = divmod(rows or 0, len(ends_of))
        for i, pair in enumerate(ends_of):
            counts[pair] = counts.get(pair, 0) + each + (i < rest)
    ends = np.array(list(counts), np.int32).reshape(-1, 2)
    return SendGraph(tasks, ends[:, 0], ends[:, 1], np.array(list(counts.values()), np.int64))


Message = tuple[tuple[str, ...], tuple[str, ...], int | None]


def _messages(document: Document) -> Iterator[Message]:
    """Yields the tasks and rows (None: unknown) of each edge between stages and to the output."""
    nodes = {node.name: node for node in document.nodes}
    feeds = _feeds(document)
    for edge, rows in zip(document.edges, document.rows, strict=True):
        a, b = nodes[edge.producer], nodes[edge.consumer]
        if a.stage != b.stage:
            targets = _stage(document, b.stage)
            home = edge.grouping == "home"
            yield _at(document, a.stage, feeds[a.name]), targets[:1] if home else targets, rows
    for node, rows in zip(document.nodes, document.output_rows, strict=True):
        if node.name.startswith("Emit") or rows is not None:
            yield _at(document, node.stage, feeds[node.name]), (OUTPUT,), rows


def _feeds(document: Document) -> dict[str, tuple[str, ...]]:
    """Returns the streams whose readers have the rows of each node at the intake."""
    streams_of = dict(zip((n.name for n in document.nodes), document.streams, strict=True))
    stage = {node.name: node.stage for node in document.nodes}
    inside = [(e.producer, e.consumer) for e in document.edges if not stage[e.consumer]]
    for _ in range(len(inside)):  # the length of the longest path
        before = dict(streams_of)
        for producer, consumer in inside:
            streams_of[consumer] = tuple(
                dict.fromkeys((*streams_of[consumer], *streams_of[producer]))
            )
        if streams_of == before:
            break
    return streams_of


def _at(document: Document, stage: int, streams: tuple[str, ...]) -> tuple[str, ...]:
    if stage:
        return _stage(document, stage)
    return tuple(name for s in streams for name in _readers(document, s)) or (STATIC,)


def _stage(document: Document, stage: int) -> tuple[str, ...]:
    return tuple(task(stage, p) for p in range(document.tasks[f"stage {stage}"] or 1))


def _readers(document: Document, stream: str) -> tuple[str, ...]:
    many = document.tasks[stream]
    if many is None:
        return (reader(stream, ""),)
    return tuple(reader(stream, str(p)) for p in range(many))
