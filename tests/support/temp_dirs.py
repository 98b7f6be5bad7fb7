"""Where tests write: in memory, where ``make test`` asks for it (``LEVADA_SCRATCH=memory``) and
there is room. A test steps hundreds of epochs, each of which waits for the disk some ten times;
what it is about is never how long a disk takes. What runs for long, and may write much (``make
soak``, ``chaos``), stays on the disk.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

import psutil

MEMORY = Path("/dev/shm")
ROOM = 6 << 30
"""Bytes that are to be free, there and in all; a run of ``make test`` has far less at once."""


def in_memory() -> Path | None:
    """A folder in memory for tests, which may start programs from it; None: there is none."""
    if not MEMORY.is_dir() or not os.access(MEMORY, os.W_OK):
        return None
    found = os.statvfs(MEMORY)
    free = min(found.f_bavail * found.f_frsize, psutil.virtual_memory().available)
    return None if found.f_flag & os.ST_NOEXEC or free < ROOM else MEMORY


def choose() -> None:
    """Has what is temporary in this process, and in those that it starts, where it belongs."""
    if os.environ.get("LEVADA_SCRATCH") != "memory" or "TMPDIR" in os.environ:
        return
    if folder := in_memory():
        os.environ["TMPDIR"] = str(folder)
        tempfile.tempdir = None  # asked anew


def on_disk() -> dict[str, str]:
    """The environment of a process that writes to the disk, whose files are none of its memory: of
    one that is in memory each page that is read counts as the reader's own.
    """
    found = {name: text for name, text in os.environ.items() if name != "TMPDIR"}
    return found if os.environ.get("TMPDIR") == str(MEMORY) else dict(os.environ)
