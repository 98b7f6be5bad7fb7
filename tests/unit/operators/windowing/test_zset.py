"""Z-sets against dictionaries of counts."""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from levada.core.frame import Frame
from levada.operators.windowing.zset import consolidate, expand, integrate, steps

changes = st.lists(st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(-2, 2)), max_size=20)


@given(changes)
def test_equal_rows_become_one_with_the_sum_of_their_weights(
    rows: list[tuple[int, int, int]],
) -> None:
    k = np.array([key for key, _, _ in rows], np.uint64)
    found = consolidate(k, np.zeros_like(k), np.array([w for _, _, w in rows], np.int8))
    assert k[found.first][found.codes].tolist() == k.tolist()
    expected: Counter[int] = Counter()
    for key, _, w in rows:
        expected[key] += w
    assert dict(zip(k[found.first].tolist(), found.weight.tolist(), strict=True)) == dict(expected)


@given(changes, st.lists(st.integers(-5, 5), min_size=4, max_size=4))
def test_a_key_stands_at_what_it_did_and_all_changes_up_to_a_step(
    rows: list[tuple[int, int, int]], before: list[int]
) -> None:
    codes = np.array([key for key, _, _ in rows], np.int32)
    at = np.array([t for _, t, _ in rows], np.int64)
    w = np.array([w for _, _, w in rows], np.int8)
    found = steps(codes, at)
    net = found.net(w)
    after = integrate(found, net, np.array(before))
    expected = {
        (key, t): before[key] + sum(own for other, u, own in rows if other == key and u <= t)
        for key, t, _ in rows
    }
    assert list(zip(found.of.tolist(), found.at.tolist(), strict=True)) == sorted(expected)
    assert after.tolist() == [expected[key] for key in sorted(expected)]
    assert integrate(found, net).tolist() == [
        expected[key] - before[key[0]] for key in sorted(expected)
    ]
    assert found.step.tolist() == [
        sorted(expected).index((codes[i], at[i])) for i in found.order.tolist()
    ]
    assert found.is_final.sum() == len(set(codes.tolist()))


@given(st.lists(st.integers(-3, 3), max_size=8))
def test_rows_come_as_often_as_they_change(change: list[int]) -> None:
    out = expand(Frame({"x0": np.arange(len(change))}, len(change)), np.array(change, np.int64))
    expected = [(i, 1 if n > 0 else -1) for i, n in enumerate(change) for _ in range(abs(n))]
    assert list(zip(out["x0"].tolist(), out["w"].tolist(), strict=True)) == expected
