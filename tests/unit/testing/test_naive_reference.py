"""The reference on cases worked out by hand: each row of the window table in the design's section
1, and its rules.
"""

from __future__ import annotations

from collections import Counter

import pytest

from levada.core.event_time import Window, WindowKind
from levada.testing.reference import Element, ReferenceQuery, ReferenceSql, Report, Row, evaluate

K = WindowKind
ALL_SUBJECTS = "SELECT ?s { GRAPH <e:w> { ?s ?p ?o } }"


def at(ts: int, *names: str) -> Element:
    """An element with one triple a name."""
    return Element(ts, tuple(f"<e:{n}> <e:p> <e:o>" for n in names))


def ask(query: ReferenceQuery, *elements: Element) -> list[Report]:
    return evaluate(query, {"s": elements})


def seen(window: Window, *elements: Element, **options: object) -> dict[int, str]:
    """The window's content at each report, one letter a triple."""
    query = ReferenceQuery(ALL_SUBJECTS, {"e:w": ("s", window)}, **options)  # type: ignore[arg-type]
    return {r.time: letters(r) for r in ask(query, *elements)}


def letters(report: Report) -> str:
    return "".join(
        sorted(
            text[3]
            for solution in report.solutions.elements()
            for name, text in solution
            if name == "s"
        )
    )


def test_close_open_window() -> None:
    # closes at even seconds: the window of close c is [c - 4, c). x of 1.0: enter next(1) = 2,
    # leave next(5) = 6; y, exactly at the close 2, is not in it: enter next(2) = 4, leave next(6) =
    # 8; z of 2.5 is in it from 4 to 8 too
    window = Window(K.CLOSE_OPEN, range=4000, step=2000)
    assert seen(window, at(1000, "x"), at(2000, "y"), at(2500, "z")) == {
        2000: "x",
        4000: "xyz",
        6000: "yz",
    }


def test_close_closed_window() -> None:
    # enter next(ts - 1ms), leave next(ts + 4 s - 1ms): y of 2.0 is in the window that closes then,
    # and no more at 6
    window = Window(K.CLOSE_CLOSED, range=4000, step=2000)
    found = {2000: "xy", 4000: "xyz", 6000: "z"}
    assert seen(window, at(1000, "x"), at(2000, "y"), at(2500, "z")) == found
    # and at the lower bound: an element of 0.0 is in the close at 0, 2, and not 4
    assert seen(window, at(0, "x")) == {0: "x", 2000: "x"}


def test_step_window_on_content_change() -> None:
    # enter ts; leave 2*floor(ts/2) + 4: x of 1.0 leaves at 4, y of 2.0 and z of 2.5 at 6
    window = Window(K.CHANGE, range=4000, step=2000)
    found = {1000: "x", 2000: "xy", 2500: "xyz", 4000: "yz"}
    assert seen(window, at(1000, "x"), at(2000, "y"), at(2500, "z")) == found


def test_range_window_per_element() -> None:
    window = Window(K.RANGE, range=4000)
    found = {1000: "x", 2500: "xz", 5000: "z"}
    assert seen(window, at(1000, "x"), at(2500, "z")) == found


def test_now_window() -> None:
    assert seen(Window(K.NOW), at(1000, "x"), at(1001, "y"), at(2500, "z")) == {
        1000: "x",
        1001: "y",
        2500: "z",
    }


def test_all_window_reports_to_its_last_change() -> None:
    assert seen(Window(K.ALL), at(1000, "x"), at(2500, "z")) == {1000: "x", 2500: "xz"}


def test_all_beside_a_window_on_close() -> None:
    # w: closes at 2, 4, 6 hold x, then x, then nothing; all keeps x: reported at 1 (enters all), 2,
    # 4, 6 (x leaves w)
    query = ReferenceQuery(
        "SELECT ?s { GRAPH <e:all> { ?s ?p ?o } }",
        {"e:w": ("s", Window(K.CLOSE_OPEN, range=4000, step=2000)), "e:all": ("s", Window(K.ALL))},
    )
    assert [(r.time, letters(r)) for r in ask(query, at(1000, "x"))] == [
        (1000, "x"),
        (2000, "x"),
        (4000, "x"),
        (6000, "x"),
    ]


