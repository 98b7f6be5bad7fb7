"""SQL of every day over windows, judged by DuckDB over each window's rows (``support.sql_judge``).

Each text runs in windows of several kinds. DuckDB has a text of its own where it writes something
otherwise, or where Spark decides: a cast to an integer cuts off.
"""

from __future__ import annotations

import tempfile
from pathlib import Path
from statistics import variance
from typing import Any

import pytest

from levada.engine.engine import Engine
from support.sql_judge import case_query, check_queries

INT, DBL, STR, BOOL = "integer", "double", "string", "boolean"
TEXTS: tuple[tuple[str, dict[str, str], str], ...] = (
    (
        "Select k, Case When v > 1 Then 'x' When v < 0 Then s End As c From {A a}",
        {"k": INT, "c": STR},
        "",
    ),
    (
        "Select Case k When 1 Then v When 2 Then 0 Else -1 End As c From {A a}",
        {"c": DBL},
        "",
    ),
    (
        "Select Coalesce(v, k, 0) As c, NullIf(k, 2) As n From {A a}",
        {"c": DBL, "n": INT},
        "",
    ),
    (
        "Select k From {A a} Where v Is Null Or s Is Not Null And Not (k Is Null)",
        {"k": INT},
        "",
    ),
    (
        "Select s From {A a} Where s Like 'a%' Or s Like '_b!%' Escape '!' Or s Not Like '%b%'",
        {"s": STR},
        "",
    ),
    (
        "Select k From {A a} Where k In (1, Null) Or k Not In (2, 3)",
        {"k": INT},
        "",
    ),
    (
        "Select k From {A a} Where k Not In (2, Null)",
        {"k": INT},
        "",
    ),
    (
        "Select k Between 1 And 2 As b, k % 2 As m, -k As n, v % 2.5 As r From {A a}",
        {"b": BOOL, "m": INT, "n": INT, "r": DBL},
        "",
    ),
    (
        "Select s || '-' || k As t, Upper(s) As u, Lower(s) As l, Length(s) As n From {A a}",
        {"t": STR, "u": STR, "l": STR, "n": INT},
        "",
    ),
    (
        "Select Substring(s From 2 For 1) As a, Substring(s, 2) As b, Trim(s) As c, "
        "Replace(s, 'b', 'zz') As d, Position('b' In s) As e, Strpos(s, 'b') As f From {A "
        "a}",
        {"a": STR, "b": STR, "c": STR, "d": STR, "e": INT, "f": INT},
        "",
    ),
    (
        "Select Lpad(s, 5, 'xy') As a, Rpad(s, 2, 'z') As b, Split_Part(s, '_', 1) As c, "
        "Left(s, 1) As d, Right(s, 2) As e, Reverse(s) As f From {A a}",
        {"a": STR, "b": STR, "c": STR, "d": STR, "e": STR, "f": STR},
        "",
    ),
    (
        "Select Abs(v) As a, Round(v) As b, Round(v, 1) As c, Floor(v) As d, Ceil(v) As e, "
        "Power(k, 2) As f, Sqrt(Abs(v)) As g, Exp(k) As h, Sign(k) As i, Mod(k, 2) As j, "
        "Greatest(k, 2) As l, Least(v, 2.0, k) As m From {A a}",
        {
            "a": DBL,
            "b": DBL,
            "c": DBL,
            "d": DBL,
            "e": DBL,
            "f": DBL,
            "g": DBL,
            "h": DBL,
            "i": DBL,
            "j": INT,
            "l": INT,
            "m": DBL,
        },
        "",
    ),
    (
        "Select Cast(v As Integer) As a, Cast(k As Double) As b, Cast(k As Varchar) As c, "
        "Cast('12' As Integer) As d, Cast(k As Boolean) As e From {A a} Where v <> 2.5 Or v"
        " Is Null",
        {"a": INT, "b": DBL, "c": STR, "d": INT, "e": BOOL},
        "Select Cast(Trunc(v) As Integer) As a, Cast(k As Double) As b, Cast(k As Varchar) "
        "As c, 12, k<>0 From {A a} Where v <> 2.5 Or v Is Null",
    ),
    (
        "Select a.k As k, w From {A a} Left Join {B b} On a.k = b.k",
        {"k": INT, "w": INT},
        "",
    ),
    (
        "Select a.k As k, b.k As j, w From {A a} Right Join {B b} On a.k = b.k And b.w > 3",
        {"k": INT, "j": INT, "w": INT},
        "",
    ),
    (
        "Select k, v, w From {A a} Full Join {B b} Using (k)",
        {"k": INT, "v": DBL, "w": INT},
        "",
    ),
    (
        "Select a.k As k, w From {A a} Join {B b} On a.k < b.k And a.s = b.s",
        {"k": INT, "w": INT},
        "",
    ),
    (
        "Select a.k As k, b.w As w, c.v As v From {A a} Left Join {B b} On a.k = b.k Left "
        "Join {A c} On b.k = c.k And c.v > 1",
        {"k": INT, "w": INT, "v": DBL},
        "",
    ),
    (
        "Select Count(*) As n, Count(w) As m From {A a} Left Join {B b} On a.k = b.k",
        {"n": INT, "m": INT},
        "",
    ),
    (
        "Select a.k As k From {A a} Cross Join {B b} Where b.k Is Null",
        {"k": INT},
        "",
    ),
    (
        "Select k, Count(Distinct s) As n, Count(v) As c From {A a} Group By k Having Count(*) > 1",
        {"k": INT, "n": INT, "c": INT},
        "",
    ),
    (
        "Select k, Stddev(v) As a, Variance(v) As b, Stddev_Pop(v) As c, Var_Pop(k) As d "
        "From {A a} Group By k",
        {"k": INT, "a": DBL, "b": DBL, "c": DBL, "d": DBL},
        "",
    ),
    (
        "Select Sum(v) Filter (Where k > 1) As a, Count(*) Filter (Where v > 1) As b, "
        "Sum(k) + 1 As c From {A a}",
        {"a": DBL, "b": INT, "c": INT},
        "",
    ),
    (
        "Select k % 2 As p, Sum(v) As t From {A a} Group By 1",
        {"p": INT, "t": DBL},
        "",
    ),
    (
        "Select k + 1 As p, Max(v) As t From {A a} Group By p",
        {"p": INT, "t": DBL},
        "",
    ),
    (
        "Select k, s, Count(*) As n From {A a} Group By Rollup(k, s)",
        {"k": INT, "s": STR, "n": INT},
        "",
    ),
    (
        "Select k, s, Count(*) As n From {A a} Group By Grouping Sets ((k), (s))",
        {"k": INT, "s": STR, "n": INT},
        "",
    ),
    (
        "Select k, s, Sum(v) As n From {A a} Group By Cube(k, s) Having Count(*) > 1",
        {"k": INT, "s": STR, "n": DBL},
        "",
    ),
    (
        "Select k From {A a} Where k In (Select k From {B b})",
        {"k": INT},
        "",
    ),
    (
        "Select a.s From {A a} Except All "
        "Select b.s From {A b} Where b.k Not In (Select c.k From {A c} Where c.v > 0)",
        {"s": STR},
        "",
    ),
    (
        "Select k From {A a} Where k Not In (Select b.k From {B b} Where b.s = 'ab')",
        {"k": INT},
        "",
    ),
    (
        "Select k From {A a} Where k Not In (Select b.w From {B b} Where b.s = a.s)",
        {"k": INT},
        "",
    ),
    (
        "Select k From {A a} Where Exists (Select 1 From {B b} Where b.k = a.k And b.w > a.v)",
        {"k": INT},
        "",
    ),
    (
        "Select k From {A a} Where Not Exists (Select 1 From {B b} Where b.k = a.k) And v > 0",
        {"k": INT},
        "",
    ),
    (
        "Select k From {A a} Where k Not In (Select w From {B b} Where b.s = a.s) Or v > 2 Or "
        "Not (Not Exists (Select 1 From {B c} Where c.k = a.k And c.w > a.v) Or v < 1)",
        {"k": INT},
        "",
    ),
    (
        "Select a.k, a.k In (Select w From {B b}) As m, Case When Exists (Select 1 From {B b} "
        "Where b.k = a.k) Then 'y' When a.k Not In (Select c.k From {B c}) Then 'z' End As c "
        "From {A a} Left Join {B d} On d.s = a.s",
        {"k": INT, "m": BOOL, "c": STR},
        "",
    ),
    (
        "Select k, k In (Select k From {B b}) As m, Sum(Case When v In (Select w From {B b}) Then "
        "1 Else 0 End) As n From {A a} Group By k Having (k In (Select w From {B b})) Is Not True "
        "Order By k In (Select k From {B b}), k Limit 3",
        {"k": INT, "m": BOOL, "n": INT},
        "",
    ),
    (
        "Select a.k As k From {A a} Join {B b} On a.k = b.k And b.w > (Select Avg(w) From {B c}) "
        "Where (Select Max(k) From {B d}) In (Select k From {A e})",
        {"k": INT},
        "",
    ),
    (
        "Select k, (Select Count(*) From {B b} Where b.k = a.k) As n, (Select Max(b.w) - a.v From "
        "{B b} Left Join {A c} On b.k = c.k Where b.s = a.s And c.v > 0 Having Count(*) > 0) As m "
        "From {A a}",
        {"k": INT, "n": INT, "m": DBL},
        "",
    ),
    (
        "Select k, (Select Count(*) From {A b} Where b.v < a.v) As r, (Select Sum(c.w * a.v) From "
        "{B c} Where c.k = a.k Or a.k Is Null) As t From {A a} Where k Is Null Or "
        "v >= (Select Avg(w) From {B d} Where d.k = a.k)",
        {"k": INT, "r": INT, "t": DBL},
        "",
    ),
    (
        "Select k, Sum(v) As t, (Select Max(w) From {B b} Where b.k = a.k) As m From {A a} "
        "Group By k Having (Select Count(*) From {B b} Where b.k % 2 = a.k) > 0",
        {"k": INT, "t": DBL, "m": INT},
        "",
    ),
    (
        "Select Count(*) As n, Max(a.v) As m From {A a} Left Join {B b} On a.k = b.k Join {B d} "
        "On d.s = a.s Where a.k > 100 Or a.v > (Select Avg(w) From {B c} Where c.k = a.k)",
        {"n": INT, "m": DBL},
        "",
    ),
    (
        "Select Count(*) As n From {B a} Where a.k <= (Select Min(b.k) From {A b} Where b.k = a.k "
        "And b.v > 100)",
        {"n": INT},
        "",
    ),
    (
        "Select k, v From {A a} Where v > (Select Avg(w) From {B b})",
        {"k": INT, "v": DBL},
        "",
    ),
    (
        "Select k, v - (Select Avg(c.v) From {A c}) As d From {A a}",
        {"k": INT, "d": DBL},
        "",
    ),
    (
        "Select x.k As k, n From {A a}, (Select k, Count(*) As n From {B b} Group By k) As "
        "x Where x.k = a.k",
        {"k": INT, "n": INT},
        "",
    ),
    (
        "With c As (Select k, v * 2 As d From {A a} Where v > 0) Select c.k As k, d, w From"
        " c Join {B b} On b.k = c.k",
        {"k": INT, "d": DBL, "w": INT},
        "",
    ),
    (
        "Select k From {A a} Union All Select k From {B b}",
        {"k": INT},
        "",
    ),
    (
        "Select k From {A a} Union Distinct Select k From {B b}",
        {"k": INT},
        "Select k From {A a} Union Select k From {B b}",
    ),
    (
        "Select k From {A a} Intersect Select k From {B b}",
        {"k": INT},
        "",
    ),
    (
        "Select k From {A a} Intersect All Select k From {B b}",
        {"k": INT},
        "",
    ),
    (
        "Select k From {A a} Except Distinct Select k From {B b}",
        {"k": INT},
        "Select k From {A a} Except Select k From {B b}",
    ),
    (
        "Select k, v From {A a} Order By v Desc, k Limit 2",
        {"k": INT, "v": DBL},
        "",
    ),
    (
        "Select k, v From {A a} Order By v Nulls Last, k Desc, s Limit 2 Offset 1",
        {"k": INT, "v": DBL},
        "",
    ),
    (
        "Select k, Sum(v) As t From {A a} Group By k Order By Sum(v) Desc Nulls Last, k Limit 1",
        {"k": INT, "t": DBL},
        "",
    ),
    (
        "Select Extract(Hour From ts * 100000) As h, Year(ts) As y, Date_Trunc('minute', "
        "ts) As m From {A a}",
        {"h": INT, "y": INT, "m": INT},
        "Select Extract(Hour From make_timestamp(ts * 100000000)), "
        "Year(make_timestamp(ts*1000)), ts // 60000 * 60000 From {A a}",
    ),
    (
        "Select k Is Distinct From 1 As a, (v > 1) Is True As b, (v > 1) Is Not False As c "
        "From {A a}",
        {"a": BOOL, "b": BOOL, "c": BOOL},
        "",
    ),
    (
        "Select k, v - (Select Avg(b.w) From {B b}) As d, Stddev(v) As sd From {A a} Group "
        "By Rollup(k), v",
        {"k": INT, "d": DBL, "sd": DBL},
        "",
    ),
    (
        "Select Count(*) As n, Max(v) - (Select Avg(b.w) From {B b}) As d From {A a}",
        {"n": INT, "d": DBL},
        "",
    ),
    (
        "Select k, v, n From (Select k, v, s, Row_Number() Over (Partition By k Order By "
        "v Desc, s) As n From {A a}) As x Where n <= 2",
        {"k": INT, "v": DBL, "n": INT},
        "",
    ),
    (
        "Select k, v, Rank() Over (Order By v) As n, Dense_Rank() Over (Partition By s "
        "Order By k Desc) As m From {A a}",
        {"k": INT, "v": DBL, "n": INT, "m": INT},
        "",
    ),
    (
        "Select k, Sum(v) As t, Row_Number() Over (Order By Sum(v) Desc, k) As n From {A "
        "a} Group By k",
        {"k": INT, "t": DBL, "n": INT},
        "",
    ),
    (
        "Select * From (Select k, t, Row_Number() Over (Order By t Desc, k) As n From "
        "(Select k, Sum(v) As t From {A a} Group By k) As y) As x Where n < 3",
        {"k": INT, "t": DBL, "n": INT},
        "",
    ),
    (
        "Select k, t From (Select k, Sum(v) As t From {A a} Group By k) As y Order By t "
        "Desc, k Limit 2",
        {"k": INT, "t": DBL},
        "",
    ),
    (
        "Select a.k As k, m From {A a} Join (Select k, Min(w) As m From {B b} Group By k "
        "Order By k Limit 2) As x On x.k = a.k",
        {"k": INT, "m": INT},
        "",
    ),
    (
        "Select a.k As k, b.w As w, Row_Number() Over (Partition By a.k Order By b.w, "
        "a.v, a.s, b.s) As n From {A a} Left Join {B b} On a.k = b.k",
        {"k": INT, "w": INT, "n": INT},
        "",
    ),
    (
        "Select k, Sum(v) Over (Partition By k) As t, Count(*) Over (Order By v) As n From {A a}",
        {"k": INT, "t": DBL, "n": INT},
        "",
    ),
    (
        "Select k, Sum(v) Over (Partition By k Order By ts Rows Between 1 Preceding And "
        "Current Row) As t, Avg(k) Over (Order By ts Rows 2 Preceding) As n From {A a}",
        {"k": INT, "t": DBL, "n": DBL},
        "",
    ),
    (
        "Select k, Count(v) Over (Order By ts Range Between 2000 Preceding And Current "
        "Row) As t, Max(v) Over (Order By ts Rows Between 2 Preceding And 1 Preceding) As"
        " n From {A a}",
        {"k": INT, "t": INT, "n": DBL},
        "",
    ),
    (
        "Select k, Lag(v) Over (Partition By k Order By ts) As t, Lead(s, 2) Over (Order "
        "By ts) As n, First_Value(v) Over (Partition By k Order By ts) As f From {A a}",
        {"k": INT, "t": DBL, "n": STR, "f": DBL},
        "",
    ),
    (
        "Select k, Median(v) As m, First(v) As f, Last(s) As l From {A a} Group By k",
        {"k": INT, "m": DBL, "f": DBL, "l": STR},
        "Select k, Median(v), Arg_Min_Null(v, ts), Arg_Max_Null(s, ts) From {A a} Group By k",
    ),
    (
        "Select Median(v) As m, Last(v) Filter (Where k = 1) As l From {A a}",
        {"m": DBL, "l": DBL},
        "Select Median(v), Arg_Max_Null(v, ts) Filter (Where k = 1) From {A a}",
    ),
    (
        "Select a.k As k, b.k As j, Count(*) As n From {A a} Join {B b} On a.k = b.k "
        "Group By Cube(a.k, b.k)",
        {"k": INT, "j": INT, "n": INT},
        "",
    ),
)
CHUNK = 3
FIRST = range(0, len(TEXTS), CHUNK)
WINDOWS = ("range", "slide")


