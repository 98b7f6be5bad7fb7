"""EXISTS inside expressions, and inner groups that look at outer values early (SPARQL 1.1, 18.6);
the reference judges.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from levada.testing.reference import evaluate
from levada.testing.reference_model import ReferenceQuery
from support.generators import CaseQuery, Clause
from support.query_dsl import STREAM, WINDOWS, at, check, query, triples

ELEMENTS = (
    at(1000, ":a :p :b ; :q :c ; :r :d . :b :q :a . :c :p :a, :b"),
    at(1500, ":c :q :b . :b :p :d . :d :r :a . :a :p :c"),
    at(5000, ":d :p :a ; :q :d . :a :r :b . :b :r :c"),
    at(9000, ":a :q :d"),
)
STATIC: dict[str | None, tuple[str, ...]] = {None: triples(":a :k :b . :b :k :c . :d :n 'x'")}
P = "WINDOW :w { ?x :p ?y }"

EXPRESSIONS = {
    "||": ("SELECT *", "WINDOW :w { ?x :p ?y FILTER(?y = :b || EXISTS { ?y :q ?z }) }", ""),
    "! and ||": ("SELECT *", f"{P} FILTER(!EXISTS {{ WINDOW :w {{ ?y :q ?z }} }} || ?x = :a)", ""),
    "two in one": (
        "SELECT *",
        f"{P} FILTER(EXISTS {{ ?y :k ?z }} || (EXISTS {{ ?x :n ?o }} && NOT EXISTS {{ "
        f"WINDOW :w {{ ?x :r ?y }} }}))",
        "",
    ),
    "one in another": (
        "SELECT *",
        "WINDOW :w { ?x :p ?y FILTER(?x = :z || EXISTS { ?y :q ?z "
        "FILTER(?z = :a || EXISTS { ?z :r ?y }) }) }",
        "",
    ),
    "the empty group": ("SELECT *", f"{P} FILTER(EXISTS {{}} && ?x != :b)", ""),
    "BIND": ("SELECT *", f"{P} BIND(EXISTS {{ WINDOW :w {{ ?y :q ?x }} }} AS ?b)", ""),
    "IF in SELECT": ("SELECT ?x (IF(EXISTS { WINDOW :w { ?x :q ?z } }, 1, 2) AS ?n)", P, ""),
    "alone in SELECT": ("SELECT (EXISTS { WINDOW :w { ?x :r :d } } AS ?b)", P, ""),
    "an aggregate": ("SELECT ?x (SUM(IF(EXISTS { WINDOW :w { ?y :q ?z } }, 1, 0)) AS ?n)", P,
                     "GROUP BY ?x"),
    "beside an aggregate": ("SELECT ?x (COUNT(*) > 1 && EXISTS { WINDOW :w { ?x :q ?y } } AS ?b)",
                            P, "GROUP BY ?x"),
    "HAVING": ("SELECT ?x", P,
               "GROUP BY ?x HAVING(EXISTS { WINDOW :w { ?x :q ?y } } || COUNT(*) > 1)"),
    "a key": ("SELECT ?b (COUNT(*) AS ?n)", P,
              "GROUP BY (EXISTS { WINDOW :w { ?x :q ?y } } AS ?b)"),
    "an order": ("SELECT ?x ?y", P, "ORDER BY (EXISTS { WINDOW :w { ?x :q ?z } }) ?x ?y LIMIT 2"),
    "no group": ("SELECT (EXISTS { WINDOW :w { :d :q :d } } AS ?b) (COUNT(*) AS ?n)", P, ""),
    "a sub-select": (
        "SELECT *",
        f"{P} {{ SELECT ?x (MAX(IF(EXISTS {{ WINDOW :w {{ ?z :p ?x }} }}, 1, 0)) AS ?m) {{ "
        f"WINDOW :w {{ ?x :q ?z }} }} GROUP BY ?x }}",
        "",
    ),
    "OPTIONAL": ("SELECT *", "WINDOW :w { ?x :p ?y OPTIONAL { ?x :q ?z "
                 "FILTER(EXISTS { ?y :r ?u } || ?z = :a) } }", ""),
    "all of OPTIONAL's filter": ("SELECT *",
        "WINDOW :w { ?x :p ?y OPTIONAL { ?x :q ?z FILTER NOT EXISTS { ?y :r ?u } } }", ""),
    "what may be unbound": (
        "SELECT *",
        "WINDOW :w { ?x :p ?y OPTIONAL { ?y :r ?o } FILTER(?x = :b || EXISTS { ?o :q ?z }) }",
        "",
    ),
}  # fmt: skip

EARLY = {
    "a filter in a nested group": "{ ?z :q ?u FILTER(?u = ?y) } ?z :r ?v",
    "OPTIONAL": "?z :q ?u OPTIONAL { ?z :r ?y } FILTER(BOUND(?y) && ?u != ?x)",
    "BIND": "?z :q ?u BIND(?y AS ?k) ?k :r ?m",
    "BIND of an expression": "?z :q ?u BIND(?y = ?u AS ?k) FILTER(?k)",
    "EXISTS": "?z :q ?u FILTER EXISTS { ?y :r ?u }",
    "NOT EXISTS": "?z :q ?u FILTER NOT EXISTS { ?y :r ?u }",
    "MINUS where another variable decides": "?y :q ?u MINUS { ?y :q ?u . ?u :r ?k }",
    "MINUS of an outer value": "?z :q ?u MINUS { ?u :r ?y }",
    "MINUS of two outer values": "?z :p ?u MINUS { ?u :q ?y . ?u :r ?x }",
    "MINUS with a union": "?z :q ?u MINUS { { ?u :r ?y } UNION { ?u :q :a } }",
    "a sub-select that shows it": "{ SELECT ?y ?u { ?z :q ?u FILTER(?u = ?y) } } ?u :r ?k",
    "a group by it": (
        "{ SELECT ?y (COUNT(*) AS ?n) { ?z :q ?u FILTER(?u != ?y) } GROUP BY ?y "
        "HAVING(COUNT(*) > 2) }"
    ),
    "LIMIT of the whole": "SELECT ?y ?u { ?y :q ?u } ORDER BY ?u LIMIT 1",
    "ORDER BY of what comes late": "{ SELECT ?y ?u { ?z :q ?u } ORDER BY ?y }",
    "UNION": "{ ?z :q ?u FILTER(?u = ?y) } UNION { ?x :r ?y }",
    "a path of a step": "?y :q+ ?x",
}

HIDDEN = {
    "a variable of the same name": "{ SELECT ?z { ?z :q ?y } } ?z :r ?k",
    "below a count": (
        "{ SELECT ?z (COUNT(?y) AS ?n) { ?z :p ?y } GROUP BY ?z HAVING(COUNT(*) > 1) } ?z :q ?y"
    ),
    "shown and hidden": "{ SELECT ?y { ?y :q ?x FILTER(?y != ?x) } }",
    "in a filter of its own": "{ SELECT ?z { ?z :q ?y FILTER(?y != :b) } } ?z :p ?k",
    "in its OPTIONAL": "?y :q ?u OPTIONAL { { SELECT ?u { ?u :r ?x } } } FILTER(?u != :b)",
    "in a MINUS": "?z :q ?u MINUS { SELECT ?u { ?u :r ?y } }",
    "with LIMIT": "{ SELECT (COUNT(*) AS ?n) { ?y :q ?z } LIMIT 1 } FILTER(?n > 2)",
    "two levels": "{ SELECT ?y { ?y :q ?z { SELECT ?z { ?z :r ?x } } } }",
}

MAYBE = {  # ?o and ?u are bound by some outer solutions only
    "a filter in a nested group": "{ ?z :q ?k FILTER(?k = ?o) } ?z :p ?m",
    "a filter of what is not bound": "{ ?z :q ?k FILTER(!BOUND(?o)) }",
    "OPTIONAL": "?z :q ?k OPTIONAL { ?z :r ?o } FILTER(BOUND(?o) && ?k != ?x)",
    "BIND": "?z :q ?k BIND(COALESCE(?o, :a) AS ?m) ?m :r ?n",
    "EXISTS": "?z :q ?k FILTER EXISTS { ?o :r ?k }",
    "NOT EXISTS": "?z :q ?k FILTER NOT EXISTS { ?o :r ?k }",
    "MINUS": "?z :q ?k MINUS { ?k :r ?o }",
    "two of them": "{ ?z :q ?k FILTER(?k = ?o || ?k = ?u) } ?z :p ?m",
    "beside one that is bound": "{ ?z :q ?k FILTER(?k = ?o || ?k = ?x) } ?z :p ?m",
    "a sub-select that shows it": "{ SELECT ?o ?k { ?z :q ?k FILTER(?k != ?o) } } ?k :r ?m",
}


def _asked(head: str, group: str, tail: str, **given: Any) -> CaseQuery:
    """As ``query``; EXISTS may stand in the head and the tail, too."""
    asked = query(head, group, tail, **given)
    question = asked.reference
    assert isinstance(question, ReferenceQuery)
    return replace(
        asked, reference=replace(question, sparql=question.sparql.replace("WINDOW", "GRAPH"))
    )


@pytest.mark.parametrize("clause", WINDOWS[2:])
def test_exists_in_expressions(clause: Clause) -> None:
    outputs = ("RSTREAM", "ISTREAM", "DSTREAM")
    asked = [
        _asked(*parts, windows={"w": clause}, output=outputs[i % 3], name=f"q{i}")
        for i, parts in enumerate(EXPRESSIONS.values())
    ]
    check(*asked, static={None: ":a :k :b . :b :k :c . :d :n 'x'"}, silent=True, s=ELEMENTS)


def test_outer_values_early() -> None:
    groups = [f"WINDOW :w {{ ?x :p ?y FILTER EXISTS {{ {inner} }} }}" for inner in EARLY.values()]
    asked = [
        _asked("SELECT *", g, "", windows={"w": WINDOWS[1]}, name=f"q{i}")
        for i, g in enumerate(groups)
    ]
    check(*asked, silent=True, s=ELEMENTS)


def test_what_a_sub_select_hides_is_no_outer_variable() -> None:
    """By the scope of variables (18.2.1), as SPARQL 1.2's draft has it and other engines do."""
    groups = [f"WINDOW :w {{ ?x :p ?y FILTER EXISTS {{ {inner} }} }}" for inner in HIDDEN.values()]
    asked = [
        _asked("SELECT *", g, "", windows={"w": WINDOWS[1]}, name=f"q{i}")
        for i, g in enumerate(groups)
    ]
    check(*asked, silent=True, s=ELEMENTS)


