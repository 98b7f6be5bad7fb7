"""An executor that does to a job in this process what a cluster does: tasks in any order, some of
them twice, where each reader gets what one of the attempts has sent; and now and then one is lost,
so that the epoch is run again. All by a seed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import numpy as np

from levada.errors import LostTaskError
from levada.runtime.executor import AnyBlob, Job, deliver, outcome, resolve

Sent = list[tuple[int, AnyBlob]]
TWICE = 0.2


class Elsewhere:
    """``losses``: at which tasks, counted since the beginning, an executor is gone. ``twice``: how
    many of the tasks are run twice.
    """

    def __init__(self, seed: int, losses: Sequence[int] = (), *, twice: float = TWICE) -> None:
        self._rng, self._twice = np.random.default_rng(seed), twice
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
            attempts = [tasks[i]() for _ in range(1 + (self._rng.random() < self._twice))]
            each = zip(*attempts, strict=True)
            found[i] = [sent[int(self._rng.integers(len(sent)))] for sent in each]
            if self._task in self._losses:
                raise LostTaskError("Executor 1 is gone.")
        return [pair for own in found for pair in own]
