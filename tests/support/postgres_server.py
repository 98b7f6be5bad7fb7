"""A PostgreSQL server for tests: Debian's, in a folder of its own, on a free port of this host. It
is ended by its process id. Where its binaries are not, the tests are skipped, and say so.
"""

from __future__ import annotations

import os
import pwd
import shutil
import signal
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import psycopg
import pytest

from support.free_ports import free_port
from support.polling import PATIENCE, until

USER, PASSWORD = "levada", "canary-77ab1e"


def binaries() -> Path:
    """The folder of ``initdb`` and ``postgres``; skips the test if there is none."""
    found = shutil.which("initdb")
    there = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if found is None and not there:
        pytest.skip("PostgreSQL is NOT tested: there is no initdb (Debian: postgresql).")
    return Path(found or there[-1]).resolve().parent


def _owner() -> dict[str, Any]:
    """Whose processes they are: PostgreSQL refuses to run as root."""
    if os.getuid():
        return {}
    for name in ("postgres", "nobody"):
        try:
            known = pwd.getpwnam(name)
        except KeyError:
            continue
        return {"user": known.pw_uid, "group": known.pw_gid, "extra_groups": []}
    pytest.skip("PostgreSQL is NOT tested: it does not run as root.")


class Server:
    """One server with the database ``levada``."""

    def __init__(self) -> None:
        self._bin, self._as = binaries(), _owner()
        self.folder = Path(tempfile.mkdtemp(prefix="levada-postgres-"))
        secret = self.folder / "secret"
        secret.write_text(PASSWORD)
        if self._as:
            for path in (self.folder, secret):
                os.chown(path, self._as["user"], self._as["group"])
        self.data = self.folder / "data"
        made = subprocess.run(
            [self._bin / "initdb", "-D", self.data, "-U", USER, "-A", "scram-sha-256",
             f"--pwfile={secret}", "--no-sync", "--no-locale", "-E", "UTF8"],
            cwd=self.folder, capture_output=True, text=True, timeout=PATIENCE, **self._as,
        )  # fmt: skip
        assert made.returncode == 0, made.stderr
        self.port = free_port()
        self.process: subprocess.Popen[bytes] | None = None
        self.url = f"postgresql://{USER}@127.0.0.1:{self.port}/postgres"
        self.start()

    def start(self) -> None:
        """Starts it, and waits until it answers."""
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(
                [self._bin / "postgres", "-D", self.data, "-p", str(self.port), "-c",
                 "listen_addresses=127.0.0.1", "-c", "unix_socket_directories=", "-c", "fsync=off"],
                cwd=self.folder, stdout=log, stderr=log, **self._as,
            )  # fmt: skip
        until(self._answers, "an answer of PostgreSQL", step=0.1)

    def _answers(self) -> bool:
        assert self.process is not None
        assert self.process.poll() is None, (self.folder / "log").read_text()[-2000:]
        try:
            self.connect().close()
        except psycopg.OperationalError:
            return False
        return True

    def connect(self) -> psycopg.Connection[Any]:
        return psycopg.connect(self.url, password=PASSWORD, connect_timeout=60)

    def rows(self, text: str) -> list[tuple[Any, ...]]:
        """What a statement gives; a table that is not there has no rows."""
        with self.connect() as connection:
            try:
                return connection.execute(text.encode()).fetchall()
            except psycopg.errors.UndefinedTable:
                return []

    def run(self, *texts: str) -> None:
        with self.connect() as connection:
            for text in texts:
                connection.execute(text.encode())

    def stop(self, sign: int = signal.SIGINT) -> None:
        """Ends it, and waits: SIGINT ends connections, SIGQUIT ends all at once."""
        if self.process is not None:
            self.process.send_signal(sign)
            self.process.wait(PATIENCE)
            self.process = None

    def close(self) -> None:
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
