"""Which groups go never weighs too much, and is near to what is to go."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.runtime.rebalancing.rebalance_round import choose_groups
from levada.runtime.rebalancing.rebalancing_options import Choice

WEIGHTS = st.lists(st.integers(0, 50), max_size=40).map(lambda w: np.array(w, np.float64))
AMOUNT = st.integers(1, 200).map(float)


def go(weights: np.ndarray, amount: float, choice: str, seed: int = 1) -> list[int]:
    return choose_groups(weights, amount, choice, np.random.default_rng(seed)).tolist()


@given(WEIGHTS, AMOUNT, st.sampled_from(list(Choice)), st.integers(0, 9))
def test_a_choice(weights: np.ndarray, amount: float, choice: Choice, seed: int) -> None:
    found = go(weights, amount, choice, seed)
    assert found == sorted(set(found)) == go(weights, amount, choice, seed)
    assert (weights[found] > 0).all()
    whole = float(weights[found].sum())
    assert whole <= amount


@given(WEIGHTS, AMOUNT)
def test_the_largest_is_what_one_after_the_other_gives(weights: np.ndarray, amount: float) -> None:
    """The twin: each group in turn, heaviest first, if it still fits."""
    wanted, left = [], amount
    for i in np.argsort(-weights, kind="stable").tolist():
        if 0 < weights[i] <= left:
            wanted.append(i)
            left -= weights[i]
    assert go(weights, amount, Choice.LARGEST) == sorted(wanted)


def test_a_lot_is_another_by_another_seed() -> None:
    lots = {tuple(go(np.ones(40), 10.0, Choice.RANDOM, seed)) for seed in range(9)}
    assert len(lots) == 9
    assert all(len(lot) == 10 for lot in lots)


@pytest.mark.parametrize("choice", list(Choice))
def test_nothing_fits(choice: str) -> None:
    assert go(np.array([50.0]), 10.0, choice) == []
    assert go(np.zeros(3), 10.0, choice) == []
