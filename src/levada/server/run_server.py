"""The run of a server on a checkpoint until a signal comes, and its supervision next to an engine.

The starting process binds the socket and passes it on. So while a server restarts, new clients wait
in the socket's queue.
"""

from __future__ import annotations

import os
import secrets
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import msgspec
import uvicorn

from levada.checkpoint.reader_leases import ReaderLease
from levada.core.checkpoint_files import facts_of
from levada.engine.status.result_archive import Archive
from levada.errors import UsageError
from levada.server.app import application
from levada.server.app_state import ServerState
from levada.server.checkpoint_catalog import Facts
from levada.server.live.result_feed import Feed
from levada.server.security.bounded_http import Bounds, protocol, room
from levada.server.security.bounded_websocket import BoundedSocket
from levada.server.security.log_budget import CONFIG
from levada.server.settings import Limits, Settings

BACKLOG = 2048  # connections that wait to be accepted
GRACE = 3  # s that answers may take after a signal
HEARD = 1 << 12  # bytes of a client's WebSocket message, which the server ignores
FIRST_RESTART_PAUSE, MAX_RESTART_PAUSE = 0.5, 10.0  # s before a dead server is started again


def bind_socket(host: str, port: int) -> socket.socket:
    """Returns a listening socket. Raises ``UsageError``."""
    try:
        family, kind, number, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        made = socket.socket(family, kind, number)
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(BACKLOG)
    except OSError as error:
        raise UsageError(
            f"Levada cannot listen on {host}:{port}: {error.strerror}.",
            hint="Say another --listen, such as 127.0.0.1:0 for a port that is free.",
        ) from error
    return made


def shown_address(made: socket.socket) -> str:
    """Returns the URL of a socket."""
    host, port = made.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def serve(settings: Settings, made: socket.socket) -> None:
    """Serves until SIGINT or SIGTERM. Raises ``CheckpointError`` if the folder is not a
    checkpoint.
    """
    facts_of(settings.root)
    name = secrets.token_hex(8)
    with closing(ReaderLease(settings.root, name, time.monotonic)) as sign:
        server_of(settings, sign).run([made])


def server_of(settings: Settings, sign: ReaderLease | None = None) -> uvicorn.Server:
    """Builds the server of a checkpoint; ``run`` it with a socket. Raises ``UsageError``,
    ``CheckpointError``.
    """
    limits = settings.limits
    archive = Archive(settings.root, sign)
    facts = Facts(settings.root)
    settings.check_exposure()
    served = ServerState(settings, archive, Feed(archive, facts.since), facts)
    door = application(served)
    bounds = Bounds(
        limits.head, limits.head_seconds, room(limits.connections), limits.unread_seconds,
        door.counts,
    )  # fmt: skip
    return Server(
        served.feed,
        uvicorn.Config(
            door,
            http=protocol(bounds),
            ws=BoundedSocket,
            ws_max_size=HEARD,
            ws_per_message_deflate=False,
            loop="asyncio",
            log_config=CONFIG,
            log_level="error",
            access_log=False,
            server_header=False,
            proxy_headers=False,
            timeout_keep_alive=30,
            timeout_graceful_shutdown=GRACE,
            backlog=BACKLOG,
        ),
    )


class Server(uvicorn.Server):
    """A uvicorn server that ends event streams first, since they would never end."""

    def __init__(self, feed: Feed, config: uvicorn.Config) -> None:
        super().__init__(config)
        self._feed = feed

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Ends the event streams, then the other connections."""
        self._feed.end()
        await super().shutdown(sockets)


class ServerSupervisor:
    """The process of a server next to an engine. It is started again when it dies."""

    def __init__(
        self, settings: Settings, made: socket.socket, tell: Callable[[str], None]
    ) -> None:
        self._settings, self._made, self._tell = settings, made, tell
        self._process: subprocess.Popen[bytes] | None = None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._keep, name="levada server", daemon=True)

    @contextmanager
    def running(self) -> Iterator[None]:
        """Runs the server while the block runs."""
        self._thread.start()
        try:
            yield
        finally:
            self._stopped.set()
            if self._process is not None:
                self._process.terminate()
            self._thread.join(timeout=2 * GRACE)
            if self._process is not None and self._process.poll() is None:
                self._process.kill()

    def _keep(self) -> None:
        while not (self._settings.root / "levada.json").exists():
            if self._stopped.wait(0.05):  # the engine writes it
                return
        pause = FIRST_RESTART_PAUSE
        while not self._stopped.is_set():
            began, self._process = time.monotonic(), self._start()
            code = self._process.wait()
            lasted = time.monotonic() - began > MAX_RESTART_PAUSE
            pause = FIRST_RESTART_PAUSE if lasted else min(2 * pause, MAX_RESTART_PAUSE)
            if self._stopped.wait(pause):
                return
            self._tell(f"The server ended with {code}, and is started again.")

    def _start(self) -> subprocess.Popen[bytes]:
        number = self._made.fileno()
        config = msgspec.json.encode(
            ServerConfig.from_settings(self._settings, number, os.getpid())
        )
        process = subprocess.Popen(
            [sys.executable, "-m", "levada.server"], stdin=subprocess.PIPE, pass_fds=[number]
        )
        assert process.stdin is not None, "it is a pipe"
        process.stdin.write(config)
        process.stdin.close()
        return process


class ServerConfig(msgspec.Struct, frozen=True):
    """The configuration that the starting process sends to the process of a server."""

    root: str
    host: str
    port: int
    tokens: str | None
    limits: Limits
    descriptor: int
    parent: int
    letters: str | None = None
    max_future: int | None = None
    origins: tuple[str, ...] = ()

    @staticmethod
    def from_settings(settings: Settings, descriptor: int, parent: int) -> ServerConfig:
        """Builds the configuration from settings, the socket's descriptor and the parent's process
        id.
        """
        root = str(settings.root.absolute())
        tokens, letters = _name(settings.tokens), _name(settings.letters)
        limits, future = settings.limits, settings.max_future
        return ServerConfig(
            root, settings.host, settings.port, tokens, limits, descriptor, parent, letters, future,
            settings.origins,
        )  # fmt: skip

    @property
    def settings(self) -> Settings:
        """Returns the settings."""
        tokens, letters = _path(self.tokens), _path(self.letters)
        return Settings(
            Path(self.root), self.host, self.port, tokens=tokens, limits=self.limits,
            letters=letters, max_future=self.max_future, origins=self.origins,
        )  # fmt: skip


def _name(path: Path | None) -> str | None:
    return None if path is None else str(path.absolute())


def _path(name: str | None) -> Path | None:
    return None if name is None else Path(name)
