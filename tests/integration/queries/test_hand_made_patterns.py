"""Shapes of queries that the random cases do not make, over four kinds of windows and under R, I
and D; the reference judges.

The elements have a subject with several values, values of many types, a literal with a language
tag, one with escapes, triples whose terms are all one, and a triple that comes again.
"""

from __future__ import annotations

import pytest

from support.query_dsl import Clause, at, check, check_everywhere, query

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
    "UNION of three": (
        "SELECT *",
        "WINDOW :w { { ?s :p ?o } UNION { ?s :q ?o } UNION { ?o :r ?s } }",
    ),
}

OPTIONALS = {
    "OPTIONAL": ("SELECT *", "WINDOW :w { ?s :p ?o OPTIONAL { ?s :q ?q } }"),
    "OPTIONAL in OPTIONAL": (
        "SELECT *",
        "WINDOW :w { ?s :p ?o OPTIONAL { ?s :q ?q OPTIONAL { ?q :r ?r } } }",
    ),
    "UNION in OPTIONAL": (
        "SELECT *",
        "WINDOW :w { ?s :p ?o OPTIONAL { { ?s :q ?q } UNION { ?s :r ?r } } }",
    ),
    "a join on what may be unbound": (
        "SELECT *",
        "WINDOW :w { ?s :p ?o OPTIONAL { ?s :q ?q } ?q ?z ?y }",
    ),
    "a join of windows on what may be unbound": (
        "SELECT *",
        "WINDOW :w { ?s :p ?o OPTIONAL { ?s :r ?q } } WINDOW :w { ?q :q ?y }",
    ),
    "a condition of OPTIONAL": (
        "SELECT *",
        "WINDOW :w { ?s :p ?o OPTIONAL { ?s :q ?q FILTER(isIRI(?o) || ?o > 1) } }",
    ),
    "two OPTIONALs of one variable": (
        "SELECT *",
        "WINDOW :w { ?s :p ?o OPTIONAL { ?s :q ?x } OPTIONAL { ?s :r ?x } }",
    ),
    "BOUND": ("SELECT *", "WINDOW :w { ?s :p ?o OPTIONAL { ?s :q ?q } } FILTER(!BOUND(?q))"),
    "a variable that is nowhere": (
        "SELECT *",
        "WINDOW :w { ?s :p ?o } FILTER(?nope > 1 || ?o = 1)",
    ),
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
    "VALUES with UNDEF before": (
        "SELECT *",
        "VALUES (?s ?o) { (:a UNDEF) (UNDEF 2) } WINDOW :w { ?s :p ?o }",
    ),
}

WITHOUT = {
    "MINUS": ("SELECT *", "WINDOW :w { ?s :p ?o MINUS { ?s :q ?q } }"),
    "MINUS of another window pattern": (
        "SELECT *",
        "WINDOW :w { ?s :p ?o } MINUS { WINDOW :w { ?s :r ?o } }",
    ),
    "MINUS without a shared variable": ("SELECT *", "WINDOW :w { ?s :p ?o MINUS { ?x :q ?y } }"),
    "MINUS of what may be unbound on the left": (
        "SELECT *",
        "WINDOW :w { ?s :p ?o OPTIONAL { ?s :q ?q } MINUS { ?q :q ?y } }",
    ),
    "MINUS of what may be unbound on the right": (
        "SELECT *",
        "WINDOW :w { ?s :p ?o MINUS { ?a :p ?b OPTIONAL { ?a :q ?s } } }",
    ),
    "MINUS of what may be unbound on both sides": (
        "SELECT *",
        "WINDOW :w { ?s ?p ?o OPTIONAL { ?o :q ?q } MINUS { ?o :p ?b OPTIONAL { ?b :q ?q } } }",
    ),
    "MINUS where only unbound variables are shared": (
        "SELECT *",
        "WINDOW :w { ?s :p ?o OPTIONAL { ?s :q ?q } OPTIONAL { ?s :r ?r } "
        "MINUS { ?x :p ?y OPTIONAL { ?x :r ?q } OPTIONAL "
        "{ ?x :q ?r } } }",
    ),
    "MINUS of VALUES with UNDEF": (
        "SELECT *",
        "WINDOW :w { ?s :p ?o } MINUS { VALUES (?s ?o) { (:a UNDEF) (UNDEF UNDEF) } }",
    ),
    "a pattern behind MINUS": ("SELECT *", "WINDOW :w { ?s :p ?o MINUS { ?s :r ?r } ?s :q ?q }"),
    "MINUS of MINUS": ("SELECT *", "WINDOW :w { ?s :p ?o MINUS { ?s :q ?x MINUS { ?s :r ?x } } }"),
    "MINUS at the beginning": (
        "SELECT *",
        "MINUS { WINDOW :w { ?s :p ?o } } WINDOW :w { ?s :p ?o }",
    ),
    "MINUS in OPTIONAL": (
        "SELECT *",
        "WINDOW :w { ?s :p ?o OPTIONAL { ?s :q ?q MINUS { ?q :r ?r } } }",
    ),
    "MINUS of a filtered pattern": (
        "SELECT *",
        "WINDOW :w { ?s :p ?o MINUS { ?s :p ?o FILTER(?o > 1) } }",
    ),
    "MINUS of static data": ("SELECT *", "WINDOW :w { ?s :p ?o } MINUS { ?s :kind :K }"),
    "static data MINUS a window": ("SELECT *", "?s :kind ?k MINUS { WINDOW :w { ?s :p 1 } }"),
    "a count of what MINUS leaves": (
        "SELECT (COUNT(*) AS ?n)",
        "WINDOW :w { ?s :p ?o MINUS { ?s :q ?q } }",
    ),
    "ASK of MINUS": ("ASK", "WINDOW :w { ?s :p ?o MINUS { ?s :q ?q } }"),
}

