"""Parts of a query that static data alone answer: evaluated once, and the same as at every report;
the reference judges.
"""

from __future__ import annotations

import pytest

from levada.testing.compare import same_queries
from support.generators import Case, CaseQuery
from support.query_dsl import STREAM, WINDOWS, at, check, query, triples
from support.stepped_runs import run_replaced

ELEMENTS = (
    at(1000, ":a :p :b ; :q :c . :b :q :a . :c :p :a, :b"),
    at(1500, ":c :q :b . :b :p :d . :a :p :c"),
    at(1500, ":a :p :b . :d :p :zzz"),
    at(5000, ":d :p :a ; :q :d . :a :p :b"),
    at(9000, ":a :q :d . :zzz :p :b"),
)
STATIC = {
    None: ":a :k :b . :b :k :c . :d :n 'x', 'y' . :b :n 3 . :a :n 1, 2 . :c :n 7 . :c :k :d",
    "http://e/g": ":a :m 5 . :d :m 2",
}
P = "WINDOW :w { ?x :p ?y }"

PARTS = {
    "GROUP BY": (
        "SELECT *",
        f"{P} {{ SELECT ?y (COUNT(*) AS ?n) (MAX(?v) AS ?m) WHERE {{ ?y :n ?v }} GROUP BY ?y }}",
        "",
    ),
    "without GROUP BY": (
        "SELECT *",
        f"{P} {{ SELECT (COUNT(*) AS ?n) WHERE {{ ?z :n ?v }} }} FILTER(?n > 2)",
        "",
    ),
    "without GROUP BY, of nothing": (
        "SELECT *",
        f"{P} {{ SELECT (COUNT(*) AS ?n) WHERE {{ ?z :none ?v }} }}",
        "",
    ),
    "HAVING and CONCAT": (
        "SELECT *",
        f"{P} {{ SELECT ?y (CONCAT('n', STR(COUNT(*))) AS ?t) (GROUP_CONCAT(STR(?v)) AS ?c) "
        "WHERE { ?y :n ?v } GROUP BY ?y HAVING (COUNT(*) = 1) }",
        "",
    ),
    "LIMIT": (
        "SELECT *",
        f"{P} {{ SELECT ?y ?v WHERE {{ ?y :n ?v }} ORDER BY DESC(?v) ?y LIMIT 3 }}",
        "",
    ),
    "DISTINCT": ("SELECT *", f"{P} {{ SELECT DISTINCT ?y WHERE {{ ?y :n ?v }} }}", ""),
    "OPTIONAL within": (
        "SELECT *",
        f"{P} {{ SELECT ?y ?z ?v WHERE {{ ?y :n ?v OPTIONAL {{ ?y :k ?z }} }} }}",
        "",
    ),
    "MINUS within": (
        "SELECT *",
        f"{P} {{ SELECT ?y WHERE {{ ?y :n ?v MINUS {{ ?y :k ?z }} }} }}",
        "",
    ),
    "grouped above": (
        "SELECT ?n (COUNT(*) AS ?c)",
        f"{P} {{ SELECT ?y (COUNT(*) AS ?n) WHERE {{ ?y :n ?v }} GROUP BY ?y }}",
        "GROUP BY ?n",
    ),
    "two of them": (
        "SELECT *",
        f"{P} {{ SELECT ?y (COUNT(*) AS ?n) WHERE {{ ?y :n ?v }} GROUP BY ?y }} {{ "
        f"SELECT DISTINCT ?x WHERE {{ ?x :k ?k }} }}",
        "",
    ),
    "a join of report rows": (
        "SELECT *",
        f"{{ SELECT ?y (COUNT(*) AS ?n) WHERE {{ {P} }} "
        f"GROUP BY ?y }} ?y :n ?v . ?y :k ?z {{ SELECT DISTINCT ?z WHERE {{ ?z :n ?u }} }}",
        "",
    ),
    "a join of report rows without a key": (
        "SELECT *",
        f"{{ SELECT ?y (COUNT(*) AS ?n) WHERE {{ {P} }} GROUP BY ?y }} :a :n ?v",
        "",
    ),
    "OPTIONAL": ("SELECT *", f"{P} OPTIONAL {{ ?y :n ?v }}", ""),
    "OPTIONAL with a condition": (
        "SELECT *",
        f"{P} OPTIONAL {{ ?y :n ?v FILTER(?v > 2 && ?x != :c) }}",
        "",
    ),
    "OPTIONAL twice": ("SELECT *", f"{P} OPTIONAL {{ ?y :n ?v }} OPTIONAL {{ ?x :n ?v }}", ""),
    "OPTIONAL of a group": (
        "SELECT *",
        f"{P} OPTIONAL {{ SELECT ?y (COUNT(*) AS ?n) WHERE {{ ?y :n ?v }} GROUP BY ?y }}",
        "",
    ),
    "OPTIONAL of a named graph, grouped": (
        "SELECT ?x (SUM(?v) AS ?s)",
        f"{P} OPTIONAL {{ GRAPH <http://e/g> {{ ?y :m ?v }} }}",
        "GROUP BY ?x",
    ),
    "OPTIONAL of VALUES": (
        "SELECT *",
        f"{P} OPTIONAL {{ VALUES (?y ?z) {{ (:b 1) (:b 2) (UNDEF 3) }} }}",
        "",
    ),
    "OPTIONAL without a key": ("SELECT *", f"{P} OPTIONAL {{ :a :n ?v }}", ""),
    "OPTIONAL, then a window": (
        "SELECT *",
        f"{P} OPTIONAL {{ ?y :k ?z }} WINDOW :w {{ ?z :q ?u }}",
        "",
    ),
    "MINUS": ("SELECT *", f"{P} MINUS {{ ?y :n ?v }}", ""),
    "MINUS of an OPTIONAL's variable": (
        "SELECT *",
        f"{P} OPTIONAL {{ ?y :k ?z }} MINUS {{ ?z :n ?v }}",
        "",
    ),
    "MINUS of a group": (
        "SELECT *",
        f"{P} MINUS {{ SELECT ?y WHERE {{ ?y :n ?v }} GROUP BY ?y HAVING (COUNT(*) > 1) }}",
        "",
    ),
    "NOT EXISTS": ("SELECT *", f"{P} FILTER NOT EXISTS {{ ?y :n ?v }}", ""),
    "NOT EXISTS with a condition": (
        "SELECT *",
        f"{P} FILTER NOT EXISTS {{ ?z :k ?k FILTER(?z = ?y && ?k != ?x) }}",
        "",
    ),
    "EXISTS as a value": ("SELECT *", f"{P} FILTER(EXISTS {{ ?y :n ?v }} || ?x = :c)", ""),
    "EXISTS of a star": (
        "SELECT *",
        "WINDOW :w { ?x :p ?y ; :q ?z } FILTER EXISTS { ?y :n ?v ; :k ?k }",
        "",
    ),
    "NOW() in the condition": (
        "SELECT *",
        f"{P} OPTIONAL {{ ?y :n ?v FILTER(NOW() > '1970-01-01T00:00:03Z'^^xsd:dateTime) }}",
        "",
    ),
    "in a union": (
        "SELECT *",
        f"{{ {P} MINUS {{ ?y :n 1 }} }} UNION {{ SELECT ?y (MIN(?v) AS ?x) "
        f"WHERE {{ ?y :n ?v }} GROUP BY ?y }}",
        "",
    ),
    "all of it static": (
        "SELECT ?y (COUNT(*) AS ?n)",
        "?y :n ?v",
        "GROUP BY ?y ORDER BY DESC(?n) LIMIT 2",
    ),
}


