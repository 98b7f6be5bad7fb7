"""``levada machine``: files, what comes with Levada, what is wrong, this machine."""

import json
import os
import time
from pathlib import Path

import pytest

from levada.cli.machine.probe_machine import machine_text, measure_machine, probe
from levada.cli.main import main
from levada.core.machine_file import read_machine
from levada.errors import UsageError
from levada.placement.hardware.memory_latency import Gauge
from support.fake_sysfs import sys_folder


def test_a_machine_is_shown_as_tables_and_as_json(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert main(["machine", "show", "server-a"]) == 0
    assert "server A: 8 places, 144 cores" in capsys.readouterr().out
    assert main(["machine", "show", "server-a", "--json"]) == 0
    told = capsys.readouterr().out
    (tmp_path / "again.json").write_text(told)
    assert main(["machine", "show", str(tmp_path / "again.json"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads(told)


def test_a_wrong_machine_is_a_sentence_and_exit_code_2(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "m.yaml").write_text(
        "places: [a]\nclock: 1\nline: 64\ncores: 0\nlatency: [[0]]\nbandwidth: [[1]]\n"
    )
    assert main(["machine", "show", str(tmp_path / "m.yaml")]) == 2
    assert "m.yaml gives the place a 0 cores." in capsys.readouterr().err
    assert main(["machine", "show", str(tmp_path / "none.yaml")]) == 2
    assert main(["machine", "show", "server-c"]) == 2
    assert "Did you mean server-" in capsys.readouterr().err


def test_this_machine_is_probed_and_shown_again(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    allowed, file = os.sched_getaffinity(0), tmp_path / "here.yaml"
    assert main(["machine", "probe", "--out", str(file)]) == 0
    assert os.sched_getaffinity(0) == allowed
    capsys.readouterr()
    assert main(["machine", "show", str(file), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert sum(map(len, told["processors"])) <= len(allowed) and told["bandwidth"][0][0] > 0


def test_a_file_of_several_nodes_is_read_again(tmp_path: Path) -> None:
    first, last = min(os.sched_getaffinity(0)), max(os.sched_getaffinity(0))
    nodes = {0: str(first), 1: str(last)} if first != last else {0: str(first)}
    lines = ("10 21", "21 10") if first != last else ("10",)
    root = sys_folder(tmp_path / "sys", nodes, distances=lines)
    gauge = Gauge(lambda own: os.sched_setaffinity(0, own), time.perf_counter, 1 << 16, 1)
    machine, assumed = measure_machine(root, "node", gauge)
    (tmp_path / "m.yaml").write_text(machine_text(machine, assumed))
    again = read_machine(tmp_path / "m.yaml")
    assert again.processors == machine.processors == tuple((int(n),) for n in nodes.values())
    assert (again.latency == machine.latency).all()
    assert (again.bandwidth == machine.bandwidth).all()
    assert all(f"# {sentence}\n" in (tmp_path / "m.yaml").read_text() for sentence in assumed)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_where_a_probe_cannot_be_written_is_a_sentence(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="cannot be written: No such file"):
        probe(tmp_path / "none" / "m.yaml", as_json=False)
    assert main(["machine", "probe", "--by", "rack"]) == 2
    assert "rack" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("master", "said"),
    [
        ("none", "tasks run in one place"),
        ("local[2]", "tasks run in one place"),
        ("sc://host", "does not run on Spark Connect"),
        ("host:7077", "host:7077 is no master of a cluster"),
        ("local-cluster[2,1,1024] --by core", "do not go together"),
        ("local-cluster[2,1,1024] --out none/m.yaml", "none is no folder to write to"),
    ],
)
def test_what_is_no_cluster_is_a_sentence(
    capsys: pytest.CaptureFixture[str], master: str, said: str
) -> None:
    assert main(["machine", "probe", "--master", *master.split()]) == 2
    assert said in capsys.readouterr().err


def test_a_machine_file_has_distances_for_placers(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    graph, file = tmp_path / "g.json", tmp_path / "m.yaml"
    links = [{"source": "0", "target": str(i), "value": 10} for i in (1, 2, 3)]
    nodes = [{"name": str(i)} for i in range(4)]
    graph.write_text(json.dumps({"nodes": nodes, "links": links}))
    file.write_text(
        "places: [h/0, h/1]\nclock: 1\nline: 1024\ncores: 1\nlatency: [[0, 7], [3, 0]]\n"
        "bandwidth: [[9, 5], [5, 9]]\n"
    )
    asked = ["place", str(graph), "--distance", str(file), "--bound", "200%", "--json"]
    assert main([*asked, "--machines", "2"]) == 0
    placers = json.loads(capsys.readouterr().out)["placers"]
    # uniform deals tasks out in turn: 1 and 3 are on the other machine, 7 from the first
    assert placers["uniform"]["distant"] == pytest.approx(2 / 3 * 7)
    assert main([*asked, "--machines", "3"]) == 2
    assert "m.yaml has 2 places for 3 machines" in capsys.readouterr().err
