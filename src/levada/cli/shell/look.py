"""``\\d``: what there is. Streams with their fields, elements and times, static data, queries.

How many elements there are, and from when to when, is counted by an engine without a query, for a
moment: of a long stream it is what was read in that time.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from levada.app.app_file import App
from levada.cli.live.cells import Times, time_cell
from levada.engine.engine import Engine
from levada.errors import LevadaError
from levada.model.time import MAX, MIN
from levada.streams.stream_config import StreamConfig

PATIENCE = 2.0
"""Seconds for which a stream is counted."""


def look(app: App, times: Times) -> Iterator[RenderableType]:
    """What there is, a table for each kind."""
    if app.streams:
        yield _grid(
            ("stream", "path", "format", "fields", "elements", "from", "to"),
            [_stream(config, times) for config in app.streams],
        )
    if app.static:
        rows = [(s.path, s.graph or "default", "yes" if s.reload else "") for s in app.static]
        yield _grid(("static", "graph", "reload"), rows)
    if app.queries:
        queries = [(q.name, q.spoken, " ".join(q.text.split())[:60]) for q in app.queries]
        yield _grid(("query", "dialect", "text"), queries)
    if not (app.streams or app.static or app.queries):
        yield Text("Nothing is declared: say \\stream NAME=PATH, or \\static FILE.")


def _grid(heads: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> Table:
    found = Table(box=None, pad_edge=False, header_style="bold")
    for head in heads:
        found.add_column(head, overflow="fold", no_wrap=head in ("from", "to", "elements"))
    for row in rows:
        found.add_row(*(Text(cell) for cell in row))
    return found


def _stream(config: StreamConfig, times: Times) -> tuple[str, ...]:
    fields = ", ".join(f"{name} {kind}" for name, kind in config.columns.items())
    head = (config.name, config.path, config.format, fields)
    try:
        first, _, _ = count(replace(config, limit=1, files="sequence", lateness=0))
        last, elements, whole = count(replace(config, lateness=0))
    except LevadaError as error:
        return (*head, str(error), "", "")
    return (
        *head,
        f"{elements:,}{'' if whole else ' or more'}",
        _time(first, times),
        _time(last, times),
    )


def _time(at: int, times: Times) -> str:
    return time_cell(at, times) if MIN < at < MAX else ""


def count(config: StreamConfig) -> tuple[int, int, bool]:
    """The greatest event time, the number of elements, and whether that is all. Raises
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
