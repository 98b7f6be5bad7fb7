"""What of a query follows from all elements, and what from its matches alone: whether its report
times must be listed.

An operator that compares whole results (*snapshot*), and a part that is made of static data and
constants alone (*free*), say something at reports at which nothing matches. Cost: linear in the
algebra.
"""

from __future__ import annotations

from levada.algebra import nodes as a
from levada.algebra.show import children
from levada.model.expression import RANDOM, Expression, Function, calls
from levada.model.query import Form, Output
from levada.plan.lowering.merge import reads_static

PER_REPORT = RANDOM | {Function.NOW}


def needs_list(query: a.Query) -> bool:
    """Whether the report times follow from all elements, not only from the rows that match.

    So it is if a window reports on change and more than its matches can show (RStream, or any
    snapshot operator), if a solution can exist without a match (ungrouped aggregates, ASK, parts
    without a window), if a window that never empties stands beside closes, or if differences pass
    over reports without content, as though they were not there.
    """
    kinds = [w.window.kind for w in query.windows]
    periodic = query.reports.clock is not None
    on_change = not periodic and any(not k.on_close for k in kinds)
    endless = any(k.endless for k in kinds)
    snapshot = _has_snapshot(query.pattern) or query.form is Form.ASK
    if on_change and (snapshot or query.output is Output.RSTREAM):
        return True
    if endless and (periodic or any(k.on_close for k in kinds)):
        return True
    if query.reports.nonempty and query.output is not Output.RSTREAM:
        return True
    if query.form is Form.ASK or _matchless(query.pattern) or free_parts(query.pattern):
        return True
    return snapshot and _reads_static(query.pattern)


def needs_latest(query: a.Query) -> bool:
    """Whether the last report follows from the last element, whatever it matches: closes beside a
    window that never empties.
    """
    kinds = [w.window.kind for w in query.windows]
    closes = query.reports.clock is not None or any(k.on_close for k in kinds)
    return closes and any(k.endless for k in kinds)


def _reads_static(node: a.Node) -> bool:
    """Whether some part has no window: as report rows it exists at every report."""
    match node:
        case a.Unit() | a.Values():
            return True
        case a.Bgp(source, _) | a.Entailed(source=source):
            return reads_static(source)
        case _:
            return any(map(_reads_static, level_children(node)))


def level_children(node: a.Node) -> tuple[a.Node, ...]:
    """The nodes below that belong to the same level."""
    return () if isinstance(node, a.Derived) else children(node)


def _has_snapshot(node: a.Node) -> bool:
    if isinstance(
        node,
        (a.LeftJoin, a.Minus, a.Exists, a.Mark, a.Except, a.Group, a.Distinct, a.OrderBy, a.Slice),
    ):
        return True
    if isinstance(node, a.Filter) and per_report(node.condition):
        return True
    if isinstance(node, a.Closure) and reads_window(node):
        return True
    if isinstance(node, a.Extend) and per_report(node.expression):
        return True
    return any(map(_has_snapshot, level_children(node)))


def reads_window(node: a.Node) -> bool:
    """Whether some part reads a window."""
    if isinstance(node, (a.Bgp, a.Entailed)):
        return not isinstance(node.source, a.InGraph)
    return isinstance(node, (a.Came, a.Scan, a.Derived)) or any(map(reads_window, children(node)))


def _matchless(node: a.Node) -> bool:
    """Whether an ungrouped aggregate occurs, which has a row even where nothing matches."""
    return (isinstance(node, a.Group) and not node.keys) or any(
        map(_matchless, level_children(node))
    )


def free_parts(node: a.Node) -> bool:
    """Whether a solution can be made of static data and constants alone."""
    match node:
        case a.Unit() | a.Values():
            return True
        case a.Bgp(source, _) | a.Entailed(source=source):
            return reads_static(source)
        case a.Came() | a.Scan() | a.Derived():
            return False
        case a.Union(left, right):
            return free_parts(left) or free_parts(right)
        case a.Closure(child, zero):
            return free_parts(child) or (zero is not None and free_parts(zero))
        case a.Join(left, right):
            return free_parts(left) and free_parts(right)
        case (
            a.LeftJoin(left, _, _)
            | a.Minus(left, _)
            | a.Exists(left, _, _, _)
            | a.Mark(left, _, _, _)
            | a.Except(left, _)
        ):
            return free_parts(left)
        case _:
            return free_parts(node.child)


def per_report(expression: Expression) -> bool:
    """Whether an expression depends on the report (NOW, RAND, UUID, ...)."""
    return calls(expression, PER_REPORT)
