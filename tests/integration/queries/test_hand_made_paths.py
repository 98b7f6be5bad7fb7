"""Property paths (SPARQL 1.1, sections 9 and 18.4) over windows and static graphs; the reference
judges.

Where pyoxigraph says something else than the specification (``cases.paths``), it is
asked in other words.
"""

from __future__ import annotations

from itertools import cycle

import pytest

from levada.testing.reference import evaluate
from support.generators import Clause
from support.query_dsl import STREAM, TUMBLING, WINDOWS, at, check, query, triples, values

ELEMENTS = (
    at(1000, ":a :q :b . :b :q :c ; :p 1"),
    at(1500, ":c :q :a . :a :p :b . :b :r :a"),
    at(5000, ":d :q :d . :c :p 1, 2 . :a :q :b"),
    at(9000, ":d :q :a . :e :r :e"),
)
STATIC = {
    None: ":a :k :b . :b :k :c . :c :k :a . :c :n :d . :d :n 'x'",
    "http://e/g": ":x :k :y . :y :k :z",
}

OVER_WINDOWS = {
    "a sequence": ("?s :q/:q/:p ?v", ""),
    "a sequence of inverses": ("?x ^:q/^:q ?y", ""),
    "an inverse sequence": ("?x ^(:q/:p) ?y", ""),
    "a doubled inverse": ("?x ^(^:q) ?y", ""),
    "an alternative keeps duplicates": (
        "?x (:q|:p|^:r) ?y",
        "{ ?x :q ?y } UNION { ?x :p ?y } UNION { ?x ^:r ?y }",
    ),
    "a negated set": ("?x !(:q|:r) ?y", ""),
    "a negated set of one": ("?x !:q ?y", ""),
    "a negated inverse": ("?x !^:q ?y", ""),
    "a negated set in both directions": ("?x !(:q|^:p) ?y", "{ ?x !:q ?y } UNION { ?x !^:p ?y }"),
    "a negated set of nothing": ("?x !() ?y", "?x !:none ?y"),
    "one or more": ("?x :q+ ?y", ""),
    "zero or more": ("?x :q* ?y", ""),
    "zero or one": ("?x :q? ?y", ""),
    "in a circle": ("?x :q+ ?x", ""),
    "of no step in a circle": ("?x :q* ?x", ""),
    "from a term": (":a :q+ ?y", ""),
    "to a term": ("?x :q+ :b", ""),
    "between terms": (":a :q+ :c . ?x :r ?y", ""),
    "from a literal": ("1 ^:p/^:q* ?x", ""),
    "nested": ("?x (:q?/:p*)+ ?y", ""),
    "of alternatives": ("?x (:q|^:r|:p)+ ?y", ""),
    "of negated sets": ("?x (!(:p|^:q))* ?y", ""),
    "between patterns": ("?x :p ?v . ?x :q+ ?y . ?y :p ?w", ""),
    "with blank nodes": ("[] :q+ [ :p ?w ]", ""),
    "a given term that is not there": (":none :q* ?y . ?x :p ?v", "{ BIND(:none AS ?y) } ?x :p ?v"),
    "two given terms that differ": (":none :q? :other . ?x :p ?v", "?x :none ?v"),
    "a given term twice": (":none :q* :none . ?x :p ?v", "?x :p ?v"),
}


def _everywhere(
    clause: Clause, groups: list[tuple[str, str]], static: dict[str | None, str]
) -> None:
    """All groups, with what the reference is asked in their place, as queries of one engine, under
    R, I and D in turn.
    """
    outputs = cycle(("RSTREAM", "ISTREAM", "DSTREAM"))
    asked = [
        query(
            "SELECT *", group, windows={"w": clause}, output=output, reference=other, name=f"q{i}"
        )
        for i, ((group, other), output) in enumerate(zip(groups, outputs, strict=False))
    ]
    check(*asked, static=static, silent=True, s=ELEMENTS)


@pytest.mark.parametrize("clause", WINDOWS[1::2])
def test_paths_over_a_window(clause: Clause) -> None:
    inside = [
        [f"WINDOW :w {{ {text} }}" if text else "" for text in pair]
        for pair in OVER_WINDOWS.values()
    ]
    _everywhere(clause, [(group, other) for group, other in inside], {})


