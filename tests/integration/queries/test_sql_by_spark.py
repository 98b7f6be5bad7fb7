"""Expressions of CQL have the values of Spark SQL in ANSI mode, where engines differ.

Each expression is evaluated over some rows. Where Spark raises an error, CQL has no value. The
second text of a pair is Spark's, where the two write something otherwise, or where the pages of
CQL document a difference.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from levada.engine.engine import Engine

pytestmark = [pytest.mark.long, pytest.mark.spark]

SCHEMA = {
    "n": "integer",
    "i": "integer",
    "j": "integer",
    "d": "double",
    "s": "string",
    "t": "string",
}
ROWS: tuple[tuple[Any, ...], ...] = (
    (7, 3, 2.5, "abc", "b"),
    (-7, 3, -2.5, "a%b_c", "%"),
    (7, -3, 0.5, " 12 ", "_"),
    (-7, -3, -0.5, "1.5", ""),
    (0, 0, 1.5, "", "x"),
    (None, 2, None, None, "é"),
    (2**63 - 1, 1, 1e300, "Straße", None),
    (-(2**63), -1, -1e19, "éa\\x", "A"),
    (1769860800123, 2, 123.456, "2026-01-31", "-"),
    (-1, 5, 1e-7, "true", "TRUE"),
    (951782399999, 40, 12345678.9, "aXbXc", "X"),
    (100, 2, 9007199254740993.0, "NaN", "1e3"),
)
SAME: tuple[str, ...] = (
    # numbers
    "i + j", "i - j", "i * j", "- i", "i % j", "i % 3", "-7 % 3", "7 % -3", "d % 2", "-5.5 % 2.0",
    "Mod(i, j)", "Mod(d, 0.7)", "Abs(i)", "Abs(d)", "Sign(i)", "Sign(d)", "i = d", "i < d",
    "Round(d)", "Round(d, 1)", "Round(d, -1)", "Round(i, -1)", "Round(-2.5)",
    "Power(i, 2)", "Power(d, 0.5)", "Power(0, 0)", "Sqrt(d)", "Sqrt(i)", "Exp(d)", "Ln(d)", "Ln(i)",
    "Greatest(i, j)", "Least(i, j)", "Greatest(i, d)", "Least(d, j, 1)", "i * 9223372036854775807",
    # casts
    "Cast(d As BigInt)", "Cast(2.7 As Integer)", "Cast(-2.7 As Integer)", "Cast(s As Integer)",
    "Cast(s As Double)", "Cast(t As Double)", "Cast(s As Boolean)", "Cast(t As Boolean)",
    "Cast(i As Double)", "Cast(i As String)", "Cast(i As Boolean)", "Cast(d As Boolean)",
    "Cast(d As String)", "Cast(i > 0 As String)", "Cast(i > 0 As Integer)",
    "Cast(' 7 ' As Integer)", "Cast('7.9' As Integer)", "Cast('1e3' As Double)",
    "Cast('+5' As Integer)", "Cast('0x1' As Integer)", "Cast('' As Double)",
    # texts
    "Upper(s)", "Lower(s)", "Length(s)", "s || t", "s || i", "Concat(s, t)", "Trim(s)", "LTrim(s)",
    "RTrim(s)", "Reverse(s)", "Left(s, 2)", "Left(s, -1)", "Right(s, 2)", "Right(s, 0)",
    "Substring(s, 2)", "Substring(s, 0)", "Substring(s, 0, 2)", "Substring(s, -2)",
    "Substring(s, -2, 1)", "Substring(s, -9, 3)", "Substring(s, 2, 0)", "Substring(s, 2, -1)",
    "Substring(s, 99)", "Substring(s, j, 2)", "Position('b' In s)", "Position('' In s)",
    "Position(t In s)", "Replace(s, 'X', '-')", "Replace(s, '', '-')", "Replace(s, t, '-')",
    "Replace(s, t)", "LPad(s, 5, 'xy')", "LPad(s, 2, 'xy')", "LPad(s, 5, '')", "LPad(s, -1, 'x')",
    "RPad(s, 7, 'xy')", "RPad(s, 5)", "Split_Part(s, 'X', 2)", "Split_Part(s, 'X', -1)",
    "Split_Part(s, 'X', 9)", "Split_Part(s, 'X', 0)", "Split_Part(s, '', 1)", "Contains(s, t)",
    "StartsWith(s, t)", "EndsWith(s, '')", "Char_Length(t)", "InStr(s, t)", "s < t", "s >= 'a'",
    # patterns
    "s Like 'a%'", "s Like '%b%'", "s Like 'a!%b%' Escape '!'", "s Like '_%'", "s Like ''",
    r"s Like 'a\%b\_c'", "s Not Like '%c'", "s ILike 'STRA%'", "s ILike 'ABC'", "s Like '%_c'",
    # NULL and conditions
    "i In (7, Null)", "i Not In (7, Null)", "i Not In (7, 8)", "i Between j And 100",
    "i Not Between j And Null", "i Is Distinct From j", "Null Or i > 0", "Null And i > 0",
    "Not (Null Or i > 0)", "(i > 0) Is Not True", "(i > 0) Is False", "NullIf(i, 7)",
    "Coalesce(i, j)", "Nvl(s, t)", "IfNull(d, 1.0)",
    "Case i When 7 Then 'x' When Null Then 'y' Else 'z' End", "Case When i > 0 Then 1 Else 2.5 End",
    "Greatest(s, t)", "Least(i, Null)", "Coalesce(Null, s)",
)  # fmt: skip
PAIRS: tuple[tuple[str, str], ...] = (
    # a quotient of integers is cut off, and one of doubles by 0 is INF, -INF or NaN
    ("i / j", "i div j"),
    ("-7 / 2", "-7 div 2"),
    ("d / 0.5", "d / 0.5D"),
    ("1.0 * i / j", "Case When j = 0 And i = 0 Then Double('NaN') Else 1.0D * i / j End"),
    # a double stays one
    ("Floor(d)", "Case When Abs(d) < 1e18 Then Double(Floor(d)) Else d End"),
    ("Ceil(d)", "Case When Abs(d) < 1e18 Then Double(Ceil(d)) Else d End"),
    # the texts of doubles are those of XSD
    ("Cast('INF' As Double)", "Cast('inf' As Double)"),
    ("Cast('inf' As Double)", "Cast(Null As Double)"),
    ("Cast('NaN' As Double)", "Cast('nan' As Double)"),
    ("Cast('nan' As Double)", "Cast(Null As Double)"),
    ("Case When i > 0 Then s When Null Then t End", "Case When i > 0 Then s End"),
    # an instant is an integer
    *(
        (f"{part}(i)", f"{part}(Timestamp_Millis(i))")
        for part in ("Year", "Month", "Day", "Hour", "Minute", "Quarter", "DayOfWeek")
    ),
    ("Week(i)", "WeekOfYear(Timestamp_Millis(i))"),
    ("Extract(DoY From i)", "Extract(DoY From Timestamp_Millis(i))"),
    *(
        (f"Date_Trunc('{unit}', i)", f"Unix_Millis(Date_Trunc('{unit}', Timestamp_Millis(i)))")
        for unit in ("year", "quarter", "month", "week", "day", "hour", "minute", "second")
    ),
    ("Extract(Second From i)", "Second(Timestamp_Millis(i))"),
    ("Timestamp '2026-01-31 12:00:00'", "Unix_Millis(Timestamp '2026-01-31 12:00:00')"),
    ("Date '2024-02-29'", "Unix_Millis(Timestamp '2024-02-29 00:00:00')"),
    ("i - Interval '36' Hours", "i - 129600000"),
)
TEXTS = (*((text, text) for text in SAME), *PAIRS)
AGGREGATES = (
    "Count(*)", "Count(i)", "Count(Distinct j)", "Sum(i)", "Sum(j)", "Sum(i % 1000)", "Sum(d)",
    "Avg(j)", "Avg(i % 1000)", "Avg(d)", "Min(i)", "Max(d)", "Min(s)", "Max(t)", "Min(i > 0)",
    "Stddev(j)", "Stddev_Pop(j)", "Variance(j)", "Var_Pop(j)", "Median(j)", "Median(i % 1000)",
    "Sum(j) Filter (Where i > 99)", "Sum(j) Filter (Where s = 'none')", "Stddev(Case When n = 1 "
    "Then j End)", "Var_Pop(Case When n = 1 Then j End)", "Median(Case When n > 99 Then j End)",
    "Avg(Case When n > 99 Then j End)", "Max(i) Is Null", "Coalesce(Sum(Null), 0)",
)  # fmt: skip
ORDERS = (
    "i", "i Desc", "i Nulls Last", "i Desc Nulls First", "d Desc", "s", "t Desc", "s Nulls Last",
    "i % 2, t", "Length(s) Desc, j", "i > 0, s Desc Nulls First",
)  # fmt: skip


@pytest.fixture(scope="module")
def session() -> Iterator[Any]:
    from pyspark.sql import SparkSession

    builder = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    builder = builder.config("spark.sql.ansi.enabled", "true")
    spark = builder.config("spark.sql.session.timeZone", "UTC").getOrCreate()
    rows = ", ".join(f"({n}, {', '.join(map(literal, row))})" for n, row in enumerate(ROWS))
    spark.sql(f"Create Temp View x As Select n, Cast(i As BigInt) As i, Cast(j As BigInt) As j, "
              f"d, s, t From Values {rows} As x(n, i, j, d, s, t)")  # fmt: skip
    yield spark
    spark.stop()


def test_expressions_have_the_values_of_spark(session: Any, tmp_path: Path) -> None:
    values = evaluate(tmp_path, [text for text, _ in TEXTS])
    differences = [
        f"{text}, row {ROWS[n]}: {mine!r}, in Spark {theirs!r}"
        for (text, judged), column in zip(TEXTS, values, strict=True)
        for n, (mine, theirs) in enumerate(zip(column, in_spark(session, judged), strict=True))
        if not same(mine, theirs)
    ]
    assert not differences, "\n".join(differences)


def test_aggregates_and_orders_are_those_of_spark(session: Any, tmp_path: Path) -> None:
    texts = [f"Select {aggregate} As c From X" for aggregate in AGGREGATES]
    texts += [f"Select n As c From X Order By {order}, n" for order in ORDERS]
    windows = [text.replace("From X", "From X [Range 9 s Slide 9 s]") for text in texts]
    answers = run(tmp_path, [f"Rstream({text})" for text in windows])
    differences = []
    for text, reports in zip(texts, answers, strict=True):
        mine = [row[0] for report in reports for row in report.select("c").rows()]
        theirs = column(session, text)
        if len(mine) != len(theirs) or not all(map(same, mine, theirs)):
            differences.append(f"{text}: {mine!r}, in Spark {theirs!r}")
    assert not differences, "\n".join(differences)


def evaluate(folder: Path, texts: list[str]) -> list[list[Any]]:
    """The values of each expression in CQL, by row."""
    select = "Istream(Select n, {} As c From X [Range Unbounded])"
    columns = []
    for reports in run(folder, [select.format(text) for text in texts]):
        values = dict(row for report in reports for row in report.select("n", "c").rows())
        columns.append([values[n] for n in range(len(ROWS))])
    return columns


def run(folder: Path, texts: list[str]) -> list[list[pl.DataFrame]]:
    """The reports of each query."""
    rows = [(n, *row, 1000 + n) for n, row in enumerate(ROWS)]
    pl.DataFrame(rows, schema=[*SCHEMA, "ts"], orient="row").write_ndjson(folder / "x.ndjson")
    with Engine(spark=False, checkpoint=folder / "checkpoint") as engine:
        engine.stream("X", folder / "x.ndjson", schema=SCHEMA)
        requests = enumerate(texts)
        queries = [engine.register(text, name=f"q{i}", dialect="cql") for i, text in requests]
        engine.start(once=True)
        return [[report.to_polars() for report in query.results()] for query in queries]


def in_spark(session: Any, text: str) -> list[Any]:
    """The values of an expression in Spark, by row; None where it raises an error."""
    whole = column(session, f"Select {text} As c From x Order By n")
    if len(whole) == len(ROWS):
        return whole
    rows = range(len(ROWS))
    return [column(session, f"Select {text} As c From x Where n = {n}")[0] for n in rows]


def literal(value: Any) -> str:
    """A value in Spark."""
    match value:
        case None:
            return "Null"
        case float():
            return f"Double('{value!r}')"
        case str():
            return f"r'{value}'"
        case _:
            return f"Cast('{value}' As BigInt)"


def column(session: Any, query: str) -> list[Any]:
    """The column c of a query in Spark; one None if it raises an error."""
    try:
        return [row.c for row in session.sql(query).collect()]
    except Exception:
        return [None]


def same(mine: Any, theirs: Any) -> bool:
    """Whether two values are equal, or doubles up to the last digits."""
    if mine is None or theirs is None or isinstance(mine, (str, bool)):
        return bool(mine == theirs)
    if isinstance(theirs, (str, bool)):
        return False
    one, other = float(mine), float(theirs)
    if math.isnan(one) or math.isnan(other):
        return math.isnan(one) and math.isnan(other)
    return one == other if isinstance(mine, int) else math.isclose(one, other, rel_tol=1e-14)
