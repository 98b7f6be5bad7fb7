"""What groups send each other does not depend on where they are: random queries over one partition
without moves, and over some with groups that move, against each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import partial
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.checkpoint.checkpoint_folder import Checkpoint
from levada.checkpoint.epoch_context import TaskOutcome
from levada.checkpoint.key_group_tables import Dealing
from levada.engine.engine import Engine
from levada.plan.execution import steps as s
from levada.plan.execution.key_group_table import GroupTable, deal_round_robin
from levada.plan.execution.plan import Plan
from levada.runtime.placement import key_group_counters
from levada.runtime.placement.key_group_counters import FINEST, Block, Packed
from support.example_counts import PATIENCE, examples
from support.generators import Case, cases, cql_cases, cql_view_cases
from support.stepped_runs import run_moved

pytestmark = pytest.mark.timeout(PATIENCE)
queries = cases(most=4) | cql_cases(most=4) | cql_view_cases(most=2)
MOST = 4
Edges = Counter[tuple[int, int, int]]


def moving(seed: int, epoch: int, table: GroupTable) -> GroupTable:
    """All groups by lot among one to four partitions, before each epoch."""
    rng = np.random.default_rng((seed, epoch))
    parts = int(rng.integers(1, MOST + 1))
    to = rng.integers(0, parts, table.groups).astype(np.int32)
    other = np.flatnonzero(to != deal_round_robin(table.groups, parts).partition).astype(np.int32)
    return GroupTable(1, table.groups, parts, other, to[other])


def in_one(epoch: int, table: GroupTable) -> GroupTable | None:
    """One partition, whatever there was."""
    none = np.empty(0, np.int32)
    return None if table.partitions == 1 else GroupTable(1, table.groups, 1, none, none)


def sent(case: Case, dealing: Dealing, rows: int, groups: int) -> Edges:
    """The rows from group to group by the node that got them, but for rows that a task may fold
    before it sends them: those are as many as there are tasks. Only of these may it not be known
    which group has sent them.
    """
    told: list[Block] = []
    plans: list[Plan] = []
    told_by, save = key_group_counters.packed_of_tasks, Checkpoint.save_plan

    def keep_blocks(done: Iterable[TaskOutcome]) -> list[Packed]:
        found = list(told_by(done))
        told.extend(map(key_group_counters._block, found))
        return found

    def keep_plan(self: Checkpoint, plan: Plan, *others: object) -> bool:
        plans.append(plan)
        return save(self, plan, *others)  # type: ignore[arg-type]

    with (
        patch("support.stepped_runs.Engine", partial(Engine, slices=f"1d,groups={groups}")),
        patch.object(key_group_counters, "packed_of_tasks", keep_blocks),
        patch.object(Checkpoint, "save_plan", keep_plan),
    ):
        run_moved(case, dealing, [(10_000, None)], {}, epoch_rows=rows)
    (plan,) = plans
    edges = [(c.node, c.edge.exchange) for node in plan.nodes.values() for c in node.consumers]
    of_one_group = {node for node, slots in edges if slots == ()}
    found: Edges = Counter()
    for b in told:
        folded = b.node in of_one_group or (
            b.node >= 0 and isinstance(plan.nodes[b.node].step, s.Panes)
        )
        if b.sources is None:
            assert folded or not b.sender[0].isdigit(), "a row knows its group"
        elif not folded:
            columns = (b.sources.tolist(), b.groups.tolist(), b.rows.tolist())
            for source, target, many in zip(*columns, strict=True):
                found[b.node, source, target] += many
    return found


@examples(4)
@given(queries, st.sampled_from((5, 30)), st.integers(0, 2**32 - 1), st.sampled_from((16, FINEST)))
def test_where_groups_are_changes_nothing_of_what_they_send(
    case: Case, rows: int, lot: int, groups: int
) -> None:
    assert sent(case, partial(moving, lot), rows, groups) == sent(case, in_one, rows, groups)
