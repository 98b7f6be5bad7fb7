"""Two engines in turn: an epoch of the one, then the same epoch of the other, in random order.

So the drift of a machine and its other work meet both. An epoch's cost is the CPU time of all its
processes without the threads of the JVM's compiler, and two engines are compared by the ratios of
their epochs.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Any

from bench.apart import SideError
from bench.steady import is_settled
from bench.tree_engine import Spec
from bench.trees import environment

SIDE = Path(__file__).with_name("against_side.py")
WARM = 8  # epochs at least; on Spark more, until the JVM's CPU falls no more
FULL = 0.9  # of the rows of an epoch: one of fewer is not compared
ALIKE = 0.05  # of the rows of an epoch: pairs of which one has so many more are not compared
CLOSE_S = 60.0  # for an engine to close, before its processes are killed
PARTS = ("driver", "jvm", "workers", "compiler")
Report = Mapping[str, Any]
Pair = tuple[Report, Report]


class EpochError(Exception):
    """The two engines do not read the same rows in an epoch."""


def cost(report: Report) -> float:
    """CPU-ms of an epoch without those of the JVM's compiler."""
    cpu = report["cpu"]
    return float(cpu["driver"] + cpu["jvm"] + cpu["workers"] - cpu["compiler"])


@dataclass(frozen=True, slots=True)
class Ratios:
    """Quartiles of the ratios of pairs, the second by the first."""

    lower: float
    median: float
    upper: float

    @classmethod
    def from_pairs(cls, pairs: Sequence[Pair]) -> Ratios:
        """Those of at least two pairs, for each row: engines that cut files by size have epochs of
        about so many rows.

        >>> one = {"rows": 9, "cpu": {"driver": 1.0, "jvm": 0.0, "workers": 0.0, "compiler": 0.0}}
        >>> two = {"rows": 9, "cpu": {"driver": 1.5, "jvm": 0.5, "workers": 0.5, "compiler": 0.5}}
        >>> Ratios.from_pairs([(one, two)] * 3)
        Ratios(lower=2.0, median=2.0, upper=2.0)
        """
        ratios = [
            cost(second) / max(cost(first), 1e-9) * (first["rows"] or 1) / (second["rows"] or 1)
            for first, second in pairs
        ]
        return cls(*(round(q, 3) for q in quantiles(ratios, n=4, method="inclusive")))


@dataclass(frozen=True, slots=True)
class Run:
    """The pairs that count, and how many epochs of warm-up were before them."""

    pairs: Sequence[Pair]
    warm: int

    @property
    def ratios(self) -> Ratios:
        """The second engine by the first."""
        return Ratios.from_pairs(self.pairs)

    def medians(self, side: int) -> dict[str, float]:
        """CPU-ms of an epoch of a side (0 or 1), and of its parts, and ms by the clock."""
        reports = [pair[side] for pair in self.pairs]
        parts = {part: median(r["cpu"][part] for r in reports) for part in PARTS}
        whole = {"cpu": median(map(cost, reports)), "least_cpu": min(map(cost, reports))}
        wall = median(r["ms"] for r in reports)
        return {name: round(ms, 2) for name, ms in {**whole, **parts, "wall": wall}.items()}

    def counts(self, side: int) -> dict[str, float]:
        """What a side has had Spark do, for an epoch; {} without Spark."""
        first, last = (self.pairs[i][side]["counts"] for i in (0, -1))
        epochs = max(len(self.pairs) - 1, 1)
        return {name: round((last[name] - first[name]) / epochs, 2) for name in last}


class Side:
    """A process that runs an epoch for each byte that it gets."""

    def __init__(self, tree: Path, spec: Spec, *, stepped: bool) -> None:
        orders, self._orders = os.pipe()
        self._reports, reports = os.pipe()
        self.tree = tree
        given = {"spec": spec.to_json(), "stepped": stepped, "pipes": [orders, reports]}
        self._process = subprocess.Popen(
            [sys.executable, str(SIDE), json.dumps(given)],
            env=environment(tree), pass_fds=(orders, reports), stdout=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        os.close(orders)
        os.close(reports)
        self._lines = os.fdopen(self._reports, "rb")

    def report(self) -> Report:
        """The report of the epoch that it runs, once that is over."""
        line = self._lines.readline()
        if not line:
            code = self._process.wait()
            raise SideError(f"The engine of {self.tree} ended with exit code {code}.")
        report: Report = json.loads(line)
        return report

    def run_epoch(self) -> Report:
        """Has it run one epoch."""
        os.write(self._orders, b"e")
        return self.report()

    def close(self) -> None:
        """Ends it, and every process that it has started."""
        os.close(self._orders)
        self._lines.close()
        try:
            self._process.wait(CLOSE_S)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


@contextmanager
def both_sides(trees: tuple[Path, Path], spec: Spec, *, stepped: bool) -> Iterator[list[Side]]:
    """A side for each tree, each behind its first epoch."""
    with ExitStack() as stack:
        sides = []
        for tree in trees:
            sides.append(Side(tree, spec, stepped=stepped))
            stack.callback(sides[-1].close)
        for side in sides:
            side.report()
        yield sides


def run_pairs(
    sides: Sequence[Any], rows: int, epochs: int, most_warm: int, *, stepped: bool
) -> Run:
    """Runs sides in turn: ``epochs`` pairs of ``rows`` rows behind the warm-up, which are at most
    ``most_warm`` epochs.
    """
    turns = _turns(sides, rows, random.Random(7))
    warm: list[Pair] = []
    while len(warm) < most_warm and not _is_warm(warm, stepped=stepped):
        warm.append(next(turns))
    return Run([next(turns) for _ in range(epochs)], len(warm))


def _is_warm(pairs: Sequence[Pair], *, stepped: bool) -> bool:
    if stepped:
        return len(pairs) >= WARM
    jvms = ([pair[side]["cpu"]["jvm"] for pair in pairs] for side in (0, 1))
    return all(is_settled(jvm) for jvm in jvms)


def _turns(sides: Sequence[Any], rows: int, draw: random.Random) -> Iterator[Pair]:
    """Pairs of epochs of so many rows, of which both sides read about as many."""
    while True:
        reports: dict[int, Report] = {}
        for place in draw.sample((0, 1), 2):
            reports[place] = sides[place].run_epoch()
        first, second = reports[0], reports[1]
        if abs(first["rows"] - second["rows"]) > ALIKE * first["rows"]:
            raise EpochError(
                f"Epochs {first['epoch']} and {second['epoch']} read {first['rows']:,} and "
                f"{second['rows']:,} rows: they cannot be compared."
            )
        if first["rows"] >= FULL * rows:
            yield first, second
