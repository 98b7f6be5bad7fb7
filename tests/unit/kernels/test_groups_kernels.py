"""Group numbers against their twin."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from levada.kernels.keyed import hash_groups
from levada.kernels.keyed.numpy_twins import find_twin, group_twin

HALF = st.integers(0, 3) | st.integers(0, 2**64 - 1)


@settings(deadline=None)
@given(rows=st.lists(st.tuples(HALF, HALF), max_size=60))
def test_group_is_the_order_of_first_appearance_and_equals_its_twin(
    rows: list[tuple[int, int]],
) -> None:
    k, h = (np.array([r[c] for r in rows], np.uint64) for c in range(2))
    codes, first = hash_groups.group(k, h)
    distinct = list(dict.fromkeys(rows))
    assert codes.tolist() == [distinct.index(r) for r in rows]
    assert first.tolist() == [rows.index(d) for d in distinct]
    codes_twin, first_twin = group_twin(k, h)
    assert codes.tolist() == codes_twin.tolist() and first.tolist() == first_twin.tolist()
    assert codes.dtype == np.int32 and first.dtype == np.int64


@settings(deadline=None)
@given(
    rows=st.lists(st.tuples(HALF, HALF), max_size=60, unique=True),
    keys=st.lists(st.tuples(HALF, HALF), max_size=60),
)
def test_find_gives_the_row_of_a_key_or_none_and_equals_its_twin(
    rows: list[tuple[int, int]], keys: list[tuple[int, int]]
) -> None:
    keys += rows[::2]
    k, h = (np.array([r[c] for r in rows], np.uint64) for c in range(2))
    key_k, key_h = (np.array([r[c] for r in keys], np.uint64) for c in range(2))
    found = hash_groups.find(hash_groups.table_of(k, h), k, h, key_k, key_h)
    assert found.tolist() == [rows.index(key) if key in rows else -1 for key in keys]
    assert found.tolist() == find_twin(k, h, key_k, key_h).tolist()
    assert found.dtype == np.int32


@pytest.mark.parametrize("shape", ["hashes", "small integers", "one half constant", "grid"])
def test_the_table_grows_for_any_shape_of_keys(shape: str) -> None:
    n = 20_000
    r = np.random.default_rng(5)
    counting = np.arange(n, dtype=np.uint64)
    k, h = {
        "hashes": (
            r.integers(0, 2**64, n, dtype=np.uint64),
            r.integers(0, 2**64, n, dtype=np.uint64),
        ),
        "small integers": (counting, np.zeros(n, np.uint64)),
        "one half constant": (np.zeros(n, np.uint64), counting * np.uint64(60_000)),
        "grid": (counting // np.uint64(100), counting % np.uint64(100)),
    }[shape]
    twice = np.concatenate([k, k[::-1]]), np.concatenate([h, h[::-1]])
    codes, first = hash_groups.group(*twice)
    assert first.tolist() == list(range(n))
    assert codes.tolist() == [*range(n), *reversed(range(n))]


@pytest.mark.parametrize("shape", ["small integers", "grid", "report times"])
def test_keys_that_are_no_hashes_spread_over_the_slots(shape: str) -> None:
    counting = np.arange(4096, dtype=np.uint64)
    k, h = {
        "small integers": (counting, np.zeros(4096, np.uint64)),
        "grid": (counting // np.uint64(64), counting % np.uint64(64)),
        "report times": (np.zeros(4096, np.uint64), counting * np.uint64(3_600_000)),
    }[shape]
    with np.errstate(over="ignore"):
        slots = [int(hash_groups.mix_halves(a, b)) >> 51 for a, b in zip(k, h, strict=True)]
    assert len(set(slots)) > 2500  # 8192 slots: random words take about 3200
