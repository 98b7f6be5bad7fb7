"""CQL's integers have 64 bits, as SQL's bigint: a result beyond has no value, and none wraps."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_random_cases import examples

from levada.errors import QueryError
from support.cql_answers import answers

LEAST, GREATEST = -(2**63), 2**63 - 1


def fitting(value: int) -> str:
    return str(value) if LEAST <= value <= GREATEST else ""


def quotient(a: int, b: int) -> str:
    if b == 0:
        return ""
    return fitting(abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1))


numbers = st.one_of(
    st.integers(-9, 9),
    st.integers(LEAST, GREATEST),
    st.builds(
        lambda a, b: min(max(a + b, LEAST), GREATEST),
        st.sampled_from([LEAST, GREATEST, 10**18, -(10**18), 2**53, 2**32, 0]),
        st.integers(-3, 3),
    ),
)


@examples(20)
@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=8))
def test_results_beyond_64_bits_have_no_value(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, int]]
) -> None:
    text = "Select a + b, a - b, a * b, a / b, -a, a * b - a * b From A [Now]"
    found = answers(tmp_path_factory.mktemp("cql"), text, rows)
    for i, (a, b) in enumerate(rows):
        product = fitting(a * b)
        sums = (fitting(a + b), fitting(a - b), product, quotient(a, b), fitting(-a))
        assert found[1000 * i] == [(*sums, "0" if product else "")]


@examples(10)
@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=8))
def test_a_condition_on_what_has_no_value_is_not_met(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, int]]
) -> None:
    text = "Select a From A [Now] Where a * b > 0 Or a + b < 0"
    found = answers(tmp_path_factory.mktemp("cql"), text, rows)
    for i, (a, b) in enumerate(rows):
        product, total = fitting(a * b), fitting(a + b)
        met = bool(product and int(product) > 0) or bool(total and int(total) < 0)
        assert found.get(1000 * i, []) == ([(str(a),)] if met else [])


@examples(10)
@given(st.lists(st.tuples(numbers, numbers), min_size=1, max_size=8), st.booleans())
def test_sums_beyond_64_bits_have_no_value(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, int]], by_changes: bool
) -> None:
    """Also of a relation that a query reads, where sums are kept by changes."""
    view = "Register Relation V (s Integer) As Select Sum(a) From A [Rows 2]; "
    folder = tmp_path_factory.mktemp("cql")
    if by_changes:
        found = answers(folder, "Select s From V", rows, view)
    else:
        found = answers(folder, "Select Sum(a) From A [Rows 2]", rows)
    for i in range(len(rows)):
        total = fitting(sum(a for a, _ in rows[max(i - 1, 0) : i + 1]))
        assert found.get(1000 * i, [(total,)]) == [(total,)]
    assert 0 in found


def test_a_constant_beyond_64_bits_is_refused_at_its_place(tmp_path: Path) -> None:
    with pytest.raises(QueryError) as caught:
        answers(tmp_path, "Select a From A [Now] Where a < 9223372036854775808", [(1, 1)])
    assert caught.value.message == (
        "An integer has 64 bits, so 9223372036854775808 is none: "
        "write 9223372036854775808.0 for a double."
    )
    assert caught.value.span is not None
    assert caught.value.span.column == 41
