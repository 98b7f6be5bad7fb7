"""The entry of ``levada`` and ``python -m levada``: it loads the command line's modules, which
takes half a second.
"""

from __future__ import annotations

import faulthandler
import gc
import sys
from collections.abc import Callable
from contextlib import suppress

INTERRUPTED = 130  # the exit code of shells after SIGINT
GARBAGE_THRESHOLD = 50_000
"""The number of new objects after which the garbage collector runs. Modules that are loaded later
make half a million lasting objects; scanning these again and again took a tenth of a short run.
"""


def main() -> int:
    """Runs the command line. Returns the exit code. A crash in native code prints the stacks."""
    with suppress(RuntimeError, ValueError, OSError):  # standard error is closed or not a file
        faulthandler.enable()
    try:
        return _load()()
    except KeyboardInterrupt:
        print("levada: interrupted.", file=sys.stderr)
        return INTERRUPTED


def _load() -> Callable[[], int]:
    """Imports the command line. Its objects stay for the whole process, so the garbage collector
    never scans them.
    """
    gc.disable()
    gc.set_threshold(GARBAGE_THRESHOLD, *gc.get_threshold()[1:])
    try:
        from levada.cli.main import main as run
    finally:
        gc.freeze()
        gc.enable()
    return run


if __name__ == "__main__":
    raise SystemExit(main())
