"""Typed tables of reports: types, keys of rows, and terms that a column cannot represent."""

from __future__ import annotations

from decimal import Decimal

import numpy as np
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.connectors.serialization.report_tables import (
    UnfitValueError,
    arrow_schema,
    arrow_type,
    check_type,
    columns_of,
    common_type,
    convert,
    datatypes_of,
    inferred_type,
    numbers,
    parse_columns,
    report_table,
)
from levada.connectors.serialization.serialize import Batch
from levada.core.query_model import Form
from levada.core.rdf_terms import XSD
from levada.errors import UsageError


def literal(text: str, datatype: str) -> str:
    return f'"{text}"^^<{XSD}{datatype}>'


@pytest.mark.parametrize(
    ("terms", "type_"),
    [
        ([literal("5", "integer"), literal("7", "int"), None], "bigint"),
        ([literal("9" * 30, "integer")], "decimal(38,0)"),
        ([literal("1.50", "decimal"), literal("2", "integer")], "decimal(38,18)"),
        ([literal(f"{10**24}.5", "decimal")], "decimal(38,1)"),
        ([literal("1.5E0", "double"), literal("2", "integer")], "double"),
        ([literal("0.1", "float")], "double"),
        ([literal("true", "boolean")], "boolean"),
        ([literal("2026-01-01", "date")], "date"),
        ([literal("2026-01-01T00:00:00Z", "dateTime")], "timestamp"),
        ([literal("2026-01-01T00:00:00", "dateTime")], "timestamp_ntz"),
        ([literal("PT5S", "dayTimeDuration")], "string"),
        (['"a"'], "string"), (['"a"@en'], "string"), (["<e:a>", literal("1", "integer")], "string"),
        ([literal("x", "integer")], "string"), ([None], ""),
    ],
)  # fmt: skip
def test_inferred_type(terms: list[str | None], type_: str) -> None:
    texts = pl.Series(terms, dtype=pl.String)
    assert inferred_type(texts) == type_
    values = convert(texts, type_ or "string")
    assert values is not None and values.null_count() == texts.null_count()
    values.to_arrow().cast(arrow_type(type_ or "string"))


INFERRED = ["", "bigint", "double", "decimal(38,0)", "decimal(38,18)", "decimal(38,3)", "date",
            "timestamp", "timestamp_ntz", "boolean", "string"]  # fmt: skip


@given(st.sampled_from(INFERRED), st.sampled_from(INFERRED), st.sampled_from(INFERRED))
def test_common_type_commutes_and_its_order_does_not_matter(a: str, b: str, c: str) -> None:
    assert common_type(a, b) == common_type(b, a)
    assert common_type(a, a) == a
    if "decimal(38,3)" not in (a, b, c) and {"decimal(38,0)", "decimal(38,18)"} - {a, b, c}:
        assert common_type(common_type(a, b), c) == common_type(a, common_type(b, c))


NUMBERS = st.one_of(
    st.integers(-(2**63), 2**63 - 1).map(lambda n: (literal(str(n), "integer"), Decimal(n))),
    st.decimals(-(10**15), 10**15, places=6).map(
        lambda d: (literal(f"{d:f}", "decimal"), Decimal(d))
    ),
)


@given(st.lists(NUMBERS, min_size=1, max_size=20))
def test_numbers_of_two_batches_have_their_values_in_the_common_type(
    values: list[tuple[str, Decimal]],
) -> None:
    texts = [pl.Series([text for text, _ in part], dtype=pl.String)
             for part in (values[::2], values[1::2])]  # fmt: skip
    type_ = common_type(*(inferred_type(part) for part in texts))
    for part, expected in zip(texts, (values[::2], values[1::2]), strict=True):
        converted = convert(part, type_)
        assert converted is not None
        assert [Decimal(v) for v in converted.to_list()] == [value for _, value in expected]


@given(st.lists(st.integers(0, 4), max_size=30).map(sorted))
def test_numbers_count_the_rows_of_each_report(reports: list[int]) -> None:
    expected = [reports[:i].count(report) for i, report in enumerate(reports)]
    assert numbers(np.array(reports, np.int64)).tolist() == expected


