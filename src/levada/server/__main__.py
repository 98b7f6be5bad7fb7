"""The process of a server that runs with an engine: ``python -m levada.server``, which ``levada
serve`` starts. It reads its configuration from standard input and ends with the process that
started it.
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

LOOK = 1.0  # s between two checks that the engine's process runs


def main() -> None:
    """Serves until a signal comes or the process that started it ends."""
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