EXISTS = {
    "EXISTS": ("SELECT *", "WINDOW :w { ?s :p ?o FILTER EXISTS { ?s :q ?q } }"),
    "NOT EXISTS": ("SELECT *", "WINDOW :w { ?s :p ?o FILTER NOT EXISTS { ?s :q ?q } }"),
    "EXISTS below NOT and AND": (
        "SELECT *",
        "WINDOW :w { ?s :p ?o FILTER(isNumeric(?o) && !(EXISTS { ?s :r ?q }) && ?o > 0) }",
    ),
    "two EXISTS": (
        "SELECT *",
        "WINDOW :w { ?s :p ?o FILTER(EXISTS { ?s :q ?q } && NOT EXISTS { ?s :r ?q }) }",
    ),
    "EXISTS before the pattern": (
        "SELECT *",
        "WINDOW :w { FILTER NOT EXISTS { ?s :q ?q } ?s :p ?o }",
    ),
    "EXISTS without a shared variable": (
        "SELECT *",
        "WINDOW :w { ?s :p ?o FILTER EXISTS { ?x :q :a } }",
    ),
    "NOT EXISTS without a shared variable": (
        "SELECT *",
        "WINDOW :w { ?s :p ?o FILTER NOT EXISTS { ?x :q :a } }",
    ),
    "EXISTS of constants": ("SELECT *", "WINDOW :w { ?s :p ?o FILTER EXISTS { :a :q :b } }"),
    "EXISTS of nothing": ("SELECT *", "WINDOW :w { ?s :p ?o FILTER EXISTS { } }"),
    "NOT EXISTS of a filter alone": (
        "SELECT *",
        "WINDOW :w { ?s :p ?o FILTER NOT EXISTS { FILTER(?o > 1) } }",
    ),
    "EXISTS alone": ("SELECT (1 AS ?x)", "FILTER EXISTS { WINDOW :w { ?s :q :a } }"),
    "EXISTS of what may be unbound on the left": (
        "SELECT *",
        "WINDOW :w { ?s :p ?o OPTIONAL { ?s :q ?q } FILTER EXISTS { ?q :r ?y } }",
    ),
    "NOT EXISTS of what may be unbound on the left": (
        "SELECT *",
        "WINDOW :w { ?s :p ?o OPTIONAL { ?s :q ?q } FILTER NOT EXISTS { ?q :q ?s } }",
    ),
    "a filter inside": (
        "SELECT *",
        "WINDOW :w { ?s :p ?o FILTER EXISTS { ?s :p ?x FILTER(?x > 1) } }",
    ),
    "a filter inside that sees the outer solution": (
        "SELECT *",
        "WINDOW :w { ?s :p ?o FILTER NOT EXISTS { ?s :p ?x FILTER(?x > ?o) } }",
    ),
    "filters inside, with and without the outer solution": (
        "SELECT *",
        "WINDOW :w { ?s :p ?o FILTER EXISTS { ?z :p ?x FILTER(isNumeric(?x) && ?x < ?o) "
        "FILTER(?z != ?s) } }",
    ),
    "an error in a filter that sees the outer solution": (
        "SELECT *",
        "WINDOW :w { ?s :p ?o OPTIONAL { ?s :q ?q } FILTER NOT EXISTS { ?s :p ?x "
        "FILTER(?x = 1 && ?q != :b) } }",
    ),
    "a filter on what is unbound outside": (
        "SELECT *",
        "WINDOW :w { ?s :p ?o OPTIONAL { ?s :r ?q } FILTER EXISTS { ?z :q ?q FILTER(?q = :b) } }",
    ),
    "OPTIONAL inside": (
        "SELECT *",
        "WINDOW :w { ?s :p ?o FILTER EXISTS { ?s :q ?x OPTIONAL { ?x :r ?y } } }",
    ),
    "a random value beside the outer solution": (
        "SELECT *",
        "WINDOW :w { ?s :p ?o FILTER EXISTS { ?s :q ?x FILTER(RAND() < 2 || ?x = ?o) } }",
    ),
    "NOW beside the outer solution": (
        "SELECT *",
        "WINDOW :w { ?s :p ?o FILTER EXISTS { ?s :q ?x "
        "FILTER(?x != ?o && NOW() > '1970-01-01T00:00:04Z'^^xsd:dateTime) } }",
    ),
    "UNION of a window and static data": (
        "SELECT *",
        "{ WINDOW :w { ?s :q ?x } } UNION { ?s :kind :K }",
    ),
    "UNION of a window and static data, joined": (
        "SELECT *",
        "WINDOW :w { ?s :p ?o } { { WINDOW :w { ?s :q ?x } } UNION { ?s :kind :K } }",
    ),
    "UNION of a window and static data inside": (
        "SELECT *",
        "WINDOW :w { ?s :p ?o } FILTER NOT EXISTS { { WINDOW :w { ?s :q :b } } "
        "UNION { ?s :kind :L } }",
    ),
    "UNION inside": (
        "SELECT *",
        "WINDOW :w { ?s :p ?o FILTER NOT EXISTS { { ?s :q ?x } UNION { ?x :p ?s } } }",
    ),
    "EXISTS inside": (
        "SELECT *",
        "WINDOW :w { ?s :p ?o FILTER EXISTS { ?s :q ?x FILTER NOT EXISTS { ?x :r ?s } } }",
    ),
    "a sub-select inside": (
        "SELECT *",
        "WINDOW :w { ?s :p ?o } FILTER EXISTS { SELECT ?s WHERE { "
        "WINDOW :w { ?s :p ?v } } GROUP BY ?s HAVING(COUNT(*) > 1) }",
    ),
    "static data inside": ("SELECT *", "WINDOW :w { ?s :p ?o } FILTER NOT EXISTS { ?s :kind :K }"),
    "a window inside, static data outside": (
        "SELECT *",
        "?s :kind ?k FILTER NOT EXISTS { WINDOW :w { ?s :p 1 } }",
    ),
    "EXISTS in OPTIONAL": (
        "SELECT *",
        "WINDOW :w { ?s :p ?o OPTIONAL { ?s :q ?q FILTER NOT EXISTS { ?q :r ?z } } }",
    ),
    "EXISTS in UNION": (
        "SELECT *",
        "WINDOW :w { { ?s :p ?o FILTER EXISTS { ?s :q ?q } } UNION { ?s :r ?o } }",
    ),
    "a count of what EXISTS leaves": (
        "SELECT ?s (COUNT(*) AS ?n)",
        "WINDOW :w { ?s :p ?o FILTER EXISTS { ?s :q ?q } }",
        "GROUP BY ?s",
    ),
    "ASK of NOT EXISTS": ("ASK", "WINDOW :w { ?s :p ?o FILTER NOT EXISTS { ?s :q ?q } }"),
}

