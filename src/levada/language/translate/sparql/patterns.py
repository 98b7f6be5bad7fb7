"""Translates group graph patterns to algebra (SPARQL 1.1, section 18.2.2), with WINDOW and GRAPH as
the source of the leaves.

A group is the join of its elements from left to right; its filters hold for the whole group and
come last. A basic graph pattern is as large as possible: consecutive triples over one source, also
across a FILTER (18.2.2.5), are one ``Bgp``. Patterns outside WINDOW and GRAPH read the default
graph; for nested ones the innermost names the source.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import reduce
from itertools import groupby

from levada.core.expressions import Expression, Function, Var
from levada.core.query_model import TriplePattern
from levada.core.rdf_terms import Iri, Term
from levada.errors import QueryError, Span, UnknownNameError, near
from levada.language.sparql import ast
from levada.language.translate.sparql.context import Context, Marked
from levada.language.translate.sparql.exists import (
    MOST_SPLITS,
    Tested,
    TooLittleError,
    add_marks,
    as_exists,
    conjuncts,
    exists,
    optional_side,
    split_by_binding,
)
from levada.language.translate.sparql.expressions import operation, with_marks
from levada.language.translate.sparql.paths import path
from levada.language.translate.sparql.solution_modifiers import level
from levada.language.translate.sparql.timestamps import resolve_stamp
from levada.language.translate.sparql.windows import each_stream, iri
from levada.plan.logical.nodes import (
    Bgp,
    Extend,
    Filter,
    InGraph,
    InWindow,
    Join,
    LeftJoin,
    Minus,
    Node,
    Source,
    Union,
    Unit,
    Values,
)

NOTHING = Values((), ())
"""No solution."""


def pattern(group: ast.Group, source: Source, context: Context) -> Node:
    """Returns the algebra of a group that reads ``source`` if it names no other."""
    with context.reading(source):
        node, condition, tests, marks = _parts(group, source, context)
    if condition is not None:
        node = Filter(add_marks(node, marks, context), condition)
    for tested in tests:
        node = exists(node, tested, context)
    return node


def join(left: Node, right: Node) -> Node:
    """Joins two patterns; the empty pattern is dropped, and triples of one source become one
    ``Bgp``.

    >>> join(Unit(), Bgp(InGraph(None), ())).source
    InGraph(name=None)
    """
    match left, right:
        case (Unit(), _):
            return right
        case (_, Unit()):
            return left
        case (Bgp(source, patterns), Bgp(other, more)) if source == other:
            return Bgp(source, patterns + more)
        case (Join(first, Bgp(source, patterns)), Bgp(other, more)) if source == other:
            return Join(first, Bgp(source, patterns + more))
        case _:
            return Join(left, right)


Parts = tuple[Node, Expression | None, list[Tested], list[Marked]]


def _parts(group: ast.Group, source: Source, context: Context) -> Parts:
    """Returns a group without its filters, their conjunction, and those that are EXISTS.

    OPTIONAL handles them separately (18.2.2.6). The last value is each EXISTS inside the
    conjunction, below another operator.
    """
    node: Node = Unit()
    conditions: list[Expression] = []
    tests: list[Tested] = []
    marks: list[Marked] = []
    for element in group.elements:
        if not isinstance(element, ast.Filter):
            node = _with(node, element, source, context)
            continue
        parts = conjuncts(element.condition)
        exists_tests = [as_exists(part) for part in parts]
        if not any(exists_tests):
            parts = [element.condition]
        for part in parts:
            if as_exists(part) is None:
                condition, inner = with_marks(part, context)
                conditions.append(condition)
                marks += inner
        tests += [
            (pattern(t.pattern, source, context), t.negated, t.span)
            for t in exists_tests
            if t is not None
        ]
    return node, operation(Function.AND, conditions) if conditions else None, tests, marks


def _with(node: Node, element: ast.Element, source: Source, context: Context) -> Node:
    """Extends a pattern by one more element of the group."""
    match element:
        case ast.Triples(triples):
            return reduce(join, _triples(triples, source, context), node)
        case ast.Group():
            return join(node, pattern(element, source, context))
        case ast.Optional(group):
            return _optional(node, _parts(group, source, context), context)
        case ast.Union(branches):
            return join(node, _union([pattern(branch, source, context) for branch in branches]))
        case ast.Graph(ast.Var(name), group, span, windows):
            return join(node, _graphs(name, group, span, windows, context))
        case ast.Graph(name, group):
            return join(node, _graph(name, group, context))
        case ast.Window(ast.Var(name), group, span, True, spec):
            return join(node, _each(name, group, each_stream(name, span, spec, context), context))
        case ast.Window(ast.Var(name), group):
            every = ((index, Iri(window)) for window, index in context.windows.items())
            return join(node, _each(name, group, every, context))
        case ast.Window(name, group):
            return join(node, pattern(group, _window(name, context), context))
        case ast.Bind(value, variable):
            computed, marks = with_marks(value, context)
            return Extend(add_marks(node, marks, context), variable.name, computed)
        case ast.InlineData():
            return join(node, inline(element))
        case ast.SubSelect(select, where, modifiers, values):
            below = pattern(where, source, context)
            data = None if values is None else inline(values)
            return join(
                node, level(below, select, where, modifiers, (values, data), context=context)[0]
            )
        case ast.Minus(group):
            right = pattern(group, source, context)
            return node if isinstance(node, Unit) else Minus(node, right)
        case ast.Service(_, _, _, span):
            raise context.unsupported_error("SERVICE", span)
        case ast.Filter():
            raise AssertionError("the filters of a group are collected before")


def _optional(left: Node, parts: Parts, context: Context, splits: int = 0) -> Node:
    right, condition, tests, marks = parts
    if isinstance(right, Unit):
        return left
    try:
        right = _test(left, right, tests, marks, context)
    except TooLittleError as found:
        if splits == MOST_SPLITS:
            feature = (
                f"EXISTS in the FILTER of an OPTIONAL that uses ?{found.name} of what stands before"
            )
            raise context.unsupported_error(feature, found.span) from None
        return Union(
            *(
                _optional(half, parts, context, splits + 1)
                for half in split_by_binding(left, found.name)
            )
        )
    return LeftJoin(left, right, condition)


def _test(
    left: Node, right: Node, tests: Sequence[Tested], marks: Sequence[Marked], context: Context
) -> Node:
    """Returns the right side of OPTIONAL with the EXISTS and stamps of its condition.

    Raises as ``optional_side``.
    """
    for mark in marks:
        mark = resolve_stamp(mark, Join(left, right), context)
        right = add_marks(optional_side(left, right, mark, context), [mark], context)
    for tested in tests:
        mark = Marked("", tested[0], tested[2])
        right = exists(optional_side(left, right, mark, context), tested, context)
    return right


def inline(data: ast.InlineData) -> Values:
    """Translates VALUES."""
    return Values(tuple(variable.name for variable in data.variables), data.rows)


def _union(branches: Sequence[Node]) -> Node:
    """Returns the union of all branches as a balanced tree: it is associative, so it
    stays shallow.
    """
    if len(branches) == 1:
        return branches[0]
    middle = (len(branches) + 1) // 2
    return Union(_union(branches[:middle]), _union(branches[middle:]))


def _graphs(
    name: str, group: ast.Group, span: Span, windows: Sequence[str], context: Context
) -> Node:
    """Translates ``GRAPH ?g`` (18.6): the group over each static graph and each window that is a
    graph.

    Each branch binds ?g. A window hides a static graph of its name, as it does where GRAPH names
    it.
    """
    if context.graphs is None and not windows:
        message = f"GRAPH ?{name} goes over the static graphs, and no static data are given."
        raise QueryError(message, span=span, text=context.text, hint="Say --static FILE,graph=IRI.")
    sources: dict[str, Source] = {graph: InGraph(graph) for graph in context.graphs or ()}
    sources |= {window: InWindow(context.windows[window]) for window in windows}
    branches = [
        join(pattern(group, source, context), Values((name,), ((Iri(graph),),)))
        for graph, source in sources.items()
    ]
    return _union(branches) if branches else NOTHING


def _graph(name: ast.Name, group: ast.Group, context: Context) -> Node:
    """Translates GRAPH (18.6): the group over one static graph.

    A graph that is not in the dataset has no solutions, not even that of the empty group.
    """
    assert isinstance(name, ast.Constant), "a variable ranges over all graphs"
    graph = iri(name)
    if graph in context.windows:
        hint = f"Write WINDOW <{graph}>."
        raise UnknownNameError(
            f"<{graph}> is a window, not a graph.", span=name.span, text=context.text, hint=hint
        )
    inner = pattern(group, InGraph(graph), context)
    return inner if context.graphs is None or graph in context.graphs else NOTHING


def _each(
    name: str, group: ast.Group, windows: Iterable[tuple[int, Iri]], context: Context
) -> Node:
    """Translates ``WINDOW ?w``, ``STREAM ?s``: the group over each of these windows with the
    variable.

    It is as in 18.6.
    """
    branches = [
        join(pattern(group, InWindow(index), context), Values((name,), ((is_,),)))
        for index, is_ in windows
    ]
    return _union(branches) if branches else Values((name,), ())


_UNDECLARED = (
    "A window is declared before WHERE: FROM NAMED WINDOW <w> ON <s> [RANGE PT10S]; or, in "
    "CQELS-QL, where it is read: STREAM <s> [RANGE PT10S] {..}."
)


def _window(name: ast.Name, context: Context) -> InWindow:
    """Returns the window of a WINDOW pattern."""
    assert isinstance(name, ast.Constant), "a variable ranges over all windows"
    if iri(name) not in context.windows:
        declared = ", ".join(f"<{known}>" for known in context.windows)
        close = near(iri(name), context.windows)
        hint = (
            (f"{close} " if close.startswith("Did") else "") + f"Declared: {declared}."
            if declared
            else _UNDECLARED
        )
        message = f"The window <{iri(name)}> is not declared."
        raise UnknownNameError(message, span=name.span, text=context.text, hint=hint)
    return InWindow(context.windows[iri(name)])


def _triples(triples: Sequence[ast.Triple], source: Source, context: Context) -> Iterator[Node]:
    """Translates triples: consecutive ones as one Bgp each, and the paths between them."""
    for plain, run in groupby(triples, lambda t: isinstance(t.predicate, ast.Var | ast.Constant)):
        if plain:
            yield Bgp(source, tuple(triple_pattern(triple) for triple in run))
            continue
        for triple in run:
            assert not isinstance(triple.predicate, ast.Var), "a path is not a variable"
            yield path(
                position(triple.subject), triple.predicate, position(triple.object), source, context
            )


def triple_pattern(triple: ast.Triple) -> TriplePattern:
    """Translates a triple without a path."""
    assert isinstance(triple.predicate, ast.Var | ast.Constant), (
        "a path is no part of a triple pattern"
    )
    return TriplePattern(
        position(triple.subject), position(triple.predicate), position(triple.object)
    )


def position(node: ast.Node) -> Var | Term:
    """Translates a position of a triple pattern; a blank node of the text is hidden from ``*``."""
    match node:
        case ast.Var(name):
            return Var(name)
        case ast.Constant(term):
            return term
        case ast.BlankNode(label):
            return Var(f"_:{label}")
