"""CONSTRUCT: blank nodes of the template, the short form (SPARQL 1.1, 16.2); the reference judges
up to their names.
"""

from __future__ import annotations

import re

import pytest

from levada.testing.reference_model import Report
from support.generators import Case, Clause
from support.generators.paths import spelled
from support.query_dsl import TUMBLING, WINDOWS, at, check, query, triples
from support.stepped_runs import run_case

ELEMENTS = (
    at(1000, ":a :p 1, 2 ; :q :b . :b :q :c"),
    at(1500, ":b :p 1"),
    at(5000, ":a :q :a ; :p 1"),
)
IS, OF, HAS = (f"<http://e/{name}>" for name in ("is", "of", "has"))

TEMPLATES = {
    "a node for each solution": (("_:n", OF, "?s"), ("_:n", HAS, "?v")),
    "two nodes": (("_:n", OF, "?s"), ("_:m", HAS, "?v"), ("_:n", IS, "_:m")),
    "a node of equal solutions": (("_:n", OF, "?s"),),
    "a node without a variable": (("_:n", IS, OF),),
    "a node in a circle": (("_:n", IS, "_:n"), ("_:n", OF, "?v")),
    "what is no triple is left out": (("_:n", "?v", "?s"), ("_:n", OF, "?s"), ("?v", IS, "_:n")),
}


@pytest.mark.parametrize("name", TEMPLATES)
def test_blank_nodes_are_fresh_in_each_solution(name: str) -> None:
    template = TEMPLATES[name]
    head = "CONSTRUCT { " + " . ".join(" ".join(t) for t in template) + " }"
    select = "SELECT " + (
        " ".join(sorted({p for t in template for p in t if p[0] == "?"})) or "(1 AS ?one)"
    )
    asked = [
        query(head, "WINDOW :w { ?s :p ?v }", windows={"w": w}, output=o, name=f"{o[0]}{i}",
              select=select, template=template)
        for i, w in enumerate(WINDOWS)
        for o in ("RSTREAM", "ISTREAM", "DSTREAM")
    ]  # fmt: skip
    expected = check(*asked, s=ELEMENTS, silent=True)
    assert all(expected[f"R{i}"] for i in range(len(WINDOWS)))


def test_lists_and_brackets_stand_in_templates() -> None:
    template = (
        ("?s", HAS, "_:1"), ("_:1", "<http://www.w3.org/1999/02/22-rdf-syntax-ns#first>", "?v"),
        ("_:1", "<http://www.w3.org/1999/02/22-rdf-syntax-ns#rest>", "<http://www.w3.org/1999/02/22-rdf-syntax-ns#nil>"),
        ("_:2", OF, "?s"),
    )  # fmt: skip
    head = "CONSTRUCT { ?s :has (?v) . [ :of ?s ] }"
    check(
        query(head, "WINDOW :w { ?s :p ?v }", select="SELECT ?s ?v", template=template), s=ELEMENTS
    )


def _graphs(case: Case, rows: int, partitions: int) -> list[frozenset[str] | None]:
    return [r.graph for r in run_case(case, epoch_rows=rows, partitions=partitions)["q"]]


def test_a_node_has_the_same_name_however_it_is_made() -> None:
    asked = query(
        "CONSTRUCT { _:n :of ?s ; :has ?v }",
        "WINDOW :w { ?s :p ?v }",
        windows={"w": Clause("range", 3000)},
    )
    case = Case({"http://e/s": ELEMENTS}, (asked,))
    first = _graphs(case, 1000, 1)
    assert first == _graphs(case, 1, 3)
    names = [set(re.findall(r"_:\w+", " ".join(graph or ()))) for graph in first]
    assert all(names[:-1]) and not set.intersection(*names[:2]), "each report has nodes of its own"


def test_the_short_form_reads_the_default_graph() -> None:
    """``CONSTRUCT WHERE`` has no place for WINDOW: its pattern reads static data, at every report
    of the query's windows.
    """
    static: dict[str | None, tuple[str, ...]] = {None: triples(":a :q :b . :b :q :c . :c :r 'x'")}
    asked = query("SELECT *", "WINDOW :w { ?s :p ?v }")
    text = (
        asked.text.replace("SELECT *", "CONSTRUCT").partition("WHERE")[0]
        + "WHERE { ?x :q [ :q ?y ] }"
    )
    case = Case({"http://e/s": ELEMENTS}, (asked,), 0, static)
    case = Case(case.streams, (type(asked)("q", text, "rspql", {}, asked.reference),), 0, static)
    (report, _) = run_case(case)["q"]
    assert isinstance(report, Report) and report.graph is not None and report.time == TUMBLING.range
    named = sorted(re.sub(r"_:\w+", "_:n", triple) for triple in report.graph)
    assert named == ["<http://e/a> <http://e/q> _:n", "_:n <http://e/q> <http://e/c>"]


ANYWHERE = {
    "alone": "WINDOW ?in { ?s :p ?v }",
    "of two patterns": "WINDOW ?in { ?s :p ?v . ?s :q ?o }",
    "beside a window": "WINDOW :w { ?s :p ?v } WINDOW ?in { ?s :q ?o }",
    "twice": "WINDOW ?in { ?s :p ?v } WINDOW ?in { ?s :q ?o }",
    "with a filter": "WINDOW ?in { ?s :p ?v } FILTER(?v > 1 && ?in = :v)",
    "with a path": "WINDOW ?in { ?s :q+ ?o }",
    "its name as data": "WINDOW ?in { ?s :in ?in }",
    "in OPTIONAL": "WINDOW :w { ?s :q ?o } OPTIONAL { WINDOW ?in { ?s :p ?v } }",
    "in EXISTS": "WINDOW ?in { ?s :q ?o } FILTER EXISTS { WINDOW ?in { ?o :q ?u } }",
    "named before": "VALUES ?in { :v :nowhere } WINDOW ?in { ?s :p ?v }",
}


@pytest.mark.parametrize(
    "kinds",
    [(TUMBLING, Clause("step", 5000, 2000)), (Clause("range", 3000), Clause("count", count=4))],
)
def test_a_variable_window_is_each_window_in_turn(kinds: tuple[Clause, Clause]) -> None:
    windows = dict(zip("wv", kinds, strict=True))
    asked = [
        query(
            "SELECT *",
            group,
            windows=windows,
            on={"v": "t"},
            name=f"q{i}",
            reference=spelled(group, (":w", ":v")),
        )
        for i, group in enumerate(ANYWHERE.values())
    ]
    other = (at(1200, ":a :p 3 ; :q :a . :b :in :v, :w"), at(4500, ":b :p 4 . :a :in :v"))
    check(*asked, static={"http://e/g": ":a :p 9 . :a :in :g"}, s=ELEMENTS, t=other)
