"""What an engine tells of itself: where it is, and what each query waits for."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import replace

from levada.checkpoint.manifest import Manifest, StreamRecord
from levada.checkpoint.query_totals import read_by_last_manifest
from levada.core.event_time import MAX
from levada.core.names import display_name, is_derived
from levada.engine.delivery.delivery_lag import outputs_of
from levada.engine.delivery.delivery_manager import Deliveries
from levada.engine.driver.after_commit import Tell
from levada.engine.engine_driver import Driver
from levada.engine.registry import Registry
from levada.engine.status.status import (
    Status,
    clock_step,
    live_streams,
    progress_of,
    sources_away,
    status_of,
)
from levada.engine.status.summary import Progress
from levada.errors import UsageError
from levada.plan.execution.plan import Plan
from levada.runtime.driver.stream_progress import carry_over

STARTING = "Levada is starting"


class IntrospectionApi:
    """What an engine tells, by its registry and, once it has been started, its driver."""

    _registry: Registry
    _driver: Driver | None
    _deliveries: Deliveries
    _settled: threading.Event
    _tell: list[Tell]

    @property
    def note(self) -> str:
        """What is to be said of the start, such as that the checkpoint's streams had ended."""
        return "" if self._driver is None else self._driver.note

    @property
    def running(self) -> bool:
        """Whether epochs may still come."""
        return self._driver is not None and not self._driver.loop.await_end(0)

    def progress(self) -> Progress:
        """Where the engine is: epochs, elements and results of this run and ever, watermarks, what
        holds queries back.
        """
        if self._driver is None:
            return Progress(0, 0, 0, 0.0, awaits=STARTING)
        driver = self._driver
        results, seconds = driver.publication.totals.solutions, time.monotonic() - driver.began
        progress, plan = (
            progress_of(driver.last, driver.before, results, seconds),
            driver.epochs.plan,
        )
        holder = None if plan is None else _holder(progress.watermarks, plan)
        return replace(progress, awaits=driver.awaits, holds_back=holder)

    def _solutions(self) -> dict[str, int]:
        """The results of each query in this run."""
        if self._driver is None:
            return dict.fromkeys(self._registry.queries, 0)
        totals = self._driver.publication.totals
        return {
            name: totals.query_totals(query.lifetime.query)[0]
            for name, query in self._registry.queries.items()
        }

    def status(self) -> Status:
        """What each query waits for: watermarks, elements that matched patterns, next report."""
        if self._driver is None:
            raise UsageError("The engine has not been started.")
        driver = self._driver
        if not driver.last.plan:
            return Status(0, False, {}, ())
        root, now = driver.epochs.checkpoint.root, [d.progress for d in self._deliveries.all]

        def read_last(last: Manifest) -> Status:
            plan = driver.epochs.checkpoint.load_plan(last.plan)
            return status_of(root, last, plan, driver.suspended.queries)

        status = read_by_last_manifest(lambda: driver.last, read_last)
        return replace(
            status,
            outputs=outputs_of(root, now),
            away=sources_away(root),
            clock=clock_step(root),
        )

    def streams(self) -> list[str]:
        """The names of the streams from outside."""
        return list(self._registry.streams)

    def queries(self) -> list[str]:
        """The names of the registered queries."""
        return list(self._registry.queries)

    def _records_at(self, before: Manifest | None) -> dict[str, StreamRecord]:
        """What a run of before had counted of the streams that there are now."""
        if before is None or self._driver is None or self._driver.epochs.plan is None:
            return {}
        records = carry_over(before, self._driver.epochs.plan.streams).streams
        return {display_name(name): record for name, record in records.items()}

    def _records(self) -> dict[str, StreamRecord]:
        """Counts per stream since the beginning of the checkpoint; of a stream that a query makes
        by the query's name.
        """
        if self._driver is None or self._driver.epochs.plan is None:
            return {}
        return live_streams(self._driver.last, self._driver.epochs.plan)

    def _await_spark(self) -> None:
        """Waits until epochs run where they will, once it has been started."""
        if self._driver is not None:
            self._driver.await_spark()

    def _on_epoch(self, tell: Tell) -> None:
        """Calls ``tell`` with the manifest of every epoch, after its publication."""
        self._tell.append(tell)

    @property
    def _begun(self) -> bool:
        """Whether it has been started, or closed."""
        return self._settled.is_set()


def _holder(watermarks: Mapping[str, int], plan: Plan) -> str | None:
    """The stream, of these from outside, that holds queries back most: the least of those that some
    query reads together. Who reads what queries make waits for whatever these read.
    """
    read = [name for name in watermarks if name in plan.read_streams]
    held = set()
    for streams in plan.stream_sets:
        made = any(map(is_derived, streams))
        joined = [name for name in read if made or name in streams]
        if len(joined) > 1:
            held.add(min(joined, key=lambda name: watermarks[name]))
    open_ = [name for name in read if name in held and watermarks[name] < MAX]
    return min(open_, key=lambda name: watermarks[name], default=None)