def test_count_window_is_the_last_n_occurrences_by_time_and_text() -> None:
    window = Window(K.COUNT, count=2)
    # at 2.0 come a and b in the order of their texts, so x is pushed out; x again at 3.0 pushes out
    # a
    assert seen(window, at(1000, "x"), at(2000, "b", "a"), at(3000, "x")) == {
        1000: "x",
        2000: "ab",
        3000: "bx",
    }


def test_count_window_holds_a_set_of_the_last_occurrences() -> None:
    # x twice at one ts is one occurrence; x of 1.0 and x of 2.0 are two, so a window of two holds
    # the one triple x
    window = Window(K.COUNT, count=2)
    found = seen(window, at(500, "y"), at(1000, "x"), at(1000, "x"), at(2000, "x"), at(3000, "z"))
    assert found == {500: "y", 1000: "xy", 2000: "x", 3000: "xz"}


def test_count_window_with_more_triples_at_one_time_than_it_holds() -> None:
    # of a b c only b and c are ever in it; nothing leaves at the end
    assert seen(Window(K.COUNT, count=2), at(1000, "c", "a", "b")) == {1000: "bc"}


def test_window_is_a_set() -> None:
    # x of 1.0 (in it until 5) and again of 3.0 (until 7): once at 3, still there at 5
    assert seen(Window(K.RANGE, range=4000), at(1000, "x"), at(3000, "x")) == {
        1000: "x",
        3000: "x",
        5000: "x",
    }


def test_repeated_triple_is_no_news_to_istream_nor_its_first_leaving_to_dstream() -> None:
    elements = (at(1000, "x"), at(3000, "x"))
    window = Window(K.RANGE, range=4000)
    assert seen(window, *elements, output="ISTREAM") == {1000: "x"}
    assert seen(window, *elements, output="DSTREAM") == {7000: "x"}


def test_given_t0_starts_the_closes_and_leaves_out_what_is_before() -> None:
    # closes from 1.5 + 4 on: 5.5, 7.5, 9.5, 11.5; w of 1.0 is before t0; x of 1.5: enter 5.5, leave
    # next(5.5) = 7.5
    window = Window(K.CLOSE_OPEN, range=4000, step=2000, t0=1500, t0_given=True)
    found = {5500: "xy", 7500: "y", 9500: "z", 11500: "z"}
    assert seen(window, at(1000, "w"), at(1500, "x"), at(4000, "y"), at(7500, "z")) == found


def test_given_t0_holds_for_every_kind() -> None:
    for kind in (K.CHANGE, K.RANGE, K.NOW, K.ALL, K.COUNT):
        step = 1 if kind is K.COUNT else 1000
        window = Window(kind, range=1000, step=step, t0=1500, t0_given=True, count=5)
        assert seen(window, at(1000, "w")) == {}
        assert seen(window, at(1000, "w"), at(1500, "x"))[1500] == "x"


def test_gap_of_a_year_costs_nothing() -> None:
    year = 365 * 24 * 3600 * 1000
    window = Window(K.CLOSE_OPEN, range=2000, step=2000)
    assert seen(window, at(500, "x"), at(year + 500, "y")) == {2000: "x", year + 2000: "y"}


def test_step_longer_than_range_has_holes() -> None:
    # closes at 1 + 2k: the windows are [0, 1), [2, 3), [4, 5); x of 1.5 is in none, y of 2.5 in
    # that of close 3
    window = Window(K.CLOSE_OPEN, range=1000, step=2000)
    assert seen(window, at(1500, "x"), at(2500, "y")) == {3000: "y"}


