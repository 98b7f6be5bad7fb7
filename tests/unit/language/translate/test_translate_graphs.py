"""GRAPH, FROM and FROM NAMED over the static graphs that there are (SPARQL 1.1, sections 13 and
18.6).
"""

from __future__ import annotations

import pytest

from levada.errors import QueryError, Span, UnknownNameError
from levada.language import parse
from levada.language.translate.sparql.translate import translate
from levada.plan.logical import nodes as a
from levada.plan.logical.print_logical import show_node

GRAPHS = ("http://e/g", "http://e/h")


def translated(text: str) -> a.Query:
    return translate(parse(text), text=text, graphs=GRAPHS)


def test_a_graph_variable_is_a_union_over_the_graphs() -> None:
    assert show_node(translated("SELECT * { GRAPH ?g { ?s ?p 1 } }").pattern).splitlines() == [
        "(project (?g ?s ?p)",
        "  (union",
        "    (join",
        "      (bgp (graph <http://e/g>)",
        '        (?s ?p "1"^^<http://www.w3.org/2001/XMLSchema#integer>))',
        "      (values (?g)",
        "        (<http://e/g>)))",
        "    (join",
        "      (bgp (graph <http://e/h>)",
        '        (?s ?p "1"^^<http://www.w3.org/2001/XMLSchema#integer>))',
        "      (values (?g)",
        "        (<http://e/h>)))))",
    ]


def test_a_graph_variable_goes_over_windows_that_are_graphs_too() -> None:
    text = (
        "SELECT * FROM NAMED STREAM <http://e/h> [NOW] FROM STREAM <s> [NOW] { "
        "GRAPH ?g { ?s ?p 1 } }"
    )
    lines = show_node(translated(text).pattern).splitlines()
    sources = [line.strip() for line in lines if "(bgp" in line]
    assert sources == ["(bgp (graph <http://e/g>)", "(bgp (window 0)"], (
        "a window hides a static graph of its name"
    )


def test_from_named_chooses_the_graphs_of_the_variable() -> None:
    text = "SELECT * FROM NAMED <http://e/h> { GRAPH ?g { ?s ?p 1 } }"
    assert "http://e/g" not in show_node(translated(text).pattern)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * { GRAPH <http://e/x> { } }",
        "SELECT * FROM <http://e/g> { GRAPH <http://e/g> { ?s ?p ?o } }",
        "SELECT * FROM <http://e/g> { GRAPH ?g { } }",
    ],
)
def test_a_graph_outside_the_dataset_has_no_solution(text: str) -> None:
    query = translated(text)
    assert isinstance(query.pattern, a.Project)
    assert query.pattern.child == a.Values((), ())


@pytest.mark.parametrize("clause", ["FROM <http://e/j>", "FROM NAMED <http://e/j>"])
def test_a_clause_names_a_graph_that_is_there(clause: str) -> None:
    with pytest.raises(UnknownNameError) as caught:
        translated(f"SELECT *\n{clause} {{ ?s ?p ?o }}")
    assert caught.value.message == "There is no static graph <http://e/j>."
    assert "http://e/g" in caught.value.hint
    assert caught.value.span == Span(2, clause.index("<") + 1)


def test_a_clause_that_names_a_stream_says_how_one_is_read() -> None:
    text = "SELECT * FROM <http://e/rooms> { ?s ?p ?o }"
    with pytest.raises(UnknownNameError) as caught:
        translate(parse(text), text=text, graphs=frozenset(), streams=["rooms"])
    assert caught.value.hint == (
        "rooms is a stream. A stream is read through a window: FROM NAMED WINDOW <w> ON <stream> "
        "[RANGE PT10S STEP PT5S], and WINDOW <w> { .. } around the pattern."
    )


def test_a_graph_variable_needs_to_know_the_graphs() -> None:
    with pytest.raises(
        QueryError, match=r"GRAPH \?g goes over the static graphs, and no static data are given"
    ):
        translate(parse("SELECT * { GRAPH ?g { ?s ?p ?o } }"))
    named = translate(parse("SELECT * { GRAPH <http://e/any> { ?s ?p ?o } }"))
    assert "(graph <http://e/any>)" in show_node(named.pattern)