def test_each_path_says_something() -> None:
    """A case of which nothing follows tests nothing."""
    quiet = {"two given terms that differ"}
    groups = {
        name: f"WINDOW :w {{ {pair[1] or pair[0]} }}"
        for name, pair in OVER_WINDOWS.items()
        if name not in quiet
    }
    for text in (*groups.values(), *OVER_STATIC.values()):
        asked = query("SELECT *", text, windows={"w": WINDOWS[2]}).reference
        assert evaluate(asked, {STREAM: ELEMENTS}, {g: triples(t) for g, t in STATIC.items()}), text


OVER_STATIC = {
    "one or more": "?x :k+ ?y . WINDOW :w { ?x :p ?v }",
    "zero or more": "?x :k* ?y . WINDOW :w { ?x :p ?v }",
    "of alternatives": "?x (:k|:n)+ ?y . WINDOW :w { ?x :p ?v }",
    "of a sequence": "?x (:k/:k)+ ?y . WINDOW :w { ?x :p ?v }",
    "a negated set": "?x !:k ?y . WINDOW :w { ?z :p ?v }",
    "zero or one in a named graph": "GRAPH :g { ?x :k? ?y } WINDOW :w { ?s :p ?v }",
    "from a term": ":a :k+ ?x . WINDOW :w { ?x :p ?v }",
    "to a term": "?x :k+/:n :d . WINDOW :w { ?x :p ?v }",
    "nested": "?x (:k*/:n)+ ?y . WINDOW :w { ?x :p ?v }",
    "in OPTIONAL": "WINDOW :w { ?x :p ?v } OPTIONAL { ?x :k+/:n ?y }",
    "in MINUS": "WINDOW :w { ?x :q ?v } MINUS { ?x :k/:k/:n ?y }",
    "in EXISTS": (
        "WINDOW :w { ?x :q ?v FILTER EXISTS { ?v :q+ ?x } } FILTER NOT EXISTS { ?x :n+ ?y }"
    ),
    "a union with a window's": "{ ?x :k* ?y } UNION { WINDOW :w { ?x :q* ?y } }",
    "nothing of a window": "?x :k+ ?y",
}


@pytest.mark.parametrize("clause", WINDOWS[::2])
def test_paths_over_static_data(clause: Clause) -> None:
    _everywhere(clause, [(group, "") for group in OVER_STATIC.values()], STATIC)


def test_paths_of_two_windows_meet() -> None:
    windows = {"w": TUMBLING, "v": Clause("range", 5000)}
    check(
        query("SELECT *", "WINDOW :w { ?x :q+ ?y } WINDOW :v { ?y :q*/:p ?z }", windows=windows),
        s=ELEMENTS,
    )


def test_a_term_of_another_window_is_reached_without_a_step_only_where_it_is() -> None:
    """18.4 looks at the terms of the active graph: ``:e`` is in ``:w`` and not in ``:v``."""
    windows = {"w": TUMBLING, "v": TUMBLING}
    group = "WINDOW :w { ?x :q ?y } WINDOW :v { ?x :q* ?z }"
    expected = check(
        query("SELECT *", group, windows=windows, on={"v": "t"}),
        s=ELEMENTS,
        t=(at(1200, ":a :p :z"),),
    )
    assert values(expected["q"], "z")[0] == ["<http://e/a>"]


def test_paths_under_aggregates_and_in_sub_selects() -> None:
    group = (
        "WINDOW :w { ?x :p ?v } { SELECT ?x (COUNT(?y) AS ?n) { WINDOW :w { ?x :q+ ?y } } "
        "GROUP BY ?x }"
    )
    check(query("SELECT ?n (SUM(?v) AS ?sum)", group, "GROUP BY ?n"), s=ELEMENTS)


def test_ask_and_distinct_over_paths() -> None:
    asks = query("ASK", "WINDOW :w { :d :q+ :b }", name="a")
    check(asks, query("SELECT DISTINCT ?y", "WINDOW :w { ?x (:q|:p)/:q ?y }", name="d"), s=ELEMENTS)
