"""Sends the results of equal queries once.

Equal queries read one member of an operator. Queries that differ only in the presentation of their
results (column names, templates, outputs) do so too. Each query has a member of an Emit, so the
edge to the Emit would carry one copy of the rows for each query. Instead it carries one copy, for
the *first* of these members (``SharedResults.fan``). The other members find their results there
(CQELS Cloud, C56: results go as far as they are alike, and expand where they are wanted).

A muted Emit has no results. A query that ends shares results with queries that end at the same
instant.
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
    """The members of an Emit that share results.

    ``fan``: the edge to the members that receive rows. ``members[i]`` has the same results as
    ``firsts[i]``, which ascend.
    """

    fan: FanOut
    firsts: Ints
    members: Ints

    def find_sharers(self, present: Ints) -> Frame:
        """Returns the members (``op``) that share the rows of the ``present`` members (``first``).

        ``present`` ascends.
        """
        at = np.searchsorted(self.firsts, present)
        counts = np.searchsorted(self.firsts, present, "right") - at
        op = self.members[ranges(at.astype(np.int64), counts)]
        return Frame({"op": op, "first": np.repeat(present, counts)}, len(op))

    def extend_sharers(self, same: Frame) -> Frame:
        """Returns the members that share the rows which first members (``op``) have of others.

        ``first`` stays the member that the rows belong to.
        """
        at = np.searchsorted(self.firsts, same["op"])
        counts = np.searchsorted(self.firsts, same["op"], "right") - at
        op = self.members[ranges(at.astype(np.int64), counts)]
        return Frame({"op": op, "first": np.repeat(same["first"], counts)}, len(op))


class _ResultsByNode(dict[int, SharedResults | None]):
    """Shared results by the number of the node."""


def find_shared_results(plan: Plan, number: int) -> SharedResults | None:
    """Returns the members of an Emit that share results, computed once for a plan.

    None: the members share no results, or the node is not an Emit.
    """
    known: _ResultsByNode = plan.facts.setdefault(_ResultsByNode, _ResultsByNode())
    if number not in known:
        emit = plan.nodes[number].as_step(s.Emit)
        known[number] = None if emit is None else _find_results(plan, emit)
    return known[number]


def drop_muted_members(plan: Plan, number: int, fan: FanOut) -> FanOut:
    """Removes the muted members of an Emit from the edge to it."""
    muted = [member for node, member in plan.muted if node == number]
    if not muted:
        return fan
    producer = np.repeat(np.arange(len(fan.offsets) - 1), np.diff(fan.offsets))
    kept = ~np.isin(fan.members, muted)
    offsets = np.zeros(len(fan.offsets), np.int32)
    np.cumsum(np.bincount(producer[kept], minlength=len(offsets) - 1), out=offsets[1:])
    return FanOut(offsets, fan.members[kept], False)


def add_shared_rows(rows: Frame, same: Frame, members: int) -> Frame:
    """Adds copies of rows for the members that share them (``SharedResults.find_sharers``).

    The result is ordered by ``op``. Rows whose ``op`` is not below ``members`` are dropped from it.

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
    """Returns the last instant at which each member's query reports."""
    if plan.first_end == MAX:
        return np.full(len(member), MAX, np.int64)
    names = map(node.members.query_at, member.tolist())
    queries = (plan.queries.get(name) for name in names)
    return np.array([MAX if query is None else query.until for query in queries], np.int64)
