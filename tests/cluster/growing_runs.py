"""Runs over a stream that grows, on a cluster whose parts come, leave, stand still or are cut off.

The stream grows by as much as is read; so there is always work when something happens, however fast
a machine is. What is published is compared with a run alone over what the stream has come to. With
nine partitions and two exchanges every epoch is spread over tasks.
"""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from hosts import HERE, Place

from cluster import Cluster, environment
from levada.checkpoint.checkpoint_folder import newest_manifest
from levada.checkpoint.leadership.commit_log import last_takeover
from levada.checkpoint.leadership.heartbeat import read_standbys
from levada.checkpoint.manifest import Manifest
from support.polling import newest_epoch, until

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
TURN = ("--standby", "--lease", "4s")
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
        return self.start_at(HERE, out, *more, **config)

    def start_at(self, place: Place, out: str, *more: str, **config: str) -> subprocess.Popen[str]:
        """A run at a place."""
        settings = self.folder / f"conf-{len(self.runs)}"
        settings.mkdir()
        text = "".join(f"{name} {value}\n" for name, value in config.items())
        (settings / "spark-defaults.conf").write_text(text)
        given = ["run", "q.rq", "--stream", "s=s.nt", "--out", out, "--epoch-rows", str(CHUNK)]
        run = subprocess.Popen(
            [*place.command, sys.executable, "-m", "levada", *given, *more],
            cwd=self.folder,
            env=environment() | {**place.variables} | {"SPARK_CONF_DIR": str(settings)},
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


def all_there(field: Field, run: subprocess.Popen[str], executors: int) -> None:
    """Epochs have run over so many executors."""

    def there() -> bool:
        homes = field.manifest.executors
        return homes is not None and homes.executors == executors

    field.until(there, run)
    field.epochs(run, 3)


def two_drivers(
    field: Field, cluster: Cluster, places: Sequence[Place] = (HERE, HERE)
) -> list[subprocess.Popen[str]]:
    """One at work, and one that waits, at two places."""
    given = ("--master", cluster.url, "--checkpoint", "ck", *SPREAD)
    works = field.start_at(places[0], "spread", *given, **SOON, **ALONE)
    all_there(field, works, 1)
    waits = field.start_at(places[1], "spread", *given, *TURN, **SOON, **ALONE)
    field.until(lambda: read_standbys(field.checkpoint), works)
    field.epochs(works, 2)
    return [works, waits]


def taken_over(field: Field, by: subprocess.Popen[str]) -> bool:
    last = last_takeover(field.checkpoint)
    return last is not None and last.pid == by.pid
