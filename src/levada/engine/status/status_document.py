"""The status as JSON-able values: for ``levada status --json`` and for ``GET /status``.

Its fields are those of ``Status``, with the seconds since the last epoch, since the oldest report
that an output lacks, and since a source does not answer.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec

from levada.core.event_time import MAX, MIN
from levada.engine.status.status import Status


def status_document(root: Path, status: Status, now: float) -> dict[str, Any]:
    """Returns the status of a checkpoint as JSON-able values. ``now``: seconds since 1970."""
    document: dict[str, Any] = msgspec.to_builtins(status, str_keys=True)
    for each in (*document["streams"].values(), *document["queries"]):
        each["watermark"] = watermark_value(each["watermark"])
    for stream in document["streams"].values():
        if (backlog := stream["backlog"]) is not None:
            backlog["age_seconds"] = age_seconds(backlog["oldest_ms"], now)
    for output in document["outputs"]:
        output["age_seconds"] = age_seconds(output["oldest_pending_ms"], now)
    for stream in document["unavailable_streams"]:
        stream["age_seconds"] = age_seconds(stream["since_ms"], now)
    if (load := status.static_load) is not None:
        document["static_load"] = msgspec.structs.asdict(load) | {
            "new_imprints": len(load.new_imprints)
        }
    return document | {"epoch_age_seconds": epoch_age_seconds(root, status.epoch, now)}


def watermark_value(ms: int) -> int | str | None:
    """Converts a watermark for JSON: ms, null before the first element, "end" after the last."""
    return None if ms <= MIN else "end" if ms >= MAX else ms


def age_seconds(wall_ms: int | None, now: float) -> float | None:
    """Returns the seconds since an instant of the clock in ms; None without one."""
    return None if wall_ms is None else round(max(now - wall_ms / 1000, 0.0), 3)


def epoch_age_seconds(root: Path, epoch: int, now: float) -> float | None:
    """Returns the seconds since an epoch's commit; None if its manifest was deleted."""
    with suppress(OSError):
        return age_seconds(round(os.stat(root / "manifests" / str(epoch)).st_mtime_ns / 10**6), now)
    return None
