"""Puts equal conjunctions into one order, so queries share operators regardless of how they are
written.

Joins and ``&&`` are commutative and associative; ``=``, ``!=``, ``+``, ``*``, ``sameTerm`` and
``||`` are too. ``a > b`` is ``b < a``, and ``?x = :a || ?x = :b`` is ``?x IN (:a, :b)`` (SPARQL
1.1, 17.3, 17.4 and 18.2). The rule orders:

    the parts of a conjunction, the patterns of a basic graph pattern and the conditions
                              by an order independent of variable names and of the text
    the sides of a comparison
                              in the same way; a constant is on the right
    the keys and aggregates of a GROUP BY, the branches of a UNION
                              in the same way

The elements of IN stay as written, since they may be constants of a template's rows.

The order follows from *colours*. The first colour of a part is its source and the places of its
constants and variables. Then, round by round, it includes the colours of parts that share its
variables. Constants are left out first, since queries that differ only in them have one shape;
remaining ties are broken by constants. After that any of the equal parts comes first, which breaks
further ties: mostly the parts are interchangeable (a cycle of equal patterns). If they are not, the
query shares less, and its results are the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial, reduce
from typing import Any

from levada.core.expressions import (
    Aggregate,
    Call,
    Const,
    Expression,
    Function,
    Var,
    per_report,
)
from levada.core.frozen import frozen
from levada.core.query_model import TriplePattern
from levada.core.rdf_terms import equals_itself_alone
from levada.plan.logical import nodes as a
from levada.plan.logical.nodes import InGraph, InMerge, InWindow, Source
from levada.plan.logical.traversal import children, with_children
from levada.plan.logical.variables import possible_variables
from levada.plan.optimizer.rule import Context, rewrite_query

Key = tuple[Any, ...]
Colours = Mapping[str, int]  # of variables

ROUNDS = 16  # the limit for many equal patterns; beyond, the order of the text decides
_SYMMETRIC = frozenset(
    (
        Function.EQUAL,
        Function.NOT_EQUAL,
        Function.ADD,
        Function.MULTIPLY,
        Function.SAME_TERM,
        Function.AND,
    )
)
_MIRRORED = {
    Function.LESS: Function.GREATER,
    Function.GREATER: Function.LESS,
    Function.LESS_EQUAL: Function.GREATER_EQUAL,
    Function.GREATER_EQUAL: Function.LESS_EQUAL,
}


def canonical_order(query: a.Query, context: Context) -> a.Query:
    """Returns the query with each conjunction in the order of its colours."""
    pattern = _order_node(query.pattern, query)
    return query if pattern is query.pattern else replace(query, pattern=pattern)


def _order_node(node: a.Node, query: a.Query) -> a.Node:
    """Orders a node and all nodes below it, with the patterns of a conjunction's parts."""
    if isinstance(node, a.Union):
        return _union(node, query)
    if below := children(node):
        flat = isinstance(node, a.Conjunction)
        ordered = [c if flat and isinstance(c, a.Bgp) else _order_node(c, query) for c in below]
        node = with_children(node, ordered)
    return _sort_node(node, query)


def _union(node: a.Union, query: a.Query) -> a.Node:
    """Orders the branches of a UNION, regardless of nesting; the same object if they
    are in order.
    """
    branches = [_order_node(branch, query) for branch in _branches(node)]
    branches.sort(key=lambda branch: _branch(branch, query))
    after = reduce(a.Union, branches)
    return node if after == node else after


def _branches(node: a.Node) -> Iterator[a.Node]:
    waiting = [node]
    while waiting:
        one = waiting.pop()
        if isinstance(one, a.Union):
            waiting += (one.right, one.left)
        else:
            yield one


def _branch(node: a.Node, query: a.Query) -> Key:
    """Returns the order key of a branch, regardless of variable names; its form precedes constants.

    Equal branches keep their order.
    """
    forms, asked, constants = list[Key](), list[Key](), list[Key]()
    waiting = [node]
    while waiting:
        one = waiting.pop()
        below = children(one)
        waiting += below
        match one:
            case a.Filter(_, said) | a.Extend(_, _, said):
                asked.append(_key(said, {}))
            case a.Conjunction(_, several):
                asked += [_key(said, {}) for said in several]
        for leaf in () if below else _leaves(one, query):
            forms.append(leaf.form)
            constants.append(leaf.constants)
    return " ".join(_kinds(node)), sorted(forms), sorted(asked), sorted(constants)


