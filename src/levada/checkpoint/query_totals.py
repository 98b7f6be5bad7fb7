"""Totals: the solutions and reports of each query since it was added.

    manifest  totals    of queries with recent results: ``MAX_INLINE_QUERIES`` at most
              totalled  files with earlier ones: columns of node, member, solutions, reports,
                        ascending by the first two

The total of a query is the sum of all of these. Too many in the manifest become a file. Two files
are merged when the newer is half as large, so there are few, and rows are rewritten as often. Rows
of removed queries are dropped in a merge, so the work of an epoch depends only on its results. A
query is identified by its Emit: a node and a member, never used again
(``plan/topology/catalog_members``). An Emit that takes its place inherits the totals. The files are
``files`` of the manifest, durable before it, and deleted like state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from levada.checkpoint import state_files
from levada.checkpoint.manifest import Manifest
from levada.checkpoint.result_counts import (
    NONE,
    ResultCounts,
    living_rows,
    merge_counts,
    move_members,
    names_of,
)
from levada.core.frame import Frame
from levada.core.size_thresholds import register
from levada.errors import CheckpointError
from levada.operators.state.checksummed_frames import checked_parts
from levada.plan.execution.plan import Plan, QueryPlan

MAX_INLINE_QUERIES = register(f"{__name__}.MAX_INLINE_QUERIES", 1024)
"""The most queries whose totals are in a manifest."""
FOLDER, NAME = "state", "totals"

T = TypeVar("T")
Files = list[tuple[str, int]]


def update_totals(
    root: str, plan: Plan, last: Manifest, epoch: int, counts: ResultCounts
) -> tuple[ResultCounts, Files]:
    """Returns the totals after an epoch with these results: recent ones, and files."""
    recent, gone = last.totals, plan.version != last.plan
    if not len(counts) and not gone:
        return recent, last.total_files
    if not gone and counts.op == recent.op and counts.node == recent.node:
        return recent.plus(counts), last.total_files
    parts = [_totals(totals) for totals in (recent, counts) if len(totals)]
    rows = merge_counts(parts)[0] if parts else _totals(NONE)
    files = last.total_files
    if gone:
        rows, files = _move_totals(root, plan, last, rows)
        rows = rows.where(living_rows(plan, rows))
    if rows.n <= MAX_INLINE_QUERIES:
        return ResultCounts.from_rows(rows), files
    return NONE, _append_file(root, plan, files, epoch, rows)


def total_of(root: str, manifest: Manifest, query: QueryPlan) -> tuple[int, int]:
    """Returns the solutions and reports of a query of the manifest's plan, or of the next one.
    Raises ``CheckpointError``.
    """
    parts = [_totals(manifest.totals), *(_read(root, name) for name, _ in manifest.total_files)]
    sums = [_total(rows, one) for rows in parts for one in query.with_former_emits]
    return sum(n for n, _ in sums), sum(reports for _, reports in sums)


def _total(rows: Frame, query: QueryPlan) -> tuple[int, int]:
    """Returns the totals of an Emit in ascending rows."""
    first, last = np.searchsorted(rows["node"], [query.node, query.node + 1])
    at = first + int(np.searchsorted(rows["op"][first:last], query.member))
    if at == last or rows["op"][at] != query.member:
        return 0, 0
    return int(rows["n"][at]), int(rows["reports"][at])


def solutions_of(root: str, manifest: Manifest, plan: Plan) -> dict[str, int]:
    """Returns the number of solutions of each query of the manifest's plan with results. Raises
    ``CheckpointError``.
    """
    solutions = Counter[str]()
    for rows in (
        _totals(manifest.totals),
        *(_read(root, name) for name, _ in manifest.total_files),
    ):
        there = rows.where(living_rows(plan, rows))
        for name, n in zip(names_of(plan, there), there["n"].tolist(), strict=True):
            solutions[name] += n
    return dict(solutions)


def read_by_last_manifest(last: Callable[[], Manifest], read: Callable[[Manifest], T]) -> T:
    """Calls ``read`` with the last manifest of a run that continues meanwhile and deletes files
    that only the manifest before the last names. Raises ``CheckpointError``.
    """
    while True:
        now = last()
        try:
            return read(now)
        except CheckpointError:
            if last() is now:
                raise


def _move_totals(root: str, plan: Plan, last: Manifest, rows: Frame) -> tuple[Frame, Files]:
    """Returns the recent totals and files after queries have got other Emits than by the last
    manifest. Their totals move along. Reads the files for that, and merges all if one has such a
    query.
    """
    if not any(
        until > last.plan for q in plan.switched_queries for until, _, _ in q.manner.formers
    ):
        return rows, last.total_files
    parts = [_read(root, name) for name, _ in last.total_files]
    moved_parts = [move_members(plan, last.plan, part) for part in parts]
    same = all(
        np.array_equal(part[column], moved_part[column])
        for part, moved_part in zip(parts, moved_parts, strict=True)
        for column in ("node", "op")
    )
    rows = move_members(plan, last.plan, rows)
    return (rows, last.total_files) if same else (merge_counts([*moved_parts, rows])[0], [])


def _totals(result_counts: ResultCounts) -> Frame:
    """Returns the additive columns of results, without the first and last reports."""
    rows = result_counts.frame()
    none = np.zeros(rows.n, np.int64)
    return rows.with_(least=none, most=none)


def _append_file(root: str, plan: Plan, files: Files, epoch: int, rows: Frame) -> Files:
    """Returns the files with one more, after merging it with others."""
    files = list(files)
    parts, size = [rows], rows.n
    while files and files[-1][1] <= 2 * size:
        name, row_count = files.pop()
        parts.append(_read(root, name))
        size += row_count
    whole = merge_counts(parts)[0]
    whole = whole.where(living_rows(plan, whole))
    if not whole.n:
        return files
    data = checked_parts({NAME: whole}, {})
    return [*files, (state_files.write(root, FOLDER, f"{epoch}-{NAME}", data), whole.n)]


def _read(root: str, name: str) -> Frame:
    return state_files.map_(root, name)[0][NAME]
