"""Executors, workers and drivers that come, leave or stand still on a standalone cluster: every
result is there, and once. ``make cluster`` runs it.

Streams grow while a run goes on, by as much as is read; so there is always work when something
happens, however fast a machine is. What is published is compared with a run alone over what the
streams have come to. With nine partitions and two exchanges every epoch is spread over tasks.
"""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from cluster import Cluster, environment
from levada.checkpoint.checkpoint_folder import newest_manifest
from levada.checkpoint.leadership.commit_log import last_takeover
from levada.checkpoint.leadership.heartbeat import read_standbys
from levada.checkpoint.manifest import Manifest
from levada.checkpoint.state_files import UNUSED
from support.polling import newest_epoch, until

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(1500),
    pytest.mark.long,
]

QUERY = """PREFIX : <http://e/>
SELECT ?b (COUNT(*) AS ?n) FROM NAMED WINDOW :w ON :s [RANGE PT4S STEP PT1S]
WHERE { WINDOW :w { ?a :p ?b . ?a :q ?c } } GROUP BY ?b
"""
CHUNK = 100  # elements, a second
SPREAD = ("--partitions", "9")
# what stands still is known to be gone after some seconds
SOON = {
    "spark.network.timeout": "30s",
    "spark.network.timeoutInterval": "5s",
    "spark.executor.heartbeatInterval": "2s",
}
LEAVES = SOON | {  # what an executor has sent goes to others before it ends
    "spark.decommission.enabled": "true",
    "spark.storage.decommission.enabled": "true",
    "spark.storage.decommission.shuffleBlocks.enabled": "true",
}
TWICE = SOON | {
    "spark.speculation": "true",
    "spark.speculation.interval": "200ms",
    "spark.speculation.quantile": "0.5",
    "spark.speculation.minTaskRuntime": "1s",
}
ALONE = {"spark.cores.max": "1"}  # room for two drivers


