"""The resources of an engine, freed in the right order even if the program does not close it. Then
its garbage collection or the end of the process frees them.
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
    """Returns the stack of resources to free, the last first, and a finalizer that frees them
    without ``close``. It removes the folder ``temporary`` at the end.
    """
    held = ExitStack()
    if temporary is not None:
        held.callback(shutil.rmtree, temporary, ignore_errors=True)
    return held, weakref.finalize(engine, abandon, held)


def abandon(held: ExitStack) -> None:
    """Frees everything. On the loop's thread, where the garbage collector may run, another thread
    does so, since it waits for the loop.
    """
    if threading.current_thread().name == "levada loop":
        threading.Thread(target=held.close, name="levada close").start()
    else:
        held.close()


def join_all(threads: Iterable[threading.Thread]) -> None:
    """Waits for threads, except the calling one."""
    for thread in threads:
        if thread is not threading.current_thread():
            thread.join()
