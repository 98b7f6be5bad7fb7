"""Aggregates of distinct values by changes: over windows on change, over views, beside aggregates
of all rows; SQLite judges.
"""

from __future__ import annotations

import pytest

from levada.testing.reference_model import Row
from support.sql_cases import ALL, RANGE, ROWS3, A, check, sql

S = (
    *A,
    Row(7000, (0, 0.5, "y")),
    Row(7000, (0, 0.5, "x")),
    Row(8000, (1, 2.0, "x")),
    Row(8500, (1, 2.0, "x")),
    Row(12000, (2, 1.0, "y")),
)
ITEMS = {
    "count": ("Count(Distinct v) As n", {"n": "integer"}),
    "sums": ("Sum(Distinct v) As d, Sum(v) As s", {"d": "double", "s": "double"}),
    "mean": ("Avg(Distinct v) As d, Count(*) As n", {"d": "double", "n": "integer"}),
    "best": ("Max(Distinct v) As d, Min(v) As s", {"d": "double", "s": "double"}),
    "two": ("Count(Distinct v) As n, Count(Distinct k) As m", {"n": "integer", "m": "integer"}),
}
WINDOWS = {"[Range 2 s]": RANGE, "[Rows 3]": ROWS3, "": ALL}


@pytest.mark.long
@pytest.mark.parametrize("item", ITEMS)
@pytest.mark.parametrize("shown", WINDOWS)
def test_distinct_values_of_a_window(item: str, shown: str) -> None:
    text, types = ITEMS[item]
    on = {"A": ("A", WINDOWS[shown])}
    check(
        f"Select k, {text} From A {shown} Group By k",
        sql(f"Select k, {text} From A Group By k", on, {"k": "integer", **types}),
        A=S,
    )
    check(f"Select {text} From A {shown}", sql(f"Select {text} From A", on, types), A=S)


@pytest.mark.parametrize("item", ITEMS)
def test_distinct_values_of_a_view(item: str) -> None:
    text, types = ITEMS[item]
    view = sql(
        "Select k, Sum(v) From A Group By k", {"A": ("A", RANGE)}, {"k": "integer", "v": "double"}
    )
    made = (
        "Register Relation V (k Integer, v Float) As Select k, Sum(v) From A [Range 2 s] "
        "Group By k;"
    )
    check(
        f"{made} Select {text} From V",
        sql(f"Select {text} From V", {"V": ("V", ALL)}, types, views={"V": view}),
        A=S,
    )
