"""A query in the Python API: its results as reports, as a table, to a callback or to asyncio.

All readers take published epochs from the checkpoint, each at its pace: a slow reader costs disk,
not memory.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np
import polars as pl

from levada.connectors.serialization.columnar_tables import table
from levada.connectors.serialization.result_formats import Format, check_fits, check_state
from levada.connectors.serialization.serialize import Batch
from levada.core.count_text import count_text
from levada.core.event_time import TIMELESS, distinct
from levada.core.query_model import Form, Output
from levada.engine.python.notebook import SHOWN, frame_html
from levada.engine.python.optional_imports import notebook_module
from levada.engine.python.result_tables import Table, Tabular
from levada.errors import CheckpointError, UsageError

if TYPE_CHECKING:
    from levada.runtime.publication.publication import Publication
    from levada.runtime.publication.registered_query import Lifetime, Registered


_SIDES: tuple[Literal["left", "right"], ...] = ("left", "right")


@dataclass(frozen=True)
class Report(Tabular):
    """The result of a query at one report: ``time`` in ms, ``rows`` a frame of canonical N-Triples
    texts (null: unbound).

    The only report of a query without windows has the time None. A relation's changes have the
    column ``change`` (+1 insert, -1 delete). ASK has ``answer``, CONSTRUCT has ``graph``
    (N-Triples). ``to_polars()`` and the similar methods return typed values.
    """

    time: int | None
    rows: pl.DataFrame
    answer: bool | None = None
    graph: str | None = None
    query: str = ""

    def _table(self) -> Table:
        if self.answer is not None:
            answers = pl.DataFrame({"boolean": [self.answer]})
            return Table(self.query, Form.ASK, answers)
        if self.graph is None:
            return Table(self.query, Form.SELECT, self.rows)
        whole = Batch(np.array([0]), Form.CONSTRUCT, graphs=pl.Series([self.graph]))
        return Table(self.query, Form.CONSTRUCT, table(whole).drop("report"))

    def _caption(self) -> str:
        return " ".join(part for part in (self.query, _time_text(self.time)) if part)


def _time_text(time: int | None) -> str:
    """Returns a report's time for people."""
    return "" if time is None else f"at {pl.Series([time]).cast(pl.Datetime('ms', 'UTC'))[0]}"


class EngineHandle(Protocol):
    """The part of an engine that a query's handle uses. A protocol, since ``engine.engine`` makes
    the handles and imports this module.
    """

    _publish_signal: PublishSignal
    _followers: list[threading.Thread]

    @property
    def _publication(self) -> Publication:
        """Returns the published epochs."""

    @property
    def _begun(self) -> bool:
        """Returns whether the engine was started or closed."""

    @property
    def running(self) -> bool:
        """Returns whether more reports may come."""

    def await_start(self) -> bool:
        """Waits until epochs begin. Returns False if there will be none."""

    def await_end(self, timeout: float | None = None) -> bool:
        """Waits until the epochs end. Raises the engine's failure."""

    def explain(self, query: str | Query) -> str:
        """Returns a query's algebra, as text."""

    def unregister(self, query: str | Query) -> None:
        """Removes the query."""

    def _deliver(self, query: Query, url: str, options: Mapping[str, Any]) -> None:
        """Sends the query's reports to an output, too."""


