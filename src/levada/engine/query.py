"""A query in the Python API: its results as reports, as a frame, or to a callback.

All three read published epochs from the checkpoint, each at its own pace: a slow reader costs disk,
not memory.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np
import polars as pl

from levada.emission.formats import Format, check_fits
from levada.emission.serialize import Batch
from levada.model.query import Form, Output
from levada.model.time import TIMELESS

if TYPE_CHECKING:
    from levada.runtime.driver.catalog import Registered
    from levada.runtime.driver.lifetime import Lifetime
    from levada.runtime.driver.publication import Publication

POLL = 0.02
_SIDES: tuple[Literal["left", "right"], ...] = ("left", "right")


@dataclass(frozen=True)
class Report:
    """The result of a query at one report: ``time`` in ms, ``rows`` a frame of canonical N-Triples
    texts (null: unbound).

    The one report of a query without windows has no time: None. A relation's changes have the
    column ``change`` (+1 insert, -1 delete). ASK has ``answer``, CONSTRUCT ``graph`` (N-Triples).
    """

    time: int | None
    rows: pl.DataFrame
    answer: bool | None = None
    graph: str | None = None


class Owner(Protocol):
    """What a handle asks of the engine that its query is registered with."""

    @property
    def _publication(self) -> Publication:
        """The epochs that have been published."""

    @property
    def running(self) -> bool:
        """Whether more may come."""

    def await_start(self) -> bool:
        """Waits until epochs begin; False if there will be none."""

    def await_end(self, timeout: float | None = None) -> bool:
        """Raises what made the engine fail."""

    def explain(self, query: str | Query) -> str:
        """How the query is understood."""

    def unregister(self, query: str | Query) -> None:
        """Takes the query out."""


class Query:
    """A handle on a registered query: on that one, whatever else may come under its name when it
    has been taken out.
    """

    def __init__(self, registered: Registered, engine: Owner) -> None:
        self.name = registered.name
        self._lifetime = registered.lifetime
        self._query = registered.query
        self._engine = engine

    def results(self) -> Iterator[Report]:
        """The reports with a result, in order: all that there have been, then those to come, until
        the query is gone.

        It goes with the engine, or when it is unregistered. Raises ``UsageError`` before the engine
        has started, and at the end what made the engine fail: what has been read is then not all.
        """
        yield from self._published()
        self._engine.await_end(0)

    def _published(self) -> Iterator[Report]:
        publication = self._engine._publication
        at = 0
        while True:
            over = self._lifetime.over or not self._engine.running
            while self._lifetime.query is not None and at < len(publication.kept):
                for batch in publication.read_one(publication.kept[at], self._lifetime):
                    yield from reports(batch)
                at += 1
            if over:
                return
            threading.Event().wait(POLL)

    def to_polars(self) -> pl.DataFrame:
        """All results so far: ``report`` (ms), variables as N-Triples; a relation's ``change``.

        ASK has ``boolean`` and CONSTRUCT ``graph`` in place of variables.
        """
        publication = self._engine._publication
        frames = [
            _frame(b)
            for epoch in list(publication.kept)
            for b in publication.read_one(epoch, self._lifetime)
        ]
        return pl.concat([self._no_results(), *frames])

    def _no_results(self) -> pl.DataFrame:
        match self._query.form:
            case Form.ASK:
                shown: dict[str, type[pl.DataType]] = {"boolean": pl.Boolean}
            case Form.CONSTRUCT:
                shown = {"graph": pl.String}
            case _:
                change = {"change": pl.Int8} if self._query.output is Output.RELATION else {}
                shown = {**change, **dict.fromkeys(self._query.variables, pl.String)}
        return pl.DataFrame(schema={"report": pl.Int64, **shown})

    def subscribe(self, callback: Callable[[Report], None]) -> threading.Thread:
        """Calls ``callback`` with each report, on a thread of its own that ends with the query;
        before the start, too.
        """

        def follow() -> None:
            if self._engine.await_start():
                # a failure is told to whoever waits for the engine
                for report in self._published():
                    callback(report)

        thread = threading.Thread(target=follow, name=f"levada {self.name}", daemon=True)
        thread.start()
        return thread

    def explain(self) -> str:
        """How the query is understood."""
        return self._engine.explain(self)

    def check_fits(self, form: Format) -> None:
        """Raises ``UsageError`` if files of this format cannot hold the query's results."""
        check_fits(form, self.name, self._query.form, self._query.output)

    def unregister(self) -> None:
        """Takes the query out; its results stay readable."""
        self._engine.unregister(self)


def named(query: str | Query) -> tuple[str, Lifetime | None]:
    """A query's name, and where it must stand if it is given by its handle."""
    return (query, None) if isinstance(query, str) else (query.name, query._lifetime)


def _frame(batch: Batch) -> pl.DataFrame:
    report = pl.Series(batch.report)
    columns: dict[str, object] = {"report": report.set(report == TIMELESS, None)}
    if batch.change is not None:
        columns["change"] = batch.change
    if batch.form is Form.ASK:
        columns["boolean"] = batch.booleans
    if batch.graphs is not None:
        columns["graph"] = batch.graphs
    return pl.DataFrame({**columns, **batch.columns})


def reports(batch: Batch) -> Iterator[Report]:
    """A batch report by report, with the empty ones that are to be shown in their places."""
    frame = _frame(batch)
    times = np.unique(np.concatenate([batch.report, batch.empty]))
    starts, stops = (np.searchsorted(batch.report, times, side=side) for side in _SIDES)
    for time, start, stop in zip(times.tolist(), starts.tolist(), stops.tolist(), strict=True):
        yield _report(
            batch,
            None if time == TIMELESS else time,
            frame.slice(start, stop - start).drop("report"),
        )


def _report(batch: Batch, time: int | None, rows: pl.DataFrame) -> Report:
    match batch.form:
        case Form.ASK:
            return Report(time, rows, answer=bool(len(rows) and rows["boolean"][0]))
        case Form.CONSTRUCT:
            return Report(time, rows, graph=str(rows["graph"][0]) if len(rows) else "")
        case _:
            return Report(time, rows)
