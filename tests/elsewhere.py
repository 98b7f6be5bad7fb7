"""An executor that does to a job in this process what a cluster does: tasks in any order, some of
them twice, each with bytes of its own; and now and then one is lost, so that the epoch is run
again. All by a seed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from levada.errors import LostTaskError
from levada.runtime.local import Blob, Job, deliver, outcome, resolve

Sent = list[tuple[int, Blob]]
TWICE = 0.2


class Elsewhere:
    """``losses``: at which tasks, counted since the beginning, an executor is gone."""

    def __init__(self, seed: int, losses: Sequence[int] = ()) -> None:
        self._rng = np.random.default_rng(seed)
        self._losses, self._task = set(losses), 0

    def run(self, job: Job) -> list[bytes]:
        """The outcomes of ``job``."""
        intake, stage = (resolve(name) for name in job.functions)
        sent = self._all([partial(intake, job.context, payload) for payload in job.payloads])
        for number in range(1, job.stages + 1):
            inboxes = deliver(sent, job.partitions)
            own = [list(map(bytes, blobs)) for blobs in inboxes]
            sent = self._all([partial(stage, job.context, number, p, b) for p, b in enumerate(own)])
        return [outcome(target, blob) for target, blob in sent]

    def _all(self, tasks: Sequence[Callable[[], Sent]]) -> Sent:
        """What all tasks send, in their own order, whatever that was in which they ran."""
        found: list[Sent] = [[] for _ in tasks]
        for i in self._rng.permutation(len(tasks)).tolist():
            self._task += 1
            attempts = 1 + (self._rng.random() < TWICE)
            found[i] = [tasks[i]() for _ in range(attempts)][-1]
            if self._task in self._losses:
                raise LostTaskError("Executor 1 is gone.")
        return [pair for own in found for pair in own]