class Query(Tabular):
    """A handle on one registered query. After that query's removal it never refers to a later query
    of the same name.
    """

    __slots__ = ("__weakref__", "_engine", "_lifetime", "_query", "name")

    def __init__(self, registered: Registered, engine: EngineHandle) -> None:
        self.name = registered.name
        self._lifetime = registered.lifetime
        self._query = registered.alike
        self._engine = engine

    # -- report by report --

    def results(self) -> ReportIterator:
        """Yields the reports with a result, in order: all earlier ones, then each new one, until
        the query ends. ``to_polars()``, ``to_arrow()`` and the similar methods of the iterator
        return the present results as one table.

        The query ends with the engine, or when it is unregistered. Raises ``UsageError`` before the
        engine has started. Raises the engine's failure at the end, since the reports are then
        incomplete.
        """
        return ReportIterator(self)

    def _iterate_to_end(self) -> Iterator[Report]:
        yield from self._iterate_published()
        self._engine.await_end(0)

    def _iterate_published(self) -> Iterator[Report]:
        cursor = _Cursor(self)
        while True:
            heard, over = self._engine._publish_signal.count, self._all_published
            while (new_reports := cursor.next()) is not None:
                yield from new_reports
            if over:
                return
            self._engine._publish_signal.wait(heard)

    @property
    def _all_published(self) -> bool:
        """Returns whether all reports of the query are published."""
        return self._lifetime.is_over or not self._engine.running

    async def __aiter__(self) -> AsyncIterator[Report]:
        """Yields the reports as ``results()`` does, for asyncio: waits without a thread, also for
        the start.
        """
        async with self._engine._publish_signal.subscribe() as event:
            while not self._engine._begun:
                await set_or_later(event)
            cursor = _Cursor(self)
            while True:
                over = self._all_published
                while cursor.more:
                    for report in await asyncio.to_thread(cursor.read):
                        yield report
                if over:
                    break
                await set_or_later(event)
        self._engine.await_end(0)

    def subscribe(self, callback: Callable[[Report], object]) -> threading.Thread:
        """Calls ``callback`` once with each report, in order. It runs on a separate thread, which
        ends with the query. You can subscribe before the start. The engine's end waits for the
        thread.

        An exception of ``callback`` goes to ``threading.excepthook``, and the next report follows.
        """

        def follow() -> None:
            try:
                if self._engine.await_start():
                    # await_end raises a failure, not this thread
                    for report in self._iterate_published():
                        _call(callback, report)
            except UsageError:
                return  # the engine was closed by an exception

        thread = threading.Thread(target=follow, name=f"levada {self.name}", daemon=True)
        self._engine._followers.append(thread)
        thread.start()
        return thread

    def to(self, url: str, **options: str) -> Query:
        """Sends the reports to Kafka, PostgreSQL or a Delta table, too, each exactly once, even if
        processes are killed. URLs: ``kafka://HOST:PORT/TOPIC`` (``format``),
        ``postgresql://HOST/DATABASE`` (``table``, ``as_``, ``key``) and ``delta://PATH``
        (``as_``, ``key``, ``every``, ``columns``); see docs/outputs.md. A query
        that was added while the engine runs is sent from its first report on. Raises
        ``UsageError``.
        """
        said = {name.removesuffix("_"): value for name, value in options.items()}
        self._engine._deliver(self, url, said)
        return self

    # -- all together --

    def _table(self) -> Table:
        frames = [table(batch) for batch in _Cursor(self).batches()]
        whole = pl.concat([self._no_results(), *frames])
        return Table(self.name, self._query.form, whole)

    def _no_results(self) -> pl.DataFrame:
        match self._query.form:
            case Form.ASK:
                shown: dict[str, type[pl.DataType]] = {"boolean": pl.Boolean}
            case Form.CONSTRUCT:
                shown = dict.fromkeys(("subject", "predicate", "object"), pl.String)
            case _:
                change = {"change": pl.Int8} if self._query.output is Output.RELATION else {}
                shown = {**change, **dict.fromkeys(self._query.variables, pl.String)}
        return pl.DataFrame(schema={"report": pl.Int64, **shown})

    # -- in a notebook --

    def live(self, every: float = 0.5) -> threading.Thread:
        """Shows the last rows in the notebook's cell, and updates them until the query ends.
        ``every``: the least time between two updates, s. Raises ``UsageError`` without IPython.
        """
        handle = notebook_module("live").display(self, display_id=True)

        def follow() -> None:
            if not self._engine.await_start():
                return
            shown = -1
            while True:
                heard, over = self._engine._publish_signal.count, self._all_published
                if heard > shown or over:
                    handle.update(self)
                    shown = heard
                if over:
                    return
                threading.Event().wait(every)

        thread = threading.Thread(target=follow, name=f"levada live {self.name}", daemon=True)
        self._engine._followers.append(thread)
        thread.start()
        return thread

    def _repr_html_(self) -> str:
        if not self._engine._begun:
            return frame_html(self._no_results(), f"{self.name}: not started")
        caption = f"{self.name}: {'ended' if self._all_published else 'running'}, the last rows"
        return frame_html(_Cursor(self).tail(SHOWN).to_polars(), caption)

    # -- the query --

    def explain(self) -> str:
        """Returns the query's algebra, as text."""
        return self._engine.explain(self)

    def unregister(self) -> None:
        """Removes the query; its results stay readable."""
        self._engine.unregister(self)

    def _check_fits(self, form: Format, *, state: bool = False) -> None:
        """Raises ``UsageError`` if files of this format cannot hold the query's results, or its
        state.
        """
        if state:
            check_state(form, self.name, self._query.output)
        check_fits(form, self.name, self._query.form, self._query.output)


