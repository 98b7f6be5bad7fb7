"""The state of a checkpoint: ``/health``, ``/status``, ``/streams``, ``/metrics``."""

from __future__ import annotations

import heapq
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict
from itertools import accumulate
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response

from levada.checkpoint.leadership.heartbeat import EPOCH_SECONDS, Load
from levada.checkpoint.reader_leases import epochs_there
from levada.checkpoint.request_files import engine_runs
from levada.connectors.config.stream_config import StreamConfig
from levada.connectors.spool.push_spool import is_pushed
from levada.core.event_time import MAX, MIN
from levada.engine.status.status import QueryStatus, Status, last_load, read_status
from levada.engine.status.status_document import (
    age_seconds,
    epoch_age_seconds,
    status_document,
    watermark_value,
)
from levada.errors import CheckpointError
from levada.server.app_state import ServerState, off_loop, state_of, token_of
from levada.server.problem_json import Json, Problem, without_paths
from levada.server.security.tokens import Role

PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"
ADMIN_FIELDS = ("active_driver", "standby_drivers", "placement", "lost_tasks")
MAX_CHARGED = 1000
"""Queries whose charges ``/metrics`` reports."""
READINESS_SECONDS = 0.5
Sample = tuple[dict[str, str], float]


async def health(request: Request) -> Response:
    """Returns whether the server answers and an engine runs: 200 if both, else 503. Without a token
    the answer says nothing else. With the role admin it lists the faults of the file of tokens.
    """
    server, token = state_of(request), token_of(request)
    if not token.may(Role.READ):
        return await ready(request)
    runs = await off_loop(lambda: engine_runs(server.settings.root))
    is_ok = server.settings.root.is_dir() and (runs or server.settings.read_only)
    said: dict[str, Any] = {"ok": is_ok, "engine": "running" if runs else "stopped"}
    said["read_only"] = server.settings.read_only
    tokens = request.app.state.door.tokens
    if tokens.requires_tokens and Role.ADMIN in token.roles:
        said["token_faults"] = tokens.now().sentences()
    return Json(said, 200 if is_ok else 503)


async def live(request: Request) -> Response:
    """Returns 200: the server answers."""
    return Json({"ok": True})


async def ready(request: Request) -> Response:
    """Returns whether an engine runs, or the server is read-only: 200 or 503. Anybody may ask, so
    the server looks once in ``READINESS_SECONDS``.
    """
    state, now = request.app.state, time.monotonic()
    until, is_ok = getattr(state, "readiness", (0.0, False))
    if now >= until:
        settings = state_of(request).settings
        is_ok = await off_loop(
            lambda: settings.root.is_dir() and (settings.read_only or engine_runs(settings.root))
        )
        state.readiness = now + READINESS_SECONDS, is_ok
    return Json({"ok": is_ok}, 200 if is_ok else 503)


async def status(request: Request) -> Response:
    """Returns the status as ``levada status --json`` does, and whether an engine runs. Fields that
    name machines need the role admin.
    """
    server = state_of(request)
    fields = await off_loop(lambda: _status_fields(server))
    if not token_of(request).may(Role.ADMIN):
        fields = {name: value for name, value in fields.items() if name not in ADMIN_FIELDS}
    return Json(fields | {"token_faults": _token_faults(request)})


def _token_faults(request: Request) -> int:
    """Counts the rejected lines of the file of tokens."""
    return len(request.app.state.door.tokens.now().faults)


def _status_fields(server: ServerState) -> dict[str, Any]:
    try:
        checkpoint_status = read_status(server.settings.root)
    except CheckpointError as error:
        if epochs_there(server.settings.root):
            raise
        message = without_paths(error.message, server.settings.root)
        raise Problem(503, message, headers={"Retry-After": "1"}) from None
    document = status_document(server.settings.root, checkpoint_status, time.time())
    runs = engine_runs(server.settings.root)
    return document | {"engine": "running" if runs else "stopped"}


async def streams(request: Request) -> Response:
    """Lists the streams."""
    server = state_of(request)
    return Json({"streams": await off_loop(lambda: list(_streams(server)))})


async def one_stream(request: Request) -> Response:
    """Returns one stream."""
    server, name = state_of(request), request.path_params["stream"]
    for stream in await off_loop(lambda: list(_streams(server))):
        if stream["name"] == name:
            return Json(stream)
    raise Problem(404, f"There is no stream {name[:200]}.", hint="GET /streams lists them.")


