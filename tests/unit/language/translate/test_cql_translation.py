"""CQL to algebra: snapshots that a person can read, windows, names, types, and refusals with their
positions.
"""

from textwrap import dedent
from typing import Any

import pytest

from levada.core.event_time import Window, WindowKind
from levada.core.query_model import Output
from levada.errors import QueryError, Span, UnknownNameError
from levada.language.translate.cql.translate import translate_cql
from levada.plan.logical.print_logical import show
from levada.plan.logical.query_options import QueryOptions

STREAMS = {
    "A": {"k": "integer", "v": "double", "s": "string"},
    "B": {"k": "integer", "w": "double"},
    "C": {"k": "integer", "j": "double", "b": "boolean"},
    "T": {"ts": "string", "x": "integer"},
}


def pattern(text: Any, **options: Any) -> Any:
    """The pattern's lines, without the head and the windows."""
    query = translate_cql(text, STREAMS, QueryOptions(**options))
    lines = show(query).splitlines()[1 + len(query.windows) :]
    return dedent("\n".join(lines))


def variables(text: Any) -> Any:
    return translate_cql(text, STREAMS).variables


def window(text: Any, **options: Any) -> Any:
    return (
        translate_cql(f"Select k From A {text}", STREAMS, QueryOptions(**options)).windows[0].window
    )


def test_w1_shares_the_join_variable_and_renames_nothing() -> None:
    text = (
        "Istream(Select A.k, A.ts, B.ts, A.v, B.w "
        "From A [Range 60001 ms], B [Range 60001 ms] Where A.k = B.k)"
    )
    query = translate_cql(text, STREAMS)
    assert (query.output, query.variables) == (Output.ISTREAM, ("k", "A.ts", "B.ts", "v", "w"))
    assert [(w.name, w.stream, w.window) for w in query.windows] == [
        ("A", "A", Window(WindowKind.RANGE, range=60001)),
        ("B", "B", Window(WindowKind.RANGE, range=60001)),
    ]
    assert pattern(text) == dedent("""\
        (project (?k ?A.ts ?B.ts ?v ?w)
          (join
            (scan (window 0) k=?k v=?v ts=?A.ts)
            (scan (window 1) k=?k w=?w ts=?B.ts)))""")


def test_w2_groups_under_the_output_names() -> None:
    text = "Rstream(Select k, Min(v), Avg(v) From A [Range 60 s Slide 10 s] Group By k)"
    query = translate_cql(text, STREAMS)
    assert query.windows[0].window == Window(WindowKind.CLOSE_OPEN, range=60_000, step=10_000)
    assert query.variables == ("k", "Min(v)", "Avg(v)")
    assert query.pattern.child.keys == ("k",)
    assert [name for name, _ in query.pattern.child.aggregates] == ["Min(v)", "Avg(v)"]


def test_both_columns_of_a_join_can_be_shown() -> None:
    assert pattern("Select A.k, B.k From A, B Where A.k = B.k") == dedent("""\
        (project (?A.k ?B.k)
          (extend ?B.k = ?A.k
            (join
              (scan (window 0) k=?A.k)
              (scan (window 1) k=?A.k))))""")


def test_columns_of_different_types_are_compared_by_value() -> None:
    assert pattern("Select A.k As k From A, C Where A.k = C.j") == dedent("""\
        (project (?k)
          (filter (= ?k ?C.j)
            (join
              (scan (window 0) k=?k)
              (scan (window 1) j=?C.j))))""")


def test_one_class_never_holds_two_columns_of_a_table() -> None:
    text = "Select X.k As a From A As X, A As Y Where X.k = Y.k And X.v = Y.v And X.ts = Y.k"
    assert pattern(text) == dedent("""\
        (project (?a)
          (filter (= ?X.ts ?a)
            (join
              (scan (window 0) k=?a v=?X.v ts=?X.ts)
              (scan (window 1) k=?a v=?X.v))))""")


