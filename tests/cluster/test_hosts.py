"""Several hosts (``hosts.py``): a link is cut for a minute, a clock is two minutes off, a driver
loses the network and another takes over. Every result is there, and once.
"""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from growing_runs import SOON, SPREAD, Field, all_there, taken_over, two_drivers
from hosts import Hosts, missing_parts

from cluster import Cluster
from support.polling import until

MISSING = missing_parts()
pytestmark = [
    pytest.mark.spark,
    pytest.mark.timeout(1500),
    pytest.mark.long,
    pytest.mark.skipif(MISSING != "", reason=f"hosts need {MISSING}"),
    pytest.mark.xdist_group("hosts"),
]

CUT = 60.0  # s
OFF = 120  # s
Placed = Callable[..., tuple[Hosts, Cluster, Field]]


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Placed]:
    """A cluster of two workers at hosts 1 and 2, and a stream; drivers are at hosts 3 and 4."""
    ends: list[Callable[[], None]] = []

    def make(**shifts: int) -> tuple[Hosts, Cluster, Field]:
        (tmp_path / "cluster").mkdir()
        hosts = Hosts(tmp_path, 5, {int(name[4:]): seconds for name, seconds in shifts.items()})
        ends.append(hosts.end)
        cluster = Cluster(tmp_path / "cluster", 2, hosts)
        ends.append(cluster.stop)
        field = Field(tmp_path)
        ends.append(field.end)
        return hosts, cluster, field

    yield make
    for end in reversed(ends):
        end()


def cut_for_a_minute(hosts: Hosts, host: int, field: Field, run: subprocess.Popen[str]) -> None:
    """Epochs may stand still meanwhile."""
    hosts.cut(host)
    field.grow()
    time.sleep(CUT)
    assert run.poll() is None, "a run waits for its cluster"
    hosts.mend(host)


@pytest.mark.parametrize("host", [0, 1])
def test_a_link_to_the_master_or_a_worker_is_cut_for_a_minute(place: Placed, host: int) -> None:
    hosts, cluster, field = place()
    given = ("--master", cluster.url, "--checkpoint", "ck", *SPREAD)
    run = field.start_at(hosts.place(3), "spread", *given, **SOON)
    all_there(field, run, 2)
    cut_for_a_minute(hosts, host, field, run)
    field.epochs(run, 3)
    field.judge(run)


def test_clocks_that_are_two_minutes_off(place: Placed) -> None:
    """That of a worker is behind, and that of the driver that takes over is ahead."""
    hosts, cluster, field = place(host1=-OFF, host4=OFF)
    now = subprocess.check_output(
        [*hosts.place(4).command, "date", "+%s"], env={**hosts.place(4).variables}, text=True
    )
    assert int(now) > time.time() + OFF / 2
    works, waits = two_drivers(field, cluster, [hosts.place(3), hosts.place(4)])
    works.kill()
    field.until(lambda: taken_over(field, waits), waits)
    field.epochs(waits, 3)
    field.judge(waits)


def test_another_driver_goes_on_for_one_that_loses_the_network(place: Placed) -> None:
    """It keeps its turn while it reaches the checkpoint, which is on a disk here, so it is killed:
    its host cannot be told apart from one that is only slow.
    """
    hosts, cluster, field = place()
    works, waits = two_drivers(field, cluster, [hosts.place(3), hosts.place(4)])
    hosts.cut(3)
    field.grow()
    time.sleep(CUT)
    works.kill()
    until(lambda: taken_over(field, waits), process=waits)
    hosts.mend(3)
    field.epochs(waits, 3)
    field.judge(waits)
