"""A standalone Spark cluster on this machine: a master and workers, each of one core, from the
installed package.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from pathlib import Path

import psutil
import pyspark

from levada.runtime.spark.java import find_java

PATIENCE = 120  # s until all workers are there


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Cluster:
    """``url`` is what ``--master`` takes; each worker has an address of its own, 127.0.0.2 and so
    on.
    """

    def __init__(self, folder: Path, workers: int) -> None:
        port, self._web = free_port(), free_port()
        self.url = f"spark://127.0.0.1:{port}"
        self._folder = folder
        options = ["--host", "127.0.0.1", "--port", str(port), "--webui-port", str(self._web)]
        self._processes = [self._start("master", "127.0.0.1", "master.Master", *options)]
        self.workers = [self._worker(i) for i in range(workers)]
        self._processes += self.workers
        self._await(workers)

    def _worker(self, i: int) -> subprocess.Popen[bytes]:
        host = f"127.0.0.{i + 2}"
        options = ["--host", host, "-c", "1", "-m", "1g", "--webui-port", "0", self.url]
        return self._start(f"worker{i}", host, "worker.Worker", *options)

    def _start(self, name: str, host: str, main: str, *options: str) -> subprocess.Popen[bytes]:
        home = Path(pyspark.__file__).parent
        environment = os.environ | {
            "JAVA_HOME": str(find_java().path),
            "SPARK_HOME": str(home),
            "SPARK_LOCAL_IP": host,
            "SPARK_LOCAL_DIRS": str(self._folder / name / "local"),
            "SPARK_WORKER_DIR": str(self._folder / name / "work"),
            "SPARK_DAEMON_MEMORY": "256m",
        }
        with (self._folder / f"{name}.log").open("wb") as log:
            command = [
                str(home / "bin" / "spark-class"),
                f"org.apache.spark.deploy.{main}",
                *options,
            ]
            return subprocess.Popen(
                command, env=environment, stdout=log, stderr=log, cwd=self._folder
            )

    def _await(self, workers: int) -> None:
        end = time.monotonic() + PATIENCE
        while self._alive() < workers:
            assert time.monotonic() < end, "the workers register in time"
            time.sleep(0.2)

    def _alive(self) -> int:
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self._web}/json/", timeout=5) as answer:
                return sum(worker["state"] == "ALIVE" for worker in json.load(answer)["workers"])
        except OSError:
            return 0

    def kill_worker(self, i: int) -> None:
        """The worker and its executors are gone at once, as with a machine that loses its power."""
        family = [
            psutil.Process(self.workers[i].pid),
            *psutil.Process(self.workers[i].pid).children(recursive=True),
        ]
        for process in family:
            process.send_signal(signal.SIGKILL)

    def stop(self) -> None:
        for process in self._processes:
            for below in (
                psutil.Process(process.pid).children(recursive=True)
                if process.poll() is None
                else ()
            ):
                below.kill()
            process.kill()
            process.wait()


def environment() -> dict[str, str]:
    """Of a driver: its executors run this Python."""
    return os.environ | {"PYSPARK_PYTHON": sys.executable}
