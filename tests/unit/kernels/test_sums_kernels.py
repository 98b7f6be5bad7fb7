"""Folds by group against exact arithmetic; folds in parts and in any order give the same."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from levada.kernels.keyed import double_double_sums, group_sums
from levada.kernels.keyed import numpy_twins as twins

G = 3
CODE = st.integers(-1, G - 1)
WEIGHT = st.integers(-3, 3)
LONG = st.integers(-(2**63), 2**63 - 1) | st.integers(-5, 5)
DOUBLE = (
    st.floats(-1e20, 1e20)
    | st.sampled_from([0.1, -0.1, 1e16, 1.0, -1e16, 1e300, -1e300, 5e-324, 0.0, -0.0])
    | st.floats(1e-20, 1e20)
)
SPECIAL = DOUBLE | st.sampled_from([math.nan, math.inf, -math.inf])
DTYPES = st.sampled_from([np.int8, np.int64])


def fold(
    rows: list[tuple], value: type, weight: type = np.int8
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    codes, values, weights = ([r[c] for r in rows] for c in range(3))
    return np.array(codes, np.int32), np.array(values, value), np.array(weights, weight)


def magnitude(codes: np.ndarray, values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    out = np.zeros(G)
    finite = (codes >= 0) & np.isfinite(values)
    np.add.at(out, codes[finite], np.abs(values[finite] * weights[finite]))
    return out


@settings(deadline=None)
@given(rows=st.lists(st.tuples(CODE, st.just(0), WEIGHT), max_size=40), dtype=DTYPES)
def test_net_equals_its_twin(rows: list[tuple], dtype: type) -> None:
    codes, _, weights = fold(rows, np.int64, dtype)
    got = group_sums.sum_weights(codes, weights, G)
    assert got.tolist() == [sum(w for c, _, w in rows if c == g) for g in range(G)]
    assert got.tolist() == twins.net_twin(codes, weights, G).tolist()


@settings(deadline=None)
@given(
    rows=st.lists(st.tuples(CODE, LONG, WEIGHT), max_size=40), dtype=DTYPES, cut=st.integers(0, 40)
)
def test_sums_of_integers_are_exact_in_parts_too(rows: list[tuple], dtype: type, cut: int) -> None:
    codes, values, weights = fold(rows, np.int64, dtype)
    expected = twins.sum_int_twin(codes, values, weights, G)
    high, low = group_sums.sum_int(codes, values, weights, G)
    assert [int(h) * 2**32 + int(s) for h, s in zip(high, low, strict=True)] == expected
    parts = [
        group_sums.sum_int(codes[p], values[p], weights[p], G)
        for p in (slice(cut), slice(cut, None))
    ]
    places = np.tile(np.arange(G, dtype=np.int32), 2)
    highs, lows = (np.concatenate([p[c] for p in parts]) for c in range(2))
    merged = group_sums.merge_int(places, highs, lows, G)
    assert merged[0].tolist() == high.tolist() and merged[1].tolist() == low.tolist()
    total, overflow = group_sums.round_int(high, low)
    for g in range(G):
        fits = -(2**63) <= expected[g] < 2**63
        assert overflow[g] == (not fits)
        assert not fits or total[g] == expected[g]


@settings(deadline=None)
@given(rows=st.lists(st.tuples(CODE, SPECIAL, WEIGHT), max_size=30), dtype=DTYPES, data=st.data())
def test_sums_of_doubles_equal_the_exact_sum_in_any_order_and_parts(
    rows: list[tuple], dtype: type, data: st.DataObject
) -> None:
    rows = data.draw(st.permutations(rows))
    cut = data.draw(st.integers(0, len(rows)))
    columns = fold(rows, np.float64, dtype)
    expected = twins.sum_dd_twin(*columns, G)
    whole = double_double_sums.sum_dd(*columns, G)
    codes, values, weights = columns
    parts = [
        double_double_sums.sum_dd(codes[p], values[p], weights[p], G)
        for p in (slice(cut), slice(cut, None))
    ]
    both = double_double_sums.Sums(*(np.concatenate(c) for c in zip(*parts, strict=True)))
    merged = double_double_sums.merge_dd(np.tile(np.arange(G, dtype=np.int32), 2), both, G)
    bound = magnitude(*columns) * 2.0**-98
    for got in (double_double_sums.round_dd(whole), double_double_sums.round_dd(merged)):
        for g in range(G):
            if math.isfinite(expected[g]):
                assert abs(got[g] - expected[g]) <= bound[g] + math.ulp(expected[g])
            else:
                assert str(got[g]) == str(expected[g])


def test_a_sum_of_doubles_is_rounded_once() -> None:
    values = np.array([0.1] * 10)
    codes, weights = np.zeros(10, np.int32), np.ones(10, np.int8)
    assert (
        float(double_double_sums.round_dd(double_double_sums.sum_dd(codes, values, weights, 1))[0])
        == 1.0
    )
    assert float(values.cumsum()[-1]) != 1.0


def test_a_weighted_value_counts_as_often() -> None:
    one = np.zeros(1, np.int32)
    many = double_double_sums.sum_dd(one, np.array([0.1]), np.array([123_456_789]), 1)
    repeated = double_double_sums.sum_dd(
        np.zeros(3, np.int32), np.full(3, 0.1), np.array([120_000_000, 3_456_000, 789]), 1
    )
    assert many.hi.tolist() == repeated.hi.tolist()
    assert many.lo == pytest.approx(repeated.lo, abs=1e-23)


def test_order_does_not_show_on_many_rows() -> None:
    r = np.random.default_rng(7)
    values = r.normal(0, 1, 50_000) * 10.0 ** r.integers(-12, 12, 50_000)
    codes, ones = r.integers(0, 20, 50_000).astype(np.int32), np.ones(50_000, np.int8)
    expected = [math.fsum(values[codes == g]) for g in range(20)]
    for _ in range(3):
        order = r.permutation(50_000)
        assert (
            double_double_sums.round_dd(
                double_double_sums.sum_dd(codes[order], values[order], ones, 20)
            ).tolist()
            == expected
        )


def test_nan_and_infinities_can_be_taken_back() -> None:
    values = np.array([1.5, math.nan, math.inf, -math.inf])
    codes = np.zeros(8, np.int32)
    weights = np.array([1, 1, 1, 1, 0, -1, -1, -1], np.int8)
    assert double_double_sums.round_dd(
        double_double_sums.sum_dd(codes, np.tile(values, 2), weights, 1)
    ).tolist() == [1.5]
    assert math.isnan(
        double_double_sums.round_dd(double_double_sums.sum_dd(codes[:4], values, weights[:4], 1))[0]
    )


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_sum_beyond_the_doubles_is_infinite(sign: float) -> None:
    values = np.full(2, sign * 1.7e308)
    got = double_double_sums.round_dd(
        double_double_sums.sum_dd(np.zeros(2, np.int32), values, np.ones(2, np.int8), 1)
    )
    assert got.tolist() == [sign * math.inf]
    product = double_double_sums.sum_dd(
        np.zeros(1, np.int32), values[:1], np.array([4], np.int8), 1
    )
    assert double_double_sums.round_dd(product).tolist() == [sign * math.inf]


TIE = st.integers(0, 2)


@settings(deadline=None)
@given(
    rows=st.lists(st.tuples(CODE, st.integers(-3, 3) | st.just(2**62), TIE, TIE), max_size=40),
    greatest=st.booleans(),
    kind=st.sampled_from([np.int64, np.float64]),
    nan=st.booleans(),
)
def test_winners_are_the_definition_and_equal_their_twin(
    rows: list[tuple[int, int, int, int]], greatest: bool, kind: type, nan: bool
) -> None:
    codes = np.array([r[0] for r in rows], np.int32)
    tie_x, tie_y = (np.array([r[c] for r in rows], np.uint64) for c in (2, 3))
    rank = np.array([r[1] for r in rows], kind)
    if nan and kind is np.float64:
        rank[rank == 3] = np.nan
    got = group_sums.winners(codes, rank, tie_x, tie_y, G, greatest)
    for g in range(G):
        ranks = {
            i: math.inf if math.isnan(rank[i]) else int(rank[i])
            for i in range(len(rows))
            if codes[i] == g
        }
        best = min(
            ranks,
            key=lambda i: (-ranks[i] if greatest else ranks[i], rows[i][3], rows[i][2], i),
            default=-1,
        )
        assert got[g] == best
    assert got.tolist() == twins.winners_twin(codes, rank, tie_x, tie_y, G, greatest).tolist()
