"""Determines where a new query or stream begins: after all event times of its streams."""

from __future__ import annotations

from levada.checkpoint.manifest import Manifest, StreamRecord
from levada.core.event_time import MIN
from levada.plan.logical import nodes as a
from levada.plan.topology.topology import Topology


def start_of(query: a.Query, last: Manifest | None, topology: Topology) -> int:
    """Returns the first event time that counts for a new query: after all event times of its
    streams.
    """
    if last is None:
        return MIN
    seen = (seen_in(w.stream, last, topology) for w in query.windows)
    latest = max(seen, default=MIN)
    return latest + 1 if latest > MIN else MIN


def seen_in(stream: str, last: Manifest, topology: Topology) -> int:
    """Returns the largest event time of a stream; for a derived stream, the last report with a
    result of its producer.
    """
    maker = topology.streams.made.get(stream)
    if maker is None:
        return last.streams.get(stream, StreamRecord()).max_ts
    return made_by(maker, last, topology)


def made_by(maker: str, last: Manifest, topology: Topology) -> int:
    """Returns the last report with a result of a query that produces a stream."""
    query = topology.queries.get(maker)
    began = query is not None and query.since <= last.plan
    return last.last_reports.get(maker, MIN) if began else MIN
