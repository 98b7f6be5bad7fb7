"""Lists as points: ``?v IN (3, 7, 12)``, ``?v = 3 || ?v = 7``, of numbers, instants, dates, or the
result of STR() on a term.

A member's list has one interval for each value, from the value to itself, so that a row finds the
members that list its value, however far apart values are. The order follows from the members'
constants, and is chosen when a plan runs: rows of a template are planned once. If the list of some
member has a value that is not an exact point (``range_keys``), the conditions of all members are
evaluated. A value that is not comparable with a row does not make a list false if another value is
equal (SPARQL 1.1, 17.4.1.9), so points are looked up one by one.

Lists are parts of the ``rest`` of a pick: code that evaluates or inspects conditions sees them as
any other. Among the ranges part i of the rest has the number ``-1 - i``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl

from levada.core.array_types import Bools, Ints, Longs
from levada.core.expressions import Call, Expression, Function, Param, Var
from levada.core.rdf_terms import Kind
from levada.core.row_ranges import ranges
from levada.operators.expressions.term_values import from_texts
from levada.operators.rows.filter_extend import parameters
from levada.operators.rows.range_keys import Bounds, RangeKey, bounds_of, interval_bounds
from levada.plan.execution import steps as s
from levada.plan.execution.joins import Order
from levada.plan.execution.plan import PlanNode

_BY_VALUE = (Order.VALUE, Order.DATE, Order.LOCAL)


class ListPredicate(NamedTuple):
    """The condition that a slot, or STR() of it (``text``), equals one of these parameters."""

    slot: int
    text: bool
    params: tuple[int, ...]

    def orders(self, *, tuples: bool) -> tuple[Order, ...]:
        """Returns the orders in which an index may find rows; columns of tuples only by their
        values.
        """
        if self.text:
            return () if tuples else (Order.STR,)
        return _BY_VALUE[:1] if tuples else _BY_VALUE


@dataclass(frozen=True, eq=False, slots=True)
class Points:
    """The intervals of members in an order: of member m from ``offsets[m]`` to before
    ``offsets[m + 1]``; a single one that says nothing where its list is not decided.
    """

    order: Order
    bounds: Bounds
    offsets: Longs
    is_decided: Bools

    def select_members(self, members: Ints) -> tuple[Bounds, Longs]:
        """Returns the points of these members, and the place among these members of each point's
        owner.
        """
        first = self.offsets[members]
        counts = self.offsets[members + 1] - first
        return self.bounds.select_rows(ranges(first, counts)), np.repeat(
            np.arange(len(members)), counts
        )


def parse_list(part: Expression) -> ListPredicate | None:
    """A part of a condition over slots and parameters as a list, if it is one.

    >>> three, seven = (Call(Function.EQUAL, (Var("2"), Param(i))) for i in (0, 1))
    >>> parse_list(Call(Function.OR, (three, seven)))
    ListPredicate(slot=2, text=False, params=(0, 1))
    """
    options = [*_options(part)]
    subjects = {(slot, text) for slot, text, _ in options}
    if len(subjects) != 1 or not all(params for *_, params in options):
        return None
    ((slot, text),) = subjects
    return ListPredicate(slot, text, tuple([i for *_, params in options for i in params]))


def wanted_of(node: PlanNode[s.Pick], number: int, members: Ints) -> tuple[Bounds, Longs]:
    """Returns the intervals that these members want by a range or a list, and the owner of each, by
    place.
    """
    if number >= 0:
        return node.compute_once(bounds_of, number).select_rows(members), np.arange(len(members))
    points = node.compute_once(points_of, -1 - number)
    assert points is not None, "a list that tells rows"
    return points.select_members(members)


def list_of(node: PlanNode[s.Pick], parts: Iterable[int]) -> int | None:
    """Returns the number of the first list among these parts of the rest that an index can use."""
    return next((-1 - i for i in parts if node.compute_once(points_of, i) is not None), None)


def axis_of(node: PlanNode[s.Pick], number: int) -> RangeKey:
    """Returns the axis of a list that an index uses."""
    i = -1 - number
    predicate, points = parse_list(node.step.rest[i]), node.compute_once(points_of, i)
    assert predicate is not None and points is not None, "a list that tells rows"
    return RangeKey(predicate.slot, points.order)


def points_of(node: PlanNode[s.Pick], i: int) -> Points | None:
    """Returns part i of the rest as points, in the order that decides the lists of all members, or
    None without such an order. Points in another order might miss rows that satisfy the list.
    """
    predicate = parse_list(node.step.rest[i])
    for order in () if predicate is None else predicate.orders(tuples=node.step.tuples):
        assert predicate is not None, "a list"
        points = _points(node, predicate, order)
        if points.is_decided[node.alive].all():
            return points
    return None


def _points(node: PlanNode[s.Pick], predicate: ListPredicate, order: Order) -> Points:
    """In an order; of equal values of a member one, so that no row is its twice. All constants are
    read at once: each reading costs Polars' calls, however few they are.
    """
    n, parts = len(node.members), [node.compute_once(parameters)[i] for i in predicate.params]
    constants = from_texts(pl.concat([part.texts() for part in parts]))
    each = interval_bounds([(Function.EQUAL, constants)], order, constants.n)
    is_decided: Bools = np.logical_and.reduce(each.is_decided.reshape(-1, n), axis=0)
    if predicate.text:  # a result of STR() only equals strings, though 5 has characters, too
        is_decided &= np.logical_and.reduce([part.kinds() == Kind.STRING for part in parts], axis=0)
    at = np.where(is_decided, each.low.reshape(-1, n), -np.inf)
    by_value = np.argsort(at, axis=0, kind="stable")
    at = np.take_along_axis(at, by_value, axis=0)
    first = np.ones(at.shape, np.bool_)
    first[1:] = at[1:] != at[:-1]
    member, place = np.nonzero(first.T)
    value = at[place, member]
    never = np.zeros(len(member), np.bool_)
    high = np.where(is_decided[member], value, np.inf)
    bounds = Bounds(value, high, never, never, is_decided[member], each.borders)
    offsets = np.append(0, np.cumsum(first.sum(axis=0)))
    return Points(order, bounds, offsets.astype(np.int64), is_decided)


def _options(part: Expression) -> Iterator[tuple[int, bool, tuple[int, ...]]]:
    """Slots that equal one of some parameters, whether by STR(); without parameters: something
    else is said.
    """
    match part:
        case Call(Function.OR, args):
            for arg in args:
                yield from _options(arg)
        case Call(Function.EQUAL, (Param() as param, Var() | Call() as of)):
            yield from _options(Call(Function.EQUAL, (of, param)))
        case Call(Function.EQUAL | Function.IN, (of, *others)):
            params = tuple([one.index for one in others if isinstance(one, Param)])
            slot, text = _subject(of)
            yield slot, text, params if slot >= 0 and len(params) == len(others) else ()
        case _:
            yield -1, False, ()


def _subject(of: Expression) -> tuple[int, bool]:
    """The slot of a variable or of STR() of one; -1: it is neither."""
    match of:
        case Var(name) if name:
            return int(name), False
        case Call(Function.STR, (Var(name),)) if name:
            return int(name), True
        case _:
            return -1, False
