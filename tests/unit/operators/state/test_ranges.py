"""Directories of ranges: extendible hashing, against a dict that has each row under its key
(Parallel windowed joins, W24 to W26, W55).
"""

from __future__ import annotations

from collections import Counter
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.operators.state.key_ranges import ALL_KEYS, DEEPEST, HOT, Range, common_range, leaves

few = st.integers(0, 15).map(lambda n: n << 60)
keys = st.lists(few | st.integers(0, 2**64 - 1), max_size=200)
ranges = st.integers(0, 12).flatmap(
    lambda d: st.builds(Range, st.just(d), st.integers(0, 2**d - 1))
)


def counted(k: list[int]) -> dict[int, int]:
    return Counter(k)


def rows_in(rows: dict[int, int], some: Range) -> int:
    return sum(n for key, n in rows.items() if key >> (64 - some.depth) == some.prefix)


def expire(rows: dict[int, int], gone: list[int]) -> dict[int, int]:
    return {key: n for i, (key, n) in enumerate(rows.items()) if i not in gone}


@pytest.mark.long
@given(keys, st.lists(st.integers(0, 60), max_size=40), st.integers(1, 9))
def test_each_key_is_in_one_leaf_and_leaves_are_as_large_as_they_may_be(
    inserted: list[int], gone: list[int], theta: int
) -> None:
    """After inserts, and again after some have expired."""
    for rows in (counted(inserted), expire(counted(inserted), gone)):
        found = list(leaves(partial(rows_in, rows), theta))
        for key in rows:
            assert sum(key >> (64 - leaf.depth) == leaf.prefix for leaf, _ in found) == 1
        sizes = {leaf: rows_in(rows, leaf) for leaf, _ in found}
        hot = {leaf for leaf, is_hot in found if is_hot}
        assert all(n > 0 and (n <= 2 * theta or leaf in hot) for leaf, n in sizes.items())
        assert all(n > 2 * theta for leaf, n in sizes.items() if leaf in hot)
        for leaf in sizes:  # buddies that fit together are together
            assert leaf.depth == 0 or rows_in(rows, Range(leaf.depth - 1, leaf.prefix >> 1)) > (
                2 * theta
            )


@given(keys.filter(bool), st.integers(1, 9))
def test_entries_of_the_directory_add_up(inserted: list[int], theta: int) -> None:
    """Sum of 2^(d - d') over leaves is 2^d, where those without rows are counted, too."""
    rows = counted(inserted)
    found = [leaf for leaf, _ in leaves(lambda some: rows_in(rows, some), theta)]
    deepest = max(leaf.depth for leaf in found)
    entries = sum(2 ** (deepest - leaf.depth) for leaf in found)
    inner = {Range(d, leaf.prefix >> (leaf.depth - d)) for leaf in found for d in range(leaf.depth)}
    empty = {half for each in inner for half in each.halves} - inner - set(found)
    assert entries + sum(2 ** (deepest - leaf.depth) for leaf in empty) == 2**deepest
    assert all(rows_in(rows, each) == 0 for each in empty)


def test_a_hot_key_stops_the_cutting() -> None:
    rows = {7 << 61: 10_000} | {n << 54: 1 for n in range(100)}
    found = list(leaves(lambda some: rows_in(rows, some), 10))
    (hot,) = [leaf for leaf, is_hot in found if is_hot]
    assert hot.depth <= 8 < DEEPEST
    assert rows_in(rows, hot) >= 10_000
    assert HOT > 2


@given(ranges, st.lists(st.integers(0, 2**64 - 1), max_size=20))
def test_keys_come_back_from_what_a_range_leaves_of_them(some: Range, drawn: list[int]) -> None:
    k = np.array(drawn, np.uint64)
    mine = k[some.contains(k)]
    assert some.keys(some.rest(mine)).tolist() == mine.tolist()
    first = np.array([some.prefix << (64 - some.depth)] if some.depth else [5], np.uint64)
    assert some.keys(some.rest(first)).tolist() == first.tolist()


@given(st.lists(ranges, min_size=1, max_size=5))
def test_the_common_range_holds_all_and_no_half_of_it_does(some: list[Range]) -> None:
    found = common_range(some)
    assert all(each.within(found) for each in some)
    assert not any(all(each.within(half) for each in some) for half in found.halves)


def test_what_buddies_are() -> None:
    assert Range(3, 4).buddy == Range(3, 5)
    assert set(Range(2, 2).halves) == {Range(3, 4), Range(3, 4).buddy}
    assert Range(3, 4).within(ALL_KEYS)
    with pytest.raises(AssertionError, match="a leaf holds something"):
        list(leaves(lambda some: 1, 0))
