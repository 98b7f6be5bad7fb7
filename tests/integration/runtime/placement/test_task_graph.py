"""The rules of task graphs (KATTS 2.1) on the plans of random queries."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.checkpoint.checkpoint_folder import Checkpoint
from levada.plan.execution.key_group_table import GroupTable
from levada.plan.execution.plan import Plan
from levada.runtime.placement.task_graph import OUTPUT, STATIC, TaskGraph, expand
from support.example_counts import PATIENCE, examples
from support.generators import Case, cases, cql_cases, cql_view_cases, entailment_cases
from support.stepped_runs import run_case

pytestmark = pytest.mark.timeout(PATIENCE)
both = cases(most=4) | cql_cases(most=4) | cql_view_cases(most=2) | entailment_cases(most=3)


@contextmanager
def plans() -> Iterator[list[Plan]]:
    """The plans that engines write meanwhile."""
    found: list[Plan] = []
    save = Checkpoint.save_plan

    def keep(self: Checkpoint, plan: Plan, *others: Any) -> bool:
        found.append(plan)
        return save(self, plan, *others)

    with patch.object(Checkpoint, "save_plan", keep):
        yield found


def by_lot(seed: int, partitions: int) -> GroupTable:
    rng = np.random.default_rng(seed)
    moved = np.flatnonzero(rng.random(64) < 0.5).astype(np.int32)
    to = rng.integers(0, partitions, len(moved)).astype(np.int32)
    return GroupTable(1, 64, partitions, moved, to)


@examples(40)
@given(both, st.integers(1, 5), st.integers(1, 4), st.integers(0, 9))
def test_the_rules_of_task_graphs(case: Case, partitions: int, files: int, seed: int) -> None:
    with plans() as found:
        run_case(case)
    for plan in found:
        readers = {stream: [f"f{i}" for i in range(files)] for stream in plan.streams}
        check(plan, expand(plan, readers, by_lot(seed, partitions)), partitions, files)


def check(plan: Plan, graph: TaskGraph, partitions: int, files: int) -> None:
    # each operator has its tasks, each task belongs to one operator
    assert len(set(graph.tasks)) == len(graph.tasks)
    for operator in graph.operators:
        if operator.name.startswith("stage "):
            assert len(operator.tasks) == partitions
        else:
            assert len(operator.tasks) == (1 if operator.name in (OUTPUT, STATIC) else files)
    of = {name: i for i, operator in enumerate(graph.operators) for name in operator.tasks}
    # a message channel for each edge between stages and for the results of each query
    crossing = {
        (number, consumer.node)
        for number, node in plan.nodes.items()
        for consumer in node.consumers
        if consumer.stage != node.stage
    }
    found = {(c.producer, c.consumer) for c in graph.channels if c.consumer is not None}
    assert found == crossing
    outputs = {c.producer for c in graph.channels if c.consumer is None}
    assert outputs == {query.node for query in plan.queries.values()}
    # each task channel is of one message channel, between tasks of its operators; each has some
    links = list(graph.links())
    assert len(set(links)) == len(links)
    for number, source, target in links:
        channel = graph.channels[number]
        assert (of[source], of[target]) == (channel.source, channel.target)
    assert {number for number, _, _ in links} == set(range(len(graph.channels)))
    # what flows ends: from readers to stages, from stages to later ones
    assert all(channel.source < channel.target for channel in graph.channels)
