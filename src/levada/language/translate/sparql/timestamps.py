"""Translates f:timestamp(): the time at which the triples of a solution arrived in the stream
(docs/decisions/0012-latest-coming.md).

A triple exists once in a window, and may have arrived at several times. Its time is the latest
arrival that the window has at the report. So it is an aggregate, the MAX over the triple's
``TripleArrivals`` rows, joined to the solutions in which the function is evaluated. Expressions
with it are evaluated at each report. ``f:timestamp(?v)`` is the latest time of the triples that
patterns with ?v matched in the solution. Static and entailed triples have no time, which is an
error.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce

from levada.core.expressions import (
    Aggregate,
    AggregateFunction,
    Call,
    Expression,
    Function,
    Var,
)
from levada.core.query_model import TriplePattern
from levada.errors import QueryError
from levada.language.translate.sparql.context import Context, Marked, Stamp
from levada.plan.logical.nodes import (
    Bgp,
    Closure,
    Except,
    Exists,
    Extend,
    Group,
    InMerge,
    InWindow,
    LeftJoin,
    Mark,
    Minus,
    Node,
    Project,
    Source,
    TripleArrivals,
    Union,
)
from levada.plan.logical.traversal import children
from levada.plan.logical.variables import certain_variables, possible_variables


def stamp_solutions(left: Node, mark: Marked, context: Context) -> Node:
    """Adds the time of the mark to the solutions of ``left``, or leaves it unbound."""
    stamp = resolve_stamp(mark, left, context).stamp
    assert stamp is not None, "a stamp"
    names = [context.fresh("t") for _ in stamp.patterns]
    for name, pattern in zip(names, stamp.patterns, strict=True):
        left = _with_time(left, stamp, pattern, name, context)
    times: list[Expression] = [Var(name) for name in names]
    return Extend(left, mark.variable, reduce(_later_time, times))


def resolve_stamp(mark: Marked, over: Node, context: Context) -> Marked:
    """Returns a stamp with its triples: for a variable, the patterns of ``over`` that bind it."""
    stamp = mark.stamp
    if stamp is None or stamp.patterns:
        return mark
    if len(stamp.terms) == 3:
        patterns: tuple[TriplePattern, ...] = (TriplePattern(*stamp.terms),)
    else:
        (variable,) = stamp.terms
        assert isinstance(variable, Var), "the time of what binds a variable"
        patterns = tuple(
            dict.fromkeys(
                _binding(over, variable, possible_variables(over), frozenset(stamp.windows))
            )
        )
        if not patterns:
            message = (
                f"No triple pattern over a window binds ?{variable.name} where "
                "f:timestamp() asks for its time."
            )
            raise QueryError(message, span=mark.span, text=context.text)
    for name in sorted(frozenset().union(*map(_names, patterns)) - possible_variables(over)):
        raise QueryError(
            f"?{name} of f:timestamp() is not bound here.", span=mark.span, text=context.text
        )
    return mark._replace(
        pattern=Bgp(InWindow(stamp.windows[0]), patterns), stamp=stamp._replace(patterns=patterns)
    )


def _with_time(
    left: Node, stamp: Stamp, pattern: TriplePattern, name: str, context: Context
) -> Node:
    """Adds the time of its triple to each solution; a solution that does not bind all
    of it stays.
    """
    loose = sorted(_names(pattern) - certain_variables(left))
    condition: Expression | None = None
    if loose:
        bound = context.fresh("b")
        tests: list[Expression] = [Call(Function.BOUND, (Var(v),)) for v in loose]
        left = Extend(left, bound, reduce(lambda a, b: Call(Function.AND, (a, b)), tests))
        condition = Var(bound)
    return LeftJoin(left, _latest(stamp.windows, pattern, name, context), condition)


def _latest(windows: tuple[int, ...], pattern: TriplePattern, name: str, context: Context) -> Node:
    """Returns the latest arrival of each matching triple in the windows."""
    came = context.fresh("t")
    comings: list[Node] = [TripleArrivals(InWindow(window), pattern, came) for window in windows]
    latest = Aggregate(AggregateFunction.MAX, Var(came))
    return Group(reduce(Union, comings), tuple(sorted(_names(pattern))), ((name, latest),))


def _later_time(one: Expression, other: Expression) -> Expression:
    """Returns the later of two times, of which any may be missing."""
    greater = Call(Function.IF, (Call(Function.GREATER, (one, other)), one, other))
    return Call(Function.COALESCE, (greater, one, other))


def _binding(
    node: Node, variable: Var, seen: frozenset[str], windows: frozenset[int]
) -> Iterator[TriplePattern]:
    """Yields the triple patterns over these windows that bind a variable and are visible above."""
    match node:
        case Bgp(source, patterns):
            if windows.intersection(_windows(source)):
                yield from (t for t in patterns if variable in t.positions and _names(t) <= seen)
            return
        case Minus(left, _) | Exists(left, _, _, _) | Mark(left, _, _, _) | Except(left, _):
            below: tuple[Node, ...] = (left,)
        case Closure():
            return
        case Project(child, names) | Group(child, names, _):
            below, seen = (child,), seen & frozenset(names)
        case _:
            below = children(node)
    for child in below:
        yield from _binding(child, variable, seen, windows)


def _windows(source: Source) -> tuple[int, ...]:
    match source:
        case InWindow(index):
            return (index,)
        case InMerge(windows, _):
            return windows
        case _:
            return ()


def _names(pattern: TriplePattern) -> frozenset[str]:
    return frozenset(p.name for p in pattern.positions if isinstance(p, Var))
