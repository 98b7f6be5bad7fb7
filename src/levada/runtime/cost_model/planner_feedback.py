"""Feeds measurements up to a manifest back into the planner."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from levada.checkpoint.manifest import Manifest
from levada.plan.topology.topology import Topology


def feed_measurements(
    topology: Topology, last: Manifest | None, regions: Mapping[str, str], partitions: int
) -> None:
    """Passes the measurements of the last manifest, the regions of streams and the number of
    partitions to a topology.
    """
    sharing = topology.sharing
    sharing.sites.of_stream = regions
    if topology.measures is not None:
        streams = {} if last is None else last.streams
        run = {name: (s.triples, s.max_ts) for name, s in streams.items() if s.triples}
        topology.measures.see(run, partitions)
    if last is None:
        return
    sharing.dear.observe(last.relaxed_joins)
    sharing.flows.observe(last.join_rows)
    sharing.rates.observe(
        last.relaxed_joins, max((s.max_ts for s in last.streams.values()), default=0)
    )
    sharing.sites.elements = {name: stream.elements for name, stream in last.streams.items()}
    sharing.sites.had = partial(_solutions, topology, last)


def _solutions(topology: Topology, last: Manifest, name: str) -> int | None:
    """Returns the recent number of solutions of a query; None: it has none."""
    totals = last.totals.query_counts(topology.queries.get(name))
    return None if totals is None else totals[0]