CONCATENATED = {
    "GROUP_CONCAT": (
        "SELECT ?s (GROUP_CONCAT(STR(?o); SEPARATOR='|') AS ?c)",
        "WINDOW :w { ?s :p ?o }",
        "GROUP BY ?s",
    ),
    "GROUP_CONCAT of other than strings": (
        "SELECT ?s (GROUP_CONCAT(?o; SEPARATOR='|') AS ?c)",
        "WINDOW :w { ?s :p ?o }",
        "GROUP BY ?s",
    ),
    "GROUP_CONCAT of strings with and without language": (
        "SELECT (GROUP_CONCAT(?o; SEPARATOR='|') AS ?c) (COUNT(*) AS ?n)",
        "WINDOW :w { ?s :p ?o FILTER(!isNumeric(?o) && isLITERAL(?o)) }",
    ),
    "GROUP_CONCAT of what may be unbound": (
        "SELECT ?s (GROUP_CONCAT(STR(?q); SEPARATOR='|') AS ?c)",
        "WINDOW :w { ?s :p ?o OPTIONAL { ?s :q ?q } }",
        "GROUP BY ?s",
    ),
    "GROUP_CONCAT DISTINCT": (
        "SELECT (GROUP_CONCAT(DISTINCT STR(?p); SEPARATOR='|') AS ?c) "
        "(GROUP_CONCAT(STR(?p); SEPARATOR='|') AS ?d)",
        "WINDOW :w { ?s ?p ?o }",
    ),
    "GROUP_CONCAT of nothing": ("SELECT (GROUP_CONCAT(?z) AS ?c)", "WINDOW :w { ?s :zzz ?z }"),
    "GROUP_CONCAT of one": (
        "SELECT (GROUP_CONCAT(?o; SEPARATOR='|') AS ?c)",
        "WINDOW :w { :b :p ?o FILTER(LANG(?o) = 'en') }",
    ),
    "GROUP_CONCAT in an expression": (
        "SELECT ?p (STRLEN(GROUP_CONCAT(STR(?s); SEPARATOR='')) AS ?c)",
        "WINDOW :w { ?s ?p ?o }",
        "GROUP BY ?p HAVING(STRLEN(GROUP_CONCAT(STR(?o))) > 3)",
    ),
}

