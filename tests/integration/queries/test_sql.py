"""SQL of every day over windows, judged by DuckDB over each window's rows (``support.sql_judge``).

Each text runs in windows of several kinds. DuckDB has a text of its own where it writes something
otherwise, or where Spark decides: a cast to an integer cuts off.
"""

from __future__ import annotations

import pytest

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
)
CHUNK = 4
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
