"""Queries that are equal but for where they begin become one (NiagaraCQ's equal plans, for queries
that come while others run).

    ?x :p ?y, grouped, from 3,000 on     Report, Panes, .. of elements from 3,000 on
    the same, from 9,000 on              a set of its own, above the joins

Once all reports up to the instant are made at which an element from before the later start leaves
its windows, both say the same, and have said it in their last reports (``instant``). So the later
one begins to go over at once: a second Emit of it, muted, reads what the earlier one's reads; when
that instant has come the next plan version has this Emit as the query's, and what the old one alone
used goes. Nothing is planned anew, and whatever is relaxed, picked or ordered stays.

Cost: a walk over the operators of each query that has come, once; of ``KNOWN`` of them a number is
remembered by which an equal one finds it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice

from levada.core.size_thresholds import register
from levada.plan.execution.plan import At, QueryPlan
from levada.plan.execution.shapes import Member
from levada.plan.migration.migration import PlanMigration
from levada.plan.migration.switch_point import switch_instant
from levada.plan.topology.topology import Topology

AT_ONCE = register(f"{__name__}.AT_ONCE", 64)
"""Queries that are looked at between two epochs."""
KNOWN = register(f"{__name__}.KNOWN", 4096)

_Alike = tuple[int, Member, tuple["_Alike", ...]]


@dataclass(slots=True)
class EqualQueryMerger:
    """The queries that came and have not been looked at, and one of each kind of those that have
    been, by a hash of what they do.
    """

    fresh: dict[str, None] = field(default_factory=dict)
    _first: dict[int, str] = field(default_factory=dict)

    def note_queries(self, topology: Topology) -> None:
        """Notes the queries that the next version has and the last one had not."""
        free = max(KNOWN - len(self.fresh), 0)
        self.fresh |= dict.fromkeys(islice(topology._sealer.came, free))

    def find_pairs(
        self, topology: Topology, why_not: Callable[[str], str], room: int
    ) -> Iterator[tuple[str, str]]:
        """(query, the one that it goes over to), at most ``room``; ``why_not``: what keeps a query
        from it.
        """
        for name in list(self.fresh)[:AT_ONCE]:
            query = topology.queries.get(name)
            if query is not None and query.since > topology.version:
                continue  # no plan has it yet
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
    """A query begins to go over to the operators of another one, which is equal and began
    earlier.
    """
    query, other = topology.queries[name], topology.queries[first]
    node = topology.nodes[query.node]
    emit = node.members[query.member].over(topology.nodes[other.node].members[other.member].inputs)
    shape, member = topology.intern(replace(node.shape, generation=0), emit)
    number = topology.index[shape]
    topology._count(number, member, 1)
    topology.switches[name] = PlanMigration(
        name, number, member, other.start, switch_instant(query, query.start), topology.version + 1,
        query.manner.order,
    )  # fmt: skip


def _reads_same_operators(topology: Topology, query: QueryPlan, first: QueryPlan) -> bool:
    """Whether two queries read the very same operators."""
    ends = (topology.nodes[one.node].members[one.member].inputs for one in (query, first))
    return next(ends) == next(ends)


def _query_signature(topology: Topology, query: QueryPlan) -> _Alike:
    """What a query does, but for its name and its start."""

    def describe(at: At) -> _Alike:
        node = topology.nodes[at[0]]
        member = node.members[at[1]]
        below = tuple([describe(each) for each in zip(node.inputs, member.inputs, strict=True)])
        return at[0], member._replace(inputs=(), start=0), below

    number, member, below = describe((query.node, query.member))
    return number, member._replace(query=""), below
