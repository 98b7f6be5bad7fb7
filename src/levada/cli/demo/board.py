"""The demo's board: the latest results of the three queries and the progress of the run, drawn by
Rich.

A ``Board`` is a sink, which the engine's thread fills, and a display, which the main thread draws.
It keeps the last solutions of each query and their number. Its values are replaced, never changed,
so the threads need no lock. Cost: by the epoch and the few rows shown, not by the results.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum

import numpy as np
from rich.bar import Bar
from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.progress_bar import ProgressBar
from rich.spinner import Spinner
from rich.table import Table
from rich.text import Text

from levada.connectors.serialization.serialize import Batch
from levada.core.count_text import count_text
from levada.core.event_time import MAX, MIN, instant
from levada.core.frozen import frozen
from levada.core.rdf_terms import Iri, Literal, parse_term
from levada.engine.status.summary import Progress

_WIDE = 116  # the least columns for two queries side by side
_MAX_ROWS = 16  # rows of a query that are kept

Rows = tuple[tuple[int, tuple[str, ...]], ...]
"""Solutions for people: report time (ms) and values."""


class Kind(Enum):
    """The rows that the board shows of a query: its last solutions, or the greatest ones of its
    last report.
    """

    LAST = "last"
    GREATEST = "greatest"


@frozen
class View:
    """The presentation of a query. ``columns`` are (variable, heading). The last column of
    ``GREATEST`` is a number, drawn as a bar.
    """

    query: str
    title: str
    columns: tuple[tuple[str, str], ...]
    kind: Kind = Kind.LAST


VIEWS = (
    View(
        "storms",
        "Storms: strong gusts and late departures in 3 hours",
        (("airport", "airport"), ("strongestGust", "gust mph"), ("averageDelay", "delay min")),
    ),
    View(
        "departures",
        "Departures with the weather of the hour before",
        (
            ("number", "flight"),
            ("from", "from"),
            ("to", "to"),
            ("delay", "delay min"),
            ("wind", "wind mph"),
            ("visibility", "sight mi"),
        ),
    ),
    View(
        "airlines",
        "Airlines: flights in 24 hours",
        (("airline", "airline"), ("flights", "")),
        Kind.GREATEST,
    ),
)


@frozen
class QueryTally:
    """The number of a query's solutions, and (report, values) of some of the last, oldest first."""

    count: int = 0
    rows: Rows = ()


