"""Joins a current row with the last rows of its key by a lookup, without a window and a join.

    From S [Now] as N, S [Partition By k Rows n] as P Where N.k = P.k

    Join(Scan of S [Now], Scan of S [Partition By k Rows n])  ->  Recent(both)

Both may read rows of a view, which is written out twice: the two texts are then equal up to window
numbers. The common columns must be exactly those of the partition. The join then reads all rows
that the window has for a key, which are the rows of its result. For windows of more than
``MAX_WINDOW_ROWS`` rows a join is as good. Filters on a side are placed above the pair.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, is_dataclass
from functools import partial
from itertools import permutations
from typing import Any

from levada.core.event_time import WindowKind
from levada.core.expressions import Expression, per_report, random
from levada.core.query_model import Output, StreamWindow
from levada.plan.logical import nodes as a
from levada.plan.optimizer.rule import Context, rewrite_query

MAX_WINDOW_ROWS = 64
Windows = Sequence[StreamWindow]
Found = tuple[a.Node, tuple[Expression, ...]]


def recent_rows(query: a.Query, context: Context) -> a.Query:
    """Returns the query with a node for each such pair of leaves."""
    if not any(on.window.kind is WindowKind.NOW for on in query.windows):
        return query
    return rewrite_query(query, partial(_recent, query.windows))


def _recent(windows: Windows, node: a.Node) -> a.Node:
    parts: tuple[a.Node, ...] = ()
    conditions: tuple[Expression, ...] = ()
    if isinstance(node, a.Conjunction):
        parts, conditions = node.parts, node.conditions
    elif isinstance(node, a.Join):
        parts = (node.left, node.right)
    for i, j in permutations(range(len(parts)), 2):
        if (match := _pair(windows, parts[i], parts[j])) is not None:
            pair, filters = match
            rest = [part for k, part in enumerate(parts) if k not in (i, j)]
            filters = (*conditions, *filters)
            return a.Conjunction((pair, *rest), filters) if rest or filters else pair
    return node


def _pair(windows: Windows, left: a.Node, right: a.Node) -> Found | None:
    """Returns two parts as a ``Recent`` node with the filters on them; None: they are not such a
    pair.
    """
    (one, filters), (other, more) = _bare(left), _bare(right)
    if not (isinstance(one, a.Scan) and isinstance(other, a.Scan)) and not (
        isinstance(one, a.SubQuery) and isinstance(other, a.SubQuery)
    ):
        return None
    now, last = windows[one.source.index].window, windows[other.source.index].window
    counted = last.kind is WindowKind.COUNT and last.step == 1 and last.count <= MAX_WINDOW_ROWS
    if now.kind is not WindowKind.NOW or not counted or not _by_partition(one, other):
        return None
    return (a.Recent(one, other), (*filters, *more)) if _same_rows(windows, one, other) else None


def _bare(part: a.Node) -> Found:
    """Returns a part without the filters that can be placed above a join, and these filters."""
    conditions: list[Expression] = []
    while isinstance(part, a.Filter) and not (per_report(part.condition) or random(part.condition)):
        conditions.append(part.condition)
        part = part.child
    return part, tuple(conditions)


def _by_partition(left: a.Scan | a.SubQuery, right: a.Scan | a.SubQuery) -> bool:
    """Whether the common columns are those of the partition, each with the same variable."""
    columns = [{name: column for column, name in side.columns} for side in (left, right)]
    once = all(len(c) == len(s.columns) for c, s in zip(columns, (left, right), strict=True))
    shared = columns[0].keys() & columns[1].keys()
    same = all(columns[0][name] == columns[1][name] for name in shared)
    return once and same and {columns[1][name] for name in shared} == set(right.partition)


def _same_rows(windows: Windows, left: a.Scan | a.SubQuery, right: a.Scan | a.SubQuery) -> bool:
    if windows[left.source.index].stream != windows[right.source.index].stream:
        return False
    if isinstance(left, a.Scan) and isinstance(right, a.Scan):
        return not any(s.relation or s.operators for s in (left, right))
    assert isinstance(left, a.SubQuery) and isinstance(right, a.SubQuery), "two of one kind"
    stream = left.output is right.output is not Output.RELATION
    return stream and _levels(windows, left, right) and _alike(windows, left.child, right.child)


def _alike(windows: Windows, one: Any, other: Any) -> bool:
    """Whether two parts are equal over equal windows."""
    match one, other:
        case a.InWindow(i), a.InWindow(j):
            return bool(_window(windows, i) == _window(windows, j))
        case tuple(), tuple():
            return len(one) == len(other) and all(
                _alike(windows, *pair) for pair in zip(one, other, strict=True)
            )
        case a.SubQuery(), a.SubQuery():
            names = ("source", "child", "output", "columns", "partition")
            return _levels(windows, one, other) and _all_alike(windows, one, other, names)
    if is_dataclass(one) and type(one) is type(other):
        return _all_alike(windows, one, other, [field.name for field in fields(one)])
    return bool(one == other)


def _all_alike(windows: Windows, one: Any, other: Any, names: Sequence[str]) -> bool:
    return all(_alike(windows, getattr(one, n), getattr(other, n)) for n in names)


def _levels(windows: Windows, one: a.SubQuery, other: a.SubQuery) -> bool:
    """Whether their windows are equal."""
    return [_window(windows, i) for i in one.level] == [_window(windows, i) for i in other.level]


def _window(windows: Windows, index: int) -> Any:
    """Returns a window without its number and name."""
    on = windows[index]
    return on.window, on.stream, tuple(_window(windows, i) for i in on.beneath)
