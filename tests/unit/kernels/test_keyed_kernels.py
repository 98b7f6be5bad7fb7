"""Keys, bucket order and routing against their twins."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from levada.kernels.keyed import bucket_layout
from levada.kernels.keyed import key_partitioner as keyed_route
from levada.kernels.keyed.numpy_twins import (
    bucket_order_twin,
    count_pairs_twin,
    scatter_order_twin,
)

WORD = st.integers(0, 2**64 - 1)
KEYS = st.lists(WORD | st.integers(0, 5).map(lambda b: b << 61), max_size=60).map(
    lambda v: np.array(v, np.uint64)
)


def words(seed: int, n: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(0, 2**64, n, dtype=np.uint64)


@settings(deadline=None)
@given(k=KEYS, bits=st.integers(1, 20))
def test_bucket_order_equals_its_twin(k: np.ndarray, bits: int) -> None:
    order, directory = bucket_layout.bucket_order(k, bits)
    order_twin, directory_twin = bucket_order_twin(k, bits)
    assert order.tolist() == order_twin.tolist()
    assert directory.tolist() == directory_twin.tolist()
    assert order.dtype == directory.dtype == np.int32


@pytest.mark.parametrize("bits", [16, 17, 21])
def test_one_pass_and_two_passes_agree_on_many_rows(bits: int) -> None:
    k = words(1, 20_000)
    for got, expected in zip(
        bucket_layout._one_pass(k, bits), bucket_layout._two_passes(k, bits), strict=True
    ):
        assert np.array_equal(got, expected)


@pytest.mark.parametrize("bits", [0, 29])
def test_bucket_order_refuses_directories_out_of_bounds(bits: int) -> None:
    with pytest.raises(AssertionError, match="a directory has"):
        bucket_layout.bucket_order(words(1, 3), bits)


def test_bits_for_gives_one_to_two_buckets_a_row() -> None:
    assert [bucket_layout.bits_for(n) for n in (0, 1, 16, 17, 1 << 20, (1 << 20) + 1, 1 << 31)] == [
        4,
        4,
        4,
        5,
        20,
        21,
        28,
    ]


def test_mix_is_one_to_one_per_operator_and_tells_operators_apart() -> None:
    xs, ys = words(1, 1000), words(2, 1000)
    keys = [bucket_layout.mix(xs, ys, np.full(1000, op, np.int32)) for op in range(20)]
    assert all(len(np.unique(k)) == len(np.unique(h)) == 1000 for k, h in keys)
    assert len(np.unique(np.concatenate([k for k, _ in keys]))) == 20_000
    assert len(np.unique(np.concatenate([h for _, h in keys]))) == 20_000


def test_mix_spreads_the_operators_over_buckets_and_groups() -> None:
    ops = np.arange(10_000, dtype=np.int32)
    same = np.zeros(10_000, np.uint64)
    for half in bucket_layout.mix(same, same, ops):
        counts = np.bincount((half >> np.uint64(58)).astype(np.int64), minlength=64)
        assert counts.min() > 80 and counts.max() < 260


def test_combine_depends_on_the_order_of_slots_and_on_each_half() -> None:
    a, b = (words(1, 500), words(2, 500)), (words(3, 500), words(4, 500))
    ab, ba = bucket_layout.combine(*a, *b), bucket_layout.combine(*b, *a)
    assert not (ab[0] == ba[0]).any() and not (ab[1] == ba[1]).any()
    for slot in range(4):
        changed = [*a, *b]
        changed[slot] = changed[slot] ^ np.uint64(1)
        other = bucket_layout.combine(*changed)
        assert not ((other[0] == ab[0]) & (other[1] == ab[1])).any()


def test_beside_tells_instants_and_keys_apart() -> None:
    k, h, a, b = (
        np.array(c).ravel()
        for c in np.meshgrid(np.arange(3), np.arange(3), np.arange(-4, 4), np.arange(4))
    )
    x, y = bucket_layout.mix(k.astype(np.uint64), h.astype(np.uint64), np.zeros(len(k), np.int32))
    found = bucket_layout.combine_instants(x, y, a, b)
    assert len(set(zip(*(half.tolist() for half in found), strict=True))) == len(k)
    plain = [
        (int(p) + int(q) * int(o)) % 2**64
        for p, q, o in zip(x, a, [int(bucket_layout._ODD_A)] * len(k), strict=True)
    ]
    assert found[0].tolist() == plain


def test_combine_moves_half_of_the_bits_of_both_halves() -> None:
    columns = [words(s, 2000) for s in range(4)]
    k, h = bucket_layout.combine(*columns)
    for slot in range(4):
        for bit in (0, 31, 63):
            changed = [*columns]
            changed[slot] = changed[slot] ^ np.uint64(1 << bit)
            for half, moved in zip((k, h), bucket_layout.combine(*changed), strict=True):
                share = np.unpackbits((half ^ moved).view(np.uint8)).mean()
                assert 0.47 < share < 0.53


@settings(deadline=None)
@given(h=KEYS, bits=st.integers(0, 10))
def test_groups_of_a_power_of_two_are_the_top_bits(h: np.ndarray, bits: int) -> None:
    expected = [int(v) >> (64 - bits) for v in h]
    assert keyed_route.group_of(h, 1 << bits).tolist() == expected


@settings(deadline=None)
@given(h=KEYS, groups=st.integers(1, 1000), seed=st.integers(0, 9))
def test_partition_of_reads_the_table_at_the_group(h: np.ndarray, groups: int, seed: int) -> None:
    table = np.random.default_rng(seed).integers(0, 7, groups).astype(np.int16)
    group = keyed_route.group_of(h, groups)
    assert group.tolist() == [((int(v) >> 32) * groups) >> 32 for v in h]
    assert keyed_route.partition_of(h, table).tolist() == table[group].tolist()
    both = keyed_route.group_and_partition(h, table)
    assert [c.tolist() for c in both] == [group.tolist(), table[group].tolist()]
    assert [c.dtype for c in both] == [np.uint16, np.int32]


@settings(deadline=None)
@given(h=KEYS, bits=st.integers(0, 10), shift=st.integers(0, 6))
def test_groups_are_counted_as_their_twin_counts_them(h: np.ndarray, bits: int, shift: int) -> None:
    counts = np.full(1 << bits, 2, np.int64)
    found = keyed_route.group_of(h, 1 << bits + shift).astype(np.uint16)
    keyed_route.count_groups(found, counts, shift)
    coarse = keyed_route.group_of(h, 1 << bits)
    assert counts.tolist() == (2 + np.bincount(coarse, minlength=1 << bits)).tolist()


@settings(deadline=None)
@given(
    pairs=st.lists(st.tuples(*[st.integers(0, 2) | st.integers(0, 65_535)] * 2), max_size=60),
    again=st.integers(1, 3),
    shift=st.integers(0, 16),
)
def test_pairs_of_groups_are_counted_as_their_twin_counts_them(
    pairs: list[tuple[int, int]], again: int, shift: int
) -> None:
    source, target = np.array(pairs * again, np.uint16).reshape(-1, 2).T.copy()
    found, twin = (f(source, target, shift) for f in (keyed_route.count_pairs, count_pairs_twin))
    for got, expected in zip(found, twin, strict=True):
        assert got.tolist() == expected.tolist() and got.dtype == expected.dtype  # type: ignore[attr-defined]


@settings(deadline=None)
@given(target=st.lists(st.integers(0, 6), max_size=50), more=st.integers(0, 3))
def test_scatter_order_equals_its_twin(target: list[int], more: int) -> None:
    rows = np.array(target, np.int32)
    for got, expected in zip(
        keyed_route.scatter_order(rows, 7 + more), scatter_order_twin(rows, 7 + more), strict=True
    ):
        assert got.tolist() == expected.tolist() and got.dtype == expected.dtype  # type: ignore[attr-defined]


def test_read_only_columns_are_taken() -> None:
    k = np.frombuffer(words(1, 10).tobytes(), np.uint64)
    assert not k.flags.writeable
    assert len(bucket_layout.bucket_order(k, 4)[0]) == 10
