"""Sliding over the panes of groups finds what expanding pane by pane finds."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from levada.core.event_time import MAX, MIN
from levada.kernels.time.report_expansion import expand_closes
from levada.kernels.time.sliding_panes import slide

STEP, WIDTH = 10, 40
PANES = st.lists(
    st.tuples(st.integers(0, 3), st.integers(-3, 30), st.integers(1, 4)), min_size=1, max_size=40
)
CLOSES = (
    np.array([WIDTH, WIDTH]),
    np.array([STEP, STEP]),
    np.array([3, 3]),
    np.array([False, False]),
)


def columns(panes: list[tuple[int, int, int]]) -> tuple[np.ndarray, ...]:
    """Group, member (two groups each), start and end of each pane; ends ascend with starts."""
    panes = sorted(panes, key=lambda pane: pane[1])
    group = np.array([g for g, _, _ in panes], np.int32)
    codes = np.unique(group, return_inverse=True)[1].astype(np.int32)
    s = np.array([5 * at for _, at, _ in panes])
    return codes, (group % 2).astype(np.int32), s, s + np.array([10 * n for _, _, n in panes])


def by_expansion(
    codes: np.ndarray,
    op: np.ndarray,
    s: np.ndarray,
    e: np.ndarray,
    low: np.ndarray,
    high: np.ndarray,
) -> Any:
    row, r = expand_closes(s, e, low[op], high[op], CLOSES, op)
    return sorted((int(codes[i]), int(at), int(i)) for i, at in zip(row, r, strict=True))


@given(PANES, st.integers(-40, 100), st.integers(-40, 300))
def test_sliding_equals_expanding(panes: list[tuple[int, int, int]], low: int, high: int) -> None:
    codes, op, s, e = columns(panes)
    lows, highs = np.array([low, low + 25]), np.array([high, MAX])
    found = slide(codes, int(codes.max()) + 1, op, s, e, lows, highs, CLOSES)
    in_order = all((np.diff(e[codes == c]) >= 0).all() for c in codes)
    assert (found is not None) == in_order
    if found is None:
        return
    assert by_expansion(codes, op, s, e, lows, highs) == sorted(
        (int(codes[found.first[c]]), int(found.report[c]), int(i))
        for i, c in zip(found.row, found.code, strict=True)
    )
    assert (np.diff(found.code) >= 0).all() and len(np.unique(found.code)) == len(found.first)


def test_what_does_not_slide_is_left_to_expansion() -> None:
    one, op = np.zeros(2, np.int32), np.zeros(2, np.int32)
    disordered = slide(
        one, 1, op, np.array([20, 0]), np.array([30, 10]), np.array([MIN]), np.array([MAX]), CLOSES
    )
    endless = slide(
        one, 1, op, np.array([0, 1]), np.array([MAX, MAX]), np.array([0]), np.array([MAX]), CLOSES
    )
    assert disordered is None and endless is None
