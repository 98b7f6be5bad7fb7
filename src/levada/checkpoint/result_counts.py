"""Counts of the results of queries in columns, from the task to the manifest, without an object for
each query.

A query is identified by its Emit: a node and a member, which no other query ever has
(``plan/topology/catalog_members``). Rows ascend by both. So an epoch is counted, added up and
written by columns, however many queries have results in it. Counts of one query are looked up, and
names come from the plan (docs/decisions/0090-counts-are-columns.md).

In JSON a column is its bytes, as base64; a column of equal values is one value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import msgspec
import numpy as np
import numpy.typing as npt

from levada.core.array_types import Bools, Ints, Longs
from levada.core.frame import Column, Frame, concat
from levada.plan.execution.plan import Plan, QueryPlan

Counts = tuple[int, int, int, int]
"""A query's solutions, least report, greatest report, number of reports."""
_FOLDS = {"n": np.add, "least": np.minimum, "most": np.maximum, "reports": np.add}
_COLUMNS = tuple(_FOLDS)


class ResultCounts(msgspec.Struct, frozen=True, omit_defaults=True):
    """The results of queries: solutions (``n``), the ``least`` and the greatest report (``most``),
    and the number of ``reports``. In totals the two in the middle are 0.

    >>> rows = {"node": [3, 3], "op": [1, 4], "n": [5, 6], "least": [7, 7], "most": [7, 9],
    ...         "reports": [1, 2]}
    >>> columns = {name: np.array(values) for name, values in rows.items()}
    >>> counts = ResultCounts.from_rows(Frame(columns, 2))
    >>> counts.emit_counts(3, 4), counts.emit_counts(3, 2), len(counts), len(counts.node)
    ((6, 7, 9, 2), None, 2, 4)
    """

    op: bytes = b""
    node: bytes = b""
    n: bytes = b""
    least: bytes = b""
    most: bytes = b""
    reports: bytes = b""

    @staticmethod
    def from_rows(rows: Frame) -> ResultCounts:
        """Makes counts from these columns, one row for each member, ascending."""
        if not rows.n:
            return NONE
        columns = {name: _pack(rows[name]) for name in _COLUMNS if name in rows.columns}
        op = rows["op"].astype(np.int32).tobytes()
        return ResultCounts(op, _pack(rows["node"].astype(np.int32)), **columns)

    def __len__(self) -> int:
        return len(self.op) // 4

    @property
    def solutions(self) -> int:
        """The number of solutions of all queries."""
        return int(self._longs("n").sum()) if self.op else 0

    def frame(self) -> Frame:
        """Returns the columns ``node``, ``op`` and those of the counts."""
        op, none = self._ops(), bytes(8)
        columns: dict[str, Column] = {"node": self._nodes(), "op": op}
        held = (self.n, self.least, self.most, self.reports)
        for name, data in zip(_COLUMNS, held, strict=True):
            columns[name] = _unpack(data or none, np.int64, op.size)
        return Frame(columns, op.size)

    def plus(self, more: ResultCounts) -> ResultCounts:
        """Adds the solutions and reports of the same queries, in totals.

        >>> rows = {"node": [3, 3], "op": [1, 4], "n": [5, 6], "reports": [1, 1]}
        >>> some = ResultCounts.from_rows(Frame({n: np.array(c) for n, c in rows.items()}, 2))
        >>> some.plus(some).emit_counts(3, 4)
        (12, 0, 0, 2)
        """
        n, reports = (_pack(self._longs(name) + more._longs(name)) for name in ("n", "reports"))
        return ResultCounts(self.op, self.node, n, b"", b"", reports)

    def emit_counts(self, node: int, member: int) -> Counts | None:
        """Returns the counts of the query of this Emit, if it has results."""
        first, last = np.searchsorted(self._nodes(), [node, node + 1]).tolist()
        ops = self._ops()
        at = first + int(np.searchsorted(ops[first:last], member))
        if at == last or ops[at] != member:
            return None
        n, least, most, reports = (int(self._longs(name)[at]) for name in _COLUMNS)
        return n, least, most, reports

    def query_counts(self, query: QueryPlan | None) -> Counts | None:
        """Returns the counts of a query, if it has results."""
        return None if query is None or not self.op else self.emit_counts(query.node, query.member)

    def by_name(self, plan: Plan) -> dict[str, Counts]:
        """Returns the counts of each query, by its name in the plan of the counts."""
        lists = [self._longs(name).tolist() for name in _COLUMNS]
        return dict(zip(names_of(plan, self.frame()), zip(*lists, strict=True), strict=True))

    def _nodes(self) -> Ints:
        nodes: Ints = _unpack(self.node, np.int32, len(self.op) // 4)
        return nodes

    def _ops(self) -> Ints:
        ops: Ints = np.frombuffer(self.op, np.int32)
        return ops

    def _longs(self, name: str) -> Longs:
        values: Longs = _unpack(getattr(self, name) or bytes(8), np.int64, len(self.op) // 4)
        return values


NONE = ResultCounts()


def names_of(plan: Plan, rows: Frame) -> Iterator[str]:
    """Returns the names of the queries of these rows, which the plan contains."""
    for node, part in by_node(rows):
        members = plan.nodes[node].members
        yield from map(members.query_at, part["op"].tolist())


def by_node(rows: Frame) -> Iterator[tuple[int, Frame]]:
    """Yields the rows of each node."""
    if not rows.n:
        return
    node = rows["node"]
    borders = [0, *((node[1:] != node[:-1]).nonzero()[0] + 1).tolist(), rows.n]
    for first, last in pairwise(borders):
        yield int(node[first]), rows.slice(first, last)


def merge_counts(parts: Sequence[Frame]) -> tuple[Frame, Bools]:
    """Merges counts to one row for each member, ascending: solutions and reports are added up. Also
    returns a mask of the rows that come from several parts.
    """
    if len(parts) > 1 and _has_same_members(parts):  # the same queries report again and again
        folded = {name: fold.reduce([p[name] for p in parts]) for name, fold in _FOLDS.items()}
        return parts[0].with_(**folded), np.ones(parts[0].n, np.bool_)
    whole = concat(parts)
    order = np.lexsort((whole["op"], whole["node"]))
    rows = whole.take(order)
    node, op = rows["node"], rows["op"]
    new = np.ones(rows.n, np.bool_)
    new[1:] = (node[1:] != node[:-1]) | (op[1:] != op[:-1])
    first = new.nonzero()[0]
    columns: dict[str, Column] = {"node": node[first], "op": op[first]}
    for name, fold in _FOLDS.items():
        columns[name] = fold.reduceat(rows[name], first) if rows.n else rows[name]
    return Frame(columns, len(first)), np.concatenate([first[1:], [rows.n]]) - first > 1


def _has_same_members(parts: Sequence[Frame]) -> bool:
    """Whether all parts, which are ascending, have the same members."""
    return len({(part["node"].tobytes(), part["op"].tobytes()) for part in parts}) == 1


def living_rows(plan: Plan, rows: Frame) -> Bools:
    """Returns a mask of the rows of queries in the plan."""
    node, op = rows["node"], rows["op"]
    alive = np.zeros(rows.n, np.bool_)
    for number in np.unique(node).tolist():
        if number in plan.nodes:
            places = (node == number).nonzero()[0]
            alive[places] = plan.nodes[number].alive[op[places]]
    return alive


def move_members(plan: Plan, since: int, rows: Frame) -> Frame:
    """Moves rows of Emits of former versions to those that replaced them after the plan version
    ``since``; returns them ascending.
    """
    now = {
        (node, member): (query.node, query.member)
        for query in plan.switched_queries
        for until, node, member in query.manner.formers
        if until > since
    }
    if not now:
        return rows
    node, op = rows["node"].copy(), rows["op"].copy()
    for (old, member), (number, new_member) in now.items():
        at = (rows["node"] == old) & (rows["op"] == member)
        node[at], op[at] = number, new_member
    return merge_counts([rows.with_(node=node, op=op)])[0]


class ResultTotals:
    """The results of queries over several epochs, by node and member: 16 bytes for each number that
    a node has given to a member.
    """

    def __init__(self) -> None:
        self._of: dict[int, Longs] = {}
        self.solutions = self.reports = 0

    def add(self, result_counts: ResultCounts) -> None:
        """Adds the counts of an epoch."""
        if not result_counts.op:
            return
        for node, rows in by_node(result_counts.frame()):
            sums = self._sums_up_to(node, int(rows["op"][-1]))
            sums[0, rows["op"]] += rows["n"]
            sums[1, rows["op"]] += rows["reports"]
            self.solutions += int(rows["n"].sum())
            self.reports += int(rows["reports"].sum())

    def query_totals(self, query: QueryPlan | None) -> tuple[int, int]:
        """Returns the solutions and reports of a query, by all Emits that it has had."""
        if query is None:
            return 0, 0
        sums = [self._emit_totals(one) for one in query.with_former_emits]
        return sum(n for n, _ in sums), sum(reports for _, reports in sums)

    def _emit_totals(self, query: QueryPlan) -> tuple[int, int]:
        sums = self._of.get(query.node)
        if sums is None or query.member >= sums.shape[1]:
            return 0, 0
        n, reports = sums[:, query.member].tolist()
        return n, reports

    def members_above(self, reports: int) -> Frame:
        """Returns the members with more reports: ``node``, ``op`` and ``reports``."""
        busy_members = [
            (node, (sums[1] > reports).nonzero()[0]) for node, sums in sorted(self._of.items())
        ]
        columns: dict[str, Column] = {
            "node": np.repeat(
                np.array([node for node, _ in busy_members], np.int64),
                [len(op) for _, op in busy_members],
            ),
            "op": np.concatenate([np.zeros(0, np.int64), *(op for _, op in busy_members)]),
            "reports": np.concatenate(
                [np.zeros(0, np.int64), *(self._of[node][1, op] for node, op in busy_members)]
            ),
        }
        return Frame(columns, len(columns["op"]))

    def _sums_up_to(self, node: int, member: int) -> Longs:
        """Returns the sums of a node, with space up to this member."""
        sums = self._of.get(node)
        if sums is None or member >= sums.shape[1]:
            size = 0 if sums is None else sums.shape[1]
            wider = np.zeros((2, max(member + 1, size + size // 2)), np.int64)
            if sums is not None:
                wider[:, :size] = sums
            self._of[node] = sums = wider
        return sums


def _pack(values: npt.NDArray[np.integer[Any]]) -> bytes:
    constant = values.size > 1 and bool((values == values[0]).all())
    return (values[:1] if constant else values).tobytes()


def _unpack(data: bytes, dtype: npt.DTypeLike, size: int) -> npt.NDArray[Any]:
    values = np.frombuffer(data, dtype)
    return values if values.size == size else values.repeat(size)
