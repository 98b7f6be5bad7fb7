"""Expands a plan into its task graph: operators as tasks, and edges as channels between tasks
(KATTS: Fischer, Scharrenbach, Bernstein 2013, 2.1).

The nodes of one stage are one operator: rows between them stay in their task. So there are a reader
for each stream, with a task for each source partition; one reader for static data and constants; an
operator for each stage, with a task for each partition; and the output. An edge of the plan between
two stages is a message channel. It has a task channel from each possible sender to each possible
receiver. The send graph measures these channels, under the same names (``send_graph``).

    each operator has at least one task, each task belongs to one operator
    each message channel is between two operators, and has at least one task channel
    each task channel belongs to one message channel, and is between tasks of its two operators
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from levada.checkpoint.epoch_context import TaskOutcome
from levada.core.frozen import frozen
from levada.core.names import display_name
from levada.kernels.keyed.key_partitioner import partition_of
from levada.operators.rows.route_rows import home_hash
from levada.plan.execution import steps as s
from levada.plan.execution.key_group_table import GroupTable
from levada.plan.execution.plan import Consumer, Plan, PlanNode

OUTPUT = "output"
STATIC = "static data"


def reader(stream: str, partition: str) -> str:
    """Names the task that reads a source partition of a stream.

    >>> reader("http://e/s", "a.nt")
    'http://e/s a.nt'
    """
    return f"{display_name(stream)} {partition}".rstrip()


def task(stage: int, partition: int) -> str:
    """Names the task of a partition in a stage.

    >>> task(2, 0)
    '2.0'
    """
    return f"{stage}.{partition}"


def name_of(outcome: TaskOutcome) -> str:
    """Returns the name of an outcome's task."""
    return outcome.reader or task(outcome.stage, outcome.partition)


@frozen
class Operator:
    """An operator with all of its tasks."""

    name: str
    tasks: tuple[str, ...]


@frozen
class Channel:
    """A message channel between two operators (by their places): an edge of the plan, or results.

    ``producer``, ``consumer``: nodes (None: the output). ``targets``: the tasks of the target that
    can receive messages.
    """

    source: int
    target: int
    producer: int
    consumer: int | None
    targets: tuple[int, ...]


@dataclass(frozen=True)
class TaskGraph:
    """The operators of a plan and their channels, from which ``tasks`` and ``links`` follow."""

    operators: tuple[Operator, ...]
    channels: tuple[Channel, ...]

    @cached_property
    def tasks(self) -> tuple[str, ...]:
        """All tasks, in the order of the flow."""
        return tuple(name for operator in self.operators for name in operator.tasks)

    def links(self) -> Iterator[tuple[int, str, str]]:
        """Returns the task channels: the channel, the sending task, the receiving task."""
        for number, channel in enumerate(self.channels):
            to = self.operators[channel.target].tasks
            for source in self.operators[channel.source].tasks:
                for target in channel.targets:
                    yield number, source, to[target]


def expand(plan: Plan, readers: Mapping[str, Sequence[str]], groups: GroupTable) -> TaskGraph:
    """Returns the task graph of a plan. ``readers``: the source partitions of each stream (a stream
    without any has one without a name).
    """
    feeds = _feeds(plan)
    read = sorted({name for names in feeds.values() for name in names})
    operators = [_reader(name, readers) for name in read]
    operators += [
        Operator(f"stage {i}", tuple(task(i, p) for p in range(groups.partitions)))
        for i in range(1, plan.stages + 1)
    ]
    operators.append(Operator(OUTPUT, (OUTPUT,)))
    place = {name: i for i, name in enumerate(read)}
    channels: list[Channel] = []
    for number in plan.order:
        node = plan.nodes[number]
        sources = [len(read) + node.stage - 1] if node.stage else [place[n] for n in feeds[number]]
        for consumer in node.consumers:
            if consumer.edge.exchange is not None or consumer.stage != node.stage:
                to, targets = len(read) + consumer.stage - 1, _targets(plan, consumer, groups)
                channels += [Channel(i, to, number, consumer.node, targets) for i in sources]
        if isinstance(node.step, s.Emit):
            channels += [Channel(i, len(operators) - 1, number, None, (0,)) for i in sources]
    return TaskGraph(tuple(operators), tuple(channels))


def _reader(name: str, readers: Mapping[str, Sequence[str]]) -> Operator:
    if name == STATIC:
        return Operator(STATIC, (STATIC,))
    partitions = readers.get(name) or ("",)
    return Operator(display_name(name), tuple(reader(name, partition) for partition in partitions))


def _feeds(plan: Plan) -> dict[int, tuple[str, ...]]:
    """Returns, for each node of the intake, the streams whose readers have its rows."""
    feeds: dict[int, tuple[str, ...]] = {}
    for number in plan.order:
        node = plan.nodes[number]
        if node.stage:
            continue
        names = {name for below in node.inputs for name in feeds[below]}
        there = zip(node.members.each_stream(), node.alive, strict=True)
        for streams in {read for read, alive in there if alive} if not node.inputs else ():
            names |= {stream or STATIC for stream in streams} or {STATIC}
        feeds[number] = tuple(sorted(names))
    return feeds


def _targets(plan: Plan, consumer: Consumer, groups: GroupTable) -> tuple[int, ...]:
    """Returns the partitions that a channel can send to: all, or the homes of the consumer's
    members.
    """
    if consumer.edge.exchange != ():
        return tuple(range(groups.partitions))
    return homes(plan.nodes[consumer.node], groups)


def homes(node: PlanNode, groups: GroupTable) -> tuple[int, ...]:
    """Returns the home partitions of the members of a node that is exchanged by member."""
    live_homes = node.home[node.alive]
    return tuple(np.unique(partition_of(home_hash(live_homes), groups.partition)).tolist())
