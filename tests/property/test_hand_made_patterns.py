"""Shapes of queries that the random cases do not make, over four kinds of windows and under R, I and D; the reference judges.

The elements have a subject with several values, values of many types, a literal with a language tag, one with escapes, triples
whose terms are all one, and a triple that comes again.
"""

from __future__ import annotations

import pytest
from judged import at, check, check_everywhere, query

ELEMENTS = (
    at(1000, ":a :p 1, 2 ; :q :b . :b :p 2.5 ; :q :b"),
    at(1500, ':b :p "x"@en, "y\\n\\"z\\\\" ; :r :b . :c :p :c'),
    at(5000, ':a :p 1 . :p :p :p . :d :p "3.5"^^xsd:double'),
    at(9000, ":a :q :a"),
)

PATTERNS = {
    "a variable twice": ("SELECT ?x", "WINDOW :w { ?x ?p ?x }"),
    "a variable twice, constant predicate": ("SELECT ?x", "WINDOW :w { ?x :p ?x }"),
    "a variable three times": ("SELECT ?x", "WINDOW :w { ?x ?x ?x }"),
    "constants only": ("SELECT (1 AS ?one)", "WINDOW :w { :a :p 1 }"),
    "constants beside a pattern": ("SELECT ?x", "WINDOW :w { :a :q :b . ?x :p 2 }"),
    "ASK of constants": ("ASK", "WINDOW :w { :a :p 1 }"),
    "ASK of a pattern": ("ASK", "WINDOW :w { ?s :q ?o }"),
    "variable predicates": ("SELECT *", "WINDOW :w { ?s ?p ?o . ?o ?p2 ?z }"),
    "a language tag": ("SELECT ?s", "WINDOW :w { ?s :p 'x'@en }"),
    "escapes": ("SELECT ?s", "WINDOW :w { ?s :p 'y\\n\"z\\\\' }"),
    "a pattern twice": ("SELECT *", "WINDOW :w { ?s :p ?o } WINDOW :w { ?s :p ?o }"),
    "no shared variable": ("SELECT *", "WINDOW :w { ?s :q ?o } WINDOW :w { ?a :r ?b }"),
    "an empty group": ("SELECT (1 AS ?x)", "WINDOW :w { }"),
    "UNION of three": ("SELECT *", "WINDOW :w { { ?s :p ?o } UNION { ?s :q ?o } UNION { ?o :r ?s } }"),
}

OPTIONALS = {
    "OPTIONAL": ("SELECT *", "WINDOW :w { ?s :p ?o OPTIONAL { ?s :q ?q } }"),
    "OPTIONAL in OPTIONAL": ("SELECT *", "WINDOW :w { ?s :p ?o OPTIONAL { ?s :q ?q OPTIONAL { ?q :r ?r } } }"),
    "UNION in OPTIONAL": ("SELECT *", "WINDOW :w { ?s :p ?o OPTIONAL { { ?s :q ?q } UNION { ?s :r ?r } } }"),
    "a join on what may be unbound": ("SELECT *", "WINDOW :w { ?s :p ?o OPTIONAL { ?s :q ?q } ?q ?z ?y }"),
    "a join of windows on what may be unbound": (
        "SELECT *",
        "WINDOW :w { ?s :p ?o OPTIONAL { ?s :r ?q } } WINDOW :w { ?q :q ?y }",
    ),
    "a condition of OPTIONAL": ("SELECT *", "WINDOW :w { ?s :p ?o OPTIONAL { ?s :q ?q FILTER(isIRI(?o) || ?o > 1) } }"),
    "two OPTIONALs of one variable": ("SELECT *", "WINDOW :w { ?s :p ?o OPTIONAL { ?s :q ?x } OPTIONAL { ?s :r ?x } }"),
    "BOUND": ("SELECT *", "WINDOW :w { ?s :p ?o OPTIONAL { ?s :q ?q } } FILTER(!BOUND(?q))"),
    "a variable that is nowhere": ("SELECT *", "WINDOW :w { ?s :p ?o } FILTER(?nope > 1 || ?o = 1)"),
    "an error in BIND": ("SELECT *", "WINDOW :w { ?s :p ?o } BIND(?o + 1 AS ?x)"),
    "an error that is caught": (
        "SELECT *",
        "WINDOW :w { ?s :p ?o } BIND(1 / (?o - 1) AS ?x) BIND(COALESCE(?x, 'error') AS ?y)",
    ),
    "IN": ("SELECT *", "WINDOW :w { ?s :p ?o FILTER(?o IN (1, 2.5, 'x'@en)) }"),
    "VALUES with UNDEF behind": (
        "SELECT *",
        "WINDOW :w { ?s :p ?o } VALUES (?s ?o) { (:a UNDEF) (UNDEF 2) (:c :c) (UNDEF UNDEF) }",
    ),
    "VALUES with UNDEF before": ("SELECT *", "VALUES (?s ?o) { (:a UNDEF) (UNDEF 2) } WINDOW :w { ?s :p ?o }"),
}

