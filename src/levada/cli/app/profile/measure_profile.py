"""A profile of an application: its queries run over a sample of its streams, in this process, with
epochs of three sizes.

Each size is a run over the same elements on a temporary checkpoint. A first run, which compiles and
loads, is not counted. The first epochs of each run, whose state is empty, and epochs without input
are not counted either. Windows stay open at the end, as in a run that continues. Costs are CPU time
in one process and one partition: no Spark, no serialisation between machines.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import numpy as np

from levada.checkpoint.epoch_context import EpochContext, decode_context, load_plan
from levada.checkpoint.manifest import Manifest
from levada.cli.app.app_file import App
from levada.cli.app.prepare_queries import queries_of
from levada.cli.app.profile.profile import Cost, Edge, Epoch, Profile
from levada.cli.app.profile.recorder import EpochWork, Name, Recorder, Sent
from levada.connectors.sources.splits import AnyReference
from levada.core.count_text import count_text
from levada.core.frame import Frame
from levada.engine.engine import Engine
from levada.engine.placement.planning_options import default_sharing
from levada.errors import UsageError
from levada.operators.operator_registry import evaluate
from levada.plan.execution.plan import Plan, PlanNode
from levada.runtime.cost_model.epoch_time_trend import Line
from levada.runtime.executor import AnyBlob, Executor, Job, deliver, outcome
from levada.runtime.task.ingest_task import IntakeTask, Payload
from levada.runtime.task.stage_task import StageTask

# The tasks of an epoch with a timer around each operator, in one process. They compute what other
# tasks compute, so results are the same.
#
# The timer is the CPU time of the thread. Rows that an operator pulls lazily from another one (a
# join's pieces) count for the operator that pulls. Work between operators counts for the stage
# (``around``).


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


PARTS = (100, 20, 5)
"""The number of epochs at each size."""
EMPTY = 2
"""The number of first epochs of a run that are not counted."""
POLL = 0.02
QUANTILES = (5, 50, 95)
Runs = dict[int, list[EpochWork]]
"""The counted epochs, by size."""


def profile(app: App, sample: int, say: Callable[[str], None] = lambda _: None) -> Profile:
    """Measures ``sample`` elements of the application's streams. ``say`` receives messages about
    the progress. Raises ``UsageError`` if there are no streams, or too few elements for three
    sizes.
    """
    if not app.streams:
        raise UsageError("There is no stream to take a sample of.", hint="Name one with --stream.")
    if sample < PARTS[0]:
        raise UsageError(f"A sample has at least {PARTS[0]} elements, not {sample}.")
    sizes = [sample // part for part in PARTS]
    say("A first run, which does not count")
    run(app, sample, sizes[-1])
    runs: Runs = {}
    whole = 0
    for i, size in enumerate(sizes):
        say(f"Epochs of {count_text(size, 'element')} (run {i + 1} of {len(sizes)})")
        recorder, plan = run(app, sample, size)
        runs[size] = [e for e in recorder.epochs[EMPTY:] if e.elements]
        whole = sum(e.elements for e in recorder.epochs)
    if not all(runs.values()):
        elements = count_text(whole, "element was", "elements were")
        read = f"Only {elements} read of a sample of {sample}"
        hint = "Take a smaller --sample."
        raise UsageError(f"{read}: epochs of three sizes need more.", hint=hint)
    names = _names(plan)
    shares = _rows(runs)
    costs = tuple(
        _cost(n, names[n], _stage(plan, n), runs, shares[n]) for n in _names_by_stage(plan, shares)
    )
    measured = Profile(whole, costs, _edges(runs, names, shares), _driver(runs), ())
    return replace(measured, epochs=tuple(_epoch(measured, size, es) for size, es in runs.items()))


def run(app: App, sample: int, size: int) -> tuple[Recorder, Plan]:
    """Runs the application over ``sample`` elements in epochs of ``size``. Returns the measurements
    and the plan.
    """
    recorder, enough, clock = Recorder(), threading.Event(), [time.process_time_ns()]

    def see(manifest: Manifest) -> None:
        now, last = time.process_time_ns(), recorder.epochs[-1]
        last.driver = max(now - clock[0] - last.ns, 0)
        clock[0] = now
        if sum(e.elements for e in recorder.epochs) >= sample:
            enough.set()

    said = app.options
    options = {
        "ontology": said.ontology,
        "sharing": said.sharing or default_sharing(said.limits),
        "join": said.join,
        "regions": said.regions,
    }
    with TimedEngine(recorder, epoch_rows=size, keep_results=False, **options) as engine:
        for config in app.streams:
            engine.stream(config.name, config)
        for static in app.static:
            engine.static(static.path, static.graph, static.format)
        for table in app.tables:
            engine.table(table.name, table.source, **table.options)
        engine.register_all(queries_of(app))
        engine._on_epoch(see)
        engine.start(once=True, keep_open=True)
        while not engine.await_end(POLL) and not enough.is_set():
            pass
        assert engine._driver is not None, "it has been started"
        plan = engine._driver.epochs.plan
    assert plan is not None, "there was an epoch"
    return recorder, plan


def _names(plan: Plan) -> dict[Name, str]:
    """Returns the names of nodes: their step, with a number if several have it, as in
    ``explain``.
    """
    names: dict[Name, str] = {}
    counts: dict[str, int] = {}
    for number in plan.order:
        step = type(plan.nodes[number].step).__name__
        counts[step] = counts.get(step, 0) + 1
        names[number] = step + (str(counts[step]) if counts[step] > 1 else "")
    for stage in range(plan.stages + 1):
        names[around(stage)] = around(stage)
    return names | {reader(stream): reader(stream) for stream in plan.streams}


def _stage(plan: Plan, name: Name) -> int:
    if isinstance(name, int):
        return plan.nodes[name].stage
    return int(name.rpartition(" ")[2]) if name.startswith("around ") else 0


def _names_by_stage(plan: Plan, shares: dict[Name, float]) -> list[Name]:
    """Returns the measured operators stage by stage: readers, nodes, work around nodes."""
    rank: dict[Name, int] = {number: i for i, number in enumerate(plan.order)}
    last = len(rank)
    return sorted(
        shares,
        key=lambda n: (
            _stage(plan, n), rank.get(n, -1 if str(n).startswith("read ") else last), str(n)
        ),
    )  # fmt: skip


def _rows(runs: Runs) -> dict[Name, float]:
    """Returns the rows of each operator for each element."""
    elements = sum(e.elements for epochs in runs.values() for e in epochs)
    rows: dict[Name, float] = {}
    for epochs in runs.values():
        for epoch in epochs:
            for name, work in epoch.work.items():
                rows[name] = rows.get(name, 0.0) + work.rows / elements
    return rows


def _cost(name: Name, shown: str, stage: int, runs: Runs, share: float) -> Cost:
    line, quantiles = Line(), {}
    for size, epochs in runs.items():
        works = [e.work[name] for e in epochs if name in e.work]
        for work in works:
            line.add(work.rows, work.ns)
        each = [work.ns / work.rows for work in works if work.rows]
        if each:
            p5, p50, p95 = np.percentile(each, QUANTILES).tolist()
            quantiles[size] = (p5, p50, p95)
    fixed, b = line.fit()
    return Cost(shown, stage, share, fixed / 1e3, b, quantiles)


def _edges(runs: Runs, names: dict[Name, str], shares: dict[Name, float]) -> tuple[Edge, ...]:
    """Returns each edge over the counted epochs."""
    elements, sent_by_edge = 0, dict[tuple[Name, Name], Sent]()
    for epoch in (epoch for epochs in runs.values() for epoch in epochs):
        elements += epoch.elements
        for at, sent in epoch.edges.items():
            whole = sent_by_edge.setdefault(at, Sent())
            whole.rows += sent.rows
            whole.bytes += sent.bytes
    return tuple(
        Edge(
            names[producer],
            names[consumer],
            sent.rows / elements,
            sent.rows / elements / shares[producer] if shares.get(producer) else 0.0,
            sent.bytes / sent.rows if sent.rows else 0.0,
        )
        for (producer, consumer), sent in sent_by_edge.items()
    )


def _driver(runs: Runs) -> tuple[float, float]:
    """Returns the driver's cost: us an epoch, ns an element."""
    line = Line()
    for epochs in runs.values():
        for epoch in epochs:
            line.add(epoch.elements, epoch.driver)
    fixed, each = line.fit()
    return fixed / 1e3, each


def _epoch(measured_profile: Profile, size: int, epochs: Sequence[EpochWork]) -> Epoch:
    """Returns the measured and the predicted cost of an epoch of this size."""
    elements = round(float(np.mean([e.elements for e in epochs])))
    measured = float(np.mean([e.ns + e.driver for e in epochs])) / 1e6
    return Epoch(size, len(epochs), measured, measured_profile.predict(elements))
