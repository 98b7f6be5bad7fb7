"""``\\d``: streams with their fields, elements and times, static data, queries.

An engine without a query counts the elements and their times for a moment; of a long stream it
counts only a part.

No word is broken. If a line is too long, fields become a table of their own, and paths and texts
are shortened: a path keeps its end, a text its beginning.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from rich.cells import cell_len, set_cell_size
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from levada.cli.app.app_file import App
from levada.cli.tables.table_cells import Times, time_cell
from levada.connectors.config.stream_config import StreamConfig
from levada.core.event_time import MAX, MIN
from levada.engine.engine import Engine
from levada.errors import LevadaError

PATIENCE = 2.0
"""Seconds for which a stream is counted."""
GAP = 2  # blanks between columns
MIN_COLUMN_WIDTH = 8  # the least width of a shortened column


def look(app: App, times: Times) -> Iterator[RenderableType]:
    """Yields the streams, static data and queries of an application, a table for each kind."""
    if app.streams:
        yield from _streams(app.streams, times)
    if app.static:
        rows = [(s.path, s.graph or "default", "yes" if s.reload else "") for s in app.static]
        yield Grid(("static", "graph", "reload"), rows, ("static", "graph"))
    if app.tables:
        sources = [(t.name, t.source) for t in app.tables]
        yield Grid(("table", "source"), sources, ("source", "table"))
    if app.queries:
        queries = [(q.name, q.spoken, " ".join(q.text.split())[:60]) for q in app.queries]
        yield Grid(("query", "dialect", "text"), queries, ("text", "query"))
    if not (app.streams or app.static or app.tables or app.queries):
        yield Text("Nothing is declared: say \\stream NAME=PATH, or \\static FILE.")


@dataclass(frozen=True)
class Grid:
    """A table whose lines are never broken. ``short``: the columns that may be shortened, in this
    order. ``apart``: a last column, which becomes a table below if it does not fit.
    """

    heads: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    short: tuple[str, ...]
    apart: tuple[str, Sequence[str]] | None = None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yields the table, at most as wide as the terminal."""
        yield from self.tables(options.max_width)

    def tables(self, width: int) -> Iterator[Table]:
        """Yields the table, or two of them, in ``width`` columns."""
        name, cells = self.apart or ("", ())
        if not any(cells):
            yield _table(self.heads, _shorten(self, width))
            return
        whole = Grid(
            (*self.heads, name), [(*r, c) for r, c in zip(self.rows, cells, strict=True)], ()
        )
        if sum(_widths(whole)) + GAP * len(self.heads) <= width:
            yield _table(whole.heads, whole.rows)
            return
        yield _table(self.heads, _shorten(self, width))
        below = [(r[0], c) for r, c in zip(self.rows, cells, strict=True) if c]
        yield _table((self.heads[0], name), below, wrapped=name)


def _widths(grid: Grid) -> list[int]:
    return [max(map(cell_len, column)) for column in zip(grid.heads, *grid.rows, strict=True)]


def _shorten(grid: Grid, width: int) -> list[tuple[str, ...]]:
    """Returns the rows, with the columns of ``short`` cut to fit the line."""
    widths = _widths(grid)
    rows = [list(row) for row in grid.rows]
    over = sum(widths) + GAP * (len(widths) - 1) - width
    for head in grid.short:
        place = grid.heads.index(head)
        room = max(widths[place] - max(over, 0), MIN_COLUMN_WIDTH, cell_len(head))
        over -= max(widths[place] - room, 0)
        for row in rows:
            row[place] = short_text(row[place], room, end=head != "text")
    return [tuple(row) for row in rows]


def short_text(text: str, room: int, *, end: bool) -> str:
    """Returns a text cut to at most ``room`` columns; ``end``: its end remains, else its beginning.

    >>> short_text("/data/2024/rooms/temp.nt", 12, end=True)
    '…oms/temp.nt'
    """
    if cell_len(text) <= room:
        return text
    if not end:
        return set_cell_size(text, room - 1).rstrip() + "…"
    return "…" + set_cell_size(text[::-1], room - 1)[::-1].lstrip()


def _table(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]], wrapped: str = "") -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, GAP, 0, 0))
    for head in heads:
        table.add_column(head, no_wrap=head != wrapped, overflow="ellipsis")
    for row in rows:
        table.add_row(*(Text(cell) for cell in row))
    return table


def _streams(streams: Sequence[StreamConfig], times: Times) -> Iterator[RenderableType]:
    """Yields a table of streams, and the reasons for streams that could not be counted."""
    rows, remarks = [], []
    for config in streams:
        counted = _count_elements(config, times)
        if isinstance(counted, LevadaError):
            remarks.append(Text(f"{config.name}: {counted}"))
            counted = ("-", "", "")
        rows.append((config.name, config.path, config.format, *counted))
    fields = [", ".join(f"{name} {kind}" for name, kind in c.columns.items()) for c in streams]
    heads = ("stream", "path", "format", "elements", "from", "to")
    yield Grid(heads, rows, ("path", "stream"), ("fields", fields))
    yield from remarks


def _count_elements(config: StreamConfig, times: Times) -> tuple[str, str, str] | LevadaError:
    """Returns the number of elements and their first and last times, or the error that prevents
    it.
    """
    try:
        first, _, _ = count(replace(config, limit=1, files="sequence", lateness=0))
        last, elements, whole = count(replace(config, lateness=0))
    except LevadaError as error:
        return error
    many = f"{elements:,}{'' if whole else ' or more'}"
    return many, _time(first, times), _time(last, times)


def _time(at: int, times: Times) -> str:
    return time_cell(at, times) if MIN < at < MAX else ""


def count(config: StreamConfig) -> tuple[int, int, bool]:
    """Returns the greatest event time, the number of elements, and whether these are all. Raises
    ``LevadaError``.
    """
    with Engine(spark=False, epoch_rows=200_000, keep_results=False) as engine:
        engine.stream(config.name, config)
        engine.start(once=True, keep_open=True)
        until = time.monotonic() + PATIENCE
        ended = engine.await_end(0.02)
        while not ended and time.monotonic() < until:
            ended = engine.await_end(0.02)
        engine.stop()
        record = engine._records().get(config.name)
        return (record.max_ts, record.elements, ended) if record is not None else (MIN, 0, ended)
