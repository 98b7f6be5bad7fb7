"""A placement that is learned during a run (KATTS: Fischer, Scharrenbach, Bernstein 2013: start
uniform, measure, improve step by step).

    a slice of event time is over -> its send graph by group -> a placement from the current one
    -> if much less would cross machines: a group table and preferences from the next epoch on

In a uniform placement 1 - 1/machines of the rows cross machines. The first step may move
everything. A later one moves at most ``STEP`` of the tasks, and only to save ``MIN_GAIN`` of the
crossing rows, since slices differ by chance. The checkpoint has each prediction, the next slice's
measurement, and the placement (``FILE``), with which a continued run begins. Slices are counted by
reader and group, so none is lost with an executor. If the moves cannot meet the bound on load, the
balance gets no worse. Operators without a query do not count. Results do not depend on the
placement.

Cost: about a second of one core at the end of each slice, during which the driver begins no epoch.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from zlib import crc32

import numpy as np

from levada.checkpoint.checkpoint_folder import Checkpoint
from levada.checkpoint.manifest import LearningStep, Manifest
from levada.core.array_types import Ints
from levada.engine.placement.measured_send_graph import (
    by_group,
    group_resolution,
    select_attributed,
    select_current,
)
from levada.engine.placement.placement_options import LEARN, PlacementOption, read_placement
from levada.errors import UsageError
from levada.placement import placement_file as placements
from levada.placement.annealing import attach
from levada.placement.baseline_placers import by_weight
from levada.placement.cost import share
from levada.placement.local_search_placer import evenest, present, refine_placement
from levada.placement.placement_file import FINEST, finest, group_number, is_group
from levada.placement.problem import BOUND, Problem, net
from levada.placement.send_graph import SendGraph
from levada.plan.execution.key_group_table import GroupTable
from levada.runtime.epoch_pipeline import EpochRunner
from levada.runtime.placement import key_group_counters
from levada.runtime.placement.key_group_counters import Block
from levada.runtime.placement.send_graph import START
from levada.runtime.placement.task_placement import TaskPlacement
from levada.runtime.preferred_locations import NOWHERE

FILE = "placement.json"
GROUPS = 4096
"""Groups of a graph. Finer graphs take too long to place at the end of a slice."""
STEP, MIN_GAIN = 0.2, 0.1
_STAGE = re.compile(r"\d+\.\d+")


class Uniform(dict[str, int]):
    """The machines of readers without a learned place: dealt out by hashes of their names."""

    def __init__(self, machines: int) -> None:
        super().__init__()
        self.machines = machines

    def get(self, name: str, default: int = NOWHERE) -> int:  # type: ignore[override]
        """Returns the machine of a reader. Tasks of stages get ``default``, since they follow their
        partitions.
        """
        if name in self:
            return self[name]
        return default if _STAGE.fullmatch(name) else crc32(name.encode()) % self.machines


class Learner:
    """A learner that places a run's work anew at the end of its slices. ``deal`` is called before
    each epoch. ``now``: the current preferences. ``epochs``: the epochs that get new ones.
    """

    def __init__(self, checkpoint: Checkpoint, machines: int) -> None:
        self._checkpoint = checkpoint
        self._last = _last_complete_slice(checkpoint.last)
        self._groups: Ints | None = None  # the machine of each group, after the first placement
        self.epochs: EpochRunner | None = None
        self._lessons: list[LearningStep] = []
        self.now = self._begin(machines)
        checkpoint.tables.dealing = self.deal

    def deal(self, epoch: int, table: GroupTable) -> GroupTable | None:
        """Returns the group table from this epoch on; None for no change."""
        manifest = self._checkpoint.last
        over = _last_complete_slice(manifest)
        if manifest is None or over == self._last:
            return None
        self._last = over
        return self._learn(manifest, LearningStep(over, epoch), table)

    def _begin(self, machines: int) -> TaskPlacement:
        """Returns the placement that an earlier run on the checkpoint has learned; else one in
        turn. Raises ``UsageError`` if there are more machines than partitions.
        """
        root, tables = self._checkpoint.root, self._checkpoint.tables
        table = tables.load(tables.current)
        if machines > table.partitions:
            raise UsageError(
                f"A placement on {machines} machines is to be learned, and the checkpoint {root} "
                f"has {table.partitions} partitions: some machines would have none.",
                hint="Start in an empty folder, or with Engine(partitions=..).",
            )
        in_turn = tuple(p % machines for p in range(table.partitions))
        placed = TaskPlacement(LEARN, machines, Uniform(machines), in_turn)
        wish = read_placement(root / FILE) if (root / FILE).exists() else None
        if wish is None or wish.machines != machines:
            return placed
        self._groups = wish.groups
        return _with_readers(wish, placed)

    def _learn(
        self, manifest: Manifest, lesson: LearningStep, table: GroupTable
    ) -> GroupTable | None:
        """Makes one step, and records it as a lesson. Returns the new table, or None."""
        blocks, lesson.message = self._blocks(manifest, lesson.slice)
        if not blocks:
            self._record(lesson)
            return None
        fine = by_group(blocks, FINEST)
        lesson.share_before = lesson.predicted_share = _share(fine, self.now, table)
        if self._lessons and self._lessons[-1].measured_share < 0:
            self._lessons[-1].measured_share = lesson.share_before
        wish, place, graph = self._find_placement(blocks)
        wanted, now = _move_groups(wish, table), _with_readers(wish, self.now)
        better = _share(fine, now, wanted)
        if better > lesson.share_before * (1.0 - MIN_GAIN):
            self._record(lesson)
            return None
        lesson.predicted_share = better
        lesson.moved_groups = int((wanted.partition != table.partition).sum())
        before, now_at = self.now.machine, now.machine
        lesson.moved_readers = sum(
            before.get(r, NOWHERE) != now_at.get(r, NOWHERE) for r in wish.machine
        )
        self.now, self._groups = now, wish.groups
        placements.write(self._checkpoint.root / FILE, graph, place, wish.machines, LEARN)
        self._record(lesson)
        return wanted if lesson.moved_groups else None

    def _blocks(self, manifest: Manifest, slice_: str) -> tuple[list[Block], str]:
        """Returns the counts of current operators in a slice, and a remark about missing counts."""
        plan = self._checkpoint.load_plan(manifest.plan)
        root = str(self._checkpoint.root)
        every = list(key_group_counters.read_slice(root, manifest, slice_))
        if (by := group_resolution(every)) < FINEST:
            return [], f"The slice {slice_} was counted by {by:,} groups: nothing is learned."
        there = select_current(every, plan)
        blocks = select_attributed(there)
        if not _rows(blocks):
            return [], f"In the slice {slice_} nothing was sent to groups: nothing is learned."
        remarks = [
            f"{1 - _rows(some) / _rows(of):.0%} of what was sent in {slice_} {said}: it is learned "
            "from the rest."
            for some, of, said in (
                (there, every, "was for operators that no query has any more"),
                (blocks, there, "were partial aggregates of several groups"),
            )
            if _rows(some) < _rows(of)
        ]
        return blocks, " ".join(remarks)

    def _find_placement(self, blocks: list[Block]) -> tuple[PlacementOption, Ints, SendGraph]:
        """Searches the best placement, from the current one. Returns it, the machine of each task,
        and the graph.
        """
        graph = by_group(blocks, GROUPS)
        problem = Problem(graph, self.now.machines)
        problem = replace(problem, bound=max(BOUND, evenest(problem)))
        if self._groups is None:
            # a greedy pass, not METIS, which prints to standard output among the results
            network = net(problem)
            before = attach(network, by_weight(network), 1.0 / problem.machines, True)
            moves = len(graph.tasks)
        else:
            before, moves = (
                self._current_machines(graph, self._groups),
                int(STEP * len(graph.tasks)),
            )
        place = _search(replace(problem, before=before, moves=moves))
        named = placements.machines_by_task(graph, place)
        readers = {name: at for name, at in named.items() if not is_group(name)}
        between = tuple(map(tuple, placements.predicted_between(graph, place, self.now.machines)))
        groups = finest(named, FILE)
        return (
            PlacementOption(FILE, self.now.machines, groups, readers, between=between),
            place,
            graph,
        )

    def _current_machines(self, graph: SendGraph, groups: Ints) -> Ints:
        """Returns the current machine of each task; -1 for groups without one."""
        each, machine = FINEST // GROUPS, self.now.machine
        return np.array(
            [
                groups[group_number(name) * each] if is_group(name) else machine.get(name, NOWHERE)
                for name in graph.tasks
            ],
            np.int32,
        )

    def _record(self, lesson: LearningStep) -> None:
        self._lessons.append(lesson)
        self.now = replace(self.now, lessons=tuple(self._lessons))
        if self.epochs is not None:
            self.epochs.placed = self.now


def _search(problem: Problem) -> Ints:
    """Returns the best placement from the current one. The bound on load may be out of reach of so
    few moves, as when one machine has the load of a slice. Then the load becomes no less even.
    """
    try:
        return refine_placement(problem)
    except UsageError:
        return refine_placement(
            replace(problem, bound=max(problem.bound, present(problem)) * (1 + 1e-9))
        )


def _with_readers(wish: PlacementOption, placed: TaskPlacement) -> TaskPlacement:
    """Returns the preferences with a placement's readers."""
    machine = Uniform(wish.machines)
    machine.update(wish.machine)
    return replace(placed, machine=machine, between=wish.between)


