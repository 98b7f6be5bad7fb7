"""``levada`` and ``python -m levada``: the command line, whose modules take half a second."""

from __future__ import annotations

import faulthandler
import gc
import sys
from collections.abc import Callable
from contextlib import suppress

INTERRUPTED = 130  # as shells say it of what SIGINT ended
GARBAGE_THRESHOLD = 50_000
"""Objects made and not freed after which garbage is looked for. Modules that are loaded later make
half a million that stay; to look through them again and again was a tenth of a short run.
"""


def main() -> int:
    """Runs the command line; returns the exit code. A crash in native code prints the stacks."""
    with suppress(RuntimeError, ValueError, OSError):  # standard error is closed or not a file
        faulthandler.enable()
    try:
        return _load()()
    except KeyboardInterrupt:
        print("levada: interrupted.", file=sys.stderr)
        return INTERRUPTED


def _load() -> Callable[[], int]:
    """The command line's modules. What they make stays as long as the process: it is not looked
    through for garbage, neither now nor later.
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
