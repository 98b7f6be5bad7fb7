"""CQL text to tree: shapes, durations, the printed form, and errors with their positions."""

from typing import Any

import pytest

from levada.errors import QueryError, QuerySyntaxError, Span, UnsupportedError
from levada.language.cql.ast import (
    Column,
    Combination,
    Constant,
    Every,
    LiteralType,
    Operation,
    Operator,
    WindowWord,
    show,
)
from levada.language.cql.parser import parse_cql, parse_script

W1 = (
    "Istream(Select A.k, A.ts, B.ts, A.v, B.w From A [Range 60001 ms], B [Range 60001 ms] "
    "Where A.k = B.k)"
)
W2 = "Rstream(Select k, Min(v), Avg(v) From S [Range 60 s Slide 10 s] Group By k)"


def window(text: Any) -> Any:
    return parse_cql(f"Select k From S {text}").select.tables[0].window


def expression(text: Any) -> Any:
    return parse_cql(f"Select {text} From S").select.items[0].expression


def test_the_reference_workloads_parse() -> None:
    w1, w2 = parse_cql(W1), parse_cql(W2)
    assert (w1.output, [t.window.range for t in w1.select.tables]) == ("Istream", [60001, 60001])
    assert (w2.output, w2.select.tables[0].window.slide, w2.select.group) == (
        "Rstream",
        10_000,
        (Column(None, "k"),),
    )


@pytest.mark.parametrize(
    ("printed", "usual"),
    [
        ("Select Istream(*) From S [Rows 3] Where v > 2",
         "Istream(Select * From S [Rows 3] Where v > 2)"),
        ("Select Distinct Rstream(S.k, v * 2 As w) From S [Now] Group By k Having v > 1",
         "Rstream(Select Distinct S.k, v * 2 As w From S [Now] Group By k Having v > 1)"),
        ("With a As (Select k From S [Now]) Select Dstream(k) From a Order By k Limit 2",
         "Dstream(With a As (Select k From S [Now]) Select k From a Order By k Limit 2)"),
    ],
)  # fmt: skip
def test_a_stream_of_select_items_is_one_of_the_query(printed: str, usual: str) -> None:
    """As the papers on CQL print it."""
    assert parse_cql(printed) == parse_cql(usual)


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        ("60001 ms", 60001),
        ("60 s", 60_000),
        ("60 Seconds", 60_000),
        ("1 second", 1000),
        ("60", 60_000),
        ("0.5", 500),
        ("5 Minutes", 300_000),
        ("2 hours", 7_200_000),
        ("1 Day", 86_400_000),
        ("10s", 10_000),
    ],
)
def test_durations(text: str, ms: int) -> None:
    assert window(f"[Range {text}]").range == ms
    assert window(f"[Range {text} Slide {text}]").slide == ms


def test_windows() -> None:
    assert window("").word is WindowWord.NONE
    assert window("[Range Unbounded]").word is WindowWord.UNBOUNDED
    assert window("[rows unbounded]").word is WindowWord.UNBOUNDED
    assert window("[NOW]").word is WindowWord.NOW
    assert (window("[Rows 3]").word, window("[Rows 3]").rows) == (WindowWord.ROWS, 3)


def test_precedence_is_that_of_sql() -> None:
    a, b, c = (Column(None, name) for name in "abc")
    one = Constant(LiteralType.INTEGER, "1")
    assert expression("a + b * c") == Operation("+", (a, Operation("*", (b, c))))
    assert expression("a - b - c") == Operation("-", (Operation("-", (a, b)), c))
    assert expression("a or b and not c") == Operation(
        "or", (a, Operation("and", (b, Operation("not", (c,)))))
    )
    assert expression("a = 1 or b != 1") == Operation(
        "or", (Operation("=", (a, one)), Operation("<>", (b, one)))
    )
    assert expression("not a in (1, b + c) and b") == Operation(
        "and", (Operation("not", (Operation("in", (a, one, Operation("+", (b, c)))),)), b)
    )
    assert expression("a between 1 and b or c") == expression("(a >= 1 and a <= b) or c")
    assert expression("a not between b and c and a not in (1)") == expression(
        "not (a >= b and a <= c) and not (a in (1))"
    )
    assert expression("-a * b") == Operation("*", (Operation("-", (a,)), b))
    assert expression("((a))") == a


