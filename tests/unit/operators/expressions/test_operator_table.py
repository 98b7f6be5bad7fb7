"""The operators of SPARQL 1.1, 17.3 and 17.4.1, value and error; expectations are the
specification's.
"""

from typing import Any

import pytest
from shorthand import expected, of_columns, of_constants, split

from levada.core.expressions import Function as Fn

ARITHMETIC = [
    (Fn.ADD, "1 2", "3"),
    (Fn.ADD, "1 2.5", "3.5"),
    (Fn.ADD, "1.0 1.0", '"2"^^xsd:decimal'),
    (Fn.ADD, "1 1e0", '"2"^^xsd:double'),
    (Fn.ADD, '"5"^^xsd:byte 1', "6"),
    (Fn.ADD, '"1.1"^^xsd:float 1.5', '"2.6"^^xsd:float'),
    (Fn.ADD, '"1.1"^^xsd:float 1e0', '"2.100000023841858"^^xsd:double'),
    (Fn.ADD, '"a" 1', "-"),
    (Fn.ADD, "true 1", "-"),
    (Fn.ADD, "<http://a> 1", "-"),
    (Fn.ADD, "- 1", "-"),
    (Fn.ADD, "9223372036854775807 1", "9223372036854775808"),
    (Fn.ADD, "999999999999999999 1", "1000000000000000000"),
    (Fn.ADD, "123456789012345678901 -123456789012345678900", "1"),
    (Fn.ADD, "0.1 0.000000000000000001", '"0.100000000000000001"^^xsd:decimal'),
    (Fn.SUBTRACT, "1 2", "-1"),
    (Fn.SUBTRACT, "2.5 0.5", '"2"^^xsd:decimal'),
    (Fn.SUBTRACT, '"INF"^^xsd:double "INF"^^xsd:double', '"NaN"^^xsd:double'),
    (Fn.MULTIPLY, "3 -4", "-12"),
    (Fn.MULTIPLY, "1.5 1.5", "2.25"),
    (Fn.MULTIPLY, "3000000000 3000000000", "9000000000000000000"),
    (
        Fn.MULTIPLY,
        "9223372036854775807 9223372036854775807",
        "85070591730234615847396907784232501249",
    ),
    (Fn.MULTIPLY, "9223372036854775807 2.0", '"18446744073709551614"^^xsd:decimal'),
    (Fn.MULTIPLY, "0.333333333333333333 0.5", "0.1666666666666666665"),
    (Fn.MULTIPLY, "0.1 3e0", '"0.30000000000000004"^^xsd:double'),
    (Fn.MULTIPLY, "-1 0e0", '"-0"^^xsd:double'),
    (Fn.DIVIDE, "5 2", "2.5"),
    (Fn.DIVIDE, "4 2", '"2"^^xsd:decimal'),
    (Fn.DIVIDE, "1 3", "0.333333333333333333"),
    (Fn.DIVIDE, "10 3", "3.333333333333333333"),
    (Fn.DIVIDE, "-10 3", "-3.333333333333333333"),
    (Fn.DIVIDE, "2.0 3.0", "0.666666666666666666"),
    (Fn.DIVIDE, "-2 3", "-0.666666666666666666"),
    (Fn.DIVIDE, "1 999999999999999999", '"0.000000000000000001"^^xsd:decimal'),
    (Fn.DIVIDE, "0 5", '"0"^^xsd:decimal'),
    (Fn.DIVIDE, "1 0", "-"),
    (Fn.DIVIDE, "1.0 0.0", "-"),
    (Fn.DIVIDE, "1e0 0", '"INF"^^xsd:double'),
    (Fn.DIVIDE, "-1e0 0", '"-INF"^^xsd:double'),
    (Fn.DIVIDE, "0e0 0", '"NaN"^^xsd:double'),
    (Fn.DIVIDE, '"1"^^xsd:float 0', '"INF"^^xsd:float'),
    (Fn.PLUS, '"05"^^xsd:integer', "5"),
    (Fn.PLUS, '"a"', "-"),
    (Fn.MINUS, "2.50", "-2.5"),
    (Fn.MINUS, "0e0", '"-0"^^xsd:double'),
    (Fn.MINUS, '"5"^^xsd:byte', "-5"),
    (Fn.MINUS, '"INF"^^xsd:float', '"-INF"^^xsd:float'),
    (Fn.ABS, "-3.50", "3.5"),
    (Fn.ABS, '"-1.5"^^xsd:float', '"1.5"^^xsd:float'),
    (Fn.ABS, '"a"', "-"),
    (Fn.ROUND, "2.5", '"3"^^xsd:decimal'),
    (Fn.ROUND, "-2.5", '"-2"^^xsd:decimal'),
    (Fn.ROUND, "2.4999", '"2"^^xsd:decimal'),
    (Fn.ROUND, "-2.5e0", '"-2"^^xsd:double'),
    (Fn.ROUND, "-0.4e0", '"-0"^^xsd:double'),
    (Fn.ROUND, "0.49999999999999994e0", '"0"^^xsd:double'),
    (Fn.ROUND, "7", "7"),
    (Fn.ROUND, '"NaN"^^xsd:double', '"NaN"^^xsd:double'),
    (Fn.ROUND, "123456789012345678.5", '"123456789012345679"^^xsd:decimal'),
    (Fn.CEIL, "2.1", '"3"^^xsd:decimal'),
    (Fn.CEIL, "-2.1", '"-2"^^xsd:decimal'),
    (Fn.CEIL, "-0.5e0", '"-0"^^xsd:double'),
    (Fn.FLOOR, "2.9", '"2"^^xsd:decimal'),
    (Fn.FLOOR, "-2.1", '"-3"^^xsd:decimal'),
    (Fn.FLOOR, '"x"', "-"),
]
EQUALITY = [
    ("1 1.0", "true"),
    ("1 01", "true"),
    ("1 2", "false"),
    ("1.10 1.1e0", "true"),
    ("9007199254740993 9007199254740992.0", "false"),
    ("9007199254740993 9007199254740992e0", "true"),
    ('"1.1"^^xsd:float 1.1', "true"),
    ('"1.1"^^xsd:float 1.1e0', "false"),
    ('"16777217"^^xsd:float 16777217', "true"),
    ("123456789012345678901 123456789012345678901.0", "true"),
    ("123456789012345678901 1", "false"),
    ('"NaN"^^xsd:double "NaN"^^xsd:double', "false"),
    ('"+INF"^^xsd:double "INF"^^xsd:double', "true"),
    ('"a" "a"', "true"),
    ('"a" "b"', "false"),
    ('"a" "a"@en', "false"),
    ('"a"@en "a"@en', "true"),
    ('"a"@en "a"@fr', "false"),
    ("<http://a> <http://a>", "true"),
    ("<http://a> <http://b>", "false"),
    ('<http://a> "a"', "false"),
    ("_:a _:a", "true"),
    ("_:a <http://a>", "false"),
    ("true 1", "false"),
    ('true "1"^^xsd:boolean', "true"),
    ('"a" 1', "false"),
    ('"a"^^<http://u> "a"^^<http://u>', "true"),
    ('"a"^^<http://u> "b"^^<http://u>', "-"),
    ('"a"^^<http://u> "a"', "-"),
    ('"a"^^<http://u> "a"@en', "false"),
    ('"a"^^<http://u> 1', "-"),
    ('"a"^^<http://u> <http://a>', "false"),
    ('"x"^^xsd:integer "x"^^xsd:integer', "true"),
    ('"x"^^xsd:integer 1', "-"),
    ('"300"^^xsd:byte 300', "-"),
    ('"2020-01-01T00:00:00Z"^^xsd:dateTime "2020-01-01T01:00:00+01:00"^^xsd:dateTime', "true"),
    ('"2020-01-01T00:00:00Z"^^xsd:dateTime "2020-01-01T00:00:00.0000001Z"^^xsd:dateTime', "false"),
    ('"2020-01-01T00:00:00"^^xsd:dateTime "2020-01-01T00:00:00Z"^^xsd:dateTime', "-"),
    ('"2020-01-01T00:00:00"^^xsd:dateTime "2020-01-01T00:00:00.0"^^xsd:dateTime', "true"),
    ('"2020-01-01T00:00:00Z"^^xsd:dateTime "2020-01-01T00:00:00Z"^^xsd:dateTimeStamp', "true"),
    ('"2006-08-23Z"^^xsd:date "2006-08-23+00:00"^^xsd:date', "true"),
    ('"2006-08-23"^^xsd:date "2006-08-23Z"^^xsd:date', "-"),
    ('"2006-08-23T09:00:00+01:00"^^xsd:dateTime "2006-08-23"^^xsd:date', "false"),
    ('"P1Y"^^xsd:duration "P12M"^^xsd:yearMonthDuration', "true"),
    ('"P1D"^^xsd:dayTimeDuration "PT24H"^^xsd:dayTimeDuration', "true"),
    ("- 1", "-"),
]
ORDER = [
    (Fn.LESS, "1 2", "true"),
    (Fn.LESS, "2 2.0", "false"),
    (Fn.LESS, "1.09 1.1", "true"),
    (Fn.LESS, "-0.000000000000000001 0", "true"),
    (Fn.LESS, "0.000000000000000001 999999999999999999", "true"),
    (Fn.LESS, "123456789012345678901 123456789012345678902", "true"),
    (Fn.LESS, '"NaN"^^xsd:double 1', "false"),
    (Fn.GREATER, '"NaN"^^xsd:double 1', "false"),
    (Fn.GREATER, '"INF"^^xsd:double 123456789012345678901', "true"),
    (Fn.LESS, '"1.1"^^xsd:float 1.1e0', "false"),
    (Fn.LESS, "false true", "true"),
    (Fn.LESS, '"a" "b"', "true"),
    (Fn.LESS, '"a" "a b"', "true"),
    (Fn.LESS, '"a\\"" "a!"', "false"),
    (Fn.LESS, '"\\uFFFD" "\U00010000"', "true"),
    (Fn.LESS, '"a" "b"@en', "-"),
    (Fn.LESS, '"a"@en "b"@en', "true"),
    (Fn.LESS, '"a"@en "b"@fr', "-"),
    (Fn.LESS, '"a" 1', "-"),
    (Fn.LESS, "<http://a> <http://b>", "-"),
    (Fn.LESS, "_:a _:b", "-"),
    (Fn.LESS, '"a"^^<http://u> "a"^^<http://u>', "-"),
    (Fn.LESS, '"a"^^<http://u> 1', "-"),
    (Fn.GREATER_EQUAL, "2 2.0", "true"),
    (Fn.LESS_EQUAL, "2 1", "false"),
    (
        Fn.LESS,
        '"2020-01-01T00:00:00Z"^^xsd:dateTime "2020-01-01T00:00:00.001Z"^^xsd:dateTime',
        "true",
    ),
    (Fn.LESS, '"2020-01-01T00:00:00"^^xsd:dateTime "2020-01-01T14:00:00Z"^^xsd:dateTime', "-"),
    (Fn.LESS, '"2020-01-01T00:00:00"^^xsd:dateTime "2020-01-01T14:00:01Z"^^xsd:dateTime', "true"),
    (
        Fn.LESS_EQUAL,
        '"2020-01-01T00:00:00"^^xsd:dateTime "2020-01-01T00:00:00"^^xsd:dateTime',
        "true",
    ),
    (Fn.GREATER, '"2006-08-23Z"^^xsd:date "2006-08-22"^^xsd:date', "true"),
    (Fn.GREATER, '"2006-08-23Z"^^xsd:date "2006-08-23"^^xsd:date', "-"),
    (Fn.GREATER, '"2006-08-24"^^xsd:date "2006-08-22"^^xsd:date', "true"),
    (Fn.LESS, '"2006-08-23"^^xsd:date "2006-08-24T00:00:00"^^xsd:dateTime', "-"),
    (Fn.LESS, '"10:00:00"^^xsd:time "11:00:00"^^xsd:time', "true"),
    (Fn.LESS, '"2020"^^xsd:gYear "2021"^^xsd:gYear', "true"),
    (Fn.LESS, '"P1M"^^xsd:duration "P30D"^^xsd:duration', "-"),
    (Fn.LESS, '"P1M"^^xsd:duration "P32D"^^xsd:duration', "true"),
]


