"""Numbers and times of elements equal their twins."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from levada.core.event_time import MIN
from levada.kernels.text.element_runs import (
    number_alike,
    numbers_by_columns,
    one_time,
    times_by_columns,
)

RUNS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 2), st.sampled_from([5, 5, 5, 6, MIN])), max_size=30
)


@given(RUNS)
def test_elements_equal_their_twins(rows: list[tuple[int, int, int]]) -> None:
    x, y = (np.array([row[i] for row in rows], np.uint64) for i in (0, 1))
    ts = np.array([row[2] for row in rows], np.int64)
    number, edges = number_alike(x, y)
    expected = numbers_by_columns(x, y)
    assert number.tolist() == expected[0].tolist() and edges.tolist() == expected[1].tolist()
    (first, agree), (twin, agrees) = one_time(ts, edges), times_by_columns(ts, edges)
    assert first.tolist() == twin.tolist() and agree == agrees


def test_one_element_of_one_time_and_none() -> None:
    assert [a.tolist() for a in number_alike(np.ones(3, np.uint64), np.zeros(3, np.uint64))] == [
        [0, 0, 0],
        [0, 3],
    ]
    assert one_time(np.array([7, 7, 7]), np.array([0, 3])) == (np.array([7]), True)
    assert [a.tolist() for a in number_alike(np.empty(0, np.uint64), np.empty(0, np.uint64))] == [
        [],
        [0],
    ]
