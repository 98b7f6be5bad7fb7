"""Random cases of entailment: small ontologies, with cycles, over the world of the other cases.

To that world come classes K, L, M, which streams say of subjects, and properties: u and w between
subjects, t of numbers. An ontology never puts a property of subjects below one of numbers or
strings, so that variables hold what the scope says; p may be symmetric or have an inverse all the
same, since a number is no subject. Three in five cases have the ontology as static data.
"""

from __future__ import annotations

from dataclasses import replace

from hypothesis import strategies as st

from levada.testing.entailment import (
    CLASS,
    DOMAIN,
    EQUAL_CLASS,
    EQUAL_PROPERTY,
    INVERSE,
    PROPERTY,
    RANGE,
    SAME,
    SYMMETRIC,
    TRANSITIVE,
    TYPE,
)
from levada.testing.reference_model import ReferenceQuery
from support.generators.case import Case, CaseQuery
from support.generators.elements import BASES, LATENESSES, elements
from support.generators.queries import queries
from support.generators.rspql import STREAMS
from support.generators.static import static_queries
from support.generators.vocabulary import OVERLAP, STATIC, SUBJECTS, TRIPLES, iri

_CLASSES = ("K", "L", "M")
_BETWEEN = ("q", "u", "w")


def _said(predicate: str, *pairs: tuple[str, str]) -> list[str]:
    return [f"{iri(a)} {predicate} {iri(b)}" for a, b in pairs]


_SCHEMA = (
    *_said(CLASS, *((a, b) for a in _CLASSES for b in _CLASSES)),
    *_said(
        PROPERTY,
        *((a, b) for a in _BETWEEN for b in _BETWEEN if a != b),
        ("p", "t"),
        ("q", "u"),
        ("u", "q"),
    ),
    *_said(DOMAIN, *((p, c) for p in ("p", "q", "u") for c in _CLASSES), ("r", "K"), ("t", "M")),
    *_said(RANGE, *((p, c) for p in ("p", "q", "u") for c in _CLASSES), ("r", "L")),
)
_MORE = (
    *_said(INVERSE, ("q", "u"), ("u", "w"), ("w", "q"), ("t", "p"), ("q", "q")),
    *(
        f"{iri(p)} {TYPE} {kind}"
        for p in ("q", "u", "w", "p")
        for kind in (SYMMETRIC, TRANSITIVE, TRANSITIVE)
    ),
    *_said(
        SAME,
        ("a", "b"),
        ("b", "c"),
        ("a", "d"),
        ("K", "M"),
        ("q", "u"),
        ("p", "t"),
        ("c", "d"),
        ("a", "K"),
    ),
    *_said(EQUAL_CLASS, ("K", "M"), ("L", "K")),
    *_said(EQUAL_PROPERTY, ("q", "w"), ("t", "p")),
)
_STREAMED = (
    *TRIPLES,
    *(f"{iri(s)} {TYPE} {iri(c)}" for s in SUBJECTS for c in _CLASSES),
    *(f"{iri(s)} {iri(p)} {iri(o)}" for p in ("u", "w") for s in SUBJECTS for o in SUBJECTS[1:]),
)  # fmt: skip
_STATIC: dict[str | None, tuple[str, ...]] = {
    **STATIC,
    None: (
        *(STATIC[None]),
        *_STREAMED[-15:-9],
        f"{iri('a')} {iri('u')} {iri('b')}",
        f"{iri('b')} {iri('w')} {iri('c')}",
    ),
    "http://e/h": (*STATIC["http://e/h"], f"{iri('b')} {TYPE} {iri('L')}"),
    OVERLAP: (*STATIC[OVERLAP], f"{iri('b')} {TYPE} {iri('K')}"),
}
_TURNS: tuple[tuple[tuple[str, str], ...], ...] = (
    (),
    ((" :q ", " :u "),),
    ((" :q ?", " a ?"), (" :q :b", " a :L")),
    ((" :q :b", " a :K"), (" :q ?", " :w ?")),
    ((" :p ?", " :t ?"), (" :kind ?", " a ?"), (" :kind :K", " a :M")),
    ((" :q ?y", " a ?y"), (" :kind ?c", " <http://www.w3.org/2000/01/rdf-schema#subClassOf> ?c")),
    ((" :q ?x", " a :K . ?x :u ?z"),),
)
"""What of a query's text is put in place of what: the other cases' patterns over classes and the
further properties.
"""


_SPELLED = ("(:p|:q)", "!(:q|^:p)", "(:q|^:q)/", " :q* ?y", ":q? :b")
"""Paths that are spelled out for the reference, so that its text has other patterns than the
query's.
"""


_NEGATED = (
    ("?s !(:p|:r) ?x", "?s :q/:u ?x"),
    ("?s !(:q|^:p) ?o", "?s :u ?o"),
    ("{ ?s !:q ?o } UNION { ?o !:p ?s }", "?s :u ?o"),
)
"""Negated sets as other paths: of two triples that differ in the predicate pyoxigraph makes one
solution, Levada two.
"""


@st.composite
def ontologies(draw: st.DrawFn, regime: str) -> tuple[str, ...]:
    """One to six triples of a schema."""
    pool = _SCHEMA if regime == "rdfs" else (*_SCHEMA, *_MORE, *_MORE)
    return tuple(draw(st.lists(st.sampled_from(pool), min_size=1, max_size=6, unique=True)))


@st.composite
def entailment_cases(draw: st.DrawFn, most: int = 3) -> Case:
    """A case of one to ``most`` queries under a regime, sometimes beside one without windows."""
    regime = draw(st.sampled_from(("rdfs", "owl", "owl")))
    said = draw(ontologies(regime))
    loaded = draw(st.sampled_from((None, None, "http://e/g", "apart", "apart")))
    static = dict(_STATIC)
    if loaded != "apart":
        static[loaded] = (*static[loaded], *said)
    schema = said if loaded == "apart" else tuple(t for triples in static.values() for t in triples)
    chosen = [draw(queries(f"q{i}", STREAMS)) for i in range(draw(st.integers(1, most)))]
    if draw(st.integers(0, 2)) == 2:
        chosen.append(draw(static_queries("once")))
    asked = tuple(_under(query, regime, schema, draw(st.sampled_from(_TURNS))) for query in chosen)
    names = sorted({stream for query in asked for stream, _ in query.reference.windows.values()})
    gap = all(query.allows_gap for query in asked)
    lateness, base = draw(st.sampled_from(LATENESSES)), draw(st.sampled_from(BASES))
    streams = {
        name: draw(
            elements(lateness=lateness, base=base, gap=gap, least=0 if i else 1, triples=_STREAMED)
        )
        for i, name in enumerate(names)
    }
    return Case(
        dict(streams), asked, lateness, static, ontology=said if loaded == "apart" else None
    )


def _under(
    query: CaseQuery, regime: str, schema: tuple[str, ...], turns: tuple[tuple[str, str], ...]
) -> CaseQuery:
    """The query under a regime, over other properties and classes."""
    assert isinstance(query.reference, ReferenceQuery), "a query over RDF"
    text, sparql = query.text, query.reference.sparql
    for before, after in _NEGATED:
        text, sparql = text.replace(before, after), sparql.replace(before, after)
    for before, after in () if any(path in text for path in _SPELLED) else turns:
        text, sparql = text.replace(before, after), sparql.replace(before, after)
    asked = replace(query.reference, sparql=sparql, entailment=regime, ontology=schema)
    return replace(
        query, text=text, options={**query.options, "entailment": regime}, reference=asked
    )