def test_constants() -> None:
    assert expression("'it''s'") == Constant(LiteralType.STRING, "it's")
    assert expression('"x"') == Column(None, "x")
    assert expression("1.5e3") == Constant(LiteralType.DOUBLE, "1.5e3")
    assert expression("TRUE") == Constant(LiteralType.BOOLEAN, "true")


def test_items_keep_their_text_and_alias() -> None:
    items = parse_cql("Select  A.k +\n 1 As x, *, A.*, Count( * ) From A").select.items
    assert (items[0].alias, items[0].text) == ("x", "A.k + 1")
    assert items[1:3] == (Every(None), Every("A"))
    assert items[3].text == "Count( * )"


def test_comments_and_words_that_are_not_reserved() -> None:
    statement = parse_cql("/* a\n b */ Select range, s, now -- rest\nFrom S [Range 1 s] As rows;")
    assert [item.expression.name for item in statement.select.items] == ["range", "s", "now"]
    assert statement.select.tables[0].alias == "rows"


@pytest.mark.parametrize(
    "text",
    [
        W1,
        W2,
        "select distinct a.*, -b*2 as c, 'q''s' from S [rows 5] as a, "
        "T [now] where not (x = 1 or y <> 2.5) and z",
        "Dstream(Select Count(Distinct k) From S Group By k, v+1 Having Count(*) > 3)",
        "Select a From S Where a In (1, -2.5, b) And Not (a Not In ('x', '')) Or a Between 1 And 2",
        "Select a From S [Partition By S.k, v Rows 3], (Rstream(Select a From T)) [Now] As u",
        "Istream(A Except (Select k From B) Union Select k From C)",
        "Select a x, Case When v > 1 Then 2 End, Case k When 1 Then 'a' Else 'b' End From A a "
        "Left Join B b On a.k = b.k Where x In (Select k From B) Union All Select 1 From C "
        "Order By a Desc Nulls Last, 2 Limit 3 Offset 2",
        "Select Count(*) Filter (Where a > 1) Over (Partition By k Order By ts Rows Between "
        "3 Preceding And Current Row), Sum(v) Over (Order By ts Range Interval '1' Minute "
        "Preceding) From A [Range 5 s] As a",
        "Select Trim(Both 'x' From s), Trim(s), Position('a' In s), Substring(s From 2 For 3), "
        "Substring(s, 1, 2), Cast(a As Varchar(10)) From Table(Tumble(Table S, Descriptor(ts), "
        "Interval '10' Minutes)) Group By Grouping Sets ((a, b), a, ())",
        "Istream(With c(z) As (Select 1 From A) Select * From c Cross Join Hop(Table s, "
        "Descriptor(ts), Interval '1' Minute, Interval '10' Minutes) As h)",
        "With c As (Select 1 From A) Select leading, Left(s, 1) From c, (A Union B) Where Exists "
        "(Select 1 From B Union Select 2 From C) And (Select 2 From C) > 3 Fetch First 3 Rows Only",
        "Select s Like 'a%' Escape '!', s Not Like 'b', x Is Not Null, b Is True, b Is Not False, "
        "a Is Distinct From b, -a % 3 || 'x', Null, Timestamp '2026-01-01 00:00:00', "
        "ts - Interval '1' Hour, Extract(Year From ts) From A Join B Using (k, l) "
        "Full Join C On True Group By Rollup(a, b), c Having Count(*) > 1",
        "Select a From A Union Select b From B Intersect All Select c From C Except Distinct D",
    ],
)
def test_the_printed_form_parses_to_an_equal_tree(text: Any) -> None:
    statement = parse_cql(text)
    printed = show(statement)
    assert parse_cql(printed) == statement
    assert show(parse_cql(printed)) == printed


def test_the_printed_form() -> None:
    assert show(parse_cql(W2)) == (
        "Rstream(\nSelect k, Min(v), Avg(v)\nFrom S [Range 60000 ms Slide 10000 ms]\nGroup By k\n)"
    )


@pytest.mark.parametrize(
    ("text", "feature", "column"),
    [
        ("Select * From S [Rows 5 Slide 2]", "Slide", 25),
        ("Select * From S [Range Unbounded Slide 2 s]", "Slide", 34),
        ("Select * From S Natural Join T", "Natural Join", 17),
        ("S Minus T", "Minus", 3),
    ],
)
def test_what_is_not_there_is_refused_by_name_and_position(
    text: str, feature: str, column: int
) -> None:
    with pytest.raises(UnsupportedError) as caught:
        parse_cql(text)
    assert feature in caught.value.message
    assert caught.value.span == Span(1, column)


