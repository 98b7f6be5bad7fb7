"""One side of ``against``: the engine of the tree on ``PYTHONPATH``, in a process of its own.

    python bench/against_side.py '{"spec": {..}, "stepped": true, "pipes": [3, 6]}'

runs epochs and waits behind each: it writes a line of JSON to one pipe, and goes on when a byte
arrives by the other. The pipe's end ends it. CPU and time are those from there to the publication
of the next epoch, so what the other side does meanwhile is not in them.

    python bench/against_side.py '{"spec": {..}, "warm": 12, "epochs": 20}'

counts epochs in this process (``bench.epoch_counts``), and prints the counts of an epoch.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
import warnings
from typing import Any

from bench.epoch_counts import count_epochs
from bench.measure import Cpu, Tree
from bench.spark_counts import SparkCounts
from bench.tree_engine import (
    Spec,
    await_spark,
    empty_epochs,
    on_epoch,
    open_engine,
    results_so_far,
    rows_read,
)


class Turns:
    """Waits for its turn behind each epoch."""

    def __init__(self, pipes: tuple[int, int], spark: SparkCounts | None) -> None:
        self._orders, self._reports = os.fdopen(pipes[0], "rb", 0), os.fdopen(pipes[1], "wb", 0)
        self._spark = spark
        self._tree = Tree()
        self._rows = 0
        self._began, self._before = time.perf_counter(), Cpu()
        self.is_over = threading.Event()

    def see(self, manifest: Any) -> None:
        """An epoch has been published: reports it, and waits."""
        if self.is_over.is_set():
            return
        now, spent = time.perf_counter(), self._tree.cpu() - self._before
        rows = rows_read(manifest)
        report = {
            "epoch": manifest.epoch,
            "rows": rows - self._rows,
            "results": results_so_far(manifest),
            "ms": (now - self._began) * 1e3,
            "cpu": {name: s * 1e3 for name, s in spent.to_json(digits=6).items()},
            "counts": {} if self._spark is None else self._spark.so_far(),
        }
        self._rows = rows
        self._await_turn(report)
        self._began, self._before = time.perf_counter(), self._tree.cpu()

    def _await_turn(self, report: dict[str, Any]) -> None:
        try:
            self._reports.write(json.dumps(report).encode() + b"\n")
            if self._orders.read(1):
                return
        except BrokenPipeError:
            pass
        self.is_over.set()


def run(spec: Spec, pipes: tuple[int, int], *, stepped: bool) -> None:
    """Runs epochs until the other end of the pipes has enough."""
    turns = Turns(pipes, None if stepped else SparkCounts())
    with open_engine(spec, stepped=stepped) as engine:
        if not stepped:
            on_epoch(engine, lambda manifest: await_spark(engine))
        on_epoch(engine, turns.see)
        if spec.empty:
            empty_epochs(engine, 10**9)
        engine.start(once=True)
        while not turns.is_over.is_set() and not engine.await_end(0.05):
            pass


def main(arguments: str) -> None:
    """A side, or its counts."""
    given = json.loads(arguments)
    spec = Spec(**given.pop("spec"))
    warnings.simplefilter("ignore")
    if "pipes" in given:
        first, second = given["pipes"]
        run(spec, (first, second), stepped=given["stepped"])
    else:
        print(json.dumps(count_epochs(spec, **given)), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
