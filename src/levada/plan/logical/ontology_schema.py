"""The schema of an ontology's classes and properties, as graphs whose reachability is the closure.

    classes      c -> d: an instance of c is one of d
                 (subClassOf, equivalentClass, sameAs)
    properties   p -> (q, turned): x p y entails x q y, or y q x
                 (subPropertyOf, equivalentProperty, inverseOf, Symmetric.., sameAs)
    domains, ranges, transitive properties, classes of terms that are the same

There are two regimes. RDFS is RDF 1.1 Semantics, 9.2.1: rdfs2, 3, 5, 6, 7, 9, 10, 11, without the
axiomatic triples and their consequences. OWL adds of OWL 2 RL: prp-inv1/2, prp-symp, prp-trp,
prp-eqp1/2, cax-eqc1/2, eq-sym, eq-trans, eq-rep-s/p/o. The vocabulary of the schema is fixed: an
ontology with statements about rdf:type or rdfs:subClassOf is refused with the name. Other axioms of
OWL 2 (restrictions, chains, imports) entail nothing here: ``UnusedAxioms`` counts them.

Cost: linear in the ontology; reachability from a class or property is computed once, on demand.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import NamedTuple, TypeVar

from levada.core.count_text import count_text
from levada.core.rdf_terms import RDF, Iri, Literal, Term
from levada.errors import UsageError, near

RDFS = "http://www.w3.org/2000/01/rdf-schema#"
OWL = "http://www.w3.org/2002/07/owl#"
TYPE = Iri(RDF + "type")
SUB_CLASS, SUB_PROPERTY = Iri(RDFS + "subClassOf"), Iri(RDFS + "subPropertyOf")
DOMAIN, RANGE = Iri(RDFS + "domain"), Iri(RDFS + "range")
INVERSE, SAME = Iri(OWL + "inverseOf"), Iri(OWL + "sameAs")
EQUAL_CLASS, EQUAL_PROPERTY = Iri(OWL + "equivalentClass"), Iri(OWL + "equivalentProperty")
SYMMETRIC, TRANSITIVE = Iri(OWL + "SymmetricProperty"), Iri(OWL + "TransitiveProperty")

_RDFS_SCHEMA = (SUB_CLASS, SUB_PROPERTY, DOMAIN, RANGE)
_OWL_SCHEMA = (INVERSE, SAME, EQUAL_CLASS, EQUAL_PROPERTY)
_UNUSED_PREDICATES = (
    "imports onProperty onProperties propertyChainAxiom unionOf intersectionOf complementOf oneOf "
    "disjointWith disjointUnionOf propertyDisjointWith hasKey differentFrom datatypeComplementOf "
    "onDatatype"
)
_UNUSED_CLASSES = (
    "FunctionalProperty InverseFunctionalProperty ReflexiveProperty IrreflexiveProperty "
    "AsymmetricProperty AllDisjointClasses AllDisjointProperties AllDifferent "
    "NegativePropertyAssertion"
)
_RESERVED = (TYPE, *_RDFS_SCHEMA, *_OWL_SCHEMA)

Statement = tuple[Term, Term, Term]
Turned = tuple[Term, bool]
"""A property, and whether its subject and object are exchanged."""
Reached = tuple[Term, bool, bool]
"""A turned property, and whether any step on its way is turned: such steps exclude triples whose
object is a literal."""


class Regime(StrEnum):
    """An entailment regime: the triples that a graph entails."""

    NONE = "none"
    RDFS = "rdfs"
    OWL = "owl"


def regime_of(word: str) -> Regime:
    """Returns the regime of this name. Raises ``UsageError``.

    >>> regime_of("rdfs").name
    'RDFS'
    """
    if word not in list(Regime):
        raise UsageError(f"There is no entailment {word}.", hint=near(word, list(Regime)))
    return Regime(word)


def predicates_of(regime: Regime) -> tuple[Iri, ...]:
    """Returns the predicates of an ontology's triples that count.

    For rdf:type only triples with an object in ``kinds_of`` count.
    """
    return {
        Regime.NONE: (),
        Regime.RDFS: _RDFS_SCHEMA,
        Regime.OWL: (*_RDFS_SCHEMA, *_OWL_SCHEMA, TYPE),
    }[regime]


def kinds_of(regime: Regime) -> tuple[Iri, ...]:
    """Returns the classes of properties that count."""
    return (SYMMETRIC, TRANSITIVE) if regime is Regime.OWL else ()


def unused_predicates(regime: Regime) -> tuple[Iri, ...]:
    """Returns the predicates of axioms of OWL 2 that entail nothing under a regime."""
    others = _OWL_SCHEMA if regime is Regime.RDFS else ()
    return (*(Iri(OWL + word) for word in _UNUSED_PREDICATES.split()), *others)


def unused_kinds(regime: Regime) -> tuple[Iri, ...]:
    """Returns the classes of axioms, and of properties, that entail nothing under a regime."""
    others = kinds_of(Regime.OWL) if regime is Regime.RDFS else ()
    return (*(Iri(OWL + word) for word in _UNUSED_CLASSES.split()), *others)


@dataclass(frozen=True)
class UnusedAxioms:
    """The axioms of a file that entail nothing under a regime: their number by predicate or
    class.
    """

    file: str
    regime: Regime
    counts: Mapping[Iri, int]

    @property
    def message(self) -> str:
        """A sentence with the axioms.

        >>> UnusedAxioms("o.ttl", Regime.OWL, {Iri(OWL + "imports"): 2}).message
        'The ontology o.ttl has 2 axioms that entailment owl does not use: owl:imports 2.'
        """
        listed = ", ".join(f"{_short(iri)} {n}" for iri, n in self.counts.items())
        axioms = count_text(sum(self.counts.values()), "axiom")
        entailment = f"entailment {self.regime}"
        return f"The ontology {self.file} has {axioms} that {entailment} does not use: {listed}."

    @property
    def hint(self) -> str:
        """The regime that uses some of them, or what to do without one."""
        others = {*_OWL_SCHEMA, *kinds_of(Regime.OWL)} & self.counts.keys()
        if self.regime is not Regime.RDFS or not others:
            return "Put what follows from them into the data, or into simpler axioms."
        return f"Entailment owl uses {', '.join(sorted(map(_short, others)))}."


def _short(iri: Iri) -> str:
    return f"owl:{iri.value.removeprefix(OWL)}"


class Typing(NamedTuple):
    """The statement that a property's triples imply the class of their subject (or ``of_object``).

    ``resource``: only if the object is not a literal.
    """

    property: Term
    of_object: bool
    resource: bool


@dataclass(frozen=True, eq=False)
class Schema:
    """The graphs; ``alike`` are the classes of sameAs, each of at least two terms."""

    regime: Regime
    classes: Mapping[Term, frozenset[Term]]
    properties: Mapping[Term, frozenset[Turned]]
    domains: Mapping[Term, frozenset[Term]]
    ranges: Mapping[Term, frozenset[Term]]
    transitive: frozenset[Term]
    alike: tuple[tuple[Term, ...], ...]
    _closures: dict[tuple[str, Term], frozenset[Term]] = field(default_factory=dict)

    @staticmethod
    def from_triples(statements: Iterable[Statement], regime: Regime) -> Schema:
        """Returns the schema of an ontology's triples under a regime.

        Triples without one of ``predicates_of`` do not count. Raises ``UsageError`` if the ontology
        has statements about the schema's own vocabulary.

        >>> a, b = Iri("e:A"), Iri("e:B")
        >>> schema = Schema.from_triples([(a, SUB_CLASS, b), (b, SUB_CLASS, a)], Regime.RDFS)
        >>> schema.superclasses(a) == {a, b}
        True
        """
        said: dict[Term, list[tuple[Term, Term]]] = defaultdict(list)
        known = {*predicates_of(regime)}
        for s, p, o in statements:
            if p in known and not isinstance(s, Literal):
                said[p].append((s, o))
        alike = _components(said[SAME])
        same = [(a, b) for group in alike for a in group for b in group if a != b]
        schema = Schema(
            regime,
            _edges([*said[SUB_CLASS], *_symmetric_pairs(said[EQUAL_CLASS]), *same]),
            _edges(_turns(said, same)),
            _edges(said[DOMAIN]),
            _edges(said[RANGE]),
            frozenset(s for s, o in said[TYPE] if o == TRANSITIVE),
            alike,
        )
        schema._check_vocabulary()
        return schema

    def _check_vocabulary(self) -> None:
        """Refuses an ontology that would change the fixed rules."""
        leads = {q for turns in self.properties.values() for q, _ in turns}
        for term in _RESERVED:
            if term in leads or any(
                term in table for table in (self.properties, self.domains, self.ranges)
            ):
                raise UsageError(
                    f"The ontology makes {term} a sub-property, an inverse or the like, or gives "
                    "it a domain or range, which is not supported.",
                    hint="Leave such triples out of the ontology.",
                )
        classes = {
            c
            for table in (self.classes, self.domains, self.ranges)
            for targets in table.values()
            for c in targets
        }
        for kind in kinds_of(self.regime):
            if kind in classes:
                raise UsageError(
                    f"The ontology has sub-classes of {kind}, or makes it a domain or range, "
                    "which is not supported.",
                    hint=f"Say of each property that it is a {kind}.",
                )

    def superclasses(self, c: Term) -> frozenset[Term]:
        """Returns the classes of each instance of ``c``, ``c`` among them."""
        return self._closure("above", c, self.classes)

    def subclasses(self, c: Term) -> frozenset[Term]:
        """Returns the classes whose instances are instances of ``c``, ``c`` among them."""
        return self._closure("below", c, self._lower)

    def _closure(
        self, word: str, c: Term, edges: Mapping[Term, frozenset[Term]]
    ) -> frozenset[Term]:
        if (word, c) not in self._closures:
            seen, waiting = {c}, [c]
            while waiting:
                new = edges.get(waiting.pop(), frozenset()) - seen
                seen |= new
                waiting += new
            self._closures[word, c] = frozenset(seen)
        return self._closures[word, c]

    @cached_property
    def _lower(self) -> dict[Term, frozenset[Term]]:
        return _edges((d, c) for c, above in self.classes.items() for d in above)

    @cached_property
    def _sources(self) -> dict[Term, frozenset[Turned]]:
        return _edges(
            (q, (p, turned)) for p, turns in self.properties.items() for q, turned in turns
        )

    def entailing_properties(self) -> frozenset[Term]:
        """Returns the properties (IRIs) whose triples entail others by the property alone."""
        terms = {*self.properties, *self.domains, *self.ranges}
        return frozenset(p for p in terms if isinstance(p, Iri))

    def superproperties(self, p: Term) -> frozenset[Reached]:
        """Returns the properties that a triple of ``p`` entails, ``p`` itself among them."""
        return _turn(p, self.properties)

    def subproperties(self, q: Term) -> frozenset[Reached]:
        """Returns the properties (IRIs) whose triples entail one of ``q``, ``q`` itself
        among them.
        """
        return frozenset(turn for turn in _turn(q, self._sources) if isinstance(turn[0], Iri))

    @cached_property
    def typings(self) -> dict[Term, tuple[Typing, ...]]:
        """The properties whose triples imply an instance of a class, by class."""
        typings_by_class: dict[Term, list[Typing]] = defaultdict(list)
        for p in sorted(self.entailing_properties(), key=str):
            for c, turned, resource in sorted(self._types_from(p), key=str):
                typings_by_class[c].append(Typing(p, turned, resource))
        return {c: tuple(typings) for c, typings in typings_by_class.items()}

    def _types_from(self, p: Term) -> Iterator[tuple[Term, bool, bool]]:
        """Returns the classes that follow from a triple of ``p``.

        Each has a flag for the object, and one for objects that are not literals only.
        """
        plain, resource, objects = set[Term](), set[Term](), set[Term]()
        for q, turned, no_literal in self.superproperties(p):
            subject, other = (self.ranges, self.domains) if turned else (self.domains, self.ranges)
            (resource if no_literal else plain).update(subject.get(q, ()))
            objects |= other.get(q, frozenset())
        plain, resource, objects = (
            {d for c in cs for d in self.superclasses(c)} for cs in (plain, resource, objects)
        )
        yield from ((c, False, False) for c in plain)
        yield from ((c, False, True) for c in resource - plain)
        yield from ((c, True, True) for c in objects)

    @cached_property
    def _group(self) -> dict[Term, tuple[Term, ...]]:
        return {term: group for group in self.alike for term in group}

    def same_as(self, term: Term) -> tuple[Term, ...]:
        """Returns the terms that are the same as this one, itself first."""
        return (term, *(other for other in self._group.get(term, ()) if other != term))


def _turn(p: Term, edges: Mapping[Term, frozenset[Turned]]) -> frozenset[Reached]:
    """Returns the reachable properties.

    A property that is reachable without a turn is not repeated with one.
    """
    seen: set[Reached] = {(p, False, False)}
    waiting = list(seen)
    while waiting:
        q, turned, ever = waiting.pop()
        new = {(r, turned != turn, ever or turn) for r, turn in edges.get(q, ())} - seen
        seen |= new
        waiting += new
    return frozenset(
        reached for reached in seen if not (reached[2] and (reached[0], reached[1], False) in seen)
    )


def _symmetric_pairs(pairs: Iterable[tuple[Term, Term]]) -> list[tuple[Term, Term]]:
    return [pair for a, b in pairs for pair in ((a, b), (b, a))]


def _turns(
    said: Mapping[Term, list[tuple[Term, Term]]], same: Iterable[tuple[Term, Term]]
) -> Iterable[tuple[Term, Turned]]:  # fmt: skip
    """Yields the edges between properties; a turned edge exchanges subject and object."""
    for p, q in [
        *said.get(SUB_PROPERTY, ()),
        *_symmetric_pairs(said.get(EQUAL_PROPERTY, ())),
        *same,
    ]:
        yield p, (q, False)
    for p, q in _symmetric_pairs(said.get(INVERSE, ())):
        yield p, (q, True)
    for p, kind in said.get(TYPE, ()):
        if kind == SYMMETRIC:
            yield p, (p, True)


_Value = TypeVar("_Value")


def _edges(pairs: Iterable[tuple[Term, _Value]]) -> dict[Term, frozenset[_Value]]:
    targets: dict[Term, set[_Value]] = defaultdict(set)
    for a, b in pairs:
        targets[a].add(b)
    return {a: frozenset(bs) for a, bs in targets.items()}


def _components(pairs: Iterable[tuple[Term, Term]]) -> tuple[tuple[Term, ...], ...]:
    """Returns the classes of the least equivalence with these pairs; literals have no equals."""
    edges = _edges(
        pair
        for pair in _symmetric_pairs(p for p in pairs if not any(isinstance(t, Literal) for t in p))
    )
    seen: set[Term] = set()
    components = []
    for term in edges:
        if term in seen:
            continue
        group, waiting = {term}, [term]
        while waiting:
            new = edges[waiting.pop()] - group
            group |= new
            waiting += new
        seen |= group
        if len(group) > 1:
            components.append(tuple(sorted(group, key=str)))
    return tuple(sorted(components, key=str))
