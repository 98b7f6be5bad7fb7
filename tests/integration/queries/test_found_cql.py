"""CQL texts in which the engine and the reference once differed, made small. Each says what went
wrong.
"""

from __future__ import annotations

from dataclasses import replace

from levada.core.event_time import Window, WindowKind
from levada.testing.reference_model import Row
from support.sql_cases import ALL, NOW, RANGE, ROWS3, A, check, sql


def test_the_least_key_of_a_group_that_has_gone() -> None:
    """MIN of a typed column was shown by its text, which is not kept: it was missing where the
    group's row was taken back.
    """
    text = "Select k, Min(k) As least From A [Now] Group By k"
    reference = sql(
        "Select k, Min(k) From A Group By k",
        {"A": ("A", NOW)},
        {"k": "integer", "least": "integer"},
        "DSTREAM",
    )
    check(f"Dstream({text})", reference, A=A)


def test_a_column_of_a_stream_together_with_a_computed_one() -> None:
    """The texts of a typed column follow from its values, those of a computed one are kept; Union
    looked for both in one place.
    """
    text = "Select k + 1 As a From A Union Select k From B"
    reference = sql(
        "Select k + 1 From A Union All Select k From B",
        {"A": ("A", ALL), "B": ("B", ALL)},
        {"a": "integer"},
    )
    check(text, reference, A=A, B=(Row(1500, (5, 1.0)), Row(2500, (6, 1.0))))


def test_a_count_beside_a_column() -> None:
    """Both are typed, but only one as a column: the value facets of the one lacked what the other
    had.
    """
    text = "Select Count(*) As n From A Except Select k From B"
    numbered = "Select n, row_number() Over (Partition By n) From "
    reference = sql(
        f"Select n From ({numbered}(Select Count(*) As n From A) "
        f"Except {numbered}(Select k As n From B))",
        {"A": ("A", ALL), "B": ("B", ALL)}, {"n": "integer"},
    )  # fmt: skip
    check(text, reference, A=A, B=(Row(1500, (2, 1.0)), Row(2500, (6, 1.0))))


def test_computed_numbers_are_the_numbers_of_streams() -> None:
    """Numbers of tuple streams are identified by value, computed ones were by text: k - 1 of a view
    joined with no k.
    """
    text = (
        "Register Stream V (j Integer) As Select k - 1 From A; Select j, B.w As w From V, B "
        "Where j = B.k"
    )
    view = sql("Select k - 1 From A", {"A": ("A", ALL)}, {"j": "integer"}, "ISTREAM")
    on = {"V": ("V", ALL), "B": ("B", ALL)}
    reference = sql(
        "Select j, w From V, B Where j = k", on, {"j": "integer", "w": "double"}, views={"V": view}
    )
    check(text, reference, A=A, B=(Row(1500, (1, 1.0)), Row(2500, (0, 2.0))))


def test_the_last_rows_of_a_view() -> None:
    """A count window was always put into the first stage, where a view's rows have not come to."""
    text = (
        "Register Stream V (k Integer, n Integer) As Select k, Count(*) From A Group By k; "
        "Select k, n From V [Rows 3]"
    )
    view = sql(
        "Select k, Count(*) From A Group By k",
        {"A": ("A", ALL)},
        {"k": "integer", "n": "integer"},
        "ISTREAM",
    )
    types = {"k": "integer", "n": "integer"}
    check(text, sql("Select k, n From V", {"V": ("V", ROWS3)}, types, views={"V": view}), A=A)


def test_what_a_reader_leaves_out_tells_elements_apart() -> None:
    """DStream's differences were taken after the columns that the reader does not read had been
    left out: k stays, n changes.
    """
    text = (
        "Register Stream V (k Integer, n Integer) As Dstream(Select k, Count(*) From A "
        "Group By k); Select k From V [Range 2 s]"
    )
    view = sql(
        "Select k, Count(*) From A Group By k",
        {"A": ("A", ALL)},
        {"k": "integer", "n": "integer"},
        "DSTREAM",
    )
    check(
        text, sql("Select k From V", {"V": ("V", RANGE)}, {"k": "integer"}, views={"V": view}), A=A
    )


