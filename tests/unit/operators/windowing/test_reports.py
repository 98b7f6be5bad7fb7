"""Report times against the naive reference, whole and in epochs; what must be kept of the elements'
times between epochs.
"""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from levada.core.event_time import MAX, MIN, Times, Window, WindowKind
from levada.operators.windowing.element_times import EventTimes, retain
from levada.operators.windowing.report_times import Reports, instants, next_report
from levada.plan.execution.report_schedules import Schedule
from levada.testing.reference import report_times
from levada.testing.window_membership import stays

K = WindowKind
ranges = st.sampled_from((250, 1000, 2000, 2500, 3000))
steps = st.sampled_from((250, 500, 1000, 2000, 3000))
origins = st.sampled_from((None, 0, 700, -1300))


@st.composite
def windows(draw: st.DrawFn) -> Window:
    t0 = draw(origins)
    kind = draw(st.sampled_from((K.CLOSE_OPEN, K.CLOSE_CLOSED, K.CHANGE, K.RANGE, K.NOW, K.ALL)))
    spans = kind in (K.CLOSE_OPEN, K.CLOSE_CLOSED, K.CHANGE, K.RANGE)
    range_, to = draw(ranges), draw(st.sampled_from((0, 0, 100, 249))) if spans else 0
    return Window(kind, range_, draw(steps), t0 or 0, t0 is not None, to=to)


@st.composite
def asked(draw: st.DrawFn) -> list[Window]:
    """The windows of a query, and in a quarter of the cases a clock."""
    query = draw(st.lists(windows(), min_size=1, max_size=3))
    if draw(st.integers(0, 3)) == 3:
        t0 = draw(origins)
        query.append(Window(K.CLOCK, step=draw(steps), t0=t0 or 0, t0_given=t0 is not None))
    return query


queries = asked()
moments = st.lists(
    st.integers(-8, 40).map(lambda n: 250 * n + n % 2), min_size=0, max_size=8, unique=True
).map(sorted)


def expected(query: list[Window], times: list[int], every: bool) -> list[int]:
    """The reference's report times of one stream of an item per time: those at which something is
    there, or every one.
    """
    ordered = [(ts, f"item {ts}") for ts in times]
    clock = next((w for w in query if w.kind is K.CLOCK), None)
    query = [w for w in query if w is not clock]
    held = {str(i): stays(w, ordered) for i, w in enumerate(query)}
    counted = [ts for w in query for ts in times if ts >= w.start] if every else []
    reports = report_times(
        {str(i): w for i, w in enumerate(query)}, held, counted, clock, max(times, default=MIN)
    )
    return [
        r
        for r in reports
        if every or any(s.enter <= r < s.leave for name in held for s in held[name])
    ]


def found(
    query: list[Window], times: list[int], low: int, high: int, every: bool = False
) -> Reports:
    schedule = Schedule(
        tuple(query), tuple(-1 if w.kind is K.CLOCK else 0 for w in query), MIN, every
    )
    return instants(schedule, {0: EventTimes.from_times(times)}, low, high, ended=high >= MAX)


@given(queries, moments, st.booleans())
def test_instants_are_those_of_the_reference(
    query: list[Window], times: list[int], every: bool
) -> None:
    got = found(query, times, MIN, MAX, every)
    assert got.times[got.nonempty].tolist() == expected(query, times, every)


@given(queries, moments, st.lists(st.integers(-3000, 12000), max_size=4).map(sorted), st.booleans())
def test_epochs_cut_the_reports_but_do_not_change_them(
    query: list[Window], times: list[int], cuts: list[int], every: bool
) -> None:
    """In each epoch only the times below its watermark that are still retained are known; no
    watermark is above all times.
    """
    cuts = [c for c in cuts if times and c <= times[-1]]
    closes_wait = all(w.kind in (K.CLOSE_OPEN, K.CLOCK) for w in query)
    known: Times = np.empty(0, np.int64)
    together: list[int] = []
    low = MIN
    for watermark in [*cuts, MAX]:
        old = MIN if low == MIN else low + (0 if closes_wait else 1)
        fresh = [t for t in times if old <= t < watermark]
        known = np.unique(np.concatenate([known, np.array(fresh, np.int64)]))
        high = watermark if closes_wait or watermark == MAX else watermark - 1
        if high > low:
            together += found(query, known.tolist(), low, high, every).times.tolist()
            low = high
        known = known[
            retain(
                EventTimes.from_times(known),
                [w for w in query if w.kind is not K.CLOCK],
                MIN,
                watermark,
                every,
            )
        ]
    assert together == found(query, times, MIN, MAX, every).times.tolist()


def test_next_report_is_the_next_close_or_change() -> None:
    closing = Window(K.CLOSE_OPEN, 4000, 2000)
    change = Window(K.RANGE, 3000)
    r = np.array([0, 1999, 2000, 2500])
    assert next_report([closing], r, np.empty(0, np.int64)).tolist() == [2000, 2000, 4000, 4000]
    assert next_report([closing, change], r, np.array([500, 2000, 2600])).tolist() == [
        500,
        2000,
        2600,
        2600,
    ]
    assert next_report([change], r, np.array([2000])).tolist() == [2000, 2000, MAX, MAX]


def test_a_gap_of_a_year_has_no_reports() -> None:
    year = 365 * 24 * 3600 * 1000
    got = found([Window(K.CLOSE_OPEN, 2000, 2000)], [500, year + 500], MIN, MAX)
    assert got.times[got.nonempty].tolist() == [2000, year + 2000]
    assert len(got.times) <= 4
