"""Running least squares beside NumPy's over all points at once."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.runtime.cost_model.epoch_time_trend import Line


@given(
    st.lists(st.integers(0, 10**6), min_size=3, max_size=40, unique=True),
    st.floats(1, 1e6),
    st.floats(0.1, 1e3),
    st.integers(0, 2**32 - 1),
)
def test_it_is_weighted_least_squares(rows: list[int], a: float, b: float, seed: int) -> None:
    x = np.array(rows, float)
    noise = np.random.default_rng(seed).uniform(0.9, 1.1, x.size)
    y = (a + b * x) * noise
    line = Line()
    for one, other in zip(x, y, strict=True):
        line.add(float(one), float(other))
    slope, level = np.polyfit(x, y, 1, w=1 / np.sqrt(np.maximum(x, 1)))
    found = line.fit()
    if slope > 0 and level > 0:
        assert found == pytest.approx((level, slope), rel=1e-3, abs=1e-3 * float(y.max()))
    assert min(found) >= 0


def test_a_level_and_a_line_through_the_origin() -> None:
    falling, low, one = Line(), Line(), Line()
    for x in (1, 10, 100):
        falling.add(x, 200 - x)
        low.add(x, 2 * x - 1)
        one.add(50, 100)
    assert falling.fit()[1] == 0
    assert low.fit()[0] == 0 and 1 < low.fit()[1] < 2
    assert one.fit() == (0, 2)
