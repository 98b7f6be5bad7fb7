"""Joins of a count window's rows by their numbers: queries with windows of other lengths share the
join (CQELS Cloud, C33).

    ?x :p :c . ?x :q ?z   in the last 100            Narrow  the last 100
                                                     Pick    ?0 = :c
    ?x :p ?0 . ?x :q ?z   by number                  Join    numbers joined by min and max
                                                     Numbered, Instants

The stream's rows with their numbers replace the changes of the window. Operators join, filter and
compute them as before, but no row is taken back.

This does not apply to windows that change with each m-th element only or count for each value, nor
to operators that read windows of several lengths or streams: equal numbers are not equal instants
there. Cost: linear in the operators.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import NamedTuple

from levada.core.event_time import WindowKind
from levada.plan.execution.shapes import Member
from levada.plan.physical import operators as p
from levada.plan.physical.operators import HOME, Op
from levada.plan.physical.partitioning import ALL_PARTITIONS


class ByNumber(NamedTuple):
    """A join by numbers, and the instants of the numbers."""

    join: Op
    instants: Op


def numbers_of(window: int) -> int:
    """Returns the window number that represents the row numbers of a count window, or the reverse.

    >>> numbers_of(0), numbers_of(numbers_of(2))
    (-1, 2)
    """
    return ~window


def join_by_number(op: Op, windows: Callable[[tuple[int, ...]], Member]) -> ByNumber | None:
    """Returns a join over one count window, or several equal ones, by the numbers of its rows.

    None: it is not such a join. ``windows`` returns the member of rows with times of these windows.
    """
    if not isinstance(op.spec, p.Join) or not op.weighted or not op.windows:
        return None
    if not _is_one_window(windows(op.windows), len(op.windows)):
        return None
    first = op.windows[0]
    join = _with_numbers(op, (first, numbers_of(first)))
    if join is None:
        return None
    rows, *others = _numbers_below(join)
    if any(other.inputs[0].spec != rows.inputs[0].spec for other in others):
        return None
    if rows.stage >= op.stage:  # the instants of numbers go to all partitions, which takes a stage
        return None
    instants = Op(p.Instants(), (rows,), (), rows.windows, rows.stage, (None,), HOME)
    return ByNumber(join, instants)


def narrow_rows(join: Op, picked: Op, instants: Op) -> Op:
    """Returns the rows of a join over a count window from rows that are picked by number."""
    return replace(
        join, spec=p.Narrow(), inputs=(picked, instants), exchange=(None, ALL_PARTITIONS)
    )


def _is_one_window(member: Member, count: int) -> bool:
    """Whether these windows are one count window that changes with each element."""
    on = {*zip(member.windows[:count], member.streams[:count], strict=True)}
    counts = all(w.kind is WindowKind.COUNT and w.step == 1 for w, _ in on)
    return len(on) == 1 and counts


def _with_numbers(op: Op, windows: tuple[int, int]) -> Op | None:
    """Returns an operator over numbered rows in place of their changes; None: it is not
    possible.
    """
    if op.windows == ():
        return op
    match op.spec:
        case p.CountWindow(_, _, (), bag) if isinstance(op.inputs[0].spec, p.Match | p.Scan):
            spec = p.Numbered(windows[0], bag)
            return replace(op, spec=spec, windows=windows, weighted=False)
        case p.Join(keys, negative=False) if keys:
            pass
        case p.Select(_, ()) | p.Rename() | p.Filter(_, None) | p.Extend(_, None):
            pass
        case _:
            return None
    inputs = [_with_numbers(child, windows) for child in op.inputs]
    known = tuple([child for child in inputs if child is not None])
    if len(known) < len(inputs):
        return None
    return replace(op, inputs=known, windows=windows, weighted=False)


def _numbers_below(op: Op) -> Iterator[Op]:
    """Returns the numbered rows below a join."""
    if isinstance(op.spec, p.Numbered):
        yield op
        return
    for child in op.inputs:
        yield from _numbers_below(child)
