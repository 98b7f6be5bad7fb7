"""Where times are cut, a row enters and leaves as every other row between the same two borders."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from levada.core.event_time import MAX, MIN, Window, WindowKind
from levada.operators.aggregation.shared_slices import cut
from levada.plan.execution.shapes import Member
from levada.plan.execution.slice_readers import Cuts, borders
from levada.plan.execution.window_table import WindowTable

KINDS = (WindowKind.CLOSE_OPEN, WindowKind.CLOSE_CLOSED)
ROOM = 10_000  # for borders


@st.composite
def windows(draw: st.DrawFn) -> Window:
    length = draw(st.integers(1, 40))
    given_t0 = draw(st.booleans())
    return Window(
        draw(st.sampled_from(KINDS)),
        length,
        draw(st.integers(1, 30)),
        draw(st.integers(-50, 50)) if given_t0 else 0,
        given_t0,
        to=draw(st.integers(0, length - 1)),
    )


@given(st.lists(windows(), min_size=1, max_size=4), st.lists(st.integers(-90, 90), min_size=2))
@example([Window(WindowKind.CLOSE_CLOSED, 1, 2, -1, True)], [-1, -2])
def test_rows_between_two_borders_enter_and_leave_alike(
    found: list[Window], some: list[int]
) -> None:
    members = [Member(windows=(w,), streams=("s",), start=MIN) for w in found]
    table = WindowTable.from_members(members, {"s": 0})
    times = np.array([MIN, *some, MAX], np.int64)
    entering, leaving = borders(table, np.ones(len(found), np.bool_), 0)
    enter, leave = cut(times, entering, ROOM), cut(times, leaving, ROOM)
    assert enter is not None and leave is not None
    for window in found:
        for at, of in ((enter, window.enter), (leave, window.leave)):
            held: dict[int, int] = {}
            for slice_, time in zip(at.tolist(), times.tolist(), strict=True):
                assert held.setdefault(slice_, of(time)) == of(time)
        after = {s: t >= window.start for s, t in zip(leave.tolist(), times.tolist(), strict=True)}
        assert all(
            after[s] == (t >= window.start)
            for s, t in zip(leave.tolist(), times.tolist(), strict=True)
        )


@pytest.mark.parametrize(("most", "cuts"), [(10, None), (11, [0, 10])])
def test_no_time_is_cut_at_more_borders_than_would_pay(most: int, cuts: list[int] | None) -> None:
    every = Cuts(np.array([0]), np.array([1]), np.empty(0, np.int64))
    found = cut(np.array([0, 10]), every, most)
    assert (None if found is None else found.tolist()) == cuts
