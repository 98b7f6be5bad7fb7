"""Which parts of a query can be kept by changes alone, and which results last an instant (design,
section 2).

A query within a query (``Derived``) gives its rows by its reports, which are known where the rows
are and nowhere else. So what stands above it must follow from the changes of its inputs:
``by_changes``; or each of its results must last one instant, so that it is reported exactly there:
``momentary``. Neither looks below a ``Derived``. Cost: linear in the tree.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from levada.algebra import nodes as a
from levada.algebra.show import children
from levada.algebra.variables import expressions
from levada.model.expression import (
    RANDOM,
    Aggregate,
    AggregateFunction,
    Expression,
    Function,
    calls,
)
from levada.model.query import WindowOn
from levada.model.time import WindowKind

_ADD_UP = (
    AggregateFunction.COUNT,
    AggregateFunction.SUM,
    AggregateFunction.AVG,
    AggregateFunction.MIN,
    AggregateFunction.MAX,
)
_PER_REPORT = RANDOM | {Function.NOW}


def level(node: a.Node) -> Iterator[a.Node]:
    """The nodes of one level of queries, outermost first; a ``Derived`` belongs to it, what is
    below does not.
    """
    yield node
    if not isinstance(node, a.Derived):
        for child in children(node):
            yield from level(child)


def derived(node: a.Node) -> bool:
    """Whether this level reads a query within the query.

    >>> derived(a.Union(a.Unit(), a.Unit()))
    False
    """
    return any(isinstance(part, a.Derived) for part in level(node))


def monotone(node: a.Node) -> bool:
    """Whether rows with event times are enough: more of them below only mean more of them here."""
    return not any(
        isinstance(part, (a.Group, a.Distinct, a.Except))
        or (isinstance(part, a.Scan) and part.relation)
        for part in level(node)
    )


def over_tuples(node: a.Node) -> bool:
    """Whether every row comes from tuple streams."""
    leaves = [part for part in level(node) if isinstance(part, a.Derived) or not children(part)]
    return all(isinstance(leaf, (a.Scan, a.Derived)) for leaf in leaves)


def not_by_changes(node: a.Node) -> str:
    """What in this level cannot follow from the changes of its inputs, in words; "" if nothing."""
    if not over_tuples(node):
        return "a pattern over RDF"
    for part in level(node):
        match part:
            case a.Group(_, _, aggregates):
                for _, aggregate in aggregates:
                    if not _adds_up(aggregate):
                        return f"{'DISTINCT ' if aggregate.distinct else ''}{aggregate.function}"
            case a.LeftJoin() | a.Minus() | a.Exists() | a.OrderBy() | a.Slice():
                return type(part).__name__.upper()
            case _:
                pass
        if any(calls(e, _PER_REPORT) for e in expressions(part) if not isinstance(e, Aggregate)):
            return "a function of the report"
    return ""


def _adds_up(aggregate: Aggregate) -> bool:
    arg: Expression | None = aggregate.arg
    if arg is None:
        return aggregate.function in _ADD_UP and not aggregate.distinct
    return aggregate.function in _ADD_UP and not calls(arg, _PER_REPORT)


def momentary(node: a.Node, windows: Sequence[WindowOn]) -> bool:
    """Whether each solution contains a row of a window [Now], so that it is there at one instant
    and no other.
    """
    match node:
        case a.Scan(source=source) | a.Derived(source=source):
            return windows[source.index].window.kind is WindowKind.NOW
        case a.Join(left, right):
            return momentary(left, windows) or momentary(right, windows)
        case a.Union(left, right):
            return momentary(left, windows) and momentary(right, windows)
        case a.Filter(child, _) | a.Extend(child, _, _) | a.Project(child, _) | a.Distinct(child):
            return momentary(child, windows)
        case a.Group(child, keys, _):
            return bool(keys) and momentary(child, windows)
        case _:
            return False
