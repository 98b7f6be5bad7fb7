"""f:timestamp(): the latest coming of a triple that a window holds (decision 0012); the reference
judges.
"""

from __future__ import annotations

from typing import Any

import pytest
from test_hand_made_merges import BOTH, merging

from support.generators import CaseQuery
from support.generators.windows import Clause
from support.query_dsl import OUTPUTS, WINDOWS, TwoStreams, at, check, query, values

F = "<http://larkc.eu/csparql/sparql/jena/ext#timestamp>"
ELEMENTS = (
    at(1000, ":a :p 1 ; :q :b . :b :p 2"),
    at(1500, ":a :p 1 . :c :q :a"),
    at(2600, ":b :q :c . :a :q :b"),
    at(5000, ":a :p 1 . :c :p 4"),
    at(5200, ":c :q :a"),
    at(9000, ":a :p 2 ; :q :b"),
)
P, Q = f"{F}(?s, :p, ?v)", f"{F}(?s, :q, ?x)"
_LATER = "BIND(IF({0} > {1}, {0}, {1}) AS ?t)"
CASES = {
    "BIND": ("SELECT *", f"WINDOW :w {{ ?s :p ?v BIND({P} AS ?t) }}", ""),
    "FILTER": ("SELECT ?s ?x", f"WINDOW :w {{ ?s :p ?v . ?s :q ?x FILTER({Q} > {P}) }}", ""),
    "an aggregate": (f"SELECT ?x (MAX({Q}) AS ?m)", "WINDOW :w { ?s :p ?v . ?s :q ?x }",
                     "GROUP BY ?x"),
    "SELECT": (f"SELECT ?s ({P} - 1000 AS ?t)", "WINDOW :w { ?s :p ?v }", ""),
    "ORDER BY": ("SELECT ?s ?v", "WINDOW :w { ?s :p ?v }", f"ORDER BY DESC({P}) ?s ?v LIMIT 2"),
    "HAVING": (
        "SELECT ?s ?x (COUNT(*) AS ?n)", "WINDOW :w { ?s :p ?v . ?s :q ?x }",
        f"GROUP BY ?s ?x HAVING({Q} > 2000)"
    ),
    "what may be unbound": ("SELECT *",
                            f"WINDOW :w {{ ?s :p ?v OPTIONAL {{ ?s :q ?x }} BIND({Q} AS ?t) }}",
                            ""),
    "OPTIONAL's filter": ("SELECT *",
                          f"WINDOW :w {{ ?s :p ?v OPTIONAL {{ ?s :q ?x FILTER({Q} <= {P}) }} }}",
                          ""),
    "terms alone": ("SELECT *", f"WINDOW :w {{ ?s :q ?x BIND({F}(:a, :q, :b) AS ?t) }}", ""),
    "what is in no window": ("SELECT *",
        f"WINDOW :w {{ ?s :p ?v BIND(COALESCE({F}(?s, :r, ?v), 0) AS ?t) }}", ""),
    "within EXISTS": ("SELECT *", f"WINDOW :w {{ ?s :p ?v FILTER EXISTS {{ ?s :q ?x "
                      f"FILTER({Q} < 5000) }} }}", ""),
}  # fmt: skip


def _asked(parts: tuple[str, str, str], clause: Clause, output: str, name: str) -> CaseQuery:
    return query(parts[0], parts[1], parts[2], windows={"w": clause}, output=output, name=name)


@pytest.mark.parametrize("clause", [*WINDOWS, Clause("session", 1200)])
def test_times_in_expressions(clause: Clause) -> None:
    asked = [
        _asked(parts, clause, OUTPUTS[i % 3], f"q{i}") for i, parts in enumerate(CASES.values())
    ]
    check(*asked, silent=True, s=ELEMENTS)


@pytest.mark.parametrize("name", CASES)
def test_each_case_says_something(name: str) -> None:
    check(_asked(CASES[name], WINDOWS[2], "RSTREAM", "q"), s=ELEMENTS)


@pytest.mark.parametrize("clause", WINDOWS)
def test_the_time_of_a_variable_is_the_latest_of_its_triples(clause: Clause) -> None:
    group = "WINDOW :w {{ ?s :q ?x . ?x :q ?y {} }}"
    spelled = group.format(_LATER.format(Q, f"{F}(?x, :q, ?y)"))
    given: dict[str, Any] = {
        "windows": {"w": clause},
        "select": "SELECT ?s ?x ?y ?t",
        "reference": spelled,
    }
    check(query("SELECT *", group.format(f"BIND({F}(?x) AS ?t)"), **given), s=ELEMENTS)


def test_a_variable_that_a_branch_leaves_unbound() -> None:
    group = "WINDOW :w {{ {{ ?s :p ?v }} UNION {{ ?s :q ?x }} {} }}"
    spelled = group.format(
        f"BIND({P} AS ?a) BIND({Q} AS ?b) BIND(COALESCE(IF(?a > ?b, ?a, ?b), ?a, ?b) AS ?t)"
    )
    asked = query(
        "SELECT ?s ?t",
        group.format(f"BIND({F}(?s) AS ?t)"),
        reference=spelled,
        windows={"w": WINDOWS[2]},
    )
    check(asked, s=ELEMENTS)


def test_a_merge_knows_the_latest_of_all_its_windows() -> None:
    """A triple of two streams; static triples have no time."""
    streams: TwoStreams = {
        "s": [at(500, ":a :p 1"), at(600, ":b :p 2"), at(4500, ":a :p 1"), at(8100, ":c :p 5")],
        "t": [
            at(400, ":a :p 1"),
            at(2500, ":a :p 1"),
            at(2600, ":b :p 3"),
            at(6100, ":a :p 1"),
            at(6200, ":d :p 4"),
        ],
    }
    asked = merging("SELECT *", f"?s :p ?v BIND({P} AS ?t)", windows=BOTH)
    one = f"?s :p ?v BIND({F}(?v) AS ?t)"
    again = merging(
        "SELECT *", one, windows=BOTH, name="one", reference=f"?s :p ?v BIND({P} AS ?t)"
    )
    found = check(asked, again, static={None: ":e :p 9 . :a :p 1"}, **streams)
    assert any("unbound" in report and len(set(report)) > 2 for report in values(found["q"], "t"))
    assert found["q"] == found["one"]


def test_the_time_in_one_stream() -> None:
    """The triple came later in the other one."""
    windows = {"w": ("http://e/s", WINDOWS[0]), "v": ("http://e/t", WINDOWS[0])}
    group, spelled = (
        f"?s :p ?v BIND({F}(?v, <http://e/s>) AS ?t)",
        "?s :p ?v BIND(IF(?s = :a, 500, 900) AS ?t)",
    )
    asked = merging("SELECT *", group, windows=windows, reference=spelled)
    check(asked, s=[at(500, ":a :p 1"), at(900, ":b :p 2")], t=[at(1400, ":a :p 1")])
