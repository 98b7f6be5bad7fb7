"""Queries with the same results have them once.

Equal queries, and such as differ in how their results are shown alone (names of columns, templates,
outputs), read one member of an operator; each has a member of an Emit. Along that edge would go a
copy for each of them. It is one copy, of the *first* of these members (``SharedResults.fan``); who
wants the results of another finds them there, by what stands beside the rows (CQELS Cloud, C56:
results go as far as they are alike, and expand where somebody wants them).

An Emit that is muted has no results. Queries that end share with those that end at that instant.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from levada.core.array_types import Ints, Longs
from levada.core.event_time import MAX
from levada.core.frame import Frame, concat
from levada.core.row_ranges import ranges, starts_segment
from levada.plan.execution import steps as s
from levada.plan.execution.plan import FanOut, Plan, PlanNode


@dataclass(frozen=True, eq=False, slots=True)
class SharedResults:
    """Of an Emit: the edge to the members that have rows, and in order of ``firsts`` those that
    have the same.
    """

    fan: FanOut
    firsts: Ints
    members: Ints

    def of(self, present: Ints) -> Frame:
        """Who else has the rows of the members that are ``present`` (ascending): ``op``, and
        ``first``, whose they are.
        """
        at = np.searchsorted(self.firsts, present)
        counts = np.searchsorted(self.firsts, present, "right") - at
        op = self.members[ranges(at.astype(np.int64), counts)]
        return Frame({"op": op, "first": np.repeat(present, counts)}, len(op))

    def along(self, same: Frame) -> Frame:
        """Who else has what first members (``op``) have of others' (``first``), likewise."""
        at = np.searchsorted(self.firsts, same["op"])
        counts = np.searchsorted(self.firsts, same["op"], "right") - at
        op = self.members[ranges(at.astype(np.int64), counts)]
        return Frame({"op": op, "first": np.repeat(same["first"], counts)}, len(op))


class _Known(dict[int, SharedResults | None]):
    """By the number of the node."""


def find_shared_results(plan: Plan, number: int) -> SharedResults | None:
    """The members of an Emit that have the rows of others; None where each has its own, and of all
    other nodes. Found once for a plan.
    """
    known: _Known = plan.facts.setdefault(_Known, _Known())
    if number not in known:
        emit = plan.nodes[number].of(s.Emit)
        known[number] = None if emit is None else _find_results(plan, emit)
    return known[number]


def drop_muted_members(plan: Plan, number: int, fan: FanOut) -> FanOut:
    """The edge to an Emit without its members that are muted."""
    muted = [member for node, member in plan.muted if node == number]
    if not muted:
        return fan
    producer = np.repeat(np.arange(len(fan.offsets) - 1), np.diff(fan.offsets))
    kept = ~np.isin(fan.members, muted)
    offsets = np.zeros(len(fan.offsets), np.int32)
    np.cumsum(np.bincount(producer[kept], minlength=len(offsets) - 1), out=offsets[1:])
    return FanOut(offsets, fan.members[kept], False)


def add_shared_rows(rows: Frame, same: Frame, members: int) -> Frame:
    """Rows by ``op``, also those that others have the ``same`` of (``SharedResults.of``); none that
    are no member's own, of which there are so many.

    >>> rows = Frame({"op": np.array([2, 1, 2], np.int32), "r": np.array([5, 6, 7])}, 3)
    >>> same = Frame({"op": np.array([3], np.int32), "first": np.array([2], np.int32)}, 1)
    >>> whole = add_shared_rows(rows, same, 4)
    >>> whole["op"].tolist(), whole["r"].tolist()
    ([1, 2, 2, 3, 3], [6, 5, 7, 5, 7])
    """
    order = np.argsort(rows["op"], kind="stable")
    rows = rows.take(order)
    at = np.searchsorted(rows["op"], same["first"]).astype(np.int64)
    counts = np.searchsorted(rows["op"], same["first"], "right") - at
    others = rows.take(ranges(at, counts)).with_(op=np.repeat(same["op"], counts))
    whole = concat([rows.where(rows["op"] < members), others])
    return whole.take(np.argsort(whole["op"], kind="stable"))


def _find_results(plan: Plan, node: PlanNode[s.Emit]) -> SharedResults | None:
    (below,) = node.inputs
    (fan,) = (edge.fan for edge in plan.nodes[below].consumers if edge.node == node.id)
    counts = np.diff(fan.offsets)
    if fan.identity or not (counts > 1).any():
        return None
    producer = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    muted = [member for number, member in plan.muted if number == node.id]
    heard = ~np.isin(fan.members, muted)
    producer, member = producer[heard], fan.members[heard]
    end = _ends(plan, node, member)
    order = np.lexsort((member, end, producer))
    producer, member, end = producer[order], member[order], end[order]
    new = starts_segment(producer, end)
    first = member[new][np.cumsum(new) - 1]
    if new.all():
        return None
    offsets = np.zeros(len(fan.offsets), np.int32)
    np.cumsum(np.bincount(producer[new], minlength=len(counts)), out=offsets[1:])
    others, by_first = member[~new], first[~new]
    order = np.argsort(by_first, kind="stable")
    return SharedResults(FanOut(offsets, member[new], False), by_first[order], others[order])


def _ends(plan: Plan, node: PlanNode, member: Ints) -> Longs:
    """The last instant at which each member's query reports."""
    if plan.first_end == MAX:
        return np.full(len(member), MAX, np.int64)
    names = map(node.members.query_at, member.tolist())
    queries = (plan.queries.get(name) for name in names)
    return np.array([MAX if query is None else query.until for query in queries], np.int64)
