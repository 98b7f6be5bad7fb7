"""The traffic between tasks as a matrix in a picture: rows send, columns receive, a darker cell is
more bytes (Zhang et al., SIGMOD 2019, fig. 15).

Its sides are places if there was a cluster, else tasks, or stages if there are too many tasks.
Cost: by cells.
"""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from levada.core.frozen import frozen
from levada.engine.placement.measured_send_graph import flow_order
from levada.engine.placement.traffic_report import FlowsStatus, stage_of
from levada.runtime.placement.task_graph import OUTPUT

MAX_TASKS, CELL, LABEL, LINE = 24, 64, 300, 18


class Cell(NamedTuple):
    """The traffic of a pair. ``predicted``: its share of all rows as predicted, -1 without a
    prediction.
    """

    bytes: int
    rows: int
    predicted: float = -1.0


@frozen
class Matrix:
    """``cells`` by sender and receiver. ``title`` is "" if there is nothing to draw."""

    title: str
    sources: tuple[str, ...]
    targets: tuple[str, ...]
    cells: Mapping[tuple[str, str], Cell]

    @property
    def width(self) -> int:
        """Returns the width in units of the picture."""
        return LABEL + CELL * len(self.targets) if self.title else 0

    @property
    def height(self) -> int:
        """Returns the height in units of the picture, with title and names."""
        return LINE * 4 + CELL * len(self.sources) if self.title else 0


def matrix_of(sent: FlowsStatus | None) -> Matrix:
    """Returns the matrix to draw."""
    if sent is None or not sent.edges:
        return Matrix("", (), (), {})
    if sent.pairs:
        names = tuple(dict.fromkeys([*(p.source for p in sent.pairs), *_targets(sent)]))
        cells = {(p.source, p.target): Cell(p.bytes, p.rows, p.predicted) for p in sent.pairs}
        return Matrix(f"bytes between places, {sent.slice}", names, names, cells)
    ends = {name for edge in sent.edges for name in (edge.source, edge.target)}
    what, name = ("tasks", str) if len(ends) <= MAX_TASKS else ("stages", stage_of)
    sizes, rows = Counter[tuple[str, str]](), Counter[tuple[str, str]]()
    for edge in sent.edges:
        sizes[name(edge.source), name(edge.target)] += edge.bytes
        rows[name(edge.source), name(edge.target)] += edge.rows
    sources, targets = (_sort_names({pair[i] for pair in sizes}) for i in (0, 1))
    cells = {pair: Cell(size, rows[pair]) for pair, size in sizes.items()}
    return Matrix(f"bytes between {what}, {sent.slice}", sources, targets, cells)


def _targets(sent: FlowsStatus) -> Iterator[str]:
    return (pair.target for pair in sent.pairs)


def _sort_names(names: set[str]) -> tuple[str, ...]:
    return tuple(sorted(names, key=lambda name: (name == OUTPUT, flow_order(name))))


def draw(matrix: Matrix, top: int) -> Iterator[str]:
    """Yields the parts of an SVG, from ``top`` down."""
    if not matrix.title:
        return
    yield _text(20, top + LINE, matrix.title, "head")
    most = max((cell.bytes for cell in matrix.cells.values()), default=0) or 1
    for j, name in enumerate(matrix.targets):
        yield _text(LABEL + CELL * j, top + LINE * 2 + LINE * (j % 2), f"to {name}", "small")
    for i, name in enumerate(matrix.sources):
        y = top + LINE * 3 + CELL * i + 6
        yield _text(20, y + CELL // 2, f"from {name}")
        for j, target in enumerate(matrix.targets):
            if (cell := matrix.cells.get((name, target))) is not None:
                yield from _cell(cell, (LABEL + CELL * j, y), most, f"{name} to {target}")


def _cell(cell: Cell, at: tuple[int, int], most: int, name: str) -> Iterator[str]:
    x, y = at
    shade = 255 - round(160 * cell.bytes / most)
    title = f"{name}: {cell.rows:,} rows, {cell.bytes:,} bytes"
    yield (
        f'<rect class="cell" x="{x}" y="{y}" width="{CELL}" height="{CELL}" '
        f'fill="rgb({shade},{shade},255)"><title>{html.escape(title)}</title></rect>'
    )
    yield _text(x + 4, y + 26, f"{cell.bytes / 1e6:,.2f} MB", "small")
    if cell.predicted >= 0:
        yield _text(x + 4, y + 42, f"pred. {cell.predicted:.1%}", "small")


def _text(x: int, y: int, text: str, kind: str = "text") -> str:
    return f'<text class="{kind}" x="{x}" y="{y}">{html.escape(text)}</text>'
