"""Cases in which the engine and the reference once differed, made as small as they go. Each says
what went wrong.
"""

from __future__ import annotations

from dataclasses import replace

from levada.testing.compare import same_queries
from levada.testing.reference_model import Element, ReferenceQuery
from support.generators import Case, Clause
from support.query_dsl import STREAM, at, check, query, triples, values
from support.stepped_runs import run_case, run_in_two


def test_empty_reports_end_with_the_first_report_after_the_content() -> None:
    """An element is in a window of [RANGE 250 ms STEP 3 s] from its close at 250 to that at 3250,
    which is the first empty report and the last one. The engine went on to the next close of the
    other window, at 4500, after everything had ended.
    """
    windows = {"w": Clause("step", 2500, 2000), "v": Clause("step", 250, 3000)}
    group = "WINDOW :w { ?x :r ?t } WINDOW :v { ?x :p ?u }"
    asked = query(
        "SELECT ?u", group, windows=windows, on={"v": "t"}, output="DSTREAM", empty_reports=True
    )
    expected = check(asked, s=(), t=(at(0, ":a :p 5"),), silent=True)
    assert [r.time for r in expected["q"]] == [250, 500, 2500, 3250]


def test_nothing_ends_the_last_empty_report() -> None:
    """With empty reports the last one (6000) has a row, COUNT's 0. The engine took it back at 6500,
    the next close of the other window, although no report comes after the end.
    """
    windows = {"w": Clause("step", 4000, 1000), "v": Clause("step", 2500, 2000)}
    group = "WINDOW :w { ?s :p ?o } WINDOW :v { ?s :p ?o }"
    asked = query(
        "SELECT (COUNT(*) AS ?n)", group, windows=windows, output="DSTREAM", empty_reports=True
    )
    expected = check(asked, s=(at(500, ":a :r 1"), at(1500, ":a :p 1")))
    assert [r.time for r in expected["q"]][-1] == 6000


def test_nothing_ends_it_when_nothing_is_due_at_the_end() -> None:
    """The element at 195 is in no window; both reports are made when it comes, and none at
    the end.
    """
    group, windows = "WINDOW :w { ?s :p ?o }", {"w": Clause("step", 10, 100)}
    asked = query(
        "SELECT (COUNT(*) AS ?n)", group, windows=windows, output="DSTREAM", empty_reports=True
    )
    expected = check(asked, s=(at(5, ":a :p 1"), at(195, ":a :p 1")))
    assert [r.time for r in expected["q"]][-1] == 110


def test_what_ends_is_still_shown() -> None:
    """Report rows outlive the rows that they came from, and their texts with them. In the epoch in
    which the last one ended, the texts were looked up after they had been dropped: DStream said
    that an unbound variable was gone.
    """
    asked = query(
        "SELECT ?p (COUNT(*) AS ?n)", "WINDOW :w { ?s ?p ?o }", "GROUP BY ?p", output="DSTREAM"
    )
    expected = check(asked, s=(at(1000, ":a :r :b"), at(5000, ":a :p 1"), at(9000, ":a :q 1")))
    assert values(expected["q"], "p")[0] == ["<http://e/r>"]


def test_what_ends_at_a_later_periodic_report_is_still_shown() -> None:
    """The row counts in [1200, 1500), so that the periodic report at 2800 is the first to say that
    it is gone. Its text had been dropped at 1500 where epochs came in between: DStream said that an
    unbound variable was gone.
    """
    windows = {"w": Clause("step", 300, 300)}
    asked = query(
        "SELECT ?o",
        "WINDOW :w { ?s :p ?o }",
        windows=windows,
        output="DSTREAM",
        report="periodic:1400ms",
    )
    elements = (
        at(1100, ":a :p :b"),
        *(at(t, f":a :q {t}") for t in (1300, 1500, 1700, 1900, 2300)),
        at(4500, ":a :p :c"),
    )
    expected = check(asked, s=elements)
    assert values(expected["q"], "o")[0] == ["<http://e/b>"]


def test_a_computed_variable_that_nobody_reads() -> None:
    """ASK drops every variable: behind a join that keeps event times, BIND looked for the slot that
    it does not have.
    """
    group = "WINDOW :w { ?s :q ?s . ?s ?k ?o } WINDOW :v { ?s :p ?u } BIND(?o + 1 AS ?e)"
    windows = {"w": Clause("range", 1000), "v": Clause("range", 250)}
    check(query("ASK", group, windows=windows), s=(at(0, ":a :q :a ; :p 1"), at(2000, ":a :p 1")))


