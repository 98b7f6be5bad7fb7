"""Times of each pattern in rows of joins: queries that read the patterns in one window share a join
with queries that read them in several (CQELS Cloud, shared joins).

    WINDOW :w { ?x :p ?y . ?x :q ?z }                       ByWindow   both times are of :w
                                                              Pick     times of both patterns
    WINDOW :u { ?x :p ?y } WINDOW :v { ?x :q ?z }             Pick     those of :u and of :v
    for both                                                    Join   times of both patterns

A row counts in a window while each of its triples does: from the latest entry to the first exit. So
the times of a window can be combined in the join or in the query; reports do not need them
combined. A *leaf* is a pattern or a scan. Its times are those of a window of its own, which
represents the window of the leaf. Excluded are windows in which rows count by more than their
times, merges of windows, and values computed from the time of joined rows. Cost: linear in the
operators.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import count

from levada.core.expressions import Expression, Function, calls
from levada.plan.physical import operators as p
from levada.plan.physical.operators import Op

_LEAF = 1 << 20  # more than the windows of any query
_TIMES = frozenset((Function.EVENT_TIME,))


def leaf_window(window: int, leaf: int) -> int:
    """Returns the window number that represents the window of a leaf.

    >>> first, second = leaf_window(3, 0), leaf_window(3, 1)
    >>> window_of(first), window_of(second), first == second
    (3, 3, False)
    """
    return window + (leaf + 1) * _LEAF


def window_of(window: int) -> int:
    """Returns the query's window that an operator's window number represents; mostly the same
    number.

    >>> window_of(3), window_of(-1)
    (3, -1)
    """
    return window % _LEAF if window >= _LEAF else window


def with_leaf_times(join: Op) -> Op | None:
    """Returns a join of rows with times of each leaf, from left to right; None: it is not possible.

    The picks of a relaxed join have a window for each leaf.
    """
    return _number_leaves(join, count())


def _number_leaves(op: Op, leaves: Iterator[int]) -> Op | None:
    if not op.windows:
        return op if op.windows == () else None
    if op.weighted:
        return None
    if not op.inputs:
        (window,) = op.windows
        return replace(op, windows=(leaf_window(window, next(leaves)),))
    inputs = []
    for child in op.inputs:
        if (rows := _number_leaves(child, leaves)) is None:
            return None
        inputs.append(rows)
    windows = tuple([w for child in inputs for w in child.windows or ()])
    if not _goes_by_each(op, len(windows)):
        return None
    return replace(op, inputs=tuple(inputs), windows=windows)


def _goes_by_each(op: Op, leaves: int) -> bool:
    """Whether an operator over so many leaves treats the times of each alike."""
    match op.spec:
        case p.Join(negative=False) | p.Rename():
            return True
        case p.Filter(said, None) | p.Extend(said, None):
            return leaves == 1 or not _reads_time(said)
        case p.Occur():
            return leaves == 1
        case _:
            return False


def _reads_time(said: Expression) -> bool:
    return calls(said, _TIMES)


def merge_leaf_times(join: Op, picked: Op) -> Op:
    """Combines the leaf times of picked rows into the times of a join's windows."""
    return replace(join, spec=p.ByWindow(), inputs=(picked,), exchange=(None,))


def as_reported(op: Op, rows: Op) -> Op:
    """Returns the rows that an operator reads, without the combination of times if it is not
    needed.
    """
    return (
        _strip_by_window(rows)
        if isinstance(op.spec, p.Report | p.Panes | p.Changes | p.Deltas)
        else rows
    )


def _strip_by_window(rows: Op) -> Op:
    if isinstance(rows.spec, p.Rename):
        (below,) = rows.inputs
        source = _strip_by_window(below)
        return rows if source is below else replace(rows, inputs=(source,), windows=source.windows)
    return rows.inputs[0] if isinstance(rows.spec, p.ByWindow) else rows
