"""The status and the progress of a started engine, from its driver."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import replace

from levada.checkpoint.delivery_progress import Delivered
from levada.checkpoint.manifest import Manifest
from levada.checkpoint.query_totals import read_by_last_manifest
from levada.core.event_time import MAX
from levada.core.names import is_derived
from levada.engine.delivery.delivery_lag import outputs_of
from levada.engine.engine_driver import Driver
from levada.engine.status.status import (
    Status,
    clock_step,
    failed_migrations,
    memory_of,
    progress_of,
    sources_away,
    status_of,
    with_backlog,
)
from levada.engine.status.summary import Progress
from levada.plan.execution.plan import Plan


def progress_of_run(driver: Driver) -> Progress:
    """Returns the progress of this run and of all runs on the checkpoint."""
    results, seconds = driver.publication.totals.solutions, time.monotonic() - driver.began
    progress, plan = (
        progress_of(driver.last, driver.before, results, seconds),
        driver.epochs.plan,
    )
    holder = None if plan is None else _holder(progress.watermarks, plan)
    backlog = driver.heart.backlog.load.backlog.values()
    times = [b.catch_up_seconds for b in backlog]
    return replace(
        progress,
        waiting_for=driver.awaits,
        blocking_stream=holder,
        unread_elements=sum(b.elements or 0 for b in backlog),
        catch_up_seconds=None if None in times else max((t for t in times if t), default=None),
    )


def status_of_run(driver: Driver, outputs: list[Delivered]) -> Status:
    """Returns the status of a run, with the progress of its ``outputs``."""
    if not driver.last.plan:
        return Status(0, False, {}, ())
    root = driver.epochs.checkpoint.root

    def read_last(last: Manifest) -> Status:
        plan = driver.epochs.checkpoint.load_plan(last.plan)
        return status_of(root, last, plan, driver.suspended.queries)

    status, load = (
        read_by_last_manifest(lambda: driver.last, read_last),
        driver.heart.backlog.measure(),
    )
    return replace(
        status,
        streams=with_backlog(status.streams, load),
        memory=memory_of(load),
        outputs=outputs_of(root, outputs),
        unavailable_streams=sources_away(root),
        clock_step=clock_step(root),
        failed_migrations=failed_migrations(root),
    )


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
