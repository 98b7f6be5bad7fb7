"""What is measured: processes told apart, warm-up left out, counts checked, one JSON object."""

import json
import subprocess
import sys
import time
from typing import Any

import pytest
from bench import kernels, meter
from bench.apart import SideError, apart
from bench.kernel_cases import CASES
from bench.measure import Cpu, Tree, peak_memory
from bench.meter import Meter, side
from bench.result import CountError, Result, best, check_count, ratio
from rich.console import Console

from levada.cli.app.run_app import cpu_seconds

BURN = "import time\nwhile time.process_time() < 1: pass\nprint('x', flush=True)\ntime.sleep(30)"


def test_cpu_of_a_child_counts() -> None:
    tree = Tree()
    whole, before, then = cpu_seconds(), tree.cpu(), cpu_seconds()
    child = subprocess.Popen([sys.executable, "-c", BURN], stdout=subprocess.PIPE)
    try:
        assert child.stdout is not None and child.stdout.readline()
        least, spent = cpu_seconds() - then, tree.cpu() - before
        most = cpu_seconds() - whole
        # below no JVM: ours. An earlier test's session may have left one, which idles beside
        assert spent.driver > 0.9 and spent.jvm + spent.workers < 0.2
        assert least - 0.2 < spent.total < most + 0.2, "but for the ticks of clocks"
        assert peak_memory() > 20e6
    finally:
        child.kill()
        child.wait()
        assert child.stdout is not None
        child.stdout.close()


def test_a_look_without_a_scan_reads_clocks_of_known_processes() -> None:
    tree = Tree()
    child = subprocess.Popen([sys.executable, "-c", BURN], stdout=subprocess.PIPE)
    try:
        tree.cpu()
        before = tree.cpu(scan=False)
        assert child.stdout is not None and child.stdout.readline()
        assert (tree.cpu(scan=False) - before).driver > 0.5
    finally:
        child.kill()
        child.wait()
        assert child.stdout is not None
        child.stdout.close()
    tree.cpu(scan=False)
    assert child.pid not in {pid for pid, _ in tree._seen}, "one has ended, so all are looked for"


@pytest.mark.parametrize("waits", [True, False], ids=["waits", "ignores ends"])
def test_cpu_of_a_child_that_has_ended_is_kept_once(waits: bool) -> None:
    parent = (
        "import signal, subprocess, sys, time\n"
        f"signal.signal(signal.SIGCHLD, signal.{'SIG_DFL' if waits else 'SIG_IGN'})\n"
        f"child = subprocess.Popen([sys.executable, '-c', {BURN!r}])\n"
        "sys.stdin.readline()\nchild.kill(); child.wait()\nprint('y', flush=True)\ntime.sleep(30)"
    )
    pipe, tree = subprocess.PIPE, Tree()
    before = tree.cpu()
    with subprocess.Popen(
        [sys.executable, "-c", parent], stdin=pipe, stdout=pipe, text=True
    ) as process:
        try:
            assert (
                process.stdin is not None
                and process.stdout is not None
                and process.stdout.readline() == "x\n"
            )
            running = tree.cpu() - before
            process.stdin.write("\n")
            process.stdin.flush()
            assert process.stdout.readline() == "y\n"
            ended = tree.cpu() - before
        finally:
            process.kill()
    assert running.total > 0.9
    # a parent counts children that it has waited for by ticks of 10 ms
    assert running.total - 0.05 < ended.total < running.total + 0.9, "not once more"


def test_the_meter_leaves_out_warm_up_and_what_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    clocks = iter([Cpu(1.0, 2.0, 3.0), Cpu(1.5, 3.0, 4.0)])
    walls = iter([10.0, 10.1, 10.4])
    monkeypatch.setattr(meter.Tree, "cpu", lambda self: next(clocks))
    monkeypatch.setattr(meter, "LOOK", 60.0)
    monkeypatch.setattr(time, "perf_counter", lambda: next(walls))
    seen = Meter(warm=100)
    for rows, last in ((50, False), (100, False), (300, False), (1100, True), (1200, True)):
        seen.see(rows, last)
    told = seen.side(7, epoch_rows=5)
    assert (told["count"], told["rows"], told["epochs"], told["epoch_rows"]) == (7, 1000, 2, 5)
    assert (told["cpu_s"], told["rows_per_cpu_s"], told["rows_per_s"]) == (2.5, 400, 2500)
    assert told["cpu"] == {"driver": 0.5, "jvm": 1.0, "workers": 1.0, "compiler": 0.0}
    assert told["epoch_p50_ms"] == 200.0 and told["epoch_p99_ms"] == 298.0


def test_a_wrong_count_is_no_speed() -> None:
    check_count("x", 5, 5)
    with pytest.raises(CountError, match="levada gave 4 results; 5 are right"):
        check_count("levada", 4, 5)


def test_ratios_are_of_rows_per_cpu_second() -> None:
    ours, theirs = (side(1, rows, 1.0, Cpu(2.0)) for rows in (3000, 2000))
    assert ratio(ours, theirs) == 1.5 and best([theirs, ours]) is ours


def test_a_result_is_one_json_object_and_a_table() -> None:
    result = Result(
        "join",
        side(1, 10, 1.0, Cpu(1.0)),
        side(1, 5, 1.0, Cpu(1.0)),
        2.0,
        {"ratio_cpu_best": 3.0, "by_round": [1, 2]},
    )
    told = json.loads(result.to_json())
    assert list(told) == ["bench", "levada", "baseline", "ratio_cpu", "ratio_cpu_best", "by_round"]
    assert told["levada"]["rows_per_cpu_s"] == 10
    console = Console(record=True, width=100, file=open("/dev/null", "w"))  # noqa: SIM115
    result.show(console)
    text = console.export_text()
    assert "rows_per_cpu_s" in text and "ratio_cpu_best  3.0" in text
    assert "by_round" not in text  # of lists JSON tells


@pytest.mark.long
def test_a_side_runs_in_a_process_of_its_own() -> None:
    found: Any = apart("bench.growth:keys_for", width=60_000, keys=7)
    assert found == 7
    with pytest.raises(SideError, match=r"bench\.growth:nothing failed"):
        apart("bench.growth:nothing")


@pytest.mark.parametrize("make", [make for make, _ in CASES], ids=lambda make: make.__name__)
def test_each_kernel_and_its_twin_give_the_same(make) -> None:  # type: ignore[no-untyped-def]
    case = make(1000)
    assert kernels.same(case.kernel(), case.twin())


def test_results_that_differ_are_told() -> None:
    assert not kernels.same((1, [2.0]), (1, [2.1])) and not kernels.same([1, 2], [1, 3])
