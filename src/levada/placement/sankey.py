"""The traffic between tasks as a Sankey chart: a picture in a page that needs no other file.

Columns are the tasks' distances from those that receive nothing; a band's width is the rows sent.
With a placement a band across machines is red, one within a machine grey.
"""

from __future__ import annotations

import html
from collections.abc import Sequence

import numpy as np

from levada.core.array_types import Ints, Longs
from levada.errors import UsageError
from levada.placement.send_graph import SendGraph

WIDTH, HEIGHT, BAR = 1200, 800, 12
MAX_BANDS = 5_000
"""The most bands of a readable picture."""


def page(graph: SendGraph, place: Ints | None = None) -> str:
    """Returns the page as HTML. Raises ``UsageError`` if there are too many edges to see any."""
    if len(graph.rows) > MAX_BANDS:
        raise UsageError(
            f"The send graph has {len(graph.rows):,} edges; a picture shows {MAX_BANDS:,} at most.",
            hint="Draw it --by operator.",
        )
    depth = depths(graph)
    top, high, scale = _columns(graph, depth)
    x = depth * (WIDTH - BAR) / max(int(depth.max()), 1)
    bands, bars = _bands(graph, place, (x, top, scale)), []
    for v, task in enumerate(graph.tasks):
        where = "" if place is None else f" on machine {place[v]}"
        bars.append(
            f'<rect x="{x[v]:.1f}" y="{top[v]:.1f}" width="{BAR}" height="{max(high[v], 0.5):.1f}">'
            f"<title>{html.escape(task)}{where}</title></rect>"
        )
    return _PAGE.format(width=WIDTH, height=HEIGHT, body="\n".join([*bands, *bars]))


def depths(graph: SendGraph) -> Ints:
    """Returns the length of the shortest path to each task from those that receive nothing."""
    n = len(graph.tasks)
    depth = np.full(n, -1, np.int32)
    reached = np.ones(n, bool)
    reached[graph.target[graph.source != graph.target]] = False
    if not reached.any():
        reached[0] = True
    step = 0
    while reached.any():
        depth[reached] = step
        step += 1
        reached = np.zeros(n, bool)
        reached[graph.target[depth[graph.source] == step - 1]] = True
        reached &= depth < 0
    depth[depth < 0] = 0
    return depth


def _columns(graph: SendGraph, depth: Ints) -> tuple[np.ndarray, np.ndarray, float]:
    n = len(graph.tasks)
    into, out = (np.bincount(ends, graph.rows, n) for ends in (graph.target, graph.source))
    size = np.maximum(into, out)
    full = float(np.bincount(depth, size).max())
    gap = HEIGHT * 0.2 / max(int(np.bincount(depth).max()), 1)
    scale = HEIGHT * 0.8 / full if full else 0.0
    top = np.zeros(n)
    for column in range(int(depth.max()) + 1):
        tasks = np.flatnonzero(depth == column)
        top[tasks] = np.concatenate([[0], np.cumsum(size[tasks] * scale + gap)[:-1]])
    return top, size * scale, scale


def _bands(
    graph: SendGraph, place: Ints | None, where: tuple[np.ndarray, np.ndarray, float]
) -> Sequence[str]:
    x, top, scale = where
    leave, arrive = top.copy(), top.copy()
    bands = []
    order: Longs = np.lexsort((graph.target, graph.source))
    for e in order.tolist():
        a, b, rows = int(graph.source[e]), int(graph.target[e]), int(graph.rows[e])
        far = place is not None and place[a] != place[b]
        wide = rows * scale
        y, z = leave[a] + wide / 2, arrive[b] + wide / 2
        leave[a] += wide
        arrive[b] += wide
        left, right = x[a] + BAR, x[b]
        middle = (left + right) / 2
        title = f"{graph.tasks[a]} to {graph.tasks[b]}: {rows:,}"
        bands.append(
            f'<path class="{"far" if far else "near"}" stroke-width="{max(wide, 0.3):.2f}" '
            f'd="M{left:.1f},{y:.1f} C{middle:.1f},{y:.1f} {middle:.1f},{z:.1f} '
            f'{right:.1f},{z:.1f}">'
            f"<title>{html.escape(title)}</title></path>"
        )
    return bands


_PAGE = """<!DOCTYPE html>
<html lang="en"><meta charset="utf-8"><title>Send graph</title>
<style>
path {{ fill: none; stroke-opacity: 0.45 }}
path.near {{ stroke: #8a8a8a }}
path.far {{ stroke: #c0392b }}
path:hover {{ stroke-opacity: 0.9 }}
rect {{ fill: #2c3e50 }}
</style>
<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
{body}
</svg>
</html>
"""
