"""The functions of a job with clocks around what belongs to edges: cutting and packing what is
sent, unpacking what came. What they do is what ``runtime.task.entry_points`` does.

Clocks are CPU time of the thread, in ns. Each call adds a line to a file beside the checkpoint, one
file a process, so nothing changes in what tasks send each other. ``probe_intake`` and
``probe_stage`` send what they are told and do nothing else.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter_ns, thread_time_ns
from typing import Any
from unittest.mock import patch

import msgspec

from levada.checkpoint.epoch_context import (
    EpochContext,
    SourceReport,
    TaskOutcome,
    decode_context,
    load_plan,
)
from levada.core.frame import Frame
from levada.kernels.terms.term_dictionary import Terms
from levada.plan.execution.plan import Consumer
from levada.runtime.task import stage_task as stages
from levada.runtime.task.exchange import Exchange
from levada.runtime.task.ingest_task import IntakeTask, Payload
from levada.runtime.task.stage_task import StageTask

CLOCKED = ("bench.mapped.clock:intake", "bench.mapped.clock:stage")
PROBE = ("bench.mapped.clock:probe_intake", "bench.mapped.clock:probe_stage")
_now: dict[str, int] = {}
"""Of the call at work: ns by what they were for."""


@contextmanager
def _timed(name: str) -> Iterator[None]:
    began = thread_time_ns()
    try:
        yield
    finally:
        _now[name] = _now.get(name, 0) + thread_time_ns() - began


class ClockedExchange(Exchange):
    """What leaves a task, timed."""

    def _put(self, consumer: Consumer, frame: Frame) -> None:
        with _timed("cut"):
            super()._put(consumer, frame)

    def blobs(
        self,
        controls: Sequence[SourceReport],
        done: Sequence[TaskOutcome],
        source: int,
        times: Mapping[int, Sequence[Frame]],
    ) -> list[tuple[int, bytes]]:
        """One blob per target."""
        with _timed("pack"):
            return super().blobs(controls, done, source, times)


class ClockedStage(StageTask):
    """A stage's task, timed; ``nodes``: its operators with what becomes of their rows."""

    def _receive(self, blobs: Sequence[Any]) -> list[Terms]:
        with _timed("unpack"):
            found = super()._receive(blobs)
        came = (*self.inputs.values(), *self.partials.values())
        _now["rows"] = sum(frame.n for frames in came for frame in frames)
        _now["bytes"] = sum(len(bytes(blob)) for blob in blobs)
        return found

    def _finish(self, exchange: Exchange) -> list[tuple[int, Any]]:
        _now["nodes"] = round(sum(self.cpu.values()) * 1e9)
        return super()._finish(exchange)


@contextmanager
def _told(context: EpochContext, number: int) -> Iterator[None]:
    """Writes a line of a call down."""
    _now.clear()
    cpu, wall = thread_time_ns(), perf_counter_ns()
    yield
    line = {
        "epoch": context.epoch,
        "stage": number,
        "cpu": thread_time_ns() - cpu,
        "wall": perf_counter_ns() - wall,
        **_now,
    }
    folder = Path(f"{context.root}.clock")
    folder.mkdir(exist_ok=True)
    with (folder / f"{os.getpid()}.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")


def intake(context: bytes, payload: bytes) -> list[tuple[int, Any]]:
    """``runtime.task.entry_points.intake``, timed."""
    decoded = decode_context(context)
    with _told(decoded, 0):
        task = IntakeTask(decoded)
        task.exchange.__class__ = ClockedExchange
        return list(task.run(msgspec.json.decode(payload, type=Payload)))


def stage(
    context: bytes, number: int, partition: int, blobs: Sequence[Any]
) -> list[tuple[int, Any]]:
    """``runtime.task.entry_points.stage``, timed."""
    decoded = decode_context(context)
    with _told(decoded, number), patch.object(stages, "Exchange", ClockedExchange):
        return ClockedStage(decoded, load_plan(decoded.plan), number, partition).run(blobs)


def lines(root: Path) -> list[dict[str, int]]:
    """What the calls of a run on a checkpoint have told."""
    found = Path(f"{root}.clock").glob("*.jsonl")
    return [json.loads(line) for path in found for line in path.read_text().splitlines()]


def probe_intake(context: bytes, payload: bytes) -> list[tuple[int, Any]]:
    """Blobs of so many bytes to so many targets (``context``: bytes, targets, stages)."""
    size, targets, _ = json.loads(context)
    return [(target, bytes(size)) for target in range(targets)]


def probe_stage(
    context: bytes, number: int, partition: int, blobs: Sequence[Any]
) -> list[tuple[int, Any]]:
    """The same again, or nothing after the last stage."""
    size, targets, last = json.loads(context)
    if number == last:
        return [(-1, b"{}")]
    return [(target, bytes(size)) for target in range(targets)]
