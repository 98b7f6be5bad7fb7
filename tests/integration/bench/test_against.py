"""Two trees in turn: which epochs are pairs, what fails, and a run of both sides for real. No clock
decides.
"""

from __future__ import annotations

import dataclasses
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from bench import against, measure, trees
from bench.against import Comparison
from bench.pairs import WARM, EpochError, Pair, Ratios, Run, Side, both_sides, run_pairs
from bench.spark_counts import NAMES
from bench.steady import SETTLED, is_settled
from bench.tree_engine import Spec
from bench.workloads import WORKLOADS

TINY = dataclasses.replace(WORKLOADS["small"], epochs=3)


def report(cpu: float = 1.0, rows: int = 10, **more: Any) -> dict[str, Any]:
    parts = {"driver": cpu, "jvm": 0.0, "workers": 0.0, "compiler": 0.0, **more.pop("parts", {})}
    return {"epoch": 1, "rows": rows, "results": 5, "ms": cpu, "cpu": parts, "counts": {}, **more}


class Script:
    """A side that has its reports beforehand, and notes when it is called."""

    def __init__(self, reports: Sequence[dict[str, Any]], calls: list[Any]) -> None:
        self._reports, self._calls = iter(reports), calls

    def run_epoch(self) -> dict[str, Any]:
        self._calls.append(self)
        return next(self._reports)


def sides(*reports: Sequence[dict[str, Any]]) -> tuple[list[Script], list[Any]]:
    calls: list[Any] = []
    return [Script(each, calls) for each in reports], calls


def test_pairs_are_epochs_of_both_sides_in_random_order() -> None:
    both, calls = sides([report(2.0)] * 60, [report(3.0)] * 60)
    run = run_pairs(both, 10, 40, 60, stepped=True)
    assert (len(run.pairs), run.warm) == (40, WARM)
    assert run.ratios == Ratios(1.5, 1.5, 1.5)
    turns = [calls[i : i + 2] for i in range(0, len(calls), 2)]
    assert all(set(turn) == set(both) for turn in turns)
    assert {turn[0] for turn in turns} == set(both)


def test_epochs_that_are_not_full_are_left_out() -> None:
    epochs = [report(), report(rows=1), report(rows=10)] * 30
    run = run_pairs(sides(epochs, epochs)[0], 10, 20, 60, stepped=True)
    assert {first["rows"] for first, _ in run.pairs} == {10}


def test_epochs_of_other_rows_are_not_compared() -> None:
    both, _ = sides([report(rows=10)] * 9, [report(rows=11)] * 9)
    with pytest.raises(EpochError, match="read 10 and 11 rows"):
        run_pairs(both, 10, 2, 60, stepped=True)


def test_on_spark_warm_up_lasts_until_the_jvm_costs_no_less() -> None:
    cold = [report(parts={"jvm": 200.0 - 10 * i}) for i in range(19)]
    warm = [report(parts={"jvm": 10.0})] * 60
    run = run_pairs(sides(cold + warm, warm)[0], 10, 5, 60, stepped=False)
    assert len(cold) < run.warm <= len(cold) + 2 * SETTLED
    assert run_pairs(sides(cold + warm, warm)[0], 10, 5, 9, stepped=False).warm == 9


def test_the_compiler_of_a_jvm_is_no_cost_of_an_epoch() -> None:
    parts = {"jvm": 30.0, "compiler": 20.0}
    assert Ratios.from_pairs([(report(10.0), report(10.0, parts=parts))] * 2).median == 2.0


def test_costs_that_fall_are_not_settled() -> None:
    assert is_settled([5.0] * 2 * SETTLED) and not is_settled([5.0] * (2 * SETTLED - 1))
    assert is_settled([1.0] * SETTLED + [5.0] * SETTLED)
    assert not is_settled([5.0] * SETTLED + [4.0] * SETTLED)


def compared(
    pairs: Sequence[Pair],
    before: dict[str, float] | None = None,
    now: dict[str, float] | None = None,
) -> Comparison:
    return Comparison("w1", "0" * 40, True, Run(pairs, 8), (before or {}, now or {}))


def test_a_run_fails_by_the_lower_quartile_and_not_by_the_median() -> None:
    slower = [(report(100.0), report(cpu)) for cpu in (100.0, 103.0, 110.0, 120.0)]
    assert compared(slower).run.ratios.median > 1.06 and not compared(slower).failures
    slower[0] = (report(100.0), report(104.0))
    slower[1] = (report(100.0), report(104.0))
    assert compared(slower).failures == ["CPU 1.04 times (lower quartile)"]


def test_more_of_a_count_fails_and_more_calls_are_a_warning() -> None:
    same = [(report(), report())] * 4
    worse = compared(same, {"syncs": 8.0, "calls": 900.0}, {"syncs": 10.0, "calls": 1000.0})
    assert worse.failures == ["syncs 10.0, 8.0 before"]
    assert worse.warnings == ["calls 1,000.0, 900.0 before"]
    near = compared(
        same, {"syncs": 8.0, "bytes read": 1000.0}, {"syncs": 8.4, "bytes read": 1020.0}
    )
    assert not near.failures and not near.warnings
    assert compared(same, {}, {"jobs": 1.0}).failures == ["jobs 1.0, 0 before"]


def test_other_results_fail() -> None:
    differ = [(report(), report(results=4))] * 4
    assert compared(differ).failures == ["4 results, 5 before"]


