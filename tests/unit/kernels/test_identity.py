"""Identities of Arrow and Polars columns, and of tuple values."""

from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
import xxhash
from hypothesis import given, settings
from hypothesis import strategies as st

from levada.kernels.terms.term_ids import identify, identify_ints, identify_one

TEXTS = st.lists(st.none() | st.text(max_size=300))


def library(text: str | None, seed: int) -> tuple[int, int]:
    if text is None:
        return 0, 0
    return halves(text.encode(), seed)


def halves(data: bytes, seed: int) -> tuple[int, int]:
    """112 bits under the seed, and above them the group, which is the same under every seed."""
    both = xxhash.xxh3_128_intdigest(data, seed)
    public = xxhash.xxh3_64_intdigest(data) >> 48 << 48
    return both & (2**64 - 1), both >> 64 & (2**48 - 1) | public


def make(texts: list[str | None], form: str) -> Any:
    match form:
        case "series":
            return pl.Series(texts, dtype=pl.String)
        case "string":
            return pa.array(texts, pa.string())
        case "large":
            return pa.array(texts, pa.large_string())
        case "view":
            return pa.array(texts, pa.string_view())
        case "chunked":
            return pa.chunked_array(
                [pa.array(texts[:2], pa.string()), pa.array(texts[2:], pa.string())]
            )
        case _:
            return pa.array([None, "x", *texts], pa.string())[2:]


@pytest.mark.parametrize("form", ["series", "string", "large", "view", "chunked", "slice"])
@settings(deadline=None)
@given(TEXTS, st.integers(0, 2**64 - 1))
def test_identify_equals_the_library(form: str, texts: list[str | None], seed: int) -> None:
    x, y = identify(make(texts, form), seed)
    assert list(zip(x.tolist(), y.tolist(), strict=True)) == [library(text, seed) for text in texts]


@settings(deadline=None)
@given(st.text(max_size=50), st.integers(0, 2**64 - 1))
def test_identify_one(text: str, seed: int) -> None:
    assert identify_one(text, seed) == library(text, seed)


def test_no_rows() -> None:
    assert [len(half) for half in identify(pa.chunked_array([], pa.string()), 1)] == [0, 0]
    assert [len(half) for half in identify_ints(np.zeros(0, np.int64), 1, 1)] == [0, 0]


def test_ints_differ_by_tag_and_seed() -> None:
    values = np.array([-1, 0, 7])
    first = identify_ints(values, 10, 1)
    assert not np.array_equal(first[0], identify_ints(values, 11, 1)[0])
    assert not np.array_equal(first[0], identify_ints(values, 10, 2)[0])
    nine = bytes([10]) + (7).to_bytes(8, "little")
    assert (int(first[0][2]), int(first[1][2])) == halves(nine, 1)
