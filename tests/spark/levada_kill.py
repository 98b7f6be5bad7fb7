"""The command line with a fuse: the process leaves with ``os._exit`` at its LEVADA_KILL_AT-th
change of the disk (0: never). With LEVADA_JOBS_HERE so many jobs run in the driver's process, and
the next one waits for Spark.
"""

import itertools
import os
import sys
from typing import Any

from levada.runtime.late import Late
from levada.runtime.local import Job

LEFT = 86
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


def switch_after(here: int) -> None:
    """Has jobs wait for Spark once so many have run in this process; says when it is there."""
    jobs, run = itertools.count(), Late.run

    def late_run(self: Late, job: Job) -> list[bytes]:
        if next(jobs) == here:
            self.await_there()
            print("Spark is there", file=sys.stderr, flush=True)
        return run(self, job)

    Late.run = late_run


if __name__ == "__main__":
    from levada.cli.main import main

    if "LEVADA_JOBS_HERE" in os.environ:
        switch_after(int(os.environ["LEVADA_JOBS_HERE"]))
    if point := int(os.environ.get("LEVADA_KILL_AT", "0")):
        arm(point)
    sys.exit(main())
