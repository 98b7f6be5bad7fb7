"""What is enough of the rows of a report at its one place changes no result: ungrouped aggregates,
ORDER BY with LIMIT and whole results, over random streams, with another group table and another
number of partitions at each epoch, stops and deaths between. Against the reference; where that
leaves open what comes first, against one partition, which sends all of its rows.
"""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.operators import local_combine
from levada.runtime.task import exchange, report_batches
from levada.testing.compare import same_queries
from levada.testing.reference_model import Element, ReferenceSql, Report, Value
from support.example_counts import PATIENCE, examples
from support.generators import Case, CaseQuery
from support.generators.cql import SCHEMAS
from support.generators.cql import VALUES as TYPES
from support.generators.elements import rows as tuple_rows
from support.generators.windows import cql_clauses, options
from support.heavy_key_cases import Lots, groups_of
from support.query_dsl import STREAM, TUMBLING, WINDOWS, at, query
from support.random_key_groups import MOST, by_lot
from support.stepped_runs import run_case, run_moved

pytestmark = pytest.mark.timeout(PATIENCE)
ROWS = "WINDOW :w { ?s :p ?v }"
PAIRS = "WINDOW :w { ?s :p ?v . ?s :q ?u }"
MAYBE = "WINDOW :w { ?s :p ?v OPTIONAL { ?s :q ?u } }"
EITHER = "WINDOW :w { { ?s :p ?v } UNION { ?s :q ?v } }"
LACKS = "WINDOW :w { ?s :q ?u OPTIONAL { ?s :p ?v FILTER(?v != 2) } }"
NOTHING = "WINDOW :w { ?s :none ?v }"
ABOVE = "WINDOW :w { ?s :p ?v } BIND(?v + 1 AS ?u)"
SUMMED = "{ SELECT ?s (SUM(?x) AS ?v) (MAX(?x) AS ?u) { WINDOW :w { ?s :p ?x } } GROUP BY ?s }"
GROUPS = (ROWS, PAIRS, PAIRS, MAYBE, EITHER, LACKS, NOTHING, ABOVE, SUMMED, SUMMED)
SUMS = (
    "(COUNT(*) AS ?n)",
    "(COUNT(DISTINCT ?v) AS ?n)",
    "(COUNT(DISTINCT ?s) AS ?n) (COUNT(*) AS ?m) (SUM(?v) AS ?t)",
    "(SUM(DISTINCT ?v) AS ?t) (MIN(?v) AS ?l) (MAX(?s) AS ?m)",
    "(COUNT(DISTINCT ?v) AS ?n) (COUNT(DISTINCT ?s) AS ?m)",
    "(COUNT(DISTINCT *) AS ?n)",
    "(SUM(?v) AS ?t) (COUNT(?v) AS ?n)",
    "(MIN(?v) AS ?l) (MAX(?v) AS ?m) (COUNT(*) AS ?n)",
    "(AVG(?v) AS ?a) (COUNT(?s) AS ?n)",
    "(AVG(?u) AS ?a) (SUM(?u) AS ?n)",
    "(AVG(DISTINCT ?v) AS ?a) (SUM(DISTINCT ?v) AS ?n)",
    "(MAX(DISTINCT ?v) AS ?m) (COUNT(DISTINCT ?v) AS ?n)",
    "(SUM(?v * 2) AS ?t) (MAX(?v + ?u) AS ?m)",
)
MANY = (
    *SUMS,
    "(GROUP_CONCAT(STR(?v)) AS ?c)",
    "(GROUP_CONCAT(DISTINCT STR(?v); SEPARATOR=',') AS ?c) (COUNT(*) AS ?n)",
    "(GROUP_CONCAT(DISTINCT ?s) AS ?c) (COUNT(DISTINCT ?s) AS ?n)",
    "(SAMPLE(?v) AS ?x) (COUNT(*) AS ?n)",
    "(SAMPLE(?u) AS ?x) (AVG(?v) AS ?a)",
)
HAVING = ("", "", "", "HAVING(COUNT(*) > 2)", "HAVING(COUNT(*) = 0 || SUM(?v) > 5)")
ORDERS = ("?v ?s STR(?v)", "DESC(?s) STR(?v)", "DESC(?v) DESC(?s) DESC(STR(?v))")
TIES = (*ORDERS, "?s", "DESC(?v)", "?none", "(?v + 1) ?s")
NUMBERS = ("1", "2", "3", "10", "2.5", "-0.25", "7.0e0", "-3")
VALUES = (
    "1",
    '"x"',
    "12345678901234567890",
    "1.0",
    '"10"',
    "10",
    ":a",
    '"2026-01-01"^^xsd:date',
    *NUMBERS,
)
SIZES = (  # whose sum hangs on the order in which one adds, or that have none
    "0.1e0",
    "0.2e0",
    "1e16",
    "-1e16",
    "1e-9",
    '"0.1"^^xsd:float',
    "3",
    "0.1",
    "123456789012345678901234567890.123456789012345678901234567",
    "-0.0000000000000000000000000000001",
    "1e308",
    '"NaN"^^xsd:double',
    '"INF"^^xsd:double',
    '"-INF"^^xsd:float',
    '"ten"^^xsd:integer',
)
outputs = st.sampled_from(("RSTREAM", "ISTREAM", "DSTREAM"))


