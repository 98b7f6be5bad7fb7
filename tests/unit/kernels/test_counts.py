"""Bytes counted in blocks of a constant size: what lies at a block's edges and behind the last
one.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.kernels.text.byte_ops import COUNTED
from levada.kernels.text.line_boundaries import LEAP, count_lines, cut_lines, scan_ends
from levada.kernels.text.ntriples import count_line_ends
from levada.kernels.text.subject_runs import count_byte

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
    assert scan_ends(plain, 0, size) == (1, 0, 0, size // 2 + 1)
    for at in range(size):
        text = plain.copy()
        text[at : at + 2] = ord("\n"), ord("#")
        raw = text[:size].tobytes()
        odd = 1 + (at == size // 2 + 1)  # a line that is empty, and one that is a comment
        assert scan_ends(text, 0, size) == (raw.count(b"\n"), odd, 0, raw.rindex(b"\n") + 1)


@given(
    st.lists(
        st.sampled_from(["\n", "\r\n", "# c\n", " <s> .\n", "\t\n", '"', "<", "\r"]), max_size=9
    ),
    st.integers(0, 2),
    st.sampled_from((0, 900, 1100)),
)
def test_lines_are_counted_as_they_are_cut(odd: list[str], where: int, plain: int) -> None:
    """Around multiples of what is counted at once, with lines that are no elements."""
    block = "<http://example.org/subject> <http://example.org/predicate> <o> .\n" * plain
    texts = ["".join(odd), block]
    text = "".join([*texts[::-1][:where], *texts, block]).encode()
    buf = np.frombuffer(text, np.uint8)
    _, elements = cut_lines(buf, len(text) + 1, True)
    assert count_lines(buf) == (elements, text.count(b"\n"), text.count(b"\r"))


@pytest.mark.parametrize("size", [0, 1, 2, LEAP - 1, LEAP, LEAP + 1, 2 * LEAP])
@pytest.mark.parametrize("fill", [b"\n", b"<", b"\r", b"#\n", b"<\n"])
def test_lines_are_counted_at_the_ends_of_what_is_counted_at_once(size: int, fill: bytes) -> None:
    text = (fill * size)[:size]
    buf = np.frombuffer(text, np.uint8)
    _, elements = cut_lines(buf, size + 1, True)
    assert count_lines(buf) == (elements, text.count(b"\n"), text.count(b"\r"))
