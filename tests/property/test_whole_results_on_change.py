"""Whole results of groups and DISTINCT over windows that report on every change, and what is built
on these: the one group without keys, conditions on groups, groups that others join, leave out, put
together or count again; the reference judges.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from levada.testing.compare import same_queries
from levada.testing.reference_model import Element
from support.example_counts import EXAMPLES, PATIENCE
from support.generators import Case, CaseQuery, Clause
from support.query_dsl import RANGE, TUMBLING, at, check, query, triples
from support.stepped_runs import run_case, run_in_two

pytestmark = pytest.mark.timeout(PATIENCE)

W, U = "WINDOW :w { ?s :p ?v }", "WINDOW :u { ?s :q ?u }"
GREATEST = f"{{ SELECT ?s (MAX(?v) AS ?m) {{ {W} }} GROUP BY ?s }}"
HOW_MANY = f"{{ SELECT (COUNT(*) AS ?n) {{ {W} }} }}"
SHAPES: dict[str, tuple[str, str, str]] = {
    "one group": ("SELECT (COUNT(*) AS ?n) (SUM(?v) AS ?t) (MIN(?v) AS ?l)", W, ""),
    "one group with a condition": ("SELECT (COUNT(?v) AS ?n)", W, "HAVING(COUNT(?v) != 1)"),
    "one group of constants": ("SELECT (COUNT(?x) AS ?n)", "VALUES ?x { 1 2 }", ""),
    "constants beside": ("SELECT ?s (COUNT(*) AS ?n)", f"{{ {W} }} UNION {{ VALUES ?s {{ :a }} }}",
                         "GROUP BY ?s"),
    "the group of groups": ("SELECT (SUM(?m) AS ?n) (COUNT(*) AS ?c)", GREATEST, ""),
    "groups of the group": ("SELECT ?n (COUNT(*) AS ?c)", HOW_MANY, "GROUP BY ?n"),
    "groups of distinct rows": ("SELECT ?v (COUNT(*) AS ?c)",
        f"{{ SELECT DISTINCT ?s ?v {{ {W} }} }}", "GROUP BY ?v"),
    "distinct": ("SELECT DISTINCT ?v", W, ""),
    "distinct groups": ("SELECT DISTINCT ?m", GREATEST, ""),
    "groups without their keys": ("SELECT (COUNT(*) AS ?n)", W, "GROUP BY ?s"),
    "in order": ("SELECT ?s ?m", GREATEST, "ORDER BY DESC(?m) ?s LIMIT 1"),
    "the first distinct ones": ("SELECT DISTINCT ?v", W, "ORDER BY ?v LIMIT 2"),
    "a join": ("SELECT ?s ?m ?u", f"{GREATEST} {U}", ""),
    "a join with the group": ("SELECT ?s ?n", f"{HOW_MANY} {U}", ""),
    "two groups": (
        "SELECT ?s ?m ?n", f"{GREATEST} {{ SELECT ?s (COUNT(*) AS ?n) {{ {U} }} GROUP BY ?s }}", "",
    ),
    "an optional group": ("SELECT ?s ?m ?u", f"{U} OPTIONAL {GREATEST}", ""),
    "an optional beside a group": ("SELECT ?s ?m ?u", f"{GREATEST} OPTIONAL {{ {U} }}", ""),
    "without a group": ("SELECT ?s ?u", f"{U} MINUS {GREATEST}", ""),
    "a group without": ("SELECT ?s ?m", f"{GREATEST} FILTER NOT EXISTS {{ {U} }}", ""),
    "a union of groups": ("SELECT ?s ?m", f"{GREATEST} UNION {HOW_MANY}", ""),
    "a union with rows": ("SELECT ?s ?m ?u", f"{{ {U} }} UNION {GREATEST}", ""),
    "names": ("SELECT ?n ?m", f"{GREATEST} ?s :name ?n", ""),
    "names that may lack": ("SELECT ?s ?n ?m", f"{GREATEST} OPTIONAL {{ ?s :name ?n }}", ""),
    "groups by name": ("SELECT ?n (SUM(?v) AS ?m)", f"{W} ?s :name ?n", "GROUP BY ?n"),
    "over both windows": ("SELECT (COUNT(*) AS ?n)", f"{W} {U}", ""),
    "texts": ("SELECT ?s (STRLEN(GROUP_CONCAT(STR(?v))) AS ?n)", W, "GROUP BY ?s"),
    "distinct rows counted": ("SELECT ?s (COUNT(DISTINCT *) AS ?n)", W, "GROUP BY ?s"),
    "is there any": ("ASK", f"{W} FILTER(?v > 1)", ""),
    "is there any of both": ("ASK", f"{W} {U} FILTER(?v > 1)", ""),
}  # fmt: skip
NAMES: dict[str | None, tuple[str, ...]] = {None: triples(':a :name "x" . :b :name "x"')}
CLAUSES = (
    RANGE,
    Clause("range", 2000, to=1000),
    Clause("step", 3000, 1000),
    Clause("count", count=3),
    Clause("count", count=4, step=2),
    Clause("session", 1500),
    Clause("all"),
)
POLICIES: tuple[dict[str, Any], ...] = (
    {"report": "change"},
    {"report": "change"},
    {"report": "change+nonempty"},
    {"report": "change", "empty_reports": True},
    {"report": "periodic:1s"},
)
OUTPUTS = ("RSTREAM", "RSTREAM", "ISTREAM", "DSTREAM")


def asked(name: str, output: str, w: Clause, u: Clause, options: dict[str, Any]) -> CaseQuery:
    """One of the queries; its window ``:u`` is there if it is read."""
    head, group, tail = SHAPES[name]
    windows = {"w": w, "u": u} if ":u" in group else {"w": w}
    called = f"{output} {name}".replace(" ", "-")
    if head == "ASK":  # of an empty report without a change it says a boolean all the same
        options = {key: value for key, value in options.items() if key != "empty_reports"}
    return query(head, group, tail, windows=windows, output=output, name=called, **options)


def elements(names: str = "abc") -> st.SearchStrategy[list[Element]]:
    """Elements with gaps in which all windows are empty, and some that match nothing."""
    one = st.tuples(
        st.integers(0, 16), st.sampled_from(names), st.sampled_from("pqr"), st.integers(1, 3)
    )
    return st.lists(one, min_size=2, max_size=9).map(
        lambda rows: [at(500 * t, f":{s} :{p} {v}") for t, s, p, v in sorted(rows)]
    )


@st.composite
def queries(draw: st.DrawFn) -> tuple[CaseQuery, ...]:
    """Some queries, each over windows of its own and with a policy of its own."""
    names = draw(st.lists(st.sampled_from(sorted(SHAPES)), min_size=1, max_size=4, unique=True))
    return tuple(
        asked(
            name,
            draw(st.sampled_from(OUTPUTS)),
            draw(st.sampled_from(CLAUSES)),
            draw(st.sampled_from((RANGE, TUMBLING, Clause("session", 1000)))),
            draw(st.sampled_from(POLICIES)),
        )
        for name in names
    )


@pytest.mark.long
@settings(
    max_examples=EXAMPLES or 60,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(queries(), elements(), st.sampled_from((1, 2, 1000)), st.sampled_from((1, 2)))
def test_whole_results_are_those_of_the_reference(
    some: tuple[CaseQuery, ...], stream: list[Element], rows: int, parts: int
) -> None:
    case = Case({"http://e/s": tuple(stream)}, some, 0, NAMES)
    assert same_queries(case.expected(), run_case(case, epoch_rows=rows, partitions=parts)) is None


@pytest.mark.parametrize("output", ["RSTREAM", "ISTREAM", "DSTREAM"])
def test_the_one_group_is_there_while_a_window_holds_anything(output: str) -> None:
    """Also where nothing matches; not between two stays, and not before the first."""
    stream = [at(1000, ":a :z 1"), at(2000, ":a :p 5"), at(9000, ":b :p 7"), at(9500, ":b :z 1")]
    one = query("SELECT (COUNT(?v) AS ?n) (MAX(?v) AS ?m)", W, windows={"w": RANGE}, output=output)
    (reports,) = check(one, s=stream).values()
    shown = {r.time: sum(r.solutions.values()) for r in reports}
    assert shown.get(1000, 0) == (0 if output == "DSTREAM" else 1)
    if output == "RSTREAM":
        assert [t for t, n in shown.items() if n] == [1000, 2000, 4000, 9000, 9500, 12_000]
    if output == "DSTREAM":
        assert [t for t, n in shown.items() if n] == [2000, 5000, 12_000, 12_500]


def test_a_query_that_comes_later_has_a_group_of_its_own() -> None:
    """It shares what the older one stands at, and begins with what follows."""
    stream = [at(1000 * i, f":{'ab'[i % 2]} :p {i}") for i in range(1, 9)]
    some = tuple(
        query(SHAPES[name][0], W, SHAPES[name][2], windows={"w": RANGE}, output=output, name=called)
        for name in ("one group", "distinct", "texts")
        for output in ("RSTREAM", "ISTREAM")
        for called in (
            f"{output}-{name}-1".replace(" ", "-"),
            f"{output}-{name}-2".replace(" ", "-"),
        )
    )
    case = Case({"http://e/s": tuple(stream)}, some, 0, {})
    late = {q.name for q in some if q.name.endswith("2")}
    got = run_in_two(case, {"http://e/s": 4}, late, epoch_rows=2)
    assert same_queries(case.expected(dict.fromkeys(late, 4000)), got) is None
