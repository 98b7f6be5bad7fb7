"""The transport of rows along the edges of a plan (Zhang et al., SIGMOD 2019, 5.2: tuples are
passed by reference where memory is shared).

    fused       both ends are in one Python call, which passes frames directly
    same host   by a file that the reader maps
    network     through Spark's shuffle

It is measured: tasks report the transport of the blobs that they received, stage by stage. An edge
has the kind of most of its bytes. An epoch that runs as one task, or in the driver's process, is
one call.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from levada.checkpoint.checkpoint_folder import newest_manifest, plan_of
from levada.checkpoint.manifest import Manifest, TransportStats
from levada.core.checkpoint_files import facts_of
from levada.core.count_text import count_text
from levada.core.frozen import frozen
from levada.plan.execution.plan import Plan

State = Literal["fused", "same host", "network", "unknown"]
SPREAD = "spread"


@frozen
class CarriedStatus:
    """The blobs between the tasks of a checkpoint's epochs. ``file_blobs`` blobs, with
    ``file_bytes``, went by file on one host; ``shuffle_blobs`` blobs, with ``shuffle_bytes``,
    through Spark's shuffle. ``repeated_jobs``: jobs that lacked such a file and ran again by value.
    ``remaining_value_jobs``: the number of next jobs that go by value for that.
    """

    file_blobs: int = 0
    file_bytes: int = 0
    shuffle_blobs: int = 0
    shuffle_bytes: int = 0
    repeated_jobs: int = 0
    remaining_value_jobs: int = 0


@frozen
class EdgeStatus:
    """An edge of the plan between two operators. ``state``: its transport. ``file_share``: the
    fraction of the bytes between its stages that went by file (-1: unknown).
    """

    source: str
    target: str
    state: State
    file_share: float = -1.0


def carried_status(stats: TransportStats | None) -> CarriedStatus | None:
    """Converts the counts of a manifest; None for one of an earlier version."""
    if stats is None:
        return None
    return CarriedStatus(
        *_sum(list(stats.stages.values())), stats.repeated_jobs, stats.remaining_value_jobs
    )


def describe_transport(status: CarriedStatus | None) -> Iterator[str]:
    """Yields sentences about blobs, if some went between processes.

    >>> carried = CarriedStatus(12, 4_000_000, 30, 9_000, 1, 16)
    >>> print(*describe_transport(carried))  # doctest: +ELLIPSIS
    12 blobs (4.0 MB) went by file on one host, 30 (0.0 MB) through the shuffle. In 1 job a file ...
    >>> list(describe_transport(CarriedStatus()))
    []
    """
    if status is None or not (status.file_blobs or status.shuffle_blobs or status.repeated_jobs):
        return
    yield (
        f"{count_text(status.file_blobs, 'blob')} ({status.file_bytes / 1e6:,.1f} MB) went by file "
        f"on one host, {status.shuffle_blobs:,} "
        f"({status.shuffle_bytes / 1e6:,.1f} MB) through the shuffle."
    )
    if status.repeated_jobs:
        jobs = f"{status.repeated_jobs:,} job{'s' * (status.repeated_jobs != 1)}"
        rest = (
            f"; the next {status.remaining_value_jobs:,} go so, too"
            if status.remaining_value_jobs
            else ""
        )
        yield (
            f"In {jobs} a file was not there (a task ran on another host, or an executor had "
            f"ended): all was run again by value{rest}."
        )


def read_edges(root: Path) -> list[EdgeStatus]:
    """Returns the edges of the last epoch's plan. Raises ``CheckpointError``."""
    manifest = newest_manifest(root)
    assert manifest is not None, "what its epochs cost has been read"
    return edges_of(plan_of(root, facts_of(root), manifest.plan), manifest)


def edges_of(plan: Plan, manifest: Manifest) -> list[EdgeStatus]:
    """Returns the edges of a plan, in its order, as they were in a manifest's epoch."""
    names = {n: f"{type(node.step).__name__} {n}" for n, node in plan.nodes.items()}
    apart = manifest.epoch_costs is None or manifest.epoch_costs.last_epoch.mode == SPREAD
    edges = []
    for number in plan.order:
        node = plan.nodes[number]
        for to in node.consumers:
            ends, stages = (names[number], names[to.node]), (node.stage, to.stage)
            if not apart or (to.edge.exchange is None and stages[0] == stages[1]):
                edges.append(EdgeStatus(*ends, "fused"))
            else:
                edges.append(EdgeStatus(*ends, *_state(manifest.transport, range(*stages))))
    return edges


def _state(stats: TransportStats | None, hops: range) -> tuple[State, float]:
    """Returns the transport between stages, and its fraction by file: one hop after each stage of
    ``hops``.
    """
    stages = {} if stats is None else stats.stages
    _, filed, _, shuffled = _sum([stages.get(hop + 1, [0] * 4) for hop in hops])
    if not filed + shuffled:
        return "unknown", -1.0
    return ("same host" if filed > shuffled else "network"), filed / (filed + shuffled)


def _sum(counts: Sequence[Sequence[int]]) -> tuple[int, int, int, int]:
    filed, filed_bytes, shuffled, shuffled_bytes = map(sum, zip(*counts, [0] * 4, strict=True))
    return filed, filed_bytes, shuffled, shuffled_bytes


def edge_rows(edges: Sequence[EdgeStatus]) -> list[tuple[str, ...]]:
    """Returns a table of edges, with its header.

    >>> edge_rows([EdgeStatus("Scan 0", "Join 1", "network", 0.25)])[1]
    ('Scan 0', 'Join 1', 'network', '25.0%')
    """
    heads = ("edge from", "to", "goes", "bytes by file")
    cells = [
        (e.source, e.target, e.state, "-" if e.file_share < 0 else f"{e.file_share:.1%}")
        for e in edges
    ]
    return [heads, *cells]