KINDS: dict[str | None, str] = {None: ":a :kind :K . :b :kind :L . :d :kind :K"}

SNAPSHOTS = {
    "a count per predicate": (
        "SELECT ?p (COUNT(*) AS ?n)",
        "WINDOW :w { ?s ?p ?o }",
        "GROUP BY ?p",
    ),
    "COUNT(DISTINCT *)": ("SELECT (COUNT(DISTINCT *) AS ?n)", "WINDOW :w { ?s ?p ?o }"),
    "COUNT(DISTINCT *) per group": (
        "SELECT ?p (COUNT(DISTINCT *) AS ?n)",
        "WINDOW :w { ?s ?p ?o }",
        "GROUP BY ?p",
    ),
    "an ungrouped count of nothing": ("SELECT (COUNT(?z) AS ?n)", "WINDOW :w { ?s :zzz ?z }"),
    "an expression as key": (
        "SELECT ?k (COUNT(*) AS ?n)",
        "WINDOW :w { ?s :p ?o }",
        "GROUP BY (isIRI(?o) AS ?k)",
    ),
    "expressions in and around aggregates": (
        "SELECT (SUM(?o * 2) + 1 AS ?t) (AVG(?o) AS ?v)",
        "WINDOW :w { ?s :p ?o FILTER(isNumeric(?o)) }",
    ),
    "HAVING with expressions": (
        "SELECT ?s (SUM(?o) AS ?t)",
        "WINDOW :w { ?s :p ?o FILTER(isNumeric(?o)) }",
        "GROUP BY ?s HAVING(SUM(?o) + COUNT(*) > 2 && MIN(?o) < 3)",
    ),
    "errors in SUM and AVG": (
        "SELECT ?s (SUM(?o) AS ?t) (AVG(?o) AS ?v)",
        "WINDOW :w { ?s :p ?o }",
        "GROUP BY ?s",
    ),
    "MIN and MAX of strings": (
        "SELECT (MIN(STR(?o)) AS ?a) (MAX(STR(?o)) AS ?b)",
        "WINDOW :w { ?s :p ?o }",
    ),
    "MIN and MAX per group": (
        "SELECT ?s (MIN(?o) AS ?a) (MAX(?o) AS ?b)",
        "WINDOW :w { ?s :p ?o }",
        "GROUP BY ?s",
    ),
    "a sub-select with a count": (
        "SELECT ?s ?n ?o",
        "WINDOW :w { ?s :p ?o } { SELECT ?s (COUNT(*) AS ?n) WHERE { "
        "WINDOW :w { ?s :p ?v } } GROUP BY ?s }",
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
    "IRIs before literals": (
        "SELECT ?o",
        "WINDOW :w { ?s :p ?o }",
        "ORDER BY isLiteral(?o) STR(?o) LIMIT 3 OFFSET 1",
    ),
    "the unbound first": (
        "SELECT ?s ?q",
        "WINDOW :w { ?s :p ?o OPTIONAL { ?s :q ?q } }",
        "ORDER BY ?q STR(?s) LIMIT 3",
    ),
    "DISTINCT, ORDER BY, LIMIT": (
        "SELECT DISTINCT ?s",
        "WINDOW :w { ?s :p ?o }",
        "ORDER BY ?s LIMIT 2",
    ),
    "OFFSET alone": ("SELECT ?s ?o", "WINDOW :w { ?s :p ?o }", "ORDER BY ?s STR(?o) OFFSET 2"),
}


@pytest.mark.long
@pytest.mark.parametrize("name", PATTERNS | OPTIONALS)
def test_monotone_and_optional_parts(name: str) -> None:
    check_everywhere(*(PATTERNS | OPTIONALS)[name], s=ELEMENTS)


@pytest.mark.long
@pytest.mark.parametrize("name", WITHOUT | EXISTS)  # type: ignore[operator]
def test_minus_and_exists(name: str) -> None:
    check_everywhere(*(WITHOUT | EXISTS)[name], static=KINDS, s=ELEMENTS)


@pytest.mark.parametrize("name", CONCATENATED)
def test_group_concat(name: str) -> None:
    check_everywhere(*CONCATENATED[name], s=ELEMENTS)


@pytest.mark.long
@pytest.mark.parametrize("name", SNAPSHOTS)
def test_parts_per_report(name: str) -> None:
    check_everywhere(*SNAPSHOTS[name], s=ELEMENTS)


@pytest.mark.parametrize("name", ORDERS)
def test_order_and_slices(name: str) -> None:
    check_everywhere(*ORDERS[name], outputs=("RSTREAM",), s=ELEMENTS)


def test_limit_0_says_nothing() -> None:
    expected = check(
        query("SELECT ?o", "WINDOW :w { ?s :p ?o }", "LIMIT 0"), silent=True, s=ELEMENTS
    )
    assert not any(report.solutions for report in expected["q"])


def test_sample_is_a_member() -> None:
    check_everywhere(
        "SELECT ?s (SAMPLE(?o) AS ?x)",
        "WINDOW :w { ?s :p ?o }",
        "GROUP BY ?s",
        outputs=("RSTREAM",),
        s=ELEMENTS,
    )


HIDDEN = "{ SELECT ?s { { SELECT ?s (COUNT(*) AS ?x) { WINDOW :w { ?s :p ?o } } GROUP BY ?s } } }"
"""A count by a name that is hidden: outside, the name is another variable."""


@pytest.mark.parametrize(
    "group",
    [
        f"{HIDDEN} WINDOW :w {{ ?s :q ?x }}",
        f"{HIDDEN} OPTIONAL {{ WINDOW :w {{ ?s :q ?x }} }}",
        f"{HIDDEN} UNION {{ WINDOW :w {{ ?s :q ?x }} }}",
        f'{HIDDEN} VALUES ?x {{ :k "z" }}',
        f"{HIDDEN} BIND(STR(?s) AS ?x)",
        "{ SELECT ?s { WINDOW :w { ?s :p ?o } BIND(EXISTS { "
        "WINDOW :w { ?s :q ?z } } AS ?x) } } WINDOW :w { ?s :q ?x }",
    ],
)
def test_a_hidden_number_is_not_a_variable_of_its_name(group: str) -> None:
    check_everywhere("SELECT ?s ?x", group, s=ELEMENTS)


COUNTED = "{ SELECT ?s (COUNT(*) AS ?x) { WINDOW :w { ?s :p ?o } } GROUP BY ?s }"


@pytest.mark.parametrize(
    "group",
    [
        f"WINDOW :w {{ ?s :p ?o }} OPTIONAL {{ WINDOW :w {{ ?s :q ?x }} }} OPTIONAL {COUNTED}",
        f"{COUNTED} OPTIONAL {{ WINDOW :w {{ ?s :q ?x }} }}",
        f"WINDOW :w {{ ?s :p ?o OPTIONAL {{ ?s :q ?x }} }} {COUNTED}",
        f"{{ {COUNTED} UNION {{ WINDOW :w {{ ?s :q ?x }} }} }} OPTIONAL {{ "
        f"WINDOW :w {{ ?s :p ?x }} }}",
    ],
)
def test_a_variable_that_is_a_count_in_some_rows(group: str) -> None:
    elements = (
        at(1000, ':a :p 1 ; :q :b ; :r "x"'),
        at(1500, ':b :p 2, 3 ; :r "y"'),
        at(5000, ":a :q 1.5 ; :p 2 . :c :p 5"),
    )
    windows = (Clause("count", count=5), Clause("step", 4000, 2000))
    check(
        *(query("SELECT ?s ?x", group, windows={"w": w}, name=w.kind) for w in windows), s=elements
    )
