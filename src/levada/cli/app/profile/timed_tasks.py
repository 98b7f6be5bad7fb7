"""The tasks of an epoch with a timer around each operator, in one process. They compute what other
tasks compute, so results are the same.

The timer is the CPU time of the thread. Rows that an operator pulls lazily from another one (a
join's pieces) count for the operator that pulls. Work between operators counts for the stage
(``around``).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from levada.checkpoint.epoch_context import EpochContext, decode_context, load_plan
from levada.cli.app.profile.recorder import Recorder
from levada.connectors.sources.splits import AnyReference
from levada.core.frame import Frame
from levada.engine.engine import Engine
from levada.operators.operator_registry import evaluate
from levada.plan.execution.plan import Plan, PlanNode
from levada.runtime.executor import AnyBlob, Executor, Job, deliver, outcome
from levada.runtime.task.ingest_task import IntakeTask, Payload
from levada.runtime.task.stage_task import StageTask


def reader(stream: str) -> str:
    """Returns the name of the reader of a stream."""
    return f"read {stream}"


def around(stage: int) -> str:
    """Returns the name of a stage's work around its operators."""
    return f"around {stage}"


class TimedIntake(IntakeTask):
    """An intake task whose work is recorded."""

    def __init__(self, context: EpochContext, recorder: Recorder) -> None:
        super().__init__(context)
        self.recorder = recorder
        self.reading, self.coming = "", 0

    def run(self, payload: Payload) -> list[tuple[int, AnyBlob]]:
        """Returns the blobs of this task."""
        with self.recorder.time_operator(around(0), sum(r.elements for r in payload.references)):
            return super().run(payload)

    def _reference(self, reference: AnyReference) -> None:
        self.reading, self.coming = reader(reference.stream), reference.elements
        self.recorder.now.elements += reference.elements
        with self.recorder.time_operator(self.reading, reference.elements):
            super()._reference(reference)

    def _deliver(self, rows: Iterable[tuple[PlanNode, Frame]]) -> int:
        n, coming = 0, iter(rows)
        while (item := self._first(coming)) is not None:
            node, frame = item
            n += frame.n
            self._local(node, frame)
        return n

    def _first(self, coming: Iterator[tuple[PlanNode, Frame]]) -> tuple[PlanNode, Frame] | None:
        """Returns the next rows of a first node. The time is measured before the node is
        identified.
        """
        recorder = Recorder()
        with recorder.time_operator("matching"):
            item = next(coming, None)
        ns = recorder.now.work["matching"].ns
        self.recorder.counted += ns
        name = self.reading if item is None else item[0].id
        with self.recorder.time_operator(name) as work:
            work.ns += ns
        if item is not None:
            work.rows += self.coming
            work.out += item[1].n
        return item

    def _local(self, node: PlanNode, frame: Frame) -> None:
        """Evaluates the local consumers of a node, as ``stage_zero.local`` does."""
        for consumer, rows in self.exchange.along(node, frame):
            target = self.plan.nodes[consumer.node]
            self.recorder.sent(node.id, target.id, rows)
            with self.recorder.time_operator(target.id, rows.n) as work:
                out = evaluate(target, (rows,), self.env)
            if out is not None and out.n:
                work.out += out.n
                self._local(target, out)


class TimedStage(StageTask):
    """A stage's task whose work is recorded."""

    def __init__(
        self, context: EpochContext, plan: Plan, stage: int, partition: int, *, recorder: Recorder
    ) -> None:
        self.recorder = recorder
        with recorder.time_operator(around(stage)):
            super().__init__(context, plan, stage, partition)

    def run(self, blobs: Sequence[Any]) -> list[tuple[int, Any]]:
        """Returns the blobs for the next stage, or the outcome."""
        with self.recorder.time_operator(around(self.stage)) as work:
            sent = super().run(blobs)
        work.rows += self.touched
        return sent

    def _output_of(self, node: PlanNode, frames: Sequence[Frame | None]) -> Iterator[Frame]:
        folded = self.env.partials.get(node.id, ())
        rows = self.recorder.take(node.id, node.inputs, frames)
        for partial in folded:
            self.recorder.sent(node.inputs[0], node.id, partial)
            rows += partial.n
        made = super()._output_of(node, frames)
        while True:
            with self.recorder.time_operator(node.id, rows) as work:
                out = next(made, None)
            rows = 0
            if out is None:
                return
            work.out += out.n
            yield out


class TimedExecutor:
    """An executor that runs a job in this process, as the ``LocalExecutor`` does."""

    def __init__(self, recorder: Recorder) -> None:
        self.recorder = recorder

    def run(self, job: Job) -> list[bytes]:
        """Returns the outcomes of ``job``."""
        context = decode_context(job.context)
        sent: list[tuple[int, AnyBlob]] = []
        for data in job.payloads:
            payload = msgspec.json.decode(data, type=Payload)
            sent += TimedIntake(context, self.recorder).run(payload)
        for number in range(1, job.stages + 1):
            inboxes, sent = deliver(sent, job.partitions), []
            for p, blobs in enumerate(inboxes):
                plan = load_plan(context.plan)
                task = TimedStage(context, plan, number, p, recorder=self.recorder)
                sent += task.run(blobs)
        self.recorder.end_epoch()
        return [outcome(target, blob) for target, blob in sent]


class TimedEngine(Engine):
    """An engine in this process, with one partition, whose work is recorded. ``options``: those of
    ``Engine``.
    """

    def __init__(self, recorder: Recorder, **options: Any) -> None:
        super().__init__(spark=False, partitions=1, **options)
        self._recorder = recorder

    def _executor(self) -> Executor:
        return TimedExecutor(self._recorder)
