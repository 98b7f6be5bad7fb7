"""Counts the rows that each reader has sent to each key group, and each group to each other one, by
receiving node. A placer that assigns groups to machines needs these counts (KATTS: Fischer,
Scharrenbach, Bernstein 2013, 3.3).

A task counts its rows where it computes their targets, and reports the counts with its outcome. So
an attempt that is not committed counts nothing. Counts are *packed*: a number for each group, as
wide as the largest requires, or the groups with rows and their numbers, whichever is shorter. They
stay in the manifest in that form until they are too many for it. Then they are added up, and
written to a file that the manifest names if they are still too many. A slice of event time is a
list of such files, which are merged when they are many. The number of groups is fixed before a run
(``checkpoint.send_graph_options``), and each block of counts contains it. Counted are rows that
cross an exchange (of rows that are folded before it, the partial aggregates). Bytes are those of
columns; texts count once a blob, whatever their group.

Behind an exchange each row has its group. So rows that a stage sends count from that group,
whatever its partition and machine were (docs/decisions/0048-edges-between-groups.md). A partial
aggregate of rows of several groups has no group: it counts as the task's. Rows that stay in their
group count, too.

Cost: 1 ns a row that is read; with 4,096 groups 4 to 8 KB an epoch, reader and node, with 65,536
sixteen times as much; half a millisecond of CPU a file; 6 to 30 ns a row from one stage to the
next, and 8 bytes a pair of groups.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from levada.checkpoint import state_files
from levada.checkpoint.epoch_context import Counted, TaskOutcome, column_of, text_of
from levada.checkpoint.manifest import Manifest
from levada.checkpoint.send_graph_options import FINEST
from levada.core import column_names as col
from levada.core.array_types import Longs
from levada.core.frame import Frame
from levada.core.size_thresholds import register
from levada.kernels.keyed.key_partitioner import count_groups, count_pairs
from levada.operators.state.checksummed_frames import checked_parts
from levada.runtime.placement.task_graph import name_of

MOST_NODES = register(f"{__name__}.MOST_NODES", 64)
"""That a task counts apart; rows for others are counted as those of ``OTHERS``."""
OTHERS, CHECKS, JOINS = -1, -2, -3
"""Nodes that are none: all further ones together; what closed elements are checked by; all joins
in which groups may be divided.
"""
MOST_FILES = register(f"{__name__}.MOST_FILES", 16)
"""The most files of a slice before they are merged into one."""
LITTLE = register(f"{__name__}.LITTLE", 64 << 10)
"""Bytes that a manifest has before they are added up, and become a file if that does not halve
them.
"""
FOLDER = "graph"
BY_GROUP = ""
"""The sender of rows that carry their group."""

_WIDTH = attrgetter("itemsize")  # of a column's values

Pairs = tuple[npt.NDArray[np.uint32], Longs]


class Counter:
    """Counts the rows of one task by so many groups. Rows have their groups among ``finest``."""

    def __init__(self, groups: int, finest: int = 0) -> None:
        self._groups = groups
        self._shift = max(finest, groups).bit_length() - groups.bit_length()
        self._rows: dict[int, Longs] = {}
        self._pairs: dict[int, list[Pairs]] = {}
        self._size: dict[tuple[int, bool], int] = {}  # by node, from known or unknown groups

    def count(
        self,
        node: int,
        groups: npt.NDArray[np.uint16],
        frame: Frame,
        sources: npt.NDArray[np.uint16] | None = None,
    ) -> None:
        """Counts rows that go to a node, by their groups there and, if known, by their previous
        groups.
        """
        at = node if self._has_room(node) else OTHERS
        if sources is not None:
            self._pairs.setdefault(at, []).append(count_pairs(sources, groups, self._shift))
        else:
            if at not in self._rows:
                self._rows[at] = np.zeros(self._groups, np.int64)
            count_groups(groups, self._rows[at], self._shift)
        width = sum(map(_WIDTH, frame.columns.values()))
        key = at, sources is not None
        self._size[key] = self._size.get(key, 0) + width * frame.n

    def _has_room(self, node: int) -> bool:
        if node in self._rows or node in self._pairs:
            return True
        return len(self._rows.keys() | self._pairs.keys()) < MOST_NODES

    def count_given(self, frames: Iterable[Frame], *, joins: bool) -> None:
        """Counts the input rows of an operator. ``joins``: it is a join that may be divided."""
        for frame in frames:
            for to in (OTHERS, JOINS) if joins else (OTHERS,):
                self.count(to, frame[col.PLACE], frame)

    def given_counts(self) -> tuple[Counted | None, Counted | None]:
        """Returns the counts of the input rows of operators, and of the joins that may be
        divided.
        """
        of = {counts.node: counts for counts in self.counts()}
        return of.get(OTHERS), of.get(JOINS)

    def counts(self) -> list[Counted]:
        """Returns the counts of groups with rows."""
        return [_sparse(node, rows, self._size[node, False]) for node, rows in self._rows.items()]

    def packed_counts(self) -> list[Counted]:
        """Returns the packed counts, including the rows between groups."""
        return [
            *(_pack(node, rows, self._size[node, False]) for node, rows in self._rows.items()),
            *(
                _pack_pairs(node, parts, self._size[node, True], self._groups)
                for node, parts in self._pairs.items()
            ),
        ]


def _sparse(node: int, rows: Longs, size: int) -> Counted:
    (groups,) = np.nonzero(rows)
    many = rows[groups].astype(np.uint32)
    return Counted(node, text_of(groups.astype(np.uint16)), text_of(many), size, of=len(rows))


def _pack(node: int, rows: Longs, size: int) -> Counted:
    kind = np.min_scalar_type(int(rows.max(initial=0)))
    if np.count_nonzero(rows) * (2 + kind.itemsize) >= len(rows) * kind.itemsize:
        return Counted(node, "", text_of(rows.astype(kind)), size, kind.itemsize, of=len(rows))
    (groups,) = np.nonzero(rows != 0)  # a mask is read ten times as fast
    group_text, many = text_of(groups.astype(np.uint16)), text_of(rows[groups].astype(kind))
    return Counted(node, group_text, many, size, kind.itemsize, of=len(rows))


def _pack_pairs(node: int, parts: Sequence[Pairs], size: int, groups: int) -> Counted:
    pairs, rows = _sum_by_key([pairs for pairs, _ in parts], [rows for _, rows in parts])
    return _of_pairs(node, pairs.astype(np.int64), rows, size, groups)


def _of_pairs(node: int, pairs: Longs, rows: Longs, size: int, groups: int) -> Counted:
    kind = np.min_scalar_type(int(rows.max(initial=0)))
    by, to = (text_of(half.astype(np.uint16)) for half in divmod(pairs, FINEST))
    return Counted(node, to, text_of(rows.astype(kind)), size, kind.itemsize, by, groups)


def _sum_by_key(
    keys: Sequence[npt.NDArray[np.uint32]], rows: Sequence[Longs]
) -> tuple[npt.NDArray[np.uint32], Longs]:
    """Returns the distinct keys in ascending order, with the sums of their rows."""
    there, at = np.unique(np.concatenate(keys), return_inverse=True)
    return there, np.bincount(at, np.concatenate(rows), len(there)).astype(np.int64)


class Block(NamedTuple):
    """The rows that a task (by its name) has sent to a node: by group, and bytes in all. Or the
    rows between groups, from each of ``sources`` to the one of ``groups`` beside it. ``of``: the
    number of groups.
    """

    sender: str
    node: int
    groups: Longs
    rows: Longs
    size: int
    sources: Longs | None = None
    of: int = FINEST


Packed = tuple[str, Counted]
"""The same as files and manifests have it."""


def _block(packed: Packed) -> Block:
    """Returns the block of the groups with rows."""
    sender, counts = packed
    every = column_of(counts.rows, counts.width).astype(np.int64)
    if counts.groups:
        sources = _longs(counts.sources) if counts.sources else None
        return Block(
            sender, counts.node, _longs(counts.groups), every, counts.size, sources, counts.of
        )
    (at,) = np.nonzero(every)
    return Block(sender, counts.node, at, every[at], counts.size, of=counts.of)


def _longs(column: str) -> Longs:
    return column_of(column, 2).astype(np.int64)


def merge_blocks(blocks: Iterable[Block]) -> list[Block]:
    """Merges the blocks of the same task, node and number of groups, in order of first
    appearance.
    """
    parts: dict[tuple[str, int, int], list[Block]] = {}
    for block in blocks:
        parts.setdefault((block.sender, block.node, block.of), []).append(block)
    return [
        task_blocks[0] if len(task_blocks) == 1 else _sum(task_blocks)
        for task_blocks in parts.values()
    ]


def _sum(parts: Sequence[Block]) -> Block:
    first, size = parts[0], sum(part.size for part in parts)
    if first.sources is not None:
        keys = [
            (part.sources * FINEST + part.groups).astype(np.uint32)
            for part in parts
            if part.sources is not None
        ]
        pairs, rows = _sum_by_key(keys, [part.rows for part in parts])
        there = pairs.astype(np.int64)
        by, to = divmod(there, FINEST)
        return Block(first.sender, first.node, to, rows, size, by, first.of)
    total = np.zeros(first.of, np.int64)
    for part in parts:
        total[part.groups] += part.rows  # a group is in a block once
    (there,) = np.nonzero(total)
    return Block(first.sender, first.node, there, total[there], size, of=first.of)


def add_to_slices(
    root: str, epoch: int, last: Manifest, slice_: str, done: Iterable[TaskOutcome]
) -> tuple[dict[str, list[str]], list[Packed]]:
    """Adds an epoch to the slices. Returns the files of all slices, and the counts that are not in
    files yet. They are durable when the manifest is.
    """
    slices, pending = (
        {name: list(files) for name, files in last.group_count_files.items()},
        last.pending_group_counts,
    )
    before = next(reversed(slices), slice_)
    if pending and before != slice_:
        slices[before].append(_write(root, epoch, pending))
        pending = []
    files = slices[slice_] = slices.pop(slice_, [])  # the last one, also if it is repeated
    pending = [*pending, *packed_of_tasks(done)]
    if _size(pending) > LITTLE and _size(pending := _merge_packed(pending)) > LITTLE // 2:
        if len(files) >= MOST_FILES:
            blocks = merge_blocks([*read(root, files), *map(_block, pending)])
            pending = [_of_block(block) for block in blocks]
            files.clear()
        files.append(_write(root, epoch, pending))
        pending = []
    return slices, pending


def packed_of_tasks(done: Iterable[TaskOutcome]) -> Iterator[Packed]:
    """Yields the packed counts of tasks, with the names of the tasks if the groups are unknown."""
    for outcome in done:
        for each in outcome.sent:
            yield (BY_GROUP if each.sources else name_of(outcome)), each


def read_slice(root: str, manifest: Manifest, slice_: str) -> Iterator[Block]:
    """Returns the blocks of a slice. Raises ``CheckpointError``."""
    yield from read(root, manifest.group_count_files.get(slice_, ()))
    if slice_ == next(reversed(manifest.group_count_files), None):
        yield from map(_block, manifest.pending_group_counts)


def _merge_packed(counts: list[Packed]) -> list[Packed]:
    """Merges packed counts, one for each task and node."""
    parts: dict[tuple[str, int, int], list[Packed]] = {}
    for each in counts:
        parts.setdefault((each[0], each[1].node, each[1].of), []).append(each)
    return [
        task_counts[0] if len(task_counts) == 1 else _sum_packed(task_counts)
        for task_counts in parts.values()
    ]


def _sum_packed(counts: Sequence[Packed]) -> Packed:
    """Adds up the packed counts of one task and node. Dense counts are added without a search for
    groups with rows, which is four times as fast.
    """
    sender, first = counts[0]
    if first.sources:
        return _of_block(_sum(list(map(_block, counts))))
    total = np.zeros(first.of, np.int64)
    for _, counted in counts:
        rows = column_of(counted.rows, counted.width)
        if counted.groups:
            total[column_of(counted.groups, 2)] += rows  # a group is in it once
        elif counted.rows:  # otherwise no group received any
            total += rows
    return sender, _pack(first.node, total, sum(counted.size for _, counted in counts))


def _size(counts: Sequence[Packed]) -> int:
    return sum(map(len, _parts(counts)))


def _of_block(block: Block) -> Packed:
    if block.sources is not None:
        pairs = block.sources * FINEST + block.groups
        return block.sender, _of_pairs(block.node, pairs, block.rows, block.size, block.of)
    rows = np.zeros(block.of, np.int64)
    rows[block.groups] = block.rows
    return block.sender, _pack(block.node, rows, block.size)


def _parts(counts: Sequence[Packed]) -> list[str]:
    return [part for _, each in counts for part in (each.groups, each.rows, each.sources)]


def _write(root: str, epoch: int, counts: Sequence[Packed]) -> str:
    columns = [column_of(text, 1) for text in _parts(counts)]
    meta = [
        [s, c.node, *(len(column) for column in columns[3 * i : 3 * i + 3]), c.width, c.size, c.of]
        for i, (s, c) in enumerate(counts)
    ]
    frame = Frame({"bytes": np.concatenate([*columns, np.empty(0, np.uint8)])})
    return state_files.write(root, FOLDER, str(epoch), checked_parts({"packed": frame}, meta))


def read(root: str, files: Iterable[str]) -> Iterator[Block]:
    """Yields the blocks of files, one after the other. Raises ``CheckpointError``."""
    for name in files:
        frames, meta = state_files.map_(root, name)
        data, at = frames["packed"]["bytes"], 0
        for sender, node, *sizes, width, size, of in (_complete_entry(entry) for entry in meta):
            cuts = []
            for many in sizes:
                cuts.append(text_of(data[at : at + many]))
                at += many
            groups, rows, sources = cuts
            yield _block((sender, Counted(node, groups, rows, size, width, sources, of)))


def _complete_entry(entry: list[Any]) -> list[Any]:
    """Completes an entry of an old file, whose rows were counted by the finest groups."""
    return entry if len(entry) == 8 else [*entry, FINEST]
