"""Sums of decimals against Python's integers: any size, any number of rows, any grouping."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.core.frame import Frame
from levada.core.rdf_terms import XSD, Kind
from levada.operators.aggregation import decimal_sums

mantissas = st.integers(-(10**18) + 1, 10**18 - 1)
rows = st.lists(
    st.tuples(mantissas, st.integers(0, 18), st.integers(0, 2)), min_size=1, max_size=20
)
NO_INTEGERS = (np.zeros(3, np.int64), np.zeros(3, np.int64))


def frame(m: list[int], c: list[int], kind: Kind = Kind.DECIMAL) -> Frame:
    n = len(m)
    return Frame(
        {
            "k0": np.full(n, kind, np.uint8),
            "m0": np.array(m, np.int64),
            "c0": np.array(c, np.uint8),
        },
        n,
    )


def no_texts(*args: object) -> list[str]:
    raise AssertionError("no number is hard")


@given(rows)
def test_sums_are_exact(values: list[tuple[int, int, int]]) -> None:
    m, c, group = (list(column) for column in zip(*values, strict=True))
    found = decimal_sums.fold(frame(m, c), 0, np.array(group, np.int32), 3, no_texts)
    for g in range(3):
        exact = sum(Fraction(m, 10**c) for m, c, of in values if of == g)
        assert decimal_sums.total(found.limbs, NO_INTEGERS, g) == exact * decimal_sums.UNIT
    assert not len(found.integers)
    assert not found.unknown.any()


@given(st.lists(rows, min_size=1, max_size=4))
def test_sums_of_sums_are_the_sum(parts: list[list[tuple[int, int, int]]]) -> None:
    folded, codes = [], []
    for values in parts:
        m, c, group = (list(column) for column in zip(*values, strict=True))
        folded.append(
            decimal_sums.fold(frame(m, c), 0, np.array(group, np.int32), 3, no_texts).limbs
        )
        codes += [0, 1, 2]
    limbs = [np.concatenate([part[n] for part in folded]) for n in range(3)]
    merged = decimal_sums.merge(limbs, np.array(codes, np.int32), 3)
    for g in range(3):
        exact = sum(Fraction(m, 10**c) for values in parts for m, c, of in values if of == g)
        assert decimal_sums.total(merged, NO_INTEGERS, g) == exact * decimal_sums.UNIT


@pytest.mark.parametrize("sign", [1, -1])
def test_many_rows_do_not_overflow(sign: int) -> None:
    """The low limbs of 100,000 rows of one group add up to more than 63 bits."""
    n, m = 100_000, sign * 999_999_999_999_999_999
    found = decimal_sums.fold(frame([m] * n, [18] * n), 0, np.zeros(n, np.int32), 1, no_texts)
    assert decimal_sums.total(found.limbs, (np.zeros(1, np.int64),) * 2, 0) == n * m


def hard(*texts: str) -> tuple[Decimal, list[int], list[bool]]:
    """Of HARD numbers in one group: the total, which are integers, which are too long."""
    n = len(texts)

    def shown(rows: Frame, i: int, at: object) -> list[str]:
        return list(texts)

    found = decimal_sums.fold(
        frame([0] * n, [0] * n, Kind.HARD_NUMBER), 0, np.zeros(n, np.int32), 1, shown
    )
    none = (np.zeros(1, np.int64),) * 2
    total = decimal_sums.Totals(found.limbs, none, found.large).exact_sum(0)
    return total, found.integers.tolist(), found.unknown.tolist()


def test_hard_numbers_are_read_from_their_texts() -> None:
    integer = f'"9223372036854775807"^^<{XSD}integer>'
    decimal = f'"-0.1234567890123456789"^^<{XSD}decimal>'
    whole = f'"12345678901234567890"^^<{XSD}decimal>'
    expected = Decimal("21569050938089343696.8765432109876543211")
    assert hard(integer, decimal, whole) == (expected, [0], [False] * 3)


def test_numbers_beyond_127_bits_are_added_exactly() -> None:
    found = hard(f'"{10**40}"^^<{XSD}integer>', f'"{10**19}"^^<{XSD}integer>')
    assert found == (Decimal(10**40 + 10**19), [0, 1], [False, False])


def test_a_number_of_more_than_1000_characters_has_no_value() -> None:
    assert hard(f'"{10**1000}"^^<{XSD}integer>', f'"{10**19}"^^<{XSD}integer>') == (
        Decimal(10**19),
        [0, 1],
        [True, False],
    )