def test_tables_that_share_a_variable_are_joined_first() -> None:
    text = "Select A.v As v From A, B, C Where A.k = C.k And C.k = B.k And A.v > 1.50"
    assert pattern(
        "Select A.v As v From A, B, C Where A.k = C.k And C.j = B.w And A.v > 1.50"
    ) == dedent("""\
        (project (?v)
          (filter (> ?v "1.5"^^<http://www.w3.org/2001/XMLSchema#double>)
            (join
              (join
                (scan (window 0) k=?A.k v=?v)
                (scan (window 2) k=?A.k j=?B.w))
              (scan (window 1) w=?B.w))))""")
    assert pattern(text).count("k=?A.k") == 3


def test_a_condition_inside_or_is_not_a_join() -> None:
    assert "(filter (|| (= ?A.k ?B.k) (= ?v ?w))" in pattern(
        "Select v, w From A, B Where A.k = B.k Or v = w"
    )


def test_every_column_in_order_without_the_implicit_time() -> None:
    assert variables("Select * From A") == ("k", "v", "s")
    assert variables("Select * From A, B") == ("A.k", "v", "s", "B.k", "w")
    assert variables("Select B.*, A.ts From A, B") == ("k", "w", "ts")
    assert variables("Select * From T") == ("ts", "x")


def test_output_names() -> None:
    assert variables("Select k As x, k, v + 1, v +  1 From A") == ("x", "k", "v + 1", "v + 1 2")
    assert variables("Select k As v, v, k, k From A") == ("v", "A.v", "A.k", "A.k 2")
    assert variables("Select Count(*) From A") == ("Count(*)",)


def test_integers_divide_to_integers_and_distinct_is_only_what_is_asked() -> None:
    assert pattern("Select Distinct k/2 As h, -v As n, -3 As m From A") == dedent("""\
        (distinct
          (project (?h ?n ?m)
            (extend ?m = "-3"^^<http://www.w3.org/2001/XMLSchema#integer>
              (extend ?n = (unary - ?A.v)
                (extend ?h = (CAST <http://www.w3.org/2001/XMLSchema#integer> (/ ?A.k "2"^^<http://www.w3.org/2001/XMLSchema#integer>))
                  (scan (window 0) k=?A.k v=?A.v))))))""")


def test_keys_that_are_expressions_having_and_sums_of_aggregates() -> None:
    text = (
        "Select k + 1 As h, Sum(v) * 2 As d, Sum(v) As t From A Group By k + 1 Having Count(*) > 2"
    )
    assert pattern(text) == dedent("""\
        (project (?h ?d ?t)
          (extend ?d = (* ?t "2"^^<http://www.w3.org/2001/XMLSchema#integer>)
            (extend ?h = ?.g0
              (filter (> ?.a1 "2"^^<http://www.w3.org/2001/XMLSchema#integer>)
                (group (?.g0) ?t = (SUM ?A.v) ?.a1 = (COUNT *)
                  (extend ?.g0 = (+ ?A.k "1"^^<http://www.w3.org/2001/XMLSchema#integer>)
                    (scan (window 0) k=?A.k v=?A.v)))))))""")


@pytest.mark.parametrize(
    ("text", "options", "expected"),
    [
        ("", {}, Window(WindowKind.ALL)),
        ("[Range Unbounded]", {}, Window(WindowKind.ALL)),
        ("[Now]", {}, Window(WindowKind.NOW)),
        ("[Rows 7]", {}, Window(WindowKind.COUNT, count=7)),
        ("[Range 5]", {}, Window(WindowKind.RANGE, range=5000)),
        ("[Range 5 Slide 2]", {}, Window(WindowKind.CLOSE_OPEN, range=5000, step=2000)),
        (
            "[Range 5 Slide 2]",
            {"bounds": "(]"},
            Window(WindowKind.CLOSE_CLOSED, range=5000, step=2000),
        ),
        (
            "[Range 5 Slide 2]",
            {"report": "change"},
            Window(WindowKind.CHANGE, range=5000, step=2000),
        ),
        (
            "[Range 5 Slide 2]",
            {"report": "close"},
            Window(WindowKind.CLOSE_OPEN, range=5000, step=2000),
        ),
        ("[Range 5]", {"t0": 3}, Window(WindowKind.RANGE, range=5000, t0=3, t0_given=True)),
        ("[Range 5]", {"t0": 0}, Window(WindowKind.RANGE, range=5000, t0_given=True)),
    ],
)
def test_windows(text: str, options: Any, expected: Any) -> None:
    assert window(text, **options) == expected


