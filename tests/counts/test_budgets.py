"""The ratchet: an epoch does no more than its budget says, in counts that no busy machine changes.

``budgets.toml`` has a budget for each count of each workload, for the versions of
``requirements.lock``. ``make counts`` writes lower budgets where less is done. A commit that raises
a budget says why in its message.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path

import pytest

HERE = Path(__file__).parent
BUDGETS = tomllib.loads((HERE / "budgets.toml").read_text())
TOLERANCE = {
    "calls": 0.01,
    "msgspec calls": 0.1,
    "bytes written": 0.02,
    "py4j calls": 0.05,
    "bytes to the JVM": 0.05,
}
"""By how much of its budget a count may be more: which runs of state are put together differs from
run to run.
"""
ABSOLUTE = 0.9
BY_INPUT, ABSOLUTE_BY_INPUT = "by bytes of input", 0.02
LOCKED = ("numpy", "polars", "pyarrow", "msgspec", "numba", "xxhash")


def locked() -> dict[str, str]:
    """The versions for which the budgets hold."""
    lines = (HERE.parents[1] / "requirements.lock").read_text().splitlines()
    pinned = dict(line.split("==") for line in lines if "==" in line)
    return {name: pinned[name] for name in LOCKED} | {"python": pinned["# python"]}


def installed() -> dict[str, str]:
    python = ".".join(platform.python_version_tuple()[:2])
    return {name: version(name) for name in LOCKED} | {"python": python}


def measured(workload: str) -> dict[str, float]:
    """The counts of an epoch, by a process of its own."""
    command = [sys.executable, str(HERE / "measure.py"), workload]
    root = HERE.parents[1]
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), *sys.path])}
    done = subprocess.run(command, cwd=root, env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    counts: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return counts


def marks_of(workload: str) -> list[pytest.MarkDecorator]:
    """Returns the marks of a workload: each on Spark starts a JVM, and two have all counts."""
    on_spark = "on Spark" in workload
    return [pytest.mark.spark] * on_spark + [pytest.mark.long] * (on_spark and workload[:2] != "w1")


def most(name: str, budget: float) -> float:
    """What a count may be at most."""
    absolute = ABSOLUTE_BY_INPUT if name.endswith(BY_INPUT) else ABSOLUTE
    return budget * (1 + TOLERANCE.get(name, 0)) + absolute


@pytest.mark.skipif(
    locked() != installed(), reason="the budgets hold for the versions of requirements.lock"
)
@pytest.mark.parametrize("workload", [pytest.param(w, marks=marks_of(w)) for w in BUDGETS])
def test_an_epoch_does_no_more_than_its_budget(workload: str) -> None:
    counts, budgets = measured(workload), BUDGETS[workload]
    assert set(counts) == set(budgets)
    more = {
        name: (count, budgets[name])
        for name, count in counts.items()
        if count > most(name, budgets[name])
    }
    assert not more, f"{workload}: more than its budget (count, budget): {more}"
    for name, count in counts.items():
        if count < 0.9 * budgets[name]:
            print(f"{workload}: {name} {count} of {budgets[name]}: write it with make counts")


def test_one_more_pass_over_the_input_is_more_than_a_budget() -> None:
    assert 3.02 <= most(f"bytes read {BY_INPUT}", 3.019) < 3.1
    assert most("tasks", 1.0) < 2 and most("syncs", 8.0) < 9 and most("calls", 1000) < 1011


def main() -> None:
    """Writes the budgets of counts that are lower now, and of new ones."""
    if locked() != installed():
        sys.exit(f"The budgets hold for {locked()}; here is {installed()}.")
    for workload, budgets in BUDGETS.items():
        counts = measured(workload)
        kept = {name: min(count, budgets.get(name, count)) for name, count in counts.items()}
        print(f"{workload}: {counts}, of {budgets}")
        BUDGETS[workload] = kept
    text = "# Counts of an epoch by workload; see test_budgets.py and measure.py.\n"
    for workload, budgets in BUDGETS.items():
        text += f'\n["{workload}"]\n'
        text += "".join(f'"{name}" = {count}\n' for name, count in budgets.items())
    (HERE / "budgets.toml").write_text(text)


if __name__ == "__main__":
    main()
