"""What a run says at its end of failures by chance: runs of pytest in processes of their own, on
tests that fail on purpose.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
RANDOM = """
from hypothesis import example, given, seed, settings, strategies as st

@settings(max_examples=300, deadline=None)
@given(st.integers(0, 10**9))
def test_drawn(i):
    with open("seen.txt", "a") as file:
        file.write(f"{i}\\n")
    assert i % 7 != 3
"""
FIXED = """
from hypothesis import example, given, seed, strategies as st

@given(st.integers())
@example(3)
def test_explicit(i):
    assert i != 3

@seed(1)
@given(st.integers())
def test_seeded(i):
    assert i < 10
"""
PASSES = """
def test_passes():
    pass
"""
OWN = """
import random

def test_own(random_seed):
    number = random.Random(random_seed).random()
    with open("seen.txt", "a") as file:
        file.write(f"{number}\\n")
    assert number < 0
"""
FAILS = """
def test_fails():
    assert False
"""
BROKEN = """
import nothing_of_this_name
"""
TITLE = "found by random cases"


def run(folder: Path, *words: str, **variables: str) -> str:
    """The output of pytest there: without what says that this is CI, and without what the folder's
    tests are set up with.
    """
    environment = {"PATH": "/usr/bin:/bin", "PYTHONPATH": str(TESTS), **variables}
    command = [sys.executable, "-m", "pytest", "-p", "support.random_failures", *words]
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    ).stdout


def write(folder: Path, *parts: str) -> Path:
    (folder / "test_a.py").write_text("".join(parts))
    (folder / "pytest.ini").write_text("[pytest]\n")
    return folder


def command(said: str) -> tuple[dict[str, str], list[str]]:
    """The variables and words of pytest that the section tells; once."""
    (line,) = re.findall(r"repeat with: (.*)", said)
    words = shlex.split(line)
    at = words.index("-m")
    assert words[at - 1] == sys.executable and words[at + 1] == "pytest"
    return dict(word.split("=", 1) for word in words[: at - 1]), words[at + 2 :]


@pytest.mark.long
@pytest.mark.parametrize("workers", [(), ("-n", "1")], ids=["alone", "by a worker"])
def test_a_case_that_was_drawn_is_told_with_the_seed_that_draws_it_again(
    tmp_path: Path, workers: tuple[str, ...]
) -> None:
    write(tmp_path, RANDOM, PASSES)
    said = run(tmp_path, *workers, LEVADA_CASES="300")
    assert TITLE in said and "All other tests passed (1): your installation works." in said
    first = (tmp_path / "seen.txt").read_text()
    (tmp_path / "seen.txt").unlink()
    variables, words = command(said)
    assert variables == {"LEVADA_CASES": "300"}
    assert re.fullmatch(r"test_a\.py::test_drawn --hypothesis-seed=\d+", " ".join(words))
    again = run(tmp_path, *words, **variables)
    assert (tmp_path / "seen.txt").read_text() == first  # every case, in the same order
    assert command(again)[1] == words


def test_a_case_that_hypothesis_kept_is_told_without_a_seed(tmp_path: Path) -> None:
    write(tmp_path, RANDOM)
    assert command(run(tmp_path))[1][1:] != []
    assert command(run(tmp_path))[1] == ["test_a.py::test_drawn"]


def test_a_test_that_draws_by_itself_tells_its_seed(tmp_path: Path) -> None:
    write(tmp_path, OWN, PASSES)
    variables, words = command(run(tmp_path))
    assert list(variables) == ["LEVADA_SEED"] and words == ["test_a.py::test_own"]
    assert command(run(tmp_path, *words, **variables))[0] == variables
    first, second = (tmp_path / "seen.txt").read_text().splitlines()
    assert first == second


@pytest.mark.parametrize(
    ("text", "variables"),
    [
        (FIXED, {}),
        (RANDOM, {"CI": "true"}),
        pytest.param(OWN, {"CI": "true"}, marks=pytest.mark.long),
        pytest.param(PASSES, {}, marks=pytest.mark.long),
        (FAILS, {}),
        pytest.param(BROKEN, {}, marks=pytest.mark.long),
    ],
    ids=["explicit and seeded", "in CI", "drawn in CI", "passing", "failing", "not collected"],
)
def test_what_is_the_same_in_each_run_is_not_told(
    tmp_path: Path, text: str, variables: dict[str, str]
) -> None:
    said = run(write(tmp_path, text), **variables)
    assert TITLE not in said
    assert ("failed" in said or "1 error" in said) == (
        text != PASSES
    ) and "INTERNALERROR" not in said


def test_other_failures_come_first(tmp_path: Path) -> None:
    said = run(write(tmp_path, RANDOM, FAILS, PASSES))
    assert "1 more failed that is the same in each run: look at those first." in said
    assert "your installation works" not in said
