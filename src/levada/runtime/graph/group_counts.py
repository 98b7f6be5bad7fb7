"""How many rows each reader has sent to each group of keys, by the node that gets them: what a
placer needs that is to give groups to machines (KATTS: Fischer, Scharrenbach, Bernstein 2013, 3.3).

A task that reads counts its rows where it finds out their targets anyway, and tells the counts with
its outcome: an attempt that is not committed counts nothing. They are *packed*: a number for each
group, as wide as the largest asks for, or the groups that got something and their numbers, what is
shorter. So they go, as they came, to the manifest until they are too many for it, and then to a
file that it names. A slice of event time is a list of such files, which become one where they are
many. A row is one that crosses an exchange (of what is
folded before it, a partial aggregate). Bytes are those of its columns; texts go once a blob,
whatever group they are of.

Cost: 1 ns a row, and where a task counts, half a megabyte a node while it runs; 65 KB an epoch,
reader and node at most; a file half a millisecond of CPU.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from levada.kernels.keyed.route import count_groups
from levada.model.arrays import Longs
from levada.model.checked import checked_parts
from levada.model.frame import Frame
from levada.runtime.context import Counted, Done
from levada.runtime.graph.task_graph import name_of
from levada.runtime.store import state_files
from levada.runtime.store.manifest import Manifest

MOST_NODES = 64
"""That a task counts apart; rows for others are counted as those of ``OTHERS``."""
OTHERS, CHECKS = -1, -2
"""Nodes that are none: all further ones together; what closed elements are checked by."""
MOST_FILES = 16
"""Of a slice, before they become one."""
LITTLE = 16 << 10
"""Bytes that a manifest has before they become a file."""
FOLDER = "graph"
FINEST = 1 << 16


class Counter:
    """Counts the rows of one task."""

    def __init__(self, groups: int) -> None:
        self._groups = groups
        self._rows: dict[int, Longs] = {}
        self._size: dict[int, int] = {}

    def count(self, node: int, groups: npt.NDArray[np.uint16], frame: Frame) -> None:
        """Counts rows that go to a node, by their groups."""
        at = node if node in self._rows or len(self._rows) < MOST_NODES else OTHERS
        if at not in self._rows:
            self._rows[at] = np.zeros(self._groups, np.int64)
        count_groups(groups, self._rows[at])
        width = sum(column.dtype.itemsize for column in frame.columns.values())
        self._size[at] = self._size.get(at, 0) + width * frame.n

    def told(self) -> list[Counted]:
        """What has been counted, of groups that got something."""
        return [_sparse(node, rows, self._size[node]) for node, rows in self._rows.items()]

    def packed(self) -> list[Counted]:
        """The same, packed."""
        return [_packed(node, rows, self._size[node]) for node, rows in self._rows.items()]


def _sparse(node: int, rows: Longs, size: int) -> Counted:
    (groups,) = np.nonzero(rows)
    many = rows[groups].astype(np.uint32)
    return Counted(node, groups.astype(np.uint16).tobytes(), many.tobytes(), size)


def _packed(node: int, rows: Longs, size: int) -> Counted:
    kind, there = np.min_scalar_type(int(rows.max(initial=0))), rows != 0
    if np.count_nonzero(there) * (2 + kind.itemsize) >= len(rows) * kind.itemsize:
        return Counted(node, b"", rows.astype(kind).tobytes(), size, kind.itemsize)
    (groups,) = np.nonzero(there)  # of a mask, which is read ten times as fast
    many = rows[groups].astype(kind)
    return Counted(node, groups.astype(np.uint16).tobytes(), many.tobytes(), size, kind.itemsize)


class Block(NamedTuple):
    """What a task (by its name) has sent to a node: rows to each of these groups, bytes in all."""

    sender: str
    node: int
    groups: Longs
    rows: Longs
    size: int


Packed = tuple[str, Counted]
"""The same as files and manifests have it."""


def _block(packed: Packed) -> Block:
    """Groups that got something."""
    sender, told = packed
    every = np.frombuffer(told.rows, f"u{told.width}").astype(np.int64)
    if told.groups:
        at = np.frombuffer(told.groups, np.uint16).astype(np.int64)
        return Block(sender, told.node, at, every, told.size)
    (at,) = np.nonzero(every)
    return Block(sender, told.node, at, every[at], told.size)


def together(found: Iterable[Block]) -> list[Block]:
    """The blocks of the same task and node as one, in the order in which they came first."""
    parts: dict[tuple[str, int], list[Block]] = {}
    for block in found:
        parts.setdefault((block.sender, block.node), []).append(block)
    return [own[0] if len(own) == 1 else _sum(own) for own in parts.values()]


def _sum(parts: Sequence[Block]) -> Block:
    total = np.zeros(FINEST, np.int64)
    for part in parts:
        total[part.groups] += part.rows  # a group is in a block once
    (there,) = np.nonzero(total)
    size = sum(part.size for part in parts)
    return Block(parts[0].sender, parts[0].node, there, total[there], size)


def keep(
    root: str, epoch: int, last: Manifest, slice_: str, done: Iterable[Done]
) -> tuple[dict[str, list[str]], list[Packed]]:
    """The files of all slices after an epoch, and what is in none of them yet. Durably, once the
    manifest is.
    """
    slices, pending = {name: list(files) for name, files in last.by_group.items()}, last.pending
    before = next(reversed(slices), slice_)
    if pending and before != slice_:
        slices[before].append(_write(root, epoch, pending))
        pending = []
    files = slices.setdefault(slice_, [])
    pending = [*pending, *((name_of(told), each) for told in done for each in told.sent)]
    if sum(len(each.groups) + len(each.rows) for _, each in pending) > LITTLE:
        if len(files) >= MOST_FILES:
            pending = [
                _of_block(block) for block in together([*read(root, files), *map(_block, pending)])
            ]
            files.clear()
        files.append(_write(root, epoch, pending))
        pending = []
    return slices, pending


def of(root: str, manifest: Manifest, slice_: str) -> Iterator[Block]:
    """What a slice has. Raises ``CheckpointError``."""
    yield from read(root, manifest.by_group.get(slice_, ()))
    if slice_ == next(reversed(manifest.by_group), None):
        yield from map(_block, manifest.pending)


def _of_block(block: Block) -> Packed:
    rows = np.zeros(FINEST, np.int64)
    rows[block.groups] = block.rows
    return block.sender, _packed(block.node, rows, block.size)


def _write(root: str, epoch: int, found: Sequence[Packed]) -> str:
    whole = b"".join(part for _, each in found for part in (each.groups, each.rows))
    meta = [
        [sender, each.node, len(each.groups), len(each.rows), each.width, each.size]
        for sender, each in found
    ]
    frame = Frame({"bytes": np.frombuffer(whole, np.uint8)})
    return state_files.write(root, FOLDER, str(epoch), checked_parts({"packed": frame}, meta))


def read(root: str, files: Iterable[str]) -> Iterator[Block]:
    """What files tell, one after the other. Raises ``CheckpointError``."""
    for name in files:
        frames, meta = state_files.map_(root, name)
        if "counts" in frames:
            yield from _unpacked(frames["counts"], meta)
            continue
        data, at = frames["packed"]["bytes"], 0
        for sender, node, groups, rows, width, size in meta:
            cut = data[at : at + groups].tobytes(), data[at + groups : at + groups + rows].tobytes()
            yield _block((sender, Counted(node, *cut, size, width)))
            at += groups + rows


def _unpacked(frame: Frame, meta: Iterable[tuple[str, int, int, int]]) -> Iterator[Block]:
    """A file as it was written before counts were packed."""
    at = 0
    for sender, node, many, size in meta:
        cut = slice(at, at + many)
        groups = frame["group"][cut].astype(np.int64)
        yield Block(sender, node, groups, frame["rows"][cut].astype(np.int64), size)
        at += many
