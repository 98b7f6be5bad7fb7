"""Narrows rows that are joined by their numbers to a query's own count window, as changes at
instants: the last step of the join that queries with count windows of any length share
(``windowing/count_axis``; CQELS Cloud, C33).

A row enters the window of the last n elements when its triples are there, or when an earlier
occurrence of one has left it, and leaves n elements after the first of its triples. The second
input contains the instants of these numbers: one row for each instant of the stream, which all
partitions have. Until then rows wait, those that will enter and those that will leave
(``state/ordered_buffer``). A row that enters and leaves within one instant was never there. So the
output equals that of a join over the query's own count window: rows of weight +1, with their end
where that is known, and else ended by one of weight -1.

Cost: by the rows that enter and leave; an instant costs a search, however many rows wait.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from levada.core import column_names as col
from levada.core.array_types import Longs
from levada.core.event_time import MAX, Times
from levada.core.frame import Frame, concat
from levada.operators.operator_context import Inputs, OperatorContext
from levada.operators.state.ordered_buffer import OrderedBuffer
from levada.operators.windowing import count_axis
from levada.plan.execution import steps as s
from levada.plan.execution.plan import PlanNode


class NewNumbers(NamedTuple):
    """The numbers that are new, by instants: the last ``number`` at each time ``ts``, ascending."""

    number: Longs
    ts: Times

    @property
    def top(self) -> int:
        """The last number of all."""
        return int(self.number[-1])

    def instants_at(self, number: Longs) -> Times:
        """Returns the instants of these new numbers; MAX: the number has not been reached."""
        return np.append(self.ts, MAX)[np.searchsorted(self.number, number)]


def narrow(node: PlanNode[s.Narrow], inputs: Inputs, env: OperatorContext) -> Frame | None:
    """Turns rows with numbers, and the instants of numbers, into the rows of each member's window,
    as changes.
    """
    rows, instants = inputs
    if instants is None:
        assert rows is None or not rows.n, "rows come with the instants of their numbers"
        return None
    order = np.argsort(instants[col.greatest(count_axis.LAST)], kind="stable")
    came = NewNumbers(instants[col.greatest(count_axis.LAST)][order], instants[col.least(0)][order])
    begin, end = _waiting_buffer(node, "begin", env), _waiting_buffer(node, "end", env)
    fresh = [] if rows is None else [_counting_rows(node, rows)]
    parts = [*begin.take_below(came.top + 1), *fresh]
    going = end.take_below(came.top + 1)
    made = [_end_rows(node, part, came) for part in going]
    if parts:
        both = concat(parts)
        coming = both.where(both[col.NUMBER] <= came.top)
        later = both.where(both[col.NUMBER] > came.top)
        made.append(_begin_rows(node, coming, came))
        begin.add(later)
        stays = coming.with_(**{col.NUMBER: coming[col.END]})
        stays = stays.where(stays[col.NUMBER] > came.top)
        end.add(stays)
    out = concat(made) if made else None
    return out if out is not None and out.n else None


def _waiting_buffer(node: PlanNode[s.Narrow], what: str, env: OperatorContext) -> OrderedBuffer:
    def living(rows: Frame) -> Frame:
        return rows.where(node.alive[rows["op"]])

    return OrderedBuffer(env.state, f"{node.id}.{what}", col.NUMBER, living)


def _counting_rows(node: PlanNode[s.Narrow], rows: Frame) -> Frame:
    """The rows that count for their member at some number: with the one at which they begin and the
    one at which they end.
    """
    start = node.windows.start.max(axis=0)
    s_, e = count_axis.exact_interval(rows, node.input_layouts[0], node.windows, start)
    counts = (rows[col.least(0)] >= start[rows["op"]]) & (s_ < e)
    names = [n for n in rows.columns if n == "op" or col.is_slot(n)]
    plain = rows.select((*names, col.PLACE, col.least(0)))
    return plain.with_(**{col.NUMBER: s_, col.END: e}).where(counts)


def _begin_rows(node: PlanNode[s.Narrow], rows: Frame, came: NewNumbers) -> Frame:
    """Returns rows that begin at reached numbers, unless they end at that instant."""
    begin, end = came.instants_at(rows[col.NUMBER]), came.instants_at(rows[col.END])
    return _change_rows(node, rows, begin, 1, end).where((begin < end) & node.alive[rows["op"]])


def _end_rows(node: PlanNode[s.Narrow], rows: Frame, came: NewNumbers) -> Frame:
    """Returns rows that end at reached numbers."""
    never = np.full(rows.n, MAX, np.int64)
    return _change_rows(node, rows, came.instants_at(rows[col.NUMBER]), -1, never).where(
        node.alive[rows["op"]]
    )


def _change_rows(node: PlanNode, rows: Frame, at: Times, weight: int, until: Times) -> Frame:
    """These rows as changes, in each of the query's windows, which are one."""
    weights = np.full(rows.n, weight, np.int8)
    times = {col.UNTIL: until}
    for j in range(len(node.layout.windows)):
        times |= {col.least(j): rows[col.least(0)], col.greatest(j): at}
    return rows.visible().with_(**times, w=weights)
