"""Merges running queries that are equal except for their start (NiagaraCQ's equal plans, for
queries that are added while others run).

    ?x :p ?y, grouped, from 3,000 on     Report, Panes, .. of elements from 3,000 on
    the same, from 9,000 on              a set of operators of its own, above the joins

Both queries have the same results once all reports are made up to the instant at which an element
from before the later start leaves its windows (``migration``). So the later query begins to
migrate at once: a second, muted Emit of it reads the operators of the earlier query. When that
instant has passed, the next plan version uses this Emit and removes operators that only the old one
used. Nothing is planned again, and relaxed joins, picks and join orders stay.

Cost: one walk over the operators of each added query. ``KNOWN`` queries are remembered by a hash
that finds equal ones.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice

from levada.core.size_thresholds import register
from levada.plan.execution.plan import At, QueryPlan
from levada.plan.execution.shapes import Member
from levada.plan.migration.migration import PlanMigration, switch_instant
from levada.plan.topology.topology import Topology

AT_ONCE = register(f"{__name__}.AT_ONCE", 64)
"""The maximum number of queries that are compared between two epochs."""
KNOWN = register(f"{__name__}.KNOWN", 4096)

_Alike = tuple[int, Member, tuple["_Alike", ...]]


@dataclass(slots=True)
class EqualQueryMerger:
    """The added queries that were not yet compared, and one compared query of each kind.

    The kinds are hashes of the operators.
    """

    fresh: dict[str, None] = field(default_factory=dict)
    _first: dict[int, str] = field(default_factory=dict)

    def note_queries(self, topology: Topology) -> None:
        """Records the queries that are new in the next version."""
        free = max(KNOWN - len(self.fresh), 0)
        self.fresh |= dict.fromkeys(islice(topology.builder.came, free))

    def find_pairs(
        self, topology: Topology, why_not: Callable[[str], str], room: int
    ) -> Iterator[tuple[str, str]]:
        """Yields at most ``room`` pairs (query, the equal query that it migrates to).

        ``why_not`` returns the obstacle of a query, if there is one.
        """
        for name in list(self.fresh)[:AT_ONCE]:
            query = topology.queries.get(name)
            if query is not None and query.since > topology.version:
                continue  # not yet in a plan version
            if room <= 0:
                return
            del self.fresh[name]
            if query is None or name in topology.switches or why_not(name):
                continue
            for later, first in self._equal_pairs(topology, query):
                room -= 1
                yield later, first

    def _equal_pairs(self, topology: Topology, query: QueryPlan) -> Iterator[tuple[str, str]]:
        signature = _query_signature(topology, query)
        number = hash(signature)
        first = topology.queries.get(self._first.get(number, ""))
        if (
            first is None
            or first.name in topology.switches
            or _query_signature(topology, first) != signature
        ):
            self._first[number] = query.name
        elif first.start < query.start and not _reads_same_operators(topology, query, first):
            yield query.name, first.name
        if len(self._first) > KNOWN:
            del self._first[next(iter(self._first))]


def converge(topology: Topology, name: str, first: str) -> None:
    """Starts the migration of a query to the operators of an equal query that started earlier."""
    query, other = topology.queries[name], topology.queries[first]
    node = topology.graph.nodes[query.node]
    emit = node.members[query.member].with_inputs(
        topology.graph.nodes[other.node].members[other.member].inputs
    )
    shape, member = topology.intern(replace(node.shape, generation=0), emit)
    number = topology.graph.index[shape]
    topology.graph.count_use(number, member, 1)
    topology.switches[name] = PlanMigration(
        name, number, member, other.start, switch_instant(query, query.start), topology.version + 1,
        query.manner.order,
    )  # fmt: skip


def _reads_same_operators(topology: Topology, query: QueryPlan, first: QueryPlan) -> bool:
    """Whether two queries read the same operators."""
    ends = (topology.graph.nodes[one.node].members[one.member].inputs for one in (query, first))
    return next(ends) == next(ends)


def _query_signature(topology: Topology, query: QueryPlan) -> _Alike:
    """Returns a value that equal queries share, regardless of their names and starts."""

    def describe(at: At) -> _Alike:
        node = topology.graph.nodes[at[0]]
        member = node.members[at[1]]
        below = tuple([describe(each) for each in zip(node.inputs, member.inputs, strict=True)])
        return at[0], member._replace(inputs=(), start=0), below

    number, member, below = describe((query.node, query.member))
    return number, member._replace(query=""), below