@pytest.mark.parametrize("first", FIRST)
def test_a_text_says_what_duckdb_says(first: int) -> None:
    _check(first, WINDOWS[first // CHUNK % 2])


@pytest.mark.long
@pytest.mark.parametrize("window", ["range", "slide", "all", "rows"])
@pytest.mark.parametrize("first", FIRST)
def test_a_text_says_what_duckdb_says_in_each_window(first: int, window: str) -> None:
    _check(first, window)


def _check(first: int, window: str) -> None:
    some = enumerate(TEXTS[first : first + CHUNK])
    queries = [case_query(f"q{i}", text, types, window, sql=sql) for i, (text, types, sql) in some]
    check_queries(queries, cuts=((3, 2),))


ALIKE: tuple[tuple[str, dict[str, str]], ...] = (
    (
        "Select a.k As k, v, w From {A a} Join {B b} On a.k = b.k Where v > <n>",
        {"k": INT, "v": DBL, "w": INT},
    ),
    (
        "Select a.k As k, w From {A a} Left Join {B b} On a.k = b.k And w > <n> Where v > 0 Or "
        "Exists (Select 1 From {B c} Where c.s = a.s And c.w > <n>)",
        {"k": INT, "w": INT},
    ),
    (
        "Select k, v, (Select Count(*) From {B b} Where b.k = a.k And b.w > <n>) As n From {A a} "
        "Where v > (Select Min(c.w) From {B c} Where c.k = a.k)",
        {"k": INT, "v": DBL, "n": INT},
    ),
    (
        "Select a.k As k, Count(*) As n, Sum(v) As t From {A a} Join {B b} On a.s = b.s "
        "Group By a.k Having Count(*) > <n>",
        {"k": INT, "n": INT, "t": DBL},
    ),
    (
        "Select k, v, n From (Select k, v, Row_Number() Over (Partition By k Order By v Desc, s) "
        "As n From {A a}) As x Where n <= <n>",
        {"k": INT, "v": DBL, "n": INT},
    ),
    (
        "Select a.k As k, b.w As w, c.v As v From {A a} Join {B b} On a.k = b.k Join {A c} On "
        "b.s = c.s Where c.k Not In (Select d.k From {B d} Where d.w > <n> And d.k Is Not Null)",
        {"k": INT, "w": INT, "v": DBL},
    ),
)


def test_queries_that_share_joins_say_what_duckdb_says() -> None:
    _check_alike(ALIKE[:1], ("range",), "relax")


@pytest.mark.long
@pytest.mark.parametrize("sharing", ["off", "exact", "relax"])
def test_queries_that_differ_in_a_constant_say_what_duckdb_says(sharing: str) -> None:
    _check_alike(ALIKE, ("range", "slide", "all"), sharing)


def _check_alike(texts: Any, windows: tuple[str, ...], sharing: str) -> None:
    """Checks each text with three constants, in windows of these kinds, in one engine."""
    queries = [
        case_query(f"{window}{i}with{n}", text.replace("<n>", str(n)), types, window)
        for window in windows
        for i, (text, types) in enumerate(texts)
        for n in range(3)
    ]
    check_queries(queries, cuts=((3, 2),), sharing=sharing)


def test_window_functions_report_each_window_once(tmp_path: Path) -> None:
    rows = [(i % 3, i / 2, 700 * i) for i in range(8)]
    assert reports(
        tmp_path,
        "Select window_start, window_end, k, Sum(v) As t From Table(Tumble(Table A, "
        "Descriptor(ts), Interval '2' Seconds)) Group By window_start, window_end, k",
        rows,
    ) == {
        2000: [("0", "2000", "0", "0"), ("0", "2000", "1", "0.5"), ("0", "2000", "2", "1")],
        4000: [("2000", "4000", "0", "1.5"), ("2000", "4000", "1", "2"),
               ("2000", "4000", "2", "2.5")],
        6000: [("4000", "6000", "0", "3"), ("4000", "6000", "1", "3.5")],
    }  # fmt: skip
    assert reports(
        tmp_path,
        "Select window_start, window_end, Count(*) As n From Hop(Table A, Descriptor(ts), "
        "Interval '2' Seconds, Interval '4' Seconds) Group By window_start, window_end",
        rows,
    ) == {
        2000: [("-2000", "2000", "3")], 4000: [("0", "4000", "6")],
        6000: [("2000", "6000", "5")], 8000: [("4000", "8000", "2")],
    }  # fmt: skip
    assert reports(
        tmp_path,
        "Select window_start, window_end, Count(*) As n From Cumulate(Table A, Descriptor(ts), "
        "Interval '2' Seconds, Interval '4' Seconds) Group By window_start, window_end",
        rows,
    ) == {
        2000: [("0", "2000", "3")], 4000: [("0", "4000", "6")],
        6000: [("4000", "6000", "2")], 8000: [("4000", "8000", "2")],
    }  # fmt: skip
    assert reports(
        tmp_path,
        "Select window_end, Count(*) As n From Session(Table A, Descriptor(ts), "
        "Interval '1' Second) Group By window_end",
        rows,
    ) == {5900: [("5900", "8")]}


def test_the_first_of_each_window_and_a_join_of_windows(tmp_path: Path) -> None:
    rows = [(i % 3, i / 2, 700 * i) for i in range(8)]
    tumble = "Tumble(Table A, Descriptor(ts), Interval '3' Seconds)"
    assert reports(
        tmp_path,
        "Select window_end, k, t From (Select *, Row_Number() Over (Partition By window_end "
        "Order By t Desc) As n From (Select window_end, k, Sum(v) As t From "
        f"{tumble} Group By window_end, k) As g) As x Where n <= 1",
        rows,
    ) == {3000: [("3000", "1", "2.5")], 6000: [("6000", "1", "3.5")]}
    assert reports(
        tmp_path,
        f"Select a.k As k, a.v As v, b.v As w From {tumble} As a Join {tumble} As b "
        "On a.k = b.k And a.window_start = b.window_start And a.v < b.v",
        rows,
    ) == {3000: [("0", "0", "1.5"), ("1", "0.5", "2")]}


def test_zeros_of_both_signs_are_peers_of_an_order(tmp_path: Path) -> None:
    rows = [(1, 0.0, 1000), (2, -0.0, 1001), (3, 1.0, 1002), (4, -0.0, 1003)]
    text = (
        "Rstream(Select k, Rank() Over (Order By v) As r, Dense_Rank() Over (Order By v) As e, "
        "Count(*) Over (Partition By v) As n From A [Rows 4])"
    )
    assert reports(tmp_path, text, rows)[1003] == [
        ("1", "1", "1", "3"), ("2", "1", "1", "3"), ("3", "4", "2", "1"), ("4", "1", "1", "3"),
    ]  # fmt: skip


HOP = "Hop(Table A, Descriptor(ts), Interval '2' Seconds, Interval '4' Seconds)"
CUMULATE = HOP.replace("Hop", "Cumulate")


@pytest.mark.parametrize(("call", "start"), [(HOP, -2000), (CUMULATE, 0)])
def test_window_bounds_between_closes_are_those_of_the_last_close(
    tmp_path: Path, call: str, start: int
) -> None:
    rows = [(1, 1.0, 1000), (2, 2.0, 2500), (3, 3.0, 5200)]
    text = f"Rstream(Select x.k As k, y.k As n, window_start, window_end From {call} x, A [Now] y)"
    found = reports(tmp_path, text, rows)
    assert found[2500] == [("1", "2", f"{start}", "2000")]
    assert found[5200] == [("1", "3", "0", "4000"), ("2", "3", "0", "4000")]


@pytest.mark.parametrize("aggregate", ["Count(*)", "Count(*) + 0 * Median(v)"])
def test_cumulate_without_rows_since_its_beginning_has_no_result(
    tmp_path: Path, aggregate: str
) -> None:
    rows = [(1, 1.0, 3000), (2, 2.0, 9000)]
    call = CUMULATE.replace("Interval '2' Seconds", "Interval '1' Second")
    text = f"Select {aggregate} As n From {call} Where v > 0"
    found = reports(tmp_path, text, rows)
    assert found == {at: [("1",)] for at in (4000, 10_000, 11_000, 12_000)}
    none = f"Select Count(*) As n From {call} Where v > 1"
    assert reports(tmp_path, none, rows)[4000] == [("0",)]
    sets = f"Select k, Count(*) As n From {call} Group By Grouping Sets ((k), ())"
    assert list(reports(tmp_path, sets, rows)) == list(found)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("Count(*)", "0"),
        ("Coalesce(Max(v), -1) + Count(*)", "-1"),
        ("Round(Max(v), 1)", ""),
        ("Case When Count(v) = 0 Then 7 Else 8 End", "7"),
        ("NullIf(Count(*), 1)", "0"),
    ],
)
def test_a_query_as_a_value_over_no_rows_has_the_value_of_sql(
    tmp_path: Path, value: str, expected: str
) -> None:
    rows = [(1, 1.0, 1000), (2, 2.0, 2000)]
    text = f"Rstream(Select k, (Select {value} From A [Range 500 ms]) As n From A [Rows 1])"
    found = reports(tmp_path, text, rows)
    assert found[1500] == [("1", expected)] and found[2500] == [("2", expected)]
    if value.startswith("NullIf"):
        assert found[1000] == [("1", "")]


