"""Sets of queries that come and go, in all modes of sharing, against the second oracle.

``LEVADA_CASES`` is another number of cases. Each is a function of its seed: one that differs is
repeated alone by ``LEVADA_CASE=seed``.
"""

from __future__ import annotations

import os

import pytest

from second import draw
from second.case import Case, expected
from second.drive import differences, run
from second.small import smaller

CASES = int(os.environ.get("LEVADA_CASES", "0"))
FEW = 12  # cases of a short run
pytestmark = pytest.mark.timeout(0)


def difference(case: Case) -> str:
    """What an engine says otherwise than the oracle."""
    return differences(case, expected(case), *run(case))


def differs(case: Case) -> bool:
    """Whether a case that was made smaller differs; one that cannot be run is another one."""
    try:
        return bool(difference(case))
    except Exception:
        return False


def test_queries_that_come_and_go_say_what_the_page_says(random_seed: int) -> None:
    first = random_seed * 1_000_000
    seeds = range(first, first + (CASES or FEW))
    if "LEVADA_CASE" in os.environ:
        seeds = range(int(os.environ["LEVADA_CASE"]), int(os.environ["LEVADA_CASE"]) + 1)
    print(f"cases {seeds.start} to {seeds.stop - 1}")
    for seed in seeds:
        case = draw.case(seed)
        found = difference(case)
        if found:
            small = smaller(case, differs)
            pytest.fail(f"LEVADA_CASE={seed}: {found}\n\nmade small:\n{small}\n{difference(small)}")
