"""The epoch loop: decide, write ahead, run (docs/architecture.md#an-epoch).

An intention is written ahead, durably, into ``intentions/open``, which goes when its epoch is
published; one that is still there at the start was not brought to its end and is run first, as it
is. A loop asks ``next_intention`` when the epoch before is over, and ``last_intention`` once when
it has been told to stop. One epoch at a time; what fails ends the loop and is kept in ``failure``.

No Structured Streaming query: it would cost 50 CPU-ms an epoch for what this file does
(docs/decisions/0006).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

from levada.errors import CheckpointError
from levada.runtime.store.manifest import write_once


class Loop:
    """Runs epochs one after the other on a thread until it is stopped, or one fails."""

    def __init__(
        self,
        folder: Path,
        next_intention: Callable[[str | None], str | None],
        run_epoch: Callable[[str], None],
        *,
        last_intention: Callable[[], str | None] = lambda: None,
        ask_every: float = 0.02,
    ) -> None:
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CheckpointError(
                f"The folder {folder} cannot be made: {error.strerror}."
            ) from error
        self._open = folder / "open"
        self._next, self._run, self._last = next_intention, run_epoch, last_intention
        self._ask_every = ask_every
        self._stopping, self._ended, self._woken = (
            threading.Event(),
            threading.Event(),
            threading.Event(),
        )
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
                self._run_whole(intention)
                last = intention
            if (final := self._last()) is not None:
                self._write(final)
                self._run_whole(final)
        except BaseException as error:
            self.failure = error
        finally:
            self._ended.set()

    def _replay(self) -> str | None:
        """The intention that was written ahead and did not come to its end, run (if it is
        committed: published).
        """
        if not self._open.exists():
            return None
        intention = self._open.read_text()
        self._run_whole(intention)
        return intention

    def _run_whole(self, intention: str) -> None:
        self._run(intention)
        self._open.unlink()

    def _write(self, intention: str) -> None:
        assert write_once(self._open, intention.encode()), "one epoch after the other"
