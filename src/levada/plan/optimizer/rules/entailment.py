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

from dataclasses import dataclass, field

from levada.core.event_time import WindowKind
from levada.core.expressions import Call, Const, Expression, Function, Var
from levada.core.query_model import TriplePattern
from levada.core.rdf_terms import Iri, Term
from levada.plan.logical import nodes as a
from levada.plan.logical.entailment_alternatives import alternatives
from levada.plan.logical.ontology_schema import (
    SAME,
    SUB_CLASS,
    SUB_PROPERTY,
    Reached,
    Regime,
    Schema,
)
from levada.plan.optimizer.rule import Context
from levada.plan.optimizer.rules.entailed_union import distinct_union
from levada.plan.optimizer.traversal import rewrite_query

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
