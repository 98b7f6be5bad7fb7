"""The command line with a fuse: the process leaves with ``os._exit`` at its LEVADA_KILL_AT-th
change of the disk (0: never).
"""

import itertools
import os
import sys
from typing import Any

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


if __name__ == "__main__":
    from levada.cli.main import main

    if point := int(os.environ.get("LEVADA_KILL_AT", "0")):
        arm(point)
    sys.exit(main())
