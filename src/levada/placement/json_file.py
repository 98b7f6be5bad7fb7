"""Send graphs as JSON: KATTS' files, with additional fields of Levada.

    {"nodes": [{"name": "3", "cpu": 0.5}, ..],
     "links": [{"source": "3", "target": "90", "value": 11, "bytes": 803}, ..]}

``value`` is the rows. All or no links have ``bytes``, and all or no nodes ``cpu`` (seconds).
``received`` (rows) is present if edges do not determine it. Names are strings or whole numbers.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from levada.core.array_types import Longs
from levada.errors import UsageError, near
from levada.placement.placement_file import is_group
from levada.placement.send_graph import SendGraph

MAX_NEAR_MISS_TASKS = 50
"""The most tasks among which a near miss is searched."""
MAX_EXACT_INTEGER = 1 << 53
"""All programs that read JSON represent smaller counts exactly."""


def read(text: str, path: str) -> SendGraph:
    """Parses a graph. Raises ``UsageError`` that names the wrong node or link."""
    try:
        whole = json.loads(text)
    except RecursionError as error:
        raise UsageError(f"{path} is no send graph: it nests too deep.") from error
    except json.JSONDecodeError as error:
        raise UsageError(
            f"{path}, line {error.lineno}, column {error.colno}: this is no JSON ({error.msg}).",
            hint="For other formats say --format metis.",
        ) from error
    except ValueError as error:  # Python refuses numbers with thousands of digits
        raise UsageError(
            f"{path} is no send graph: a number in it has thousands of digits.",
            hint="Counts are below 2^53.",
        ) from error
    nodes, links = (_part(whole, key, path) for key in ("nodes", "links"))
    place: dict[str, int] = {}
    for i, node in enumerate(nodes):
        name = _name(node, "name", f"{path}, node {i}")
        if name in place:
            raise UsageError(f"{path}, node {i}: task {name} is there twice.")
        place[name] = i
    ends = [_ends(link, place, f"{path}, link {i}") for i, link in enumerate(links)]
    return build_graph(
        tuple(place),
        ends,
        [_count(link, "value", f"{path}, link {i}") for i, link in enumerate(links)],
        path,
        sizes=_column(links, "bytes", f"{path}, link"),
        cpu=_seconds(nodes, path),
        received=_column(nodes, "received", f"{path}, node"),
    )


def build_graph(
    tasks: tuple[str, ...],
    ends: Sequence[tuple[int, int]],
    rows: Sequence[int],
    path: str,
    *,
    sizes: Longs | None = None,
    cpu: Longs | None = None,
    received: Longs | None = None,
) -> SendGraph:
    """Returns the graph of these edges. Adds up edges between the same two tasks, with a warning.
    Raises ``UsageError`` if a sum is too large to be exact.
    """
    for key, column in (("rows", rows), ("bytes", sizes), ("received rows", received)):
        check_sum(column, path, key)
    pairs = np.array(ends, np.int64).reshape(-1, 2)
    both, first, at = np.unique(pairs, axis=0, return_index=True, return_inverse=True)
    if len(both) < len(pairs):
        extra = int(np.setdiff1d(np.arange(len(pairs)), first)[0])
        _warn(
            f"{path}, link {extra}: {_edge_text(tasks, pairs[extra])} is there before; counts of "
            "the same two tasks are added up."
        )
    loops = np.flatnonzero(pairs[:, 0] == pairs[:, 1]).tolist()
    # a group of keys may send to the same group of another operator
    odd = next((i for i in loops if not is_group(tasks[pairs[i, 0]])), None)
    if odd is not None:
        _warn(
            f"{path}, link {odd}: {_edge_text(tasks, pairs[odd])} is from a task to "
            "itself; it counts as received, and never crosses machines."
        )

    def total(column: Sequence[int] | Longs) -> Longs:
        out = np.zeros(len(both), np.int64)
        np.add.at(out, at.ravel(), np.asarray(column, np.int64))
        return out

    return SendGraph(
        tasks,
        both[:, 0].astype(np.int32),
        both[:, 1].astype(np.int32),
        total(rows),
        None if sizes is None else total(sizes),
        None if cpu is None else np.asarray(cpu, np.float64),
        received,
    )


def write(graph: SendGraph) -> str:
    """Returns the text of a graph."""
    nodes: list[dict[str, Any]] = [{"name": task} for task in graph.tasks]
    for key, column in (("cpu", graph.cpu), ("received", graph.received)):
        for node, value in zip(nodes, () if column is None else column.tolist(), strict=False):
            node[key] = value
    ends = zip(graph.source.tolist(), graph.target.tolist(), graph.rows.tolist(), strict=True)
    links: list[dict[str, Any]] = [
        {"source": graph.tasks[a], "target": graph.tasks[b], "value": rows} for a, b, rows in ends
    ]
    for link, size in zip(links, [] if graph.bytes is None else graph.bytes.tolist(), strict=False):
        link["bytes"] = size
    return json.dumps({"nodes": nodes, "links": links}, ensure_ascii=False) + "\n"


def count(value: object, where: str, key: str) -> int:
    """Returns a value as a count. Raises ``UsageError`` if it is not a whole number below 2^53.

    >>> count(3.0, "a.json, link 0", "value")
    3
    """
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    if not plain or not 0 <= value < MAX_EXACT_INTEGER or value != int(value):  # type: ignore[operator, call-overload]
        raise UsageError(
            f"{where}: {key} is {value!r}.", hint="Give a whole number from 0 on, below 2^53."
        )
    return int(value)  # type: ignore[call-overload, no-any-return]


def check_sum(column: Sequence[int] | Longs | None, path: str, key: str) -> None:
    """Raises ``UsageError`` if the sum of counts is too large to be exact."""
    if column is not None and sum(map(int, column)) >= MAX_EXACT_INTEGER:
        raise UsageError(
            f"{path}: all {key} together are 2^53 or more, which is not exact.",
            hint="Divide all counts by the same number, or give shorter slices.",
        )


def _part(whole: object, key: str, path: str) -> list[Any]:
    entries = whole.get(key) if isinstance(whole, dict) else None
    if not isinstance(entries, list):
        raise UsageError(
            f"{path} is no send graph: it has no list of {key}.",
            hint='Give {"nodes": [{"name": ..}], "links": [{"source": .., "target": .., '
            '"value": ..}]}.',
        )
    return entries


def _name(entry: object, key: str, where: str) -> str:
    name = entry.get(key) if isinstance(entry, dict) else None
    if not isinstance(name, str | int) or isinstance(name, bool):
        raise UsageError(f"{where}: its {key} is {name!r}.", hint="Give the name of a task.")
    return str(name)


def _ends(link: object, place: dict[str, int], where: str) -> tuple[int, int]:
    source, target = (_name(link, key, where) for key in ("source", "target"))
    for task in (source, target):
        if task not in place:
            hint = near(task, place) if len(place) <= MAX_NEAR_MISS_TASKS else ""
            raise UsageError(f"{where}: task {task} is not among the nodes.", hint=hint)
    return place[source], place[target]


def _count(entry: dict[str, Any], key: str, where: str) -> int:
    return count(entry.get(key), where, key)


def _column(entries: list[Any], key: str, where: str) -> Longs | None:
    if not any(isinstance(entry, dict) and key in entry for entry in entries):
        return None
    return np.array([_count(e, key, f"{where} {i}") for i, e in enumerate(entries)], np.int64)


def _seconds(nodes: list[dict[str, Any]], path: str) -> Any:
    if not any("cpu" in node for node in nodes):
        return None
    for i, node in enumerate(nodes):
        value = node.get("cpu")
        plain = isinstance(value, int | float) and not isinstance(value, bool)
        if not plain or not 0 <= value < MAX_EXACT_INTEGER:  # type: ignore[operator]
            raise UsageError(f"{path}, node {i}: cpu is {value!r}.", hint="Give seconds from 0 on.")
    return np.array([node["cpu"] for node in nodes], np.float64)


def _edge_text(tasks: tuple[str, ...], pair: Longs) -> str:
    return f"{tasks[pair[0]]} to {tasks[pair[1]]}"


def _warn(sentence: str) -> None:
    warnings.warn(sentence, stacklevel=4)
