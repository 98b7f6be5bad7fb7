"""``--watch``: the newest rows of each query in a panel, redrawn as they arrive.

It is the sink of the results and the display of the progress: the engine's thread updates both, and
Rich's thread draws a few times a second. Cost: by the last rows of each batch.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

import polars as pl
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.panel import Panel
from rich.text import Text

from levada.cli.tables.table_cells import Prefixes, Times, grid, rows_of
from levada.connectors.serialization.serialize import Batch
from levada.engine.status.summary import Progress

FRAMES = 4  # a second
_AROUND = 4  # lines of a panel around its rows


class Watching:
    """A panel for each query. ``queries``: their names with the prefixes of their texts."""

    def __init__(
        self, console: Console, queries: Mapping[str, Prefixes], times: Times = "iso"
    ) -> None:
        self._console, self._queries, self._times = console, queries, times
        self._rows = {name: pl.DataFrame() for name in queries}
        self._counts = dict.fromkeys(queries, 0)
        self._line = ""
        self._lock = threading.Lock()
        self._live = Live(
            console=console,
            get_renderable=self.render,
            refresh_per_second=FRAMES,
            vertical_overflow="crop",
        )
        self._live.start()

    def publish(self, query: str, variables: Sequence[str], epoch: int, batch: Batch) -> list[str]:
        """Adds a batch of results."""
        if query in self._rows:
            rows = rows_of(batch)
            with self._lock:
                before = self._rows[query]
                both = [before, rows.tail(self._most)] if before.width else [rows]
                self._rows[query] = pl.concat(both, how="vertical_relaxed").tail(self._most)
                self._counts[query] += rows.height
        return []

    def __call__(self, progress: Progress) -> None:
        """Updates the progress."""
        with self._lock:
            self._line = progress.line()

    def close(self) -> None:
        """Ends the display; the last picture remains."""
        self._live.stop()

    @property
    def _most(self) -> int:
        """Returns the rows of each query that fit."""
        return max(self._console.height // max(len(self._queries), 1) - _AROUND, 1)

    def render(self) -> RenderableType:
        """Returns the present picture."""
        with self._lock:
            panels = [self._panel(name) for name in self._queries]
            return Group(*panels, Text(self._line, style="dim", overflow="ellipsis", no_wrap=True))

    def _panel(self, name: str) -> Panel:
        rows, count = self._rows[name], self._counts[name]
        inside: RenderableType = Text("no result yet", style="dim")
        if rows.height:
            inside = grid(rows.tail(self._most), self._times, self._queries[name])
        return Panel(inside, title=f"{name} · {count:,}", title_align="left", border_style="dim")
