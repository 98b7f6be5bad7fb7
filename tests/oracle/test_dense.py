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

from levada.operators.rows import list_keys
from oracle import draw, draw_dense, judge
from oracle.case import Case

CASES = int(os.environ.get("LEVADA_CASES", "0"))
FEW = 8
"""Of CI, which are short ones: one of each kind (``draw_dense.KINDS``)."""
NEEDED = ("ranges of one operator", "one window and several", "told by points", "relaxed join",
          "CQL")  # fmt: skip
pytestmark = pytest.mark.timeout(0)


@contextmanager
def pointed(found: set[str]) -> Iterator[None]:
    """Notes whether lists of several queries are points of an index, meanwhile."""
    points_of = list_keys.points_of

    def seen(node: Any, i: int) -> list_keys.Points | None:
        points = points_of(node, i)
        if points is not None and len(node.members) > 1:
            found.add("told by points")
        return points

    with patch.object(list_keys, "points_of", seen):
        yield


def difference(case: Case, kinds: Counter[str]) -> str:
    """As of any case; whether its lists are points of an index is counted, too."""
    found = set[str]()
    with pointed(found):
        said = judge.difference(case, kinds)
    kinds.update(found)
    return said


def test_what_shares_one_join_says_what_the_page_says(random_seed: int) -> None:
    own = judge.seeds(random_seed * draw.MILLION, CASES or FEW)
    kinds = judge.judged(own, draw_dense.case, difference)
    judge.show(kinds)
    rare = judge.rare(kinds, NEEDED, CASES)
    assert CASES < 100 or not rare, f"of {len(own)} cases few or none have {rare}"
