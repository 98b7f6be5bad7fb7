"""The hashes against the package ``xxhash``, bit by bit."""

import numpy as np
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from levada.kernels.text.xxh3 import hash_blocks, identify_slices, identify_tagged, schedule

SEEDS = st.integers(0, 2**64 - 1)
LENGTHS = (*range(260), 511, 512, 513, 1023, 1024, 1025, 1088, 1089, 1189)


def both(low: np.uint64, high: np.uint64) -> int:
    return int(high) << 64 | int(low)


def twin(data: bytes, seed: int) -> int:
    """112 bits under the seed, and above them 16 that are everybody's."""
    hidden = xxhash.xxh3_128_intdigest(data, seed) & ((1 << 112) - 1)
    return xxhash.xxh3_64_intdigest(data) >> 48 << 112 | hidden


@settings(deadline=None)
@given(st.binary(min_size=1200, max_size=1200), SEEDS, st.integers(0, 7))
def test_every_length_equals_the_library(data: bytes, seed: int, shift: int) -> None:
    size = np.arange(1190, dtype=np.int64)
    start = np.full(size.size, shift)
    x, y = np.zeros(size.size, np.uint64), np.zeros(size.size, np.uint64)
    identify_slices(np.frombuffer(data, np.uint8), start, size, schedule(seed), x, y)
    for n in LENGTHS:
        assert both(x[n], y[n]) == twin(data[shift : shift + n], seed), n


@settings(deadline=None)
@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1), st.integers(0, 255), SEEDS)
def test_tagged_values_are_hashed_as_nine_bytes(values: list[int], tag: int, seed: int) -> None:
    x, y = np.zeros(len(values), np.uint64), np.zeros(len(values), np.uint64)
    identify_tagged(np.array(values, np.int64), np.uint64(tag), np.uint64(seed), x, y)
    for i, value in enumerate(values):
        nine = bytes([tag]) + value.to_bytes(8, "little", signed=True)
        assert both(x[i], y[i]) == twin(nine, seed)


def test_read_only_columns_are_taken() -> None:
    data = np.frombuffer(b"abc", np.uint8)
    assert not data.flags.writeable
    x, y = np.zeros(1, np.uint64), np.zeros(1, np.uint64)
    identify_slices(data, np.zeros(1, np.int64), np.array([3]), schedule(9), x, y)
    assert both(x[0], y[0]) == twin(b"abc", 9)


@settings(deadline=None)
@given(
    st.lists(st.sampled_from([0, 1, 7, 8, 63, 64, 65, 200, 241, 1024, 1025, 5000]), max_size=6),
    st.sampled_from([1, 64, 240, 241, 1024, 8192]),
    st.integers(0, 7),
)
def test_blocks_of_pieces_are_hashed_as_one_text(sizes: list[int], block: int, shift: int) -> None:
    rng = np.random.default_rng(len(sizes))
    pieces = [rng.integers(0, 256, shift + n).astype(np.uint8)[shift:] for n in sizes]
    at = [int(piece.__array_interface__["data"][0]) for piece in pieces]
    text = b"".join(piece.tobytes() for piece in pieces)
    out = np.zeros(-(-len(text) // block), np.uint64)
    hash_blocks(np.array(at, np.int64), np.array(sizes, np.int64), schedule(3), block, out)
    blocks = [text[i : i + block] for i in range(0, len(text), block)]
    assert out.tolist() == [xxhash.xxh3_64_intdigest(one) for one in blocks]
