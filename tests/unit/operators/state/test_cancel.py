"""Rows that are taken back: what stays adds up to the same, and state does not grow with the
stream.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from levada.core.frame import Frame
from levada.operators.state.retractions import drop_cancelled

rows = st.lists(
    st.tuples(
        st.integers(0, 1),
        st.integers(1, 3),
        st.integers(5, 6),
        st.integers(0, 9),
        st.sampled_from((1, -1)),
    ),
    max_size=20,
)


def frame(given_rows: list[tuple[int, int, int, int, int]]) -> Frame:
    op, x, e, s, w = (np.array([r[i] for r in given_rows], np.int64) for i in range(5))
    columns: dict[str, np.ndarray] = {
        "op": op.astype(np.int32),
        "x0": x.astype(np.uint64),
        "#e": e,
        "#s": s,
        "hi0": s,
        "w": w.astype(np.int8),
    }
    return Frame(columns, len(given_rows))


def weights(f: Frame, tau: int) -> Counter[tuple[int, ...]]:
    """What is there at an instant: the weights of what has begun, by all else."""
    found: Counter[tuple[int, ...]] = Counter()
    for *row, s, w in zip(*(f[c].tolist() for c in ("op", "x0", "#e", "#s", "w")), strict=True):
        found[tuple(row)] += w * (s <= tau)
    return Counter({row: n for row, n in found.items() if n})


@given(rows, st.integers(-1, 10))
def test_what_stays_adds_up_to_the_same(
    given_rows: list[tuple[int, int, int, int, int]], low: int
) -> None:
    whole = frame(given_rows)
    left = drop_cancelled(whole, whole["#s"] <= low, ["hi0"])
    for tau in range(low, 11):
        assert weights(left, tau) == weights(whole, tau)
    begun = left["#s"] <= low
    assert int(np.count_nonzero(begun)) == sum(abs(n) for n in weights(whole, low).values())


def test_rows_without_weights_stay() -> None:
    plain = Frame({"op": np.zeros(2, np.int32), "#s": np.zeros(2, np.int64)})
    assert drop_cancelled(plain, np.ones(2, np.bool_)) is plain
