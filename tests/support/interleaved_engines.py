"""Several engines in this process that take turns at every change of the disk, as if each were on a
host of its own: without a lock that works, and with equal process numbers.

One engine goes on at a time, until its next change; then ``choose`` says whose turn it is. So a
schedule is repeated to the letter.
"""

import os
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from levada.checkpoint.checkpoint_folder import Checkpoint
from levada.checkpoint.leadership.commit_log import Leadership
from levada.errors import CheckpointError, OvertakenError
from levada.runtime import epoch_pipeline
from levada.runtime.driver import stream_progress
from support.fault_injection import CALLS, nobody

PATIENCE = 120  # s
Choose = Callable[[int, Sequence[int]], int]
"""Whose turn it is: of the number of changes so far, and those that have not ended."""


class Turns:
    """Runs engines side by side. ``committed``: who has committed which epoch, in this order."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._here = threading.local()
        self._turn = threading.Condition()
        self._now, self._alive, self._steps = -1, [0], 0
        self._choose: Choose = lambda steps, alive: alive[0]
        self.committed: list[tuple[int, int]] = []
        self.ended: dict[int, BaseException | None] = {}
        for name in CALLS:
            monkeypatch.setattr(os, name, self._a_step(getattr(os, name)))
        monkeypatch.setattr(threading.Thread, "start", self._inherited(threading.Thread.start))
        monkeypatch.setattr(Leadership, "commit", self._noted(Leadership.commit))
        monkeypatch.setattr(Checkpoint, "lock", lambda self, patience, needed: None)
        monkeypatch.setattr(os, "getpid", lambda: 1)
        monkeypatch.setattr(stream_progress, "find_crashes", nobody)
        monkeypatch.setattr(epoch_pipeline, "rehearse", lambda job: None)

    def run(self, engines: Sequence[Callable[[], None]], choose: Choose) -> int:
        """Runs each to its end; how many changes that took. What ends one is in ``ended``."""
        self._choose, self._alive, self._steps = choose, list(range(len(engines))), 0
        self.committed, self.ended = [], {}
        threads = [
            threading.Thread(target=self._one, args=(n, e), daemon=True)
            for n, e in enumerate(engines)
        ]
        self._now = choose(0, self._alive)
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(PATIENCE)
            assert not thread.is_alive(), "every engine comes to an end"
        return self._steps

    def _one(self, number: int, engine: Callable[[], None]) -> None:
        self._here.number = number
        error = None
        with self._turn:
            self._await()
        try:
            engine()
        except BaseException as caught:
            error = caught
        with self._turn:
            self.ended[number] = error
            self._alive.remove(number)
            if self._alive:
                self._now = self._choose(self._steps, self._alive)
            self._turn.notify_all()

    def _await(self) -> None:
        mine = self._here.number
        assert self._turn.wait_for(lambda: self._now == mine, PATIENCE), "its turn comes"

    def _a_step(self, call: Any) -> Any:
        def step(*args: Any, **kwargs: Any) -> Any:
            if getattr(self._here, "number", None) in self._alive:
                with self._turn:
                    self._steps += 1
                    self._now = self._choose(self._steps, self._alive)
                    self._turn.notify_all()
                    self._await()
            return call(*args, **kwargs)

        return step

    def _inherited(self, start: Any) -> Any:
        def started(thread: threading.Thread) -> None:
            number, run = getattr(self._here, "number", None), thread.run
            if number is not None and thread.name != "levada heart":

                def with_number() -> None:
                    self._here.number = number
                    run()

                thread.run = with_number
            start(thread)

        return started

    def _noted(self, commit: Any) -> Any:
        def noted(reign: Leadership, manifest: Any, *needed: Any) -> None:
            commit(reign, manifest, *needed)
            self.committed.append((getattr(self._here, "number", -1), manifest.epoch))

        return noted


def told(error: BaseException | None) -> bool:
    """Whether an engine ended well, or with the sentence of one that was overtaken."""
    if isinstance(error, OvertakenError):
        assert "Another engine has taken over the checkpoint" in str(error)
        assert "process 1 on " in str(error)
        return True
    assert error is None or isinstance(error, CheckpointError), repr(error)
    return error is None
