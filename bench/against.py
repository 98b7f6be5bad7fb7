"""``against``: this tree and an earlier commit, epoch by epoch in turn.

    python -m bench against COMMIT [NAME..] [--stepped] [--spark] [--epochs N] [--json]

One harness, of this tree, runs both engines over the same files (``bench.pairs``). ``baseline`` in
place of a commit is, for each workload, the commit of ``baseline.toml``. Each workload runs without
Spark and on Spark.

A workload fails when three quarters of the pairs cost more than ``MOST_CPU`` times a row, when an
epoch has more of a count than ``MOST_COUNT`` times, or when results differ (where all epochs have
the same rows). More calls are a warning. A
count that is a mean of several epochs may be more by ``SLACK``.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from bench.apart import SideError
from bench.pairs import SIDE, EpochError, Run, both_sides, run_pairs
from bench.tree_engine import Spec
from bench.trees import (
    ROOT,
    TreeError,
    choose_processor,
    environment,
    resolve_commit,
    tree_of,
    warm_kernels,
)
from bench.workloads import WORKLOADS, Workload

BASELINE, BASELINES = "baseline", Path(__file__).with_name("baseline.toml")
MOST_CPU = 1.03  # times, of the lower quartile of pairs
MOST_COUNT = 1.02  # times
SLACK = 0.5  # of a count of an epoch
LARGE = 500_000  # rows of an epoch: of larger ones fewer are counted
Counts = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class Comparison:
    """What an epoch of a workload costs, before and now."""

    name: str
    commit: str
    stepped: bool
    run: Run
    counts: tuple[Counts, Counts]

    @property
    def title(self) -> str:
        """The workload, and how it ran."""
        return f"{self.name} {'stepped' if self.stepped else 'on Spark'}"

    @property
    def failures(self) -> list[str]:
        """What is worse than it may be."""
        lower = self.run.ratios.lower
        cpu = [f"CPU {lower} times (lower quartile)"] if lower > MOST_CPU else []
        last = self.run.pairs[-1]
        before, now = (report["results"] for report in last)
        same = all(first["rows"] == second["rows"] for first, second in self.run.pairs)
        results = [f"{now:,} results, {before:,} before"] if same and before != now else []
        return cpu + results + [text for name, text in self._more() if not _is_calls(name)]

    @property
    def warnings(self) -> list[str]:
        """More calls."""
        return [text for name, text in self._more() if _is_calls(name)]

    def _more(self) -> list[tuple[str, str]]:
        before, now = self.counts
        return [
            (name, f"{name} {count:,}, {before.get(name, 0):,} before")
            for name, count in now.items()
            if count > MOST_COUNT * before.get(name, 0) + SLACK
        ]

    def to_json(self) -> dict[str, Any]:
        """All figures."""
        return {
            "workload": self.name, "commit": self.commit, "stepped": self.stepped,
            "pairs": len(self.run.pairs), "warm": self.run.warm, "ratio": asdict(self.run.ratios),
            "before": self.run.medians(0), "now": self.run.medians(1),
            "counts": {"before": dict(self.counts[0]), "now": dict(self.counts[1])},
            "failures": self.failures, "warnings": self.warnings,
        }  # fmt: skip

    def show(self, console: Console) -> None:
        """A table of the medians and the counts, and what is worse."""
        ratios, run = self.run.ratios, self.run
        console.print(f"{self.title}: {len(run.pairs)} pairs behind {run.warm} epochs of warm-up")
        table = Table(box=None)
        for column in ("an epoch", self.commit[:8], "now", "times"):
            table.add_column(column, justify="left" if column == "an epoch" else "right")
        before, now = run.medians(0), run.medians(1)
        for part, ms in now.items():
            table.add_row(f"{part} ms", f"{before[part]:,}", f"{ms:,}", _times(before[part], ms))
        for name in dict.fromkeys([*self.counts[0], *self.counts[1]]):
            first, second = (counts.get(name, 0) for counts in self.counts)
            table.add_row(name, f"{first:,}", f"{second:,}", _times(first, second))
        console.print(table)
        console.print(f"ratio of pairs: {ratios.median} [{ratios.lower}, {ratios.upper}]")
        for word, texts in (("FAILS", self.failures), ("warning", self.warnings)):
            for text in texts:
                console.print(f"{word}: {text}")


def _is_calls(name: str) -> bool:
    return name.endswith("calls")


def _times(before: float, now: float) -> str:
    return f"{now / before:.2f}" if before else ""


def baselines() -> dict[str, str]:
    """The commit of each workload."""
    commits: dict[str, str] = tomllib.loads(BASELINES.read_text())
    return commits


def compare(name: str, commit: str, workload: Workload, modes: Sequence[bool]) -> list[Comparison]:
    """A workload against a commit, in each mode (``stepped``), on the same files."""
    trees = (tree_of(commit), ROOT)
    for tree in trees:
        warm_kernels(tree)
    with tempfile.TemporaryDirectory(prefix="levada-against-") as folder:
        spec = workload.prepare(Path(folder), workload.warm + workload.epochs + 3)
        return [_compare(name, commit, trees, (spec, workload), stepped=mode) for mode in modes]


def _compare(
    name: str, commit: str, trees: tuple[Path, Path], work: tuple[Spec, Workload], *, stepped: bool
) -> Comparison:
    spec, workload = work
    with both_sides(trees, spec, stepped=stepped) as sides:
        run = run_pairs(sides, spec.rows, workload.epochs, workload.warm, stepped=stepped)
    counts = (
        (count(trees[0], spec), count(trees[1], spec))
        if stepped
        else (run.counts(0), run.counts(1))
    )
    return Comparison(name, commit, stepped, run, counts)


def count(tree: Path, spec: Spec) -> Counts:
    """The counts of an epoch of a tree's engine without Spark, by a process of its own."""
    large = spec.rows > LARGE
    given = {"spec": spec.to_json(), "warm": 4 if large else 12, "epochs": 6 if large else 20}
    done = subprocess.run(
        [sys.executable, str(SIDE), json.dumps(given)],
        env=environment(tree), stdout=subprocess.PIPE, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        raise SideError(f"Counting epochs of {tree} failed with exit code {done.returncode}.")
    counts: Counts = json.loads(done.stdout.splitlines()[-1])
    return counts


def main(
    commit: Annotated[str, typer.Argument(help="A commit, or baseline.")] = BASELINE,
    names: Annotated[list[str] | None, typer.Argument(help="Workloads; all without.")] = None,
    stepped: Annotated[bool, typer.Option("--stepped", help="Without Spark only.")] = False,
    spark: Annotated[bool, typer.Option("--spark", help="On Spark only.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
    epochs: Annotated[
        int | None, typer.Option(min=2, help="Pairs, in place of a workload's.")
    ] = None,
) -> None:
    """Compares this tree with an earlier commit; exit code 1: something is worse."""
    choose_processor(os.environ, platform.machine())
    chosen = names or list(WORKLOADS)
    if unknown := [name for name in chosen if name not in WORKLOADS]:
        raise typer.BadParameter(f"{unknown[0]} is none of {', '.join(WORKLOADS)}.")
    modes = [mode for mode, left_out in ((True, spark), (False, stepped)) if not left_out]
    try:
        commits = {name: resolve_commit(_commit_of(name, commit)) for name in chosen}
        found = _run(commits, modes, epochs, None if as_json else Console())
    except (TreeError, SideError, EpochError) as error:
        print(error, file=sys.stderr)
        raise typer.Exit(1) from error
    failed = [each.title for each in found if each.failures]
    if as_json:
        comparisons = [each.to_json() for each in found]
        print(json.dumps({"bench": "against", "failed": failed, "comparisons": comparisons}))
    if failed:
        print(f"Worse: {', '.join(failed)}.", file=sys.stderr)
        raise typer.Exit(1)


def _commit_of(name: str, commit: str) -> str:
    return baselines()[name] if commit == BASELINE else commit


def _run(
    commits: Mapping[str, str], modes: Sequence[bool], epochs: int | None, console: Console | None
) -> list[Comparison]:
    """All comparisons, each shown once it is there."""
    found = []
    for name, commit in commits.items():
        workload = WORKLOADS[name].with_epochs(epochs) if epochs else WORKLOADS[name]
        for each in compare(name, commit, workload, modes):
            found.append(each)
            if console is not None:
                each.show(console)
    return found
