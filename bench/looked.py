"""How many bytes of state partitions read: what is read of a file is checked first, so these are
the bytes that are checked. (How many pages of a map were looked at is not known: Linux maps up to
2 MB at a touch.) Each partition is as in a process of its own: what another one has open is read
again.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

import numpy as np

from levada.checkpoint import state_files
from levada.core.array_types import Longs, Words
from levada.core.frame import Described, Frame
from levada.operators.state.checksummed_frames import BLOCK, CheckedFrames, _Blocks
from levada.runtime.executor import AnyBlob, Job, LocalExecutor, deliver, outcome, resolve


class Looked(LocalExecutor):
    """Runs jobs here, and sees how many bytes of state each partition reads in each epoch."""

    def __init__(self) -> None:
        self.epoch, self._read = 0, 0
        self.seen: dict[int, list[int]] = {}

    def run(self, job: Job) -> list[bytes]:
        """The outcomes of ``job``."""
        self.epoch += 1
        intake, stage = (resolve(name) for name in job.functions)
        pairs = [pair for payload in job.payloads for pair in intake(job.context, payload)]
        seen = self.seen[self.epoch] = [0] * job.partitions
        for number in range(1, job.stages + 1):
            inboxes, pairs = deliver(pairs, job.partitions), []
            for p, inbox in enumerate(inboxes):
                before = self._read
                found: list[tuple[int, AnyBlob]] = stage(job.context, number, p, inbox)
                seen[p] += self._read - before
                pairs += found
        return [outcome(target, blob) for target, blob in pairs]

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Counts what is read, that is what is checked."""
        whole, check, sums = CheckedFrames.__getitem__, _Blocks._check, CheckedFrames._sums

        def frame(frames: CheckedFrames, name: str) -> Frame:
            new = name in frames._described and name not in frames._found
            self._read += frames._described[name][0].size if new else 0
            return whole(frames, name)

        def blocks(of: _Blocks, at: Longs) -> None:
            before = np.count_nonzero(of._checked)
            check(of, at)
            self._read += int(np.count_nonzero(of._checked) - before) << BLOCK

        def sums_of(frames: CheckedFrames, of: Described) -> Words:
            found = sums(frames, of)
            self._read += found.nbytes
            return found

        with (
            patch.object(CheckedFrames, "__getitem__", frame),
            patch.object(_Blocks, "_check", blocks),
            patch.object(CheckedFrames, "_sums", sums_of),
            patch.object(state_files, "file_of", state_files.File),
        ):
            yield