def _sort_node(node: a.Node, query: a.Query) -> a.Node:
    """Orders a node; the same object if it is in order."""
    match node:
        case a.Bgp(_, patterns) if len(patterns) > 1:
            after: a.Node = _order_conjunction(a.Conjunction((node,)), query).parts[0]
        case a.Conjunction():
            after = _order_conjunction(node, query)
        case a.Filter():
            after = _filters(node, query)
        case a.Group(child, keys, aggregates) if len(keys) > 1 or len(aggregates) > 1:
            colours = _colours_of_leaves(_read(child, query))
            after = a.Group(
                child,
                tuple(sorted(keys, key=lambda name: colours.get(name, len(colours)))),
                tuple(sorted(aggregates, key=lambda named: _aggregate(named[1], colours))),
            )
        case _:
            return node
    return node if after == node else after


def _read(node: a.Node, query: a.Query) -> list[_Leaf]:
    """Returns the patterns below computed values and conditions."""
    while isinstance(node, a.Filter | a.Extend):
        node = node.child
    parts = node.parts if isinstance(node, a.Conjunction) else (node,)
    return [leaf for part in parts for leaf in _leaves(part, query)]


def _aggregate(aggregate: Aggregate, colours: Colours) -> Key:
    arg = () if aggregate.arg is None else _key(aggregate.arg, colours)
    return (aggregate.function.value, aggregate.distinct, aggregate.separator or "", arg)


def _filters(node: a.Filter, query: a.Query) -> a.Node:
    """Orders filters above each other; filters that depend on the report stay in place."""
    child, conditions = node.child, [node.condition]
    if per_report(node.condition):
        return node
    while isinstance(child, a.Filter) and not per_report(child.condition):
        conditions.append(child.condition)
        child = child.child
    one = not children(child)
    colours = (
        _colours_of_leaves(_leaves(child, query))
        if one
        else dict.fromkeys(possible_variables(child), 0)
    )
    for condition in sorted([_order_arguments(c, colours) for c in conditions], key=_by(colours)):
        child = a.Filter(child, condition)
    return child


def _order_conjunction(node: a.Conjunction, query: a.Query) -> a.Conjunction:
    leaves = [leaf for part in node.parts for leaf in _leaves(part, query)]
    colours = _colour_leaves(leaves)
    at = iter(_ranks([(colour, i) for i, colour in enumerate(colours)]))
    parts = sorted([_part(part, at) for part in node.parts], key=lambda ranked: ranked[0])
    return a.Conjunction(
        tuple([part for _, part in parts]), _conditions(node.conditions, leaves, colours)
    )


def _conditions(
    conditions: Sequence[Expression], leaves: Sequence[_Leaf], colours: Sequence[int]
) -> tuple[Expression, ...]:
    """Orders conditions by the colours of their variables."""
    if not conditions:
        return ()
    variables = _colour_variables(leaves, colours)
    turned = [_order_arguments(condition, variables) for condition in conditions]
    return tuple(sorted(turned, key=_by(variables)))


def _part(part: a.Node, ranks: Any) -> tuple[int, a.Node]:
    """Orders the patterns of a part by their ranks; returns the first rank, too."""
    if not isinstance(part, a.Bgp):
        return next(ranks), part
    patterns = sorted(((next(ranks), p) for p in part.patterns), key=lambda ranked: ranked[0])
    return patterns[0][0], replace(part, patterns=tuple(p for _, p in patterns))


@frozen
class _Leaf:
    """A part to be ordered: its ``form`` without constants, its ``constants``, and its variables
    with their places.
    """

    form: Key
    constants: Key
    variables: tuple[tuple[int, str], ...]


def _leaves(part: a.Node, query: a.Query) -> list[_Leaf]:
    """Returns the patterns of a part, or the part as a whole."""
    match part:
        case a.Bgp(source, patterns):
            read = _source(source, query)
            return [_pattern(read, pattern) for pattern in patterns]
        case a.Entailed(source, pattern) | a.TripleArrivals(source, pattern):
            leaf = _pattern(_source(source, query), pattern)
            return [replace(leaf, form=(1, type(part).__name__, *leaf.form))]
        case a.Scan(source, columns, _, _, operators):
            names = tuple(enumerate(variable for _, variable in columns))
            return [
                _Leaf((2, _source(source, query), operators), tuple(c for c, _ in columns), names)
            ]
        case _:
            names = tuple((0, name) for name in possible_variables(part))
            return [_Leaf((3, len(names), " ".join(_kinds(part))), (), names)]