def test_a_syntax_error_shows_what_was_expected() -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        parse_cql("Select k\nForm S")
    assert caught.value.span == Span(2, 1)
    assert caught.value.hint == "Did you mean From?"
    assert caught.value.expected[0] == "From"
    assert "  Form S\n  ^" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "column", "message", "hint"),
    [
        ("Selct k From S", 1, "No query begins with 'Selct'.", "Did you mean Select?"),
        ("Istream Select k From S", 1, "Istream takes a query in brackets.",
         "Write Istream(Select ..)."),
        ("Select k From S Jion T On k = j", 17, "'Jion' does not fit here.", "Did you mean Join?"),
        ("Select k::integer From S", 9, "'::' does not fit here.", "Write Cast(x As Integer)."),
        ("Istream(Select k From S) Union Istream(Select k From T)", 26,
         "'Union' does not fit here.", "(Istream(..)) Union (..)."),
        ("Select k From Istream(Select k From S)", 23, "'Select' does not fit here.",
         "(Istream(..)) [Now] As a name."),
        ("Select k From S Where k == 1", 25, "'==' does not fit here.", "Write = for equality."),
        ("Select k From S Where k = 1 && v > 2", 29, "'&' does not fit here.", "Write And."),
        ("Select k From S Where k In 1", 28, "'1' does not fit here.", "Write In (1, 2)."),
        ("Select k From S Where k In ()", 29, "')' does not fit here.", ""),
        ("Select k From S Where k Between 1, 2", 34, "',' does not fit here.", ""),
        ("Select k From S Where k Betwen 1 And 2", 25, "'Betwen' does not fit here.",
         "Did you mean Between?"),
        ("Select k From S [Slide 3 s]", 18, "'Slide' does not fit here.",
         "Write [Range 1 minute Slide 10 seconds]."),
        ("Select k From S [Range '5 s']", 24, "\"'5 s'\" does not fit here.", ""),
    ],
)  # fmt: skip
def test_a_slip_is_told_as_what_was_meant(text: str, column: int, message: str, hint: str) -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        parse_cql(text)
    assert (caught.value.span, caught.value.message) == (Span(1, column), message)
    assert caught.value.hint.endswith(hint)


def test_a_view_without_as_and_a_type_that_is_none() -> None:
    with pytest.raises(QuerySyntaxError) as caught:
        parse_script("Register Stream V (k Integer) Select k From S")
    assert (caught.value.span, caught.value.hint) == (
        Span(1, 31),
        "A view is Register .. As Select ..",
    )
    with pytest.raises(QuerySyntaxError) as caught:
        parse_script("Register Stream V (k Text) As Select k From S")
    assert caught.value.expected[:2] == ("Integer", "Int")