class ReportIterator(Tabular):
    """An iterator over the reports of a query, with their conversions to a table."""

    __slots__ = ("_query", "_reports")

    def __init__(self, query: Query) -> None:
        self._query = query
        self._reports = query._iterate_to_end()

    def __iter__(self) -> Iterator[Report]:
        return self

    def __next__(self) -> Report:
        return next(self._reports)

    def _table(self) -> Table:
        return self._query._table()


@dataclass(repr=False)
class Results(Tabular):
    """All reports of a query, in order, as ``levada.query`` returns them."""

    reports: list[Report]
    _whole: Table

    def _table(self) -> Table:
        return self._whole

    def __iter__(self) -> Iterator[Report]:
        return iter(self.reports)

    def __len__(self) -> int:
        return len(self.reports)

    def __repr__(self) -> str:
        return repr(self.to_polars())

    def _caption(self) -> str:
        return count_text(len(self.reports), "report")


class _Cursor:
    """A reader's position among the published epochs."""

    def __init__(self, query: Query) -> None:
        self._query = query
        self._at = 0

    @property
    def more(self) -> bool:
        """Returns whether there is an unread epoch."""
        kept = self._query._engine._publication.kept
        return self._query._lifetime.query is not None and self._at < len(kept)

    def next(self) -> list[Report] | None:
        """Returns the reports of the next epoch; None if it is not there yet."""
        return self.read() if self.more else None

    def read(self) -> list[Report]:
        """Returns the reports of the next epoch."""
        epoch_reports = [
            r for batch in self._batches_from(self._at) for r in reports(batch, self._query.name)
        ]
        self._at += 1
        return epoch_reports

    def batches(self) -> Iterator[Batch]:
        """Yields the batches of all published epochs."""
        for at in range(len(self._query._engine._publication.kept)):
            yield from self._batches_from(at)

    def tail(self, rows: int) -> Results:
        """Returns the last rows: whole epochs that have at least ``rows`` rows together."""
        frames: list[pl.DataFrame] = []
        at = len(self._query._engine._publication.kept)
        while at > 0 and sum(frame.height for frame in frames) < rows:
            at -= 1
            frames = [table(batch) for batch in self._batches_from(at)] + frames
        whole = pl.concat([self._query._no_results(), *frames])
        return Results([], Table(self._query.name, self._query._query.form, whole))

    def _batches_from(self, at: int) -> Iterator[Batch]:
        """Yields the batches of an epoch. Raises ``UsageError`` if they were deleted with the
        engine.
        """
        publication = self._query._engine._publication
        try:
            yield from publication.read_one(publication.kept[at], self._query._lifetime)
        except CheckpointError:
            _ = self._query._engine._publication  # raises UsageError if the engine is closed
            raise


