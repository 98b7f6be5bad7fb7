"""Send graphs in METIS' format, for its programs: undirected, a line a vertex.

Written, an edge weighs the messages of both directions, on both of its lines, and a vertex its
received messages; a comment has the tasks' names. Read, an edge leads from the first of its tasks
to the other, and a task receives its vertex' weight (default 1). So share and RSD of every
placement are preserved.

METIS requires that both weights of an edge are equal. KATTS' files have the messages on one line
and 1 on the other. The reader then warns and takes each weight as messages in its direction.
"""

from __future__ import annotations

import json
import warnings

import numpy as np

from levada.core.array_types import Longs
from levada.core.frozen import frozen
from levada.errors import UsageError
from levada.placement.json_file import MAX_EXACT_INTEGER, check_sum
from levada.placement.send_graph import SendGraph

NAMES = "% levada tasks "


def write(graph: SendGraph) -> str:
    """Returns the text of a graph, without messages of a task to itself, which the format cannot
    express.
    """
    n = len(graph.tasks)
    real = (graph.source != graph.target) & (graph.rows > 0)
    source, target = graph.source[real].astype(np.int64), graph.target[real].astype(np.int64)
    if not real.all():
        warnings.warn(
            f"{int((~real).sum())} edges of a task to itself, or without rows, are left out: "
            "METIS' format has none.",
            stacklevel=2,
        )
    keys, at = np.unique(
        np.concatenate([source * n + target, target * n + source]), return_inverse=True
    )
    weight = np.zeros(keys.size, np.int64)
    np.add.at(weight, at, np.tile(graph.rows[real], 2))
    first = np.searchsorted(keys // n, np.arange(n + 1)).tolist()
    pairs = np.column_stack([keys % n + 1, weight]).tolist()
    lines = [NAMES + json.dumps(graph.tasks, ensure_ascii=False), f"{n} {keys.size // 2} 011 1"]
    for v, load in enumerate(graph.loads("rows").tolist()):
        numbers = [load, *(x for pair in pairs[first[v] : first[v + 1]] for x in pair)]
        lines.append(" ".join(map(str, numbers)))
    return "\n".join(lines) + "\n"


@frozen
class _Head:
    """The fields of the first line."""

    vertices: int
    edges: int
    weighs: bool
    edges_weigh: bool


def read(text: str, path: str) -> SendGraph:
    """Parses a graph. Raises ``UsageError`` that names the wrong line."""
    kept = [(i, line) for i, line in enumerate(text.split("\n"), 1) if not line.startswith("%")]
    while kept and not kept[0][1].strip():
        kept.pop(0)
    if not kept:
        raise UsageError(f"{path} is no graph in METIS' format: it is empty.")
    head = _head(_numbers(kept[0][1], f"{path}, line {kept[0][0]}"), f"{path}, line {kept[0][0]}")
    body = kept[1:]
    while len(body) > head.vertices and not body[-1][1].strip():
        body.pop()
    if len(body) != head.vertices:
        raise UsageError(
            f"{path} has {len(body)} lines of vertices, and its first line says {head.vertices}."
        )
    weights = np.ones(head.vertices, np.int64)
    edges: dict[tuple[int, int], int] = {}
    lines = {}
    for v, (i, line) in enumerate(body):
        lines[v] = i
        numbers = _numbers(line, f"{path}, line {i}")
        if head.weighs:
            if not numbers:
                raise UsageError(f"{path}, line {i}: the vertex' weight is missing.")
            weights[v] = numbers.pop(0)
        edges |= _edges(v, numbers, head, f"{path}, line {i}", edges)
    if len({(min(e), max(e)) for e in edges}) != head.edges:
        edge_count = len({(min(e), max(e)) for e in edges})
        raise UsageError(f"{path} has {edge_count} edges, and its first line says {head.edges}.")
    return _graph(
        _names(text, head.vertices, path), edges, weights if head.weighs else None, (path, lines)
    )


def _head(numbers: list[int], where: str) -> _Head:
    vertices, edges, kind, constraints = (numbers + [0] * 4)[:4]
    if not 2 <= len(numbers) <= 4 or vertices < 1:
        raise UsageError(
            f"{where}: this is no first line of METIS' format.",
            hint="Give the numbers of vertices and edges, and 011 for weights of both.",
        )
    if kind not in (0, 1, 10, 11) or constraints > 1:
        raise UsageError(
            f"{where}: format {kind:03} with {max(constraints, 1)} weights a vertex is not read.",
            hint="Formats 000, 001, 010 and 011 are, with one weight a vertex.",
        )
    return _Head(vertices, edges, kind >= 10, kind % 10 == 1)


def _numbers(line: str, where: str) -> list[int]:
    numbers = []
    for word in line.split():
        if not (word.isascii() and word.isdigit()) or int(word[:20]) >= MAX_EXACT_INTEGER:
            raise UsageError(f"{where}: {word[:20]} is no whole number from 0 on, below 2^53.")
        numbers.append(int(word))
    return numbers


def _edges(
    v: int, numbers: list[int], head: _Head, where: str, before: dict[tuple[int, int], int]
) -> dict[tuple[int, int], int]:
    step = 2 if head.edges_weigh else 1
    if len(numbers) % step:
        raise UsageError(f"{where}: a neighbour has no weight.")
    edges: dict[tuple[int, int], int] = {}
    for j in range(0, len(numbers), step):
        other = numbers[j]
        if not 1 <= other <= head.vertices:
            raise UsageError(f"{where}: there is no vertex {other} among {head.vertices}.")
        if other - 1 == v or (v, other - 1) in edges or (v, other - 1) in before:
            what = "itself" if other - 1 == v else f"vertex {other} twice"
            raise UsageError(f"{where}: vertex {v + 1} has {what} as a neighbour.")
        edges[v, other - 1] = numbers[j + 1] if head.edges_weigh else 1
    return edges


def _names(text: str, vertices: int, path: str) -> tuple[str, ...]:
    for line in text.split("\n"):
        if line.startswith(NAMES):
            try:
                names = json.loads(line.removeprefix(NAMES))
            except (ValueError, RecursionError):
                names = None
            if (
                not isinstance(names, list)
                or len({n for n in names if isinstance(n, str)}) != vertices
                or len(names) != vertices
            ):
                raise UsageError(
                    f"{path}: the comment with the tasks' names has not {vertices} of them.",
                    hint="Delete it: then tasks are called by their numbers.",
                )
            return tuple(names)
    return tuple(map(str, range(vertices)))  # as in KATTS: vertex i is task i - 1


def _graph(
    tasks: tuple[str, ...],
    edges: dict[tuple[int, int], int],
    received: Longs | None,
    where: tuple[str, dict[int, int]],
) -> SendGraph:
    path, lines = where
    odd = next((e for e, w in edges.items() if edges.get((e[1], e[0])) != w), None)
    if odd is None:
        kept = {e: w for e, w in edges.items() if e[0] < e[1]}
        received = np.ones(len(tasks), np.int64) if received is None else received
    else:
        kept = edges
        back = edges.get((odd[1], odd[0]), 0)
        warnings.warn(
            f"{path}, line {lines[odd[0]]}: the edge of vertices {odd[0] + 1} and {odd[1] + 1} "
            f"weighs {edges[odd]} there and {back} on the other's line, which METIS does not "
            "allow. Each weight is taken as messages in its direction.",
            stacklevel=3,
        )
    check_sum(list(kept.values()), path, "rows")
    check_sum(received, path, "weights of vertices")
    ends = np.array(list(kept), np.int32).reshape(-1, 2)
    rows = np.array(list(kept.values()), np.int64)
    return SendGraph(tasks, ends[:, 0], ends[:, 1], rows, received=received)
