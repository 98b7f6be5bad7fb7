"""The command line with a fuse: the process leaves with ``os._exit`` at its LEVADA_KILL_AT-th
change of the disk (0: never). With LEVADA_JOBS_HERE so many jobs run in the driver's process, and
the next one waits for Spark; with LEVADA_HEAVY none runs here after that, however light it is. It
says when it has taken a signal.
"""

import itertools
import os
import signal
import sys
from dataclasses import replace
from typing import Any

from levada.runtime.executor import Job
from levada.runtime.warmup_executor import WarmupExecutor

LEFT = 86
THERE, TAKEN = "Spark is there", "has taken the signal"
STEPS = ("link", "replace", "fdatasync", "fsync", "unlink")


def arm(at: int) -> None:
    """Counts this process's calls that change the disk, and leaves before the ``at``-th."""
    steps = itertools.count(1)

    def doomed(call: Any) -> Any:
        def step(*args: Any, **kwargs: Any) -> Any:
            if next(steps) == at:
                os._exit(LEFT)
            return call(*args, **kwargs)

        return step

    for name in STEPS:
        setattr(os, name, doomed(getattr(os, name)))


def tell_signals() -> None:
    """Has each handler that is set from now on say so when it has been called and comes back."""
    set_handler = signal.signal

    def told(number: int, handler: Any) -> Any:
        def taken(*given: Any) -> None:
            handler(*given)
            os.write(2, f"{TAKEN} {number}\n".encode())

        return set_handler(number, taken if callable(handler) else handler)

    signal.signal = told  # type: ignore[assignment]


def switch_after(here: int) -> None:
    """Has jobs wait for Spark once so many have run in this process; says when it is there."""
    jobs, run = itertools.count(), WarmupExecutor.run

    def late_run(self: WarmupExecutor, job: Job) -> list[bytes]:
        if next(jobs) == here:
            self.await_warm()
            print(THERE, file=sys.stderr, flush=True)
        return run(self, replace(job, light=job.light and "LEVADA_HEAVY" not in os.environ))

    WarmupExecutor.run = late_run


if __name__ == "__main__":
    from levada.cli.main import main

    tell_signals()
    if "LEVADA_JOBS_HERE" in os.environ:
        switch_after(int(os.environ["LEVADA_JOBS_HERE"]))
    if point := int(os.environ.get("LEVADA_KILL_AT", "0")):
        arm(point)
    sys.exit(main())
