"""The topology: one shared dataflow for all queries, with nodes (shapes) and members (operators).

A node is one vectorized operator; a member is a row of its parameter tables. Equal operators over
equal inputs are one member, whichever queries ask for them and whichever columns these read
(``plan/sharing/common_subexpressions``). Members are counted and removed with the last query that
uses them, nodes with their last member. Numbers of nodes and members never change and are never
used again, because state refers to them (``catalog_members``).

``Topology`` is the mutable catalog of the driver. ``seal`` returns a ``Plan`` for workers, with
arrays instead of dictionaries (``build_execution_plan``). ``plan/encoding`` writes the differences
of each version.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial

from levada.core.event_time import MAX
from levada.core.gc_control import collection_paused
from levada.core.names import derived_by, display_name, is_derived, removed_name
from levada.core.stream_facts import StreamFacts
from levada.plan.binding.installer import Installer
from levada.plan.execution.join_kinds import JoinForm
from levada.plan.execution.plan import Plan, QueryPlan
from levada.plan.execution.plan_delta import PlanChange
from levada.plan.execution.shapes import Member, Shape
from levada.plan.execution.sharing_demand import widen_windows
from levada.plan.logical.nodes import Query
from levada.plan.lowering.join_order import Orders
from levada.plan.lowering.lower import Lowered, lower
from levada.plan.lowering.scans import graphs_read
from levada.plan.migration.migration import PlanMigration
from levada.plan.physical.operators import Op
from levada.plan.sharing.batch_install import Batch
from levada.plan.sharing.common_subexpressions import CommonSubexpressions
from levada.plan.sharing.containment import Families
from levada.plan.sharing.decision_log import Journal
from levada.plan.sharing.join_orders.running_subjoins import RunningSubjoins
from levada.plan.sharing.join_orders.subjoin_locations import locate_conjunctions, with_places
from levada.plan.sharing.measured_cardinalities import Flows
from levada.plan.sharing.pending_queries import Newcomer, order_queries, settings_of, with_orders
from levada.plan.sharing.regions.operator_sites import Sites, marks_of
from levada.plan.sharing.relaxation import BlockDemand, with_wide_sets
from levada.plan.sharing.relaxed_blocks import Relaxations
from levada.plan.sharing.shared_join_sides import Sides
from levada.plan.sharing.shared_state_size import SharedStateEstimates, explain_refusal
from levada.plan.sharing.sharing_modes import DEFAULT, Planning, Sharing
from levada.plan.sharing.static_arrangements import with_arrangements
from levada.plan.sharing.unprofitable_joins import DEAR, UnprofitableJoins, joins_of_picks
from levada.plan.statistics.print_strategy import sentences
from levada.plan.statistics.statistics import Measures
from levada.plan.topology.build_execution_plan import ExecutionPlanBuilder
from levada.plan.topology.catalog_members import CatalogNode, is_alive


class Topology:
    """The driver's catalog of nodes and members.

    ``replaceable``: the static graphs that may be replaced. ``sharing``: the sharing mode of
    queries that are added from now on; ``joins``: their join form.
    """

    def __init__(
        self,
        streams: Mapping[str, StreamFacts],
        replaceable: Collection[str | None] = (),
        sharing: Sharing = DEFAULT,
        joins: JoinForm = JoinForm.BINARY,
    ) -> None:
        self.facts = dict(streams)
        self.streams = tuple(self.facts)
        self.nodes: dict[int, CatalogNode] = {}
        self.index: dict[Shape, int] = {}  # the nodes by their shapes
        # and by the shape of their generation 0, oldest first
        self.alike: dict[Shape, list[int]] = {}
        self.numbers = 0  # the number of nodes so far, with removed ones
        self.queries: dict[str, QueryPlan] = {}
        self.made: dict[str, str] = {}  # stream -> the query that makes it
        self.replaceable = frozenset(replaceable)
        self.version = self.data = 0  # ``data``: the version of the static files
        self.sharing, self.joins = sharing, joins
        self._common = CommonSubexpressions()
        self._batch = Batch(self._common, 1)
        self.relaxations, self.dear, self.rates = (
            Relaxations(),
            UnprofitableJoins(),
            SharedStateEstimates(),
        )
        self.flows, self.sides = Flows(), Sides()
        self.sites, self.share_limit = Sites(), 0
        self.measures: Measures | None = None
        self.journal, self.switches = Journal(), dict[str, PlanMigration]()
        self._families, self._newcomers = Families(), list[Newcomer]()
        self.orders = RunningSubjoins(partial(is_alive, self.nodes), self.flows.rate)
        self._seen: dict[int, int] = {}
        self._sealer = ExecutionPlanBuilder()
        self.change: PlanChange | None = (
            None  # the difference of the last version; None: all of it is new
        )

    def go_on(self, version: int, numbers: int) -> None:
        """Continues from this plan version and this number of nodes."""
        self.version, self.numbers = version, numbers
        self._batch = Batch(self._common, version + 1)

    @collection_paused()
    def add(
        self,
        name: str,
        query: Query,
        start: int,
        *,
        empty_reports: bool = False,
        until: int = MAX,
        region: str = "",
    ) -> None:
        """Adds a query that the next ``install`` installs; ``region``: its region option."""
        assert name not in self.queries, "a query's name is free when it is added"
        orders = Orders()
        lowering = partial(
            lower, query, self.facts, empty_reports=empty_reports, replaceable=self.replaceable,
            joins=self.joins, measures=self.measures,
        )  # fmt: skip
        lowered = lowering(orders=orders if self.is_choosing_orders else None)
        self._record_strategies(name, lowered)
        reread_graphs = (
            () if query.windows else self.replaceable & graphs_read(query, query.pattern)
        )
        installer = Installer(
            query,
            name,
            start,
            self.intern,
            show_empty=lowered.show_empty,
            since=self.version + 1,
            data=self.data,
            reread_graphs=reread_graphs,
            apart=self.sharing is Sharing.OFF,
        )

        def order_joins(orders: Orders) -> Op:
            return self._with_wide_sets(installer, lowering(orders=orders).root)

        root = self._with_wide_sets(installer, lowered.root)
        self._place(name, installer, root, region)
        self._newcomers.append(Newcomer(name, installer, root, orders, order_joins))
        manner = settings_of(query, start, empty_reports, self.version + 1, until)
        self.queries[name] = QueryPlan(name, -1, -1, manner)

    @property
    def is_choosing_orders(self) -> bool:
        """Whether join orders are chosen to share joins with other queries."""
        return self.sharing is not Sharing.OFF and self.joins is JoinForm.BINARY

    def _with_wide_sets(self, installer: Installer, root: Op) -> Op:
        relaxes = self.sharing is Sharing.RELAX
        return with_wide_sets(root, installer.timing.member_of_rows) if relaxes else root

    def plan_by(self, planning: Planning) -> None:
        """Sets how queries are planned that are added from now on."""
        self.sharing, self.joins = planning.sharing, planning.joins
        self.sites.regions, self.share_limit = planning.regions, planning.share_limit
        self.measures = planning.measures
        self.orders.forced = planning.orders

    def _place(self, name: str, installer: Installer, root: Op, region: str) -> None:
        """Chooses the site of a query's operators."""
        if not (region or self.sites.has_regions) or self.sharing is Sharing.OFF:
            return
        alike = self.sharing is not Sharing.EXACT
        marks = marks_of(installer, root, alike=alike)
        streams = dict.fromkeys(w.stream for w in installer.timing.query.windows)
        installer.site = self.sites.choose(name, region, marks, tuple(streams))

    @collection_paused()
    def install(self) -> None:
        """Installs the queries added since the last call: reuses existing operators, makes missing
        ones.

        The next ``seal`` includes them.
        """
        newcomers, self._newcomers = self._order_newcomers(), []
        roots = {one.name: self._note_root(one) for one in newcomers}
        orders = {one.name: one.orders for one in newcomers}
        for one in newcomers:
            relaxed = self.relaxations.relax(one.name, roots[one.name], self._why_refused)
            roots[one.name] = with_arrangements(relaxed)
            self._record_choices(one.name)
        self.sides.ask(self._batch, {one.name: one.installer for one in newcomers}, roots)
        batch, self._batch = self._batch, Batch(self._common, self.version + 1)
        for name, root in batch.install().items():
            node = self.index[root.shape]
            self._count(node, root.member, 1)
            query = self.queries[name]
            self.queries[name] = replace(
                query, node=node, member=root.member, manner=with_orders(query.manner, orders[name])
            )
            self._sealer.came[name] = None
        for one in newcomers:
            for each in locate_conjunctions(
                one.orders.conjunctions, one.installer, one.root, roots[one.name]
            ):
                self.orders.follow(with_places(each, self._common, self.index))

    def _order_newcomers(self) -> list[Newcomer]:
        """Returns the added queries, each with the join order that adds the least cost."""
        self.orders.lifted = self.sharing is Sharing.RELAX
        ordered, considered = order_queries(self._newcomers, self.orders)
        for name, orders in considered.items():
            self.journal.record_orders(self.version + 1, name, orders)
        return ordered

    def expect(self, beside: Topology) -> None:
        """Announces that the queries of another topology will be added.

        Queries that are added before choose their join orders with regard to them.
        """
        self.orders.lifted = self.sharing is Sharing.RELAX
        for one in beside._newcomers:
            self.orders.expect(one.order_request)

    def _note_root(self, one: Newcomer) -> Op:
        """Returns the last operator of an added query, and registers the joins that others may
        share.
        """
        if self.sharing is Sharing.RELAX:
            self.relaxations.note(one.name, one.installer, one.root)
        elif self.sharing is Sharing.CONTAINMENT:
            return self._families.replace_blocks(one.name, one.installer, one.root)
        return one.root

    def _record_strategies(self, query: str, lowered: Lowered) -> None:
        """Records the join forms of a query."""
        for sentence in sentences(lowered.wanted):
            self.journal.record(self.version + 1, f"{query}: {sentence}")

    def _record_choices(self, query: str) -> None:
        """Records the sharing choices for an added query."""
        why, version = self.relaxations.apart.get(query, ""), self.version + 1
        self.journal.record_choice(version, query, why, self.sites.chosen.get(query))
        if partners := self.relaxations.partners(query):
            message = f"{query} takes its part of a join of {partners + 1} queries"
            self.journal.record(version, message)

    def _why_refused(self, name: str, wants: Iterable[BlockDemand], newcomer: BlockDemand) -> str:
        """Returns why a query with this demand cannot share the relaxed joins of a query; "": it
        can.
        """
        query = self.queries.get(name)
        if query is None:
            return ""
        if self.dear.is_read_by(query, self.nodes):
            return DEAR
        joins = joins_of_picks(query, self.nodes) if self.share_limit else ()
        return explain_refusal(self.rates, joins, wants, newcomer, self.share_limit)

    def put(self, name: str, query: QueryPlan, shape: Shape, member: int) -> None:
        """Adds a query whose operators exist, with this member as its last one.

        Otherwise it equals ``query`` (``plan/sharing/template_instances``).
        """
        node = self.index[shape]
        self._count(node, member, 1)
        self.queries[name] = QueryPlan(name, node, member, query.manner)
        self._sealer.came[name] = None

    def remove(self, name: str) -> None:
        """Removes a query and the members that no other query uses. The stream that it made keeps
        its number.
        """
        self.install()
        query = self.queries.pop(name)
        self._sealer.remove_query(name)
        if (switch := self.switches.pop(name, None)) is not None:
            self._count(switch.node, switch.member, -1)
        self.orders.forget(name)
        if partners := self.relaxations.partners(name):
            message = (
                f"{name} leaves a join of {partners + 1} queries, which keeps what others want"
            )
            self.journal.record(self.version + 1, message)
        self.journal.remove_query(name)
        self.relaxations.forget(name)
        self.sites.forget(name)
        self._families.forget(name)
        self.sides.forget(self._common, name)
        self._count(query.node, query.member, -1)
        self.made = {stream: maker for stream, maker in self.made.items() if maker != name}

    def place(self, query: Query) -> Query:
        """Returns the query on the topology's streams: a stream that another query makes has its
        number here.
        """
        windows = tuple(
            replace(w, stream=self.stream_of(display_name(w.stream))) if is_derived(w.stream) else w
            for w in query.windows
        )
        return replace(query, windows=windows)

    def stream_of(self, maker: str) -> str:
        """Returns the stream that a query makes, which begins at the first call.

        A query that is removed and added again makes another stream, so old elements are not
        mistaken for new ones.
        """
        stream = f"{derived_by(maker)}{self.queries[maker].since}"
        if stream not in self.made:
            self.made[stream] = maker
            self.facts[stream] = StreamFacts()
            self.streams = (*self.streams, stream)
        return stream

    def add_stream(self, stream: str, facts: StreamFacts) -> None:
        """Adds an external stream after all existing ones."""
        assert stream not in self.facts, "of two streams of a name the first has left"
        self.facts[stream] = facts
        self.streams = (*self.streams, stream)

    def remove_stream(self, stream: str) -> None:
        """Removes an external stream that no query reads.

        Its number stays in use, since state refers to numbers. A later stream of its name has
        another one.
        """
        number = self.streams.index(stream)
        del self.facts[stream]
        others = self.streams[number + 1 :]
        self.streams = (*self.streams[:number], removed_name(number), *others)

    def graphs(self) -> frozenset[str | None]:
        """Returns the static graphs that some query reads."""
        return frozenset(
            g for node in self.nodes.values() for m in node.members.index for g in m.graphs
        )

    def intern(self, shape: Shape, member: Member) -> tuple[Shape, int]:
        """Returns the node's own shape and the member's number; adds them if they are missing."""
        alike = self.alike.get(shape, [])
        for number in alike:
            at = self.nodes[number].members.find(member)
            if at >= 0:
                return self.nodes[number].shape, at
        node = self.nodes[alike[-1]] if alike else None
        if node is None or node.members.is_spent(self.version + 1):
            node = self._node(shape)
        return node.shape, node.members.add(member, self.version + 1)

    def _node(self, shape: Shape) -> CatalogNode:
        """Adds a node; a second node of a shape has another generation."""
        alike = self.alike.setdefault(shape, [])
        number = self.numbers
        self.numbers += 1
        new_shape = replace(shape, generation=number) if alike else shape
        alike.append(number)
        self.index[new_shape] = number
        node = self.nodes[number] = CatalogNode(
            new_shape, tuple(self.index[i] for i, _ in shape.inputs)
        )
        return node

    def drop_node(self, number: int) -> None:
        """Removes a node without members."""
        node = self.nodes.pop(number)
        del self.index[node.shape]
        self._seen.pop(number, None)
        first = replace(node.shape, generation=0)
        self.alike[first].remove(number)
        if not self.alike[first]:
            del self.alike[first]

    def _count(self, node: int, member: int, change: int) -> None:
        """Counts a use of a member; a used member uses its inputs."""
        entry = self.nodes[node]
        table = entry.members
        before = table.uses[member]
        table.uses[member] = after = before + change
        if (before == 0) == (after == 0):
            return
        inputs = table[member].inputs
        if after == 0:
            table.drop(member)
            self._common.forget(entry.shape, member)
            if not table:
                self.drop_node(node)
        for i, m in zip(entry.inputs, inputs, strict=True):
            self._count(i, m, change)

    @collection_paused()
    def seal(self, had: int | None = None) -> Plan:
        """Returns the next version of the plan for workers.

        ``had``: the last version that an epoch has used; None: the previous one. ``change`` has the
        difference from the previous version afterwards.
        """
        self.install()
        had = self.version if had is None else had
        self.version += 1
        self._batch = Batch(self._common, self.version + 1)
        order = self.order()
        nodes = self._sealer.nodes(self.nodes, order, self.streams, had)
        plan = Plan(
            self.version,
            nodes,
            order,
            self.streams,
            self._sealer.queries(self.queries),
            max(max((nodes[n].stage for n in order), default=1), 1),
            dict(self.made),
            tuple([(one.node, one.member) for one in self.switches.values()]),
        )
        plan = self._sealer.settle(widen_windows(plan))
        self.change = self._sealer.change(plan)
        return plan

    def order(self) -> tuple[int, ...]:
        """Returns the numbers of the nodes, inputs before their readers."""
        return tuple(sorted(self.nodes, key=lambda n: (self.nodes[n].shape.stage, self._depth(n))))

    def _depth(self, number: int) -> int:
        if number not in self._seen:
            self._seen[number] = 1 + max(
                (self._depth(i) for i in self.nodes[number].inputs), default=0
            )
        return self._seen[number]
