"""DESCRIBE: the concise bounded description, over windows and the default graph; the reference
judges.

The reference selects the triples of what up to two blank nodes lead to: the data lead no further
but in a circle.
"""

from __future__ import annotations

from dataclasses import replace

from levada.testing.reference_model import ReferenceQuery
from support.generators import CaseQuery, Clause
from support.query_dsl import WINDOWS, at, check, query

ELEMENTS = (
    at(1000, ":a :p 1, 2 ; :q _:x . _:x :in :b ; :q _:y . _:y :in :c . :b :p 3"),
    at(1500, ":c :p 1 . _:z :p 7 ; :q _:z . _:x :in :d"),
    at(5000, ":b :q :a, _:v . _:v :q _:u . _:u :q _:v"),
)
STATIC = {
    None: ":a :k :z . :b :k _:s . _:s :n 'x' ; :k :a . :z :n 'z'",
    "http://e/g": ":a :k :never",
}
TRIPLE = (("?s", "?p", "?o"),)

DESCRIBED = {
    "an IRI": ("DESCRIBE :a", "", "BIND(:a AS ?r)"),
    "IRIs": ("DESCRIBE :a :z :nowhere", "", "VALUES ?r { :a :z }"),
    "a variable": ("DESCRIBE ?x", "WINDOW :w { ?x :p 3 }", "WINDOW :w { ?r :p 3 }"),
    "blank nodes": ("DESCRIBE ?x", "WINDOW :w { ?x :p 7 }", "WINDOW :w { ?r :p 7 }"),
    "a variable and an IRI": (
        "DESCRIBE ?x :c",
        "WINDOW :w { ?x :in :b }",
        "{ WINDOW :w { ?r :in :b } } UNION { BIND(:c AS ?r) }",
    ),
    "all variables": ("DESCRIBE *", "?x :k ?y", "{ ?r :k ?y } UNION { ?x :k ?r }"),
    "what may be unbound": (
        "DESCRIBE ?y",
        "WINDOW :w { ?x :p ?v OPTIONAL { ?x :q ?y } }",
        "WINDOW :w { ?x :p ?v . ?x :q ?r }",
    ),
    "the first": ("DESCRIBE ?x", "WINDOW :w { ?x :p ?v } ORDER BY DESC(?v) LIMIT 1",
                  "{ SELECT ?r { WINDOW :w { ?r :p ?v } } ORDER BY DESC(?v) LIMIT 1 }"),
}  # fmt: skip


def _triples(s: str, p: str, o: str) -> str:
    return f"{{ {{ {s} {p} {o} }} UNION {{ WINDOW :w {{ {s} {p} {o} }} }} }}"


def _asked(name: str, clause: Clause, output: str) -> CaseQuery:
    """The reference's group: what is described, what it leads to, the triples of these."""
    head, group, resources = DESCRIBED[name]
    once = f"{_triples('?r', '?p1', '?b')} FILTER(isBlank(?b))"
    subjects = (
        f"{{ BIND(?r AS ?s) }} UNION {{ {once} BIND(?b AS ?s) }} "
        f"UNION {{ {once} {_triples('?b', '?p2', '?s')} FILTER(isBlank(?s)) }}"
    )
    subjects = subjects.replace("{ BIND(?r AS ?s) }", f"{{ {resources} BIND(?r AS ?s) }}").replace(
        f"{{ {once}", f"{{ {resources} {once}"
    )
    group, _, tail = group.partition(" ORDER")
    described = query(
        head, group, tail and f"ORDER{tail}", windows={"w": clause}, output=output,
        select="SELECT DISTINCT ?s ?p ?o", template=TRIPLE,
        reference=f"{subjects} {_triples('?s', '?p', '?o')}",
        name=f"q{list(DESCRIBED).index(name)}",
    )  # fmt: skip
    asked = described.reference
    assert isinstance(asked, ReferenceQuery)
    return replace(
        described,
        reference=replace(
            asked, sparql=asked.sparql.removesuffix(f"ORDER{tail}") if tail else asked.sparql
        ),
    )


def test_descriptions_as_they_change() -> None:
    outputs = ("ISTREAM", "DSTREAM")
    asked = [_asked(name, WINDOWS[1], outputs[i % 2]) for i, name in enumerate(DESCRIBED)]
    check(*asked, static=STATIC, silent=True, s=ELEMENTS)


def test_each_description_says_something() -> None:
    check(*(_asked(name, WINDOWS[2], "RSTREAM") for name in DESCRIBED), static=STATIC, s=ELEMENTS)


def test_a_description_needs_no_pattern() -> None:
    asked = _asked("an IRI", WINDOWS[0], "RSTREAM")
    short = replace(asked, text=asked.text.partition("WHERE")[0])
    check(short, static=STATIC, s=ELEMENTS)
