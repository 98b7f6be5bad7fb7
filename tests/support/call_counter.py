"""How much is done, counted and not timed: calls of functions, which no busy machine changes."""

import gc
import sys
from collections.abc import Callable
from typing import Any


def calls(run: Callable[[], object]) -> int:
    """How many functions are called, those of Python and those written in C, while this runs.
    Nothing is collected meanwhile: what listens to collections (Hypothesis does) would count."""
    made = 0

    def count(frame: Any, event: str, arg: Any) -> None:
        nonlocal made
        made += event in ("call", "c_call")

    before, collecting = sys.getprofile(), gc.isenabled()
    gc.disable()
    sys.setprofile(count)
    try:
        run()
    finally:
        sys.setprofile(before)
        if collecting:
            gc.enable()
    return made
