"""Computes the alternatives of a triple pattern: explicit patterns whose matches entail its matches
(RDFS and OWL by rewriting).

Under a schema each entailed triple, except those of transitive properties, follows from one
explicit triple (s p o):

    head          where
    s q o, o q s  q is a super-property of p, straight or turned (or turned twice: both need an o
                  that is not a literal)
    s type c      c is a class of p's subjects, or the triple is s type d and c is above d
    o type c      c is a class of p's objects
    s p s, o p o  p is subClassOf or subPropertyOf; c p c if something is of class c: in static
                  data, where the schema is

The pattern is unified with each possible head. This gives the constants of the explicit triple and
the place of each variable. A triple with a literal as subject does not exist. Cost: linear in the
alternatives.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from itertools import product

from levada.core.expressions import Var
from levada.core.query_model import TriplePattern
from levada.core.rdf_terms import Iri, Literal, Term
from levada.plan.logical.nodes import Alternative
from levada.plan.logical.ontology_schema import (
    SAME,
    SUB_CLASS,
    SUB_PROPERTY,
    TYPE,
    Regime,
    Schema,
)

# the explicit triple's own subject and object; no other variable starts with two dots
_S, _O = Var("..s"), Var("..o")
_Head = tuple[Var | Term, Term, Var | Term]


@lru_cache(maxsize=256)  # many queries use the same classes
def alternatives(goal: TriplePattern, schema: Schema, *, static: bool) -> tuple[Alternative, ...]:
    """Returns all alternatives of a pattern, itself first; ``static``: schema triples of the graph
    count.

    >>> from levada.plan.logical.ontology_schema import SUB_PROPERTY
    >>> schema = Schema.from_triples([(Iri("e:p"), SUB_PROPERTY, Iri("e:q"))], Regime.RDFS)
    >>> pattern = TriplePattern(Var("x"), Iri("e:q"), Var("y"))
    >>> [str(a.pattern.predicate) for a in alternatives(pattern, schema, static=False)]
    ['<e:q>', '<e:p>']
    """
    distinct: dict[Alternative, None] = {Alternative(goal): None}
    subjects, objects = (
        schema.same_as(t) if not isinstance(t, Var) else (t,) for t in (goal.subject, goal.object)
    )
    for subject, object_ in product(subjects, objects):
        same = TriplePattern(subject, goal.predicate, object_)
        distinct[Alternative(same)] = None
        distinct.update(dict.fromkeys(_rewrite(same, schema, static)))
    return tuple(distinct)


def _rewrite(goal: TriplePattern, schema: Schema, static: bool) -> Iterator[Alternative]:
    if isinstance(goal.predicate, Var):
        yield from _any_property_alternatives(goal, schema)
    elif goal.predicate == TYPE:
        yield from _type_alternatives(goal, schema)
    else:
        for p, turned, resource in sorted(schema.subproperties(goal.predicate), key=str):
            yield from _unify(
                goal, (_S, p, _O), _property_alternatives(goal.predicate, turned), resource
            )
    if static:
        yield from _schema_alternatives(goal, schema)


def _property_alternatives(p: Term, turned: bool) -> _Head:
    return (_O, p, _S) if turned else (_S, p, _O)


def _any_property_alternatives(goal: TriplePattern, schema: Schema) -> Iterator[Alternative]:
    """Yields for a variable predicate the alternatives of all properties and all classes."""
    for p in sorted(schema.entailing_properties(), key=str):
        for q, turned, resource in sorted(schema.superproperties(p), key=str):
            if isinstance(q, Iri) and (q, turned) != (p, False):
                yield from _unify(goal, (_S, p, _O), _property_alternatives(q, turned), resource)
    yield from _type_alternatives(goal, schema)


def _type_alternatives(goal: TriplePattern, schema: Schema) -> Iterator[Alternative]:
    """Yields the alternatives of rdf:type: by classes, and by properties."""
    wanted = None if isinstance(goal.object, Var) else goal.object
    for explicit, subject, c, resource in _classify(wanted, schema):
        yield from _unify(goal, explicit, (subject, TYPE, c), resource)


def _classify(wanted: Term | None, schema: Schema) -> Iterator[tuple[_Head, Var, Term, bool]]:
    """Yields the explicit triples that imply a class (``wanted``, or any) of their subject or
    object.
    """
    for d in sorted(
        schema.classes if wanted is None else schema.subclasses(wanted) - {wanted}, key=str
    ):
        for c in sorted(schema.superclasses(d) - {d}, key=str) if wanted is None else (wanted,):
            yield (_S, TYPE, d), _S, c, False
    for c in sorted(schema.typings, key=str) if wanted is None else (wanted,):
        for p, of_object, resource in schema.typings.get(c, ()):
            yield (_S, p, _O), (_O if of_object else _S), c, resource


def _schema_alternatives(goal: TriplePattern, schema: Schema) -> Iterator[Alternative]:
    """Yields alternatives that follow from schema triples in the graph itself, without
    transitivity.

    A class or property is below itself.
    """
    for p in (SUB_CLASS, SUB_PROPERTY):
        yield from _unify(goal, (_S, p, _O), (_S, p, _S), False)
        yield from _unify(goal, (_S, p, _O), (_O, p, _O), True)
    yield from _unify(goal, (_S, TYPE, _O), (_O, SUB_CLASS, _O), True)
    if goal.predicate == SUB_CLASS or isinstance(goal.predicate, Var):
        constants = [t for t in (goal.subject, goal.object) if not isinstance(t, Var)]
        for explicit, _, c, resource in _classify(constants[0] if constants else None, schema):
            yield from _unify(goal, explicit, (c, SUB_CLASS, c), resource)
    if schema.regime is Regime.OWL:
        yield from _unify(goal, (_S, SAME, _O), (_O, SAME, _S), True)


def _unify(
    goal: TriplePattern, explicit: _Head, head: _Head, resource: bool
) -> Iterator[Alternative]:
    """Yields the alternative whose head equals the goal; none if they cannot be equal."""
    equal = _Equal()
    for wanted, head_term in zip(goal.positions, head, strict=True):
        if not equal.join(wanted, head_term):
            return
    names = [v for v in dict.fromkeys(goal.positions) if isinstance(v, Var)]
    taken: dict[Var | Term, Var] = {}
    # equal variables of the explicit triple get the names of the goal's
    for v in names:
        if isinstance(equal.representative(v), Var):
            taken.setdefault(equal.representative(v), v)
    subject, predicate, object_ = (equal.representative(t) for t in explicit)
    subject, object_ = (taken.get(t, t) if isinstance(t, Var) else t for t in (subject, object_))
    if isinstance(subject, Literal) or (resource and isinstance(object_, Literal)):
        return
    pattern = TriplePattern(subject, predicate, object_)
    values = [(v, taken.get(value, value)) for v in names for value in (equal.representative(v),)]
    binds = tuple((v.name, value) for v, value in values if value != v)
    yield Alternative(pattern, binds, resource and isinstance(object_, Var))


class _Equal:
    """Equations between variables and terms; each has its equal, a term if there is one."""

    def __init__(self) -> None:
        self.up: dict[Var | Term, Var | Term] = {}

    def representative(self, x: Var | Term) -> Var | Term:
        while x in self.up:
            x = self.up[x]
        return x

    def join(self, a: Var | Term, b: Var | Term) -> bool:
        """Makes both equal; False if they are two terms."""
        a, b = self.representative(a), self.representative(b)
        if a == b:
            return True
        if not isinstance(a, Var):
            a, b = b, a
        if not isinstance(a, Var):
            return False
        self.up[a] = b
        return True
