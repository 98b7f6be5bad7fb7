"""A standalone Spark cluster on this machine: a master and workers, each of one core, from the
installed package.

Each process has a group of its own, so that what it starts ends with it; and whatever happens while
they start, they end.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pyspark
from hosts import HERE, Hosts, Place

from levada.runtime.spark.spark_settings import find_java
from support.free_ports import free_port
from support.polling import until

READ = "import sys, urllib.request as r; print(r.urlopen(sys.argv[1], timeout=60).read().decode())"


def count_alive(url: str, place: Place = HERE) -> int:
    """How many workers the master knows, by its web page; 0 until it answers in JSON: at first
    there is nobody, then HTML.
    """
    command = [*place.command, sys.executable, "-c", READ, f"{url}/json/"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    try:
        workers = json.loads(answer.stdout)["workers"]
        return sum(worker["state"] == "ALIVE" for worker in workers)
    except (ValueError, KeyError, TypeError):
        return 0


class Cluster:
    """``url`` is what ``--master`` takes; each worker has an address of its own, 127.0.0.2 and so
    on, or those of ``hosts``: the first one has the master, the next ones a worker each.
    """

    def __init__(self, folder: Path, workers: int, hosts: Hosts | None = None) -> None:
        port, web = free_port(), free_port()
        self._hosts = hosts
        host = self._address(0)
        self.url, self._web = f"spark://{host}:{port}", f"http://{host}:{web}"
        self._folder = folder
        self._processes: list[subprocess.Popen[bytes]] = []
        atexit.register(self.stop)
        try:
            options = ["--host", host, "--port", str(port), "--webui-port", str(web)]
            self._start("master", 0, "master.Master", *options)
            self.workers = [self._worker(i) for i in range(workers)]
            self._await()
        except BaseException:
            self.stop()
            raise

    def _address(self, i: int) -> str:
        return self._hosts.address(i) if self._hosts else f"127.0.0.{i + 1}"

    def _place(self, i: int) -> Place:
        return self._hosts.place(i) if self._hosts else HERE

    def _worker(self, i: int) -> subprocess.Popen[bytes]:
        options = ["--host", self._address(i + 1), "-c", "1", "-m", "1g", "--webui-port", "0"]
        return self._start(f"worker{i}", i + 1, "worker.Worker", *options, self.url)

    def _start(self, name: str, host: int, main: str, *options: str) -> subprocess.Popen[bytes]:
        home = Path(pyspark.__file__).parent
        place = self._place(host)
        environment = (
            os.environ
            | place.variables
            | {
                "JAVA_HOME": str(find_java().path),
                "SPARK_HOME": str(home),
                "SPARK_LOCAL_IP": self._address(host),
                "SPARK_LOCAL_DIRS": str(self._folder / name / "local"),
                "SPARK_WORKER_DIR": str(self._folder / name / "work"),
                "SPARK_DAEMON_MEMORY": "256m",
            }
        )
        program = str(home / "bin" / "spark-class")
        command = [*place.command, program, f"org.apache.spark.deploy.{main}", *options]
        with (self._folder / f"{name}.log").open("wb") as log:
            process = subprocess.Popen(
                command, env=environment, stdout=log, stderr=log, cwd=self._folder, process_group=0
            )
        self._processes.append(process)
        return process

    def _await(self) -> None:
        def all_there() -> bool:
            there = count_alive(self._web, self._place(0)) >= len(self.workers)
            assert there or all(p.poll() is None for p in self._processes), (
                f"nobody ends while they start\n{self._logs()}"
            )
            return there

        until(all_there, f"all workers are there; {self._folder} has their logs", step=0.2)

    def _logs(self) -> str:
        return "\n".join(
            f"{p.name}: {p.read_text(errors='replace')[-2000:]}" for p in self._folder.glob("*.log")
        )

    def add_worker(self) -> None:
        """One more, which is there when this comes back."""
        self.workers.append(self._worker(len(self.workers)))
        self._await()

    def sent(self, i: int) -> set[str]:
        """What tasks of a worker have sent to others, as files of its disk."""
        found = (self._folder / f"worker{i}" / "local").glob("**/shuffle_*.data")
        return {path.name for path in found}

    def executor(self, i: int) -> psutil.Process | None:
        """The process of a worker's executor; None if there is none now."""
        for process in psutil.Process(self.workers[i].pid).children():
            with contextlib.suppress(psutil.Error):
                if "CoarseGrainedExecutorBackend" in " ".join(process.cmdline()):
                    return process
        return None

    def told(self, i: int) -> str:
        """What the executors of a worker have logged."""
        logs = (self._folder / f"worker{i}" / "work").glob("*/*/stderr")
        return "".join(log.read_text(errors="replace") for log in logs)

    def kill_worker(self, i: int) -> None:
        """The worker and its executors are gone at once, as with a machine that loses its power."""
        _kill(self.workers[i])

    def stop(self) -> None:
        """Ends every process, once: a number may be another process's when its own has been waited
        for.
        """
        while self._processes:
            process = self._processes.pop()
            _kill(process)
            process.wait()
        atexit.unregister(self.stop)


def _kill(process: subprocess.Popen[bytes]) -> None:
    """The process, its group, which outlives it, and what is below it in other groups (Spark's
    Python daemons).
    """
    below: list[psutil.Process] = []
    with contextlib.suppress(psutil.NoSuchProcess):
        below = psutil.Process(process.pid).children(recursive=True)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    for one in below:
        with contextlib.suppress(psutil.NoSuchProcess):
            one.kill()


def environment() -> dict[str, str]:
    """Of a driver: its executors run this Python."""
    return os.environ | {"PYSPARK_PYTHON": sys.executable}
