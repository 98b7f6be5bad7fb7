"""What is enough of the rows of a report at its one place changes no result: ungrouped aggregates,
ORDER BY with LIMIT and whole results, over random streams, with another group table and another
number of partitions at each epoch, stops and deaths between. Against the reference; where that
leaves open what comes first, against one partition, which sends all of its rows.
"""

from __future__ import annotations

from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from asking import STREAM, WINDOWS, at, query
from cases import Case, CaseQuery
from dealing import MOST, by_lot
from examples import PATIENCE, examples
from levada.operators import fewer
from levada.runtime.task import report_steps
from levada.testing.compare import same_queries
from levada.testing.question import Element
from stepped import run_case, run_moved

pytestmark = pytest.mark.timeout(PATIENCE)
ROWS = "WINDOW :w { ?s :p ?v }"
PAIRS = "WINDOW :w { ?s :p ?v . ?s :q ?u }"
MAYBE = "WINDOW :w { ?s :p ?v OPTIONAL { ?s :q ?u } }"
EITHER = "WINDOW :w { { ?s :p ?v } UNION { ?s :q ?v } }"
SUMS = (
    "SELECT (COUNT(*) AS ?n)",
    "SELECT (COUNT(DISTINCT ?v) AS ?n)",
    "SELECT (COUNT(DISTINCT ?s) AS ?n) (COUNT(*) AS ?m) (SUM(?v) AS ?t)",
    "SELECT (SUM(DISTINCT ?v) AS ?t) (MIN(?v) AS ?l) (MAX(?s) AS ?m)",
    "SELECT (COUNT(DISTINCT ?v) AS ?n) (COUNT(DISTINCT ?s) AS ?m)",
    "SELECT (COUNT(DISTINCT *) AS ?n)",
    "SELECT (SUM(?v) AS ?t) (COUNT(?v) AS ?n)",
    "SELECT (MIN(?v) AS ?l) (MAX(?v) AS ?m) (COUNT(*) AS ?n)",
    "SELECT (AVG(?v) AS ?a) (COUNT(?s) AS ?n)",
    "SELECT (MAX(DISTINCT ?v) AS ?m) (COUNT(DISTINCT ?v) AS ?n)",
)
ORDERS = ("?v ?s STR(?v)", "DESC(?s) STR(?v)", "DESC(?v) DESC(?s) DESC(STR(?v))")
TIES = (*ORDERS, "?s", "DESC(?v)")
NUMBERS = ("1", "2", "3", "10", "2.5", "-0.25", "7.0e0", "-3")
VALUES = (
    "1",
    '"x"',
    "12345678901234567890",
    "1.0",
    '"10"',
    "10",
    ":a",
    '"2026-01-01"^^xsd:date',
    *NUMBERS,
)
outputs = st.sampled_from(("RSTREAM", "ISTREAM", "DSTREAM"))


@st.composite
def streams(draw: st.DrawFn, values: tuple[str, ...]) -> tuple[Element, ...]:
    """Elements of some triples, some at one time, about few subjects, with few of these values or
    all.
    """
    some = st.sampled_from(values[: draw(st.sampled_from((2, 4, len(values))))])
    times = sorted(draw(st.lists(st.integers(0, 12), min_size=4, max_size=25)))
    triple = st.builds(
        ":{} :{} {}".format, st.sampled_from("abcdefg"), st.sampled_from("ppq"), some
    )
    return tuple(
        at(1000 + 500 * t, " . ".join(draw(st.lists(triple, min_size=1, max_size=3))))
        for t in times
    )


@st.composite
def one_place(draw: st.DrawFn, name: str, orders: tuple[str, ...]) -> CaseQuery:
    """A query all of whose solutions come to one place."""
    window, output = {"w": draw(st.sampled_from(WINDOWS))}, draw(outputs)
    group = draw(st.sampled_from((ROWS, PAIRS, MAYBE, EITHER)))
    if draw(st.booleans()):
        head, tail = draw(st.sampled_from(SUMS)), ""
    else:
        head = "SELECT DISTINCT ?s ?v" if draw(st.booleans()) else "SELECT ?s ?v"
        offset = draw(st.sampled_from(("", " OFFSET 2")))
        tail = f"ORDER BY {draw(st.sampled_from(orders))} LIMIT {draw(st.integers(0, 4))}{offset}"
    return query(head, group, tail, windows=window, output=output, name=name)


cuts = st.sampled_from((6, 50))  # elements in an epoch
lots = st.integers(0, 2**32 - 1)
starts = st.lists(
    st.tuples(st.integers(2, 9), st.none() | st.integers(1, MOST)), min_size=1, max_size=2
)
deaths = st.dictionaries(st.integers(1, 8), st.booleans(), max_size=1)
shares = st.sampled_from((fewer.FEWER, 1000.0))
pairs = st.sampled_from((report_steps.MOST_PAIRS, 3))


def asked(orders: tuple[str, ...]) -> st.SearchStrategy[tuple[CaseQuery, ...]]:
    """Four queries."""
    return st.tuples(*(one_place(f"q{i}", orders) for i in range(4)))


@examples(6)
@given(
    streams(NUMBERS), asked(ORDERS), st.sampled_from((6, 50)), lots, starts, deaths, shares, pairs
)
def test_partial_results_are_whole(
    elements: tuple[Element, ...], queries: tuple[CaseQuery, ...], rows: int, lot: int,
    stops: list[tuple[int, int | None]], dies: dict[int, bool], share: float, most: int,
) -> None:  # fmt: skip
    case = Case({STREAM: elements}, queries)
    with patch.object(fewer, "FEWER", share), patch.object(report_steps, "MOST_PAIRS", most):
        got = run_moved(case, by_lot(lot), stops, dies, epoch_rows=rows)
    assert same_queries(case.expected(), got) is None


@examples(6)
@given(streams(VALUES), asked(TIES), cuts, lots, starts, deaths, shares, pairs)
def test_all_sorts_of_values_are_as_of_one_partition(
    elements: tuple[Element, ...], queries: tuple[CaseQuery, ...], rows: int, lot: int,
    stops: list[tuple[int, int | None]], dies: dict[int, bool], share: float, most: int,
) -> None:  # fmt: skip
    case = Case({STREAM: elements}, queries)
    right = run_case(case, partitions=1)
    with patch.object(fewer, "FEWER", share), patch.object(report_steps, "MOST_PAIRS", most):
        got = run_moved(case, by_lot(lot), stops, dies, epoch_rows=rows)
    assert same_queries(right, got) is None