def _streams(server: ServerState) -> Iterator[dict[str, Any]]:
    counts: dict[str, Any] = {}
    with suppress(CheckpointError):
        counts = read_status(server.settings.root).streams
    now = server.facts.now()
    configs = now.streams
    made = [name for name in counts if name in now.plans]  # without removed streams
    for name in dict.fromkeys([*configs, *made]):
        fields: dict[str, Any] = {"name": name}
        if name in configs:
            fields |= _config(configs[name])
        else:
            fields["is_derived"] = True
        if name in counts:
            said = asdict(counts[name])
            fields |= said | {"watermark": watermark_value(counts[name].watermark)}
        yield fields


def _config(config: StreamConfig) -> dict[str, Any]:
    """Returns the public facts of a stream, without its path."""
    return {
        "format": config.format,
        "element": config.element,
        "time": config.time,
        "lateness": config.lateness,
        "accepts_rows": is_pushed(config),
        "schema": dict(config.columns) if config.tabular else None,
    }


async def metrics(request: Request) -> Response:
    """Returns the status in the format of Prometheus."""
    server = state_of(request)
    door, faults = request.app.state.door, _token_faults(request)
    text = await off_loop(lambda: exposition(server, door.counts, faults))
    return Response(text, media_type=PROMETHEUS)


def exposition(server: ServerState, answered: dict[int, int], token_faults: int = 0) -> str:
    """Returns the metrics in Prometheus' text format:
    https://prometheus.io/docs/instrumenting/exposition_formats/.
    """
    checkpoint_status: Status | None = None
    with suppress(CheckpointError):
        checkpoint_status = read_status(server.settings.root)
    running = float(engine_runs(server.settings.root))
    lines = [*_metric("levada_engine_running", "Whether an engine runs.", "gauge", [({}, running)])]
    if checkpoint_status is not None:
        lines += _engine_metrics(checkpoint_status, server.settings.root)
    requests = [({"status": str(status)}, float(n)) for status, n in sorted(answered.items())]
    lines += _metric(
        "levada_http_requests_total", "Requests that were answered.", "counter", requests
    )
    clients: list[Sample] = [({}, float(server.feed.clients))]
    lines += _metric("levada_sse_clients", "Clients that are told of results.", "gauge", clients)
    help_text = "Lines of the file of tokens that are not taken."
    lines += _metric("levada_token_faults", help_text, "gauge", [({}, float(token_faults))])
    pushed = [({"stream": name}, float(n)) for name, n in sorted(server.counts.items())]
    if pushed:
        lines += _metric("levada_pushed_rows_total", "Rows that were pushed.", "counter", pushed)
    return "\n".join(lines) + "\n"


def _engine_metrics(status: Status, root: Path) -> Iterator[str]:
    yield from _metric("levada_epoch", "The last epoch.", "gauge", [({}, float(status.epoch))])
    now = time.time()
    age = epoch_age_seconds(root, status.epoch, now)
    if age is not None:
        help_text = "Seconds since the last epoch."
        yield from _metric("levada_epoch_age_seconds", help_text, "gauge", [({}, age)])
    for field, help_text in (
        ("elements", "Elements that were read."),
        ("triples", "Triples that were read."),
        ("late", "Elements below the watermark."),
        ("dead_letters", "Dead letters."),
    ):
        counts = status.streams.items()
        samples = [({"stream": name}, float(getattr(c, field))) for name, c in counts]
        yield from _metric(f"levada_stream_{field}_total", help_text, "counter", samples)
    marks = [
        ({"stream": n}, c.watermark / 1000)
        for n, c in status.streams.items()
        if _is_time(c.watermark)
    ]
    yield from _metric(
        "levada_stream_watermark_seconds", "How far a stream is complete.", "gauge", marks
    )
    away = [
        ({"stream": one.stream}, age_seconds(one.since_ms, now) or 0.0)
        for one in status.unavailable_streams
    ]
    help_text = "Seconds since the source of a stream has not answered, while it does not."
    yield from _metric("levada_stream_unavailable_seconds", help_text, "gauge", away)
    results = [({"query": q.name}, float(q.results)) for q in status.queries]
    yield from _metric("levada_query_results_total", "Solutions since it came.", "counter", results)
    query_marks = [
        ({"query": q.name}, q.watermark / 1000) for q in status.queries if _is_time(q.watermark)
    ]
    yield from _metric(
        "levada_query_watermark_seconds", "How far a query is.", "gauge", query_marks
    )
    yield from _query_metrics(status.queries)
    yield from _backlog_metrics(status, now)
    yield from _output_metrics(status, now)
    yield from _load_metrics(last_load(root))
    off = [({"query": name}, 1.0) for name in status.suspended_queries]
    yield from _metric("levada_query_suspended", "Queries that are suspended.", "gauge", off)
    help_text, failed = "Failures of moving queries to other operators.", status.failed_migrations
    yield from _metric("levada_failed_migrations_total", help_text, "counter", [({}, failed)])


