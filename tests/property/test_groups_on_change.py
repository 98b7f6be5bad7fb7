"""Groups and DISTINCT over RDF windows that report on change, whose results are kept by changes:
the reference judges.

Values are of all sorts: integers, decimals, floats and doubles beside each other, numbers that no
column holds, NaN and infinities, texts, IRIs, and rows without a value. Sums that the reference
cannot hold are those of ``test_numbers_of_any_size``.
"""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.testing.compare import same_queries
from levada.testing.reference_model import Element, Report, Solution
from support.example_counts import PATIENCE, examples
from support.generators import Case, CaseQuery, Clause
from support.query_dsl import RANGE, at, check, query
from support.stepped_runs import run_case

pytestmark = pytest.mark.timeout(PATIENCE)

# No two are equal in value: of such MIN and MAX may take either, and the reference need not take
# ours. A float holds all but the largest, and their sums, exactly: the judge adds in an order of
# its own, and rounds to a float as long as it has met no double.
NUMBERS = (
    "1",
    "2",
    "-3",
    "2.5",
    "-0.0625",
    "1.25e0",
    "2.5e300",
    '"1.5"^^xsd:float',
    '"0.125"^^xsd:float',
)
DIFFICULT = (
    "12345678901234567890.5",
    '"NaN"^^xsd:double',
    '"INF"^^xsd:double',
    '"-INF"^^xsd:float',
)
# no instant: beside other kinds the judge says the greater one by their texts
OTHERS = ('"x"', '"y"@en', ":a", '"true"^^xsd:boolean')
PLAIN = ("SUM(?v)", "AVG(?v)", "SUM(DISTINCT ?v)", "COUNT(DISTINCT ?v)")
AGGREGATES = (
    "COUNT(?v)", "COUNT(*)", "SUM(?v)", "AVG(?v)", "MIN(?v)", "MAX(?v)", "COUNT(DISTINCT ?v)",
    "SUM(DISTINCT ?v)",
    "AVG(DISTINCT ?v)", "MAX(DISTINCT ?v)", "SUM(?v * 2)", "MAX(IF(ISIRI(?v), ?v, ?s))",
    "GROUP_CONCAT(IF(LANG(?v) = '', ?v, ?s))",  # the judge keeps a language that all share
)  # fmt: skip
GROUPS = (
    "?s :p ?v",
    "?s :p ?v . ?s :q ?z",
    "{ ?s :p ?v } UNION { ?s :q ?v }",
    "{ ?s :p ?v } UNION { ?s :q ?z }",
    "?s :p ?v FILTER(ISNUMERIC(?v) && ?v < 3)",
    "?s ?z ?v BIND(?v + 1 AS ?y)",
    "VALUES ?s { :a :b } ?s :p ?v",
)
TAILS = ("GROUP BY ?s", "GROUP BY ?s HAVING(COUNT(?v) > 1)", "GROUP BY ?s ?z")
CLAUSES = (
    RANGE,
    Clause("range", 2000, to=1000),
    Clause("count", count=3),
    Clause("count", count=4, step=2),
)


def _elements(values: tuple[str, ...]) -> st.SearchStrategy[list[Element]]:
    one = st.tuples(
        st.integers(0, 9), st.sampled_from("abc"), st.sampled_from("pq"), st.sampled_from(values)
    )
    return st.lists(one, min_size=3, max_size=9).map(
        lambda rows: [at(500 * t, f":{s} :{p} {v}") for t, s, p, v in sorted(rows)]
    )


streams = st.sampled_from((NUMBERS, NUMBERS + OTHERS)).flatmap(_elements)
outputs = st.sampled_from(("ISTREAM", "ISTREAM", "DSTREAM", "RSTREAM"))
heads = st.sampled_from(
    ("SELECT ?s ({} AS ?n)", "SELECT ({} AS ?n)", "SELECT ?s ({} AS ?n) (COUNT(?v) + 1 AS ?m)")
)


@st.composite
def asked(draw: st.DrawFn) -> list[CaseQuery]:
    """Three queries over windows of their own."""
    found = []
    for i in range(3):
        head = draw(heads).format(draw(st.sampled_from(AGGREGATES)))
        group, tail = (
            f"WINDOW :w {{ {draw(st.sampled_from(GROUPS))} }}",
            draw(st.sampled_from(TAILS)),
        )
        windows = {"w": draw(st.sampled_from(CLAUSES))}
        found.append(query(head, group, tail, windows=windows, output=draw(outputs), name=f"q{i}"))
    return found


@examples(60)
@given(asked(), streams, st.sampled_from((1, 2, 1000)), st.sampled_from((1, 2)))
def test_groups_are_those_of_the_reference(
    queries: list[CaseQuery], elements: list[Element], rows: int, parts: int
) -> None:
    case = Case({"http://e/s": tuple(elements)}, tuple(queries), 0, {})
    assert same_queries(case.expected(), run_case(case, epoch_rows=rows, partitions=parts)) is None