@st.composite
def streams(draw: st.DrawFn, values: tuple[str, ...]) -> tuple[Element, ...]:
    """Elements of some triples, some at one time, about few subjects, with few of these values or
    all.
    """
    some = st.sampled_from(values[: draw(st.sampled_from((2, 4, len(values))))])
    times = sorted(draw(st.lists(st.integers(0, 12), min_size=4, max_size=25)))
    triple = st.builds(
        ":{} :{} {}".format, st.sampled_from("abcdefg"), st.sampled_from("ppq"), some
    )
    return tuple(
        at(1000 + 500 * t, " . ".join(draw(st.lists(triple, min_size=1, max_size=3))))
        for t in times
    )


@st.composite
def one_place(
    draw: st.DrawFn, name: str, sums: tuple[str, ...], orders: tuple[str, ...]
) -> CaseQuery:  # fmt: skip
    """A query all of whose solutions come to one place, or the solutions of a part of it."""
    window, output = {"w": draw(st.sampled_from(WINDOWS))}, draw(outputs)
    group = draw(st.sampled_from(GROUPS))
    if draw(st.booleans()):
        head, tail = draw(st.sampled_from(sums)), draw(st.sampled_from(HAVING))
    else:
        head = "DISTINCT ?s ?v" if draw(st.booleans()) else "?s ?v"
        offset = draw(st.sampled_from(("", " OFFSET 2")))
        tail = f"ORDER BY {draw(st.sampled_from(orders))} LIMIT {draw(st.integers(0, 4))}{offset}"
    head = f"SELECT {head}"
    if draw(st.integers(0, 3)) == 3:  # within the query
        group = f"{{ {head} WHERE {{ {group} }} {tail} }} {draw(st.sampled_from(BESIDE))}"
        head, tail = draw(st.sampled_from(("SELECT *", "SELECT (COUNT(*) AS ?rows)"))), ""
    empty: dict[str, Any] = {"empty_reports": True} if draw(st.booleans()) else {}
    return query(head, group, tail, windows=window, output=output, name=name, **empty)


BESIDE = ("", "WINDOW :w { ?else :q ?other }")


@st.composite
def without_group_by(draw: st.DrawFn, name: str) -> CaseQuery:
    """A CQL aggregate without Group By, of one stream, of two that are joined, or of a relation."""
    left, right = draw(st.sampled_from("ABC")), draw(st.sampled_from(("", "", "A", "B", "C")))
    column = next(c for c, kind in SCHEMAS[left].items() if c != "k" and kind in KINDS)
    used = {"l": (left, draw(cql_clauses))} | ({"r": (right, draw(cql_clauses))} if right else {})
    own = tuple(clause for _, clause in used.values())
    chosen, output = (
        draw(options(own)),
        draw(st.sampled_from(("", "Istream", "Dstream", "Rstream"))),
    )
    some = draw(st.lists(st.sampled_from(AGGREGATES), min_size=1, max_size=4, unique=True))
    shown = ", ".join(f"{a.format(f'l.{column}')} As a{i}" for i, a in enumerate(some))
    tables = ", ".join(f"{stream} {clause.cql} As {a}" for a, (stream, clause) in used.items())
    where = " Where l.k = r.k" if right else draw(st.sampled_from(("", " Where l.k > 2")))
    text = f"Select {shown} From {tables}{where}"
    over = {a: (stream, clause.window(chosen)) for a, (stream, clause) in used.items()}
    asked = ReferenceSql(text, over, {s: SCHEMAS[s] for s, _ in over.values()}, {}, "RELATION")
    return CaseQuery(name, f"{output}({text})" if output else text, "cql", chosen, asked)


KINDS = ("integer", "double")
AGGREGATES = (
    "Count(*)", "Sum({})", "Avg({})", "Min({})", "Max({})",
    "Count(Distinct {})", "Sum(Distinct {})", "Count(Distinct l.k)", "Avg(l.k)",
)  # fmt: skip


