"""The catalog: which queries the plan holds, and the next plan when that changes (design, sections 1 and 4).

    registered queries  --difference to the catalog-->  removals, additions  --seal-->  plan p + 1, from the next epoch

The catalog of a plan version is a file beside it. It is loaded only when the open intention of a run before, if there was one, has
been run with its own plan: so the last manifest always names the catalog to go on from, and a version that no epoch used may be
written anew. A query that comes to a checkpoint with data starts behind the largest event time that its streams have seen.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from levada.algebra import nodes as a
from levada.algebra.options import QueryOptions
from levada.config import StreamConfig
from levada.model.time import MIN
from levada.plan.lower import StreamFacts
from levada.plan.topology import Plan, Topology
from levada.runtime.checkpoint import Checkpoint
from levada.runtime.manifest import Manifest, StreamRecord


@dataclass(frozen=True)
class Registered:
    """A query as it was registered."""

    name: str
    text: str
    dialect: str
    options: QueryOptions
    query: a.Query

    @property
    def identity(self) -> str:
        """What makes it the same query when it is registered again."""
        return f"{self.dialect}\n{self.options}\n{self.text}"


class Catalog:
    """The queries of a checkpoint's plan; ``configs`` are the streams, in the order of their numbers."""

    def __init__(self, checkpoint: Checkpoint, configs: Sequence[StreamConfig]) -> None:
        self._checkpoint = checkpoint
        self._facts = {c.name: StreamFacts.of(c) for c in configs}
        self._topology: Topology | None = None
        self._identities: dict[str, str] = {}

    def follow(self, queries: Mapping[str, Registered], dropped: Collection[str], last: Manifest | None) -> Plan | None:
        """The plan of the next epochs, if it is another than that of ``last``; None: it stays.

        ``dropped``: names that have been unregistered since; one that is registered again starts anew.
        """
        if self._topology is None:
            self._load(last)
        topology = self._topology
        assert topology is not None, "the catalog is loaded"
        gone = [n for n in topology.queries if n in dropped or not self._same(n, queries)]
        for name in gone:
            topology.remove(name)
        new = [r for n, r in queries.items() if n not in topology.queries]
        for registered in new:
            start = _start(registered.query, last.streams if last else {})
            topology.add(registered.name, registered.query, start, empty_reports=registered.options.empty_reports)
        return self._sealed(topology, queries) if gone or new or not topology.version else None

    def _same(self, name: str, queries: Mapping[str, Registered]) -> bool:
        return name in queries and queries[name].identity == self._identities.get(name)

    def _load(self, last: Manifest | None) -> None:
        if last is None:
            self._topology = Topology(self._facts)
            return
        topology, self._identities = self._checkpoint.load_topology(last.plan)
        topology.facts |= self._facts
        topology.streams = (*topology.streams, *(n for n in self._facts if n not in topology.streams))
        assert topology.streams == tuple(self._facts), "streams keep their numbers, new ones come behind"
        self._topology = topology

    def _sealed(self, topology: Topology, queries: Mapping[str, Registered]) -> Plan:
        plan = topology.seal()
        self._identities = {n: r.identity for n, r in queries.items()}
        self._checkpoint.save_plan(plan, topology, self._identities)
        return plan

    def plan(self, version: int) -> Plan:
        """A plan version of the checkpoint."""
        return self._checkpoint.load_plan(version)


def _start(query: a.Query, records: Mapping[str, StreamRecord]) -> int:
    """The first event time that counts for a query that comes now."""
    latest = max((records[w.stream].max_ts for w in query.windows if w.stream in records), default=MIN)
    return latest + 1 if latest > MIN else MIN