def _kinds(node: a.Node) -> Iterator[str]:
    yield type(node).__name__
    for child in children(node):
        yield from _kinds(child)


def _pattern(source: Key, pattern: TriplePattern) -> _Leaf:
    """Returns the key of a pattern: more constants come first, since fewer triples match."""
    names: list[str] = []
    mask, constants = [], []
    for position in pattern.positions:
        mask.append(isinstance(position, Var))
        if isinstance(position, Var):
            names.append(position.name)
        else:
            constants.append(str(position))
    alike = tuple([names.index(name) for name in names])
    form = (0, len(names), tuple(mask), alike, source)
    return _Leaf(form, tuple(constants), tuple(enumerate(names)))


def _source(source: Source, query: a.Query) -> Key:
    """Returns the key of a source: names of streams and graphs, since windows have no order yet."""
    match source:
        case InWindow(index):
            return (0, query.windows[index].stream)
        case InMerge(windows, static):
            return (1, *sorted(query.windows[w].stream for w in windows), static)
        case InGraph(name):
            return (2, name or "")


def _colours_of_leaves(leaves: Sequence[_Leaf]) -> Colours:
    """Returns the colours of all variables."""
    return _colour_variables(leaves, _colour_leaves(leaves))


def _colour_leaves(leaves: Sequence[_Leaf]) -> list[int]:
    """Returns the colour of each leaf, as distinct as possible."""
    colours = _refine_colours(leaves, _ranks([leaf.form for leaf in leaves]))
    pairs = [(c, leaf.constants) for leaf, c in zip(leaves, colours, strict=True)]
    colours = _refine_colours(leaves, _ranks(pairs))
    for _ in range(ROUNDS):
        if (tie := _tie(colours)) is None:
            break
        # any of these can be first: nearly always they are interchangeable
        apart = [(colour, i != tie) for i, colour in enumerate(colours)]
        colours = _refine_colours(leaves, _ranks(apart))
    return colours


def _tie(colours: Sequence[int]) -> int | None:
    """Returns the first leaf of the least colour that several leaves have."""
    uses = Counter(colours)
    tied = min((colour for colour, n in uses.items() if n > 1), default=None)
    return None if tied is None else colours.index(tied)


def _refine_colours(leaves: Sequence[_Leaf], colours: list[int]) -> list[int]:
    """Adds the colours of leaves that share a variable, until no more leaves differ."""
    for _ in range(ROUNDS):
        if max(colours, default=0) == len(leaves) - 1:
            return colours  # all differ
        of = _colour_variables(leaves, colours)
        finer = _ranks(
            [
                (colour, tuple(sorted([(place, of[v]) for place, v in leaf.variables])))
                for leaf, colour in zip(leaves, colours, strict=True)
            ]
        )
        if max(finer, default=0) == max(colours, default=0):
            return finer
        colours = finer
    return colours


def _colour_variables(leaves: Sequence[_Leaf], colours: Sequence[int]) -> dict[str, int]:
    """Returns a variable's colour: the colours of its leaves, and its places there."""
    places_by_name: dict[str, list[tuple[int, int]]] = {}
    for leaf, colour in zip(leaves, colours, strict=True):
        for place, name in leaf.variables:
            places_by_name.setdefault(name, []).append((colour, place))
    ranks = _ranks([tuple(sorted(places)) for places in places_by_name.values()])
    return dict(zip(places_by_name, ranks, strict=True))


def _ranks(keys: Sequence[Key]) -> list[int]:
    """Returns each key's place among the distinct keys."""
    places = {key: i for i, key in enumerate(sorted(set(keys)))}
    return [places[key] for key in keys]


def _order_arguments(condition: Expression, colours: Colours) -> Expression:
    """Orders the arguments of symmetric operators in an expression, inner ones first."""
    return _ordered_with_key(condition, colours)[0]


