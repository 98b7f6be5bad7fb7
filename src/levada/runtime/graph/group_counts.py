"""How many rows each task has sent to each group of keys, by the node that gets them: what a placer
needs that is to give groups to machines (KATTS: Fischer, Scharrenbach, Bernstein 2013, 3.3).

A task counts its rows where it finds out their targets anyway, and tells the counts with its
outcome: an attempt that is not committed counts nothing. What tells of an epoch is a file, in
which only groups stand that got something; a slice of event time is a list of such files, which
become one where they are many. A row is one that crosses an exchange (of what is folded before it,
a partial aggregate). Bytes are those of its columns; texts go once a blob, whatever group they are
of.

Cost: 1 ns a row, and where a task counts, half a megabyte a node while it runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from levada.kernels.keyed.route import count_groups
from levada.model import columns as col
from levada.model.arrays import Longs
from levada.model.checked import checked_parts
from levada.model.frame import Frame
from levada.runtime.context import Counted, Done
from levada.runtime.graph.task_graph import name_of
from levada.runtime.store import state_files

MOST_NODES = 64
"""That a task counts apart; rows for others are counted as those of ``OTHERS``."""
OTHERS, CHECKS, JOINS = -1, -2, -3
"""Nodes that are none: all further ones together; what closed elements are checked by; all joins
in which groups may be divided.
"""
MOST_FILES = 16
"""Of a slice, before they become one."""
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

    def count_given(self, frames: Iterable[Frame], *, joins: bool) -> None:
        """Counts rows that an operator is given; ``joins``: it is a join that may be divided."""
        for frame in frames:
            for to in (OTHERS, JOINS) if joins else (OTHERS,):
                self.count(to, frame[col.PLACE], frame)

    def given(self) -> tuple[Counted | None, Counted | None]:
        """What has been counted of rows that operators were given, and of those such joins were."""
        of = {told.node: told for told in self.told()}
        return of.get(OTHERS), of.get(JOINS)

    def told(self) -> list[Counted]:
        """What has been counted."""
        return [_counted(node, rows, self._size[node]) for node, rows in self._rows.items()]


def _counted(node: int, rows: Longs, size: int) -> Counted:
    (groups,) = np.nonzero(rows)
    many = rows[groups].astype(np.uint32)
    return Counted(node, groups.astype(np.uint16).tobytes(), many.tobytes(), size)


class Block(NamedTuple):
    """What a task (by its name) has sent to a node: rows to each of these groups, bytes in all."""

    sender: str
    node: int
    groups: Longs
    rows: Longs
    size: int


def blocks(done: Iterable[Done]) -> list[Block]:
    """What tasks have told, by their names."""
    return [
        Block(
            name_of(told),
            each.node,
            np.frombuffer(each.groups, np.uint16).astype(np.int64),
            np.frombuffer(each.rows, np.uint32).astype(np.int64),
            each.size,
        )
        for told in done
        for each in told.sent
    ]


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
    root: str, epoch: int, before: Mapping[str, list[str]], slice_: str, done: Iterable[Done]
) -> dict[str, list[str]]:
    """The files of all slices after an epoch: its counts are one more of its slice, durably."""
    files, new = list(before.get(slice_, ())), blocks(done)
    if len(files) >= MOST_FILES:
        new, files = together([*read(root, files), *new]), []
    if new:
        files.append(_write(root, epoch, new))
    return {**before, slice_: files}


def _write(root: str, epoch: int, found: Sequence[Block]) -> str:
    frame = Frame(
        {
            "group": np.concatenate([b.groups for b in found]).astype(np.uint16),
            "rows": np.concatenate([b.rows for b in found]),
        }
    )
    meta = [[b.sender, b.node, len(b.groups), b.size] for b in found]
    return state_files.write(root, FOLDER, str(epoch), checked_parts({"counts": frame}, meta))


def read(root: str, files: Iterable[str]) -> Iterator[Block]:
    """What files tell, one after the other. Raises ``CheckpointError``."""
    for name in files:
        frames, meta = state_files.map_(root, name)
        frame, at = frames["counts"], 0
        for sender, node, many, size in meta:
            cut = slice(at, at + many)
            groups = frame["group"][cut].astype(np.int64)
            yield Block(sender, node, groups, frame["rows"][cut].astype(np.int64), size)
            at += many