class Field:
    """A folder with a stream that grows, a query, and the runs over it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.written = folder, 0
        self.checkpoint = folder / "ck"
        self.runs: list[subprocess.Popen[str]] = []
        (folder / "q.rq").write_text(QUERY)
        self.grow()

    def grow(self) -> None:
        """One more second of the stream."""
        lines = (
            f"<http://e/a{i % 40}> <http://e/{'pq'[i // 40 % 2]}> <http://e/b{i * 7 % 11}> "
            f"{10 * i} .\n"
            for i in range(self.written, self.written + CHUNK)
        )
        with (self.folder / "s.nt").open("a") as file:
            file.write("".join(lines))
        self.written += CHUNK

    def start(self, out: str, *more: str, **config: str) -> subprocess.Popen[str]:
        """A run into a folder of its own, by these settings of Spark."""
        settings = self.folder / f"conf-{len(self.runs)}"
        settings.mkdir()
        text = "".join(f"{name} {value}\n" for name, value in config.items())
        (settings / "spark-defaults.conf").write_text(text)
        given = ["run", "q.rq", "--stream", "s=s.nt", "--out", out, "--epoch-rows", str(CHUNK)]
        run = subprocess.Popen(
            [sys.executable, "-m", "levada", *given, *more],
            cwd=self.folder,
            env=environment() | {"SPARK_CONF_DIR": str(settings)},
            stderr=subprocess.PIPE,
            text=True,
        )
        self.runs.append(run)
        return run

    @property
    def manifest(self) -> Manifest:
        """What there is now."""
        there = newest_epoch(self.checkpoint) > 0
        return (newest_manifest(self.checkpoint) if there else None) or Manifest(0, 0)

    def until(self, condition: Callable[[], object], run: subprocess.Popen[str]) -> None:
        """Has the stream grow until something has happened."""

        def look() -> object:
            if sum(r.elements for r in self.manifest.streams.values()) >= self.written:
                self.grow()
            return condition()

        self._await(look, run)

    @staticmethod
    def _await(look: Callable[[], object], run: subprocess.Popen[str]) -> None:
        try:
            until(look, process=run)
        except AssertionError as error:  # what it said says why
            run.kill()
            raise AssertionError(f"{error}: {run.communicate()[1]}") from error

    def epochs(self, run: subprocess.Popen[str], more: int) -> None:
        """So many more."""
        end = newest_epoch(self.checkpoint) + more
        self.until(lambda: newest_epoch(self.checkpoint) >= end, run)

    def judge(self, run: subprocess.Popen[str], out: str = "spread") -> None:
        """Ends a run; what it has published is what a run alone publishes, once."""
        self.epochs(run, 3)
        until(
            lambda: sum(r.elements for r in self.manifest.streams.values()) == self.written,
            process=run,
        )
        run.send_signal(signal.SIGTERM)
        said = run.communicate(timeout=600)[1]
        assert run.returncode == 0, said
        alone = self.start("alone", "--close", "--master", "none")
        assert alone.wait(600) == 0
        end = 10 * self.written  # windows that are open are not reported
        expected = {k: n for k, n in self.published("alone").items() if k[0] < end}
        assert len(expected) > 11 * 3
        assert self.published(out) == expected, said

    def published(self, out: str) -> Counter[tuple[int, str]]:
        """The rows of each report in files."""
        files = (self.folder / out).glob("q/*")
        lines = [json.loads(line) for file in files for line in file.read_text().splitlines()]
        return Counter(
            (line["report"], json.dumps(row, sort_keys=True))
            for line in lines
            for row in line["results"]["bindings"]
        )

    def end(self) -> None:
        """Ends what still runs."""
        for run in self.runs:
            if run.poll() is None:
                run.kill()
                run.wait()


@pytest.fixture
def field(tmp_path: Path) -> Iterator[Field]:
    found = Field(tmp_path)
    yield found
    found.end()


@pytest.fixture
def clusters(tmp_path: Path) -> Iterator[Callable[[int], Cluster]]:
    made: list[Cluster] = []

    def make(workers: int) -> Cluster:
        (tmp_path / "cluster").mkdir()
        made.append(Cluster(tmp_path / "cluster", workers))
        return made[-1]

    yield make
    for cluster in made:
        cluster.stop()


def executor(cluster: Cluster, i: int) -> psutil.Process:
    found: psutil.Process = until(lambda: cluster.executor(i), "an executor")
    return found


def all_there(field: Field, run: subprocess.Popen[str], executors: int) -> None:
    """Epochs have run over so many executors."""

    def there() -> bool:
        homes = field.manifest.executors
        return homes is not None and homes.executors == executors

    field.until(there, run)
    field.epochs(run, 3)


def kill_executor(cluster: Cluster, field: Field, run: subprocess.Popen[str]) -> None:
    executor(cluster, 0).kill()


def kill_worker(cluster: Cluster, field: Field, run: subprocess.Popen[str]) -> None:
    """When its tasks have just sent what others are to read."""
    before = cluster.sent(0)
    field.until(lambda: cluster.sent(0) - before, run)
    cluster.kill_worker(0)


def decommission(cluster: Cluster, field: Field, run: subprocess.Popen[str]) -> None:
    leaves = executor(cluster, 0)
    leaves.send_signal(signal.SIGPWR)
    field.until(lambda: ended(leaves), run)
    assert "ecommission" in cluster.told(0), "it has left, and was not killed"


def ended(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def stop_executor(cluster: Cluster, field: Field, run: subprocess.Popen[str]) -> None:
    """It wakes when others have done its work."""
    stands = executor(cluster, 0)
    stands.suspend()
    field.epochs(run, 2)
    with suppress(psutil.NoSuchProcess):  # Spark may have ended it
        stands.resume()


@pytest.mark.parametrize(
    ("happens", "config"),
    [(kill_executor, SOON), (kill_worker, SOON), (decommission, LEAVES), (stop_executor, TWICE)],
)
def test_executors_leave(
    field: Field,
    clusters: Callable[[int], Cluster],
    happens: Callable[[Cluster, Field, subprocess.Popen[str]], None],
    config: dict[str, str],
) -> None:
    cluster = clusters(3)
    run = field.start("spread", "--master", cluster.url, "--checkpoint", "ck", *SPREAD, **config)
    all_there(field, run, 3)
    happens(cluster, field, run)
    field.epochs(run, 3)
    field.judge(run)


def test_workers_come_and_partitions_follow(
    field: Field, clusters: Callable[[int], Cluster]
) -> None:
    cluster = clusters(1)
    master = ("--master", cluster.url, "--checkpoint", "ck", "--partitions", "cores")
    run = field.start("spread", *master, **SOON)
    all_there(field, run, 1)
    for _ in range(2):
        cluster.add_worker()
    all_there(field, run, 3)
    field.until(lambda: {k.split(".")[1] for k in field.manifest.state} == set("012"), run)
    cluster.kill_worker(0)
    all_there(field, run, 2)
    field.until(lambda: {k.split(".")[1] for k in field.manifest.state} == set("01"), run)
    field.judge(run)


def test_workers_keep_no_maps_of_deleted_files(
    field: Field, clusters: Callable[[int], Cluster]
) -> None:
    cluster = clusters(1)
    run = field.start("spread", "--master", cluster.url, "--checkpoint", "ck", *SPREAD, **SOON)
    all_there(field, run, 1)
    first = executor(cluster, 0)
    assert mapped(first), "its workers have state open"
    cluster.add_worker()
    all_there(field, run, 2)  # and with them partitions leave the first
    field.epochs(run, 2 * UNUSED)
    field.until(lambda: not deleted(first), run)
    field.judge(run)


def mapped(process: psutil.Process) -> list[str]:
    """The state files of which the workers of an executor hold maps."""
    found = []
    for worker in process.children(recursive=True):
        try:
            text = Path(f"/proc/{worker.pid}/maps").read_text()
        except OSError:  # it has ended
            continue
        found += re.findall(r"/ck/state/.*", text)
    return found


def deleted(process: psutil.Process) -> list[str]:
    return [line for line in mapped(process) if line.endswith("(deleted)")]


def two_drivers(field: Field, cluster: Cluster) -> list[subprocess.Popen[str]]:
    """One at work, and one that waits."""
    given = ("--master", cluster.url, "--checkpoint", "ck", *SPREAD)
    works = field.start("spread", *given, **SOON, **ALONE)
    all_there(field, works, 1)
    waits = field.start("spread", *given, "--standby", "--lease", "4s", **SOON, **ALONE)
    field.until(lambda: read_standbys(field.checkpoint), works)
    field.epochs(works, 2)
    return [works, waits]


def taken_over(field: Field, by: subprocess.Popen[str]) -> bool:
    last = last_takeover(field.checkpoint)
    return last is not None and last.pid == by.pid


def test_a_standby_takes_over_from_a_driver_that_dies(
    field: Field, clusters: Callable[[int], Cluster]
) -> None:
    works, waits = two_drivers(field, clusters(2))
    works.kill()
    field.until(lambda: taken_over(field, waits), waits)
    field.epochs(waits, 3)
    field.judge(waits)


def test_a_driver_that_stood_still_publishes_nothing_more(
    field: Field, clusters: Callable[[int], Cluster]
) -> None:
    works, waits = two_drivers(field, clusters(2))
    works.send_signal(signal.SIGSTOP)
    field.until(lambda: taken_over(field, waits), waits)
    field.epochs(waits, 3)
    works.send_signal(signal.SIGCONT)
    said = works.communicate(timeout=600)[1]
    assert works.returncode == 4, said
    assert "Another engine has taken over" in said and str(waits.pid) in said
    field.judge(waits)
