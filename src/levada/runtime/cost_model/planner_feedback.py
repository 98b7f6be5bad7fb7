"""What a plan's choices go by: what has been measured up to a manifest."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from levada.checkpoint.manifest import Manifest
from levada.plan.topology.topology import Topology


def feed_measurements(
    topology: Topology, last: Manifest | None, regions: Mapping[str, str], partitions: int
) -> None:
    """Tells a topology what the last manifest says, the regions of streams, and over how many
    partitions epochs go.
    """
    topology.sites.of_stream = regions
    if topology.measures is not None:
        streams = {} if last is None else last.streams
        run = {name: (s.triples, s.max_ts) for name, s in streams.items() if s.triples}
        topology.measures.see(run, partitions)
    if last is None:
        return
    topology.dear.observe(last.met)
    topology.flows.observe(last.flows)
    topology.rates.observe(last.met, max((s.max_ts for s in last.streams.values()), default=0))
    topology.sites.elements = {name: stream.elements for name, stream in last.streams.items()}
    topology.sites.had = partial(_solutions, topology, last)


def _solutions(topology: Topology, last: Manifest, name: str) -> int | None:
    """Those that a query has had of late; None: none."""
    totals = last.totals.of_query(topology.queries.get(name))
    return None if totals is None else totals[0]
