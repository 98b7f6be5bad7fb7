"""What a plan's choices go by: what has been measured up to a manifest."""

from __future__ import annotations

from collections.abc import Mapping

from levada.plan.topology.topology import Topology
from levada.runtime.store.manifest import Manifest


def tell(topology: Topology, last: Manifest | None, regions: Mapping[str, str]) -> None:
    """Tells a topology what the last manifest says, and the regions of streams."""
    topology.sites.of_stream = regions
    if last is None:
        return
    topology.dear.see(last.met)
    topology.flows.see(last.flows)
    topology.rates.see(last.met, max((s.max_ts for s in last.streams.values()), default=0))
    topology.sites.elements = {name: stream.elements for name, stream in last.streams.items()}
    topology.sites.totals = last.totals