SNAPSHOTS = {
    "a count per predicate": ("SELECT ?p (COUNT(*) AS ?n)", "WINDOW :w { ?s ?p ?o }", "GROUP BY ?p"),
    "COUNT(DISTINCT *)": ("SELECT (COUNT(DISTINCT *) AS ?n)", "WINDOW :w { ?s ?p ?o }"),
    "COUNT(DISTINCT *) per group": ("SELECT ?p (COUNT(DISTINCT *) AS ?n)", "WINDOW :w { ?s ?p ?o }", "GROUP BY ?p"),
    "an ungrouped count of nothing": ("SELECT (COUNT(?z) AS ?n)", "WINDOW :w { ?s :zzz ?z }"),
    "an expression as key": ("SELECT ?k (COUNT(*) AS ?n)", "WINDOW :w { ?s :p ?o }", "GROUP BY (isIRI(?o) AS ?k)"),
    "expressions in and around aggregates": (
        "SELECT (SUM(?o * 2) + 1 AS ?t) (AVG(?o) AS ?v)",
        "WINDOW :w { ?s :p ?o FILTER(isNumeric(?o)) }",
    ),
    "HAVING with expressions": (
        "SELECT ?s (SUM(?o) AS ?t)",
        "WINDOW :w { ?s :p ?o FILTER(isNumeric(?o)) }",
        "GROUP BY ?s HAVING(SUM(?o) + COUNT(*) > 2 && MIN(?o) < 3)",
    ),
    "errors in SUM and AVG": ("SELECT ?s (SUM(?o) AS ?t) (AVG(?o) AS ?v)", "WINDOW :w { ?s :p ?o }", "GROUP BY ?s"),
    "MIN and MAX of strings": ("SELECT (MIN(STR(?o)) AS ?a) (MAX(STR(?o)) AS ?b)", "WINDOW :w { ?s :p ?o }"),
    "MIN and MAX per group": ("SELECT ?s (MIN(?o) AS ?a) (MAX(?o) AS ?b)", "WINDOW :w { ?s :p ?o }", "GROUP BY ?s"),
    "a sub-select with a count": (
        "SELECT ?s ?n ?o",
        "WINDOW :w { ?s :p ?o } { SELECT ?s (COUNT(*) AS ?n) WHERE { WINDOW :w { ?s :p ?v } } GROUP BY ?s }",
    ),
    "a sub-select in a sub-select": (
        "SELECT ?s ?m",
        "WINDOW :w { ?s :p ?v } { SELECT (MAX(?n) AS ?m) WHERE { { SELECT ?s (COUNT(*) AS ?n) "
        "WHERE { WINDOW :w { ?s :p ?v } } GROUP BY ?s } } } FILTER(?m > 1)",
    ),
    "NOW": ("SELECT ?s (NOW() AS ?n)", "WINDOW :w { ?s :p ?o }"),
    "NOW in a filter": (
        "SELECT ?s ?o",
        "WINDOW :w { ?s :p ?o FILTER(NOW() > '1970-01-01T00:00:04Z'^^xsd:dateTime) }",
    ),
    "NOW in an aggregate": ("SELECT (MAX(NOW()) AS ?h) (COUNT(*) AS ?c)", "WINDOW :w { ?s :p ?o }"),
}

ORDERS = {
    "expressions of several types": (
        "SELECT ?s ?o",
        "WINDOW :w { ?s :p ?o }",
        "ORDER BY DESC(STRLEN(STR(?o))) STR(?o) isNumeric(?o) STR(?s) LIMIT 2 OFFSET 1",
    ),
    "IRIs before literals": ("SELECT ?o", "WINDOW :w { ?s :p ?o }", "ORDER BY isLiteral(?o) STR(?o) LIMIT 3 OFFSET 1"),
    "the unbound first": (
        "SELECT ?s ?q",
        "WINDOW :w { ?s :p ?o OPTIONAL { ?s :q ?q } }",
        "ORDER BY ?q STR(?s) LIMIT 3",
    ),
    "DISTINCT, ORDER BY, LIMIT": ("SELECT DISTINCT ?s", "WINDOW :w { ?s :p ?o }", "ORDER BY ?s LIMIT 2"),
    "OFFSET alone": ("SELECT ?s ?o", "WINDOW :w { ?s :p ?o }", "ORDER BY ?s STR(?o) OFFSET 2"),
}


@pytest.mark.parametrize("name", PATTERNS | OPTIONALS)
def test_monotone_and_optional_parts(name: str) -> None:
    check_everywhere(*(PATTERNS | OPTIONALS)[name], s=ELEMENTS)


@pytest.mark.parametrize("name", SNAPSHOTS)
def test_parts_per_report(name: str) -> None:
    check_everywhere(*SNAPSHOTS[name], s=ELEMENTS)


@pytest.mark.parametrize("name", ORDERS)
def test_order_and_slices(name: str) -> None:
    check_everywhere(*ORDERS[name], outputs=("RSTREAM",), s=ELEMENTS)


def test_limit_0_says_nothing() -> None:
    expected = check(query("SELECT ?o", "WINDOW :w { ?s :p ?o }", "LIMIT 0"), silent=True, s=ELEMENTS)
    assert not any(report.solutions for report in expected["q"])


def test_sample_is_a_member() -> None:
    check_everywhere(
        "SELECT ?s (SAMPLE(?o) AS ?x)", "WINDOW :w { ?s :p ?o }", "GROUP BY ?s", outputs=("RSTREAM",), s=ELEMENTS
    )
