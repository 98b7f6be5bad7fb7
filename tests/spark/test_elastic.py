"""Workers that come and leave on a standalone cluster: every result is there, and once. ``make
cluster`` runs it.

Streams grow while a run goes on, by as much as is read; so there is always work when something
happens, however fast a machine is. What is published is compared with a run alone over what the
streams have come to. With nine partitions and two exchanges every epoch is spread over tasks.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from cluster import Cluster, environment

from awaiting import newest_epoch, until
from levada.runtime.store.checkpoint import newest_manifest
from levada.runtime.store.manifest import Manifest

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(1500),
    pytest.mark.skipif(not os.environ.get("LEVADA_CLUSTER"), reason="make cluster runs it"),
]

QUERY = """PREFIX : <http://e/>
SELECT ?b (COUNT(*) AS ?n) FROM NAMED WINDOW :w ON :s [RANGE PT4S STEP PT1S]
WHERE { WINDOW :w { ?a :p ?b . ?a :q ?c } } GROUP BY ?b
"""
CHUNK = 100  # elements, a second
SPREAD = ("--partitions", "9")
# what has gone is known to be gone after some seconds
SOON = {
    "spark.network.timeout": "30s",
    "spark.network.timeoutInterval": "5s",
    "spark.executor.heartbeatInterval": "2s",
}


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
        alone = self.start("alone", "--once", "--master", "none")
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


def all_there(field: Field, run: subprocess.Popen[str], executors: int) -> None:
    """Epochs have run over so many executors."""

    def there() -> bool:
        homes = field.manifest.homes
        return homes is not None and homes.executors == executors

    field.until(there, run)
    field.epochs(run, 3)


def kill_worker(cluster: Cluster, field: Field, run: subprocess.Popen[str]) -> None:
    """When its tasks have just sent what others are to read."""
    before = cluster.sent(0)
    field.until(lambda: cluster.sent(0) - before, run)
    cluster.kill_worker(0)


def test_a_worker_dies_between_two_stages(field: Field, clusters: Callable[[int], Cluster]) -> None:
    cluster = clusters(3)
    run = field.start("spread", "--master", cluster.url, "--checkpoint", "ck", *SPREAD, **SOON)
    all_there(field, run, 3)
    kill_worker(cluster, field, run)
    field.epochs(run, 3)
    field.judge(run)


def test_workers_come_and_partitions_follow(
    field: Field, clusters: Callable[[int], Cluster]
) -> None:
    cluster = clusters(1)
    master = ("--master", cluster.url, "--checkpoint", "ck", "--partitions", "auto")
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
