"""What docs/semantics.md says of edges that are seldom met: equal triples in count windows, reports
at which all is empty, how far reports go at the end, NaN, negated sets, dates beside numbers.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from levada.testing.reference_model import Element, Report
from support.cql_answers import answers
from support.generators import Case, CaseQuery, Clause
from support.query_dsl import STREAM, at, check, query
from support.stepped_runs import run_case

STEP = Clause("step", 2000, 2000)


def shown(reports: list[Report], name: str) -> list[tuple[int | None, list[str]]]:
    """The values of a variable at each report, without their datatypes."""
    found: list[tuple[int | None, list[str]]] = []
    for report in reports:
        texts = [dict(row).get(name, "-") for row in report.solutions.elements()]
        found.append((report.time, sorted(t.split('"')[1] if '"' in t else t for t in texts)))
    return found


def said(asked: CaseQuery, *elements: Element) -> list[Report]:
    """What the engine says, which the reference has judged."""
    return check(asked, s=elements)["q"]


@pytest.mark.parametrize("word", [Clause("count", count=2), Clause("count", count=2, step=1)])
def test_equal_triples_of_one_instant_count_once(word: Clause) -> None:
    asked = query("SELECT ?s", "WINDOW :w { ?s :q ?o }", windows={"w": word})
    a, b, c = "<http://e/a>", "<http://e/b>", "<http://e/c>"
    once = said(asked, at(1000, ":a :q :a"), at(1500, ":b :q :b"), at(1500, ":b :q :b"))
    assert shown(once, "s")[-1] == (1500, [a, b])
    twice = said(asked, at(1000, ":a :q :a"), at(1500, ":b :q :b"), at(1700, ":b :q :b"))
    assert shown(twice, "s")[-1] == (1700, [b])
    after = said(asked, at(1000, ":b :q :b"), at(1000, ":b :q :b"), at(2000, ":c :q :c"))
    assert shown(after, "s")[-1] == (2000, [b, c])


def test_periodic_reports_go_up_to_the_last_element_beside_a_window_that_never_empties() -> None:
    """The last element, an odd one, changes nothing; the report at 4200 is certain before the end
    is known.
    """
    asked = query(
        "SELECT ?s", "WINDOW :w { ?s :q ?o }",
        windows={"w": Clause("count", count=3, step=2)}, report="periodic:700ms",
    )  # fmt: skip
    elements = [at(t, f":x{t} :q :b") for t in (500, 3268, 4268)]
    assert [r.time for r in said(asked, *elements)] == [3500, 4200]


@pytest.mark.parametrize("epoch_rows", [1, 1000])
def test_how_far_periodic_reports_go_does_not_depend_on_epochs(epoch_rows: int) -> None:
    """The window changes at 3268. Epochs that had forgotten that told of a change at 4250, which
    only a report at 4900 would have shown.
    """
    asked = query(
        "SELECT ?s", "WINDOW :w { ?s :q ?o }",
        windows={"w": Clause("count", count=4, step=4)}, report="periodic:700ms",
    )  # fmt: skip
    times = (500, 600, 700, 3268, 4250, 4268, 4269)
    elements = tuple(at(t, f":x{t} :q :b") for t in times)
    case = Case({STREAM: elements}, (asked,))
    found = run_case(case, epoch_rows=epoch_rows)["q"]
    assert [r.time for r in found] == [r.time for r in case.expected()["q"]] == [3500, 4200]


@pytest.mark.parametrize("epoch_rows", [1, 1000])
def test_where_nothing_has_changed_no_period_shows_the_last_change(epoch_rows: int) -> None:
    asked = query(
        "SELECT ?s", "WINDOW :w { ?s :q ?o }", windows={"w": Clause("count", count=3, step=3)},
        report="periodic:700ms", t0=900, empty_reports=True,
    )  # fmt: skip
    elements = (at(1252, ":a :q :b"), at(1253, ":a :q :b"))
    assert run_case(Case({STREAM: elements}, (asked,)), epoch_rows=epoch_rows)["q"] == []


def test_the_first_boolean_after_emptiness_is_a_change() -> None:
    window = {"w": Clause("range", 1000)}
    asked = query("ASK", "WINDOW :w { ?s :r ?o }", windows=window, output="ISTREAM")
    elements = (at(1000, ":a :q :a"), at(1500, ":b :q :b"), at(5000, ":a :q :a"))
    assert [(r.time, r.boolean) for r in said(asked, *elements)] == [(1000, False), (5000, False)]


@pytest.mark.parametrize(
    ("clause", "times"),
    [(STEP, (2000, 4000)), (Clause("now"), (1000, 1001)), (Clause("session", 700), (1700, 1701))],
)
def test_deletions_are_written_where_all_is_empty(clause: Clause, times: tuple[int, int]) -> None:
    def time_of(output: str) -> int | None:
        windows = {"w": clause}
        asked = query("SELECT ?s", "WINDOW :w { ?s :q ?o }", windows=windows, output=output)
        (report,) = said(asked, at(1000, ":a :q :a"))
        return report.time

    assert (time_of("ISTREAM"), time_of("DSTREAM")) == times


def test_empty_reports_go_up_to_the_one_at_which_the_windows_have_become_empty() -> None:
    """Or to the last element, where that is later: what it leaves shows at a later close."""
    head = "SELECT (COUNT(?s) AS ?n)"
    asked = query(head, "WINDOW :w { ?s :q ?o }", windows={"w": STEP}, empty_reports=True)
    found = shown(said(asked, at(1000, ":a :q :a"), at(5100, ":b :q :b")), "n")
    assert found == [(2000, ["1"]), (4000, ["0"]), (6000, ["1"]), (8000, ["0"])]


@pytest.mark.parametrize("output", ["ISTREAM", "DSTREAM"])
def test_an_answer_is_said_again_by_no_empty_report(output: str) -> None:
    """Where it stays what it was nothing is said, and not that it is false."""
    group, windows = "WINDOW :w { ?s :q ?o }", {"w": STEP}
    asked = query("ASK", group, windows=windows, output=output, empty_reports=True)
    times = (1000, 3000, 11000, 15000)
    found = check(asked, s=[at(ts, ":a :p :a" if ts == 15000 else ":a :q :a") for ts in times])
    assert [(r.time, r.boolean) for r in found["q"]] == [
        (2000, True), (6000, False), (12000, True), (14000, False),
    ]  # fmt: skip


def test_nan_is_below_all_numbers() -> None:
    """pyoxigraph has it the other way round."""
    asked = query("SELECT (MIN(?o) AS ?a) (MAX(?o) AS ?b)", "WINDOW :w { ?s :p ?o }")
    element = at(1000, ":x :p 1 . :y :p 3 . :z :p 'NaN'^^xsd:double")
    (report,) = run_case(Case({STREAM: (element,)}, (asked,)))["q"]
    (row,) = map(dict, report.solutions)
    assert (row["a"].split('"')[1], row["b"].split('"')[1]) == ("NaN", "3")


@pytest.mark.parametrize(
    ("path", "count"), [("!:r", "2"), ("!(:q|:r)", "1"), ("!(:p|^:r)", "2"), (":p|:p", "2")]
)
def test_a_negated_set_counts_each_predicate(path: str, count: str) -> None:
    """With constants at both ends as with variables: the reference is asked with variables."""
    element = at(1000, ":c :p :a ; :q :a . :a :n :c")
    for ends in (":c {} :a", "?s {} ?o FILTER(?s = :c && ?o = :a)"):
        group = f"WINDOW :w {{ {ends.format(path)} }}"
        asked = query("SELECT (COUNT(*) AS ?n)", group)
        found = run_case(Case({STREAM: (element,)}, (asked,)))["q"]
        assert shown(found, "n") == [(4000, [count])]


@pytest.mark.parametrize(
    ("value", "result"),
    [
        ("'abc'", "false"),
        ("true", "false"),
        (":a", "false"),
        ("'2020-01-01T00:00:00Z'^^xsd:dateTime", "false"),
        ("'2020-01-01'^^xsd:date", "-"),
        ("'10:00:00'^^xsd:time", "-"),
        ("'a'^^:type", "-"),
        ("12.0", "true"),
    ],
)
def test_what_a_number_is_compared_with(value: str, result: str) -> None:
    asked = query("SELECT ?e", "WINDOW :w { ?s :p ?o } BIND(?o = 12 AS ?e)")
    found = run_case(Case({STREAM: (at(1000, f":x :p {value}"),)}, (asked,)))["q"]
    assert shown(found, "e") == [(4000, [result])]


def test_count_passes_over_what_has_no_value(tmp_path: Path) -> None:
    view = "Register Relation V (x Integer) As Select a / b From A [Range 10 s]; "
    rows = [(4, 2), (4, 0), (9, 3)]
    found = answers(tmp_path, "Select Count(x), Count(*), Count(Distinct x) From V", rows, view)
    assert [found[1000 * i] for i in range(3)] == [
        [("1", "1", "1")],
        [("1", "2", "1")],
        [("2", "3", "2")],
    ]


def test_a_query_in_brackets_needs_no_name(tmp_path: Path) -> None:
    assert answers(tmp_path, "Select a From (Select a From A [Now])", [(1, 1)])[0] == [("1",)]
