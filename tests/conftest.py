"""Which tests share a worker, how Hypothesis searches, and how what it found is told."""

import os
from pathlib import Path

import pytest
from hypothesis import settings

from support.eighths import EIGHTHS, eighth_of
from support.random_failures import pytest_runtest_makereport as pytest_runtest_makereport
from support.random_failures import pytest_terminal_summary as pytest_terminal_summary
from support.random_failures import random_seed as random_seed
from support.temp_dirs import choose

# Whether a run takes the two seconds after which it says what it does is the machine's: only tests
# of that see it.
os.environ["LEVADA_PROGRESS"] = "0"
choose()

SPARK = Path(__file__).parent / "cluster"
LONG = (
    "tests/soak/", "cli/test_never_silent", "integration/test_notebooks",
    "bench/test_bench_runs", "engine/test_peak_memory", "property/test_random_cases",
    "property/test_without_rules", "replication/test_search", "queries/test_hand_made_patterns",
    "property/test_shared_is_alone", "cli/test_demo", "tests/browser/",
)  # fmt: skip
ONCE = (
    "conformance/test_srbench", "conformance/test_csrbench_engine", "conformance/test_citybench",
    "conformance/test_lsbench", "conformance/test_w3c_protocol", "unit/test_house",
    "server/test_sparql", "checkpoint/test_damage", "checkpoint/test_rollback",
    "test_bounded_memory", "cli/test_demo_results", "fuzz/test_damaged_checkpoints",
    "placement|test_katts",
)  # fmt: skip
"""Modules whose tests share what is made once, and dear (data, or loops that are compiled when they
are first called): one worker has all of them. ``|`` stands between what has one worker together.
"""

# In CI Hypothesis takes a profile of its own, whose examples are the same in each run; elsewhere a
# slow machine is no failure.
settings.register_profile("levada", deadline=None, print_blob=True)
if settings().deadline is not None:
    settings.load_profile("levada")


@pytest.hookimpl(tryfirst=True)  # xdist reads the groups in a hook of its own
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keeps the tests of the eighth that ``LEVADA_EIGHTH`` names, and puts tests in groups.

    Tests that start Spark run one after the other in one worker of pytest-xdist; the others where
    there is room, the long ones first: what is long and last leaves workers idle.

    A test has one group: xdist makes one of its own of two, which runs beside both.
    """
    if chosen := os.environ.get("LEVADA_EIGHTH"):
        others = [item for item in items if eighth_of(item.nodeid) != int(chosen) % EIGHTHS]
        config.hook.pytest_deselected(items=others)
        items[:] = [item for item in items if eighth_of(item.nodeid) == int(chosen) % EIGHTHS]
    for item in items:
        on_spark = SPARK in item.path.parents or item.get_closest_marker("spark")
        if on_spark and item.get_closest_marker("xdist_group") is None:
            item.add_marker(pytest.mark.xdist_group("spark"))
        elif shared := next((one for one in ONCE if _is_of(one, item.nodeid)), None):
            item.add_marker(pytest.mark.xdist_group(shared))
    items.sort(key=lambda item: not any(name in item.nodeid for name in LONG))


def _is_of(names: str, node: str) -> bool:
    return any(name in node for name in names.split("|"))
