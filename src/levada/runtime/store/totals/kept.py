"""Totals: how many solutions and reports each query has had since it came.

    manifest  totals    of the queries that have had some of late, by name: ``FEW`` at most
              totalled  files, each with those of all that went before: columns of node, member,
                        solutions, reports, ascending by the first two

What a query has had is the sum of all of these. When too many are in the manifest they become a
file; two files become one where the newer is half as large, so there are few, and a row is
rewritten as often. A query is told by its Emit: a node and a member, which are of no other ever
(``plan/topology/members``); rows of those that are gone are left out when files become one. So an
epoch writes what it has counted, however many queries there are.

Files are durable before the manifest that names them, and one of an attempt that failed is named by
none: they are ``files`` of the manifest, and deleted as state is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeVar

import numpy as np

from levada.errors import CheckpointError
from levada.model.arrays import Bools, Longs
from levada.model.checked import checked_parts
from levada.model.frame import Column, Frame, concat
from levada.plan.sealed.plan import Plan, QueryPlan
from levada.runtime.store import state_files
from levada.runtime.store.manifest import Manifest

FEW = 1024
"""Queries whose totals stand in a manifest."""
FOLDER, NAME = "state", "totals"
NONE = (0, 0)

T = TypeVar("T")
Recent = dict[str, list[int]]
Files = list[tuple[str, int]]


def keep(
    root: str, plan: Plan, last: Manifest, epoch: int, counts: Mapping[str, Sequence[int]]
) -> tuple[Recent, Files]:
    """The totals after an epoch, in which queries have had so many [solutions, .., .., reports]: of
    late, and files.
    """
    recent, there = last.totals.copy(), plan.queries
    if plan.version != last.plan:
        for query in [n for n in recent if n not in there or there[n].since > last.plan]:
            del recent[query]
    if len(counts) > FEW:  # too many for a manifest anyway
        parts = [_rows(plan, recent), _rows(plan, counts)] if recent else [_rows(plan, counts)]
        return {}, _written(root, plan, last.totalled, epoch, concat(parts))
    for query, (n, _, _, reports) in counts.items():
        before = recent.get(query, NONE)
        recent[query] = [before[0] + n, before[1] + reports]  # the list is the last manifest's, too
    if len(recent) <= FEW:
        return recent, last.totalled
    return {}, _written(root, plan, last.totalled, epoch, _rows(plan, recent))


def total_of(root: str, manifest: Manifest, query: QueryPlan) -> tuple[int, int]:
    """The solutions and reports of a query of the manifest's plan. Raises ``CheckpointError``."""
    solutions, reports = manifest.totals.get(query.name, NONE)
    for name, _ in manifest.totalled:
        rows = _read(root, name)
        first, last = np.searchsorted(rows["node"], [query.node, query.node + 1])
        at = first + int(np.searchsorted(rows["op"][first:last], query.member))
        if at < last and rows["op"][at] == query.member:
            solutions, reports = solutions + int(rows["n"][at]), reports + int(rows["reports"][at])
    return solutions, reports


def solutions_of(root: str, manifest: Manifest, plan: Plan) -> dict[str, int]:
    """The solutions of each query of the manifest's plan that has had some. Raises
    ``CheckpointError``.
    """
    found = {name: n for name, (n, _) in manifest.totals.items() if name in plan.queries}
    for file, _ in manifest.totalled:
        rows = _read(root, file)
        rows = rows.where(_living(plan, rows))
        nodes = [plan.nodes[node].members for node in rows["node"].tolist()]
        for members, op, n in zip(nodes, rows["op"].tolist(), rows["n"].tolist(), strict=True):
            name = members[op].query
            found[name] = found.get(name, 0) + n
    return found


def of_last(last: Callable[[], Manifest], read: Callable[[Manifest], T]) -> T:
    """What ``read`` finds by the last manifest, of a run that goes on meanwhile and deletes what
    the one before the last names alone. Raises ``CheckpointError``.
    """
    while True:
        now = last()
        try:
            return read(now)
        except CheckpointError:
            if last() is now:
                raise


def _rows(plan: Plan, recent: Mapping[str, Sequence[int]]) -> Frame:
    """[solutions, .., reports] of queries as columns, in no order."""
    queries = [plan.queries[name] for name in recent]
    counted = np.array(list(recent.values()), np.int64)
    columns: dict[str, Column] = {
        "node": np.array([query.node for query in queries], np.int64),
        "op": np.array([query.member for query in queries], np.int32),
        "n": counted[:, 0].copy(),
        "reports": counted[:, -1].copy(),
    }
    return Frame(columns, len(queries))


def _written(root: str, plan: Plan, files: Files, epoch: int, rows: Frame) -> Files:
    """The files with one more, and with those that it is put together with."""
    files = list(files)
    parts, size = [rows], rows.n
    while files and files[-1][1] <= 2 * size:
        name, own = files.pop()
        parts.append(_read(root, name))
        size += own
    whole = concat(parts)
    whole = _summed(whole.where(_living(plan, whole)))
    if not whole.n:
        return files
    data = checked_parts({NAME: whole}, {})
    return [*files, (state_files.write(root, FOLDER, f"{epoch}-{NAME}", data), whole.n)]


def _summed(rows: Frame) -> Frame:
    """One row for each member, ascending."""
    order = np.lexsort((rows["op"], rows["node"]))
    node, op = rows["node"][order], rows["op"][order]
    new = np.ones(len(order), np.bool_)
    new[1:] = (node[1:] != node[:-1]) | (op[1:] != op[:-1])
    first = np.flatnonzero(new)
    n, reports = (_sums(rows[name][order], first) for name in ("n", "reports"))
    return Frame({"node": node[first], "op": op[first], "n": n, "reports": reports}, len(first))


def _sums(values: Longs, first: Longs) -> Longs:
    found: Longs = np.add.reduceat(values, first) if len(first) else values
    return found


def _living(plan: Plan, rows: Frame) -> Bools:
    """Which rows are of queries of the plan."""
    node, op = rows["node"], rows["op"]
    found = np.zeros(rows.n, np.bool_)
    for number in np.unique(node).tolist():
        if number in plan.nodes:
            own = np.flatnonzero(node == number)
            found[own] = plan.nodes[number].alive[op[own]]
    return found


def _read(root: str, name: str) -> Frame:
    return state_files.map_(root, name)[0][NAME]