def test_an_average_of_more_than_28_digits() -> None:
    """Results of decimals that no 64 bits hold were cut to the 28 digits of Python's default
    context.
    """
    asked = query("SELECT (AVG(?o) AS ?v)", "WINDOW :w { ?s :p ?o }")
    expected = check(asked, s=(at(1000, ":c :p 999999999999, 0.000000001, -5"),))
    assert values(expected["q"], "v") == [
        ['"333333333331.333333333666666666"^^<http://www.w3.org/2001/XMLSchema#decimal>']
    ]


def test_a_sum_of_integers_of_19_digits_is_an_integer() -> None:
    """Integers of more than 18 digits, which value columns do not hold, were added up as
    decimals.
    """
    asked = query("SELECT (SUM(?o) AS ?t)", "WINDOW :w { ?s :p ?o }")
    expected = check(asked, s=(at(1000, ":c :p 9223372036854775806, 1"),))
    assert values(expected["q"], "t") == [
        ['"9223372036854775807"^^<http://www.w3.org/2001/XMLSchema#integer>']
    ]


def test_a_number_of_41_digits_is_summed() -> None:
    """As an operand it stopped the engine."""
    huge = Element(1000, at(0, ":a :p 12345678901234567890123456789012345678901 . :b :p 2").triples)
    asked = query("SELECT ?s (SUM(?o) AS ?t)", "WINDOW :w { ?s :p ?o }", "GROUP BY ?s")
    found = run_case(Case({STREAM: (huge,)}, (asked,)))["q"]
    texts = ("12345678901234567890123456789012345678901", "2")
    assert values(found, "t") == [
        [f'"{text}"^^<http://www.w3.org/2001/XMLSchema#integer>' for text in texts]
    ]


def test_sample_passes_over_what_is_unbound() -> None:
    """The reference was wrong: its stand-in for SAMPLE became unbound if the variable was, in any
    solution of the group.
    """
    group = "WINDOW :w { ?s :p ?o OPTIONAL { ?o :q ?k } }"
    asked = query("SELECT ?s (SAMPLE(?k) AS ?any)", group, "GROUP BY ?s")
    expected = check(asked, s=(at(1000, ":a :p :b, :c . :b :q 7 . :d :p :c"),))
    bound = {
        dict(solution)["s"]: "any" in dict(solution) for solution in expected["q"][0].solutions
    }
    assert bound == {"<http://e/a>": True, "<http://e/d>": False}


def test_a_query_that_comes_later_reads_static_data_that_another_reads_already() -> None:
    """Its static pattern was that of the older query, whose rows had come and gone: it found
    nothing.
    """
    group = "WINDOW :w { ?s :p ?v } ?s :kind ?k"
    asked = [query("SELECT ?s ?k", group, name=name) for name in ("old", "new")]
    case = Case(
        {STREAM: (at(1000, ":a :p 1"), at(5000, ":a :p 2"))},
        tuple(asked),
        0,
        {None: triples(":a :kind :K")},
    )
    found = run_in_two(case, {STREAM: 1}, ["new"])
    assert same_queries(case.expected({"new": 1000}), found) is None
    assert values(found["new"], "k") == [["<http://e/K>"]]


def test_from_merges_graphs_into_a_set() -> None:
    """The reference was wrong: pyoxigraph's FROM of two graphs finds a triple that both
    hold twice.
    """
    both: dict[str | None, str] = {"http://e/g": ":a :p 1", "http://e/h": ":a :p 1 ; :q 2"}
    windows = "WINDOW :w { ?s :q ?o }"
    asked = query("SELECT ?s ?v", f"{windows} ?s :p ?v", dataset="FROM :g FROM :h")
    question = asked.reference
    assert isinstance(question, ReferenceQuery)
    asked = replace(asked, reference=replace(question, graphs=("http://e/g", "http://e/h")))
    expected = check(asked, static=both, s=(at(1000, ":a :q 2"),))
    assert values(expected["q"], "s") == [["<http://e/a>"]]


