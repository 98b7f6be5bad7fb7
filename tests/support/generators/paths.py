"""Random property paths, and what the reference is asked in their place.

pyoxigraph (0.5) differs from the specification in two ways, so that some paths have another text
there: ``p|q`` is a union, which keeps duplicates (18.2.2.3), and it drops them; a path of no step
connects a given term with itself also where the graph does not have it (18.4), and it asks the
graph.
"""

from __future__ import annotations

from collections.abc import Iterable

from support.generators.vocabulary import Scope

_SPELLED = {
    "?s (:p|:q) ?o": "{ ?s :p ?o } UNION { ?s :q ?o }",
    "?s !(:q|^:p) ?o": "{ ?s !:q ?o } UNION { ?o !:p ?s }",
    "?s (:q|^:q)/:p ?v": "{ ?s :q/:p ?v } UNION { ?s ^:q/:p ?v }",
    ":a :q* ?y": "{ SELECT DISTINCT ?y { { :a :q* ?y } UNION { BIND(:a AS ?y) } } }",
    "?x :q? :b": "{ SELECT DISTINCT ?x { { ?x :q? :b } UNION { BIND(:b AS ?x) } } }",
    ":a (:q*/:p?)* ?s": "{ SELECT DISTINCT ?s { { :a (:q*/:p?)* ?s } UNION { BIND(:a AS ?s) } } }",
}

PATHS: tuple[tuple[str, Scope], ...] = (
    ("?s :q/:p ?v", {"s": "node", "v": "number"}),
    ("?s (:p|:q) ?o", {"s": "node", "o": "any"}),
    ("?s !(:p|:r) ?x", {"s": "node", "x": "node"}),
    ("?s !(:q|^:p) ?o", {"s": "any", "o": "any"}),
    ("?s (:q|^:q)/:p ?v", {"s": "node", "v": "number"}),
    ("?s :q+ ?x", {"s": "node", "x": "node"}),
    ("?s :q* ?x", {"s": "any", "x": "any"}),
    ("?x :q? ?y", {"x": "any", "y": "any"}),
    ("?s (:q/:q)+ ?x", {"s": "node", "x": "node"}),
    ("?x (:q|^:p)* ?y", {"x": "any", "y": "any"}),
    ("?s :q+/:p ?v", {"s": "node", "v": "number"}),
    ("?s :q+ ?s", {"s": "node"}),
    ("?x :q+ :b", {"x": "node"}),
    (":a :q* ?y", {"y": "node"}),
    ("?x :q? :b", {"x": "node"}),
    (":a (:q*/:p?)* ?s", {"s": "any"}),
)
STATIC_PATHS: tuple[tuple[str, Scope], ...] = (
    ("?s :kind/:name ?n .", {"s": "node", "n": "string"}),
    ("?s (:kind|:name)+ ?d .", {"s": "node", "d": "any"}),
    ("?s (:kind|:name)* ?d .", {"s": "any", "d": "any"}),
    ("?x :kind/^:kind ?s .", {"x": "node", "s": "node"}),
    ("GRAPH :g { ?s :rank? ?j }", {"s": "any", "j": "any"}),
)


def spelled(body: str, windows: Iterable[str] = ()) -> str:
    """A group's text with its paths spelled out where the reference needs them so.

    A variable window ranges over the query's ``windows``, and not over the other graphs that the
    reference has.

    >>> spelled("WINDOW :w { ?s (:p|:q) ?o }")
    'WINDOW :w { { ?s :p ?o } UNION { ?s :q ?o } }'
    """
    body = body.replace("WINDOW ?in", f"VALUES ?in {{ {' '.join(windows)} }} WINDOW ?in")
    for text, other in _SPELLED.items():
        body = body.replace(text, other)
    return body
