"""A driver made of functions, for tests of the epoch loop alone."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

from levada.engine.driver.loop_control import LoopControl
from levada.engine.engine_driver import Driver
from levada.engine.epoch_loop import EpochLoop
from levada.errors import LostTaskError
from levada.runtime.publication.publication import PublicationThread


class LoopSteps:
    """The methods of a driver that the loop calls, as functions."""

    def __init__(
        self,
        next_intention: Callable[[str | None], str | None],
        run_epoch: Callable[[str], Any],
        *,
        examine: Callable[[str], str] = lambda intention: intention,
        again: Callable[[str], bool] = lambda intention: False,
        lost: Callable[[str, LostTaskError, float | None], None] = lambda text, error, pause: None,
    ) -> None:
        self.loop = LoopControl()
        self.publication_thread = PublicationThread(self.loop.wake)
        self.next_intention, self.run_epoch, self.examine = next_intention, run_epoch, examine
        self.publish_again, self.warn_of_loss = again, lost

    def last_intention(self) -> None:
        """No epoch after a stop."""

    def may_run(self, intention: str) -> bool:
        return True

    def takeover_error(self) -> None:
        """No other engine."""


def loop_of(
    folder: Path,
    next_intention: Callable[[str | None], str | None],
    run_epoch: Callable[[str], Any],
    *,
    ask_every: float = 0.02,
    **steps: Any,
) -> LoopControl:
    """Starts a loop that calls these functions."""
    driver = LoopSteps(next_intention, run_epoch, **steps)
    EpochLoop(folder, cast(Driver, driver), ask_every=ask_every).start()
    return driver.loop
