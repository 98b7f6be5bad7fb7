"""The state of a partition at the beginning of an epoch: its own list of parts or, if groups have
moved, the combination of the lists of all previous owners of its groups (``operators/state``,
``taken_over``).

The parts of a divided group, and the partitions that take them:

    by a join that divides it      all that share the group have all of it; a new one takes it from
                                   the first of them
    by operators after that join   each has its own output; when others share the group, or no
                                   partition does any more, all goes to the group's own partition
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

from levada.checkpoint import state_files
from levada.checkpoint.epoch_context import EpochContext, load_groups
from levada.core.array_types import Bools
from levada.core.frame import Frame
from levada.operators.state.state_handover import HandedOverGroups, Part, take_over
from levada.operators.state.state_parts import Bounded, State, read_head
from levada.plan.execution.key_group_table import Division, GroupTable, SplitKeyGroup

Opener = Callable[[str], tuple[Mapping[str, Frame], Any]]
Some = tuple[bool, HandedOverGroups]
"""Whether any groups are taken over, and which."""


def open_state(context: EpochContext, stage: int, partition: int, opener: Opener) -> State:
    """Opens the state of a partition in a stage. Raises ``CheckpointError``."""
    had = partial(_read_part, context, stage, opener)
    if (
        context.state_group_table
        and (moved := _handover_sources(context, partition, had)) is not None
    ):
        alike, parts = moved
        head = take_over(alike, parts) if alike or parts else None
        return State(head, "", opener, _bounded_writer(context, stage, partition))
    part = had(partition)
    bounded = _bounded_writer(context, stage, partition)
    return State(part and part.head, part.file if part else "", opener, bounded)


def _bounded_writer(context: EpochContext, stage: int, partition: int) -> Bounded | None:
    """Returns the writer of parts during a task, if memory is bounded; else None."""
    if not context.memory.bytes:
        return None
    stem = f"{context.epoch}-{stage}-{partition}"
    return Bounded(context.memory.theta, partial(state_files.write, context.root, "state", stem))


def _handover_sources(
    context: EpochContext, partition: int, had: Callable[[int], Part | None]
) -> tuple[Part | None, list[Part]] | None:
    """Returns the part for state that all partitions share, and the parts for groups; None: the
    partition keeps its own.
    """
    before, now = load_groups(context.state_group_table), load_groups(context.group_table_file)
    takes = list(_takes(before, now, partition))
    if [t.owner for t in takes] == [partition] and takes[0].is_all:
        return None
    parts = [
        part._replace(taken=take.taken, joins=take.joins)
        for take in takes
        if (part := had(take.owner)) is not None
    ]
    return had(partition if partition < before.partitions else 0), parts


class _Take(NamedTuple):
    """The state that is taken from an old owner, as in ``Part``."""

    owner: int
    taken: HandedOverGroups
    joins: Mapping[int, HandedOverGroups]

    @property
    def is_all(self) -> bool:
        """Whether it is the whole state of the owner."""
        return all(taken.groups is None for taken in (self.taken, *self.joins.values()))


def _takes(before: GroupTable, now: GroupTable, partition: int) -> Iterator[_Take]:
    """Yields the owners from which a partition takes state."""
    mine = now.partition == partition
    ways = _ways(before.division, now.division)
    for owner in range(before.partitions):
        theirs = before.partition == owner
        rest = _select_groups(theirs, mine, _groups_passed_on(before, now, owner, partition))
        joins = {
            node: _select_groups(
                theirs, mine, _divided_join_groups(before, now, node, owner, partition)
            )
            for node in ways
        }
        if rest[0] or any(some for some, _ in joins.values()):
            yield _Take(owner, rest[1], {node: taken for node, (_, taken) in joins.items()})


def _ways(before: Division, now: Division) -> list[int]:
    """Returns the joins in which groups are or were divided."""
    there = {join for by in (before, now) if by.heavy for join in by.joins}
    return sorted(there)


Heavies = Iterator[tuple[int, bool, bool]]
"""For each group that is or was divided: whether the owner had rows of it, and whether these
leave.
"""


def _select_groups(theirs: Bools, mine: Bools, heavy: Heavies) -> Some:
    groups, had = theirs & mine, theirs.copy()
    for group, was, goes in heavy:
        had[group], groups[group] = was, goes
    is_all = groups.any() and (groups == had).all()
    return bool(groups.any()), HandedOverGroups(None if is_all else groups, had)


def _groups_passed_on(before: GroupTable, now: GroupTable, owner: int, partition: int) -> Heavies:
    """Yields the groups that follow from divided joins."""
    old, new = _by_group(before), _by_group(now)
    for group in sorted({*old, *new}):
        had = owner in _parts(before, old, group)
        if old.get(group) == new.get(group):
            yield group, had, had and owner == partition
        else:
            yield group, had, had and partition == int(now.partition[group])


def _divided_join_groups(
    before: GroupTable, now: GroupTable, node: int, owner: int, partition: int
) -> Heavies:  # fmt: skip
    """Yields the groups that a divided join keeps."""
    old = _by_group(before) if node in before.division.joins else {}
    new = _by_group(now) if node in now.division.joins else {}
    for group in sorted({h.group for t in (before, now) for h in t.division.heavy}):
        had, has = _parts(before, old, group), _parts(now, new, group)
        source = partition if partition in had else had[0]
        yield group, owner in had, partition in has and owner == source


def _by_group(table: GroupTable) -> dict[int, SplitKeyGroup]:
    return {h.group: h for h in table.division.heavy}


def _parts(table: GroupTable, heavy: Mapping[int, SplitKeyGroup], group: int) -> tuple[int, ...]:
    """Returns the partitions with rows of a group, its own one first."""
    return heavy[group].parts if group in heavy else (int(table.partition[group]),)


def _read_part(context: EpochContext, stage: int, opener: Opener, partition: int) -> Part | None:
    """Returns the whole state of a partition; None: it had none."""
    name = context.state.get(f"{stage}.{partition}")
    return None if name is None else Part(read_head(opener(name)[1]), name, HandedOverGroups(None))