def test_registered_after_a_time() -> None:
    assert seen(Window(K.RANGE, range=4000), at(1000, "x"), at(2000, "y"), after=1000) == {
        2000: "y"
    }


COUNT = "SELECT (COUNT(*) AS ?n) { GRAPH <e:w> { ?s ?p ?o } }"


def counts(*elements: Element, **options: object) -> dict[int, list[str]]:
    window = Window(K.CLOSE_OPEN, range=1000, step=1000)
    query = ReferenceQuery(COUNT, {"e:w": ("s", window)}, **options)  # type: ignore[arg-type]
    return {
        r.time: [text[1] for s in r.solutions.elements() for _, text in s]
        for r in ask(query, *elements)
    }


def test_empty_windows_have_no_row_of_an_ungrouped_aggregate() -> None:
    assert counts(at(500, "x"), at(3500, "y")) == {1000: ["1"], 4000: ["1"]}


def test_first_empty_report_after_content_ends_the_result() -> None:
    assert counts(at(500, "x"), at(3500, "y"), output="DSTREAM") == {2000: ["1"], 5000: ["1"]}
    # IStream: the row of 4 is new again, since the report of 2 (and the skipped one of 3) had none
    assert counts(at(500, "x"), at(3500, "y"), output="ISTREAM") == {1000: ["1"], 4000: ["1"]}


def test_empty_reports_evaluate_every_close() -> None:
    found = counts(at(500, "x"), at(3500, "y"), empty_reports=True)
    assert found == {1000: ["1"], 2000: ["0"], 3000: ["0"], 4000: ["1"], 5000: ["0"]}


def test_empty_reports_reach_to_the_last_element_though_no_window_holds_it() -> None:
    # closes at 1 + 5k; x of 0.5 is in the close of 1, y of 12.5 in none; the last close before the
    # end is 11
    window = Window(K.CLOSE_OPEN, range=1000, step=5000)
    found = seen(window, at(500, "x"), at(12500, "y"), empty_reports=True)
    assert found == {1000: "x", 6000: "", 11000: ""}


def test_two_policies_report_at_the_union() -> None:
    # w1 closes at 2, 4 with x (enter 2, leave 4); w2 holds y in [1.5, 2.5)
    query = ReferenceQuery(
        "SELECT ?s { { GRAPH <e:w1> { ?s ?p ?o } } UNION { GRAPH <e:w2> { ?s ?p ?o } } }",
        {
            "e:w1": ("s", Window(K.CLOSE_OPEN, range=2000, step=2000)),
            "e:w2": ("t", Window(K.RANGE, range=1000)),
        },
    )
    reports = evaluate(query, {"s": [at(1000, "x")], "t": [at(1500, "y")]})
    assert [(r.time, letters(r)) for r in reports] == [(1500, "y"), (2000, "xy"), (2500, "x")]


def test_worked_example() -> None:
    """One query over two windows, six elements, worked through by hand."""
    query = ReferenceQuery(
        "SELECT ?room ?t ?h { GRAPH <e:w1> { ?room <e:t> ?t } GRAPH <e:w2> { ?room <e:h> ?h } }",
        {
            "e:w1": ("temp", Window(K.CLOSE_OPEN, range=4000, step=2000)),
            "e:w2": ("hum", Window(K.CLOSE_OPEN, range=6000, step=3000)),
        },
    )
    temp = [
        Element(1000, ("<e:r1> <e:t> 20 ",)),
        Element(2500, ("<e:r1> <e:t> 20 ",)),
        Element(3000, ("<e:r2> <e:t> 22 ",)),
    ]
    hum = [
        Element(2000, ("<e:r1> <e:h> 50 ",)),
        Element(4500, ("<e:r2> <e:h> 60 ", "<e:r3> <e:x> 1 ")),
    ]
    streams = {
        name: [numbers(e) for e in stream] for name, stream in (("temp", temp), ("hum", hum))
    }
    r1, r2 = frozenset(solution("r1", 20, 50)), frozenset(solution("r2", 22, 60))
    found = {r.time: r.solutions for r in evaluate(query, streams)}
    assert found == {3000: Counter([r1]), 4000: Counter([r1]), 6000: Counter([r1, r2])}