def test_every_workload_has_a_baseline() -> None:
    commits = against.baselines()
    assert set(commits) == set(WORKLOADS)
    assert all(len(commit) == 40 and int(commit, 16) for commit in commits.values())


def git(folder: Path, *arguments: str) -> None:
    who = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", "-C", str(folder), *who, *arguments], check=True, capture_output=True)


def test_the_tree_of_a_commit_is_made_once_and_again_when_it_has_gone(tmp_path: Path) -> None:
    root, environ = tmp_path / "root", {"XDG_CACHE_HOME": str(tmp_path / "cache")}
    root.mkdir()
    git(root, "init", "-q")
    (root / "a").write_text("before")
    git(root, "add", "a")
    git(root, "commit", "-q", "-m", "before")
    commit = trees.resolve_commit("HEAD", root)
    (root / "a").write_text("now")
    git(root, "commit", "-q", "-a", "-m", "now")
    tree = trees.tree_of(commit, environ, root)
    assert (tree / "a").read_text() == "before" and tree.is_relative_to(tmp_path / "cache")
    (tree / "kernels").touch()
    assert trees.tree_of(commit, environ, root) == tree and (tree / "kernels").exists()
    tree.rename(tmp_path / "gone")
    assert trees.tree_of(commit, environ, root) == tree and not (tree / "kernels").exists()
    with pytest.raises(trees.TreeError, match="no tree of nothing"):
        trees.resolve_commit("nothing", root)


def test_kernels_of_both_trees_are_for_one_size_of_registers_unless_a_processor_is_named() -> None:
    environs: list[dict[str, str]] = [{}, {"NUMBA_CPU_NAME": "znver4"}, {}]
    for environ, machine in zip(environs, ("x86_64", "x86_64", "aarch64"), strict=True):
        trees.choose_processor(environ, machine)
    haswell = {"NUMBA_CPU_NAME": "haswell", "NUMBA_CPU_FEATURES": ""}
    assert environs == [haswell, {"NUMBA_CPU_NAME": "znver4"}, {}]


BUSY = """
import pathlib, threading, time
def compile():
    task = threading.get_native_id()
    pathlib.Path(f"/proc/self/task/{task}/comm").write_text("C1 CompilerThread0")
    while time.thread_time() < 0.2: pass
    print("x", flush=True)
    time.sleep(60)
threading.Thread(target=compile, daemon=True).start()
while time.thread_time() < 0.2: pass
time.sleep(60)
"""


def test_threads_of_the_compiler_are_told_apart() -> None:
    with subprocess.Popen([sys.executable, "-c", BUSY], stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None and process.stdout.readline() == b"x\n"
            known: dict[tuple[int, str], float] = {(1, "1"): 9.0, (process.pid, "1"): 1.0}
            used = measure._compiler(process.pid, known)
            whole = measure._clock(process.pid, 0.0)
        finally:
            process.kill()
    assert 1.2 <= used < 1.0 + whole, "those that have ended count, other JVMs do not"
    assert measure._clock(process.pid, 7.0) == 7.0


@pytest.fixture(scope="module")
def spec(tmp_path_factory: pytest.TempPathFactory) -> Spec:
    return TINY.prepare(tmp_path_factory.mktemp("against"), 40)


@pytest.mark.long
def test_both_sides_of_one_tree_do_the_same(spec: Spec) -> None:
    with both_sides((trees.ROOT, trees.ROOT), spec, stepped=True) as both:
        run = run_pairs(both, spec.rows, 3, 4, stepped=True)
    assert [first["rows"] for first, _ in run.pairs] == [201] * 3
    assert all(first["results"] == second["results"] for first, second in run.pairs)
    assert all(first["cpu"]["driver"] > 0 and not first["counts"] for first, _ in run.pairs)
    first, second = (against.count(trees.ROOT, spec) for _ in range(2))
    assert set(first) == set(second) >= {"calls", "syncs", "bytes read", "bytes written"}
    assert first["syncs"] == second["syncs"] > 0 and first["calls"] > 1000


@pytest.mark.long
def test_epochs_without_data_are_pairs_too(tmp_path: Path) -> None:
    empty = WORKLOADS["empty"].prepare(tmp_path, 40)
    with both_sides((trees.ROOT, trees.ROOT), empty, stepped=True) as both:
        run = run_pairs(both, empty.rows, 3, 4, stepped=True)
    assert [first["rows"] for first, _ in run.pairs] == [0] * 3


@pytest.mark.long
@pytest.mark.spark
def test_jobs_and_tasks_on_spark_are_counted(tmp_path: Path) -> None:
    spec = dataclasses.replace(WORKLOADS["w1"].prepare(tmp_path, 12), partitions=1)
    side = Side(trees.ROOT, spec, stepped=False)
    try:
        side.report()
        reports = [side.run_epoch() for _ in range(8)]
    finally:
        side.close()
    counts = Run([(each, each) for each in reports[2:]], 2).counts(0)
    assert set(counts) == set(NAMES) and counts["jobs"] == 1 and counts["tasks"] >= 1
    assert counts["py4j calls"] > 1 and counts["bytes to the JVM"] > 100
    assert all(each["cpu"]["jvm"] > 0 for each in reports)


def test_a_workload_that_is_not_there_is_refused() -> None:
    command = [sys.executable, "-m", "bench", "against", "baseline", "w9"]
    done = subprocess.run(command, cwd=trees.ROOT, capture_output=True, text=True)
    assert done.returncode == 2 and "w9" in done.stderr
