"""C-SPARQL's default graph: patterns over the RDF merge of windows and static data, by hand; the
reference judges.
"""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from levada.testing.reference_model import ReferenceQuery
from support.generators import CaseQuery
from support.generators.windows import Clause, compact
from support.query_dsl import PREFIX, TwoStreams, at, check, values

TUMBLING, SLIDING = Clause("step", 4000, 4000), Clause("step", 6000, 2000)
S, T = "http://e/s", "http://e/t"


def merging(
    head: str,
    group: str,
    tail: str = "",
    *,
    windows: Mapping[str, tuple[str, Clause]],
    graphs: tuple[str, ...] | None = None,
    named: str | None = None,
    output: str = "",
    name: str = "q",
    reference: str = "",
) -> CaseQuery:
    """A query in C-SPARQL, with an ``output`` in SPARQLstream; ``named`` is the stream of a window
    that GRAPH reads.

    ``reference`` is the group that the reference is asked where it is another.
    """
    word = "NAMED STREAM" if output else "STREAM"
    clauses = [f"FROM {word} <{on}> {compact(clause)}" for on, clause in windows.values()]
    clauses += [f"FROM <{g}>" for g in graphs or ()]
    over = {f"urn:{w}": (on, clause.window({})) for w, (on, clause) in windows.items()}
    merged = tuple(over)
    if named:
        clauses.append(f"FROM NAMED STREAM <{named}> {compact(TUMBLING)}")
        over[named] = (named, TUMBLING.window({}))
    register = "" if output else f"REGISTER QUERY {name} AS"
    shown = head.replace("SELECT", f"SELECT {output}")
    text = "\n".join([f"{PREFIX}{register}", shown, *clauses, f"WHERE {{ {group} }} {tail}"])
    asked = ReferenceQuery(
        f"{PREFIX}{head} WHERE {{ {reference or group} }} {tail}",
        over,
        output or "RSTREAM",
        graphs=graphs,
        merged=merged,
    )
    return CaseQuery(name, text, "sparqlstream" if output else "csparql", {}, asked)


BOTH = {"w": (S, TUMBLING), "v": (T, SLIDING)}
ELEMENTS: TwoStreams = {
    "s": [at(500, ":a :p 1"), at(600, ":b :p 2"), at(4500, ":a :p 1"), at(8100, ":c :q :a")],
    "t": [
        at(400, ":a :p 1"),
        at(2500, ":a :q :b"),
        at(2500, ":b :p 3"),
        at(6100, ":a :p 1"),
        at(6200, ":d :p 4"),
    ],
}


def test_a_triple_in_two_windows_counts_once() -> None:
    found = check(
        merging("SELECT ?s (COUNT(*) AS ?n)", "?s :p ?v", "GROUP BY ?s", windows=BOTH), **ELEMENTS
    )
    counts = {n for report in values(found["q"], "n") for n in report}
    assert counts == {
        '"1"^^<http://www.w3.org/2001/XMLSchema#integer>',
        '"2"^^<http://www.w3.org/2001/XMLSchema#integer>',
    }


@pytest.mark.parametrize(
    ("head", "group", "tail"),
    [
        ("SELECT ?s ?v", "?s :p ?v", ""),
        ("SELECT ?s ?k ?o", "?s ?k ?o", ""),
        ("SELECT ?s ?u", "?s :q ?x . ?x :p ?u", ""),
        ("SELECT (COUNT(*) AS ?n)", ":a :p 1", ""),
        ("ASK", ":a :p 1 . ?s :q ?x", ""),
        ("SELECT ?s ?x", "?s :p ?v OPTIONAL { ?s :q ?x }", ""),
        ("SELECT ?s", "?s :p ?v MINUS { ?s :q ?x }", ""),
        ("SELECT ?s", "?s :p ?v FILTER NOT EXISTS { ?s :q ?x }", ""),
        ("SELECT ?s", "{ ?s :p ?v } UNION { ?s :q ?x }", ""),
        ("SELECT ?s (SUM(?v) AS ?n)", "?s :p ?v", "GROUP BY ?s HAVING(SUM(?v) > 1)"),
        ("SELECT DISTINCT ?v", "?s :p ?v", "ORDER BY ?v LIMIT 2"),
    ],
)
def test_patterns_over_two_windows_and_static_data(head: str, group: str, tail: str) -> None:
    """Static data hold a triple that both streams have, one that nothing else has, and one that
    meets a stream's.
    """
    static = {None: ":a :p 1 . :e :p 5 . :b :q :a", "http://e/g": ":a :p 1 . :b :p 2"}
    check(
        merging(head, group, tail, windows=BOTH, name="default"),
        merging(head, group, tail, windows=BOTH, graphs=("http://e/g",), name="one"),
        merging(
            head, group, tail, windows={"w": (S, TUMBLING)}, graphs=("http://e/g",), name="alone"
        ),
        static=static,
        silent=True,
        **ELEMENTS,
    )


@pytest.mark.parametrize("output", ["RSTREAM", "ISTREAM", "DSTREAM"])
def test_differences_of_a_merge(output: str) -> None:
    windows = {
        "w": (S, Clause("range", 3000)),
        "v": (T, Clause("count", count=2)),
        "u": (S, SLIDING),
    }
    check(
        merging("SELECT ?s ?v", "?s :p ?v", windows=windows, output=output),
        static={None: ":a :p 1"},
        **ELEMENTS,
    )


def test_a_named_stream_is_a_graph_and_no_part_of_the_merge() -> None:
    asked = merging(
        "SELECT ?s ?x",
        "?s :p ?v GRAPH <http://e/t> { ?s :q ?x }",
        windows={"w": (S, TUMBLING)},
        named=T,
    )
    check(asked, s=[at(2600, ":a :p 1")], t=[at(2500, ":a :q :b"), at(2600, ":b :p 1")])


def test_windows_of_one_stream_overlap() -> None:
    windows = {"w": (S, TUMBLING), "v": (S, SLIDING), "u": (S, Clause("step", 10000, 1000))}
    elements = sorted(ELEMENTS["s"] + ELEMENTS["t"][-2:], key=lambda e: e.ts)
    check(merging("SELECT ?s ?t", "?s :p ?v . ?t :p ?v", windows=windows), s=elements)


def test_graph_with_a_variable_goes_over_static_graphs_and_windows_that_are_graphs() -> None:
    static: dict[str | None, str] = {"http://e/g": ":a :p 7 . :e :p 8"}
    group = "?s :p ?v GRAPH ?g { ?s :p ?x }"
    each = " UNION ".join(f"{{ GRAPH :{g} {{ ?s :p ?x }} VALUES ?g {{ :{g} }} }}" for g in "gt")
    query = merging(
        "SELECT ?s ?g ?x",
        group,
        windows={"w": (S, TUMBLING)},
        named=T,
        reference=f"?s :p ?v {each}",
    )
    found = check(query, static=static, **ELEMENTS)
    assert {g for report in values(found["q"], "g") for g in report} == {
        "<http://e/g>",
        "<http://e/t>",
    }
