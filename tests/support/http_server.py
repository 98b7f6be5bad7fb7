"""An engine that steps its epochs in this process, and a server over its checkpoint on a port."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

from levada import Engine
from levada.server.run_server import bind_socket, server_of, shown_address
from levada.server.settings import Limits, Settings
from support.polling import PATIENCE, until

TEXT = """PREFIX : <http://e/>
SELECT ?a ?n FROM NAMED WINDOW :w ON :s [RANGE PT2S STEP PT1S]
WHERE { WINDOW :w { ?a :p ?n } } ORDER BY ?n
"""
GRAPHS = """PREFIX : <http://e/>
CONSTRUCT { ?a :q ?n } FROM NAMED WINDOW :w ON :s [RANGE PT2S STEP PT1S]
WHERE { WINDOW :w { ?a :p ?n } }
"""

EVENTS = {"Accept": "text/event-stream"}


@contextmanager
def served(settings: Settings) -> Iterator[str]:
    """The URL of a server in this process."""
    made = bind_socket(settings.host, settings.port)
    server = server_of(settings)
    thread = threading.Thread(target=server.run, args=([made],))
    thread.start()
    until(lambda: server.started or not thread.is_alive())
    try:
        yield shown_address(made)
    finally:
        server.should_exit = True
        thread.join(timeout=PATIENCE)
        assert not thread.is_alive(), "it ends"


@dataclass
class Run:
    """An engine and what is fed to it."""

    folder: Path
    engine: Engine
    numbers: Iterator[int]

    @property
    def root(self) -> Path:
        return self.folder / "ck"

    def feed(self, n: int) -> None:
        """So many more elements, half a second apart."""
        for i in itertools.islice(self.numbers, n):
            path = self.folder / "s" / f"{i:05d}.nt"
            path.with_name(".new").write_text(f'<http://e/a> <http://e/p> "{i}" {500 * i} .\n')
            path.with_name(".new").rename(path)


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """An engine with ten elements and a query ``hot`` over them, whose reports are 1000 to 4000."""
    (tmp_path / "s").mkdir()
    with started(tmp_path) as made:
        made.feed(10)
        yield made


@contextmanager
def started(folder: Path, keep: str = "1h", **queries: str) -> Iterator[Run]:
    engine = Engine(spark=False, checkpoint=folder / "ck", keep_results=False, keep=keep)
    with engine:
        engine.stream("s", folder / "s")
        for name, text in (queries or {"hot": TEXT}).items():
            engine.register(text, name=name)
        engine.start()
        there = len(list((folder / "s").iterdir()))
        yield Run(folder, engine, itertools.count(there))


@pytest.fixture
def serve(run: Run) -> Iterator[Callable[..., httpx.Client]]:
    """Starts a server over the engine's checkpoint; a client of it."""
    with ExitStack() as held:

        def start(limits: Limits | None = None, **said: Any) -> httpx.Client:
            settings = Settings(run.root, port=0, limits=limits or Limits(), **said)
            url = held.enter_context(served(settings))
            return held.enter_context(httpx.Client(base_url=url, timeout=PATIENCE))

        yield start


@pytest.fixture
def client(run: Run, serve: Callable[..., httpx.Client]) -> httpx.Client:
    """A client of a server; ``hot`` has had its reports."""
    made = serve()
    until(lambda: last_report(made) == 4000)
    return made


def last_report(client: httpx.Client, query: str = "hot") -> int | None:
    found = client.get(f"/queries/{query}")
    return found.json().get("last_report") if found.status_code == 200 else None


def events(lines: Iterator[str], count: int) -> list[dict[str, str]]:
    """So many events, by their fields."""
    found: list[dict[str, str]] = []
    event: dict[str, str] = {}
    while len(found) < count:
        line = next(lines)
        if not line and "data" in event:
            found.append(event)
            event = {}
        elif not line:
            event = {}
        elif not line.startswith(":"):
            name, _, value = line.partition(": ")
            event[name] = f"{event[name]}\n{value}" if name in event else value
    return found
