"""``levada`` and ``python -m levada``: the command line, whose modules take half a second."""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable

INTERRUPTED = 130  # as shells say it of what SIGINT ended


def main() -> int:
    """Runs the command line; returns the exit code."""
    try:
        return _loaded()()
    except KeyboardInterrupt:
        print("levada: interrupted.", file=sys.stderr)
        return INTERRUPTED


def _loaded() -> Callable[[], int]:
    """The command line's modules. What they make stays as long as the process: it is not looked
    through for garbage, neither now nor later.
    """
    gc.disable()
    try:
        from levada.cli.main import main as run
    finally:
        gc.freeze()
        gc.enable()
    return run


if __name__ == "__main__":
    raise SystemExit(main())
