"""Rows in order, against NumPy's sort."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from levada.kernels.keyed.radix_sort import MIN_RADIX_ROWS, in_order

TYPES = (np.int8, np.int32, np.int64, np.uint16, np.uint64, np.bool_)


def column(rng: np.random.Generator, kind: type, n: int, spread: int) -> np.ndarray:
    """A column of a type: of few values, of all, or in order."""
    if kind is np.bool_:
        return rng.random(n) < 0.5
    info = np.iinfo(kind)
    if spread == 0:
        return rng.integers(info.min, info.max, n, dtype=kind, endpoint=True)
    values = rng.integers(0, min(spread, info.max), n).astype(kind)
    return np.sort(values) if spread == 1000 else values


@settings(deadline=None, max_examples=60)
@given(
    seed=st.integers(0, 2**32),
    n=st.sampled_from((0, 1, MIN_RADIX_ROWS - 1, MIN_RADIX_ROWS, 1000)),
    columns=st.lists(
        st.tuples(st.sampled_from(TYPES), st.sampled_from((0, 3, 100, 1000))),
        min_size=1,
        max_size=4,
    ),
)
def test_it_is_the_order_of_lexsort(seed: int, n: int, columns: list[tuple[type, int]]) -> None:
    rng = np.random.default_rng(seed)
    given_ = [column(rng, kind, n, spread) for kind, spread in columns]
    assert in_order(*given_).tolist() == np.lexsort(given_).tolist()


@pytest.mark.parametrize("least", [-(2**63), -1, 0])
def test_the_ends_of_64_bits_are_in_order(least: int) -> None:
    values = np.tile(np.array([2**63 - 1, least, 0, -5]), MIN_RADIX_ROWS)
    assert in_order(values).tolist() == np.lexsort((values,)).tolist()


def test_strided_columns_are_read() -> None:
    values = np.random.default_rng(3).integers(0, 9, 4 * MIN_RADIX_ROWS)[::2]
    assert in_order(values).tolist() == np.lexsort((values,)).tolist()
