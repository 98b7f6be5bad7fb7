"""``overload``: a stream that gets twice the input that the engine can read, for ten minutes.

    files   files with twice the elements that the engine reads meanwhile, four times a second,
            then a quarter of what it can read, until it has caught up
    push    clients that post as fast as they can, to an engine that reads much less: it refuses
            with 429, and reads all that it has accepted

Epochs are small, so that the disk holds ten minutes of input. What an engine can read is measured
first, with more input than it reads. Counted first: every element was read. ``memory`` is the peak
of the resident memory, of the overload and of the measurement before it. ``catch_up`` compares the
time that Levada predicted once its rates are those of the lower input with the time that it took.
"""

from __future__ import annotations

import tempfile
import threading
import time
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil

from bench.push import QUERY, STREAM, await_all, clients, read_so_far
from bench.result import Result, check_count
from levada.checkpoint.leadership.heartbeat import StreamBacklog
from levada.connectors.config.input_formats import PUSH
from levada.engine.driver.backlog_thread import WINDOW
from levada.engine.engine import Engine
from levada.server.run_server import ServerSupervisor, bind_socket
from levada.server.settings import Limits, Settings

LASTS = 600.0  # s
MEASURED, WARM = 20.0, 10.0  # s
EVERY = 0.25  # s between files
EPOCH_ROWS = 2000
PATIENCE = 12 * LASTS


def run(scale: float, stepped: bool) -> Result:
    """``scale`` is of the time; ``stepped`` or not, the engine is in this process."""
    return Result("overload", {"files": _files(LASTS * scale), "push": _push(LASTS * scale / 10)})


class Feeder:
    """Writes files with ``rate`` elements a second, from a thread, while the block lasts."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.rate, self.elements = folder, 0.0, 0
        self._files, self._over = 0, threading.Event()

    def write(self, count: int) -> None:
        """Writes a file with so many elements, a millisecond apart."""
        lines = [
            f"<http://e/a{k % 100}> <http://e/p> <http://e/o> {k} .\n"
            for k in range(self.elements, self.elements + count)
        ]
        path = self.folder / f"{self._files:09d}.nt"
        path.with_suffix(".tmp").write_text("".join(lines))
        path.with_suffix(".tmp").rename(path)
        self.elements, self._files = self.elements + count, self._files + 1

    def feed(self) -> None:
        """Writes until ``stop``; a late file is larger."""
        last = time.monotonic()
        while not self._over.wait(EVERY):
            now = time.monotonic()
            if count := round(self.rate * (now - last)):
                self.write(count)
            last = now

    @contextmanager
    def running(self) -> Any:
        """Feeds meanwhile."""
        thread = threading.Thread(target=self.feed)
        thread.start()
        try:
            yield
        finally:
            self._over.set()
            thread.join()


def _files(seconds: float) -> dict[str, Any]:
    with tempfile.TemporaryDirectory(prefix="levada-overload-") as name:
        feeder = Feeder(Path(name) / "s")
        feeder.folder.mkdir()
        feeder.write(100_000)
        root = Path(name) / "ck"
        with Engine(
            spark=False, checkpoint=root, keep_results=False, epoch_rows=EPOCH_ROWS
        ) as engine:
            engine.stream(STREAM, feeder.folder)
            engine.register(QUERY, name="q")
            engine.start()
            sustained = _sustained(engine, feeder)
            calm = psutil.Process().memory_info().rss
            feeder.rate = 2 * sustained
            with feeder.running():
                peak, most, worst = _overloaded(engine, seconds)
                feeder.rate = sustained / 4
                time.sleep(WINDOW + 2)
                caught = _caught_up(engine)
            await_all(engine, feeder.elements)
    check_count("overload, files", read_so_far(engine), feeder.elements)
    return {
        "elements": feeder.elements,
        "sustained_per_s": round(sustained),
        "memory_mb": {"before": calm >> 20, "peak": peak >> 20},
        "backlog": {"most": most, "oldest_s": round(worst, 1)},
        "catch_up": caught,
    }


def _sustained(engine: Engine, feeder: Feeder) -> float:
    """Returns the elements that the engine reads a second, with enough to read."""
    _until(lambda: read_so_far(engine) >= 50_000)
    feeder.write(100_000)
    begin, began = read_so_far(engine), time.monotonic()
    while time.monotonic() - began < MEASURED:
        if feeder.elements - read_so_far(engine) < 50_000:
            feeder.write(100_000)
        time.sleep(0.05)
    return (read_so_far(engine) - begin) / (time.monotonic() - began)


def _overloaded(engine: Engine, seconds: float) -> tuple[int, int, float]:
    """Returns the peak of memory (bytes), the largest backlog (elements) and age (s) meanwhile."""
    end, peak, most, worst = time.monotonic() + seconds, 0, 0, 0.0
    while time.monotonic() < end:
        time.sleep(1)
        peak = max(peak, psutil.Process().memory_info().rss)
        backlog = _backlog(engine)
        most = max(most, backlog.elements or 0)
        if backlog.oldest_ms is not None:
            worst = max(worst, time.time() - backlog.oldest_ms / 1000)
    return peak, most, worst


def _caught_up(engine: Engine) -> dict[str, Any]:
    """Returns the predicted and the measured seconds until nothing waits."""
    backlog, began = _backlog(engine), time.monotonic()
    _until(lambda: (_backlog(engine).elements or 0) < EPOCH_ROWS)
    took, expected = time.monotonic() - began, backlog.catch_up_seconds
    return {
        "elements": backlog.elements,
        "predicted_s": expected,
        "measured_s": round(took, 1),
        "predicted_by_measured": round(expected / took, 2) if expected else None,
    }


def _push(seconds: float) -> dict[str, Any]:
    """Clients post faster than the engine reads; each post is repeated until it is accepted."""
    with tempfile.TemporaryDirectory(prefix="levada-overload-") as name:
        root = Path(name) / "ck"
        limits = Limits(backlog=1 << 20)
        with Engine(
            spark=False, checkpoint=root, keep_results=False, keep="1h", epoch_rows=EPOCH_ROWS
        ) as engine:
            engine.stream(STREAM, PUSH)
            engine.register(QUERY, name="q")
            engine.start()
            made = bind_socket("127.0.0.1", 0)
            settings = Settings(root, port=0, limits=limits)
            with made, ServerSupervisor(settings, made, lambda told: None).running():
                port = made.getsockname()[1]
                clients(port, "post", 8, 4, 1000)
                began = time.monotonic()
                requests = taken = later = 0
                while time.monotonic() - began < seconds:
                    told = clients(port, "post", 100, 8, 1000)
                    requests, taken = requests + 100, taken + told["taken"]
                    later += told["later"]
                most = _backlog(engine)
                await_all(engine, 8000 + taken)
    check_count("overload, push", taken, 1000 * requests)
    return {"elements": taken, "refused_with_429": later, "backlog_bytes": most.size_bytes}


def _backlog(engine: Engine) -> StreamBacklog:
    backlog = engine.status().streams[STREAM].backlog
    assert backlog is not None, "the engine measures it"
    return backlog


def _until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError("the engine has not caught up")
        time.sleep(0.2)