@pytest.mark.parametrize(("function", "args", "result"), ARITHMETIC)
def test_arithmetic(function: Any, args: Any, result: Any) -> None:
    assert of_constants(function, *split(args)) == expected(result)
    assert of_columns(function, *split(args)) == expected(result)


@pytest.mark.parametrize(("args", "result"), EQUALITY)
def test_equality_and_its_negation(args: Any, result: Any) -> None:
    a, b = split(args)
    opposite = {"true": "false", "false": "true", "-": "-"}[result]
    for x, y in ((a, b), (b, a)):
        assert of_constants(Fn.EQUAL, x, y) == expected(result)
        assert of_columns(Fn.EQUAL, x, y) == expected(result)
        assert of_columns(Fn.NOT_EQUAL, x, y) == expected(opposite)


@pytest.mark.parametrize(("function", "args", "result"), ORDER)
def test_order(function: Any, args: Any, result: Any) -> None:
    a, b = split(args)
    mirrored = {Fn.LESS: Fn.GREATER, Fn.GREATER: Fn.LESS}
    mirror = {**mirrored, Fn.LESS_EQUAL: Fn.GREATER_EQUAL, Fn.GREATER_EQUAL: Fn.LESS_EQUAL}[
        function
    ]
    assert of_constants(function, a, b) == expected(result)
    assert of_columns(function, a, b) == expected(result)
    assert of_columns(mirror, b, a) == expected(result)
