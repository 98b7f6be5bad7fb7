"""Executors, workers and drivers that come, leave or stand still on a standalone cluster: every
result is there, and once. ``make cluster`` runs it.

Streams grow while a run goes on, by as much as is read; so there is always work when something
happens, however fast a machine is. What is published is compared with a run alone over what the
streams have come to. With nine partitions and two exchanges every epoch is spread over tasks.
"""

from __future__ import annotations

import re
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from growing_runs import SOON, SPREAD, Field, all_there, taken_over, two_drivers

from cluster import Cluster
from levada.checkpoint.state_files import UNUSED
from support.polling import until

pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(1500),
    pytest.mark.long,
]

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
