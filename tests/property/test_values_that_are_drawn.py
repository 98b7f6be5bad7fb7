"""NOW, RAND, UUID and BNODE: one value in each solution of each report, whatever the cut, the
partitions and the other queries.
"""

from __future__ import annotations

import pytest

from levada.testing.compare import same
from support.generators import Case, Clause
from support.query_dsl import RANGE, STREAM, TUMBLING, at, query
from support.stepped_runs import run_case

ELEMENTS = (
    at(1000, ":a :p 1 ; :q :b . :b :p 2"),
    at(1500, ":a :p 3"),
    at(1500, ":b :p 3"),
    at(5000, ":a :p 1"),
)
BODY = "WINDOW :w { ?s :p ?o }"
DRAWING = {
    "two numbers": ("SELECT ?s ?o (RAND() AS ?x) (RAND() AS ?y)", BODY, ""),
    "of solutions that look alike": ("SELECT ?s (UUID() AS ?x) (STRUUID() AS ?y)", BODY, ""),
    "blank nodes": ("SELECT ?s (BNODE() AS ?x) (BNODE('k') AS ?y)", BODY, ""),
    "a filter": ("SELECT ?s ?o", f"{BODY} FILTER(RAND() < 0.5)", ""),
    "behind a filter": ("SELECT ?s ?x", f"{BODY} FILTER(RAND() < 0.7) BIND(RAND() AS ?x)", ""),
    "summed": ("SELECT (SUM(RAND()) AS ?t)", BODY, ""),
    "in order": ("SELECT ?s ?o", BODY, "ORDER BY RAND() LIMIT 2"),
    "of equal solutions": (
        "SELECT ?s ?x",
        f"{{ {BODY} }} UNION {{ WINDOW :w {{ ?s ?p ?o }} }} BIND(RAND() AS ?x)",
        "",
    ),
    "of a projection": (
        "SELECT ?s ?x",
        f"{{ SELECT ?s WHERE {{ {BODY} }} }} BIND(RAND() AS ?x)",
        "",
    ),
    "under OPTIONAL": (
        "SELECT *",
        f"{BODY} OPTIONAL {{ WINDOW :w {{ ?q ?z ?o }} FILTER(RAND() < 0.5) }}",
        "",
    ),
    "of groups": ("SELECT ?s (COUNT(*) AS ?n)", BODY, "GROUP BY ?s HAVING(RAND() < 0.6)"),
}


@pytest.mark.long
@pytest.mark.parametrize("clause", [TUMBLING, RANGE, Clause("count", count=3)], ids=str)
@pytest.mark.parametrize("name", DRAWING)
def test_values_are_the_same_in_any_run(name: str, clause: Clause) -> None:
    head, group, tail = DRAWING[name]
    asked = query(head, group, tail, windows={"w": clause})
    beside = query("SELECT (RAND() AS ?z) ?o ?s", BODY, windows={"w": clause}, name="beside")
    case, both = (Case({STREAM: ELEMENTS}, queries) for queries in ((asked,), (beside, asked)))
    whole = run_case(case, epoch_rows=1000, partitions=1)["q"]
    assert same(whole, run_case(case, epoch_rows=1, partitions=3)["q"]) is None
    assert same(whole, run_case(both, epoch_rows=2, partitions=2)["q"]) is None


def drawn(head: str, group: str = BODY) -> list[dict[str, str]]:
    """The solutions of the first report."""
    found = run_case(Case({STREAM: ELEMENTS}, (query(head, group),)))["q"][0]
    return [dict(s) for s in found.solutions.elements()]


def test_calls_and_solutions_have_values_of_their_own() -> None:
    rows = drawn("SELECT (RAND() AS ?x) (RAND() AS ?y) (UUID() AS ?u)")
    assert len(rows) == 4
    assert len({row[v] for row in rows for v in "xyu"}) == 12


def test_equal_solutions_have_values_of_their_own() -> None:
    rows = drawn("SELECT ?x", f"{{ SELECT (1 AS ?one) WHERE {{ {BODY} }} }} BIND(RAND() AS ?x)")
    assert len({row["x"] for row in rows}) == 4


def test_a_label_is_one_blank_node_in_a_solution() -> None:
    rows = drawn("SELECT (BNODE('k') AS ?x) (BNODE('k') AS ?y) (BNODE('l') AS ?z)")
    assert all(row["x"] == row["y"] != row["z"] for row in rows)
    assert len({row["x"] for row in rows}) == 4


def test_queries_draw_apart() -> None:
    first, second = (query("SELECT (UUID() AS ?x)", BODY, name=n) for n in ("a", "b"))
    found = run_case(Case({STREAM: ELEMENTS}, (first, second)))
    mine, other = ({dict(s)["x"] for s in found[n][0].solutions} for n in ("a", "b"))
    assert not mine & other
