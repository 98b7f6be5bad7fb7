"""The epoch loop without Spark: the same contract as ``spark.intentions.SparkLoop``, stepped in this process.

Intentions are written ahead into ``intentions/``; one without a manifest is run again at the next start. For tests, and for the
smallest embedded uses. A loop asks ``next_intention`` when the epoch before is committed.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from levada.runtime.manifest import write_once


class SteppedLoop:
    """Runs epochs one after the other on a thread until it is stopped, or one fails."""

    def __init__(
        self, folder: Path, next_intention: Callable[[str | None], str | None], run_epoch: Callable[[str], None],
        *, ask_every: float = 0.005,
    ) -> None:  # fmt: skip
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder
        self._next, self._run = next_intention, run_epoch
        self._ask_every = ask_every
        self._stopping, self._ended, self._woken = threading.Event(), threading.Event(), threading.Event()
        self.failure: BaseException | None = None
        self._thread = threading.Thread(target=self._loop, name="levada loop", daemon=True)

    def start(self) -> None:
        """Starts; an epoch that did not end before runs first."""
        self._thread.start()

    def wake(self) -> None:
        """Asks ``next_intention`` at once."""
        self._woken.set()

    def request_stop(self) -> None:
        """Stops after the current epoch; does not wait."""
        self._stopping.set()
        self._woken.set()

    def stop(self, timeout: float | None = None) -> bool:
        """Stops after the current epoch; False if it has not ended within ``timeout`` seconds."""
        self.request_stop()
        return self.await_end(timeout)

    def await_end(self, timeout: float | None = None) -> bool:
        """Waits until the loop has ended."""
        return self._ended.wait(timeout)

    def _loop(self) -> None:
        try:
            last = self._replay()
            while not self._stopping.is_set():
                intention = self._next(last)
                if intention is None:
                    self._woken.wait(self._ask_every)
                    self._woken.clear()
                    continue
                self._write(intention)
                self._run(intention)
                last = intention
        except BaseException as error:
            self.failure = error
        finally:
            self._ended.set()

    def _replay(self) -> str | None:
        """The last intention that was written ahead, run again (a committed one is only published)."""
        numbers = sorted(int(p.name) for p in self._folder.iterdir() if p.name.isdigit())
        if not numbers:
            return None
        intention = (self._folder / str(numbers[-1])).read_text()
        self._run(intention)
        return intention

    def _write(self, intention: str) -> None:
        numbers = sorted(int(p.name) for p in self._folder.iterdir() if p.name.isdigit())
        write_once(self._folder / str(numbers[-1] + 1 if numbers else 1), intention.encode())
        for old in numbers[:-1]:
            (self._folder / str(old)).unlink(missing_ok=True)
