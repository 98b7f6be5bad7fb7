"""Times of all elements, cut into epochs and read by several tasks: counted once, whatever was
dropped in between.
"""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from levada.core.event_time import MIN, Window, WindowKind
from levada.operators.windowing.element_times import (
    EventTimes,
    concat_times,
    occurrences,
    retain,
    session_ends,
    span,
)

K = WindowKind


def test_tuples_of_one_time_are_added_up() -> None:
    frames = [occurrences(np.array([5, 5, 8])), occurrences(np.array([5]))]
    assert dict(zip(*(concat_times(frames)[c].tolist() for c in ("ts", "n")), strict=True)) == {
        5: 3,
        8: 1,
    }


def test_only_what_matters_is_kept_of_counted_times() -> None:
    seen = EventTimes.from_times(range(100))
    keep = retain(seen, [Window(K.COUNT, count=2, step=3)], 10, 90, show_empty=False)
    assert seen.ts[keep].tolist() == [9, 87, *range(90, 100)]


def test_sessions_end_a_gap_after_their_last_time() -> None:
    ts = np.array([0, 4, 9, 14, 30])
    assert session_ends(ts, 5).tolist() == [9, 9, 14, 19, 35]
    assert session_ends(ts, 6).tolist() == [20, 20, 20, 20, 36]
    assert session_ends(ts[:0], 5).tolist() == []
    assert span(Window(K.ENDED, 6), EventTimes.from_times([0, 4]), MIN)[0].tolist() == [10, 10]


def test_of_a_session_the_last_two_times_before_the_horizon_are_kept() -> None:
    seen = EventTimes.from_times([0, 4, 8, 12])
    assert seen.ts[retain(seen, [Window(K.SESSION, 5)], MIN, 10, show_empty=False)].tolist() == [
        4,
        8,
        12,
    ]


@given(
    st.lists(st.integers(0, 60), min_size=1, max_size=40).map(lambda t: sorted(set(t))),
    st.integers(0, 60),
    st.integers(0, 20),
)
def test_of_windows_on_close_a_few_times_a_step_are_kept(
    ts: list[int], horizon: int, start: int
) -> None:
    for window in (
        Window(K.CLOSE_OPEN, 10, 4),
        Window(K.CLOSE_CLOSED, 8, 8, to=3),
        Window(K.CLOSE_OPEN, 10, 4, 5, True),
    ):
        seen = EventTimes.from_times(ts)
        keep = retain(seen, [window], start, horizon, show_empty=False)
        kept = EventTimes.from_times(seen.ts[keep])
        rows = [list(zip(*span(window, known, start), strict=True)) for known in (seen, kept)]
        wanted, found = ({(s, e) for s, e in some if max(s, e) >= horizon} for some in rows)
        assert wanted == found
        assert len(kept.ts) <= len({(window.enter(t), window.leave(t)) for t in ts}) + 1
