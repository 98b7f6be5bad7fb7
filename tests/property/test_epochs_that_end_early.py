"""An epoch with too many reports ends early, and the next ones make the others: the results are
those of the reference, wherever epochs end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_random_replacements import judged

from levada.checkpoint.manifest import EpochIntent
from levada.errors import ManyReportsError
from levada.runtime.cost_model.memory_admission import TooLarge
from levada.runtime.epoch_pipeline import EpochRunner
from levada.testing.compare import same_queries
from levada.testing.reference_model import ReferenceSql, Row
from support.example_counts import PATIENCE, examples
from support.generators import (
    Case,
    CaseQuery,
    Clause,
    cases,
    cql_cases,
    cql_view_cases,
    made_cases,
    replaced_cases,
)
from support.generators.cql import SCHEMAS
from support.generators.windows import reporting
from support.query_dsl import at, query
from support.stepped_runs import run_case, run_stopped

pytestmark = pytest.mark.timeout(PATIENCE)
Test = TypeVar("Test", bound=Callable[..., None])
both = cases(most=4) | cql_cases(most=4) | cql_view_cases(most=2)
bounds = st.sampled_from((2, 5, 12, 30, 100))
epochs, partitions = st.sampled_from((1, 3, 1000)), st.sampled_from((1, 2))


@contextmanager
def at_most(reports: int) -> Iterator[list[int]]:
    """Epochs of so many pairs of a row and a report; the instants at which epochs ended early."""
    found: list[int] = []
    plain = EpochRunner.make_smaller

    def noted(self: EpochRunner, error: TooLarge, intention: EpochIntent) -> None:
        assert isinstance(error, ManyReportsError)
        found.append(error.until)
        plain(self, error, intention)

    with (
        patch("levada.operators.windowing.report_count_bound.MOST_REPORTS", reports),
        patch("levada.operators.windowing.report_count_bound.MOST_OF_A_ROW", 0),
        patch.object(EpochRunner, "make_smaller", noted),
    ):
        yield found


@examples(20)
@given(both | made_cases(), epochs, partitions, bounds)
def test_where_epochs_end_changes_nothing(case: Case, rows: int, parts: int, most: int) -> None:
    with at_most(most):
        got = run_case(case, epoch_rows=rows, partitions=parts)
    assert same_queries(case.expected(), got) is None


@examples(8)
@given(made_cases() | cases(most=2), epochs, partitions, bounds, st.integers(1, 3))
def test_one_can_stop_between_epochs_that_end_early(
    case: Case, rows: int, parts: int, most: int, every: int
) -> None:
    """Also where queries read what others make, which a stop lets them say."""
    with at_most(most):
        got = run_stopped(case, every, epoch_rows=rows, partitions=parts)
    assert same_queries(case.expected(), got) is None


@pytest.mark.long
@examples(5)
@given(replaced_cases(), epochs, partitions, bounds, st.booleans())
def test_static_data_are_replaced_between_epochs_that_end_early(
    case: Case, rows: int, parts: int, most: int, live: bool
) -> None:
    with at_most(most):
        assert judged(case, {}, live=live, epoch_rows=rows, partitions=parts) is None


@pytest.mark.parametrize("most", [4, 20])
def test_empty_reports_follow_where_elements_are_above_an_early_end(most: int) -> None:
    """The streams are complete then, and have not ended: more comes up."""
    windows = {"w": Clause("step", 2000, step=1000)}
    count = ("SELECT (COUNT(*) AS ?n)", "WINDOW :w { ?s ?p ?o }")
    every = query(*count, windows=windows, name="every", empty_reports=True)
    ask = query("ASK", count[1], windows=windows, name="ask", empty_reports=True)
    elements = (at(0, ":a :p 1"), at(40_000, ":a :p 2"), at(90_500, ":b :p 2"))
    case = Case({"http://e/s": elements}, (every, ask), 0, {})
    with at_most(most) as ended:
        got = run_case(case, partitions=2)
    assert len(ended) >= 2
    assert same_queries(case.expected(), got) is None


@pytest.mark.parametrize("every", [1, 2])
def test_a_stop_ends_while_a_made_stream_is_behind(every: int) -> None:
    head = "CONSTRUCT { ?s :n ?o }", "WINDOW :w { ?s :p ?o }"
    windows = {"w": Clause("step", 30_000, step=1000)}
    template = (("?s", "<http://e/n>", "?o"),)
    maker = query(*head, windows=windows, name="m", template=template, select="SELECT ?s ?o")
    over = {"v": ("http://e/m", Clause("step", 20_000, step=1000))}
    reader = query("SELECT ?s ?o", "WINDOW :v { ?s :n ?o }", windows=over, name="r")
    case = Case({"http://e/s": (at(0, ":a :p 1"), at(90_500, ":b :p 2"))}, (maker, reader), 0, {})
    with at_most(10) as ended:
        got = run_stopped(case, every, partitions=2)
    assert len(ended) >= 3
    assert same_queries(case.expected(), got) is None


@pytest.mark.parametrize("report", ["", "periodic:1s"])
def test_a_long_window_is_reported_in_many_epochs(report: str) -> None:
    count = ("SELECT (COUNT(*) AS ?n)", "WINDOW :w { ?s ?p ?o }", "")
    windows = {"w": Clause("step", 100_000, step=1000)}
    asked = query(*count, windows=windows, output="RSTREAM", name="count")
    case = Case({"http://e/s": (at(0, ":a :p 1"), at(250_000, ":a :p 2"))}, (asked,), 0, {})
    with at_most(20) as ended:
        got = run_case(case, partitions=2)
    assert len(ended) >= 3
    assert same_queries(case.expected(), got) is None


def test_an_early_end_is_beyond_what_has_been_reported() -> None:
    """Found by chance: reports on change at the watermark were too many, so each epoch was to end
    there, where it stood already, and a stop forgot how far they had been.
    """
    windows = {
        "v": ("http://e/s1", Clause("all")),
        "w": ("http://e/s0", Clause("step", 4000, step=250)),
    }
    body = "WINDOW :v { ?s (:q/:q)+ ?x . ?s :r ?t } WINDOW :w { ?x :q ?y }"
    tail = "ORDER BY STR(?t) LIMIT 4"
    asked = query("SELECT DISTINCT ?t", body, tail, windows=windows, output="DSTREAM", name="q")
    said = {
        250: (":b :r 'ab'",),
        1249: (":c :q :b",),
        1749: (":b :q :a",),
        2249: (":c :q :a", ":b :q :a", ":b :q :c", ":a :r 'ab'"),
        2499: (":c :p 1", ":c :p 2", ":c :p 3"),
        3249: (":b :q :c", ":b :r 'Ba'", ":b :q :a", ":a :q :a"),
        5249: (":b :r 'b'", ":a :q :b", ":a :r 'Ba'"),
        8250: (":b :r 'ab'",),
    }
    streams = {
        "http://e/s0": (at(0, ":b :q 4"), at(1000, ":a :q 4")),
        "http://e/s1": tuple(at(time, line) for time, lines in said.items() for line in lines),
    }
    case = Case(streams, (asked,), 0, {})
    with at_most(2):
        got = run_stopped(case, 2, epoch_rows=3, partitions=2)
    assert same_queries(case.expected(), got) is None


def over_a_view(
    output: str, windows: tuple[Clause, Clause], options: dict[str, object], times: tuple[int, ...]
) -> Case:
    """Rows of a view that says how many elements there are, beside the elements of a window."""
    inner, count = Clause("step", 9000, step=1000), {"c0": "integer"}
    of, beside = windows
    text = (
        f"Register Stream V (c0 integer) As "
        f"Istream(Select count(*) As c0 From A {inner.cql} As t1);\n"
        f"{output}(Select t2.c0 As c0 From V {of.cql} As t2, A {beside.cql} As t3)"
    )
    view = ReferenceSql(
        "Select count(*) As c0 From t1", {"t1": ("A", inner.window({}))}, SCHEMAS, count, "ISTREAM"
    )
    asked = ReferenceSql(
        "Select t2.c0 As c0 From t2, t3",
        {"t2": ("V", of.window(options)), "t3": ("A", beside.window(options))},
        {**SCHEMAS, "V": count},
        count,
        output.upper(),
        views={"V": view},
        empty_reports=bool(options.get("empty_reports")),
        **reporting(options),
    )
    rows = tuple(Row(time, (1, 1.0, "x"), 1) for time in times)
    query = CaseQuery("q", text, "cql", options, asked)
    return Case({"A": rows}, (query,), 0, {}, SCHEMAS)


SHORT, ALL, LAST = Clause("step", 4000, step=1000), Clause("all"), Clause("count", count=1)


@pytest.mark.long
@pytest.mark.parametrize(
    ("output", "windows", "options", "every"),
    [
        ("Istream", (SHORT, SHORT), {"empty_reports": True}, 0),
        ("Rstream", (SHORT, SHORT), {}, 1),
        ("Rstream", (SHORT, ALL), {}, 0),
        ("Rstream", (LAST, SHORT), {}, 0),
        ("Rstream", (SHORT, ALL), {"report": "periodic:1500ms"}, 0),
        ("Istream", (SHORT, LAST), {"report": "periodic:700ms", "empty_reports": True}, 2),
    ],
)
def test_closes_go_on_where_a_query_within_may_still_say_something(
    output: str, windows: tuple[Clause, Clause], options: dict[str, object], every: int
) -> None:
    """Found by chance: once streams had ended, closes behind the last change were left out as those
    behind the end, though the next epochs had more changes.
    """
    case = over_a_view(output, windows, options, (500, 700, 12_500))
    with at_most(2) as ended:
        got = run_stopped(case, every, partitions=2) if every else run_case(case, partitions=2)
    assert len(ended) >= 3
    assert same_queries(case.expected(), got) is None
