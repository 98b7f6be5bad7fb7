"""Bytes counted in blocks of a constant size: what lies at a block's edges and behind the last
one.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.kernels.text.bytes_ import COUNTED
from levada.kernels.text.lines import _plain_lines
from levada.kernels.text.ntriples import count_line_ends
from levada.kernels.text.subjects import count_byte

SIZES = st.sampled_from([0, 1, COUNTED - 1, COUNTED, COUNTED + 1, 3 * COUNTED - 1, 3 * COUNTED + 5])


@given(SIZES, st.integers(0, 3), st.randoms(use_true_random=False))
def test_counts_equal_those_of_bytes(size: int, more: int, random) -> None:  # type: ignore[no-untyped-def]
    text = bytes(random.choice(b"\n\r<>#") for _ in range(size + more))
    buf = np.frombuffer(text, np.uint8)
    for byte in b"\n\r>":
        assert count_byte(buf, size, byte) == text[:size].count(byte)
    ends = text[:size].count(b"\n") + text[:size].count(b"\r")
    assert count_line_ends(buf, size) == ends


@pytest.mark.parametrize("fill", [b"\n", b"\r"])
def test_a_block_of_ends_alone_is_counted_in_a_byte(fill: bytes) -> None:
    buf = np.frombuffer(fill * (2 * COUNTED + 1), np.uint8)
    assert count_line_ends(buf, len(buf)) == len(buf)
    assert count_byte(buf, len(buf), 10) == (len(buf) if fill == b"\n" else 0)


@pytest.mark.parametrize("size", [COUNTED - 2, COUNTED, 2 * COUNTED, 2 * COUNTED + 3])
def test_a_line_that_may_be_no_element_is_seen_wherever_it_begins(size: int) -> None:
    plain = np.full(size + 1, ord("<"), np.uint8)
    plain[size // 2] = ord("\n")
    assert _plain_lines(plain, 0, size) == (1, size // 2 + 1)
    for at in range(size):
        text = plain.copy()
        text[at : at + 2] = ord("\n"), ord("#")
        assert _plain_lines(text, 0, size) == (-1, 0)
