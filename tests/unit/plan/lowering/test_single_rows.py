"""One row beside other rows is constants and no join."""

from __future__ import annotations

import pytest

from levada.cli.explain import operator_lines
from levada.plan.lowering.lower import StreamFacts, lower
from levada.syntax import parse
from levada.translation.sparql.translate import translate

HEAD = "PREFIX : <http://e/> SELECT * FROM NAMED WINDOW :w ON :s [RANGE PT4S STEP PT4S]"


def operators(group: str) -> list[str]:
    """The operators of a query with this group, by their first words."""
    query = translate(parse(f"{HEAD} {{ {group} }}"), graphs=["http://e/g"])
    lines = operator_lines(lower(query, {"http://e/s": StreamFacts()}).root)
    return [line.split()[0].strip("()") for line in lines]


@pytest.mark.parametrize(
    "group",
    ["WINDOW :w { ?s :p ?o } VALUES (?a ?b) { (1 2) }", "WINDOW :w { ?s :p ?o } GRAPH ?g { }"],
)
def test_a_row_without_shared_variables_is_constants(group: str) -> None:
    found = operators(group)
    assert "extend" in found
    assert "join" not in found


def test_a_graph_variable_used_once_costs_no_join() -> None:
    assert operators("GRAPH ?g { ?s :p ?o }").count("join") == 0


@pytest.mark.parametrize(
    "group",
    [
        "WINDOW :w { ?s :p ?o } VALUES ?o { 1 }",
        "WINDOW :w { ?s :p ?o } VALUES ?a { 1 2 }",
        "WINDOW :w { ?s :p ?o } VALUES (?a ?b) { (1 UNDEF) }",
    ],
)
def test_what_joins_or_repeats_is_a_join(group: str) -> None:
    assert "join" in operators(group)
