"""The triples that a graph entails, rule by rule to a fixpoint: the reference's independent
definition of RDFS and of OWL 2 RL's property rules.

Triples are texts separated by blanks. A rule examines all pairs of triples, so this is for graphs
of dozens. It shares nothing with the engine, which rewrites patterns. Names of rules are those of
RDF 1.1 Semantics, 9.2.1, and of OWL 2 Profiles, 4.3:

    schema   rdfs5, rdfs11; OWL: scm-eqc1, scm-eqp1, eq-sym, eq-trans, eq-rep-s/p/o, prp-inv as a
             symmetric statement
    graph    rdfs2, rdfs3, rdfs7, rdfs9 with the schema; OWL: prp-inv1/2, prp-symp, prp-trp,
             eq-rep-s/p/o
    static   a graph of static data also by its own schema triples: rdfs5, rdfs11, rdfs6, rdfs10 (a
             term that is below or above another one, or has instances, is below itself); OWL:
             eq-sym, eq-trans
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache

from levada.core.rdf_terms import RDF

Triple = tuple[str, str, str]
Triples = set[Triple]
Rule = Callable[[Triples, Triples], Iterator[Triple]]

_RDFS, _OWL = "http://www.w3.org/2000/01/rdf-schema#", "http://www.w3.org/2002/07/owl#"
TYPE = f"<{RDF}type>"
CLASS, PROPERTY = f"<{_RDFS}subClassOf>", f"<{_RDFS}subPropertyOf>"
DOMAIN, RANGE = f"<{_RDFS}domain>", f"<{_RDFS}range>"
INVERSE, SAME = f"<{_OWL}inverseOf>", f"<{_OWL}sameAs>"
EQUAL_CLASS, EQUAL_PROPERTY = f"<{_OWL}equivalentClass>", f"<{_OWL}equivalentProperty>"
SYMMETRIC, TRANSITIVE = f"<{_OWL}SymmetricProperty>", f"<{_OWL}TransitiveProperty>"


def entailed_triples(
    triples: Iterable[str], ontology: Iterable[str], regime: str, *, static: bool
) -> set[str]:
    """Returns the triples that a graph entails under a regime (none, rdfs, owl), and its triples.

    >>> data, ontology = [f"<e:a> {TYPE} <e:A>"], [f"<e:A> {CLASS} <e:B>"]
    >>> triples = entailed_triples(data, ontology, "rdfs", static=False)
    >>> sorted(text.split()[2] for text in triples)
    ['<e:A>', '<e:B>']
    """
    graph = {_split(text) for text in triples}
    if regime == "none":
        return {" ".join(triple) for triple in graph}
    schema = _schema(frozenset(ontology), regime)
    rules: list[Rule] = [_by_property, _by_class]
    rules += [_own_schema] if static else []
    if regime == "owl":
        rules += [_inverse, _transitive, _replace_equals]
        rules += [_own_sameness] if static else []
    return {" ".join(triple) for triple in _close_under_rules(graph, set(schema), rules)}


@lru_cache(maxsize=256)
def _schema(ontology: frozenset[str], regime: str) -> frozenset[Triple]:
    said = {_split(text) for text in ontology}
    rules: list[Rule] = [_hierarchy]
    if regime == "owl":
        rules += [_equivalences, _own_sameness, _replace_equals_in_schema]
    return frozenset(_close_under_rules(said, said, rules))


def _close_under_rules(graph: Triples, schema: Triples, rules: Iterable[Rule]) -> Triples:
    """Returns the least superset to which the rules add nothing.

    A triple has no literal as subject and an IRI as predicate.
    """
    while True:
        entailed = {
            (s, p, o)
            for rule in rules
            for s, p, o in rule(graph, schema)
            if s[0] != '"' and p[0] == "<"
        }
        if entailed <= graph:
            return graph
        graph |= entailed


def _split(text: str) -> Triple:
    s, p, o = text.split(" ", 2)
    return s, p, o


def _pairs_of(graph: Triples, predicate: str) -> list[tuple[str, str]]:
    return [(s, o) for s, p, o in graph if p == predicate]


def _by_property(graph: Triples, schema: Triples) -> Iterator[Triple]:
    for s, p, o in graph:
        for x, rule, y in schema:
            if x == p and rule == PROPERTY:  # rdfs7
                yield s, y, o
            if x == p and rule == DOMAIN:  # rdfs2
                yield s, TYPE, y
            if x == p and rule == RANGE:  # rdfs3
                yield o, TYPE, y


def _by_class(graph: Triples, schema: Triples) -> Iterator[Triple]:
    for s, c in _pairs_of(graph, TYPE):  # rdfs9
        for d, e in _pairs_of(schema, CLASS):
            if c == d:
                yield s, TYPE, e


def _hierarchy(graph: Triples, _: Triples) -> Iterator[Triple]:
    for predicate in (CLASS, PROPERTY):  # rdfs11, rdfs5
        pairs = _pairs_of(graph, predicate)
        for a, b in pairs:
            for c, d in pairs:
                if b == c:
                    yield a, predicate, d


def _own_schema(graph: Triples, schema: Triples) -> Iterator[Triple]:
    yield from _hierarchy(graph, schema)
    for predicate in (CLASS, PROPERTY):
        for a, b in _pairs_of(graph, predicate):
            yield a, predicate, a
            yield b, predicate, b
    for _, c in _pairs_of(graph, TYPE):
        yield c, CLASS, c


def _equivalences(graph: Triples, _: Triples) -> Iterator[Triple]:
    for equal, below in ((EQUAL_CLASS, CLASS), (EQUAL_PROPERTY, PROPERTY)):
        for a, b in _pairs_of(graph, equal):
            yield a, below, b
            yield b, below, a


def _inverse(graph: Triples, schema: Triples) -> Iterator[Triple]:
    for s, p, o in graph:
        for q, r in _pairs_of(schema, INVERSE):  # prp-inv1, prp-inv2
            if p == q:
                yield o, r, s
            if p == r:
                yield o, q, s
        if (p, TYPE, SYMMETRIC) in schema:  # prp-symp
            yield o, p, s


def _transitive(graph: Triples, schema: Triples) -> Iterator[Triple]:
    for p in {x for x, kind in _pairs_of(schema, TYPE) if kind == TRANSITIVE}:  # prp-trp
        pairs = _pairs_of(graph, p)
        for a, b in pairs:
            for c, d in pairs:
                if b == c:
                    yield a, p, d


def _own_sameness(graph: Triples, _: Triples) -> Iterator[Triple]:
    pairs = _pairs_of(graph, SAME)
    for a, b in pairs:
        yield b, SAME, a  # eq-sym
        for c, d in pairs:  # eq-trans
            if b == c:
                yield a, SAME, d


def _replace_equals(graph: Triples, schema: Triples) -> Iterator[Triple]:
    for s, p, o in graph:
        for a, b in _pairs_of(schema, SAME):  # eq-rep-s, eq-rep-p, eq-rep-o
            if a in (s, p, o):
                yield (b if s == a else s), p, o
                yield s, (b if p == a else p), o
                yield s, p, (b if o == a else o)


def _replace_equals_in_schema(graph: Triples, _: Triples) -> Iterator[Triple]:
    yield from _replace_equals(graph, set(graph))