def _ordered_with_key(condition: Expression, colours: Colours) -> tuple[Expression, Key]:
    """Returns an ordered expression and its ``_key``."""
    if not isinstance(condition, Call):
        return condition, _key(condition, colours)
    turned = [_ordered_with_key(arg, colours) for arg in condition.args]
    function = condition.function
    if function is Function.OR:
        args = tuple(sorted(_options([arg for arg, _ in turned]), key=_by(colours)))
        options = _as_in_condition(args) or reduce(
            lambda one, other: Call(function, (one, other)), args
        )
        return options, _key(options, colours)
    if function in _SYMMETRIC:
        turned.sort(key=lambda one: one[1])
    elif function in _MIRRORED and turned[1][1] < turned[0][1]:
        function = _MIRRORED[function]
        turned.reverse()
    forms: list[Key] = [(0, function.value, len(turned))]
    constants: list[str] = []
    for _, key in turned:
        forms += key[0]
        constants += key[1]
    return Call(function, tuple([arg for arg, _ in turned])), (tuple(forms), tuple(constants))


def _options(args: Sequence[Expression]) -> Iterator[Expression]:
    """Returns the operands of ``||``."""
    for arg in args:
        if isinstance(arg, Call) and arg.function is Function.OR:
            yield from _options(arg.args)
        else:
            yield arg


def _as_in_condition(options: Sequence[Expression]) -> Expression | None:
    """Returns options that compare one variable with terms as IN, if no other term equals these."""
    variables, terms = set[Expression](), list[Expression]()
    for option in options:
        match option:
            case Call(Function.EQUAL | Function.IN, (Var() as variable, *others)):
                variables.add(variable)
                terms += others
            case _:
                return None
    if len(variables) > 1 or not all(map(_itself, terms)):
        return None
    several = sorted({*terms}, key=str)
    return Call(Function.IN, (*variables, *several))


def _itself(expression: Expression) -> bool:
    return isinstance(expression, Const) and equals_itself_alone(expression.term)


def _by(colours: Colours) -> Callable[[Expression], Key]:
    return lambda expression: _key(expression, colours)


def _key(expression: Expression, colours: Colours) -> Key:
    """Returns the order key of an expression: calls first, then variables, then constants.

    The form precedes the constants.
    """
    forms: list[Key] = []
    constants: list[str] = []
    _walk(expression, colours, forms.append, constants.append)
    return (tuple(forms), tuple(constants))


def _walk(
    expression: Expression,
    colours: Colours,
    form: Callable[[Key], None],
    constant: Callable[[str], None],
) -> None:
    match expression:
        case Call(function, args):
            form((0, function.value, len(args)))
            for arg in args:
                _walk(arg, colours, form, constant)
        case Var(name):
            form((1, str(colours.get(name, -1)).rjust(6), 0))
        case Const(term):
            form((2, "", 0))
            constant(str(term))
        case _:
            form((3, type(expression).__name__, 0))


# Numbers windows in the order in which patterns read them, so queries share operators regardless
# of the order of FROM clauses or of CQL's tables.
#
#     FROM :u .. FROM :w ..  { WINDOW :w { A } WINDOW :u { B } }  ->  FROM :w .. FROM :u ..
#
# The patterns already have an order that does not depend on the text (``canonical_order``). Rows
# have times by window numbers, so joins over the same windows with other numbers would differ.
# Windows that no pattern reads come last, unchanged. The rule does not apply to queries with a
# sub-query, whose windows belong to a level, or with a merge of windows. Cost: linear in the query.


def order_windows(query: a.Query, context: Context) -> a.Query:
    """Returns the query with its windows in the order in which they are read."""
    if len(query.windows) < 2:
        return query
    nodes = [*_nodes(query.pattern)]
    sources = [node.source for node in nodes if isinstance(node, _READING)]
    if any(isinstance(node, a.SubQuery) for node in nodes) or not all(
        isinstance(source, a.InWindow | a.InGraph) for source in sources
    ):
        return query
    read = [source.index for source in sources if isinstance(source, a.InWindow)]
    order = [*dict.fromkeys((*read, *range(len(query.windows))))]
    if order == sorted(order):
        return query
    places = {index: place for place, index in enumerate(order)}
    windows = tuple([query.windows[index] for index in order])
    return replace(rewrite_query(query, partial(_renumber, places)), windows=windows)


_READING = a.Bgp | a.Entailed | a.TripleArrivals | a.Scan


def _nodes(node: a.Node) -> Iterator[a.Node]:
    yield node
    for child in children(node):
        yield from _nodes(child)


def _renumber(places: Mapping[int, int], node: a.Node) -> a.Node:
    if isinstance(node, _READING) and isinstance(node.source, a.InWindow):
        return replace(node, source=a.InWindow(places[node.source.index]))
    return node
