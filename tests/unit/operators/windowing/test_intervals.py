"""From event times to instants: against ``core.event_time``, row by row."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from levada.core.event_time import MAX, MIN, Window, WindowKind
from levada.core.frame import Frame
from levada.operators.windowing.window_intervals import (
    exact_interval,
    max_run_span,
    outer,
    watermark,
)
from levada.plan.execution.row_layout import Layout, Span
from levada.plan.execution.shapes import Member
from levada.plan.execution.window_table import WindowTable

kinds = st.sampled_from([k for k in WindowKind if k is not WindowKind.COUNT])
windows = st.builds(
    Window,
    kinds,
    st.integers(1, 50),
    st.integers(1, 40),
    st.integers(-20, 20),
    st.booleans(),
    st.just(0),
)
times = st.tuples(
    st.integers(-100, 100), st.integers(0, 60), st.one_of(st.just(MIN), st.integers(-150, 100))
)


@given(windows, windows, st.lists(st.tuples(times, times), min_size=1, max_size=10))
def test_rows_count_where_all_windows_say_so(
    first: Window, second: Window, rows: list[tuple[tuple[int, int, int], tuple[int, int, int]]]
) -> None:
    table = WindowTable.from_members(
        [Member(windows=(first, second), streams=("s", "t"), start=MIN)], {"s": 0, "t": 1}
    )
    layout = Layout((), (Span(True, True), Span(True, True)))
    columns: dict[str, Any] = {"op": np.zeros(len(rows), np.int32)}
    for j in range(2):
        lo = np.array([row[j][0] for row in rows], np.int64)
        columns[f"lo{j}"], columns[f"hi{j}"] = lo, lo + [row[j][1] for row in rows]
        columns[f"prev{j}"] = np.minimum([row[j][2] for row in rows], columns[f"hi{j}"] - 1)
    frame = Frame(columns)
    s, e = exact_interval(frame, layout, table)
    wide_s, wide_e = outer(frame, layout, table)
    for i in range(len(rows)):
        starts, ends = [], []
        for j, w in enumerate((first, second)):
            first_at, last_at, prev = (int(columns[f"{n}{j}"][i]) for n in ("lo", "hi", "prev"))
            starts.append(max(w.enter(last_at), w.leave(prev) if prev >= w.start else MIN))
            ends.append(w.leave(first_at) if first_at >= w.start else MIN)
        inside = [t for t in range(-200, 260) if max(starts) <= t < min(ends)]
        assert [t for t in range(-200, 260) if s[i] <= t < e[i]] == inside
        assert all(wide_s[i] <= t < wide_e[i] for t in inside)


def test_a_watermark_is_the_least_of_the_streams() -> None:
    members = [
        Member(windows=(Window(WindowKind.NOW),) * len(names), streams=names)
        for names in (("s",), ("s", "t"), ())
    ]
    table = WindowTable.from_members(members, {"s": 0, "t": 1})
    assert watermark(table, np.array([70, 50])).tolist() == [70, 50, MAX]


def test_a_quarter_of_the_longest_window() -> None:
    def of(*some: Window) -> int:
        return max_run_span(
            WindowTable.from_members([Member(windows=some, streams=("s",) * len(some))], {"s": 0})
        )

    assert of(Window(WindowKind.RANGE, 4000), Window(WindowKind.RANGE, 8000)) == 2000
    assert of(Window(WindowKind.RANGE, 4000), Window(WindowKind.ALL)) == MAX
    assert of(Window(WindowKind.NOW)) == 1
