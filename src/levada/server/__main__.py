"""The process of a server beside an engine: ``python -m levada.server``, which ``levada serve``
starts. What it serves is told on standard input. It ends with the process that started it.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
import time

import msgspec

from levada.errors import LevadaError
from levada.server.run_server import ServerConfig, serve

LOOK = 1.0  # s between two looks at whether the engine's process is there


def main() -> None:
    """Serves until it is told to stop, or nobody is there to tell it."""
    config = msgspec.json.decode(sys.stdin.buffer.read(), type=ServerConfig)
    threading.Thread(target=_follow, args=(config.parent,), daemon=True).start()
    try:
        serve(config.settings, socket.socket(fileno=config.descriptor))
    except LevadaError as error:
        sys.exit(f"levada: {error}")


def _follow(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(LOOK)
    os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    main()
