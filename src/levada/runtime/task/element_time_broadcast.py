"""Sends the event times of listed streams to all partitions, whatever their rows are
(``operators.windowing.element_times`` describes their use).

Few times are in each blob. If copies for all partitions would be large, a task writes them once to
a file of the checkpoint, and blobs contain its name. So the data are not sent P times, and readers
of one host share the pages. The file lives as long as the job: the driver deletes it before the
commit. Times go to a later stage only if one of its nodes lists the stream.

Cost: of a file some milliseconds a task, and one open file for each of its readers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

from levada.checkpoint import state_files
from levada.checkpoint.epoch_context import EpochContext, load_plan
from levada.core.frame import Frame
from levada.core.size_thresholds import register
from levada.operators.state.checksummed_frames import checked_parts
from levada.operators.windowing import element_times
from levada.plan.execution.plan import Plan
from levada.runtime.task.frame_addresses import FrameAddress, FrameKind

COPIED = register(f"{__name__}.COPIED", 1 << 20)  # bytes of copies from which on a file costs less
IN_FILES = "times"  # the key for file names in a blob's head


class BroadcastTimes:
    """The event times in a task, by stream: its own or those in blobs (``add``), and files of other
    tasks (``hear``).
    """

    def __init__(self, context: EpochContext) -> None:
        self._context = context
        self._frames: dict[int, list[Frame]] = {}
        self._files: list[str] = []
        self._read: list[Mapping[str, Frame]] | None = None

    def add(self, stream: int, frame: Frame) -> None:
        """Adds times of a stream."""
        self._frames.setdefault(stream, []).append(frame)

    def hear(self, meta: Mapping[str, Any]) -> None:
        """Adds the files that the head of a blob names."""
        self._files += meta.get(IN_FILES, [])

    def frames_of(self, stream: int) -> list[Frame]:
        """Returns all frames of a stream."""
        if self._read is None:
            self._read = [state_files.map_(self._context.root, f)[0] for f in self._files]
        name = FrameAddress(FrameKind.TIMES, stream).name
        return [
            *self._frames.get(stream, ()),
            *(parts[name] for parts in self._read if name in parts),
        ]

    def write_apart(self) -> list[str]:
        """Writes the task's own times to a file if copies would be large; returns its name."""
        frames = _merge(self._frames)
        size = sum(column.nbytes for f in frames.values() for column in f.columns.values())
        if size * (self._context.partitions - 1) < COPIED:
            return []
        name = state_files.write(
            self._context.root, "side", f"{self._context.epoch}-times", checked_parts(frames)
        )
        self._frames, self._files = {}, [*self._files, name]
        return [name]

    def sent_frames(self, stage: int) -> tuple[dict[str, Frame], list[str]]:
        """Returns the frames and file names that blobs carry for stages after this one."""
        listed_streams = _listed_behind(self._context.plan, stage)
        frames = _merge({i: parts for i, parts in self._frames.items() if i in listed_streams})
        return frames, self._files if listed_streams else []


def _merge(frames_by_stream: Mapping[int, Sequence[Frame]]) -> dict[str, Frame]:
    return {
        FrameAddress(FrameKind.TIMES, i).name: element_times.concat_times(parts)
        for i, parts in frames_by_stream.items()
    }


@lru_cache(maxsize=8)
def listed_streams(plan: str) -> dict[int, bool]:
    """Returns the streams whose times decide the reports of a query, and whether occurrences are
    counted.
    """
    return _listed_streams(load_plan(plan), 0)


@lru_cache(maxsize=64)
def _listed_behind(plan: str, stage: int) -> frozenset[int]:
    """Returns the streams that nodes of later stages list."""
    return frozenset(_listed_streams(load_plan(plan), stage))


def _listed_streams(plan: Plan, stage: int) -> dict[int, bool]:
    listed = [n for n in plan.nodes.values() if n.step.needs_reports and n.stage > stage]
    schedules = {d for n in listed for d in n.schedules.distinct}
    counted_streams = element_times.counted_streams(schedules)
    return {i: i in counted_streams for d in schedules for i in d.streams}
