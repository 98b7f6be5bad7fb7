"""The engine's methods for its state: its progress, and the reasons for which queries wait."""

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
    """The state of an engine, from its registry and, after the start, its driver."""

    _registry: Registry
    _driver: Driver | None
    _deliveries: Deliveries
    _settled: threading.Event
    _tell: list[Tell]

    @property
    def note(self) -> str:
        """Returns a remark about the start, such as that the checkpoint's streams had ended."""
        return "" if self._driver is None else self._driver.note

    @property
    def running(self) -> bool:
        """Returns whether more epochs may come."""
        return self._driver is not None and not self._driver.loop.await_end(0)

    def progress(self) -> Progress:
        """Returns the progress: epochs, elements and results of this run and of all runs,
        watermarks, and the stream that holds queries back.
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
        """Returns the number of results of each query in this run."""
        if self._driver is None:
            return dict.fromkeys(self._registry.queries, 0)
        totals = self._driver.publication.totals
        return {
            name: totals.query_totals(query.lifetime.query)[0]
            for name, query in self._registry.queries.items()
        }

    def status(self) -> Status:
        """Returns the status: watermarks, counts of matched patterns, and next reports of all
        queries. Raises ``UsageError`` before the start.
        """
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
        """Returns the names of the outside streams."""
        return list(self._registry.streams)

    def queries(self) -> list[str]:
        """Returns the names of the registered queries."""
        return list(self._registry.queries)

    def _records_at(self, before: Manifest | None) -> dict[str, StreamRecord]:
        """Returns the counts of an earlier run for the current streams, by name."""
        if before is None or self._driver is None or self._driver.epochs.plan is None:
            return {}
        records = carry_over(before, self._driver.epochs.plan.streams).streams
        return {display_name(name): record for name, record in records.items()}

    def _records(self) -> dict[str, StreamRecord]:
        """Returns the counts by stream since the beginning of the checkpoint. A derived stream has
        its query's name.
        """
        if self._driver is None or self._driver.epochs.plan is None:
            return {}
        return live_streams(self._driver.last, self._driver.epochs.plan)

    def _await_spark(self) -> None:
        """Waits until a starting Spark is up, after the start of the engine."""
        if self._driver is not None:
            self._driver.await_spark()

    def _on_epoch(self, tell: Tell) -> None:
        """Calls ``tell`` with the manifest of every epoch, after its publication."""
        self._tell.append(tell)

    @property
    def _begun(self) -> bool:
        """Returns whether the engine was started or closed."""
        return self._settled.is_set()


def _holder(watermarks: Mapping[str, int], plan: Plan) -> str | None:
    """Returns the outside stream that holds queries back most: the lowest of those that some query
    reads together. A query that reads derived streams waits for all outside streams.
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