def test_a_query_as_a_value_orders_groups(tmp_path: Path) -> None:
    rows = [(1, 1.0, 1000), (2, 2.0, 2000)]
    text = (
        "Rstream(Select k, (Select Count(*) From A [Range 500 ms]) As n From A [Rows 2] "
        "Group By k Order By n Desc, k Desc Limit 1)"
    )
    assert reports(tmp_path, text, rows)[2500] == [("2", "0")]


def test_in_a_query_of_one_row_compares_with_its_value_over_no_rows(tmp_path: Path) -> None:
    rows = [(0, 1.0, 1000), (1, 2.0, 2000)]
    text = "Rstream(Select k From A [Rows 1] Where k {} (Select {} From A [Range 500 ms]))"
    found = reports(tmp_path, text.format("In", "Count(*)"), rows)
    assert found == {1500: [("0",)], 2000: [("1",)]}
    assert reports(tmp_path, text.format("Not In", "Max(k + 1)"), rows) == {
        1000: [("0",)], 2000: [("1",)],
    }  # fmt: skip


@pytest.mark.parametrize("window", ["[Range 3 s]", "[Range 3 s Slide 1 s]"])
def test_a_variance_keeps_the_digits_that_squares_lose(tmp_path: Path, window: str) -> None:
    values = [1e9 + v for v in (0.25, 0.5, 1.75, 2.0, 0.125, 3.5)]
    rows = [(1, value, 1000 * i) for i, value in enumerate(values)]
    text = f"Rstream(Select Variance(v) As x From A {window})"
    found = reports(tmp_path, text, rows)
    for at, places in ((2000, range(3)), (4000, range(2, 5)), (5000, range(3, 6))):
        expected = variance([values[i] for i in places])
        report = at + 1000 * ("Slide" in window)  # its windows exclude their end
        assert float(found[report][0][0]) == pytest.approx(expected, rel=1e-9)


def reports(folder: Path, text: str, rows: list[tuple[int, float, int]]) -> dict[int, list[Any]]:
    """The rows of each report of a text over the stream A (k, v), sorted."""
    path = folder / "a.csv"
    path.write_text("k,v,ts\n" + "".join(f"{k},{v},{ts}\n" for k, v, ts in rows))
    found: dict[int, list[Any]] = {}
    with (
        tempfile.TemporaryDirectory(dir=folder) as checkpoint,
        Engine(spark=False, checkpoint=checkpoint) as engine,
    ):
        engine.stream("A", path, schema={"k": "integer", "v": "double"})
        query = engine.register(text, name="q", dialect="cql")
        engine.start(once=True)
        for result in query.results():
            assert result.time is not None
            found[result.time] = sorted(
                tuple(value.split('"')[1] if value else "" for value in row)
                for row in result.rows.rows()
            )
    return found
