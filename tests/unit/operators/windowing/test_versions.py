"""Rows with an end stand at each instant as often as the changes that they are made of say."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from levada.core.event_time import MAX
from levada.core.frame import Frame
from levada.operators.windowing.row_versions import versions

changes = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 8), st.sampled_from((1, -1))), max_size=30
)


def standing(rows: list[tuple[int, int, int, int]], tau: int) -> Counter[int]:
    found: Counter[int] = Counter()
    for name, begin, until, weight in rows:
        found[name] += weight * (begin <= tau < until)
    return Counter({name: n for name, n in found.items() if n})


@given(changes)
def test_versions_stand_as_their_changes_do(rows: list[tuple[int, int, int]]) -> None:
    key = np.array([name for name, _, _ in rows], np.uint64)
    lo0, w = np.array([t for _, t, _ in rows], np.int64), np.array([w for *_, w in rows], np.int8)
    made = versions(Frame({"x0": key, "lo0": lo0, "w": w}, len(rows)), (key, key))
    told = list(zip(*(made[name].tolist() for name in ("x0", "lo0", "u", "w")), strict=True))
    for tau in range(10):
        expected = standing([(name, t, MAX, w) for name, t, w in rows], tau)
        assert standing(told, tau) == expected


def test_of_a_set_all_but_the_last_version_end() -> None:
    key = np.full(5, 7, np.uint64)
    lo0, w = np.array([5, 1, 3, 3, 5]), np.array([-1, 1, -1, 1, 1], np.int8)
    made = versions(Frame({"lo0": lo0, "w": w}, 5), (key, key))
    told = sorted(zip(*(made[name].tolist() for name in ("lo0", "u", "w")), strict=True))
    assert told == [(1, 3, 1), (3, 5, 1), (5, MAX, 1)]