def test_report_on_close_needs_a_slide() -> None:
    with pytest.raises(QueryError, match="report=close needs a window with Slide"):
        window("[Range 5]", report="close")


@pytest.mark.parametrize("word", ["Istream", "Dstream", "Rstream"])
def test_outputs(word: str) -> None:
    assert translate_cql(f"{word}(Select k From A)", STREAMS).output == Output(word.upper())
    assert translate_cql("Select k From A", STREAMS).output is Output.RELATION


@pytest.mark.parametrize(
    ("text", "column", "message", "hint"),
    [
        ("Select k From D", 15, "There is no tuple stream D.", "Known: A, B, C, T."),
        ("Select speed From A", 8, "There is no column speed.", "Known: k, s, ts, v."),
        ("Select A.kk From A", 8, "A has no column kk.", "Did you mean k?"),
        ("Select X.k From A", 8, "There is no table X in From.", "Known: A."),
        ("Select X.* From A", 8, "There is no table X in From.", "Known: A."),
        ("Select Summ(v) From A", 8, "There is no function Summ.", "Did you mean Sum?"),
    ],
)
def test_unknown_names_say_what_is_known(text: str, column: int, message: str, hint: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        translate_cql(text, STREAMS)
    assert (caught.value.span, caught.value.message, caught.value.hint) == (
        Span(1, column),
        message,
        hint,
    )
    assert caught.value.text == text


@pytest.mark.parametrize(
    "text", ["Select k From Trips", "Register Stream Trips (k Integer); Select k From Trips"]
)
def test_stream_without_any_schema_names_the_option(text: str) -> None:
    with pytest.raises(UnknownNameError, match=r"There is no tuple stream Trips\.") as caught:
        translate_cql(text, {})
    assert caught.value.hint == (
        "No stream has columns: name it with a schema (--stream Trips=PATH,schema=auto)."
    )


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("Select k From A, B", 8, "The column k is in several tables."),
        ("Select v From A, A", 18, "Two tables are called A."),
        ("Select k As a, v As a From A", 16, "Two columns of the result are called a."),
        ("Select s + 1 From A", 8, "+ needs numbers, this is of the type string."),
        ("Select -s From A", 8, "- needs numbers, this is of the type string."),
        (
            "Select k From A Where s = 1",
            23,
            "A value of the type string is compared with one of the type integer.",
        ),
        ("Select k From A Where k", 23, "A condition is needed here, this is of the type integer."),
        ("Select k From A Where b And k = 1", 23, "There is no column b."),
        ("Select k From A Where Sum(v) > 1", 23, "Sum cannot stand in Where."),
        ("Select Sum(Max(v)) From A", 12, "Max cannot stand in the argument of Sum."),
        ("Select Sum(s) From A", 8, "Sum needs numbers, this is of the type string."),
        ("Select Sum(*) From A", 8, "Sum(*) does not exist, only Count(*) does."),
        (
            "Select v From A Group By k",
            8,
            "The column A.v is neither in Group By nor inside an aggregate.",
        ),
        (
            "Select k From A Group By k Having v > 1",
            35,
            "The column A.v is neither in Group By nor inside an aggregate.",
        ),
        (
            "Select v, Count(*) From A",
            8,
            "The column A.v is neither in Group By nor inside an aggregate.",
        ),
        ("Select * From A Group By k", 8, "* cannot stand in a query that groups."),
    ],
)
def test_refusals(text: str, column: int, message: str) -> None:
    with pytest.raises(QueryError) as caught:
        translate_cql(text, STREAMS)
    assert (caught.value.span, caught.value.message) == (Span(1, column), message)


