"""Topologies over one stream of triples, and how many operators there are in them."""

from __future__ import annotations

from collections import Counter

from levada.core.stream_facts import StreamFacts
from levada.plan.sharing.sharing_modes import Sharing
from levada.plan.topology.topology import Topology

STREAM = "http://e/s"


def relaxing(mode: Sharing = Sharing.RELAX) -> Topology:
    """One without queries."""
    return Topology({STREAM: StreamFacts()}, (), mode)


def members(found: Topology) -> Counter[str]:
    """How many members there are of each kind of step."""
    counts: Counter[str] = Counter()
    for node in found.graph.nodes.values():
        counts[type(node.shape.step).__name__] += len(node.members.index)
    return counts
