"""Counts the work of epochs: ``python measure.py WORKLOAD`` writes the means of some epochs, after
others, as JSON (``bench.epoch_counts``).
"""

from __future__ import annotations

import json
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

from bench.choice import STREAM, work
from bench.epoch_counts import EPOCHS, SCANNED, WARM, count_epochs, count_on_spark
from bench.srbench import MINUTES
from bench.tree_engine import Spec
from bench.ways import always
from bench.workloads import WORKLOADS, Workload, parsed, weather

from levada.runtime.driver.parallelism import ONE, SPREAD

Counts = dict[str, float]
FEW_WARM, FEW = 4, 6
"""Epochs of what is large, or on Spark."""
W3_20, W3_500, PARSE = weather(20, MINUTES), weather(500, 120), parsed(60)
"""The latter by 180,000 triples: their counts by the bytes of the input are those of more."""


def small(kind: str, rows: int, partitions: int, *, empty: bool = False) -> Counts:
    """The counts of a workload of ``bench.choice``."""
    with tempfile.TemporaryDirectory() as folder:
        streams, text, dialect = work(kind, Path(folder), rows, WARM + EPOCHS + 3)
        elements = rows // 3 if STREAM in streams else rows
        spec = Spec(streams, text, dialect, elements, rows, partitions, empty)
        return count_epochs(spec, input_counts=False)


def by_input(workload: Workload) -> Counts:
    """The counts of a workload; bytes that are read and scanned by the bytes of the input."""
    with tempfile.TemporaryDirectory() as folder:
        spec = workload.prepare(Path(folder), FEW_WARM + FEW + 1)
        each = input_size(Path(folder), spec.rows)
        counts = count_epochs(spec, warm=FEW_WARM, epochs=FEW)
    for name in ("bytes read", SCANNED):
        counts[f"{name} by bytes of input"] = round(counts.pop(name) / each, 3)
    return counts


def input_size(folder: Path, rows: int) -> float:
    """The bytes of so many lines of the files below a folder, on average."""
    size = lines = 0
    for path in folder.rglob("*.nt"):
        text = path.read_bytes()
        size, lines = size + len(text), lines + text.count(b"\n")
    return size * rows / lines


def on_spark(workload: Workload, way: str) -> Counts:
    """What an epoch has Spark do, in a way."""
    with tempfile.TemporaryDirectory() as folder, always(way):
        spec = workload.prepare(Path(folder), FEW_WARM + FEW + 2)
        return count_on_spark(spec, warm=FEW_WARM, epochs=FEW)


MEASURED: dict[str, Callable[[], Counts]] = {
    "empty": partial(small, "w3", 201, 2, empty=True),
    "w3 201 rows, 1 partition": partial(small, "w3", 201, 1),
    "w3 201 rows, 2 partitions": partial(small, "w3", 201, 2),
    "w1": partial(small, "w1", 100_000, 2),
    "w2": partial(small, "w2", 100_000, 2),
    "w3 100,000 rows": partial(small, "w3", 99_999, 2),
    "w3 of 20 stations": partial(by_input, W3_20),
    "w3 of 500 stations": partial(by_input, W3_500),
    "parse": partial(by_input, PARSE),
    "w1 on Spark": partial(on_spark, WORKLOADS["w1"], ONE),
    "w1 on Spark, spread": partial(on_spark, WORKLOADS["w1"], SPREAD),
    "w3 of 20 stations on Spark": partial(on_spark, W3_20, ONE),
    "w3 of 500 stations on Spark": partial(on_spark, W3_500, ONE),
    "parse on Spark": partial(on_spark, PARSE, ONE),
}


if __name__ == "__main__":
    print(json.dumps(MEASURED[sys.argv[1]]()))
