"""The traffic between tasks, and the bottleneck of a run, from its measured send graph. See Zhang
et al., SIGMOD 2019, fig. 15 and section 3.1; Fischer, Scharrenbach, Bernstein 2013, fig. 1.

Edges go from task to task. On a cluster there are also pairs of executors, each with the
placement's prediction for the machines that they represent. The tasks of a stage wait for each
other, so a stage takes as long as its fullest task. The *bottleneck* is the task with the most CPU
time of all. Its cause is *skew* if it has much more to do than the others of its stage. Otherwise
its stage has much to do, or too few tasks. Cost: linear in the counts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from levada.checkpoint.checkpoint_folder import newest_manifest, plan_of
from levada.checkpoint.manifest import Manifest, Preferences
from levada.core.checkpoint_files import facts_of
from levada.core.frozen import frozen
from levada.engine.placement.measured_send_graph import flow_order
from levada.plan.execution.plan import Plan
from levada.runtime.placement import send_graph
from levada.runtime.placement.send_graph import Links, SentCounts
from levada.runtime.placement.task_graph import OUTPUT, STATIC

SKEWED = 1.25
"""The factor of its stage's mean load from which on a task is skewed."""
READING = "reading"


@frozen
class Edge:
    """The traffic from one task to another. ``share``: its fraction of all bytes."""

    source: str
    target: str
    rows: int
    bytes: int
    blobs: int
    share: float


@frozen
class Pair:
    """The traffic from one executor to another, or to itself. ``share``: its fraction of all rows
    between tasks. ``predict``: the placement's prediction of it (-1: unknown).
    """

    source: str
    target: str
    rows: int
    bytes: int
    blobs: int
    share: float
    predicted: float


@frozen
class Load:
    """The load of a task, or of all tasks of an executor. ``cpu_seconds``: seconds. ``load_ratio``:
    its factor of the mean of the stage's tasks, or of all executors. ``rows``: rows received (of a
    reader: sent). ``row_share``: their fraction of the stage's rows. Both are 0 for an executor,
    since they are not counted.
    """

    name: str
    cpu_seconds: float
    load_ratio: float
    rows: int = 0
    row_share: float = 0.0


@frozen
class Bottleneck:
    """The task that bounds the epochs. ``stage``: "reading", or such as "stage 1"; it has ``tasks``
    and the fraction ``cpu_share`` of all CPU time. ``operator``: its most expensive operator, with
    the fraction ``operator_cpu_share`` of the stage's time ("" and 0.0 if unknown). ``sentence``:
    the reason.
    """

    task: str
    stage: str
    tasks: int
    cpu_share: float
    operator: str
    operator_cpu_share: float
    is_skewed: bool
    sentence: str = ""


@frozen
class FlowsStatus:
    """The traffic in a ``slice`` of event time, the largest edges first, and the loads of tasks in
    the order of the flow. ``bottleneck``: None without CPU time. ``executors``: the loads of
    executors ([] without a cluster).
    """

    slice: str
    edges: Sequence[Edge]
    tasks: Sequence[Load]
    bottleneck: Bottleneck | None
    pairs: Sequence[Pair]
    executors: Sequence[Load]


def read_flows(root: Path) -> FlowsStatus | None:
    """Reads the traffic of the last slice of the last run on a checkpoint; None if it has counted
    nothing. Raises ``CheckpointError``.
    """
    manifest = newest_manifest(root)
    if manifest is None or not manifest.slices:
        return None
    name = next(reversed(manifest.slices))
    sent = send_graph.read_slice(str(root), manifest, name)
    return flows_of(name, sent, plan_of(root, facts_of(root), manifest.plan), manifest)


def flows_of(slice_: str, sent: SentCounts, plan: Plan, manifest: Manifest) -> FlowsStatus:
    """Returns the traffic, with a plan's names."""
    tasks = _tasks(sent)
    return FlowsStatus(
        slice_,
        _edges(sent.links),
        tasks,
        _bottleneck(tasks, sent, plan),
        _pairs(sent.executor_links, manifest.placement),
        _places(sent.cpu_by_executor, manifest.placement),
    )


def _edges(links: Links) -> list[Edge]:
    total = sum(size for to in links.values() for _, size, _ in to.values()) or 1
    edges = [
        Edge(source, target, rows, size, blobs, size / total)
        for source, to in links.items()
        for target, (rows, size, blobs) in to.items()
    ]
    return sorted(edges, key=lambda e: (-e.bytes, flow_order(e.source), flow_order(e.target)))


def stage_of(task: str) -> str:
    """Returns the stage of a task by its name.

    >>> stage_of("2.0"), stage_of("http://e/s a.nt"), stage_of("static data")
    ('stage 2', 'reading', 'static data')
    """
    if task in (STATIC, OUTPUT):
        return task
    stage = flow_order(task)[0]
    return f"stage {stage}" if stage else READING


