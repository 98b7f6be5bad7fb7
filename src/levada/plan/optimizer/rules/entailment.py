"""Rewrites for entailment: each triple pattern becomes its alternatives over explicit triples
(``plan.logical.entailment_alternatives``).

The patterns of a query range over the least graph that contains its source's triples and is closed
under the regime's rules with the ontology as their schema. A pattern that needs one explicit triple
is an ``Entailed`` leaf. A transitive property needs several: it is a ``Closure`` of such a leaf. A
super-property of a transitive one is the distinct pairs of both. Over a count window, whose rows
have weights, the alternatives are a union that is made distinct at the report.

Invariant: the solutions of a pattern are a set, as those of a triple pattern over a graph. Patterns
without entailed matches stay unchanged. Cost: linear in the alternatives.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import product

from levada.core.event_time import WindowKind
from levada.core.expressions import Call, Const, Expression, Function, Var
from levada.core.query_model import TriplePattern
from levada.core.rdf_terms import Iri, Literal, Term
from levada.plan.logical import nodes as a
from levada.plan.logical.nodes import Alternative
from levada.plan.logical.ontology_schema import (
    SAME,
    SUB_CLASS,
    SUB_PROPERTY,
    TYPE,
    Reached,
    Regime,
    Schema,
)
from levada.plan.logical.variables import possible_variables
from levada.plan.optimizer.rule import Context, rewrite_query

# Replaces an entailed pattern by explicit ones: distinct solutions of the union of its
# alternatives.
#
# This is for sources whose rows are weighted changes (count windows), where rows cannot be made a
# set on arrival. Alternatives that differ only in constants are one pattern, joined with the rows
# of its constants. So the size follows from the forms of alternatives, not from the ontology.


_PLACES = ("..cs", "..cp", "..co")
_THERE, _OTHER = "..there", "..other"
_Row = tuple[Term, ...]


def distinct_union(node: a.Entailed) -> a.Node:
    """Returns the meaning of an entailed pattern, without ``Entailed``."""
    names = tuple(dict.fromkeys(v.name for v in node.pattern.positions if isinstance(v, Var)))
    forms: dict[a.Alternative, list[tuple[a.Alternative, _Row]]] = {}
    for alternative in node.alternatives:
        form, row = _form(alternative)
        forms.setdefault(form, []).append((alternative, row))
    whole: a.Node | None = None
    for form, members in forms.items():
        form_node = (
            _explicit(node, members[0][0])
            if len(members) == 1
            else _join(node, form, [row for _, row in members])
        )
        branch = a.Project(_spread(node, members[0][0], form_node), names)
        whole = branch if whole is None else a.Union(whole, branch)
    assert whole is not None, "a pattern is an alternative of its own"
    if names:
        return a.Distinct(whole)
    return a.Project(
        a.Distinct(a.Project(a.Extend(whole, _THERE, Const(Iri(_THERE))), (_THERE,))), (_THERE,)
    )


def _form(alternative: a.Alternative) -> tuple[a.Alternative, _Row]:
    """Returns an alternative with variables in place of its terms, and these terms."""
    pairs = list(zip(_PLACES, alternative.pattern.positions, strict=True))
    pattern = TriplePattern(*(t if isinstance(t, Var) else Var(place) for place, t in pairs))
    binds = tuple(
        (name, value if isinstance(value, Var) else Var(name)) for name, value in alternative.binds
    )
    terms = (*alternative.pattern.positions, *(value for _, value in alternative.binds))
    return a.Alternative(pattern, binds, alternative.resource), tuple(
        t for t in terms if not isinstance(t, Var)
    )


def _explicit(node: a.Entailed, alternative: a.Alternative) -> a.Node:
    """Returns the solutions of one alternative."""
    whole = _resources(a.Bgp(node.source, (alternative.pattern,)), alternative)
    for name, value in alternative.binds:
        whole = a.Extend(whole, name, value if isinstance(value, Var) else Const(value))
    return whole


def _join(node: a.Entailed, form: a.Alternative, rows: list[_Row]) -> a.Node:
    """Returns the solutions of all alternatives of a form: its pattern joined with their terms."""
    names = [v.name for v in form.pattern.positions if isinstance(v, Var) and v.name in _PLACES]
    names += [name for name, value in form.binds if value == Var(name)]
    whole = _resources(a.Bgp(node.source, (form.pattern,)), form)
    whole = a.Join(whole, a.Values(tuple(names), tuple(rows)))
    for name, value in form.binds:
        if isinstance(value, Var) and value.name != name:
            whole = a.Extend(whole, name, value)
    return whole


def _resources(whole: a.Node, alternative: a.Alternative) -> a.Node:
    if not alternative.resource or not isinstance(alternative.pattern.object, Var):
        return whole
    return a.Filter(
        whole, Call(Function.NOT, (Call(Function.IS_LITERAL, (alternative.pattern.object,)),))
    )


def _spread(node: a.Entailed, alternative: a.Alternative, whole: a.Node) -> a.Node:
    """Adds solutions in which a subject or object is replaced by each of its equals."""
    bound = {name for name, value in alternative.binds if not isinstance(value, Var)}
    pairs = tuple((x, y) for group in node.alike for x in group for y in group if x != y)
    for place in (node.pattern.subject, node.pattern.object):
        if pairs and isinstance(place, Var) and place.name not in bound:
            others = tuple(sorted(possible_variables(whole) - {place.name}))
            moved = a.Project(a.Extend(whole, _OTHER, place), (*others, _OTHER))
            spread = a.Project(
                a.Join(moved, a.Values((_OTHER, place.name), pairs)), (*others, place.name)
            )
            whole = a.Union(whole, spread)
    return whole


# Computes the alternatives of a triple pattern: explicit patterns whose matches entail its matches
# (RDFS and OWL by rewriting).
#
# Under a schema each entailed triple, except those of transitive properties, follows from one
# explicit triple (s p o):
#
#     head          where
#     s q o, o q s  q is a super-property of p, straight or turned (or turned twice: both need an o
#                   that is not a literal)
#     s type c      c is a class of p's subjects, or the triple is s type d and c is above d
#     o type c      c is a class of p's objects
#     s p s, o p o  p is subClassOf or subPropertyOf; c p c if something is of class c: in static
#                   data, where the schema is
#
# The pattern is unified with each possible head. This gives the constants of the explicit triple
# and the place of each variable. A triple with a literal as subject does not exist. Cost: linear in
# the alternatives.


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


Position = Var | Term


def entail_patterns(query: a.Query, context: Context) -> a.Query:
    """Returns the query over the entailed triples of its sources, if entailment is requested."""
    return query if context.schema is None else entail(query, context.schema)


def entail(query: a.Query, schema: Schema) -> a.Query:
    """Returns the query over the entailed triples of its sources, in terms of explicit triples.

    >>> pattern = a.TriplePattern(Var("x"), Iri("e:q"), Var("y"))
    >>> bgp = a.Bgp(a.InGraph(None), (pattern,))
    >>> query = a.Query(a.Form.SELECT, bgp, ("x",), (), a.Output.RSTREAM)
    >>> schema = Schema.from_triples([(Iri("e:p"), SUB_PROPERTY, Iri("e:q"))], Regime.RDFS)
    >>> len(entail(query, schema).pattern.alternatives)
    2
    """
    return rewrite_query(query, _Rewriting(query, schema).node)


@dataclass(slots=True)
class _Rewriting:
    """The rewriting of one query; counts fresh variables."""

    query: a.Query
    schema: Schema
    _fresh: int = 0
    _paths: dict[bool, dict[Term, list[Reached]]] = field(default_factory=dict)

    def node(self, node: a.Node) -> a.Node:
        if not isinstance(node, a.Bgp):
            return node
        rewritten = [self.pattern(node.source, pattern) for pattern in node.patterns]
        plain = tuple(p for part in rewritten if isinstance(part, a.Bgp) for p in part.patterns)
        others = [part for part in rewritten if not isinstance(part, a.Bgp)]
        if not others:
            return node
        parts = [a.Bgp(node.source, plain), *others] if plain else others
        whole = parts[0]
        for part in parts[1:]:
            whole = a.Join(whole, part)
        return whole

    def pattern(self, source: a.Source, goal: TriplePattern) -> a.Node:
        """Returns the replacement of a triple pattern."""
        if self.schema.alike and (again := _repeat(goal)) is not None:
            return self._split_repeated(source, goal, again)
        closed = self._transitive_sources(source)
        if not isinstance(goal.predicate, Var):
            return (
                self._pairs(source, goal) if goal.predicate in closed else self._leaf(source, goal)
            )
        if not closed:
            return self._leaf(source, goal)
        name = goal.predicate
        base: a.Node = self._leaf(source, goal)
        for q in closed:
            base = a.Filter(base, Call(Function.NOT, (_same(name, Const(q)),)))
        for q in closed:
            pairs = self._pairs(source, _with(goal, name, q))
            base = a.Union(base, a.Project(a.Extend(pairs, name.name, Const(q)), _names(goal)))
        return base

    def _split_repeated(self, source: a.Source, goal: TriplePattern, place: int) -> a.Node:
        """Replaces a repeated variable by two equal ones, since each may be any of the terms
        ``alike``.
        """
        other, positions = self._new(), list(goal.positions)
        first = positions[place]
        positions[place] = other
        return a.Project(
            a.Filter(self.pattern(source, TriplePattern(*positions)), _same(first, other)),
            _names(goal),
        )

    def _leaf(self, source: a.Source, goal: TriplePattern) -> a.Node:
        """Returns the leaf of all matches that follow from one explicit triple."""
        rewritings = alternatives(goal, self.schema, static=_is_static(source))
        free = any(isinstance(t, Var) for t in (goal.subject, goal.object))
        alike = self.schema.alike if free else ()
        if len(rewritings) == 1 and not alike:
            return a.Bgp(source, (goal,))
        if self._counts(source):
            return distinct_union(a.Entailed(source, goal, rewritings, alike))
        return a.Entailed(source, goal, rewritings, alike)

    def _pairs(self, source: a.Source, goal: TriplePattern) -> a.Node:
        """Returns the pairs of a property that is transitive or has a transitive one below it."""
        q = goal.predicate
        assert not isinstance(q, Var), "a property"
        start, end = self._end(goal.subject), self._end(goal.object, goal.subject)
        ends = tuple(None if isinstance(t, Var) else t for t in (goal.subject, goal.object))
        below = self._transitive_sources(source)[q]
        if (q, False, False) in below:
            pairs: a.Node = self._closure(source, start, q, end, (ends[0], ends[1]))
        else:
            pairs = self._leaf(source, TriplePattern(start, q, end))
            for p, turned, resource in below:
                first, last = (end, start) if turned else (start, end)
                chain: a.Node = self._closure(source, first, p, last, (None, None))
                if resource:  # a chain may end in a literal, which cannot be a subject
                    chain = a.Filter(
                        chain, Call(Function.NOT, (Call(Function.IS_LITERAL, (last,)),))
                    )
                pairs = a.Union(pairs, chain)
            pairs = a.Closure(pairs, None, start.name, end.name, False, (ends[0], ends[1]))
        if goal.subject == goal.object and isinstance(goal.subject, Var):
            return a.Project(a.Filter(pairs, _same(start, end)), (start.name,))
        return pairs

    def _closure(
        self, source: a.Source, start: Var, p: Term, end: Var, ends: tuple[Term | None, Term | None]
    ) -> a.Closure:
        step = self._leaf(source, TriplePattern(start, p, end))
        return a.Closure(step, None, start.name, end.name, True, ends)

    def _transitive_sources(self, source: a.Source) -> dict[Term, list[Reached]]:
        """Returns the properties that need several triples, with the transitive ones that entail
        them.

        A transitive property may entail another one straight or turned.
        """
        static = _is_static(source)
        if static not in self._paths:
            transitive = set(self.schema.transitive)
            if static:
                transitive |= {SUB_CLASS, SUB_PROPERTY} | (
                    {SAME} if self.schema.regime is Regime.OWL else set()
                )
            reached_by: dict[Term, list[Reached]] = {}
            for p in sorted((t for t in transitive if isinstance(t, Iri)), key=str):
                for q, turned, resource in sorted(self.schema.superproperties(p), key=str):
                    if isinstance(q, Iri):
                        reached_by.setdefault(q, []).append((p, turned, resource))
            self._paths[static] = reached_by
        return self._paths[static]

    def _counts(self, source: a.Source) -> bool:
        match source:
            case a.InWindow(index):
                return self.query.windows[index].window.kind is WindowKind.COUNT
            case a.InMerge(windows, _):
                return any(self._counts(a.InWindow(index)) for index in windows)
            case _:
                return False

    def _end(self, position: Position, other: Position | None = None) -> Var:
        return position if isinstance(position, Var) and position != other else self._new()

    def _new(self) -> Var:
        self._fresh += 1
        return Var(f".t{self._fresh}")


def _is_static(source: a.Source) -> bool:
    """Whether schema triples of a source count: those of streams do not."""
    return isinstance(source, a.InGraph) or (isinstance(source, a.InMerge) and source.static)


def _repeat(goal: TriplePattern) -> int | None:
    """Returns the last place of a repeated variable."""
    positions = goal.positions
    places = [
        i for i in range(3) if isinstance(positions[i], Var) and positions[i] in positions[:i]
    ]
    return places[-1] if places else None


def _with(goal: TriplePattern, name: Var, q: Term) -> TriplePattern:
    """Returns the pattern with a term for a variable."""
    return TriplePattern(*(q if position == name else position for position in goal.positions))


def _names(goal: TriplePattern) -> tuple[str, ...]:
    return tuple(dict.fromkeys(v.name for v in goal.positions if isinstance(v, Var)))


def _same(left: Position, right: Expression) -> Expression:
    assert isinstance(left, Var), "a variable"
    return Call(Function.SAME_TERM, (left, right))
