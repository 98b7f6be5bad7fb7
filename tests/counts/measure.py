"""Counts the work of epochs: ``python measure.py WORKLOAD`` writes the means of 20
epochs, after 12, as JSON (``bench.epoch_counts``).
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from bench.choice import STREAM, work
from bench.epoch_counts import EPOCHS, WARM, count_epochs
from bench.tree_engine import Spec

WORKLOADS = {
    "empty": ("w3", 201, 2),
    "w3 201 rows, 1 partition": ("w3", 201, 1),
    "w3 201 rows, 2 partitions": ("w3", 201, 2),
    "w1": ("w1", 100_000, 2),
    "w2": ("w2", 100_000, 2),
    "w3 100,000 rows": ("w3", 99_999, 2),
}
"""Query, rows of an epoch, partitions."""


def prepare(name: str, folder: Path) -> Spec:
    """Writes the streams of a workload."""
    kind, rows, partitions = WORKLOADS[name]
    streams, text, dialect = work(kind, folder, rows, WARM + EPOCHS + 3)
    elements = rows // 3 if STREAM in streams else rows
    return Spec(streams, text, dialect, elements, rows, partitions, empty=name == "empty")


def measure(name: str) -> dict[str, float]:
    """The counts of an epoch of a workload."""
    with tempfile.TemporaryDirectory() as folder:
        return count_epochs(prepare(name, Path(folder)), input_counts=False)


if __name__ == "__main__":
    print(json.dumps(measure(sys.argv[1])))
