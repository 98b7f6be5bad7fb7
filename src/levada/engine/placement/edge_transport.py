"""How rows get along the edges of a plan (Zhang et al., SIGMOD 2019, 5.2: tuples are passed by
reference where memory is shared).

    fused       both ends are in one Python call, which hands frames over as they are
    same host   by a file that the reader maps
    network     through Spark's shuffle

It is what has been measured: tasks tell how the blobs came that they got, stage by stage, and an
edge is of the kind of most of its bytes. An epoch that runs as one task, or in the driver's
process, is one call.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from levada.checkpoint.checkpoint_folder import newest_manifest, plan_of
from levada.checkpoint.manifest import Manifest, TransportStats
from levada.core.checkpoint_facts import facts_of
from levada.core.frozen import frozen
from levada.plan.execution.plan import Plan

State = Literal["fused", "same host", "network", "unknown"]
SPREAD = "spread"


@frozen
class CarriedStatus:
    """Blobs between the tasks of a checkpoint's epochs: ``filed`` went by file on one host, with
    ``filed_bytes``; ``shuffled`` through Spark's shuffle, with ``shuffled_bytes``. ``missed``: jobs
    that did not find such a file, and were run again by value; ``rest``: so many of the next ones
    go by value for that.
    """

    filed: int = 0
    filed_bytes: int = 0
    shuffled: int = 0
    shuffled_bytes: int = 0
    missed: int = 0
    rest: int = 0


@frozen
class EdgeStatus:
    """An edge of the plan, its operators by their names: its ``state``, and how much of what its
    stages have sent went by file (-1: nobody has told).
    """

    source: str
    target: str
    state: State
    by_file: float = -1.0


def carried_status(stats: TransportStats | None) -> CarriedStatus | None:
    """What a manifest has; None: it is of an earlier version."""
    if stats is None:
        return None
    return CarriedStatus(*_sum(list(stats.stages.values())), stats.missed, stats.rest)


def describe_transport(status: CarriedStatus | None) -> Iterator[str]:
    """What is told of blobs, if some went from process to process.

    >>> carried = CarriedStatus(12, 4_000_000, 30, 9_000, 1, 16)
    >>> print(*describe_transport(carried))  # doctest: +ELLIPSIS
    12 blobs (4.0 MB) went by file on one host, 30 (0.0 MB) through the shuffle. In 1 job a file ...
    >>> list(describe_transport(CarriedStatus()))
    []
    """
    if status is None or not (status.filed or status.shuffled or status.missed):
        return
    yield (
        f"{status.filed:,} blobs ({status.filed_bytes / 1e6:,.1f} MB) went by file on one host, "
        f"{status.shuffled:,} ({status.shuffled_bytes / 1e6:,.1f} MB) through the shuffle."
    )
    if status.missed:
        jobs = f"{status.missed:,} job{'s' * (status.missed != 1)}"
        rest = f"; the next {status.rest:,} go so, too" if status.rest else ""
        yield (
            f"In {jobs} a file was not there (a task ran on another host, or an executor had "
            f"ended): all was run again by value{rest}."
        )


def read_edges(root: Path) -> list[EdgeStatus]:
    """The edges of the last epoch's plan. Raises ``CheckpointError``."""
    manifest = newest_manifest(root)
    assert manifest is not None, "what its epochs cost has been read"
    return edges_of(plan_of(root, facts_of(root), manifest.plan), manifest)


def edges_of(plan: Plan, manifest: Manifest) -> list[EdgeStatus]:
    """Those of a plan, in its order, as a manifest's epoch ran."""
    names = {n: f"{type(node.step).__name__} {n}" for n, node in plan.nodes.items()}
    apart = manifest.costs is None or manifest.costs.last.way == SPREAD
    edges = []
    for number in plan.order:
        node = plan.nodes[number]
        for to in node.consumers:
            ends, stages = (names[number], names[to.node]), (node.stage, to.stage)
            if not apart or (to.edge.exchange is None and stages[0] == stages[1]):
                edges.append(EdgeStatus(*ends, "fused"))
            else:
                edges.append(EdgeStatus(*ends, *_state(manifest.carried, range(*stages))))
    return edges


def _state(stats: TransportStats | None, hops: range) -> tuple[State, float]:
    """How rows get from stage to stage: one hop behind each of these."""
    stages = {} if stats is None else stats.stages
    _, filed, _, shuffled = _sum([stages.get(hop + 1, [0] * 4) for hop in hops])
    if not filed + shuffled:
        return "unknown", -1.0
    return ("same host" if filed > shuffled else "network"), filed / (filed + shuffled)


def _sum(counts: Sequence[Sequence[int]]) -> tuple[int, int, int, int]:
    filed, filed_bytes, shuffled, shuffled_bytes = map(sum, zip(*counts, [0] * 4, strict=True))
    return filed, filed_bytes, shuffled, shuffled_bytes


def edge_rows(edges: Sequence[EdgeStatus]) -> list[tuple[str, ...]]:
    """A table of edges.

    >>> edge_rows([EdgeStatus("Scan 0", "Join 1", "network", 0.25)])[1]
    ('Scan 0', 'Join 1', 'network', '25.0%')
    """
    heads = ("edge from", "to", "goes", "bytes by file")
    cells = [
        (e.source, e.target, e.state, "-" if e.by_file < 0 else f"{e.by_file:.1%}") for e in edges
    ]
    return [heads, *cells]