@examples(20)
@given(
    st.sampled_from(PLAIN),
    st.sampled_from(CLAUSES),
    _elements(NUMBERS[:7] + DIFFICULT),
    st.sampled_from((1, 2, 1000)),
)
def test_sums_of_numbers_that_no_column_holds(
    aggregate: str, clause: Clause, elements: list[Element], rows: int
) -> None:
    queries = tuple(
        query(
            f"SELECT ?s ({aggregate} AS ?n)",
            "WINDOW :w { ?s :p ?v }",
            "GROUP BY ?s",
            windows={"w": clause},
            output=o,
            name=o,
        )
        for o in ("RSTREAM", "ISTREAM", "DSTREAM")
    )
    case = Case({"http://e/s": tuple(elements)}, queries, 0, {})
    assert same_queries(case.expected(), run_case(case, epoch_rows=rows, partitions=2)) is None


@examples(15)
@given(st.sampled_from(GROUPS), streams, st.sampled_from((1, 2, 1000)))
def test_distinct_rows_and_two_windows_are_those_of_the_reference(
    group: str, elements: list[Element], rows: int
) -> None:
    wide = {"w": RANGE, "u": Clause("range", 1500)}
    beside = {"w": RANGE, "u": Clause("step", 2000, 1000)}
    joined = f"WINDOW :w {{ {group} }} WINDOW :u {{ ?s :p ?u }}"
    inner = f"{{ SELECT ?s (MAX(?v) AS ?m) WHERE {{ WINDOW :w {{ {group} }} }} GROUP BY ?s }}"
    queries = (
        query(
            "SELECT DISTINCT ?v",
            f"WINDOW :w {{ {group} }}",
            windows={"w": RANGE},
            output="ISTREAM",
            name="q0",
        ),
        query("SELECT DISTINCT ?s", joined, windows=wide, output="DSTREAM", name="q1"),
        query(
            "SELECT ?s (SUM(?u) AS ?n)",
            joined,
            "GROUP BY ?s",
            windows=beside,
            output="ISTREAM",
            name="q2",
        ),
        query(
            "SELECT ?m (COUNT(?s) AS ?n)",
            inner,
            "GROUP BY ?m",
            windows={"w": RANGE},
            output="DSTREAM",
            name="q3",
        ),
    )
    case = Case({"http://e/s": tuple(elements)}, queries, 0, {})
    assert same_queries(case.expected(), run_case(case, epoch_rows=rows, partitions=2)) is None


@examples(15)
@given(streams, st.sampled_from(CLAUSES), st.sampled_from((1, 2, 1000)))
def test_a_sample_that_comes_and_goes_is_the_one_that_stands(
    elements: list[Element], clause: Clause, rows: int
) -> None:
    """The reference takes any sample; what began and did not end is what the whole result has."""
    text, tail = "SELECT ?s (SAMPLE(?v) AS ?n)", "GROUP BY ?s"
    queries = tuple(
        query(
            text, "WINDOW :w { ?s :p ?v }", tail, windows={"w": clause}, output=output, name=output
        )
        for output in ("RSTREAM", "ISTREAM", "DSTREAM")
    )
    case = Case({"http://e/s": tuple(elements)}, queries, 0, {})
    got = run_case(case, epoch_rows=rows, partitions=2)
    lifetime: Counter[Solution] = Counter()
    whole = {r.time: r.solutions for r in got["RSTREAM"]}
    come, gone = ({r.time: r.solutions for r in got[name]} for name in ("ISTREAM", "DSTREAM"))
    for time in sorted({*whole, *come, *gone}):
        lifetime = lifetime + come.get(time, Counter()) - gone.get(time, Counter())
        assert lifetime == whole.get(time, Counter()), f"at {time}"


def test_an_error_leaves_the_group_without_a_value_until_it_is_gone() -> None:
    """A text among numbers: SUM, AVG have no value; COUNT, MIN, MAX have theirs."""
    elements = (
        at(1000, ":a :p 1, 2"),
        at(2000, ':a :p "x"'),
        at(2500, ":b :p 0.5, 1e0"),
        at(6000, ":a :p 3"),
    )
    head = (
        "SELECT ?s (SUM(?v) AS ?n) (AVG(?v) AS ?a) (COUNT(?v) AS ?c) (MIN(?v) AS ?l) "
        "(MAX(?v) AS ?g)"
    )
    for output in ("ISTREAM", "DSTREAM"):
        asked = query(
            head, "WINDOW :w { ?s :p ?v }", "GROUP BY ?s", windows={"w": RANGE}, output=output
        )
        reports: list[Report] = check(asked, s=elements)["q"]
        assert any("n" not in dict(solution) for r in reports for solution in r.solutions)


@pytest.mark.long
@pytest.mark.filterwarnings("error")
def test_values_that_have_left_are_still_in_order() -> None:
    """Pieces of state are put together long after; without their texts the values that have gone
    were ranked as they fell.
    """
    numbers = [(i * i * 7919) % 300 for i in range(500)]
    elements = [at(100 * i, f':{"abc"[i % 3]} :p "n{n}"') for i, n in enumerate(numbers)]
    head, group = (
        "SELECT ?s (MIN(?v) AS ?l) (MAX(?v) AS ?g) (SAMPLE(?v) AS ?n)",
        "WINDOW :w { ?s :p ?v }",
    )
    asked = query(head, group, "GROUP BY ?s", windows={"w": RANGE}, output="ISTREAM")
    case = Case({"http://e/s": tuple(elements)}, (asked,), 0, {})
    once, often = (run_case(case, epoch_rows=rows) for rows in (1000, 10))
    assert same_queries(once, often) is None
