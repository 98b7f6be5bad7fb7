"""ORDER BY, MIN and MAX (SPARQL 1.1, 15.1 and 18.5.1.5)."""

from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st
from shorthand import column, term, text_column, texts

from levada.operators.expressions import compare_rank, order_rank, order_rows
from levada.operators.expressions.scalar.literals import value_of

ORDERED = [
    "-",
    "_:a",
    "_:b",
    "<http://a>",
    "<http://a/b>",
    "<http://b>",
    '"NaN"^^xsd:double',
    '"-INF"^^xsd:double',
    "-123456789012345678901",
    "-1.5",
    "0",
    "0.000000000000000001",
    "2e0",
    "10",
    "9007199254740992",
    "9007199254740993",
    "123456789012345678901",
    '"INF"^^xsd:float',
    "false",
    "true",
    '"1969-12-31T23:00:00Z"^^xsd:dateTime',
    '"2020-01-01T00:00:00Z"^^xsd:dateTime',
    '"2020-01-01T00:00:00.0000001Z"^^xsd:dateTime',
    '"2020-01-01T00:00:01"^^xsd:dateTime',
    '"2020-01-01"^^xsd:date',
    '"P1D"^^xsd:duration',
    '""',
    '"10"',
    '"a"^^<http://u>',
    '"a"@de',
    '"a"@en',
    '"a"',
    '"a b"',
    '"a\\"b"',
    '"b"',
    '"x"^^xsd:integer',
    '"\\uFFFD"',
    '"\U00010000"',
]


def test_the_order_of_all_kinds_of_terms() -> None:
    rank = compare_rank(column(*ORDERED))
    assert np.argsort(rank, kind="stable").tolist() == list(range(len(ORDERED)))
    assert len(set(rank.tolist())) == len(ORDERED)


def test_any_subset_has_the_same_order() -> None:
    rng = np.random.default_rng(5)
    for _ in range(50):
        rows = rng.permutation(len(ORDERED))[: rng.integers(1, 8)]
        rank = compare_rank(column(*(ORDERED[i] for i in rows)))
        assert (np.argsort(rank) == np.argsort(rows)).all()


def test_equal_values_tie() -> None:
    for ties in (("1", "1.0", "01", "1e0"), ("1.1", "1.1e0", "1.10"), ('"a"', '"a"')):
        assert len(set(compare_rank(column(*ties)).tolist())) == 1
    same_instant = (
        '"2020-01-01T00:00:00Z"^^xsd:dateTime',
        '"2020-01-01T01:00:00+01:00"^^xsd:dateTime',
    )
    assert len(set(compare_rank(column(*same_instant)).tolist())) == 1


def test_equal_values_tie_in_any_company() -> None:
    """An integer of 16 digits has its whole block read term by term."""
    for company in (
        ["9007199254740993"],
        ['"a"', "<http://a>"],
        ['"x"^^xsd:integer'],
        ["1e300", "123456789012345678901", '""'],
    ):
        rank = compare_rank(column("1", "1e0", "1.0", *company))
        assert len(set(rank[:3].tolist())) == 1
    second = '"2020-01-01T00:00:00Z"^^xsd:dateTime', '"2020-01-01T00:00:00.000Z"^^xsd:dateTime'
    rank = compare_rank(column(*second, '"2020-01-01T00:00:00.0000001Z"^^xsd:dateTime', '"b"'))
    assert rank[0] == rank[1]


def test_plain_numbers_are_their_own_rank() -> None:
    assert compare_rank(column("3", "1", "2")).tolist() == [3, 1, 2]
    assert compare_rank(column("3e0", "-1e0")).tolist() == [3.0, -1.0]


def test_several_keys_and_directions() -> None:
    first, second = column("1", "2", "1", "2.0"), column('"a"', '"a"', '"b"', '"b"')
    assert order_rank([first, second], [False, False]).tolist() == [0, 2, 1, 3]
    assert order_rank([first, second], [False, True]).tolist() == [1, 3, 0, 2]
    assert order_rank([first], [True]).tolist() == [1, 0, 1, 0]


def test_rows_in_order_with_ties_broken_by_text() -> None:
    key = column("1", "1.0", "-", "01")
    assert order_rows([key], [False], [key.texts()]).tolist() == [2, 3, 0, 1]
    assert order_rows([key], [True], [texts("<b>", "<a>", "<c>", "-")]).tolist() == [3, 1, 0, 2]
    nothing = pl.Series([None] * 4, dtype=pl.String)
    assert order_rows([key], [False], [nothing]).tolist() == [2, 0, 1, 3], "then by position"
    assert order_rows([text_column()], [False], [texts()]).tolist() == []


def fraction_of(short: str) -> Fraction:
    """The value of a number's term."""
    found = term(short)
    assert found is not None
    value = value_of(found)
    assert isinstance(value, int | Decimal | float)
    return Fraction(value)


@given(
    st.lists(
        st.sampled_from(["1", "1.5", "-2.25", "3e0", "0.1", '"0.5"^^xsd:float', "100", "0"]),
        min_size=1,
    )
)
def test_numbers_are_ranked_by_value(short: Any) -> None:
    values = [Fraction(s) if "." in s and "^" not in s else fraction_of(s) for s in short]
    rank = compare_rank(column(*short)).tolist()
    for i, a in enumerate(values):
        for j, b in enumerate(values):
            assert (a < b) == (rank[i] < rank[j])
