"""Where processors are: folders laid out as /sys, and this machine's own."""

import os
from pathlib import Path

import pytest

from levada.errors import UsageError
from levada.placement.hardware.cpu_topology import MAX_PROCESSORS, read_layout
from support.fake_sysfs import sys_folder

PACKAGES = {0: 0, 1: 0, 2: 1, 3: 1}


def test_nodes_with_distances(tmp_path: Path) -> None:
    root = sys_folder(
        tmp_path, {0: "0-1", 1: "2-3"}, distances=("10 21", "22 10"), packages=PACKAGES
    )
    found = read_layout(root, range(4))
    assert found.places == ("node0", "node1") and found.processors == ((0, 1), (2, 3))
    assert found.cores == (2, 2) and found.distance == ((10.0, 21.0), (22.0, 10.0))
    assert (found.clock, found.line, found.assumed) == (2.6, 128, ())


def test_what_is_not_allowed_is_left_out_and_told(tmp_path: Path) -> None:
    nodes = {0: "0-1", 1: "2-3", 2: "", 4: "4"}
    lines = ("10 21 30 40", "21 10 31 41", "30 31 10 50", "40 41 50 10")
    root = sys_folder(tmp_path, nodes, distances=lines, packages=PACKAGES | {4: 2})
    found = read_layout(root, {1, 4})
    assert found.places == ("node0", "node4") and found.processors == ((1,), (4,))
    assert found.distance == ((10.0, 40.0), (40.0, 10.0))
    assert found.assumed == (
        "node1 is left out: none of its processors is allowed.",
        "node2 is left out: it has no processors.",
    )


@pytest.mark.parametrize("line", ["10", "10 x", "10 0", "", "10 21 30", "10 nan", "10 inf"])
def test_distances_that_say_nothing_are_measured(tmp_path: Path, line: str) -> None:
    root = sys_folder(tmp_path, {0: "0", 1: "1"}, distances=(line, line), packages={0: 0, 1: 0})
    found = read_layout(root, {0, 1})
    assert found.distance is None
    assert found.assumed == ("node0 does not tell how far all 2 nodes are.",)


def test_without_nodes_sockets_are_places(tmp_path: Path) -> None:
    found = read_layout(sys_folder(tmp_path, packages=PACKAGES), range(4))
    assert found.places == ("socket0", "socket1") and found.distance is None
    assert len(found.assumed) == 1 and "devices/system/node is not there" in found.assumed[0]


def test_one_node_of_two_sockets(tmp_path: Path) -> None:
    root = sys_folder(tmp_path, {0: "0-3"}, distances=("10",), packages=PACKAGES)
    assert read_layout(root, range(4)).places == ("socket0", "socket1")
    assert read_layout(root, {2, 3}).places == ("node0",)
    assert read_layout(root, range(4), "node").places == ("node0",)
    singles = read_layout(root, range(4), "core")
    assert singles.places == ("cpu0", "cpu1", "cpu2", "cpu3") and singles.cores == (1,) * 4


def test_an_empty_folder_is_one_place_with_all_assumed(tmp_path: Path) -> None:
    found = read_layout(tmp_path, {3, 5})
    assert found.places == ("socket0",) and found.processors == ((3, 5),)
    assert (found.clock, found.line, len(found.assumed)) == (2.0, 64, 4)
    with pytest.raises(UsageError, match="names no node that this process may run on"):
        read_layout(tmp_path, {3, 5}, "node")


def test_the_clock_of_cpuinfo_is_told_as_such(tmp_path: Path) -> None:
    cpus = "processor\t: 0\ncpu MHz\t\t: 2400.125\nprocessor\t: 1\ncpu MHz\t\t: 800\n"
    found = read_layout(tmp_path, {0, 1}, cpus=cpus)
    assert found.clock == 2.4 and any("/proc/cpuinfo" in said for said in found.assumed)


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({"fs/cgroup/cpu.max": "max 100000"}, (2, 2)),
        ({"fs/cgroup/a/b/cpu.max": "300000 100000"}, (2, 1)),
        ({"fs/cgroup/a/cpu.max": "100000 100000", "fs/cgroup/a/b/cpu.max": "max 1"}, (1,)),
        ({"fs/cgroup/cpu.max": "50000 100000"}, (1,)),
        ({"fs/cgroup/cpu/cpu.cfs_quota_us": "-1", "fs/cgroup/cpu/cpu.cfs_period_us": "5"}, (2, 2)),
        ({"fs/cgroup/cpu/cpu.cfs_quota_us": "10", "fs/cgroup/cpu/cpu.cfs_period_us": "5"}, (1, 1)),
        ({"fs/cgroup/cpu.max": "900000 100000"}, (2, 2)),
        ({"fs/cgroup/cpu.max": "nonsense"}, (2, 2)),
    ],
)
def test_control_groups_bound_cores(
    tmp_path: Path, files: dict[str, str], cores: tuple[int, ...]
) -> None:
    nodes = {0: "0-1", 1: "2-3"}
    root = sys_folder(tmp_path, nodes, distances=("10 21", "21 10"), packages=PACKAGES, files=files)
    found = read_layout(root, range(4), group="/a/b")
    assert found.cores == cores and len(found.places) == len(cores) == len(found.processors)
    assert found.distance is not None and len(found.distance) == len(cores)
    assert any("control group" in said for said in found.assumed) == (sum(cores) < 4)


def test_too_many_single_processors_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="17 processors are too many"):
        read_layout(tmp_path, range(MAX_PROCESSORS + 1), "core")


@pytest.mark.skipif(not Path("/sys/devices/system/cpu/online").exists(), reason="no /sys here")
def test_this_machine() -> None:
    allowed = os.sched_getaffinity(0)
    found = read_layout(Path("/sys"), allowed)
    assert sorted(n for own in found.processors for n in own) <= sorted(allowed)
    assert sum(found.cores) <= len(allowed) and found.clock > 0
