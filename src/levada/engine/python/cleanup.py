"""What an engine holds, freed in the right order, also if nobody closes the engine: when it is
collected, at the end of the process at the latest.
"""

from __future__ import annotations

import shutil
import threading
import weakref
from collections.abc import Iterable
from contextlib import ExitStack
from pathlib import Path


def register_cleanup(
    engine: object, temporary: Path | None
) -> tuple[ExitStack, weakref.finalize[..., object]]:
    """What is to be freed, the last first, and the call that does so if nobody else has; it removes
    the folder ``temporary`` at the end.
    """
    held = ExitStack()
    if temporary is not None:
        held.callback(shutil.rmtree, temporary, ignore_errors=True)
    return held, weakref.finalize(engine, abandon, held)


def abandon(held: ExitStack) -> None:
    """Frees everything; not on the loop's own thread, where the garbage collector may run: the loop
    is waited for.
    """
    if threading.current_thread().name == "levada loop":
        threading.Thread(target=held.close, name="levada close").start()
    else:
        held.close()


def join_all(threads: Iterable[threading.Thread]) -> None:
    """Waits for threads, but for the one that asks."""
    for thread in threads:
        if thread is not threading.current_thread():
            thread.join()
