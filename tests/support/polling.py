"""Waiting and killing in tests: until something has happened that can be seen, with a limit that no
busy machine reaches. What fails says what was awaited, and what was there last.

No test says that something took less than so long, or that it had not happened after so long: what
is fast here is slow elsewhere, and the other way round. A process is killed when something of it
can be seen (a file, a line, an epoch), and has so much to do that it cannot have ended by then.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

PATIENCE = 300.0  # s


def until(
    condition: Callable[[], Any],
    what: str = "",
    *,
    process: subprocess.Popen[Any] | None = None,
    step: float = 0.02,
) -> Any:
    """What the condition is once it is true. ``process``: whose end before that is a failure, too;
    ``step``: seconds between two looks.
    """
    end = time.monotonic() + PATIENCE
    caller = sys._getframe(1)
    where = f"{Path(caller.f_code.co_filename).name}, line {caller.f_lineno}"
    while True:
        ended = process is not None and process.poll() is not None
        if found := condition():
            return found
        assert process is None or not ended, (
            f"{where}: the process ended with {process.returncode} before {what or 'it happened'}"
        )
        assert time.monotonic() < end, (
            f"{where}: {what or 'it'} did not come to pass in {PATIENCE:.0f} s; last: {found!r}"
        )
        time.sleep(step)


def until_engine(engine: Any, condition: Callable[[], Any]) -> Any:
    """As ``until``; what an engine of this process fails with meanwhile is raised."""

    def look() -> Any:
        engine.await_end(0)
        return condition()

    return until(look, "what the engine is to do", step=0.005)


def is_still(engine: Any) -> bool:
    """Whether an engine has no epoch for a while. What goes on by itself never is."""
    before = engine.progress().epochs
    time.sleep(0.2)
    return bool(engine.progress().epochs == before)


def newest_epoch(checkpoint: Path) -> int:
    """The newest manifest's epoch; 0 if there is none. One that is being written has another
    name.
    """
    names = (path.name for path in checkpoint.glob("manifests/*"))
    return max((int(name) for name in names if name.isdigit()), default=0)


def kill_after(process: subprocess.Popen[Any], checkpoint: Path, epochs: int) -> None:
    """SIGKILL when it has committed so many more epochs than are there now; it dies of nothing
    else.
    """
    first = newest_epoch(checkpoint)
    until(
        lambda: newest_epoch(checkpoint) >= first + epochs,
        f"epoch {first + epochs}",
        process=process,
        step=0.002,
    )
    process.kill()
    assert process.wait(PATIENCE) == -signal.SIGKILL
