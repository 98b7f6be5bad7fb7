"""A broker of MQTT for tests: Debian's mosquitto on a free port of this host, ended by its process
id.
"""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path

import pytest

PATH = "/usr/sbin:/usr/bin:/bin:/usr/local/sbin:/usr/local/bin"
"""Debian has the broker where only root looks."""


def free_port() -> int:
    with socket.socket() as made:
        made.bind(("127.0.0.1", 0))
        return int(made.getsockname()[1])


def _found(name: str) -> str:
    found = shutil.which(name, path=PATH)
    if found is None:
        pytest.skip(f"MQTT is NOT tested: there is no {name} (Debian: mosquitto-clients).")
    return found


def until(done: object, seconds: float = 120) -> None:
    """Waits for what has to come."""
    end = time.monotonic() + seconds
    while not done():  # type: ignore[operator]
        assert time.monotonic() < end, "it does not come"
        time.sleep(0.02)


class Broker:
    """One broker that keeps sessions when it is ended by SIGTERM. ``settings``: lines more of its
    configuration.
    """

    def __init__(self, folder: Path, *settings: str, anonymous: bool = True) -> None:
        self._binary, self._publish = _found("mosquitto"), _found("mosquitto_pub")
        folder.mkdir(parents=True, exist_ok=True)
        self.folder, self.port = folder, free_port()
        self._conf = folder / "mosquitto.conf"
        lines = [
            f"listener {self.port} 127.0.0.1",
            f"allow_anonymous {'true' if anonymous else 'false'}",
            "persistence true",
            f"persistence_location {folder}/",
            "max_queued_messages 0",
            *settings,
        ]
        self._conf.write_text("\n".join(lines) + "\n")
        self.process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        with (self.folder / "said").open("ab") as said:
            self.process = subprocess.Popen(
                [self._binary, "-c", str(self._conf)], stdout=said, stderr=said
            )
        until(self._answers)

    def _answers(self) -> bool:
        assert self.process is not None, "it was started"
        assert self.process.poll() is None, (self.folder / "said").read_text()[-2000:]
        with socket.socket() as made:
            return made.connect_ex(("127.0.0.1", self.port)) == 0

    def stop(self, sign: int = signal.SIGTERM) -> None:
        if self.process is not None:
            self.process.send_signal(sign)
            self.process.wait(60)
            self.process = None

    def url(self, topic: str) -> str:
        return f"mqtt://127.0.0.1:{self.port}/{topic}"

    def send(
        self, topic: str, payloads: Iterable[str | bytes], *more: str, lines: bool = False
    ) -> None:
        """Publishes with QoS 1, in order. ``lines``: each is a line, so one process does it."""
        raw = [p.encode() if isinstance(p, str) else p for p in payloads]
        command = [
            self._publish,
            "-h",
            "127.0.0.1",
            "-p",
            str(self.port),
            "-q",
            "1",
            "-t",
            topic,
            *more,
        ]
        if lines:
            subprocess.run([*command, "-l"], input=b"\n".join(raw) + b"\n", check=True, timeout=60)
            return
        for each in raw:
            given = ["-s"] if each else ["-n"]
            subprocess.run([*command, *given], input=each, check=True, timeout=60)
