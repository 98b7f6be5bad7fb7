"""Tells what failed by chance: a random case that a test found is a mistake of Levada, and no
broken installation.

A property test looks at other cases in each run, unless CI is set. When one fails, the run ends
with a section that says so, with the seed and the command that look at the same cases again. So
does a test that draws a number of its own: it takes it from the fixture ``random_seed``, which
``LEVADA_SEED`` fixes, and CI, so that a change meets no new case there. Failures of explicit
examples, and those of CI, are the same in each run: they are left out.

What repeats a test goes with its report (``user_properties``), so it comes from the workers of
pytest-xdist, too.
"""

from __future__ import annotations

import os
import secrets
import shlex
import sys
from collections.abc import Generator, Sequence
from typing import Any

import pytest

REPEAT = "levada-repeat"  # the property of a report: what a command needs, [variables, arguments]
VARIABLES = (
    "LEVADA_CASES",
    "LEVADA_FUZZ",
    "LEVADA_KILLS",
)  # which change how many cases there are, and so which ones


@pytest.fixture
def random_seed(request: pytest.FixtureRequest) -> int:
    """A number to draw from: ``LEVADA_SEED``, or another one in each run, but in CI."""
    if "CI" in os.environ and "LEVADA_SEED" not in os.environ:
        return 1
    seed = int(os.environ.get("LEVADA_SEED", secrets.randbits(32)))
    request.node.user_properties.append((REPEAT, [{"LEVADA_SEED": str(seed)}, []]))
    return seed


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: Any
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A failed property test's report gets what repeats it."""
    report = yield
    if report.when == "call" and report.failed and (arguments := _drawn(item)) is not None:
        report.user_properties.append((REPEAT, [{}, arguments]))
    return report


def _drawn(item: pytest.Item) -> list[str] | None:
    """The arguments that repeat a property test which failed; None where the case was not drawn.

    Hypothesis keeps a case that fails, and looks at it first the next time: then it is no seed that
    leads to it.
    """
    test = getattr(item, "obj", None)
    used = getattr(test, "_hypothesis_internal_use_settings", None)
    fixed = (
        used is None
        or used.derandomize
        or getattr(test, "_hypothesis_internal_use_seed", None) is not None
    )
    if fixed or not getattr(item, "_hypothesis_failing_examples", None):
        return None
    given = item.config.getoption("--hypothesis-seed", None)
    seed = (
        getattr(test, "_hypothesis_internal_use_generated_seed", None) if given is None else given
    )
    kept = "during generate phase" not in getattr(
        item, "hypothesis_statistics", "during generate phase"
    )
    return [] if kept or seed is None else [f"--hypothesis-seed={seed}"]


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """The section at the end."""
    stats: dict[str, list[Any]] = terminalreporter.stats
    failed = [*stats.get("failed", []), *stats.get("error", [])]
    found = [
        report for report in failed if REPEAT in dict(getattr(report, "user_properties", ()))
    ]  # not of collection
    if not found:
        return
    terminalreporter.section("found by random cases")
    for line in _tell(found, len(failed) - len(found), len(stats.get("passed", []))):
        terminalreporter.write_line(line)


def _tell(found: Sequence[Any], others: int, passed: int) -> list[str]:
    cases = "A random case" if len(found) == 1 else f"{len(found)} random cases"
    if others:
        rest = (
            f"{others} more failed that {'are' if others > 1 else 'is'} the same in each "
            "run: look at those first."
        )
    elif passed:
        rest = f"All other tests passed ({passed}): your installation works."
    else:
        rest = "No other test has run."
    lines = [f"{cases} found a difference. {rest}", ""]
    for report in found:
        lines += [f"  {report.nodeid}", f"    repeat with: {_command(report)}"]
    return [
        *lines,
        "",
        "These tests try other cases in each run; what they found is a mistake in Levada "
        "(or in the test) that nobody has seen yet.",
        "Please report it, with the lines above and what is printed under FAILURES: the "
        "case, and how Hypothesis reproduces it.",
    ]


def _command(report: Any) -> str:
    variables, arguments = dict(report.user_properties)[REPEAT]
    variables = {name: os.environ[name] for name in VARIABLES if name in os.environ} | variables
    python = (
        os.path.relpath(sys.executable)
        if sys.executable.startswith(os.getcwd())
        else sys.executable
    )
    words = [
        *(f"{name}={value}" for name, value in variables.items()),
        python,
        "-m",
        "pytest",
        report.nodeid,
    ]
    return shlex.join([*words, *arguments])
