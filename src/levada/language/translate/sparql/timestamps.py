"""f:timestamp(): when the triples of a solution came into the stream
(docs/decisions/0012-latest-coming.md).

A triple of a window is there once, and may have come at several times; its time is the latest of
those comings that the window holds at the report. So it is an aggregate, the MAX over the triple's
``Came`` rows, which is joined to the solutions in which the function is evaluated: whatever asks
for it is evaluated per report. ``f:timestamp(?v)`` is the latest time of the triples that patterns
with ?v matched in the solution. What no window holds (static and entailed triples) has no time,
which is an error.
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
    Came,
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
    Union,
)
from levada.plan.logical.traversal import children
from levada.plan.logical.variables import certain_variables, possible_variables


def stamp_solutions(left: Node, mark: Marked, context: Context) -> Node:
    """The solutions of ``left`` with the time that the mark stands for, or unbound."""
    stamp = resolve_stamp(mark, left, context).stamp
    assert stamp is not None, "a stamp"
    names = [context.fresh("t") for _ in stamp.patterns]
    for name, pattern in zip(names, stamp.patterns, strict=True):
        left = _with_time(left, stamp, pattern, name, context)
    times: list[Expression] = [Var(name) for name in names]
    return Extend(left, mark.variable, reduce(_later_time, times))


def resolve_stamp(mark: Marked, over: Node, context: Context) -> Marked:
    """A stamp whose triples are known: a variable's are the patterns of ``over`` that bind it."""
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
    """Each solution with the time of its triple; one that does not bind all of it stays."""
    loose = sorted(_names(pattern) - certain_variables(left))
    condition: Expression | None = None
    if loose:
        bound = context.fresh("b")
        tests: list[Expression] = [Call(Function.BOUND, (Var(v),)) for v in loose]
        left = Extend(left, bound, reduce(lambda a, b: Call(Function.AND, (a, b)), tests))
        condition = Var(bound)
    return LeftJoin(left, _latest(stamp.windows, pattern, name, context), condition)


def _latest(windows: tuple[int, ...], pattern: TriplePattern, name: str, context: Context) -> Node:
    """Of each triple that matches, the greatest time of its comings into the windows."""
    came = context.fresh("t")
    comings: list[Node] = [Came(InWindow(window), pattern, came) for window in windows]
    latest = Aggregate(AggregateFunction.MAX, Var(came))
    return Group(reduce(Union, comings), tuple(sorted(_names(pattern))), ((name, latest),))


def _later_time(one: Expression, other: Expression) -> Expression:
    """The greater of two times of which any may be missing."""
    greater = Call(Function.IF, (Call(Function.GREATER, (one, other)), one, other))
    return Call(Function.COALESCE, (greater, one, other))


def _binding(
    node: Node, variable: Var, seen: frozenset[str], windows: frozenset[int]
) -> Iterator[TriplePattern]:
    """The triple patterns over these windows that bind a variable and can be seen above."""
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
