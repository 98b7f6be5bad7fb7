"""The seed of the folder: fixed in CI, drawn elsewhere, told with a failure; and what a test of it
may take of memory.
"""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

MOST_MEMORY = 1000  # MB beside what the process, which has run other tests, has before


@pytest.fixture
def seed(random_seed: int) -> int:
    """What cases are drawn from; LEVADA_SEED repeats it."""
    print(f"LEVADA_SEED={random_seed}")
    return random_seed


@pytest.fixture(autouse=True)
def bounded_memory() -> Iterator[None]:
    """A test fails whose process has come to hold ``MOST_MEMORY`` more."""
    try:
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
    except OSError:  # not on this system
        yield
        return
    before = _megabytes("VmRSS")
    yield
    more = _megabytes("VmHWM") - before
    assert more < MOST_MEMORY, f"{more} MB more at most"


def _megabytes(name: str) -> int:
    found = re.search(rf"{name}:\s+([0-9]+) kB", Path("/proc/self/status").read_text())
    assert found is not None
    return int(found[1]) // 1000
