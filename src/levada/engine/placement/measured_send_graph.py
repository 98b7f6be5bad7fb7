"""The send graph that a run has measured, from its checkpoint."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from pathlib import Path

import numpy as np

from levada.checkpoint.checkpoint_folder import newest_manifest, plan_of
from levada.checkpoint.manifest import Manifest
from levada.core.array_types import Longs
from levada.core.checkpoint_files import facts_of
from levada.errors import UsageError, near
from levada.placement.placement_file import FINEST, check_groups, group_name
from levada.placement.send_graph import SendGraph
from levada.plan.execution.plan import Plan
from levada.runtime.placement import key_group_counters, send_graph
from levada.runtime.placement.key_group_counters import Block
from levada.runtime.placement.send_graph import SentCounts


def read_send_graph(root: Path, slice_: str | None) -> SendGraph:
    """Reads the send graph of a slice, by default the last one. Raises ``UsageError`` and
    ``CheckpointError``.
    """
    manifest, name = _slice(root, slice_)
    return graph_of(send_graph.read_slice(str(root), manifest, name))


def read_group_send_graph(root: Path, slice_: str | None, groups: int) -> SendGraph:
    """Reads the send graph of a slice with groups as tasks: the rows from each reader and group to
    each group. Leaves out, with a warning, operators without a query, and partial aggregates of
    several groups. Raises ``UsageError`` if it was counted by fewer groups.
    """
    check_groups(groups)
    manifest, name = _slice(root, slice_)
    every = list(key_group_counters.read_slice(str(root), manifest, name))
    if (finest := group_resolution(every)) < groups:
        raise UsageError(
            f"The slice {name} was counted by {finest:,} groups, and {groups:,} are asked for.",
            hint=f"Say --groups {finest}, or run with --slice 1d,groups={groups}.",
        )
    there = select_current(every, plan_of(root, facts_of(root), manifest.plan))
    if less := _missing_rows(every, there):
        _warn(f"{less} were for operators that no query has any more: they are left out.")
    sure = select_attributed(there)
    if less := _missing_rows(there, sure):
        _warn(
            f"{less} are partial aggregates, each added up out of several groups: no group has "
            "sent them, and they are left out."
        )
    return by_group(sure, groups)


def group_resolution(blocks: Iterable[Block]) -> int:
    """Returns the lowest number of groups by which any of the blocks was counted."""
    return min((block.of for block in blocks), default=FINEST)


def _missing_rows(every: list[Block], some: list[Block]) -> str:
    """Describes how many rows ``some`` lacks of ``every``; "" if none."""
    rows, part = (sum(int(b.rows.sum()) for b in blocks) for blocks in (every, some))
    return f"{rows - part:,} of {rows:,} rows ({1 - part / rows:.1%})" if part < rows else ""


def _warn(sentence: str) -> None:
    warnings.warn(sentence, stacklevel=3)


def select_current(blocks: Iterable[Block], plan: Plan) -> list[Block]:
    """Returns the blocks that went to operators of a plan."""
    return [b for b in blocks if b.node < 0 or b.node in plan.nodes]


def select_attributed(blocks: Iterable[Block]) -> list[Block]:
    """Returns the blocks of readers, and those whose groups of origin are counted. The others are
    partial aggregates of several groups, counted by task.
    """
    return [b for b in blocks if b.sources is not None or not flow_order(b.sender)[0]]


def by_group(blocks: list[Block], groups: int) -> SendGraph:
    """Builds the graph of the rows from readers and groups to groups. Its vertices are the readers,
    then the groups that have sent or received rows. ``groups``: at most as many as rows were
    counted by.
    """
    assert groups <= group_resolution(blocks), "counts say nothing of finer groups"
    names = sorted({b.sender for b in blocks if b.sources is None})
    readers = {name: i for i, name in enumerate(names)}
    every = len(readers) + groups  # the most possible vertices

    def vertices(group: Longs, of: int) -> Longs:
        return len(readers) + group * groups // of

    keys = [
        vertices(b.groups, b.of)
        + every * (np.int64(readers[b.sender]) if b.sources is None else vertices(b.sources, b.of))
        for b in blocks
    ]
    edges, at = np.unique(np.concatenate([*keys, np.empty(0, np.int64)]), return_inverse=True)
    ends = np.concatenate([np.arange(len(readers)), edges // every, edges % every])
    there, place = np.unique(ends, return_inverse=True)
    source, target = place[len(readers) :].reshape(2, -1).astype(np.int32)
    tasks = (group_name(group, groups) for group in (there[len(readers) :] - len(readers)).tolist())
    return SendGraph(
        (*readers, *tasks),
        source,
        target,
        _total(at, [b.rows for b in blocks], len(edges)),
        _total(at, [_spread_bytes(b) for b in blocks], len(edges)),
    )


def _total(at: Longs, columns: list[Longs], edges: int) -> Longs:
    total = np.zeros(edges, np.int64)
    np.add.at(total, at, np.concatenate([*columns, np.empty(0, np.int64)]))
    return total


def _spread_bytes(block: Block) -> Longs:
    """Splits the bytes of a block among its groups: as many a row, in whole numbers that add up."""
    ends = np.cumsum(block.rows) * block.size // max(int(block.rows.sum()), 1)
    return np.diff(ends, prepend=0)


def _slice(root: Path, slice_: str | None) -> tuple[Manifest, str]:
    facts_of(root)
    manifest = newest_manifest(root)
    if manifest is None or not manifest.slices:
        raise UsageError(
            f"The run on {root} has counted nothing.", hint="Run it with --slice 1d or 1mo."
        )
    name = next(reversed(manifest.slices)) if slice_ is None else slice_  # the latest to appear
    if name not in manifest.slices:
        raise UsageError(f"{root} has no slice {name}.", hint=near(name, sorted(manifest.slices)))
    return manifest, name


def graph_of(sent: SentCounts) -> SendGraph:
    """Builds the graph of a slice: a vertex for each task, in the order of the flow."""
    receivers = {name: None for to in sent.links.values() for name in to}
    tasks = tuple(dict.fromkeys([*sorted(sent.cpu_by_task, key=flow_order), *receivers]))
    place = {name: i for i, name in enumerate(tasks)}
    links = [(place[a], place[b], *n) for a, to in sent.links.items() for b, n in to.items()]
    columns = np.array(sorted(links), np.int64).reshape(-1, 5).T
    return SendGraph(
        tasks,
        columns[0].astype(np.int32),
        columns[1].astype(np.int32),
        columns[2].copy(),
        columns[3].copy(),
        np.array([sent.cpu_by_task.get(name, 0.0) for name in tasks]),
    )


def flow_order(name: str) -> tuple[int, int, str]:
    """Returns a sort key: readers first, then the tasks of stages by stage and partition."""
    stage, _, partition = name.partition(".")
    if stage.isdigit() and partition.isdigit():
        return int(stage), int(partition), ""
    return 0, 0, name
