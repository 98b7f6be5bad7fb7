"""Enter, leave, intervals and reports against ``core.event_time.Window``."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from levada.core.event_time import MAX, MIN, Window, WindowKind
from levada.kernels.keyed import numpy_twins as twins
from levada.kernels.time import report_expansion
from levada.kernels.time.window_intervals import Params, enter, interval, leave, starts_of

EDGES = [MIN, MIN + 1, MIN + 2, MAX - 2, MAX - 1, MAX]
TIME = st.integers(-50, 50) | st.integers(-(10**13), 10**13) | st.sampled_from(EDGES)
LENGTH = st.integers(0, 30) | st.integers(0, 10**11) | st.just(2**61 - 1)
WINDOW = st.builds(
    Window,
    kind=st.sampled_from(WindowKind),
    range=LENGTH,
    step=st.integers(1, 12) | st.integers(1, 10**10) | st.just(2**61 - 1),
    t0=st.integers(-20, 20) | st.integers(-(10**12), 10**12),
    t0_given=st.booleans(),
)
SMALL = st.builds(
    Window,
    kind=st.sampled_from([WindowKind.CLOSE_OPEN, WindowKind.CLOSE_CLOSED]),
    range=st.integers(0, 20),
    step=st.integers(1, 12),
    t0=st.integers(-15, 15),
    t0_given=st.booleans(),
)


@st.composite
def timed(draw: st.DrawFn, window: st.SearchStrategy[Window] = WINDOW, columns: int = 1) -> tuple:
    windows = draw(st.lists(window, min_size=1, max_size=4))
    rows = draw(
        st.lists(st.tuples(st.integers(0, len(windows) - 1), *[TIME] * columns), max_size=30)
    )
    row_param = np.array([row[0] for row in rows], np.int32)
    return (
        windows,
        row_param,
        *(np.array([row[c + 1] for row in rows], np.int64) for c in range(columns)),
    )


@settings(deadline=None)
@given(case=timed())
def test_enter_and_leave_are_those_of_the_scalar_class(case: tuple) -> None:
    windows, row_param, ts = case
    params = Params.from_windows(windows)
    assert (
        enter(*params, row_param, ts).tolist() == twins.enter_twin(params, row_param, ts).tolist()
    )
    assert (
        leave(*params, row_param, ts).tolist() == twins.leave_twin(params, row_param, ts).tolist()
    )


@settings(deadline=None)
@given(case=timed(columns=1))
def test_enter_and_leave_are_monotone(case: tuple) -> None:
    windows, _, ts = case
    ts = np.sort(ts)
    one = np.zeros(len(ts), np.int32)
    params = Params.from_windows(windows[:1])
    for times in (enter(*params, one, ts), leave(*params, one, ts)):
        assert times.tolist() == sorted(times.tolist())


@settings(deadline=None)
@given(case=timed(columns=3), data=st.data())
def test_interval_equals_its_twin(case: tuple, data: st.DataObject) -> None:
    windows, row_param, lo, hi, prev = case
    params = Params.from_windows(windows)
    later = data.draw(st.lists(TIME, min_size=len(windows), max_size=len(windows)))
    start = np.maximum(starts_of(windows), np.array(later, np.int64))
    got = interval(*params, start, row_param, lo, hi, prev)
    for values, expected in zip(
        got, twins.interval_twin(params, start, row_param, lo, hi, prev), strict=True
    ):
        assert values.tolist() == expected.tolist()


def test_interval_without_prev_and_before_the_start() -> None:
    params = Params.from_windows([Window(WindowKind.RANGE, range=10)])
    none, rows = np.empty(0, np.int64), np.zeros(2, np.int32)
    lo, hi = np.array([5, 7]), np.array([6, 8])
    s, e = interval(*params, np.array([6]), rows, lo, hi, none)
    assert s.tolist() == [MAX, 8] and e.tolist() == [MAX, 17]


def test_a_triple_that_comes_again_counts_once_at_each_instant() -> None:
    params = Params.from_windows([Window(WindowKind.RANGE, range=10)])
    ts, prev = np.array([0, 4]), np.array([MIN, 0])
    s, e = interval(*params, np.array([MIN]), np.zeros(2, np.int32), ts, ts, prev)
    assert list(zip(s.tolist(), e.tolist(), strict=True)) == [(0, 10), (10, 14)]
    _, early = interval(*params, np.array([2]), np.zeros(2, np.int32), ts, ts, prev)
    assert early.tolist() == [MAX, 14]


def test_a_prev_before_the_start_is_none() -> None:
    params = Params.from_windows([Window(WindowKind.RANGE, range=10)])
    ts, prev = np.array([4]), np.array([0])
    s, _ = interval(*params, np.array([1]), np.zeros(1, np.int32), ts, ts, prev)
    assert s.tolist() == [4]


def test_starts_are_the_given_t0() -> None:
    given_t0 = Window(WindowKind.RANGE, range=1, t0=7, t0_given=True)
    assert starts_of([Window(WindowKind.NOW, t0=7), given_t0]).tolist() == [MIN, 7]


def test_parameters_out_of_bounds_are_refused() -> None:
    with pytest.raises(AssertionError, match="2\\*\\*61"):
        Params.from_windows([Window(WindowKind.RANGE, range=2**61)])


def closes_by_definition(window: Window, s: int, e: int, low: int, high: int) -> list[int]:
    first = window.t0 + window.range
    near = range(-60, 140)
    closes = [first + k * window.step for k in near if k >= 0 or not window.t0_given]
    return [r for r in closes if max(s, low + 1) <= r <= min(e - 1, high)]


SMALL_TIME = st.integers(-30, 30)


@settings(deadline=None)
@given(
    windows=st.lists(SMALL, min_size=1, max_size=3),
    rows=st.lists(st.tuples(st.integers(0, 2), SMALL_TIME, SMALL_TIME | st.just(MAX)), max_size=12),
    low=SMALL_TIME,
    high=SMALL_TIME,
)
def test_expand_closes_is_the_definition_and_equals_its_twin(
    windows: list[Window], rows: list[tuple[int, int, int]], low: int, high: int
) -> None:
    rows = [(p % len(windows), s, e) for p, s, e in rows]
    row_param, s, e = (
        np.array([r[c] for r in rows], d) for c, d in enumerate((np.int32, np.int64, np.int64))
    )
    params = Params.from_windows(windows)
    row, report = report_expansion.expand_closes(s, e, low, high, params.closes, row_param)
    expected = [
        (i, r)
        for i, (p, a, z) in enumerate(rows)
        for r in closes_by_definition(windows[p], a, z, low, high)
    ]
    assert list(zip(row.tolist(), report.tolist(), strict=True)) == expected
    row_twin, report_twin = twins.expand_closes_twin(s, e, low, high, params.closes, row_param)
    assert row.tolist() == row_twin.tolist() and report.tolist() == report_twin.tolist()
    each = [np.full(len(s), v, np.int64) for v in (low, high)]
    assert (
        report_expansion.expand_closes(s, e, each[0], each[1], params.closes, row_param)[1].tolist()
        == report.tolist()
    )


def test_expand_closes_without_limits_goes_by_the_rows() -> None:
    params = Params.from_windows([Window(WindowKind.CLOSE_OPEN, range=10, step=5)])
    s, e = np.array([5, MAX, 7]), np.array([16, MAX, 3])
    row, report = report_expansion.expand_closes(
        s, e, MIN, MAX, params.closes, np.zeros(3, np.int32)
    )
    assert row.tolist() == [0, 0, 0] and report.tolist() == [5, 10, 15]


@pytest.mark.parametrize(("s", "e"), [(0, MAX), (MIN, 10)])
def test_expand_closes_needs_bounds_on_both_sides(s: int, e: int) -> None:
    params = Params.from_windows([Window(WindowKind.CLOSE_OPEN, range=10, step=5)])
    with pytest.raises(AssertionError, match="bound the reports"):
        report_expansion.expand_closes(
            np.array([s]), np.array([e]), MIN, MAX, params.closes, np.zeros(1, np.int32)
        )


@settings(deadline=None)
@given(
    rows=st.lists(st.tuples(SMALL_TIME | st.just(MIN), SMALL_TIME | st.just(MAX)), max_size=15),
    instants=st.sets(SMALL_TIME, max_size=15),
)
def test_expand_instants_is_the_definition_and_equals_its_twin(
    rows: list[tuple[int, int]], instants: set[int]
) -> None:
    s, e = (np.array([r[c] for r in rows], np.int64) for c in range(2))
    at = np.array(sorted(instants), np.int64)
    row, report = report_expansion.expand_instants(s, e, at)
    expected = [(i, r) for i, (a, z) in enumerate(rows) for r in sorted(instants) if a <= r < z]
    assert list(zip(row.tolist(), report.tolist(), strict=True)) == expected
    row_twin, report_twin = twins.expand_instants_twin(s, e, at)
    assert row.tolist() == row_twin.tolist() and report.tolist() == report_twin.tolist()


def test_a_gap_of_a_year_costs_nothing() -> None:
    year = 365 * 86_400_000
    params = Params.from_windows([Window(WindowKind.CLOSE_OPEN, range=10_000, step=5_000)])
    ts = np.array([0, year])
    s, e = interval(*params, np.array([MIN]), np.zeros(2, np.int32), ts, ts, np.empty(0, np.int64))
    row, report = report_expansion.expand_closes(
        s, e, MIN, MAX, params.closes, np.zeros(2, np.int32)
    )
    assert report.tolist() == [5_000, 10_000, year + 5_000, year + 10_000]
    assert row.tolist() == [0, 0, 1, 1]