def test_a_boolean_column_is_a_condition() -> None:
    assert "(filter (&& ?b (! ?b))" not in pattern("Select b From C Where b And Not b")
    assert pattern("Select b From C Where b And Not b").count("(filter") == 2


NESTED = {
    "M": {"id": "string", "payload.temp": "double", "payload.from.order": "integer"},
    "payload": {"temp": "double", "k": "string"},
}


def nested(text: str) -> Any:
    query = translate_cql(text, NESTED, QueryOptions())
    return query.variables, "\n".join(show(query).splitlines()[1 + len(query.windows) :])


def test_a_nested_column_is_its_path_unless_the_first_word_is_a_table() -> None:
    names, plan = nested("Select payload.temp, M.payload.from.order From M [Range 1 Minutes]")
    assert names == ("payload.temp", "payload.from.order")
    assert "payload.temp=?payload.temp" in plan
    names, plan = nested("Select payload.temp, M.payload.temp From M [Now], payload [Now]")
    assert names == ("temp", "payload.temp")
    text = "Select Avg(payload.temp) As t From M [Partition By payload.from.order Rows 2] "
    names, plan = nested(f"{text} Where payload.temp > 3 Group By M.payload.from.order")
    assert names == ("t",)
    assert "partition by payload.from.order" in plan


def test_a_nested_column_and_a_column_of_a_table_are_never_one_variable() -> None:
    text = "Select M.payload.temp From M [Now], payload [Now] Where payload.k = 'a'"
    names, plan = nested(text + " And payload.temp > 3")
    assert names == ("payload.temp",)
    assert " payload.temp=?payload.temp)" in plan
    assert " temp=?payload.temp 2 " in plan


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("Select payload.tmp From M [Now]", "neither a table payload in From nor a column"),
        ("Select payload From M [Now]", "There is no column payload"),
        ("Select payload.id From M [Now], payload [Now]", "payload has no column id"),
        ("Select M.temp From M [Now]", "M has no column temp"),
    ],
)
def test_an_unknown_nested_column_is_refused_with_its_near_miss(text: str, message: str) -> None:
    with pytest.raises(QueryError, match=message) as error:
        nested(text)
    if "tmp" in text:
        assert "payload.temp" in error.value.hint


def test_queries_whose_plan_would_grow_without_bound_are_refused() -> None:
    joins = " ".join(f"Left Join A x{i} On x{i}.k = a.k" for i in range(20))
    with pytest.raises(QueryError, match="more than 50,000 operators"):
        translate_cql(f"Istream(Select a.k From A a {joins})", STREAMS)
    views = "Register Relation V0 (k Integer) As Select k From A;"
    for i in range(1, 20):
        tables = ", ".join(f"V{i - 1} {alias}" for alias in "abcdefgh")
        views += f"Register Relation V{i} (k Integer) As Select a.k From {tables};"
    with pytest.raises(QueryError, match=r"more than 1,000 tables"):
        translate_cql(f"{views} Istream(Select k From V19)", STREAMS)


def test_a_second_query_over_tables_in_an_expression_is_refused_with_a_left_join() -> None:
    mark = "k In (Select k From D)"
    tables = {"D": {"k": "integer", "c": "string"}}
    translate_cql(f"Istream(Select k, {mark} As m From A)", STREAMS, tables=tables)
    with pytest.raises(QueryError) as caught:
        text = (
            f"Istream(Select k, {mark} As m, Exists (Select 1 From D Where D.k = A.k) As n From A)"
        )
        translate_cql(text, STREAMS, tables=tables)
    assert caught.value.span is not None
    assert "Left Join" in caught.value.hint
    joins = "Left Join (Select Distinct k From D) x On x.k = A.k Left Join D y On y.k = A.k"
    translate_cql(f"Istream(Select A.k, x.k, y.k From A {joins})", STREAMS, tables=tables)