def _backlog_metrics(status: Status, now: float) -> Iterator[str]:
    """Yields the unread input of streams."""
    backlogs = [({"stream": n}, c.backlog) for n, c in status.streams.items() if c.backlog]
    for name, help_text, value in (
        ("elements", "Elements that wait to be read, of files estimated.", lambda b: b.elements),
        ("bytes", "Bytes of files that wait to be read.", lambda b: b.size_bytes),
        (
            "age_seconds",
            "Seconds since the oldest unread input arrived; 0 without any.",
            lambda b: age_seconds(b.oldest_ms, now) or 0.0,
        ),
        (
            "catch_up_seconds",
            "Seconds until all is read; missing if more arrives than is read.",
            lambda b: b.catch_up_seconds,
        ),
    ):
        values = [(labels, value(backlog)) for labels, backlog in backlogs]
        samples: list[Sample] = [(labels, float(v)) for labels, v in values if v is not None]
        yield from _metric(f"levada_stream_backlog_{name}", help_text, "gauge", samples)


def _output_metrics(status: Status, now: float) -> Iterator[str]:
    """Yields the lag of outputs."""
    outputs = [({"query": o.query, "target": o.target}, o) for o in status.outputs]
    for name, help_text, value in (
        ("pending_reports", "Reports that an output lacks.", lambda o: o.pending_reports),
        (
            "age_seconds",
            "Seconds since the oldest report that an output lacks; 0 without one.",
            lambda o: age_seconds(o.oldest_pending_ms, now) or 0.0,
        ),
        ("failing", "Whether the target takes nothing.", lambda o: bool(o.reason)),
    ):
        samples: list[Sample] = [(labels, float(value(output))) for labels, output in outputs]
        yield from _metric(f"levada_output_{name}", help_text, "gauge", samples)


def _load_metrics(load: Load) -> Iterator[str]:
    """Yields the durations of epochs, and memory."""
    counts = load.epoch_counts or [0] * (len(EPOCH_SECONDS) + 1)
    name, below = "levada_epoch_duration_seconds", accumulate(counts)
    buckets = [f"{bound:g}" for bound in EPOCH_SECONDS] + ["+Inf"]
    yield f"# HELP {name} Durations of epochs since the engine started."
    yield f"# TYPE {name} histogram"
    yield from (f'{name}_bucket{{le="{le}"}} {n}' for le, n in zip(buckets, below, strict=True))
    yield f"{name}_sum {load.epoch_seconds:.15g}"
    yield f"{name}_count {sum(counts)}"
    if load.driver_bytes:
        memory: list[Sample] = [
            ({"process": "driver"}, float(load.driver_bytes)),
            ({"process": "tasks"}, float(load.task_bytes)),
        ]
        help_text = "Resident memory on the engine's machine."
        yield from _metric("levada_memory_bytes", help_text, "gauge", memory)


def _query_metrics(queries: Sequence[QueryStatus]) -> Iterator[str]:
    """Yields the charges of the queries with most CPU time."""
    worst = heapq.nlargest(MAX_CHARGED, queries, key=lambda q: q.cpu_seconds)
    for name, help_text in (
        ("cpu_seconds", "CPU seconds, its part of shared operators too."),
        ("input_rows", "Input rows of its operators."),
        ("state_bytes", "Bytes of state, its part of shared operators too."),
    ):
        values = [(q.name, getattr(q, name)) for q in worst]
        samples: list[Sample] = [({"query": n}, float(v)) for n, v in values if v is not None]
        yield from _metric(f"levada_query_{name}", help_text, "gauge", samples)


def _is_time(ms: int) -> bool:
    return MIN < ms < MAX


def _metric(name: str, help_text: str, kind: str, samples: list[Sample]) -> Iterator[str]:
    r"""Yields a metric's lines.

    >>> list(_metric("n", "How many.", "gauge", [({"q": 'a"b'}, 2.0)]))[2]
    'n{q="a\\"b"} 2'
    """
    yield f"# HELP {name} {help_text}"
    yield f"# TYPE {name} {kind}"
    for labels, value in samples:
        said = ",".join(f'{key}="{_escape(text)}"' for key, text in labels.items())
        yield f"{name}{{{said}}} {value:.15g}" if said else f"{name} {value:.15g}"


def _escape(text: str) -> str:
    return text.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n")
