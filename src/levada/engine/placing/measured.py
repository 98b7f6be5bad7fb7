"""The send graph that a run has measured, out of its checkpoint."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np

from levada.errors import UsageError, near
from levada.model.arrays import Longs
from levada.placement.graph import SendGraph
from levada.placement.placement import FINEST, check_groups, group_name
from levada.runtime.graph import group_counts, send_graph
from levada.runtime.graph.group_counts import Block
from levada.runtime.graph.send_graph import Sent
from levada.runtime.graph.task_graph import OUTPUT
from levada.runtime.store.checkpoint import facts_of, newest_manifest
from levada.runtime.store.manifest import Manifest


def measured(root: Path, slice_: str | None) -> SendGraph:
    """The send graph of a slice; without one, of the last. Raises ``UsageError`` and
    ``CheckpointError``.
    """
    manifest, name = _slice(root, slice_)
    return graph_of(send_graph.of(str(root), manifest, name))


def measured_by_group(root: Path, slice_: str | None, groups: int) -> SendGraph:
    """The send graph of a slice with groups as tasks: what each reader has sent to each. What tasks
    of stages have sent is left out, with a warning: of what group they sent it is not known.
    """
    check_groups(groups)
    manifest, name = _slice(root, slice_)
    rest = _of_stages(send_graph.of(str(root), manifest, name))
    if rest:
        warnings.warn(
            f"{rest:.0%} of the rows are sent by tasks of stages, which have many groups each: "
            "they are left out.",
            stacklevel=2,
        )
    return by_group(list(group_counts.of(str(root), manifest, name)), groups)


def _of_stages(sent: Sent) -> float:
    """The part of the rows between tasks that tasks of stages have sent."""
    rows = [
        (_flow(sender)[0] > 0, n)
        for sender, to in sent.links.items()
        for target, (n, _, _) in to.items()
        if target != OUTPUT
    ]
    return sum(n for late, n in rows if late) / max(sum(n for _, n in rows), 1)


def by_group(blocks: list[Block], groups: int) -> SendGraph:
    """What readers have sent to groups as a graph: the readers, then the groups that got rows."""
    readers = {name: i for i, name in enumerate(sorted({block.sender for block in blocks}))}
    keys = [readers[b.sender] * groups + b.groups * groups // FINEST for b in blocks]
    edges, at = np.unique(np.concatenate([*keys, np.empty(0, np.int64)]), return_inverse=True)
    there, target = np.unique(edges % groups, return_inverse=True)
    return SendGraph(
        (*readers, *(group_name(group, groups) for group in there.tolist())),
        (edges // groups).astype(np.int32),
        (target + len(readers)).astype(np.int32),
        _total(at, [b.rows for b in blocks], len(edges)),
        _total(at, [_dealt(b) for b in blocks], len(edges)),
    )


def _total(at: Longs, columns: list[Longs], edges: int) -> Longs:
    total = np.zeros(edges, np.int64)
    np.add.at(total, at, np.concatenate([*columns, np.empty(0, np.int64)]))
    return total


def _dealt(block: Block) -> Longs:
    """The bytes of a block by its groups: as many a row, whole numbers that add up."""
    ends = np.cumsum(block.rows) * block.size // max(int(block.rows.sum()), 1)
    return np.diff(ends, prepend=0)


def _slice(root: Path, slice_: str | None) -> tuple[Manifest, str]:
    facts_of(root)
    manifest = newest_manifest(root)
    if manifest is None or not manifest.slices:
        raise UsageError(
            f"The run on {root} has counted nothing.", hint="Run it with --slice 1d or 1mo."
        )
    name = max(manifest.slices) if slice_ is None else slice_
    if name not in manifest.slices:
        raise UsageError(f"{root} has no slice {name}.", hint=near(name, sorted(manifest.slices)))
    return manifest, name


def graph_of(sent: Sent) -> SendGraph:
    """What was sent as a graph: a vertex for each task that was there, in the order of the flow."""
    receivers = {name: None for to in sent.links.values() for name in to}
    tasks = tuple(dict.fromkeys([*sorted(sent.cpu, key=_flow), *receivers]))
    place = {name: i for i, name in enumerate(tasks)}
    links = [(place[a], place[b], *n) for a, to in sent.links.items() for b, n in to.items()]
    columns = np.array(sorted(links), np.int64).reshape(-1, 5).T
    return SendGraph(
        tasks,
        columns[0].astype(np.int32),
        columns[1].astype(np.int32),
        columns[2].copy(),
        columns[3].copy(),
        np.array([sent.cpu.get(name, 0.0) for name in tasks]),
    )


def _flow(name: str) -> tuple[int, int, str]:
    """Readers, then the tasks of stages by stage and partition."""
    stage, _, partition = name.partition(".")
    if stage.isdigit() and partition.isdigit():
        return int(stage), int(partition), ""
    return 0, 0, name