@pytest.mark.parametrize(
    "word", ["FILTER EXISTS {0}", "FILTER NOT EXISTS {0}", "FILTER(?x = :a || EXISTS {0})"]
)
def test_outer_values_that_some_solutions_have(word: str) -> None:
    left = "?x :p ?y OPTIONAL { ?y :r ?o } OPTIONAL { ?x :q ?u }"
    groups = [
        f"WINDOW :w {{ {left} {word.format('{ ' + inner + ' }')} }}" for inner in MAYBE.values()
    ]
    asked = [
        _asked("SELECT *", g, "", windows={"w": WINDOWS[1]}, name=f"q{i}")
        for i, g in enumerate(groups)
    ]
    check(*asked, silent=True, s=ELEMENTS)


@pytest.mark.parametrize(
    "inner", ["?z :q ?o", "?z :r ?u . ?o :q ?u", "?z :p ?k OPTIONAL { ?k :r ?o } FILTER(?k != ?y)"]
)
def test_what_stands_before_an_optional_may_be_unbound(inner: str) -> None:
    left = "?x :p ?y OPTIONAL { ?y :r ?o } OPTIONAL { ?x :q ?u }"
    for word in ("EXISTS", "NOT EXISTS"):
        group = f"WINDOW :w {{ {left} OPTIONAL {{ ?z :p ?y FILTER {word} {{ {inner} }} }} }}"
        check(query("SELECT *", group, windows={"w": WINDOWS[1]}), s=ELEMENTS)


