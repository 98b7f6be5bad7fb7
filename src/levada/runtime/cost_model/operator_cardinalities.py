"""Keeps recent cardinalities of operators and joins, in rows for so many elements of the streams.
The counts of tasks are added up, and halved when they are large, so that old ones fade.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from levada.checkpoint.epoch_context import TaskOutcome
from levada.checkpoint.manifest import Manifest, StreamRecord
from levada.core.size_thresholds import register
from levada.operators.rows.cardinality_counters import MAX_REPORTED_MEMBERS, Joining
from levada.plan.execution.joins import CHANGED, MADE
from levada.plan.execution.plan import Plan

# Keeps recent costs and results of relaxed joins, and the strategies of joins that have several.
# The counts of tasks are added up, and halved when they are large, so that old ones fade.


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


HALVING_ELEMENTS = register(f"{__name__}.HALVING_ELEMENTS", 1 << 17)
"""Elements, from which on counts are halved."""


def tell_counts(
    manifest: Manifest, last: Manifest, done: Sequence[TaskOutcome], plan: Plan
) -> None:
    """Writes the statistics of an epoch into its manifest, for the choices of later plans."""
    manifest.join_rows = flows_of(last, done, plan, manifest.streams)
    manifest.node_charges = charges_of(last, done, plan)
    manifest.relaxed_joins, manifest.join_strategies = (
        update_counts(last.relaxed_joins, done, plan),
        forms_of(last, done, plan),
    )


def charges_of(
    last: Manifest, done: Sequence[TaskOutcome], plan: Plan
) -> dict[int, tuple[float, int]]:
    """Adds an epoch to the charges of operators. Cost: linear in the operators with rows in the
    epoch, and in at most ``MAX_REPORTED_MEMBERS`` others.
    """
    charges = {node: charge for node, charge in last.node_charges.items() if node in plan.nodes}
    for outcome in done:
        for name, seconds in outcome.cpu_by_node.items():
            before, rows = charges.get(int(name), (0.0, 0))
            charges[int(name)] = (
                round(before + seconds, 6),
                rows + outcome.rows_by_node.get(name, 0),
            )
    if len(charges) > MAX_REPORTED_MEMBERS:
        most = sorted(charges, key=lambda node: -charges[node][0])[:MAX_REPORTED_MEMBERS]
        charges = {node: charges[node] for node in most}
    return charges


def flows_of(
    last: Manifest, done: Sequence[TaskOutcome], plan: Plan, records: Mapping[str, StreamRecord]
) -> dict[str, list[int]]:
    """Returns the counts after an epoch: [rows, elements] by node and member. If there are many, it
    keeps those with the most rows.
    """
    before = last.join_rows
    read = (sum(s.elements for s in streams.values()) for streams in (records, last.streams))
    elements = max(next(read) - next(read), 0)
    if not elements and last.plan == plan.version:
        return before
    new_rows: dict[str, int] = {}
    for task in done:
        for at, rows in task.join_rows.items():
            new_rows[at] = new_rows.get(at, 0) + rows
    flows: dict[str, list[int]] = {}
    for at in _members(before, new_rows, plan):
        rows, total = before.get(at, (0, 0))
        rows, total = rows + new_rows.get(at, 0), total + elements
        flows[at] = [rows >> 1, total >> 1] if total > HALVING_ELEMENTS else [rows, total]
    if len(flows) > MAX_REPORTED_MEMBERS:
        most = sorted(flows, key=lambda at: -flows[at][0])[:MAX_REPORTED_MEMBERS]
        flows = {at: flows[at] for at in most}
    return flows


def _members(
    before: Mapping[str, list[int]], new_rows: Mapping[str, int], plan: Plan
) -> Sequence[str]:
    """Returns the members whose counts are kept: all if they are few, else those that have had
    rows.
    """
    if _FewMembers not in plan.facts:
        plan.facts[_FewMembers] = _FewMembers.from_plan(plan)
    few: _FewMembers | None = plan.facts[_FewMembers]
    if few is not None:
        return few
    return [at for at in dict.fromkeys([*before, *new_rows]) if _is_there(at, plan)]


class _FewMembers(list[str]):
    """The members of a plan whose rows are counted, by node and member as a text."""

    @classmethod
    def from_plan(cls, plan: Plan) -> _FewMembers | None:
        """Returns the members; None if they are many."""
        nodes = [plan.nodes[n] for n in sorted(Joining.from_plan(plan).nodes)]
        if sum(len(node.members) for node in nodes) > MAX_REPORTED_MEMBERS:
            return None
        return cls(f"{node.id} {m}" for node in nodes for m in node.alive.nonzero()[0].tolist())


def _is_there(at: str, plan: Plan) -> bool:
    node, member = map(int, at.split())
    return node in plan.nodes and bool(plan.nodes[node].alive[member])
