"""Each operator, exchange and kernel takes a frame without rows: random queries whose operators get
some before, between and instead of their rows give the reference's results.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from levada.core.frame import Frame
from levada.plan.execution.plan import Consumer, PlanNode
from levada.runtime.task.exchange import Exchange
from levada.runtime.task.stage_task import StageTask
from levada.testing.compare import same_queries
from support.example_counts import PATIENCE, examples
from support.generators import Case, cases, cql_cases, cql_view_cases
from support.stepped_runs import run_case

pytestmark = pytest.mark.timeout(PATIENCE)
queries = cases(most=4) | cql_cases(most=4) | cql_view_cases(most=2)


def without_rows(frame: Frame) -> Frame:
    return frame.take(np.empty(0, np.int64))


@contextmanager
def empty_frames() -> Iterator[set[str]]:
    """Frames without rows at each operator, once it has had rows; the steps that have had some."""
    inputs: dict[tuple[int, int], Frame] = {}
    outputs: dict[int, Frame] = {}
    steps = set[str]()
    receive, made = StageTask._receive, StageTask._output_of
    along, put = Exchange.along, Exchange._put

    def receive_more(task: StageTask, blobs: Sequence[Any]) -> Any:
        terms = receive(task, blobs)
        for (node, at), frames in task.inputs.items():
            inputs.setdefault((node, at), without_rows(frames[0]))
            frames.insert(0, inputs[node, at])
        for (node, at), frame in inputs.items():
            if node in task.plan.nodes and task.plan.nodes[node].stage == task.stage:
                task.inputs.setdefault((node, at), [frame])
        return terms

    def make_more(task: StageTask, node: PlanNode, frames: Sequence[Frame | None]) -> Any:
        steps.add(type(node.step).__name__)
        for out in made(task, node, frames):
            outputs.setdefault(node.id, without_rows(out))
            yield outputs[node.id]
            yield out
        if node.id in outputs:
            yield outputs[node.id]

    def along_more(exchange: Exchange, node: PlanNode, out: Frame) -> Any:
        for consumer, frame in along(exchange, node, out):
            yield consumer, without_rows(frame)
            yield consumer, frame

    def put_more(exchange: Exchange, consumer: Consumer, frame: Frame) -> None:
        put(exchange, consumer, without_rows(frame))
        put(exchange, consumer, frame)

    with (
        patch.object(StageTask, "_receive", receive_more),
        patch.object(StageTask, "_output_of", make_more),
        patch.object(Exchange, "along", along_more),
        patch.object(Exchange, "_put", put_more),
    ):
        yield steps


@pytest.mark.long
@examples(60)
@given(queries, st.sampled_from((1, 3, 7)), st.sampled_from((1, 2, 3)))
def test_frames_without_rows_change_nothing(case: Case, rows: int, partitions: int) -> None:
    with empty_frames() as steps, warnings.catch_warnings(record=True) as warned:
        results = run_case(case, epoch_rows=rows, partitions=partitions)
    messages = [str(w.message) for w in warned]
    assert not [text for text in messages if "is suspended" in text]
    assert same_queries(case.expected(), results) is None
    assert steps
