"""Schedules that differ in their starts: those that are said to be alike say the same."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from levada.core.event_time import Window, WindowKind
from levada.operators.windowing.element_times import EventTimes, retain
from levada.operators.windowing.report_times import instants
from levada.plan.execution.report_schedules import Families, Schedule

WINDOWS = [
    Window(WindowKind.CLOSE_OPEN, 4, 2),
    Window(WindowKind.CLOSE_CLOSED, 3, 3),
    Window(WindowKind.RANGE, 5),
    Window(WindowKind.COUNT, step=2, count=3),
    Window(WindowKind.SESSION, 2),
    Window(WindowKind.CLOSE_OPEN, 4, 2, 6, True),
]
TIMES = st.lists(st.integers(0, 20), unique=True).map(sorted)
SCHEDULES = st.builds(
    lambda windows, start, show_empty: Schedule(
        tuple(WINDOWS[w] for w in windows), tuple(range(len(windows))), start, show_empty
    ),
    st.sampled_from([(0,), (1,), (2,), (3,), (4,), (5,), (0, 1), (2, 0)]),
    st.integers(-1, 22),
    st.booleans(),
)


@settings(max_examples=300, deadline=None)
@given(
    st.lists(SCHEDULES, min_size=1, max_size=12),
    st.tuples(TIMES, TIMES),
    st.integers(0, 10),
    st.integers(0, 14),
)
def test_what_is_alike_says_the_same(schedules: Any, times: Any, low: Any, more: Any) -> None:
    element_times = {i: EventTimes.from_times(ts) for i, ts in enumerate(times)}
    same = Families.from_schedules(schedules).first_equal(
        {i: seen.ts for i, seen in element_times.items()}
    )
    for schedule, other in zip(schedules, (schedules[n] for n in same), strict=True):
        assert schedule._replace(start=0) == other._replace(start=0)
        a, b = (
            instants(one, element_times, low, low + more, ended=False) for one in (schedule, other)
        )
        for x, y in zip(
            (a.times, a.nonempty, a.changes), (b.times, b.nonempty, b.changes), strict=True
        ):
            assert x.tolist() == y.tolist()
        assert a.last == b.last
        for i, seen in element_times.items():
            own = [w for w, n in zip(schedule.windows, schedule.streams, strict=True) if n == i]
            kept = [
                retain(seen, own, one.start, low + more, one.show_empty).tolist()
                for one in (schedule, other)
            ]
            assert kept[0] == kept[1]


def test_queries_that_came_one_by_one_are_soon_alike() -> None:
    schedules = [Schedule((WINDOWS[0],), (0,), start) for start in range(1000)]
    families = Families.from_schedules(schedules)
    assert len(set(families.first_equal({0: np.array([500, 998, 2000])}).tolist())) == 3
    assert set(families.first_equal({0: np.array([2000, 2001])}).tolist()) == {0}