@dataclass
class Board:
    """The board of the demo.

    ``elements`` is the size of the streams, ``until`` the last event time (ms). Later reports, of
    windows that run out, are counted but do not replace a report of ``GREATEST``.
    """

    elements: int
    until: int = MAX
    views: Sequence[View] = VIEWS
    seen: dict[str, QueryTally] = field(default_factory=dict)
    progress: Progress = field(default_factory=lambda: Progress(0, 0, 0, 0.0))
    _spinner: Spinner = field(
        default_factory=lambda: Spinner("dots", Text("Spark is starting", style="dim"))
    )

    def publish(self, query: str, variables: Sequence[str], epoch: int, batch: Batch) -> list[str]:
        """Takes a query's results of an epoch (``levada.connectors.sinks.Sink``)."""
        view = next(view for view in self.views if view.query == query)
        before = self.seen.get(query, QueryTally())
        rows = (
            _last_solutions(view, batch)
            if view.kind is Kind.LAST
            else _last_report(view, batch, self.until)
        )
        kept = (*before.rows, *rows)[-_MAX_ROWS:] if view.kind is Kind.LAST else rows or before.rows
        self.seen[query] = QueryTally(before.count + len(batch.report), kept)
        return []

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Yields the head, then the queries, in as many rows as fit."""
        height = options.height or console.height
        wide = options.max_width >= _WIDE
        yield self._head()
        if not self.progress.epochs:
            return
        yield Text()
        if not wide:
            each = max(min((height - 14) // 3, 8), 2) if console.is_terminal else 5
            for view in self.views:
                yield self._table(view, each)
            return
        room = max(height - 12, 8) if console.is_terminal else _MAX_ROWS
        left = Group(*(self._table(view, min(room // 2, 8)) for view in self.views[:2]))
        grid = Table.grid(padding=(0, 4), expand=True)
        grid.add_column(ratio=3)
        grid.add_column(ratio=2)
        grid.add_row(left, self._table(self.views[2], min(room + 3, _MAX_ROWS)))
        yield grid

    def _head(self) -> RenderableType:
        """Returns the state of the run: event time, elements, rate."""
        p = self.progress
        if not p.epochs:
            return self._spinner
        line = Table.grid(padding=(0, 2))
        share = p.elements / max(self.elements, 1)
        bar = ProgressBar(max(self.elements, 1), p.elements, width=36)
        line.add_row(Text(self._now(), style="bold cyan"), bar, f"{share:.0%}")
        rate = p.elements / p.seconds if p.seconds else 0.0
        counts = (
            f"{p.elements:,} of {count_text(self.elements, 'element')} · {rate:,.0f}/s · "
            f"epoch {p.epochs} · {p.seconds:,.0f} s"
        )
        return Group(line, Text(counts))

    def _now(self) -> str:
        """Returns the event time up to which results are complete."""
        least = min(self.progress.watermarks.values(), default=MIN)
        return "end of the year" if least >= MAX else _minute(least)

    def _table(self, view: View, most: int) -> RenderableType:
        seen = self.seen.get(view.query, QueryTally())
        results = f"   {count_text(seen.count, 'result')}"
        title = Text.assemble((view.title, "bold"), (results, "green"))
        draw = _greatest if view.kind is Kind.GREATEST else _last
        return Group(title, draw(view, seen.rows, most), Text())


def _last_solutions(view: View, batch: Batch) -> Rows:
    n = len(batch.report)
    return _rows(view, batch, max(n - _MAX_ROWS, 0), n)


def _last_report(view: View, batch: Batch, until: int) -> Rows:
    """Returns the solutions of the last report that is not after ``until``, or () without one."""
    stop = int(np.searchsorted(batch.report, until, side="right"))
    start = int(np.searchsorted(batch.report, batch.report[stop - 1])) if stop else 0
    return _rows(view, batch, start, stop)


def _rows(view: View, batch: Batch, start: int, stop: int) -> Rows:
    """Returns some solutions of a batch as texts for people."""
    columns = [batch.columns[name].slice(start, stop - start).to_list() for name, _ in view.columns]
    values = ([_show(text) for text in column] for column in columns)
    return tuple(zip(batch.report[start:stop].tolist(), zip(*values, strict=True), strict=True))


def _show(text: str | None) -> str:
    """Returns a term for people; an IRI is cut after its last slash.

    >>> _show("<http://levada.example/airport/JFK>")
    'JFK'
    >>> _show('"2.5"^^<http://www.w3.org/2001/XMLSchema#decimal>')
    '2.5'
    """
    match parse_term(text) if text is not None else None:
        case None:
            return ""
        case Iri(value):
            return value.rsplit("/", 1)[-1]
        case Literal(lexical):
            return lexical
        case blank:
            return str(blank)


def _minute(ms: int) -> str:
    """Returns an event time without its seconds.

    >>> _minute(0)
    '1970-01-01 00:00'
    """
    return instant(ms)[:16].replace("T", " ")


def _plain(heads: Sequence[str]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for i, head in enumerate(heads):
        numeric = head.endswith((" mph", " min", " mi"))
        table.add_column(
            head,
            justify="right" if numeric else "left",
            no_wrap=True,
            style="dim" if i == 0 else "",
        )
    return table


def _last(view: View, rows: Rows, most: int) -> Table:
    """Returns a table with the newest solution on top."""
    table = _plain(("time (UTC)", *(head for _, head in view.columns)))
    for report, values in list(reversed(rows))[:most]:
        table.add_row(_minute(report), *(Text(value) for value in values))
    return table


def _greatest(view: View, rows: Rows, most: int) -> Table:
    """Returns the greatest numbers of the last report as bars."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(no_wrap=True)
    table.add_column(justify="right")
    table.add_column()
    ranked = sorted(((float(values[-1]), values[0]) for _, values in rows), reverse=True)[:most]
    for number, name in ranked:
        table.add_row(
            Text(name), f"{number:,.0f}", Bar(ranked[0][0], 0, number, width=24, color="cyan")
        )
    return table
