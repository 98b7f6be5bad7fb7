"""The totals in manifests, of an epoch and of all epochs: the results of each query, the matches of
each pattern.

Removed queries keep one number and no pattern, so a manifest does not grow with queries that come
and go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from levada.checkpoint.epoch_context import SourceReport, TaskOutcome
from levada.checkpoint.manifest import Manifest
from levada.checkpoint.result_counts import NONE, ResultCounts, by_node, merge_counts
from levada.core.array_types import Longs
from levada.core.frame import Frame
from levada.core.query_limits import Limited
from levada.kernels.keyed.hash_groups import group
from levada.plan.execution.pattern_text import MOST_COUNTED, patterns_read
from levada.plan.execution.plan import Plan

Opener = Callable[[str], tuple[Mapping[str, Frame], Any]]


def counts(done: Sequence[TaskOutcome], opener: Opener) -> ResultCounts:
    """Counts the results of queries in an epoch, from the outcomes of its tasks.

    A report with rows of several tasks counts once: in such cases the reports are read from the
    segments.
    """
    task_counts = [d.counts for d in done if d.counts.op]
    if len(task_counts) < 2:
        return task_counts[0] if task_counts else NONE
    rows, several = merge_counts([each.frame() for each in task_counts])
    rows["reports"][several] = 1
    unsure = several & (rows["least"] < rows["most"])
    if unsure.any():
        opened = [opener(d.segment)[0] for d in done if d.segment]
        rows["reports"][unsure] = distinct_reports(rows.where(unsure), opened)
    return ResultCounts.from_rows(rows)


def distinct_reports(rows: Frame, segments: Sequence[Mapping[str, Frame]]) -> Longs:
    """Counts the distinct reports of these members (``node``, ``op``)."""
    report_counts: list[Longs] = []
    for node, node_rows in by_node(rows):
        name = f"reports.{node}"
        parts = [frames[name] for frames in segments if name in frames]
        op, r = (np.concatenate([part[column] for part in parts]) for column in ("op", "r"))
        mine = np.isin(op, node_rows["op"])
        op, r = op[mine], r[mine]
        _, first = group(op.astype(np.uint64), np.ascontiguousarray(r).view(np.uint64))
        report_counts.append(
            np.bincount(op[first], minlength=int(node_rows["op"][-1]) + 1)[node_rows["op"]]
        )
    return np.concatenate(report_counts)


def sizes(done: Sequence[TaskOutcome]) -> dict[str, int]:
    """Returns the bytes of each query's results in an epoch, where bytes are counted."""
    byte_counts = Counter[str]()
    for d in done:
        if d.result_bytes:
            byte_counts.update(d.result_bytes)
    return dict(byte_counts)


def count_excess_rows(done: Sequence[TaskOutcome], limits: Limited) -> dict[str, int]:
    """Returns the queries with more rows of state than their limit, with the number of rows."""
    row_counts = Counter[str]()
    for d in done:
        if d.window_rows:
            row_counts.update(d.window_rows)
    return {name: n for name, n in row_counts.items() if 0 < limits.limits_of_query(name).state < n}


def hits(plan: Plan, last: Manifest, controls: Sequence[SourceReport]) -> dict[str, dict[str, int]]:
    """Returns the number of triples that have matched each pattern, including this epoch's."""
    total, changed = dict(last.pattern_matches), set[str]()
    for c in controls:
        if c.pattern_matches:
            stream = plan.streams[c.stream]
            if stream not in changed:
                changed.add(stream)
                total[stream] = dict(total.get(stream, ()))
            counts = total[stream]
            for text, n in c.pattern_matches.items():
                counts[text] = counts.get(text, 0) + n
    read: set[tuple[str, str]] | None = None
    for stream in changed:
        if len(total[stream]) > 2 * MOST_COUNTED:
            read = _read(plan) if read is None else read
            total[stream] = {text: n for text, n in total[stream].items() if (stream, text) in read}
    return total


def _read(plan: Plan) -> set[tuple[str, str]]:
    return {
        read
        for query in plan.queries.values()
        for read in patterns_read(plan, query.node, query.member)
    }
