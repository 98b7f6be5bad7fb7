"""Columns derive what was not shipped; computed columns are written in canonical form."""

from decimal import Decimal
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from shorthand import IDENTIFY, call, column, const, scope, term, text_column, texts

from levada.connectors.ingest.parse.literal_values import facets_of
from levada.core.expressions import Function as Fn
from levada.core.expressions import Param, Var
from levada.core.rdf_terms import XSD, Kind, Literal
from levada.operators.expressions import (
    Column,
    Scope,
    constant,
    evaluate,
    from_texts,
    gather,
    truth,
)
from levada.operators.expressions.lexical_forms import (
    decimals,
    distinct,
    floats,
    instants,
    lexicals,
)
from levada.operators.expressions.scalar.literals import facets, literal_of, show_float
from levada.operators.expressions.scalar.times import parse

SHORT = (
    "1",
    "-2.50",
    "1e0",
    "true",
    '"a\\"b"',
    "<http://a>",
    "_:b",
    "-",
    '"2020-01-01T00:00:00.5Z"^^xsd:dateTime',
)


def numbers_only(*short: Any) -> Any:
    """A column with value facets, and texts of hard numbers only, as a plan ships it."""
    whole = column(*short)
    kind, dbl, man, scale = whole.values()
    hard = kind == Kind.HARD_NUMBER
    shipped = pl.Series(
        [t if h else None for t, h in zip(whole.texts().to_list(), hard, strict=True)],
        dtype=pl.String,
    )
    return Column(len(short), None, None, kind, dbl, man, scale, lambda: shipped)


def test_values_from_texts() -> None:
    kinds = text_column(*SHORT).kinds().tolist()
    assert kinds == [10, 11, 13, 14, 3, 1, 2, 0, 15]
    _, dbl, man, scale = text_column("-2.50").values()
    assert (dbl[0], man[0], scale[0]) == (-2.5, -25, 1)


def test_texts_from_values() -> None:
    shipped = numbers_only("007", "-2.50", "1e-7", "true", "123456789012345678901", "-")
    wanted = texts("7", "-2.5", '"0.0000001"^^xsd:double', "true", "123456789012345678901", "-")
    assert shipped.texts().to_list() == wanted.to_list()


def test_a_hard_number_without_other_texts_decides() -> None:
    v = numbers_only("79", "80.5", "123456789012345678901", "81e0", "-", "-123456789012345678901")
    condition = call(Fn.GREATER, Var("v"), Param(0))
    done = Scope(6, {"v": v}, params=[constant(term("80"))], identify=IDENTIFY)
    assert truth(condition, done).tolist() == [False, True, True, True, False, False]


def test_bound_by_whatever_is_there() -> None:
    short = ("1", "-", "<http://a>")
    whole = column(*short)
    for slim in (
        text_column(*short),
        Column(3, kind=whole.kinds()),
        Column(3, x=whole.x, y=whole.y),
    ):
        assert slim.bound().tolist() == [True, False, True]


def test_identity_is_that_of_the_text() -> None:
    x, y = text_column("1", "-").identify(IDENTIFY)
    assert (x[1], y[1]) == (0, 0)
    assert (x[0], y[0]) == tuple(v[0] for v in IDENTIFY(texts("1")))


def test_identity_of_a_computed_value_is_that_of_its_canonical_text() -> None:
    total = evaluate(call(Fn.ADD, Var("v"), Var("v")), scope(1, v=column("1.25")))
    assert [v.tolist() for v in total.identify(IDENTIFY)] == [
        v.tolist() for v in IDENTIFY(texts("2.5"))
    ]


def test_gather_takes_rows_and_keeps_constants() -> None:
    v = gather(column("1", '"a"', "-"), np.array([2, 1, 1]))
    assert v.texts().to_list() == texts("-", '"a"', '"a"').to_list()
    assert v.kinds().tolist() == [0, 3, 3]
    assert gather(constant(term("5")), np.array([0, 0])).n == 1


def test_a_parameter_may_differ_in_each_row() -> None:
    limits = gather(column("10", "20"), np.array([0, 0, 1]))
    condition = call(Fn.LESS, Var("v"), Param(0))
    assert truth(condition, Scope(3, {"v": column("5", "15", "15")}, params=[limits])).tolist() == [
        True,
        False,
        True,
    ]


def test_texts_are_fetched_only_when_they_are_needed() -> None:
    def never() -> pl.Series:
        raise AssertionError("no text is needed")

    whole = column("1", "2.5", "<http://a>")
    kind, dbl, man, scale = whole.values()
    lazy = Column(3, whole.x, whole.y, kind, dbl, man, scale, never)
    number, node = constant(term("2")), constant(term("<http://a>"))
    done = Scope(3, {"v": lazy}, params=[number, node], identify=IDENTIFY)
    for function in (
        Fn.LESS,
        Fn.GREATER_EQUAL,
        Fn.EQUAL,
        Fn.NOT_EQUAL,
        Fn.ADD,
        Fn.MULTIPLY,
        Fn.DIVIDE,
    ):
        evaluate(call(function, Var("v"), Param(0)), done)
    for function in (Fn.EQUAL, Fn.NOT_EQUAL, Fn.SAME_TERM):
        evaluate(call(function, Var("v"), Param(1)), done)
    for function in (Fn.BOUND, Fn.IS_IRI, Fn.IS_NUMERIC, Fn.ABS, Fn.MINUS):
        evaluate(call(function, Var("v")), done)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@given(st.lists(st.floats(width=32), min_size=1))