@pytest.mark.parametrize(
    ("text", "span", "message"),
    [
        ("", Span(1, 1), "The query ends too early."),
        ("Select k\nFrom S\nWhere  \n", Span(3, 6), "The query ends too early."),
        ("Istream(Select k From S", Span(1, 24), "The query ends too early."),
        ("Select k From S [Range 0 s]", Span(1, 24), "A duration is positive."),
        (
            "Select k From S [Range 0.5 ms]",
            Span(1, 24),
            "A duration is a whole number of milliseconds.",
        ),
        ("Select k From S [Range 5 parsecs]", Span(1, 26), "'parsecs' is not a unit of time."),
        ("Select k From S [Rows 0]", Span(1, 23), "A window holds at least one row."),
        ("Select k From S Where s = 'x", Span(1, 27), "This string is not closed."),
        ("Select k § From S", Span(1, 10), "'§' does not fit here."),
    ],
)
def test_errors_with_positions(text: str, span: Any, message: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse_cql(text)
    assert (caught.value.span, caught.value.message) == (span, message)


def test_intersect_binds_closer_than_union_and_except() -> None:
    body = parse_cql("A Union B Intersect C").body
    assert isinstance(body, Combination)
    assert (body.operator, body.right.operator) == (Operator.UNION, Operator.INTERSECT)


def test_views_that_double_are_refused_before_they_are_expanded() -> None:
    views = ["v0 As (Select 1 As a From S)"]
    views += [f"v{i} As (Select x.a From v{i - 1} x, v{i - 1} y)" for i in range(1, 60)]
    with pytest.raises(QuerySyntaxError) as caught:
        parse_cql(f"With {', '.join(views)} Select a From v59")
    assert "tables" in caught.value.message
    query = parse_cql("With v As (Select a From S), w As (Select a From v) Select w.a From w, v")
    assert [table.alias for table in query.select.tables] == ["w", "v"]


def test_union_and_except_stand_from_left_to_right() -> None:
    body = parse_cql("A Except B Union Select k From C").body
    assert isinstance(body, Combination)
    assert (body.operator, body.left.operator, body.right.query.select.items[0].text) == (
        Operator.UNION,
        Operator.EXCEPT,
        "k",
    )


SCRIPT = """
# a comment
table : register stream S (A integer, B float, C byte, D char(4));
source : some/where/S.dat
vquery : select A/2, B from S where A > 0;
vtable : register relation V (H integer, B float);
query : select H from V;
dest : out
select A from S
"""


def test_a_script_of_stream() -> None:
    script = parse_script(SCRIPT)
    assert [(d.schema.name, d.schema.relation, d.source) for d in script.declared] == [
        ("S", False, "some/where/S.dat")
    ]
    assert [kind.value for _, kind in script.declared[0].schema.columns] == [
        "integer",
        "double",
        "string",
        "string",
    ]
    assert [
        (v.schema.name, v.schema.relation, v.query.select.items[0].text) for v in script.views
    ] == [("V", True, "A/2")]
    assert [(q.dest, q.views) for q in script.queries] == [("out", 1), ("", 1)]


def test_a_script_without_labels_means_the_same() -> None:
    labelled = parse_script(
        "vquery : select a from S; vtable : register stream V (b integer); query : V union S;"
    )
    assert labelled == parse_script("Register Stream V (b Integer) As Select a From S; V Union S")


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("vquery : select k from S; select k from S", 1, "This vquery has no vtable after it."),
        ("vquery : select k from S;", 1, "This vquery has no vtable after it."),
        ("vtable : register stream V (k integer);", 1, "This vtable has no vquery before it."),
        ("source : x\n", 1, "A source line belongs to a statement before it."),
        ("register stream S (k int); register relation S (k int);", 46, "S is registered twice."),
        ("register stream S (k int, k float)", 17, "S has two columns k."),
        ("register stream S (k number)", 22, "'number' does not fit here."),
    ],
)
def test_errors_in_scripts(text: str, column: int, message: str) -> None:
    with pytest.raises(QueryError) as caught:
        parse_script(text)
    assert (caught.value.span, caught.value.message) == (Span(1, column), message)


S = "From S [Range 10 s Slide 5 s]"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (f"Select Count(*) {S} Group By {', '.join(['Cube(a,b,c,d,e,f)'] * 9)}", "are millions of"),
        (f"Select Count(*) {S} Group By Cube(a,b,c,d,e,f), Rollup(a)", "are 128 grouping sets"),
        (f"Select Count(*) {S} Group By Rollup({','.join('a' * 99)})", "are 100 grouping sets"),
        (f"Select {'Case When a = 1 Then ' * 700}1{' End' * 700} {S}", "nested too deeply"),
        (f"Select {'9' * 5000} {S}", r"so 9{40}\.\. is none"),
        (f"Select a {S} Limit {'9' * 5000}", "An integer has 64 bits"),
        ("Select a From S [Rows 9223372036854775808]", "An integer has 64 bits"),
        ("Select Lag(a, 9223372036854775808) Over (Order By ts) From S [Now]", "has 64 bits"),
        (f"Select a From S [Range {'9' * 5000} s]", "An integer has 64 bits"),
        (f"Select {'Case ' * 40}a{' When 1 Then 2 When 3 Then 4 End' * 40} {S}", "too many parts"),
        (f"Select a {S} Where {'(' * 40}a{' Between 1 And 5)' * 40}", "too many parts for Between"),
        ("Select a From S [Range 1e999999999 s]", "The duration is too long"),
        (f"Select a {S} Where ts > Interval '{'9' * 5000}' Days", "The duration is too long"),
        (f"Select a {S} Where ts > Interval 'Infinity' Days", "The duration is too long"),
        (f"Select a {S} Where ts > Interval 'sNaN' Days", "'sNaN' is not a number"),
        (f"Select a From S [Range 0.{'0' * 5000}1 s]", "whole number of milliseconds"),
    ],
)
def test_text_that_asks_for_too_much_is_refused_before_it_is_made(text: str, message: str) -> None:
    with pytest.raises(QuerySyntaxError, match=message):
        parse_script(text)
