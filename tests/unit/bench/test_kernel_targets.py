"""Kernels by targets: which ones a machine can run, what is told, and a process that fails."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from bench import kernel_targets
from bench.__main__ import Name, main
from bench.apart import SideError
from bench.kernel_targets import OURS, TARGETS, Compared, behind, compiled, split
from rich.console import Console
from typer import BadParameter

HASWELL = TARGETS["x86_64"]["haswell"].split()


def test_a_machine_without_wide_registers_runs_what_needs_none() -> None:
    runnable, left_out = split("x86_64", dict.fromkeys([*HASWELL, "sse4a"], True))
    assert runnable == ["haswell", "znver3"]
    assert set(left_out) == {"znver4", "skylake-avx512"} and "avx512f" in left_out["znver4"]


def test_a_feature_that_is_known_and_absent_is_lacking() -> None:
    _, left_out = split("x86_64", dict.fromkeys(HASWELL, True) | {"avx2": False})
    assert left_out["haswell"] == ["avx2"]


def test_other_machines_have_their_own_targets_or_none() -> None:
    assert split("aarch64", {"neon": True}) == (["generic"], {})
    assert split("riscv64", {}) == ([], {})


def test_what_is_far_from_its_best_and_what_is_left_out_are_told() -> None:
    rates = {
        "quick": {"haswell": 2_000_000, OURS: 2_100_000},
        "slow": {"haswell": 300_000_000, OURS: 200_000_000},
    }
    assert [behind(each) for each in rates.values()] == [1.0, 1.5]
    more = {"rates": rates, "far": ["slow"], "left_out": {"znver4": ["avx512f"]}}
    told = io.StringIO()
    Compared("kernels --targets", {}, more=more).show(Console(file=told, width=100))
    lines = [line.split() for line in told.getvalue().splitlines()]
    assert ["quick", "2.0", "2.1", "1.00"] in lines
    assert ["slow", "300", "200", "1.50", "*"] in lines
    assert "znver4 is left out: this machine has no avx512f." in told.getvalue()


def test_the_best_round_counts_and_what_seems_far_is_asked_again() -> None:
    class Answering:
        """A process that says these rates in turn."""

        def __init__(self, name: str, rates: list[int]) -> None:
            self.name, self.rates = name, rates

        def ask(self, what: str, *_: object) -> int:
            return self.rates.pop(0) if what == "time" else 1

    again = [10] * (2 * kernel_targets.ROUNDS - 1) + [19]
    ours, other = Answering(OURS, again), Answering("haswell", [20] * 2 * kernel_targets.ROUNDS)
    assert kernel_targets._best([other, ours], "k", 1.0) == {"haswell": 20, OURS: 19}  # type: ignore[list-item]
    near = Answering(OURS, [19] * kernel_targets.ROUNDS)  # it has no more to say
    other = Answering("haswell", [20] * kernel_targets.ROUNDS)
    assert kernel_targets._best([other, near], "k", 1.0) == {"haswell": 20, OURS: 19}  # type: ignore[list-item]


def test_the_other_process_loads_checks_and_times() -> None:
    answers = kernel_targets._Answers()
    assert "cut_lines" in answers.load()
    assert answers.check("scatter_order", 0.1) and answers.time("scatter_order", 0.01) > 0


def test_a_process_that_fails_is_told(tmp_path: Path) -> None:
    with compiled(OURS, tmp_path) as process, pytest.raises(SideError, match="for levada failed"):
        process.ask("nothing")


def test_targets_go_with_kernels_only() -> None:
    with pytest.raises(BadParameter, match="kernels only"):
        main(Name.PARSE, targets=True)
