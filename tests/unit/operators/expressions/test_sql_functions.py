"""Functions of SQL over columns, where Spark in ANSI mode decides."""

from __future__ import annotations

from statistics import variance

import numpy as np
import pytest

from levada.core.expressions import Function
from levada.core.rdf_terms import XSD, Literal
from levada.operators.expressions.sql_functions import sql_function
from levada.operators.expressions.term_values import Column, constant


def term(value: object) -> Column:
    if value is None:
        return constant(None)
    if isinstance(value, str):
        return constant(Literal(value))
    kind = "double" if isinstance(value, float) else "integer"
    return constant(Literal(str(value), XSD + kind))


def result(function: Function, *values: object) -> str | None:
    text = sql_function(function, [term(value) for value in values]).texts().to_list()[0]
    return None if text is None else text.split('"')[1]


@pytest.mark.parametrize(
    ("function", "values", "expected"),
    [
        (Function.ROUND_DIGITS, (-2.5, 0), "-3"),
        (Function.ROUND_DIGITS, (1.005, 2), "1.01"),
        (Function.ROUND_DIGITS, (125, -1), "130"),
        (Function.ROUND_DIGITS, (9e18, 2), "9000000000000000000"),
        (Function.REMAINDER, (-7, 3), "-1"),
        (Function.REMAINDER, (7, 0), None),
        (Function.LN, (0,), None),
        (Function.SUBSTRING, ("abc", 0, 2), "ab"),
        (Function.SUBSTRING, ("abc", -2), "bc"),
        (Function.SUBSTRING, ("abc", -5, 3), "a"),
        (Function.LPAD, ("abc", 2, "x"), "ab"),
        (Function.LPAD, ("é", 4, "xy"), "xyxé"),
        (Function.RPAD, ("a", 10**18, "x"), None),
        (Function.REPLACE_TEXT, ("abab", "b", ""), "aa"),
        (Function.REPLACE_TEXT, ("ab", "", "x"), "ab"),
        (Function.SPLIT_PART, ("a,b", ",", 3), ""),
        (Function.SPLIT_PART, ("a,b", ",", -1), "b"),
        (Function.POSITION, ("ß", "aß"), "2"),
        (Function.REVERSE, (None,), None),
        (Function.NUMBER_TEXT, (1.0,), "1.0"),
        (Function.NUMBER_TEXT, (1e10,), "1.0E10"),
        (Function.NUMBER_TEXT, (-1.5e-7,), "-1.5E-7"),
        (Function.DATE_PART, ("dayofweek", 0), "5"),
        (Function.DATE_PART, ("year", 2**62), None),
        (Function.DATE_TRUNC, ("month", 2_700_000_000), "2678400000"),
        (Function.DATE_TRUNC, ("hour", -1), "-3600000"),
    ],
)
def test_a_function_is_that_of_spark(
    function: Function, values: tuple[object, ...], expected: str | None
) -> None:
    assert result(function, *values) == expected


def test_a_variance_is_exact_where_squares_cancel() -> None:
    values = [1e9 + v for v in (0.25, 0.5, 1.75, 2.0)]
    squares = np.array(values) ** 2
    lost = [float(str(result(Function.SQUARE_REST, v))) for v in values]
    exact = sum(int(v * 4) for v in values) / 4
    total = sum(int(s) for s in squares)
    found = result(
        Function.VARIANCE, 1, 4, float(exact), 0.0, float(total),
        float(total - int(float(total))), float(sum(lost)),
    )  # fmt: skip
    assert float(str(found)) == pytest.approx(variance(values), rel=1e-6)
