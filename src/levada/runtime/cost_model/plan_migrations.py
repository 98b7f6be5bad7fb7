"""Migrates running queries to better join orders, to joins and join sides that other queries keep,
to joins of their own where sharing does not pay, or to the operators of equal queries that began
earlier (``plan/migration``). The driver asks between epochs, with the last manifest.

    is_due  a switch has reached its instant, or it is time for a look
    finish  the switches that have: in the next plan they are done
    begin   at a look: the queries that are better off otherwise begin to go over

A look costs some ms. It happens when queries are added or removed, and otherwise every ``every``
epochs. At most ``MAX_MIGRATIONS`` migrations run at once, since each doubles the cost of its query
until its windows have passed. Nothing migrates while reports are behind, or after the streams have
ended.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from itertools import islice

from levada.checkpoint.manifest import Manifest, StreamRecord
from levada.core.event_time import MIN
from levada.core.size_thresholds import register
from levada.plan.logical import nodes as a
from levada.plan.logical.nodes import Query
from levada.plan.logical.query_template import TemplateInstance
from levada.plan.migration.merge_equal_queries import AT_ONCE, EqualQueryMerger, converge
from levada.plan.migration.migrate_to_shared import begin_anew
from levada.plan.migration.migration import reported_until, why_not
from levada.plan.migration.recover_join_orders import recover_blocks, recover_conjunctions
from levada.plan.migration.reoptimizer import PATIENCE, Reoptimizer, ReorderProposal
from levada.plan.migration.running_migrations import (
    MOST_OF_A_QUERY,
    RunningMigration,
    begin,
    finish,
    is_reordering,
)
from levada.plan.sharing.join_orders.running_subjoins import MIN_KEPT_SUBJOINS as MOST_KNOWN
from levada.plan.sharing.sharing_modes import Sharing
from levada.plan.sharing.unprofitable_joins import DEAR, joins_of_picks
from levada.plan.topology.topology import Topology
from levada.runtime.publication.registered_query import Registered

# Determines where a new query or stream begins: after all event times of its streams.


def start_of(query: a.Query, last: Manifest | None, topology: Topology) -> int:
    """Returns the first event time that counts for a new query: after all event times of its
    streams.
    """
    if last is None:
        return MIN
    times = (seen_in(w.stream, last, topology) for w in query.windows)
    latest = max(times, default=MIN)
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


MAX_MIGRATIONS = register(f"{__name__}.MAX_MIGRATIONS", 16)
ROW = "it is a row of a table"

QUERIES_PER_CHECK = 8
"""Queries of a run before that are looked up at a look."""


@dataclass(slots=True)
class PlanMigrations:
    """The migrations of a run. ``every``: epochs from look to look, 0: never."""

    every: int
    looks: Reoptimizer = field(default_factory=Reoptimizer)
    converging: EqualQueryMerger = field(default_factory=EqualQueryMerger)
    _begun: dict[str, RunningMigration] = field(default_factory=dict)
    _before: list[str] = field(default_factory=list)  # of a previous run, not looked up yet
    _unregistered: list[str] = field(default_factory=list)  # of a previous run, without blocks
    _left: dict[str, int] = field(default_factory=dict)  # how often a query has left a shared join
    _stays_until: dict[str, int] = field(default_factory=dict)  # the look at which it may return
    _next: int = 0
    _elements: int = 0

    def is_due(self, topology: Topology | None, last: Manifest | None) -> bool:
        """Whether there is anything to do."""
        if topology is None or last is None or last.behind or last.has_ended:
            return False
        return bool(_ready(topology, last)) or self._may_look(topology, last)

    def _may_look(self, topology: Topology, last: Manifest) -> bool:
        if not self.every or not topology.sharing.is_choosing_orders:
            return False
        there = topology.sharing.orders.standing or topology.sharing.has_late
        if not (there or self._before or self.converging.fresh):
            return False
        elements = sum(record.elements for record in last.streams.values())
        soon = topology.sharing.relaxations.late and len(topology.switches) < MAX_MIGRATIONS
        return (bool(soon) or last.epoch >= self._next) and elements > self._elements

    def finish(self, topology: Topology, last: Manifest | None, *, first: bool) -> list[str]:
        """Finishes the migrations that are complete with the next plan; returns the names of the
        queries. ``first``: the present queries come from a previous run.
        """
        if first:
            self._before = list(islice(topology.queries, MOST_KNOWN))
            self._unregistered = list(self._before)
            self.converging.fresh |= dict.fromkeys(self._before)
        done = [] if last is None or last.behind or last.has_ended else _ready(topology, last)
        for name in done:
            anew, begun = is_reordering(topology, name), self._begun.pop(name, None)
            finish(topology, name)
            outcome = "gone over to its new order" if anew else "become one with an equal"
            if begun is not None and not anew:
                outcome = "gone over to joins that others share"
                if topology.sharing.relaxations.apart.get(name) == DEAR:
                    outcome = "gone over to a join of its own"
            topology.sharing.journal.record(topology.version + 1, f"{name} has {outcome}")
            if begun is None and not anew:
                continue
            topology.sharing.orders.forget(name)
            if begun is None:
                self._before.append(name)  # a previous run has begun it
            else:
                for each in begun.joins:
                    topology.sharing.orders.record_query(each)
        return done

    def recover_blocks(self, topology: Topology, queries: Mapping[str, Registered]) -> None:
        """Registers the relaxable blocks of the queries of a previous run, before others come."""
        names, self._unregistered = self._unregistered, []
        for name in names if topology.sharing.mode is Sharing.RELAX else ():
            if name in topology.queries:
                query = _query_on_streams(topology, queries[name])
                if query is not None:
                    empty_reports = bool(queries[name].options.empty_reports)
                    recover_blocks(topology, name, query, empty_reports=empty_reports)

    def begin(
        self,
        topology: Topology,
        last: Manifest | None,
        queries: Mapping[str, Registered],
        *,
        changed: bool,
    ) -> list[str]:
        """Begins migrations with the next plan; returns the names of the queries. ``changed``:
        other queries were added or removed.
        """
        self._begun = {name: b for name, b in self._begun.items() if name in topology.switches}
        if not self.every or not topology.sharing.is_choosing_orders:
            return []
        self.converging.note_queries(topology)
        if last is None or last.behind or last.has_ended:
            return []
        if not (changed or self._may_look(topology, last)):
            return []
        self._next = last.epoch + self.every
        self._elements = sum(record.elements for record in last.streams.values())
        self._look_up(topology, queries)
        known: dict[str, Query] = {}

        def why(name: str) -> str:
            query = _query_on_streams(topology, queries[name])
            if query is None:
                return ROW
            known[name] = query
            return why_not(query, empty_reports=bool(queries[name].options.empty_reports))

        begun = [
            one.name
            for one in self.looks.propose(topology, why)
            if self._begin(topology, last, one, known[one.name])
        ]
        begun += self._plan_anew(topology, last, why, known)
        return begun + self._converge(topology, why)

    def _plan_anew(
        self, topology: Topology, last: Manifest, why: Callable[[str], str],
        known: Mapping[str, Query],
    ) -> list[str]:  # fmt: skip
        """Begins migrations to joins and join sides that other queries share by now, and to joins
        of their own; returns the names of the queries.
        """
        sharing, names = topology.sharing, list[str]()
        leaving = self._leavers(topology)
        for name in [name for name in sharing.relaxations.late if self._stays_apart(name)]:
            del sharing.relaxations.late[name]
        late = sharing.sides.late | sharing.relaxations.late
        for name in list(leaving | late)[:AT_ONCE]:
            query_plan = topology.queries[name]
            if len(topology.switches) >= MAX_MIGRATIONS:
                break
            if query_plan.since > topology.version or name in topology.switches:
                continue  # at another look
            stays = why(name) or len(query_plan.manner.formers) >= MOST_OF_A_QUERY
            start = MIN if stays else start_of(known[name], last, topology)
            if start <= MIN and not stays:
                continue  # at another look: there are no event times yet
            apart = DEAR if name in leaving or self._stays_apart(name) else ""
            begun = None if stays else begin_anew(topology, name, known[name], start, apart)
            sharing.sides.late.pop(name, None)
            sharing.relaxations.late.pop(name, None)
            if begun is not None:
                self._begun[name] = begun
                message = f"{name} begins to go over to joins that others share"
                if name in leaving:
                    message = f"{name} begins to go over to a join of its own: {apart}"
                    self._leave(name)
                topology.sharing.journal.record(topology.version + 1, message)
                names.append(name)
        return names

    def _leavers(self, topology: Topology) -> dict[str, None]:
        """Returns the queries that should leave joins which do not pay. Nothing leaves a join which
        others are leaving, since it may pay without these.
        """
        for known in (self._left, self._stays_until):
            for name in [name for name in known if name not in topology.queries]:
                del known[name]
        leaving: dict[str, None] = {}
        nodes = topology.graph.nodes
        pickers = [topology.queries[name] for name in topology.sharing.relaxations.pickers]
        busy = {
            join
            for name in topology.switches
            for join in joins_of_picks(topology.queries[name], nodes)
        }
        for join, names in topology.sharing.dear.leavers(pickers, nodes):
            if join not in busy:
                leaving |= dict.fromkeys(names)
                busy.add(join)
        topology.sharing.dear.begin_again(busy)
        return leaving

    def _leave(self, name: str) -> None:
        """Records that a query leaves a join. After n times it shares none for 2**(n + 3) looks."""
        self._left[name] = self._left.get(name, 0) + 1
        self._stays_until[name] = self.looks.looks + (1 << min(self._left[name] + 3, PATIENCE))

    def _stays_apart(self, name: str) -> bool:
        return self._stays_until.get(name, 0) > self.looks.looks

    def _converge(self, topology: Topology, why: Callable[[str], str]) -> list[str]:
        """Begins migrations to the operators of equal queries; returns the names of the queries."""
        names = []
        for name, first in self.converging.find_pairs(
            topology, why, MAX_MIGRATIONS - len(topology.switches)
        ):
            query_plan = topology.queries[name]
            if query_plan.start > MIN and len(query_plan.manner.formers) < MOST_OF_A_QUERY:
                converge(topology, name, first)
                message = f"{name} begins to become one with {first}, which is equal"
                topology.sharing.journal.record(topology.version + 1, message)
                names.append(name)
        return names

    def _look_up(self, topology: Topology, queries: Mapping[str, Registered]) -> None:
        """Looks up the join orders of some queries of a previous run."""
        names, self._before = self._before[:QUERIES_PER_CHECK], self._before[QUERIES_PER_CHECK:]
        for name in names:
            there = name in topology.queries and name not in topology.sharing.orders.standing
            if there and (query := _query_on_streams(topology, queries[name])) is not None:
                empty_reports = bool(queries[name].options.empty_reports)
                recover_conjunctions(topology, name, query, empty_reports=empty_reports)

    def _begin(
        self, topology: Topology, last: Manifest, one: ReorderProposal, query: Query
    ) -> bool:
        query_plan, start = topology.queries[one.name], start_of(query, last, topology)
        full = (
            len(topology.switches) >= MAX_MIGRATIONS
            or len(query_plan.manner.formers) >= MOST_OF_A_QUERY
        )
        if start <= MIN or full or one.name in topology.switches:
            return False
        begun = begin(topology, one.name, query, start, one.units)
        self.looks.note_migration(one.name)
        if begun is None:
            return False
        self._begun[one.name] = begun
        message = f"{one.name} begins to go over to {one.order}"
        if one.current_cost:
            message += (
                f", which adds {one.cost:,.0f} ns an element in place of {one.current_cost:,.0f}"
            )
        topology.sharing.journal.record(topology.version + 1, message)
        return True


def _query_on_streams(topology: Topology, query: Registered) -> Query | None:
    """Returns the meaning of a query on the topology's streams; None: it is a row of a table, which
    keeps its order.
    """
    return None if isinstance(query.meaning, TemplateInstance) else topology.place(query.meaning)


def _ready(topology: Topology, last: Manifest) -> list[str]:
    """Returns the switches that have reached their instants."""
    if not topology.switches:
        return []
    watermarks: Mapping[str, int] = {name: s.watermark for name, s in last.streams.items()}
    return [
        name
        for name, switch in topology.switches.items()
        if switch.since <= last.plan
        and reported_until(topology.queries[name], watermarks) >= switch.behind
    ]


# Feeds measurements up to a manifest back into the planner.


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
    sharing.sites.elements = {name: stream.elements for name, stream in last.streams.items()}
    sharing.sites.had = partial(_solutions, topology, last)


def _solutions(topology: Topology, last: Manifest, name: str) -> int | None:
    """Returns the recent number of solutions of a query; None: it has none."""
    totals = last.totals.query_counts(topology.queries.get(name))
    return None if totals is None else totals[0]
