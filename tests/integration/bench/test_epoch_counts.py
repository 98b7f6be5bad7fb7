"""What is counted where no clock is asked: passes of kernels over a text, by the kernels' names."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys

from bench.epoch_counts import SCANS
from bench.trees import ROOT, environment

from levada.kernels import text

LINES = """
import threading
import numpy as np
from bench.epoch_counts import SCANNED, EpochCounts, _count_scans
from levada.kernels.text.line_boundaries import cut_lines
counts = EpochCounts()
_count_scans(counts)
lines = np.frombuffer(b"<a> <b> <c> .\\n" * 10_000, np.uint8)
print(cut_lines(lines, 10_000, True)[1], counts.total[SCANNED])
counts.thread = threading.get_ident()
cut_lines(lines, 10_000, True)
print(len(lines), counts.total[SCANNED])
"""


def test_kernels_that_are_counted_are_there() -> None:
    names = {
        name
        for module in pkgutil.iter_modules(text.__path__)
        for name in vars(importlib.import_module(f"{text.__name__}.{module.name}"))
    }
    assert set(SCANS) <= names


def test_a_text_that_is_cut_once_is_one_pass() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LINES], env=environment(ROOT), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    before, after = (tuple(map(int, line.split())) for line in done.stdout.splitlines())
    assert before == (10_000, 0), "another thread is not counted"
    assert after[0] <= after[1] <= 1.5 * after[0]