def _move_groups(wish: PlacementOption, table: GroupTable) -> GroupTable:
    """Returns the table in which each group on a wrong machine moves to partitions of its machine,
    in turn. Partition p is on machine p modulo the machines.
    """
    k, parts, partition = wish.machines, table.partitions, table.partition.astype(np.int64)
    (away,) = np.nonzero((wish.groups >= 0) & (partition % k != wish.groups))
    machine = wish.groups[away]
    order = np.argsort(machine, kind="stable")
    first = np.searchsorted(machine[order], np.arange(k))
    turn = np.empty(len(away), np.int64)
    turn[order] = np.arange(len(away)) - first[machine[order]]
    partition[away] = machine + k * (turn % ((parts - machine + k - 1) // k))
    (moved,) = np.nonzero(partition != np.arange(table.groups) % parts)
    return GroupTable(
        1, table.groups, parts, moved.astype(np.int32), partition[moved].astype(np.int32)
    )


def _last_complete_slice(manifest: Manifest | None) -> str:
    """Returns the last slice that is over, as a later one has begun; "" without one."""
    of = {} if manifest is None else manifest.group_count_files  # in order of appearance
    slices = [name for name in of if name != START]
    return slices[-2] if len(slices) > 1 else ""


def _share(fine: SendGraph, placed: TaskPlacement, table: GroupTable) -> float:
    """Returns the fraction of rows that cross machines with preferences and a table."""
    of = np.array(placed.partitions, np.int32)[table.partition]
    place = [
        of[group_number(name)] if is_group(name) else placed.machine.get(name, NOWHERE)
        for name in fine.tasks
    ]
    return float(share(fine, np.array(place, np.int32)))


def _rows(blocks: Sequence[Block]) -> int:
    return sum(int(block.rows.sum()) for block in blocks)
