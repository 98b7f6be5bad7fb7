"""Which tests share a worker, how Hypothesis searches, and how what it found is told."""

from pathlib import Path

import pytest
from hypothesis import settings

from random_failures import pytest_runtest_makereport as pytest_runtest_makereport
from random_failures import pytest_terminal_summary as pytest_terminal_summary
from random_failures import random_seed as random_seed

SPARK = Path(__file__).parent / "spark"

# In CI Hypothesis takes a profile of its own, whose examples are the same in each run; elsewhere a
# slow machine is no failure.
settings.register_profile("levada", deadline=None, print_blob=True)
if settings().deadline is not None:
    settings.load_profile("levada")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests that start Spark run one after the other in one worker of pytest-xdist; the others
    where there is room.
    """
    for item in items:
        if SPARK in item.path.parents or any(map(item.get_closest_marker, ("spark", "chaos"))):
            item.add_marker(pytest.mark.xdist_group("spark"))
