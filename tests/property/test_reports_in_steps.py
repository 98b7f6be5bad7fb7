"""Windows that report on change expand rows by reports in bounded steps, and say the same as in
one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from levada.kernels.terms.term_lookup import TermLookup
from levada.operators.reporting.due_reports import Calendar
from levada.testing.compare import same_queries
from levada.testing.reference_model import Element
from support.example_counts import EXAMPLES, PATIENCE
from support.generators import Case, CaseQuery, Clause
from support.query_dsl import RANGE, at, query
from support.stepped_runs import run_case

pytestmark = pytest.mark.timeout(PATIENCE)

PARTS = {
    "optional": (
        "SELECT ?s ?v ?x",
        "WINDOW :w { ?s :p ?v OPTIONAL { ?s :q ?x FILTER(?x > ?v) } }",
        "",
    ),
    "minus": ("SELECT ?s ?v", "WINDOW :w { ?s :p ?v MINUS { ?s :q ?x } }", ""),
    "exists": ("SELECT ?s ?v", "WINDOW :w { ?s :p ?v FILTER EXISTS { ?z :q ?v } }", ""),
    "not exists": ("SELECT ?s", "WINDOW :w { ?s :p ?v FILTER NOT EXISTS { ?v :q ?x } }", ""),
    "a mark": ("SELECT ?s ?b", "WINDOW :w { ?s :p ?v BIND(EXISTS { ?s :q ?v } AS ?b) }", ""),
    "distinct": ("SELECT DISTINCT ?v", "WINDOW :w { ?s :p ?v }", ""),
    "concat": ("SELECT ?s (GROUP_CONCAT(?v) AS ?n)", "WINDOW :w { ?s :p ?v }", "GROUP BY ?s"),
    "groups": ("SELECT ?s (SUM(?v) AS ?n)", "WINDOW :w { ?s :p ?v }", "GROUP BY ?s"),
    "one group": ("SELECT (COUNT(*) AS ?n)", "WINDOW :w { ?s :p ?v }", ""),
    "order": ("SELECT ?v", "WINDOW :w { ?s :p ?v }", "ORDER BY DESC(?v) ?s LIMIT 2"),
    "two optionals": (
        "SELECT ?s ?x ?y",
        "WINDOW :w { ?s :p ?v OPTIONAL { ?s :q ?x } OPTIONAL { ?y :q ?v } }",
        "",
    ),
    "groups that join": (
        "SELECT ?s ?v ?n",
        "{ SELECT ?s (COUNT(?x) AS ?n) WHERE { WINDOW :w { ?s :q ?x } } GROUP BY ?s } "
        "WINDOW :w { ?s :p ?v }",
        "",
    ),
}
CLAUSES = (RANGE, Clause("range", 2000, to=1000), Clause("count", count=3))
BESIDE = (*CLAUSES, Clause("step", 3000, 1000), Clause("all"))
OPTIONS: tuple[dict[str, Any], ...] = ({}, {"empty_reports": True}, {"report": "periodic:700ms"})


def rows(most: int) -> st.SearchStrategy[list[Element]]:
    """Elements at some instants."""
    one = st.tuples(
        st.integers(0, 9), st.sampled_from("abc"), st.sampled_from("pq"), st.integers(1, 3)
    )
    return st.lists(one, min_size=3, max_size=most).map(
        lambda found: [at(500 * t, f":{s} :{p} {v}") for t, s, p, v in sorted(found)]
    )


@contextmanager
def at_most(pairs: int) -> Iterator[list[int]]:
    """Steps of so many pairs; how many were expanded at a time."""
    found: list[int] = []
    plain = Calendar.pairs

    def counted(self: Calendar, *args: Any, **more: Any) -> Any:
        expanded = plain(self, *args, **more)
        found.append(len(expanded[0]))
        return expanded

    with (
        patch("levada.runtime.task.report_batches.MOST_PAIRS", pairs),
        patch.object(Calendar, "pairs", counted),
    ):
        yield found


def asked(name: str, clause: Clause, output: str, **options: Any) -> CaseQuery:
    """One of the queries."""
    return query(
        *PARTS[name],
        windows={"w": clause},
        output=output,
        name=f"{output} {name}".replace(" ", "-"),
        **options,
    )


@pytest.mark.long
@settings(max_examples=EXAMPLES or 40, deadline=None, print_blob=True)
@given(
    st.lists(st.sampled_from(sorted(PARTS)), min_size=1, max_size=3, unique=True),
    st.sampled_from(CLAUSES),
    st.sampled_from(("RSTREAM", "ISTREAM", "DSTREAM")),
    rows(12),
    st.sampled_from((3, 1000)),
    st.sampled_from((1, 2)),
)
def test_steps_change_nothing(
    names: list[str],
    clause: Clause,
    output: str,
    elements: list[Element],
    epoch: int,
    partitions: int,
) -> None:
    queries = tuple(asked(name, clause, output) for name in names)
    case = Case({"http://e/s": tuple(elements)}, queries, 0, {})
    with at_most(4):
        assert (
            same_queries(case.expected(), run_case(case, epoch_rows=epoch, partitions=partitions))
            is None
        )


@pytest.mark.long
@settings(max_examples=EXAMPLES or 20, deadline=None, print_blob=True)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(sorted(PARTS)), st.sampled_from(BESIDE), st.sampled_from(OPTIONS)
        ),
        min_size=2,
        max_size=4,
        unique_by=lambda drawn: drawn[0],
    ),
    st.sampled_from(("RSTREAM", "ISTREAM", "DSTREAM")),
    rows(12),
    st.sampled_from((1, 4)),
)
def test_steps_of_one_query_change_nothing_for_others(
    drawn: list[tuple[str, Clause, dict[str, Any]]], output: str, elements: list[Element], most: int
) -> None:
    """Found: at the end of a stream steps went on where another window still had content, and one
    that never empties then had reports behind the last element.
    """
    queries = tuple(asked(name, clause, output, **options) for name, clause, options in drawn)
    case = Case({"http://e/s": tuple(elements)}, queries, 0, {})
    expected = run_case(case, partitions=1)
    with at_most(most):
        assert same_queries(expected, run_case(case, partitions=1)) is None


@pytest.mark.long
@pytest.mark.parametrize(
    "name", sorted(set(PARTS) - {"one group", "groups", "distinct", "groups that join", "order"})
)
def test_what_is_expanded_at_a_time_is_bounded(name: str) -> None:
    """A window of some 30 triples of each property at 600 reports: 18,000 pairs, by 500 and what
    one report has beyond.
    """
    elements = [at(100 * i, f":{'abc'[i % 3]} :{'pq'[i % 2]} {i % 7}") for i in range(300)]
    case = Case(
        {"http://e/s": tuple(elements)}, (asked(name, Clause("range", 6000), "ISTREAM"),), 0, {}
    )
    with at_most(10**9) as whole:
        expected = run_case(case, partitions=1)
    with at_most(500) as found:
        got = run_case(case, partitions=1)
    assert same_queries(expected, got) is None
    assert max(whole) > 5_000
    assert max(found) <= 500 + 60


@pytest.mark.long
@pytest.mark.parametrize("output", ["RSTREAM", "ISTREAM", "DSTREAM"])
@pytest.mark.parametrize("tail", ["GROUP BY ?s", "GROUP BY ?s ORDER BY ?n LIMIT 1"])
def test_texts_outlast_the_step_that_made_them_where_rows_show_them(output: str, tail: str) -> None:
    """Until the results are written, in later stages, and in the next epoch."""
    concat = texts("SELECT ?s (GROUP_CONCAT(?v) AS ?n)", output, tail)
    with at_most(10**9):
        expected = run_case(concat, partitions=1)
    for rows, partitions in ((1000, 1), (70, 2)):
        with at_most(500):
            got = run_case(concat, epoch_rows=rows, partitions=partitions)
        assert same_queries(expected, got) is None


def test_texts_that_no_row_shows_go_with_their_step() -> None:
    """240 reports make some 500 texts of groups, of which nothing is shown but their lengths."""
    concat = texts("SELECT ?s (STRLEN(GROUP_CONCAT(?v)) AS ?n)", "ISTREAM", "GROUP BY ?s")
    plain, seen = TermLookup.release, []

    def release(self: TermLookup, after: int, wanted: Any) -> None:
        before = sum(len(table.data) for table in self.tables)
        plain(self, after, wanted)
        seen.append((before, sum(len(table.data) for table in self.tables)))

    with at_most(500), patch.object(TermLookup, "release", release):
        got = run_case(concat, partitions=1)
    assert same_queries(concat.expected(), got) is None
    assert len(seen) > 10
    made = sum(before for before, _ in seen) - sum(after for _, after in seen[:-1])
    left = seen[-1][1] - seen[0][1]
    assert left < made / 4, "what is left are the texts of lengths"


def texts(head: str, output: str, tail: str) -> Case:
    """A query of texts over a window of five for each of eight subjects."""
    elements = [at(100 * i, f':{"abcdefgh"[i % 8]} :p "n{i * 7919 % 1000}"') for i in range(240)]
    window = {"w": Clause("range", 4000)}
    asked = query(head, "WINDOW :w { ?s :p ?v }", tail, windows=window, output=output)
    return Case({"http://e/s": tuple(elements)}, (asked,), 0, {})
