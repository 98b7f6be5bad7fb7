"""Sets that share one join, under windows of other ranges and in one window or several, with lists
of values, and the same of tuples, say what the second oracle says (decisions 120, 121, 122).

They come and go, in all modes, in 1, 2 and 5 partitions, over stops and crashes, and groups move.
``LEVADA_CASES`` is another number of cases; one that differs is repeated by ``LEVADA_CASE=seed``.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pytest

from levada.operators.rows.told import lists
from second import draw, draw_dense
from second.case import Case, expected
from second.drive import differences, run
from second.small import smaller

CASES = int(os.environ.get("LEVADA_CASES", "0"))
FEW = 8
"""Of CI, which are short ones: one of each kind (``draw_dense.KINDS``)."""
NEEDED = ("ranges of one operator", "one window and several", "told by points", "relaxed join",
          "CQL")  # fmt: skip
pytestmark = pytest.mark.timeout(0)


@contextmanager
def pointed(found: set[str]) -> Iterator[None]:
    """Notes whether lists of several queries are points of an index, meanwhile."""
    points_of = lists.points_of

    def seen(node: Any, i: int) -> lists.Points | None:
        points = points_of(node, i)
        if points is not None and len(node.members) > 1:
            found.add("told by points")
        return points

    with patch.object(lists, "points_of", seen):
        yield


def difference(case: Case, kinds: Counter[str] | None = None) -> str:
    """What an engine says otherwise than the oracle; ``kinds`` are counted."""
    found = set[str]()
    with pointed(found):
        ran = run(case)
    if kinds is not None:
        kinds.update(ran.kinds | found)
    return differences(case, expected(case), ran.reports, ran.suspended)


def differs(case: Case) -> bool:
    """Whether a case that was made smaller differs; one that cannot be run is another one."""
    try:
        return bool(difference(case))
    except Exception:
        return False


def test_what_shares_one_join_says_what_the_page_says(random_seed: int) -> None:
    first = random_seed * draw.MILLION
    seeds = range(first, first + (CASES or FEW))
    if "LEVADA_CASE" in os.environ:
        seeds = range(int(os.environ["LEVADA_CASE"]), int(os.environ["LEVADA_CASE"]) + 1)
    print(f"cases {seeds.start} to {seeds.stop - 1}")
    kinds = Counter[str]()
    for seed in seeds:
        case = draw_dense.case(seed)
        found = difference(case, kinds)
        if found:
            small = smaller(case, differs)
            pytest.fail(f"LEVADA_CASE={seed}: {found}\n\nmade small:\n{small}\n{difference(small)}")
    print("".join(f"{n:6} {kind}\n" for kind, n in kinds.most_common()))
    rare = [kind for kind in NEEDED if kinds[kind] <= CASES // 20]
    assert CASES < 100 or not rare, f"of {len(seeds)} cases few or none have {rare}"