def test_floats_are_written_as_one_by_one(dtype: Any, values: Any) -> None:
    assert floats(np.array(values, dtype)).to_list() == [
        show_float(v) for v in np.array(values, dtype)
    ]


@given(st.lists(st.tuples(st.integers(-(10**18) + 1, 10**18 - 1), st.integers(0, 18)), min_size=1))
def test_decimals_are_written_as_one_by_one(pairs: Any) -> None:
    man, scale = np.array([p[0] for p in pairs]), np.array([p[1] for p in pairs], np.uint8)
    assert decimals(man, scale).to_list() == [
        literal_of(Decimal(m).scaleb(-s)).lexical for m, s in pairs
    ]


@given(st.lists(st.integers(-62135596800000, 253402300799999), min_size=1))
def test_instants_read_back(values: Any) -> None:
    for value, text in zip(values, instants(np.array(values)).to_list(), strict=True):
        assert text == parse(text, "dateTime").lexical()
        assert from_texts(pl.Series([str(Literal(text, XSD + "dateTime"))])).values()[
            2
        ].tolist() == [value]


@given(st.lists(st.text(), min_size=1))
def test_lexical_forms_in_columns(strings: Any) -> None:
    assert lexicals(pl.Series([str(Literal(s)) for s in strings])).to_list() == strings


def test_distinct_combinations() -> None:
    codes, (first, second) = distinct(
        [pl.Series(["a", None, "a", None]), pl.Series(["x", "x", "x", "x"])]
    )
    assert [(first[int(c)], second[int(c)]) for c in codes] == [
        ("a", "x"),
        (None, "x"),
        ("a", "x"),
        (None, "x"),
    ]
    assert len(first) == 2


@pytest.mark.parametrize(
    "short",
    [
        *(
            "1",
            "-007",
            "999999999999999999",
            "1000000000000000000",
            "1.50",
            "-.5",
            "0.0000000000000000001",
            "1e5",
            "-0e0",
        ),
        *(
            '"+5."^^xsd:decimal',
            '"300"^^xsd:byte',
            '"200"^^xsd:unsignedByte',
            '"-1"^^xsd:nonNegativeInteger',
            '" 1"^^xsd:integer',
        ),
        *(
            '"INF"^^xsd:double',
            '"NaN"^^xsd:float',
            '"+INF"^^xsd:float',
            '"nan"^^xsd:double',
            '"16777217"^^xsd:float',
            '"1e40"^^xsd:float',
        ),
        *(
            "true",
            '"0"^^xsd:boolean',
            '"TRUE"^^xsd:boolean',
            '"a"',
            '"a"^^<http://u>',
            '"2020-01-01"^^xsd:date',
            '"16777217.0000001"^^xsd:float',
        ),
        *(
            '"2020-01-01T00:00:00+14:00"^^xsd:dateTime',
            '"2020-01-01T00:00:00"^^xsd:dateTime',
            '"2020-02-30T00:00:00Z"^^xsd:dateTime',
        ),
        *(
            '"12020-01-01T24:00:00Z"^^xsd:dateTime',
            '"2020-01-01T00:00:00.0010Z"^^xsd:dateTime',
            '"2020-01-01T00:00:00.0001Z"^^xsd:dateTime',
        ),
    ],
)
def test_constants_have_the_facets_that_intake_gives(short: Any) -> None:
    literal = term(short)
    kind, dbl, man, scale = facets(literal)
    other = facets_of(literal.lexical, literal.datatype)
    assert kind == other.kind
    assert np.array_equal(dbl, other.dbl, equal_nan=True)
    assert Decimal(man).scaleb(-scale) == Decimal(other.man).scaleb(-other.scale)


def test_mantissas_of_nineteen_digits_do_not_overflow() -> None:
    """Sums of decimals that other operators made use all of an int64."""
    most = 2**63 - 1
    man, scale = np.array([most, -most, most]), np.array([18, 18, 0], np.uint8)
    v = Column(3, None, None, np.full(3, Kind.DECIMAL, np.uint8), man / 10.0**scale, man, scale)
    wanted = {
        call(Fn.ADD, Var("v"), Var("v")): (
            "18.446744073709551614",
            "-18.446744073709551614",
            "18446744073709551614",
        ),
        call(Fn.SUBTRACT, Var("v"), Var("v")): ("0", "0", "0"),
        call(Fn.ROUND, Var("v")): ("9", "-9", "9223372036854775807"),
        call(Fn.ABS, Var("v")): (
            "9.223372036854775807",
            "9.223372036854775807",
            "9223372036854775807",
        ),
        call(Fn.DIVIDE, Var("v"), const("2")): (
            "4.611686018427387903",
            "-4.611686018427387903",
            "4611686018427387903.5",
        ),
    }
    for expression, lexical in wanted.items():
        expected = [str(Literal(s, XSD + "decimal")) for s in lexical]
        assert evaluate(expression, scope(3, v=v)).texts().to_list() == expected
    assert truth(call(Fn.GREATER, Var("v"), const("9.5")), scope(3, v=v)).tolist() == [
        False,
        False,
        True,
    ]