def test_a_session_that_has_ended_leaves_also_where_the_next_one_begins_at_once() -> None:
    """Beside another window the instant after its end is a report; the end was forgotten once the
    next session had begun.
    """
    group = "?s :kind :K OPTIONAL { WINDOW :w { ?s :q ?o } WINDOW :v { ?s :q ?x } }"
    windows = {"w": Clause("session", 2000), "v": Clause("count", count=8)}
    asked = query("SELECT ?s", group, windows=windows, on={"v": "t"})
    streams = {
        STREAM: tuple(at(ts, f":a :p {ts}") for ts in (0, 2000, 4251)),
        "http://e/t": tuple(at(ts, f":b :p {ts}") for ts in (500, 1501, 3501, 4001)),
    }
    case = Case(streams, (asked,), 1500, {None: triples(":a :kind :K")})
    for rows in (1, 2, 1000):
        found = run_case(case, epoch_rows=rows)
        assert same_queries(case.expected(), found) is None
        assert 2001 in [report.time for report in found["q"]]


def test_other_windows_of_the_stream_do_not_cut_a_session() -> None:
    """[ALL] keeps the time of the first element and not of those behind it, for which it took the
    session to have ended before the last of them.
    """
    windows = {"w": Clause("all"), "v": Clause("session", 1000)}
    times = (0, 500, 1250, 2000, 2999, 5000)
    asked = query("SELECT ?x", "WINDOW :v { ?s :p ?x }", windows=windows)
    expected = check(asked, s=[at(ts, f":a :p {ts}") for ts in times])
    assert [len(values([report], "x")[0]) for report in expected["q"]] == [5, 1]


def test_other_windows_of_the_stream_do_not_end_a_session_at_a_time_that_is_dropped() -> None:
    """As above: the session was said to end at 1000, a gap after its first element, and 1001 to be
    a report.
    """
    windows = {"w": Clause("session", 1000), "v": Clause("all")}
    asked = [
        query("SELECT ?o", "WINDOW :v { ?s :p ?o }", windows=windows, on={"w": "t"}),
        query(
            "SELECT ?o",
            "WINDOW :v { ?s :p ?o }",
            windows={"v": Clause("all")},
            on={"v": "t"},
            name="other",
        ),
    ]
    times = (0, 400, 800, 1000, 1001, 1500)
    s, t = ([at(ts + lag, f":a :p {ts}") for ts in times] for lag in (50, 0))
    expected = check(*asked, s=s, t=t)
    assert 1001 not in [report.time for report in expected["q"]]


def test_reports_beside_a_window_that_never_empties_go_up_to_the_last_element() -> None:
    """The last two elements are in no window of [RANGE 250 ms STEP 500 ms] and do not complete a
    third triple. What was due up to them was reported if the watermark came there before the end,
    and else not.
    """
    windows = {"w": Clause("count", count=2, step=3), "v": Clause("step", 250, 500)}
    group = "WINDOW :w { ?s :p ?o } WINDOW :v { ?s :p ?x }"
    asked = [
        query("ASK", group, windows=windows),
        query("ASK", group, windows=windows, name="tick", report="periodic:250ms"),
        query("ASK", group, windows=windows, name="every", empty_reports=True),
    ]
    expected = check(*asked, s=[at(ts, f":a :p {ts}") for ts in (300, 1400, 2100, 3400, 3950)])
    assert [r.time for r in expected["q"]] == [2100, 2250, 2750, 3250, 3750]
    assert [r.time for r in expected["tick"]] == list(range(2250, 4000, 250))


def test_late_watermarks_and_the_last_element() -> None:
    """The same where the last element comes early and the watermark lags behind it."""
    windows = {"w": Clause("count", count=2, step=3), "v": Clause("step", 250, 500)}
    asked = query("ASK", "WINDOW :w { ?s :p ?o } WINDOW :v { ?s :p ?x }", windows=windows)
    streams = {STREAM: tuple(at(ts, f":a :p {ts}") for ts in (300, 1400, 2100, 3950, 3400, 3450))}
    case = Case(streams, (asked,), 1000)
    expected = case.expected()
    assert [r.time for r in expected["q"]][-1] == 3950
    for rows in (1, 2, 1000):
        assert same_queries(expected, run_case(case, epoch_rows=rows)) is None