LATE = "http://e/t"
REPLACED = (
    (
        4,
        {
            None: ":a :k :b . :b :k :c . :d :n 'x' . :b :n 3, 4 . :c :n 7 . :zzz :n 2",
            "http://e/g": ":a :m 5",
        },
    ),
    (5, {None: ":a :k :b", "http://e/g": ":b :m 1"}),
)
AGAIN = (
    "GROUP BY",
    "without GROUP BY",
    "HAVING and CONCAT",
    "LIMIT",
    "OPTIONAL within",
    "OPTIONAL of a group",
    "MINUS of a group",
)


def asked(head: str, group: str, tail: str) -> list[CaseQuery]:
    """The query over windows of four kinds, and as ISTREAM over the first."""
    kinds = [(f"R{i}", clause, "RSTREAM") for i, clause in enumerate(WINDOWS)] + [
        ("I", WINDOWS[0], "ISTREAM")
    ]
    return [
        query(head, group, tail, windows={"w": c}, output=output, name=name)
        for name, c, output in kinds
    ]


@pytest.mark.long
@pytest.mark.parametrize("name", PARTS)
def test_a_static_part_is_as_at_every_report(name: str) -> None:
    found = check(*asked(*PARTS[name]), static=STATIC, silent=True, s=ELEMENTS)
    assert any(r.solutions for reports in found.values() for r in reports)


@pytest.mark.long
@pytest.mark.parametrize("live", [True, False])
@pytest.mark.parametrize(
    ("rows", "partitions", "late"), [(1000, 1, {}), (2, 2, {}), (1, 2, {"q1": 1, "q4": 2})]
)
def test_a_static_part_is_evaluated_again_when_its_data_are_replaced(
    live: bool, rows: int, partitions: int, late: dict[str, int]
) -> None:
    """Some queries come with a replacement: they share nothing of what others were told before.

    The second stream lags behind: reports before the replacement, of the old data, are made after
    it.
    """
    windows = {"w": WINDOWS[2], "v": WINDOWS[0]}
    queries = tuple(
        query(
            head,
            f"{{ {group} }} UNION {{ WINDOW :v {{ ?x :r ?y }} }}",
            tail,
            windows=windows,
            on={"v": "t"},
            name=f"q{i}",
        )
        for i, (head, group, tail) in enumerate(PARTS[name] for name in AGAIN)
    )
    static, *later = (
        {g: triples(t) for g, t in graphs.items()} for graphs in (STATIC, *(g for _, g in REPLACED))
    )
    replaced = tuple(
        ({STREAM: n, LATE: i}, graphs)
        for i, ((n, _), graphs) in enumerate(zip(REPLACED, later, strict=True))
    )
    case = Case(
        {STREAM: ELEMENTS, LATE: (at(1200, ":a :r :b"), at(8000, ":a :r :c"))},
        queries,
        0,
        static,
        replaced=replaced,
    )
    after = {name: case.latest(replaced[n - 1][0]) for name, n in late.items()}
    found = run_replaced(case, late, live=live, epoch_rows=rows, partitions=partitions)
    assert same_queries(case.expected(after, late), found) is None
