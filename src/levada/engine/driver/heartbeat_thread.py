"""The thread of the leader's duties beside its epochs. It writes a heartbeat for standbys, and
lists the sources that do not respond. It detects a takeover, also when there is nothing to commit.
It takes the lock if a takeover did not get it.
"""

from __future__ import annotations

import threading
import time
from contextlib import suppress
from pathlib import Path

from levada.checkpoint.checkpoint_folder import Checkpoint
from levada.checkpoint.leadership.heartbeat import (
    GONE,
    INTERVAL,
    Away,
    Heartbeat,
    StabilityTimer,
    read_standbys,
    write_pulse,
)
from levada.core.clock import CLOCK
from levada.engine.driver.backlog_thread import BacklogThread
from levada.engine.driver.loop_control import LoopControl
from levada.errors import CheckpointError
from levada.runtime.driver.source_coordinator import SourceCoordinator
from levada.runtime.driver.spool_registry import Spools


class HeartbeatThread:
    """Runs from ``start`` to ``stop``, or until another engine has taken over. Then it wakes
    ``loop`` once. ``sourcing`` and ``spools``: the sources of the streams. ``backlog`` measures the
    load, which heartbeats contain.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        loop: LoopControl,
        sourcing: SourceCoordinator,
        spools: Spools,
    ) -> None:
        self._checkpoint, self._loop = checkpoint, loop
        self._sourcing, self._spools, self._since = sourcing, spools, dict[str, int]()
        self.backlog = BacklogThread(sourcing)
        self._root, self._reign = checkpoint.root, checkpoint.reign
        self._count = 0
        self._waiting: dict[Path, StabilityTimer] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._go, name="levada heart", daemon=True)

    def start(self) -> None:
        """Starts the thread. The first heartbeat is written before this returns."""
        self._pulse()
        self._thread.start()
        self.backlog.start()

    def stop(self) -> None:
        """Stops the thread. The last heartbeat says that the engine has left, unless another one
        has taken over.
        """
        self.backlog.stop()
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join()
        if self._reign.takeover_error() is None:
            self._pulse(left=True)

    def _go(self) -> None:
        while not self._stopping.wait(INTERVAL):
            if self._reign.takeover_error() is not None:
                self._loop.wake()
                return
            self._pulse()
            self._forget_the_gone()
            with suppress(CheckpointError):
                self._checkpoint.lock(0, needed=False)

    def _pulse(self, *, left: bool = False) -> None:
        self._count += 1
        with suppress(OSError):  # an error here also prevents the commit, which reports it
            away = () if left else self._sources_away()
            step = "" if left or CLOCK.step is None else str(CLOCK.step)
            load, number = self.backlog.load, self._reign.number
            write_pulse(self._root, Heartbeat(number, self._count, left, away, step, load))

    @property
    def unavailable_sources(self) -> dict[str, str]:
        """The reasons why sources do not respond, by stream."""
        return {**self._sourcing.unavailable, **self._spools.unavailable}

    def _sources_away(self) -> tuple[Away, ...]:
        """Returns the sources that do not respond, each with the time since when."""
        why = self.unavailable_sources
        now = CLOCK()
        self._since = {stream: self._since.get(stream, now) for stream in why}
        return tuple(Away(stream, self._since[stream], why[stream]) for stream in why)

    def _forget_the_gone(self) -> None:
        """Deletes the files of standbys that no longer wait."""
        standbys = read_standbys(self._root)
        self._waiting = {
            path: self._waiting.get(path) or StabilityTimer(time.monotonic) for path in standbys
        }
        for path, who in standbys.items():
            if self._waiting[path].look(repr(who).encode()) > GONE:
                with suppress(OSError):
                    path.unlink(missing_ok=True)