def integer(n: int | str) -> str:
    return f'"{n}"^^<http://www.w3.org/2001/XMLSchema#integer>'


def numbers(element: Element) -> Element:
    """The element with the bare numbers at the end of its triples as literals."""
    parts = [t.split() for t in element.triples]
    return Element(element.ts, tuple(f"{s} {p} {integer(o)}" for s, p, o in parts))


def solution(room: str, t: int, h: int) -> list[tuple[str, str]]:
    return [("room", f"<e:{room}>"), ("t", integer(t)), ("h", integer(h))]


def test_ask() -> None:
    query = ReferenceQuery(
        "ASK { GRAPH <e:w> { <e:x> ?p ?o } }", {"e:w": ("s", Window(K.RANGE, range=2000))}
    )
    elements = (at(1000, "y"), at(2000, "x"), at(9000, "y"))
    # y in [1, 3), x in [2, 4), y in [9, 11): no line at 4 and 11, where all windows are empty
    assert [(r.time, r.boolean) for r in ask(query, *elements)] == [
        (1000, False), (2000, True), (3000, True), (9000, False),
    ]  # fmt: skip
    changed = ReferenceQuery(query.sparql, query.windows, "ISTREAM")
    assert [(r.time, r.boolean) for r in ask(changed, *elements)] == [
        (1000, False),
        (2000, True),
        (9000, False),
    ]


def test_construct_is_the_template_of_the_difference() -> None:
    query = ReferenceQuery(
        ALL_SUBJECTS,
        {"e:w": ("s", Window(K.RANGE, range=2000))},
        "ISTREAM",
        template=(("?s", "<e:is>", '"new"'), ("<e:all>", "<e:seen>", "<e:it>")),
    )
    found = {r.time: r.graph for r in ask(query, at(1000, "x"), at(2000, "y"))}
    every = "<e:all> <e:seen> <e:it>"
    assert found == {1000: {'<e:x> <e:is> "new"', every}, 2000: {'<e:y> <e:is> "new"', every}}  # type: ignore[comparison-overlap]


def test_construct_leaves_out_what_is_no_triple_and_makes_blank_nodes_per_solution() -> None:
    query = ReferenceQuery(
        "SELECT ?s ?none { GRAPH <e:w> { ?s ?p ?o } }",
        {"e:w": ("s", Window(K.NOW))},
        template=(("?s", "<e:p>", "?none"), ("_:b", "<e:of>", "?s")),
    )
    graph = ask(query, at(1000, "x", "y"))[0].graph
    assert graph is not None
    assert len(graph) == 2
    assert len({t.split()[0] for t in graph}) == 2


def test_now_is_the_report_time() -> None:
    query = ReferenceQuery(
        "SELECT (NOW() AS ?t) { GRAPH <e:w> { ?s ?p ?o } }", {"e:w": ("s", Window(K.NOW))}
    )
    found = ask(query, at(1500, "x"))[0].solutions
    assert found == Counter(
        [
            frozenset(
                {("t", '"1970-01-01T00:00:01.5Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>')}
            )
        ]
    )


def test_static_graphs() -> None:
    static = {None: ["<e:x> <e:kind> <e:k>"], "e:g": ["<e:x> <e:rank> <e:one>"]}
    text = "SELECT * { GRAPH <e:w> { ?s <e:p> ?o } ?s <e:kind> ?k GRAPH <e:g> { ?s <e:rank> ?r } }"
    query = ReferenceQuery(text, {"e:w": ("s", Window(K.NOW))})
    assert len(evaluate(query, {"s": [at(1, "x", "y")]}, static)[0].solutions) == 1
    from_g = ReferenceQuery(
        "SELECT * { GRAPH <e:w> { ?s <e:p> ?o } ?s <e:rank> ?r }", query.windows, graphs=("e:g",)
    )
    assert len(evaluate(from_g, {"s": [at(1, "x")]}, static)[0].solutions) == 1


