"""Groups between the instants at which they change: what folding every row at every instant
gives.
"""

from __future__ import annotations

from functools import partial

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from levada.model.expression import AggregateFunction
from levada.model.frame import Frame
from levada.model.time import MAX
from levada.operators.group.change_points import Turns, values
from levada.plan.sealed.steps import Aggregate

ROWS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 30), st.integers(1, 25), st.integers(1, 9)),
    max_size=40,
)
COUNT = (Aggregate(AggregateFunction.COUNT, -1, False, None),)


def _no_rank(rows: Frame, slot: int) -> np.ndarray:
    raise AssertionError("nothing is compared")


def partials(rows: list[tuple[int, int, int, int]]) -> Frame:
    """One pane a row: its group as the member, when it comes and leaves, how many it stands for."""
    columns = np.array(rows, np.int64).reshape(-1, 4).T
    at = {"#s": columns[1], "#e": columns[1] + columns[2], "a0.n": columns[3]}
    return Frame({"op": columns[0].astype(np.int32), **at}, len(rows))


@given(ROWS, st.integers(-1, 20), st.integers(0, 40))
def test_a_turn_has_the_rows_that_count_until_the_next_one(
    rows: list[tuple[int, int, int, int]], low: int, more: int
) -> None:
    high = low + more
    due = [(g, s, w, n) for g, s, w, n in rows if s <= high and s + w > low]
    frame = partials(due)
    turns = Turns.of_rows(frame, 0, np.full(frame.n, low), np.full(frame.n, high))
    shown, merged = values(frame, turns, COUNT, partial(_no_rank))
    ends = np.minimum(turns.until[shown], high + 1)
    assert turns.until.max(initial=MAX) == MAX
    got: dict[tuple[int, int], int] = {}
    for turn, end, n in zip(shown.tolist(), ends.tolist(), merged["a0.n"].tolist(), strict=True):
        group = int(frame["op"][turns.first[turns.of[turn]]])
        got |= {(group, t): n for t in range(int(turns.at[turn]), end)}
    wanted: dict[tuple[int, int], int] = {}
    for g, s, w, n in due:
        for t in range(max(s, low), min(s + w, high + 1)):
            wanted[g, t] = wanted.get((g, t), 0) + n
    assert got == wanted
    pieces = sum(len(set(turns.at[turns.of == g].tolist())) for g in range(len(turns.first)))
    assert pieces == len(turns.at), "each instant of a group is one turn"