def _tasks(sent: SentCounts) -> list[Load]:
    """Returns the loads of tasks. Rows are the sent ones for readers, the received ones for
    others.
    """
    rows = Counter[str]()
    for source, to in sent.links.items():
        for target, (many, _, _) in to.items():
            rows[target] += many
            if stage_of(source) == READING:
                rows[source] += many
    names = sorted(sent.cpu_by_task, key=flow_order)
    of_stage: dict[str, list[str]] = {}
    for name in names:
        of_stage.setdefault(stage_of(name), []).append(name)
    return [
        Load(
            name,
            sent.cpu_by_task[name],
            _ratio(
                sent.cpu_by_task[name] * len(stage_tasks),
                sum(sent.cpu_by_task[each] for each in stage_tasks),
                1.0,
            ),
            rows[name],
            _ratio(rows[name], sum(rows[each] for each in stage_tasks), 0.0),
        )
        for stage_tasks in of_stage.values()
        for name in stage_tasks
    ]


def _ratio(part: float, whole: float, otherwise: float) -> float:
    return part / whole if whole else otherwise


def _bottleneck(tasks: Sequence[Load], sent: SentCounts, plan: Plan) -> Bottleneck | None:
    total = sum(sent.cpu_by_task.values())
    if not tasks or not total:
        return None
    worst = max(tasks, key=lambda load: load.cpu_seconds)
    stage = stage_of(worst.name)
    stage_tasks = [load for load in tasks if stage_of(load.name) == stage]
    seconds = sum(load.cpu_seconds for load in stage_tasks)
    operator, taken = _most_expensive(stage, sent.cpu_by_node, plan)
    bottleneck = Bottleneck(
        worst.name,
        stage,
        len(stage_tasks),
        seconds / total,
        operator,
        min(taken / seconds, 1.0) if seconds else 0.0,
        len(stage_tasks) > 1 and worst.load_ratio >= SKEWED,
    )
    return replace(bottleneck, sentence=_why(worst, bottleneck))


def _most_expensive(stage: str, seconds: Mapping[str, float], plan: Plan) -> tuple[str, float]:
    """Returns the operator of a stage with most CPU time, and its seconds."""
    stage_seconds = {
        name: s
        for name, s in seconds.items()
        if name.isdigit()
        and int(name) in plan.nodes
        and f"stage {plan.nodes[int(name)].stage}" == stage
    }
    if not stage_seconds:
        return "", 0.0
    name = max(stage_seconds, key=stage_seconds.__getitem__)
    return f"{type(plan.nodes[int(name)].step).__name__} {name}", stage_seconds[name]


def _why(worst: Load, bottleneck: Bottleneck) -> str:
    """Returns a sentence with the bottleneck and its cause."""
    head = f"The bottleneck is {worst.name}, with {worst.cpu_seconds:,.2f} s of CPU time"
    many = f"{bottleneck.tasks} task{'s' * (bottleneck.tasks != 1)}"
    most = (
        f", {bottleneck.operator_cpu_share:.0%} of it by {bottleneck.operator}"
        if bottleneck.operator
        else ""
    )
    where = f"{bottleneck.stage} has {bottleneck.cpu_share:.0%} of all CPU time in {many}{most}"
    if not bottleneck.is_skewed:
        return f"{head}: {where}."
    did = "sent" if bottleneck.stage == READING else "got"
    even = 1 / bottleneck.tasks
    share = f"it {did} {worst.row_share:.0%} of their rows, where an even share is {even:.0%}"
    if worst.row_share * bottleneck.tasks < SKEWED:
        share += ": its rows cost more than those of others"
    return f"{head}, {worst.load_ratio:.1f} times the mean of its stage: {share}; {where}."


def _pairs(places: Links, placed: Preferences | None) -> list[Pair]:
    total = sum(rows for to in places.values() for rows, _, _ in to.values()) or 1
    machine, between = _machines(placed), placed.predicted_shares if placed is not None else []

    def predict(source: str, target: str) -> float:
        m, n = machine.get(source, -1), machine.get(target, -1)
        return between[m][n] if between and m >= 0 and n >= 0 else -1.0

    return [
        Pair(
            _label(source, machine), _label(target, machine), rows, size, blobs,
            rows / total, predict(source, target),
        )
        for source in sorted(places, key=lambda at: _order(at, machine))
        for target, (rows, size, blobs) in sorted(
            places[source].items(), key=lambda to: _order(to[0], machine)
        )
    ]  # fmt: skip


def _places(busy: Mapping[str, float], placed: Preferences | None) -> list[Load]:
    machine, mean = _machines(placed), sum(busy.values()) / max(len(busy), 1)
    return [
        Load(_label(at, machine), busy[at], busy[at] / mean if mean else 1.0)
        for at in sorted(busy, key=lambda at: _order(at, machine))
    ]


def _machines(placed: Preferences | None) -> dict[str, int]:
    """Returns the machine that each executor represents."""
    executors = placed.executors if placed is not None else ()
    return {at.rpartition("_")[2]: i for i, at in enumerate(executors) if at}


def _label(executor: str, machine: Mapping[str, int]) -> str:
    label = f"executor {executor}"
    return f"machine {machine[executor]} ({label})" if executor in machine else label


def _order(executor: str, machine: Mapping[str, int]) -> tuple[int, int, str]:
    return machine.get(executor, len(machine)), len(executor), executor