def test_each_case_says_something() -> None:
    """A case of which nothing follows tests nothing."""
    texts = [*EARLY.values(), *HIDDEN.values()]
    inner = [
        ("SELECT *", f"WINDOW :w {{ ?x :p ?y FILTER EXISTS {{ {text} }} }}", "") for text in texts
    ]
    left = "?x :p ?y OPTIONAL { ?y :r ?o } OPTIONAL { ?x :q ?u }"
    inner += [
        ("SELECT *", f"WINDOW :w {{ {left} FILTER EXISTS {{ {text} }} }}", "")
        for text in MAYBE.values()
    ]
    for parts in (*EXPRESSIONS.values(), *inner):
        asked = _asked(*parts, windows={"w": WINDOWS[2]}).reference
        assert evaluate(asked, {STREAM: ELEMENTS}, STATIC), parts


def test_a_path_of_no_step_is_there_for_each_outer_value() -> None:
    """18.6 puts the value in, and a given term is connected with itself also where the graph does
    not have it (18.4).
    """
    group = "WINDOW :w { ?x :q ?y } FILTER EXISTS { ?x :k* ?y }"
    spelled = "WINDOW :w { ?x :q ?y } FILTER(?x = ?y || EXISTS { ?x :k+ ?y })"
    check(
        query("SELECT *", group, reference=spelled),
        static={None: ":b :k :a . :z :k :z"},
        s=ELEMENTS,
    )