@st.composite
def tuples(draw: st.DrawFn) -> Case:
    """Three such queries, and their rows."""
    queries = tuple(draw(without_group_by(f"q{i}")) for i in range(3))
    values: dict[str, st.SearchStrategy[Value]] = {**TYPES, "double": st.sampled_from(DOUBLES)}
    names = sorted({stream for q in queries for stream, _ in q.reference.windows.values()})
    streams = {
        name: draw(tuple_rows(st.tuples(*(values[k] for k in SCHEMAS[name].values())), **PLAIN))
        for name in names
    }
    return Case(streams, queries, 0, {}, {name: SCHEMAS[name] for name in names})


DOUBLES = (1.0, 0.1, 0.2, 2.5, 1e16, -1e16, 1e-9)


PLAIN: dict[str, Any] = {"lateness": 0, "base": 1000, "gap": False}
cuts = st.sampled_from((6, 50))  # elements in an epoch
lots = st.integers(0, 2**32 - 1)
starts = st.lists(
    st.tuples(st.integers(2, 9), st.none() | st.integers(1, MOST)), min_size=1, max_size=2
)
deaths = st.dictionaries(st.integers(1, 8), st.booleans(), max_size=1)
shares = st.sampled_from((local_combine.FEWER, 1000.0))
pairs = st.sampled_from((report_batches.MOST_PAIRS, 3))
runs = st.tuples(lots, cuts, starts, deaths, shares, pairs, st.booleans())
Run = tuple[int, int, list[tuple[int, int | None]], dict[int, bool], float, int, bool]


def asked(
    sums: tuple[str, ...], orders: tuple[str, ...]
) -> st.SearchStrategy[tuple[CaseQuery, ...]]:  # fmt: skip
    """Four queries."""
    return st.tuples(*(one_place(f"q{i}", sums, orders) for i in range(4)))


def moved(case: Case, run: Run) -> dict[str, list[Report]]:
    """The reports with all that moves; ``heavy``: groups are divided, too."""
    lot, rows, stops, dies, share, most, heavy = run
    deal = Lots(lot, groups_of(case)).deal if heavy else by_lot(lot)
    with (
        patch.object(local_combine, "FEWER", share),
        patch.object(exchange, "FEWER", share),
        patch.object(report_batches, "MOST_PAIRS", most),
    ):
        return run_moved(case, deal, stops, dies, epoch_rows=rows)


@examples(6)
@given(streams(NUMBERS), asked(SUMS, ORDERS), runs)
def test_partial_results_are_whole(
    elements: tuple[Element, ...], queries: tuple[CaseQuery, ...], run: Run
) -> None:
    case = Case({STREAM: elements}, queries)
    assert same_queries(case.expected(), moved(case, run)) is None


@examples(6)
@given(streams(VALUES) | streams(SIZES), asked(MANY, TIES), runs)
def test_all_sorts_of_values_are_as_of_one_partition(
    elements: tuple[Element, ...], queries: tuple[CaseQuery, ...], run: Run
) -> None:
    case = Case({STREAM: elements}, queries)
    assert same_queries(run_case(case, partitions=1), moved(case, run)) is None


@examples(6)
@given(tuples(), runs)
def test_rows_of_tuples_are_as_of_one_partition(case: Case, run: Run) -> None:
    assert same_queries(run_case(case, partitions=1), moved(case, run)) is None


def test_partials_of_several_tasks_in_one_frame_are_one_row() -> None:
    """Found: a report's partials, put together as one frame by steps, were taken for added up."""
    pair = ":a :p 1"
    elements = (
        at(1000, f":b :p 1 . {pair}"), at(1000, pair), at(1500, f"{pair} . {pair}"),
        at(3500, f"{pair} . :e :p 1 . :b :p 1"), at(6500, f"{pair} . {pair}"),
    )  # fmt: skip
    inner = f"SELECT (AVG(DISTINCT ?v) AS ?a) (SUM(DISTINCT ?v) AS ?n) WHERE {{ {ROWS} }}"
    inner = f"{{ {inner} }} {BESIDE[1]}"
    tail = "ORDER BY ?v ?s LIMIT 0"
    asked = (
        ("DISTINCT ?s ?v", ROWS, tail, TUMBLING), ("?s ?v", EITHER, tail, TUMBLING),
        ("(COUNT(*) AS ?rows)", inner, "", WINDOWS[1]),
        ("(MIN(?v) AS ?l) (MAX(?v) AS ?m) (COUNT(*) AS ?n)", MAYBE, "", TUMBLING),
    )  # fmt: skip
    queries = tuple(
        query(
            f"SELECT {head}",
            group,
            tail,
            windows={"w": window},
            name=f"q{i}",
            output="DSTREAM" if i == 1 else "RSTREAM",
        )
        for i, (head, group, tail, window) in enumerate(asked)
    )
    case = Case({STREAM: elements}, queries)
    run: Run = (4057382, 50, [(8, None), (6, None)], {}, 1000.0, 3, True)
    assert same_queries(run_case(case, partitions=1), moved(case, run)) is None
