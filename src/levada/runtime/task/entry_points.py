"""Defines the two functions that executors run. They are pure, except for files of their own
names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from levada.checkpoint.epoch_context import decode_context, load_plan
from levada.connectors.ingest.parse import json_ld_contexts
from levada.core.user_functions import declare_as_driver
from levada.runtime.task.allocator import bounded_allocator
from levada.runtime.task.ingest_task import IntakeTask, Payload
from levada.runtime.task.operator_failures import raise_failure
from levada.runtime.task.stage_task import StageTask


def intake(context: bytes, payload: bytes) -> list[tuple[int, Any]]:
    """Reads one bundle of references. Returns one blob per target partition."""
    decoded = decode_context(context)
    if decoded.functions:
        declare_as_driver(decoded.functions, decoded.function_folders)
    if decoded.contexts:
        json_ld_contexts.declare_as_driver(decoded.contexts)
    try:
        with bounded_allocator(decoded.memory):
            return list(IntakeTask(decoded).run(msgspec.json.decode(payload, type=Payload)))
    except BaseException as error:
        raise_failure(error)


def stage(
    context: bytes, number: int, partition: int, blobs: Sequence[Any]
) -> list[tuple[int, Any]]:
    """Runs one stage of one partition. Returns the blobs for the next stage, or the outcome of the
    last.
    """
    decoded = decode_context(context)
    if decoded.functions:
        declare_as_driver(decoded.functions, decoded.function_folders)
    try:
        with bounded_allocator(decoded.memory):
            return StageTask(decoded, load_plan(decoded.plan), number, partition).run(blobs)
    except BaseException as error:
        raise_failure(error)
