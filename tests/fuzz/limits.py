"""The seed of the folder: fixed in CI, drawn elsewhere, told with a failure; and what a test of it
may take of memory.
"""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

MOST_MEMORY = 1000  # MB, of the whole process


@pytest.fixture
def seed(random_seed: int) -> int:
    """What cases are drawn from; LEVADA_SEED repeats it."""
    chosen = 1 if "CI" in os.environ and "LEVADA_SEED" not in os.environ else random_seed
    print(f"LEVADA_SEED={chosen}")
    return chosen


@pytest.fixture(autouse=True)
def bounded_memory() -> Iterator[None]:
    """A test fails whose process has come to hold more than ``MOST_MEMORY``."""
    try:
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    except OSError:  # not on this system
        yield
        return
    yield
    peak = re.search(r"VmHWM:\s+([0-9]+) kB", Path("/proc/self/status").read_text())
    assert peak is not None
    assert int(peak[1]) < 1000 * MOST_MEMORY, f"{int(peak[1]) // 1000} MB at most"
