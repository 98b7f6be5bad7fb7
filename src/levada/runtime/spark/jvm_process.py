"""Runs Spark's JVM as a process that starts before pyspark is loaded, and can be ended at any
moment.

It works like pyspark's ``launch_gateway``, with three differences. The environment of this process
stays unchanged, since starting thread pools may read it meanwhile. The JVM has a session of its
own, so that Ctrl-C reaches this process only. And it can be ended before it has reported its port.
A running JVM ends with this process, since Spark reads the pipe to it. Before that point, this
process ends the JVM at its exit.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import shlex
import shutil
import signal
import struct
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path

import psutil

from levada.errors import EngineError, JavaError
from levada.runtime.spark.spark_settings import spark_home

STARTING = threading.Lock()
"""Held while a JVM starts: a process has one."""
_PATIENCE = 5  # seconds for a JVM to end after a request


class EndedError(EngineError):
    """The start was ended before Spark was ready."""


class Jvm:
    """One JVM, or the start of one."""

    def __init__(self) -> None:
        self._guard = threading.Lock()
        self._port_folder = ""  # the folder in which the JVM writes its port
        self.process: subprocess.Popen[bytes] | None = None
        self.ended = False

    def launch(self, settings: Mapping[str, str], variables: Mapping[str, str], log: Path) -> None:
        """Starts the JVM, with its output in ``log``; does not wait for it."""
        self._log, self._log_from = log, log.stat().st_size if log.exists() else 0
        command = [str(spark_home() / "bin" / "spark-submit")]
        for name, value in settings.items():
            command += ["--conf", f"{name}={value}"]
        command += shlex.split(os.environ.get("PYSPARK_SUBMIT_ARGS", "pyspark-shell"))
        with self._guard, open(log, "ab") as output:
            self._check()
            self._port_folder = tempfile.mkdtemp(prefix="levada-jvm-")
            atexit.register(self.end)
            port = {"SPARK_CONNECT_MODE": "0", "_PYSPARK_DRIVER_CONN_INFO_PATH": self._place}
            try:
                self.process = subprocess.Popen(
                    command,
                    env={**os.environ, **variables, **port},
                    stdin=subprocess.PIPE,
                    stdout=output,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                )
            except OSError as error:
                raise self._failure(str(error)) from error

    @property
    def _place(self) -> str:
        return os.path.join(self._port_folder, "port")

    def await_port(self) -> dict[str, str]:
        """Waits until the JVM listens; returns the variables by which pyspark finds it. Raises
        ``JavaError`` if it fails to start, ``EndedError`` if it has been ended.
        """
        process = self.process
        assert process is not None, "it has been launched"
        while process.poll() is None and not os.path.isfile(self._place):
            self._check()
            time.sleep(0.02)
        self._check()
        if not os.path.isfile(self._place):
            raise self._failure(f"it ended with {process.returncode}")
        answer = Path(self._place).read_bytes()
        shutil.rmtree(self._port_folder, ignore_errors=True)
        port, size = struct.unpack_from(">ii", answer)
        secret = answer[8 : 8 + size].decode()
        return {"PYSPARK_GATEWAY_PORT": str(port), "PYSPARK_GATEWAY_SECRET": secret}

    def mark_started(self) -> None:
        """Notes that the JVM has started: from now on it detects the end of this process itself."""
        atexit.unregister(self.end)

    def end(self) -> None:
        """Ends the JVM and its child processes, in any phase; a later launch fails."""
        with self._guard:
            self.ended = True
        atexit.unregister(self.end)
        shutil.rmtree(self._port_folder, ignore_errors=True)
        process = self.process
        if process is None or process.poll() is not None:
            return
        family = _child_processes(process.pid)
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_PATIENCE)
                break
        for one in family:  # Python workers end by themselves, once they have been loaded
            with contextlib.suppress(psutil.Error):
                one.kill()

    def _check(self) -> None:
        if self.ended:
            raise EndedError("Spark was ended while it started.")

    def _failure(self, why: str) -> JavaError:
        """Returns the error of a failed start: the first output of the JVM except warnings, or else
        ``why``.
        """
        lines = self._log.read_bytes()[self._log_from :].decode(errors="replace").splitlines()
        messages = (line.strip(" .") for line in lines if line.strip())
        complaint = next((line for line in messages if not line.startswith("WARNING")), why)
        return JavaError(f"Spark's JVM did not start: {complaint}.", hint=f"See {self._log}.")


def _child_processes(pid: int) -> list[psutil.Process]:
    try:
        return list(psutil.Process(pid).children(recursive=True))
    except psutil.Error:
        return []