def test_a_table_has_the_key_of_each_row_then_the_variables() -> None:
    batch = Batch(
        np.array([7, 7, 9]),
        columns={
            "number": pl.Series([literal("1", "integer"), None, literal("3", "integer")]),
            "x": pl.Series(["<e:a>", '"b\\n"@en', None]),
        },
        change=np.array([-1, 1, 1], np.int8),
    )
    columns = columns_of(["number", "x"], {"number": "bigint"}, datatypes=True)
    table = report_table(batch, columns)
    assert table.schema == arrow_schema(columns)
    assert table.column_names == [
        "report", "sign", "levada_number", "number", "number_datatype", "x", "x_datatype",
    ]  # fmt: skip
    assert table.column("report").cast(pa.timestamp("ms")).cast(pa.int64()).to_pylist() == [7, 7, 9]
    assert table.column("sign").to_pylist() == [-1, 1, 1]
    assert table.column("levada_number").to_pylist() == [0, 1, 0]
    assert table.column("number").to_pylist() == [1, None, 3]
    assert table.column("x").to_pylist() == ["e:a", "b\n", None]
    assert table.column("x_datatype").to_pylist() == ["@id", "@en", None]


def test_variables_with_the_names_of_key_columns_keep_them() -> None:
    names = ["report", "sign", "number"]
    batch = Batch(np.array([7]), columns={name: pl.Series([f"<e:{name}>"]) for name in names})
    table = report_table(batch, columns_of(names, {}))
    assert table.select(names).to_pylist() == [{name: f"e:{name}" for name in names}]
    assert table["levada_report"].cast(pa.timestamp("ms")).cast(pa.int64()).to_pylist() == [7]
    assert table["levada_sign"].to_pylist() == [1] and table["levada_number"].to_pylist() == [0]


def test_ask_and_construct_and_no_rows() -> None:
    ask = Batch(np.array([5]), Form.ASK, booleans=np.array([True]))
    columns = columns_of(["boolean"], {"boolean": "boolean"}, datatypes=True)
    assert report_table(ask, columns).column("boolean").to_pylist() == [True]
    assert report_table(ask, columns).column("boolean_datatype").to_pylist() == [f"{XSD}boolean"]
    graph = pl.Series(['<e:a> <e:b> "c d" .\n<e:a> <e:b> <e:d> .\n'])
    construct = Batch(np.array([5]), Form.CONSTRUCT, graphs=graph)
    columns = columns_of(["subject", "predicate", "object"], {})
    assert report_table(construct, columns).column("object").to_pylist() == ["c d", "e:d"]
    assert report_table(construct, columns).column("number").to_pylist() == [0, 1]
    none = Batch(np.zeros(0, np.int64), columns={"x": pl.Series([], dtype=pl.String)})
    assert report_table(none, columns_of(["x"], {"x": "date"})).num_rows == 0


def test_a_term_that_does_not_fit_is_named_with_its_report() -> None:
    terms = [literal(str(i), "integer") for i in range(9)]
    terms[6] = literal("x", "integer")
    batch = Batch(np.arange(1000, 1009), columns={"n": pl.Series(terms)})
    with pytest.raises(
        UnfitValueError, match=r"n has the type bigint, .* \"x\".* 00:01.006Z|1.006Z"
    ):
        report_table(batch, columns_of(["n"], {"n": "bigint"}))
    assert report_table(batch, columns_of(["n"], {})).column("n").to_pylist()[6] == "x"


@pytest.mark.parametrize(
    ("term", "type_"),
    [
        (literal("1.5", "decimal"), "bigint"), (literal(str(2**63), "integer"), "bigint"),
        (literal("1.25", "decimal"), "decimal(5,1)"),
        (literal("100000", "integer"), "decimal(5,1)"),
        (literal("1.5E0", "double"), "decimal(5,1)"), (literal("1", "integer"), "boolean"),
        (literal("2026-01-01T00:00:00Z", "dateTime"), "timestamp_ntz"),
        ("<e:a>", "double"), ('"5"', "bigint"),
    ],
)  # fmt: skip
def test_no_value_is_rounded_or_guessed(term: str, type_: str) -> None:
    assert convert(pl.Series([term]), type_) is None


def test_types_and_columns_as_users_write_them() -> None:
    assert parse_columns("`a b` bigint, ?c;d Decimal(9 , 2)") == {
        "a b": "bigint", "c": "", "d": "decimal(9,2)",
    }  # fmt: skip
    assert check_type("x", "decimal") == "decimal(38,18)"
    for text, message in [
        ("a bigit", "Did you mean bigint?"), ("a decimal(50,2)", "Did you mean decimal"),
        ("a, a", "named twice"), ("", "is not a column"), ("a,,b `", "cannot have the type"),
    ]:  # fmt: skip
        with pytest.raises(UsageError) as error:
            parse_columns(text)
        assert message in str(error.value)


def test_datatypes() -> None:
    terms = ['"a"', '"a\\"b"@en-GB', literal("1", "integer"), "<e:a>", "_:b", None]
    assert datatypes_of(pl.Series(terms)).to_list() == [
        f"{XSD}string", "@en-GB", f"{XSD}integer", "@id", "@id", None,
    ]  # fmt: skip
