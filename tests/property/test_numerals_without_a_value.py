"""A literal whose datatype is of numbers and that is none (``"x"^^xsd:integer``) equals the same
term and no other (SPARQL 1.1, 17.4.1.7), also where nobody shows its text; and it is in no range.
One of more than a thousand characters is none, either.
"""

from __future__ import annotations

import pytest

from support.dynamic_queries import MODES, Coming, World, run
from support.query_dsl import STREAM, at, query

LONG = f'"{"9" * 1001}"^^xsd:integer'
TERMS = ('"x"^^xsd:integer', '"300"^^xsd:byte', '""^^xsd:decimal', '"1x"^^xsd:float', LONG)
BODIES = (
    "WINDOW :w {{ ?x :p ?v FILTER({}) }}",
    "WINDOW :w {{ ?x :p ?v . ?x :q ?y FILTER({}) }}",
    "WINDOW :w {{ ?x :q ?y }} OPTIONAL {{ WINDOW :w {{ ?x :p ?v }} }} FILTER({})",
)
CONDITIONS = ("?v = {}", "?v = {} || ?v = 7", "?v IN (7, {})", "!(?v != {})")


def said(conditions: list[str], body: str, terms: tuple[str, ...], mode: str) -> list[int]:
    """How many subjects each query finds: of each term there is one."""
    queries = [
        Coming(query("SELECT ?x", body.format(one), name=f"q{i}"))
        for i, one in enumerate(conditions)
    ]
    told = [at(100, f":x{i} :p {term} . :x{i} :q :a") for i, term in enumerate(terms)]
    world = World({STREAM: told}, {STREAM: (0, len(told))})
    reports = run(queries, world, [mode] * 4).reports
    return [sum(r.solutions.total() for r in own) for own in reports.values()]


@pytest.mark.long
@pytest.mark.parametrize("mode", MODES)
def test_it_equals_itself(mode: str) -> None:
    for body in BODIES:
        conditions = [form.format(term) for term in TERMS for form in CONDITIONS]
        assert said(conditions, body, TERMS, mode) == [1] * len(conditions), body


@pytest.mark.parametrize("mode", MODES)
def test_its_digits_are_in_no_range(mode: str) -> None:
    terms = ("5", "500", '"1e2"^^xsd:integer')
    conditions = ["?v > 50", '?v = "1e2"^^xsd:integer', '?v > "1e2"^^xsd:integer', "?v > 200"]
    assert said(conditions, BODIES[1], terms, mode) == [1, 1, 0, 1]
    assert said(conditions[::-1], BODIES[1], terms, mode) == [1, 0, 1, 1]
