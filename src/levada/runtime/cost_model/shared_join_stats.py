"""Keeps recent costs and results of relaxed joins, and the strategies of joins that have several.
The counts of tasks are added up, and halved when they are large, so that old ones fade.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from levada.checkpoint.epoch_context import TaskOutcome
from levada.checkpoint.manifest import Manifest
from levada.core.size_thresholds import register
from levada.plan.execution.joins import CHANGED, MADE
from levada.plan.execution.plan import Plan

MAX_REPORTED_JOINS = register(f"{__name__}.MAX_REPORTED_JOINS", 256)
"""Joins, those with most pairs, that are told."""
HALVING_PAIRS = register(f"{__name__}.HALVING_PAIRS", 1 << 20)
"""Pairs, from which on counts are halved."""


def update_counts(
    before: Mapping[str, Sequence[int]], done: Sequence[TaskOutcome], plan: Plan
) -> dict[str, list[int]]:
    """Returns the counts after an epoch, of the present joins."""
    join_counts = {at: list(counts) for at, counts in before.items() if _is_there(at, plan)}
    for task in done:
        for at, counts in task.relaxed_joins.items():
            counts_before = join_counts.setdefault(at, [0] * len(counts))
            join_counts[at] = [a + b for a, b in zip(counts_before, counts, strict=True)]
    for at, counts in join_counts.items():
        if counts[MADE] > HALVING_PAIRS:
            join_counts[at] = [count >> 1 for count in counts]
    if len(join_counts) > MAX_REPORTED_JOINS:
        most = sorted(join_counts, key=lambda at: -join_counts[at][MADE])[:MAX_REPORTED_JOINS]
        join_counts = {at: join_counts[at] for at in most}
    return join_counts


def forms_of(last: Manifest, done: Sequence[TaskOutcome], plan: Plan) -> dict[str, list[int]]:
    """Adds up the reports of tasks about joins with a chosen strategy. A join without work keeps
    its last report. The number of strategy changes is continued.
    """
    forms: dict[str, list[int]] = {}
    for task in done:
        for node, task_counts in task.join_strategies.items():
            counts = forms.setdefault(node, [0] * len(task_counts))
            forms[node] = [a + b for a, b in zip(counts, task_counts, strict=True)]
    for node, before in last.join_strategies.items():
        if node in forms:
            forms[node][CHANGED] += before[CHANGED]
        elif int(node) in plan.nodes:
            forms[node] = before
    return forms


def _is_there(at: str, plan: Plan) -> bool:
    node, member = map(int, at.split())
    return node in plan.nodes and bool(plan.nodes[node].alive[member])
