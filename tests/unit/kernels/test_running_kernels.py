"""What groups stand at after each run of changes, against fractions, sorted lists and plain
loops.
"""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from levada.kernels.time.running_aggregates import running_best, running_counts, running_sums

DOUBLE = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from(
    [
        0.1,
        -0.1,
        1e16,
        1.0,
        1e300,
        -1e300,
        5e-324,
        -5e-324,
        2.0**-1022,
        0.0,
        2.0**53,
        2.0**53 + 2,
        0.5,
    ]
)
CHANGES = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 3), DOUBLE, st.sampled_from((-1, 1, 1))),
    max_size=30,
)
NONE = np.empty(0, np.int64)


def in_runs(
    changes: list[tuple],
) -> tuple[list[tuple], np.ndarray, np.ndarray, list[tuple[int, int]]]:
    """The changes in order of (group, report), where each group starts, their runs, and each run's
    group and report.
    """
    ordered = sorted(changes, key=lambda c: c[:2])
    keys = sorted({c[:2] for c in ordered})
    starts = np.searchsorted([c[0] for c in ordered], np.arange(4))
    return (
        ordered,
        starts.astype(np.int64),
        np.array([keys.index(c[:2]) for c in ordered], np.int64),
        keys,
    )


def nearest(exact: Fraction) -> float:
    try:
        return float(exact)
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def sums(
    changes: list[tuple], base: tuple[np.ndarray, np.ndarray, np.ndarray] | None = None
) -> tuple:
    ordered, starts, run, keys = in_runs(changes)
    bits = np.array([c[2] for c in ordered], np.float64).view(np.int64)
    weights = np.array([c[3] for c in ordered], np.int8)
    of, limb, amount = base or (NONE, NONE, NONE)
    base_starts = np.searchsorted(of, np.arange(4)).astype(np.int64)
    return running_sums(
        starts, run, bits, weights, base_starts, limb, amount, len(keys), False
    ), keys


@settings(deadline=None)
@given(earlier=CHANGES, later=CHANGES)
def test_sums_are_the_nearest_doubles_of_the_exact_ones_also_from_state(
    earlier: list[tuple], later: list[tuple]
) -> None:
    (_, _, *kept), _ = sums(earlier)
    (before, after, *_), keys = sums(later, tuple(kept))
    exact = [
        sum((Fraction(c[2]) * c[3] for c in earlier if c[0] == g), Fraction(0)) for g in range(3)
    ]
    assert before.tolist() == [nearest(e) for e in exact]
    for (g, report), found in zip(keys, after.tolist(), strict=True):
        more = sum(
            (Fraction(c[2]) * c[3] for c in later if c[0] == g and c[1] <= report), Fraction(0)
        )
        assert found == nearest(exact[g] + more)


def test_what_came_and_went_leaves_nothing() -> None:
    (_, after, _, limb, change), _ = sums(
        [(0, 0, 1e300, 1), (0, 0, 0.1, 1), (0, 1, 1e300, -1), (0, 2, 0.1, -1)]
    )
    assert after.tolist() == [1e300, 0.1, 0.0]
    assert (limb.tolist(), change.tolist()) == ([], [])


VALUES = st.lists(
    st.tuples(
        st.integers(0, 2), st.integers(0, 3), st.integers(-1, 4), st.sampled_from((-1, 1, 1))
    ),
    max_size=30,
)


@settings(deadline=None)
@given(changes=VALUES, counts=st.lists(st.integers(-1, 2), min_size=15, max_size=15))
def test_the_best_value_is_the_highest_that_stands(changes: list[tuple], counts: list[int]) -> None:
    ordered, starts, run, keys = in_runs(changes)
    place = np.array([c[0] * 5 + c[2] if c[2] >= 0 else -1 for c in ordered], np.int64)
    weights = np.array([c[3] for c in ordered], np.int8)
    value_starts = np.array([0, 5, 10, 15], np.int64)
    before, after = running_best(
        starts, run, place, weights, value_starts, np.array(counts, np.int64), len(keys)
    )

    def best(g: int, report: int) -> int:
        now = counts[5 * g : 5 * g + 5]
        for c in changes:
            if c[0] == g and c[1] <= report and c[2] >= 0:
                now[c[2]] += c[3]
        return max((5 * g + v for v in range(5) if now[v] > 0), default=-1)

    assert before.tolist() == [best(g, -1) for g in range(3)]
    assert after.tolist() == [best(*key) for key in keys]


@pytest.mark.parametrize("floor", [False, True])
@settings(deadline=None)
@given(
    changes=st.lists(st.tuples(st.integers(0, 2), st.integers(-3, 3)), max_size=20),
    before=st.lists(st.integers(0, 3), min_size=3, max_size=3),
)
def test_counts_follow_the_changes(
    floor: bool, changes: list[tuple[int, int]], before: list[int]
) -> None:
    ordered = sorted(changes, key=lambda c: c[0])
    codes = np.array([c for c, _ in ordered], np.int32)
    earlier, after = running_counts(
        codes, np.array([w for _, w in ordered], np.int64), np.array(before, np.int64), floor
    )
    now, expected = list(before), []
    for code, change in ordered:
        was = now[code]
        now[code] = max(was + change, 0) if floor else was + change
        expected.append((was, now[code]))
    assert list(zip(earlier.tolist(), after.tolist(), strict=True)) == expected