def test_a_relation_never_holds_less_than_nothing() -> None:
    """A deletion of what is not held is passed over; insertions and deletions of one instant are
    added up.
    """
    rows = ((1, -1), (2, 1), (2, -1), (3, 1), (4, -1), (5, -1), (6, 1))
    relation = tuple(Row(1000 * ts, (7, 1.0), sign) for ts, sign in rows)
    reports = check(
        "Select k From R", sql("Select k From R", {"R": ("R", ALL)}, {"k": "integer"}), R=relation
    )
    assert [(r.time, r.change) for r in reports] == [
        (3000, "insert"),
        (4000, "delete"),
        (6000, "insert"),
    ]


def test_a_join_of_a_column_with_a_computed_one() -> None:
    """The joined variable is no typed column, but its rows came from one: the value facets that it
    lacks follow from the others.
    """
    text = (
        "Register Stream V (j Integer) As Select k - 1 From A; Select j, v From A, V "
        "Where A.k = V.j And j > 0"
    )
    view = sql("Select k - 1 From A", {"A": ("A", ALL)}, {"j": "integer"}, "ISTREAM")
    on = {"V": ("V", ALL), "A": ("A", ALL)}
    types = {"j": "integer", "v": "double"}
    check(
        text,
        sql("Select j, v From A, V Where A.k = V.j And j > 0", on, types, views={"V": view}),
        A=A,
    )


def test_a_window_of_a_view_that_gives_nothing_is_no_content_of_its_reader() -> None:
    """The view was written into the count's own From: there was a row 0 as soon as one of the
    view's windows held something.
    """
    view = sql("Select a.k As c0 From a Where a.v > 2", {"a": ("A", RANGE)}, {"c0": "integer"})
    reference = sql(
        "Select Count(*) As c0 From t", {"t": ("V", ALL)}, {"c0": "integer"}, views={"V": view}
    )  # fmt: skip
    text = (
        "Register Relation V (c0 Integer) As Select a.k As c0 From A [Range 2 s] As a "
        "Where a.v > 2;"
        "Select Count(*) As c0 From V As t"
    )
    expected = check(text, reference, A=A)
    assert min(report.time for report in expected) == 5000


def test_a_condition_on_a_column_that_meets_a_computed_one_above() -> None:
    """The filter was to give the value facets that the union reads, of which a typed column carries
    only some.
    """
    text = (
        "Register Stream V (c Integer) As Istream(Select k + 1 As c From A); Select k From R "
        "Where k > 2 Union Select c From V"
    )
    view = sql("Select k + 1 As c From A", {"A": ("A", ALL)}, {"c": "integer"}, "ISTREAM")
    on = {"R": ("R", ALL), "V": ("V", ALL)}
    reference = sql(
        "Select k From R Where k > 2 Union All Select c From V",
        on,
        {"k": "integer"},
        views={"V": view},
    )
    check(
        text,
        reference,
        A=A,
        R=(Row(500, (7, 1.0), 1), Row(1500, (1, 1.0), 1), Row(2500, (7, 1.0), -1)),
    )


def test_a_column_that_is_grouped_by_together_with_a_computed_one() -> None:
    """Of a typed key only some value facets came to the group, and it was asked for all of them by
    what it was put together with.
    """
    step = Window(WindowKind.CLOSE_OPEN, 2000, 1000)
    for clause, window in (("[Range 2 s]", RANGE), ("[Range 2 s Slide 1 s]", step)):
        for output in ("RELATION", "RSTREAM"):
            text = (
                f"Select v, Count(*) From A {clause} Group By v Union Select w + 1, k "
                f"From B {clause}"
            )
            reference = sql(
                "Select v, Count(*) From A Group By v Union All Select w + 1, k From B",
                {"A": ("A", window), "B": ("B", window)}, {"v": "double", "Count(*)": "integer"},
                output,
            )  # fmt: skip
            asked = text if output == "RELATION" else f"Rstream({text})"
            check(asked, reference, A=A, B=(Row(1500, (2, 1.0)), Row(2500, (6, 1.5))))


def test_the_least_string_of_all_that_there_is() -> None:
    """Without keys changes come from another stage: the texts of values that stood since an epoch
    before were not kept there.
    """
    rows = tuple(
        Row(1000 * i, (i, 1.0, text)) for i, text in enumerate(("x", "y", "a", "z", "b", "x"))
    )
    reference = sql("Select Min(n) From A", {"A": ("A", RANGE)}, {"m": "string"})
    check("Select Min(n) As m From A [Range 2 s]", reference, A=rows)
    check("Select Min(n) As m From A", replace(reference, windows={"A": ("A", ALL)}), A=rows)