def collect_reports(query: Query) -> Results:
    """Reads all reports of a query into memory."""
    batches = list(_Cursor(query).batches())
    frames = [table(batch) for batch in batches]
    whole = Table(query.name, query._query.form, pl.concat([query._no_results(), *frames]))
    return Results([r for batch in batches for r in reports(batch, query.name)], whole)


def name_and_lifetime(query: str | Query) -> tuple[str, Lifetime | None]:
    """Returns a query's name, and its lifetime if ``query`` is a handle, else None."""
    return (query, None) if isinstance(query, str) else (query.name, query._lifetime)


def _call(callback: Callable[[Report], object], report: Report) -> None:
    try:
        callback(report)
    except Exception:
        details = (*sys.exc_info(), threading.current_thread())
        threading.excepthook(threading.ExceptHookArgs(details))


def _frame(batch: Batch) -> pl.DataFrame:
    """Converts a batch into rows. A row of a CONSTRUCT is a whole graph."""
    if batch.form is not Form.CONSTRUCT:
        return table(batch)
    report = pl.Series("report", batch.report)
    return pl.DataFrame({"report": report.set(report == TIMELESS, None), "graph": batch.graphs})


def reports(batch: Batch, query: str = "") -> Iterator[Report]:
    """Yields a batch report by report, in order, with the empty reports that are to be shown."""
    frame = _frame(batch)
    times = distinct(np.concatenate([batch.report, batch.empty]))
    starts, stops = (np.searchsorted(batch.report, times, side=side) for side in _SIDES)
    for time, start, stop in zip(times.tolist(), starts.tolist(), stops.tolist(), strict=True):
        rows = frame.slice(start, stop - start).drop("report")
        yield _report(batch.form, None if time == TIMELESS else time, rows, query)


def _report(form: Form, time: int | None, rows: pl.DataFrame, query: str) -> Report:
    match form:
        case Form.ASK:
            answer = bool(len(rows) and rows["boolean"][0])
            return Report(time, rows, answer=answer, query=query)
        case Form.CONSTRUCT:
            graph = str(rows["graph"][0]) if len(rows) else ""
            return Report(time, rows, graph=graph, query=query)
        case _:
            return Report(time, rows, query=query)


# A signal to readers of results: an epoch was published, or the engine started or was closed.
#
# Threads call ``wait``; asyncio code uses ``subscribe``. Removing a query or ending the epochs does
# not notify readers. Readers look again after at most ``LOOK`` seconds.


LOOK = 0.05  # s


class PublishSignal:
    """The signal of one engine."""

    def __init__(self) -> None:
        self._rung = threading.Condition()
        self._count = 0
        self._hearers: set[Callable[[], object]] = set()

    @property
    def count(self) -> int:
        """Returns the number of notifications so far."""
        return self._count

    def notify(self, _: object = None) -> None:
        """Wakes all waiting readers."""
        with self._rung:
            self._count += 1
            self._rung.notify_all()
            hearers = list(self._hearers)
        for hearer in hearers:
            with suppress(RuntimeError):  # its event loop is closed
                hearer()

    def wait(self, heard: int, timeout: float = LOOK) -> None:
        """Waits until more than ``heard`` notifications have been sent, or until ``timeout``
        seconds pass.
        """
        with self._rung:
            self._rung.wait_for(lambda: self._count > heard, timeout)

    @asynccontextmanager
    async def subscribe(self) -> AsyncIterator[asyncio.Event]:
        """Gives an event of this event loop that each notification sets."""
        loop, event = asyncio.get_running_loop(), asyncio.Event()

        def hear() -> None:
            loop.call_soon_threadsafe(event.set)

        with self._rung:
            self._hearers.add(hear)
        try:
            yield event
        finally:
            with self._rung:
                self._hearers.discard(hear)


async def set_or_later(event: asyncio.Event, timeout: float = LOOK) -> None:
    """Waits until the event is set or the time is over, and clears the event."""
    with suppress(TimeoutError):
        await asyncio.wait_for(event.wait(), timeout)
    event.clear()