def test_optional_inside_an_empty_window_is_the_empty_solution() -> None:
    text = "SELECT ?s { GRAPH <e:w> { ?s <e:p> ?o } GRAPH <e:v> { OPTIONAL { ?x <e:p> ?o } } }"
    query = ReferenceQuery(text, {"e:w": ("s", Window(K.NOW)), "e:v": ("t", Window(K.NOW))})
    assert len(evaluate(query, {"s": [at(1, "x")], "t": []})) == 1


def test_order_of_arrival_does_not_matter() -> None:
    window = Window(K.COUNT, count=2)
    elements = (at(1000, "x"), at(2000, "b", "a"), at(3000, "x"))
    assert seen(window, *elements) == seen(window, *reversed(elements))


def sql(text: str, window: Window, output: str = "RELATION") -> ReferenceSql:
    return ReferenceSql(
        text, {"a": ("A", window)}, {"A": {"k": "integer", "v": "double"}}, {"n": "integer"}, output
    )


def values(reports: list[Report]) -> list[tuple[int, str | None, list[str]]]:
    return [
        (
            r.time,
            r.change,
            sorted(text.split('"')[1] for s in r.solutions.elements() for _, text in s),
        )
        for r in reports
    ]


def test_windows_over_tuples_are_bags_and_a_relation_says_its_changes() -> None:
    rows = [Row(1000, (7, 0.5)), Row(1000, (7, 0.5)), Row(2000, (8, 0.5))]
    query = sql("Select k As n From a", Window(K.RANGE, range=2000))
    assert values(evaluate(query, {"A": rows})) == [
        (1000, "insert", ["7", "7"]),
        (2000, "insert", ["8"]),
        (3000, "delete", ["7", "7"]),
        (4000, "delete", ["8"]),
    ]


def test_grouped_sql_changes_with_both_signs() -> None:
    rows = [Row(1000, (7, 0.5)), Row(2000, (7, 0.5))]
    query = sql("Select Count(*) As n From a", Window(K.RANGE, range=3000))
    # 1 row from 1 on, 2 from 2, 1 from 4, none from 5: at 5 all windows are empty, and so is the
    # result
    assert values(evaluate(query, {"A": rows})) == [
        (1000, "insert", ["1"]),
        (2000, "delete", ["1"]), (2000, "insert", ["2"]),
        (4000, "delete", ["2"]), (4000, "insert", ["1"]),
        (5000, "delete", ["1"]),
    ]  # fmt: skip


def test_rows_window_and_the_time_column() -> None:
    rows = [Row(1000, (7, 0.5)), Row(1000, (7, 0.5)), Row(2000, (8, 0.5))]
    query = sql("Select ts As n From a", Window(K.COUNT, count=2), "RSTREAM")
    assert values(evaluate(query, {"A": rows})) == [
        (1000, None, ["1000", "1000"]),
        (2000, None, ["1000", "2000"]),
    ]


@pytest.mark.parametrize(
    ("value", "text"), [(True, '"true"'), (2.0, '"2"'), (3, '"3"'), ("x", '"x"')]
)
def test_sql_columns_are_terms_of_their_types(value: int | float | str | bool, text: str) -> None:
    kind = {bool: "boolean", float: "double", int: "integer", str: "string"}[type(value)]
    query = ReferenceSql(
        "Select c As n From a",
        {"a": ("A", Window(K.NOW))},
        {"A": {"c": kind}},
        {"n": kind},
        "RSTREAM",
    )
    (found,) = evaluate(query, {"A": [Row(1, (value,))]})[0].solutions
    assert dict(found)["n"].startswith(text)
