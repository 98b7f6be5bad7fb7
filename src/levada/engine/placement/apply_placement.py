"""The application of a placement to an engine: a group table and preferences
(docs/placement.md#run-by-a-placement).

Groups go to the partitions of their machine, in turn. A partition prefers the machine that has most
of its groups.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from levada.checkpoint.checkpoint_folder import Checkpoint
from levada.core.array_types import Ints, Shorts
from levada.core.names import display_name
from levada.engine.placement.placement_options import LearnPlacementOption, PlacementOption
from levada.errors import UsageError
from levada.plan.execution.plan import Plan
from levada.runtime.placement.task_graph import OUTPUT, STATIC
from levada.runtime.placement.task_placement import TaskPlacement
from levada.runtime.preferred_locations import NOWHERE

if TYPE_CHECKING:
    from levada.engine.placement.learned_placement import Learner

_TASK = re.compile(r"(\d+)\.(\d+)")


def apply_placement(
    wish: PlacementOption | LearnPlacementOption | None,
    checkpoint: Checkpoint,
    streams: Iterable[str] = (),
) -> tuple[TaskPlacement | None, Learner | None]:
    """Applies a placement to a checkpoint: state moves with its groups. Returns the preferences,
    and the learner of a learned placement. Raises ``UsageError`` if the placement is for other
    partitions. Warns about its streams that differ
    from ``streams``.
    """
    if isinstance(wish, LearnPlacementOption):
        from levada.engine.placement.learned_placement import (
            Learner,  # here: other runs need no placer
        )

        learner = Learner(checkpoint, wish.machines)
        return learner.now, learner
    if wish is None:
        return None, None
    _warn_about_mismatch(wish, [display_name(stream) for stream in streams])
    return _apply(wish, checkpoint), None


def _warn_about_mismatch(wish: PlacementOption, streams: Sequence[str]) -> None:
    """Warns about readers of a placement without a stream in the run, and about streams without a
    reader: the placement was computed for other queries.
    """
    readers = [n for n in wish.machine if not _TASK.fullmatch(n) and n not in (STATIC, OUTPUT)]
    of = {
        name: next((s for s in streams if f"{name} ".startswith(f"{s} ")), "") for name in readers
    }
    if gone := [name for name in readers if not of[name]]:
        more = f" and {len(gone) - 1} more" if gone[1:] else ""
        warnings.warn(
            f"{wish.path} places {gone[0]}{more}, which this run has no stream for: it goes by the "
            "rest.",
            stacklevel=3,
        )
    if unknown := [stream for stream in streams if stream not in of.values()]:
        said = (
            f"the stream {unknown[0]}" if not unknown[1:] else "the streams " + ", ".join(unknown)
        )
        warnings.warn(
            f"{wish.path} has no place for {said}: any executor may read it.", stacklevel=3
        )


def warn_about_unknown_tasks(placed: TaskPlacement | None, plan: Plan | None) -> None:
    """Warns about tasks of a placement whose stages a plan does not have; the rest of the placement
    applies.
    """
    if placed is None or plan is None:
        return
    tasks = [match for name in placed.machine if (match := _TASK.fullmatch(name))]
    if beyond := [task[0] for task in tasks if not 1 <= int(task[1]) <= plan.stages]:
        more = f" and {len(beyond) - 1} more" if beyond[1:] else ""
        have = f"{plan.stages} stage{'s' * (plan.stages > 1)}"
        warnings.warn(
            f"{placed.name} places the task {beyond[0]}{more}, and the queries have {have}: it was "
            "made for others, and is gone by as far as it goes.",
            stacklevel=3,
        )


def _apply(wish: PlacementOption, checkpoint: Checkpoint) -> TaskPlacement:
    tables = checkpoint.tables
    parts = tables.load(tables.current).partitions
    _check(wish, checkpoint.root, parts)
    grouped = bool((wish.groups >= 0).any())
    if grouped:
        tables.place(*_table(wish, parts))
    nowhere = np.full(parts, NOWHERE, np.int32)
    table = tables.load(tables.current).partition
    machines = _majority(table, wish, parts) if grouped else nowhere
    return TaskPlacement(
        Path(wish.path).name,
        wish.machines,
        wish.machine,
        tuple(machines.tolist()),
        predicted=wish.predicted,
        between=wish.between,
    )


def _check(wish: PlacementOption, root: Path, parts: int) -> None:
    hint = "Place for as many, or start in an empty folder, with Engine(partitions=..)."
    tasks = [match for name in wish.machine if (match := _TASK.fullmatch(name))]
    beyond = next((t[0] for t in tasks if int(t[2]) >= parts), None)
    if beyond is not None:
        raise UsageError(
            f"{wish.path} places the task {beyond}, and the checkpoint {root} has "
            f"{parts} partitions.",
            hint=hint,
        )
    if (wish.groups >= 0).any() and wish.machines > parts:
        raise UsageError(
            f"{wish.path} is a placement on {wish.machines} machines, and the checkpoint "
            f"{root} has {parts} partitions: some machines would have none.",
            hint=hint,
        )


def _table(wish: PlacementOption, parts: int) -> tuple[Ints, Ints]:
    """Returns the placed groups, and their partitions. Machine m of k has the partitions m, m + k,
    m + 2k .., and its groups go to these in turn.
    """
    (moved,) = np.nonzero(wish.groups >= 0)
    machine = wish.groups[moved]
    order = np.argsort(machine, kind="stable")
    first = np.searchsorted(machine[order], np.arange(wish.machines))
    turn = np.empty(len(moved), np.int64)
    turn[order] = np.arange(len(moved)) - first[machine[order]]
    each = (parts - machine + wish.machines - 1) // wish.machines  # partitions of the machine
    return moved.astype(np.int32), (machine + wish.machines * (turn % each)).astype(np.int32)


def _majority(table: Shorts, wish: PlacementOption, parts: int) -> Ints:
    """Returns for each partition the machine with most of its groups; without placed groups,
    machines in turn. Shape: partitions.
    """
    placed = wish.groups >= 0
    votes = np.zeros((parts, wish.machines), np.int64)
    np.add.at(votes, (table[placed], wish.groups[placed]), 1)
    chosen = np.where(votes.any(axis=1), votes.argmax(axis=1), np.arange(parts) % wish.machines)
    return chosen.astype(np.int32)
