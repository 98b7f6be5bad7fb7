"""Ports for servers that must know theirs before they listen.

Below those that the kernel gives to clients: a client that tries again and again to reach a server
of this host that is away may be given the server's own port, and the server cannot come again. Each
process asks others, so that workers of pytest-xdist do not take one another's.
"""

from __future__ import annotations

import itertools
import os
import socket

FIRST, LAST = 10_000, 32_000
_offsets = itertools.count(os.getpid() * 61)


def free_port() -> int:
    """A port of this host on which nobody listens, and that was not given before."""
    for offset in _offsets:
        port = FIRST + offset % (LAST - FIRST)
        with socket.socket() as made:
            try:
                made.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise AssertionError("the counter has no end")
