"""Property paths to algebra (SPARQL 1.1, sections 9, 18.2.2.3 and 18.4).

    p            a triple pattern                      p/q        a join over a fresh variable
    ^p           p with its ends turned                p|q        a union, which keeps duplicates
    !(p|^q)      a pattern with a variable for the predicate and a filter on it, for each direction
    p? p* p+     ``Closure``: distinct pairs, over the solutions of one step

A path of no step (``?``, ``*``) connects each term of the graph with itself where both ends are
variables, and a given term with itself, whether the graph has it or not, where one is given. Cost:
linear in the path.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial, reduce

from levada.core.expressions import Call, Const, Expression, Function, Var
from levada.core.query_model import TriplePattern
from levada.core.rdf_terms import Term
from levada.language.sparql import ast
from levada.language.translate.sparql.context import Context
from levada.language.translate.sparql.expressions import operation
from levada.plan.logical.nodes import (
    Bgp,
    Closure,
    Filter,
    Join,
    Node,
    Project,
    Source,
    Union,
    Values,
)

MAX_TESTS = 64
"""The maximum number of forbidden predicates that are compared one by one; more use a list."""

End = Var | Term


def path(start: End, verb: ast.Path, end: End, source: Source, context: Context) -> Node:
    """Returns the algebra of a path between two ends, over a source.

    >>> from levada.errors import Span
    >>> from levada.core.rdf_terms import Iri
    >>> from levada.plan.logical.nodes import InGraph
    >>> inverse = ast.PathInverse(ast.Constant(Iri("a:p"), Span(1, 1)), Span(1, 1))
    >>> context = Context("", {}, None, None)
    >>> path(Var("x"), inverse, Var("y"), InGraph(None), context).patterns[0].subject
    Var(name='y')
    """
    match verb:
        case ast.Constant(term):
            return Bgp(source, (TriplePattern(start, term, end),))
        case ast.PathInverse(inner):
            return path(end, inner, start, source, context)
        case ast.PathSequence(steps):
            return _sequence(start, steps, end, source, context)
        case ast.PathAlternative(choices):
            return _union([path(start, choice, end, source, context) for choice in choices])
        case ast.PathNegated(forbidden):
            return _negate(start, forbidden, end, source, context)
        case ast.PathRepeat():
            return _repeat(start, verb, end, source, context)


def _sequence(
    start: End, steps: Sequence[ast.Path], end: End, source: Source, context: Context
) -> Node:
    """Translates steps one after the other; consecutive triple patterns are one Bgp."""
    between = [Var(context.fresh("p")) for _ in steps[1:]]
    parts = [
        path(a, step, b, source, context)
        for a, step, b in zip([start, *between], steps, [*between, end], strict=True)
    ]
    return reduce(_join, parts)


def _join(left: Node, right: Node) -> Node:
    match left, right:
        case (Bgp(source, patterns), Bgp(_, more)):
            return Bgp(source, patterns + more)
        case (Join(first, Bgp(source, patterns)), Bgp(_, more)):
            return Join(first, Bgp(source, patterns + more))
        case _:
            return Join(left, right)


def _union(branches: Sequence[Node]) -> Node:
    """Returns a balanced tree, so long alternatives stay shallow."""
    if len(branches) == 1:
        return branches[0]
    middle = (len(branches) + 1) // 2
    return Union(_union(branches[:middle]), _union(branches[middle:]))


def _negate(
    start: End, forbidden: Sequence[ast.Path], end: End, source: Source, context: Context
) -> Node:
    """Translates a step by another predicate; with ``^`` also backwards. ``!()`` is a
    step by any.
    """
    forwards = [p.term for p in forbidden if isinstance(p, ast.Constant)]
    inverse = [p.path for p in forbidden if isinstance(p, ast.PathInverse)]
    backwards = [p.term for p in inverse if isinstance(p, ast.Constant)]
    other = partial(_other, source=source, context=context)
    branches = [other(start, forwards, end)] if forwards or not backwards else []
    branches += [other(end, backwards, start)] if backwards else []
    return _union(branches)


def _other(
    start: End, forbidden: Sequence[Term], end: End, source: Source, context: Context
) -> Node:
    predicate = Var(context.fresh("p"))
    step = Bgp(source, (TriplePattern(start, predicate, end),))
    if len(forbidden) > MAX_TESTS:
        terms = [Const(term) for term in dict.fromkeys(forbidden)]
        return Filter(step, Call(Function.NOT_IN, (predicate, *terms)))
    tests: list[Expression] = [
        Call(Function.NOT, (Call(Function.SAME_TERM, (predicate, Const(term))),))
        for term in forbidden
    ]
    return Filter(step, operation(Function.AND, tests)) if tests else step


def _repeat(start: End, verb: ast.PathRepeat, end: End, source: Source, context: Context) -> Node:
    """Translates ``?``, ``*`` and ``+``: a closure between distinct variables, restricted to the
    ends.
    """
    first = start.name if isinstance(start, Var) else context.fresh("p")
    last = end.name if isinstance(end, Var) and end != start else context.fresh("p")
    end_terms = tuple(None if isinstance(e, Var) else e for e in (start, end))
    step = path(Var(first), verb.path, Var(last), source, context)
    none = verb.times != "+" or (any(end_terms) and _may_stay(verb.path))
    zero = _zero(first, end_terms, source, context) if none else None
    closure = Closure(step, zero, first, last, verb.times != "?", (end_terms[0], end_terms[1]))
    if isinstance(end, Var) and end == start:
        return Filter(closure, Call(Function.SAME_TERM, (Var(first), Var(last))))
    return closure


def _may_stay(verb: ast.Path) -> bool:
    """Whether one step from a given term may lead to itself without the graph: ``(p*)+``.

    A sequence reads the graph in between.
    """
    match verb:
        case ast.PathRepeat(inner, times):
            return times != "+" or _may_stay(inner)
        case ast.PathAlternative(choices):
            return any(map(_may_stay, choices))
        case ast.PathInverse(inner):
            return _may_stay(inner)
        case _:
            return False


def _zero(name: str, end_terms: Sequence[Term | None], source: Source, context: Context) -> Node:
    """Returns the terms that a path of no step connects with themselves, as a variable.

    They are the given term (none for two different ones), else all terms of the graph.
    """
    terms = {term for term in end_terms if term is not None}
    if terms:
        return Values((name,), tuple((term,) for term in terms) if len(terms) == 1 else ())
    p, q, r, t = (Var(context.fresh("p")) for _ in range(4))
    subjects = Bgp(source, (TriplePattern(Var(name), p, q),))
    objects = Bgp(source, (TriplePattern(r, t, Var(name)),))
    return Union(Project(subjects, (name,)), Project(objects, (name,)))
