"""Counts the rows of state of each query: the rows that its own windows still reach, whether it
shares them or not.

Only rows that leave by time are counted: of the sides of joins, of sets, and of reports that are to
come. A row counts for a query that uses its member while it ends after the watermark of the
member's own streams, and if it came after the query did. So dead rows that were not dropped yet are
not counted, nor are other rows in a state part: a query has as many rows alone as among others. A
row of weight -1 subtracts one. Static rows, and sums by key (panes, sums, the numbers of count
windows), are not counted, nor are rows that follow from other rows of state and can be computed
again.

Cost: some 5 ns a row of state and epoch.
"""

from __future__ import annotations

import numpy as np

from levada.core import column_names as col
from levada.core.array_types import Bools, Ints, Longs
from levada.core.event_time import MAX, MIN, Times
from levada.core.frame import Frame
from levada.core.frozen import frozen
from levada.operators.state.state_parts import ALIKE, COPY_MARK, FOLLOWS, State, StatePart
from levada.plan.execution import steps as s
from levada.plan.execution.plan import Plan, PlanNode
from levada.plan.execution.query_charges import members_below


@frozen
class Use:
    """The queries that use members of a node since the same instant."""

    members: Ints
    queries: Ints


@frozen
class Uses:
    """The uses of all queries: by node and by the queries' begin."""

    names: tuple[str, ...]
    of: dict[int, dict[int, Use]]


def count_state_rows(
    plan: Plan, state: State, watermarks: Times, partition: int = 0
) -> dict[str, int]:
    """Returns the number of rows of each query in this partition, where it has any. Operators that
    are relaxed for several queries have no rows of one query: modes with this limit have no such
    operators. Rows that all partitions have count in the first ``partition``.
    """
    uses = plan.facts.get(Uses)
    if uses is None:
        uses = plan.facts[Uses] = _uses(plan)
    total = np.zeros(len(uses.names), np.int64)
    for key in state.keys(""):
        counts = (
            FOLLOWS not in key and COPY_MARK not in key and not (partition and key.endswith(ALIKE))
        )
        number = key.split(".", 1)[0] if counts else ""
        node = plan.nodes.get(int(number)) if number.isdigit() else None
        if node is None or node.id not in uses.of or isinstance(node.step, s.Panes):
            continue
        horizon = _horizon(node, watermarks)
        for piece in state.pieces(key):
            _add(total, uses.of[node.id], node, _rows(state, piece), horizon)
    return {uses.names[i]: int(total[i]) for i in np.flatnonzero(total > 0).tolist()}


def _add(
    total: Longs, uses: dict[int, Use], node: PlanNode, rows: Frame | None, horizon: Times
) -> None:
    """Adds the rows of a part to those of each query."""
    if rows is None or not rows.n:
        return
    op, begin = rows["op"], rows[col.BEGIN]
    live = (rows[col.END] > horizon[op]) & (begin > MIN)
    first = int(begin.min())
    for start, use in uses.items():
        is_counted = live & (begin > start) if start >= first else live
        counts = _count_by_member(rows, op, is_counted, len(node.members))
        np.add.at(total, use.queries, counts[use.members])


def _count_by_member(rows: Frame, op: Ints, is_counted: Bools, members: int) -> Longs:
    if "w" in rows:
        weighted = np.bincount(op[is_counted], rows["w"][is_counted], minlength=members)
        return weighted.astype(np.int64)
    return np.bincount(op[is_counted], minlength=members)


def _rows(state: State, piece: StatePart) -> Frame | None:
    """Member, weight, begin and end of a piece's rows, if they leave by time."""
    frames = state.frames(piece)
    rows, keys = state.frame(piece), frames.get(f"{piece.name}.key")
    names = [name for name in ("op", "w", col.PLACE) if name in rows]
    if keys is None:
        if col.END not in rows:
            return None
        return state.rows_of_partition(piece, rows.select((*names, col.BEGIN, col.END)))
    begin, end = np.empty(rows.n, np.int64), np.empty(rows.n, np.int64)
    order = keys[col.ORDER]
    begin[order] = keys[col.BEGIN]
    end[order] = keys.columns.get(col.END, keys[col.BEGIN] + piece.longest)
    return state.rows_of_partition(
        piece, rows.select(names).with_(**{col.BEGIN: begin, col.END: end})
    )


def _horizon(node: PlanNode, watermarks: Times) -> Times:
    """Returns for each member the instant up to which its own streams are complete: a row that ends
    by then does not count for it.
    """
    stream = node.windows.stream
    stream_watermarks = np.where(stream >= 0, watermarks[np.maximum(stream, 0)], MAX)
    least: Times = (
        stream_watermarks.min(axis=0, initial=MAX)
        if len(stream_watermarks)
        else np.full(len(node.members), MIN)
    )
    return np.where(least >= MAX, MIN, least - 1)


def _uses(plan: Plan) -> Uses:
    """The members of all nodes that each query uses, found once a plan."""
    names = tuple(plan.queries)
    by_node: dict[int, dict[int, tuple[list[int], list[int]]]] = {}
    for number, name in enumerate(names):
        query = plan.queries[name]
        for node, member in members_below(plan, (query.node, query.member)):
            members, queries = by_node.setdefault(node, {}).setdefault(query.start, ([], []))
            members.append(member)
            queries.append(number)
    of = {
        node: {
            start: Use(np.array(members, np.int32), np.array(queries, np.int32))
            for start, (members, queries) in by_start.items()
        }
        for node, by_start in by_node.items()
    }
    return Uses(names, of)
