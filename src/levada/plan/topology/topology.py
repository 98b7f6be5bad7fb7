"""The topology: one shared dataflow for all queries.

    streams   the streams and their numbers              (here)
    graph     the operators: nodes and members           operator_graph
    sharing   what added queries share, and the journal  plan/sharing/query_sharing
    builder   the versions of the execution plan         build_execution_plan

Equal operators over equal inputs are one member, whichever queries ask for them and whichever
columns these read (``plan/sharing/share_equal_operators``).

``Topology`` is the mutable catalog of the driver. ``seal`` returns a ``Plan`` for workers, with
arrays instead of dictionaries. ``plan/encoding`` writes the differences of each version.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial

from levada.core.event_time import MAX
from levada.core.gc_control import collection_paused
from levada.core.names import derived_by, display_name, is_derived, removed_name
from levada.core.stream_facts import StreamFacts
from levada.plan.binding.installer import Installer
from levada.plan.execution.joins import JoinForm
from levada.plan.execution.plan import Plan, QueryPlan
from levada.plan.execution.plan_delta import PlanChange
from levada.plan.execution.shapes import Member, Shape
from levada.plan.execution.sharing_demand import widen_windows
from levada.plan.logical.nodes import Query
from levada.plan.lowering.join_order import Orders
from levada.plan.lowering.lower import lower
from levada.plan.lowering.scans import graphs_read
from levada.plan.migration.migration import PlanMigration
from levada.plan.physical.operators import Op
from levada.plan.sharing.batch_install import Batch
from levada.plan.sharing.join_orders.running_subjoins import locate_conjunctions, with_places
from levada.plan.sharing.pending_queries import Newcomer, settings_of, with_orders
from levada.plan.sharing.query_sharing import QuerySharing
from levada.plan.sharing.share_equal_operators import InstalledOperator
from levada.plan.sharing.sharing_modes import DEFAULT, Planning, Sharing
from levada.plan.statistics.statistics import Measures
from levada.plan.topology.build_execution_plan import ExecutionPlanBuilder
from levada.plan.topology.operator_graph import OperatorGraph

# The streams of a topology: external ones, and those that queries make.


class StreamNumbers:
    """The streams by number (``names``), their facts, and the query that makes a stream (``made``).

    A number stays in use when its stream is removed, since state refers to numbers.
    """

    def __init__(self, facts: Mapping[str, StreamFacts]) -> None:
        self.facts = dict(facts)
        self.names = tuple(self.facts)
        self.made: dict[str, str] = {}

    def stream_of(self, maker: QueryPlan) -> str:
        """Returns the stream that a query makes, which begins at the first call.

        A query that is removed and added again makes another stream, so old elements are not
        mistaken for new ones.
        """
        stream = f"{derived_by(maker.name)}{maker.since}"
        if stream not in self.made:
            self.made[stream] = maker.name
            self.facts[stream] = StreamFacts()
            self.names = (*self.names, stream)
        return stream

    def remove_makers(self, queries: Collection[str]) -> None:
        """Records that queries are removed. The streams that they made keep their numbers."""
        self.made = {s: maker for s, maker in self.made.items() if maker not in queries}

    def add(self, stream: str, facts: StreamFacts) -> None:
        """Adds an external stream after all existing ones."""
        assert stream not in self.facts, "of two streams of a name the first has left"
        self.facts[stream] = facts
        self.names = (*self.names, stream)

    def remove(self, stream: str) -> None:
        """Removes an external stream that no query reads. A later stream of its name has another
        number.
        """
        number = self.names.index(stream)
        del self.facts[stream]
        others = self.names[number + 1 :]
        self.names = (*self.names[:number], removed_name(number), *others)


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
        self.streams, self.graph = StreamNumbers(streams), OperatorGraph()
        self.sharing = QuerySharing(self.graph, sharing, joins)
        self.builder = ExecutionPlanBuilder()
        self.queries: dict[str, QueryPlan] = {}
        self.switches: dict[str, PlanMigration] = {}
        self.replaceable = frozenset(replaceable)
        self.version = self.data = 0  # ``data``: the version of the static files
        self.measures: Measures | None = None
        self._newcomers: list[Newcomer] = []
        # the difference of the last version; None: all of it is new
        self.change: PlanChange | None = None

    def plan_by(self, planning: Planning) -> None:
        """Sets how queries are planned that are added from now on."""
        self.measures = planning.measures
        self.sharing.plan_by(planning)

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
            lower, query, self.streams.facts, empty_reports=empty_reports,
            replaceable=self.replaceable, joins=self.sharing.joins, measures=self.measures,
        )  # fmt: skip
        lowered = lowering(orders=orders if self.sharing.is_choosing_orders else None)
        self.sharing.record_strategies(name, lowered, self.version + 1)
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
            apart=self.sharing.mode is Sharing.OFF,
        )

        def order_joins(orders: Orders) -> Op:
            return self.sharing.with_wide_sets(installer, lowering(orders=orders).root)

        root = self.sharing.with_wide_sets(installer, lowered.root)
        self.sharing.choose_site(installer, root, region)
        self._newcomers.append(Newcomer(name, installer, root, orders, order_joins))
        manner = settings_of(query, start, empty_reports, self.version + 1, until)
        self.queries[name] = QueryPlan(name, -1, -1, manner)

    @collection_paused()
    def install(self) -> None:
        """Installs the queries added since the last call: reuses existing operators, makes missing
        ones.

        The next ``seal`` includes them.
        """
        version, graph = self.version + 1, self.graph
        newcomers, self._newcomers = self.sharing.order_joins(self._newcomers, version), []
        batch = Batch(graph.common, version)
        roots = self.sharing.share(newcomers, self.queries, batch)
        orders = {one.name: one.orders for one in newcomers}
        for name, root in batch.install().items():
            manner = with_orders(self.queries[name].manner, orders[name])
            self.put(name, replace(self.queries[name], manner=manner), root.shape, root.member)
        for one in newcomers:
            for each in locate_conjunctions(
                one.orders.conjunctions, one.installer, one.root, roots[one.name]
            ):
                self.sharing.orders.follow(with_places(each, graph.common, graph.index))
        self.replace_joins(batch.narrower)

    def replace_joins(self, narrower: Sequence[InstalledOperator]) -> None:
        """Lets the queries above relaxed joins that lack columns migrate to the wider ones. No
        further query reads the narrower ones.
        """
        if not narrower:
            return
        old = [(self.graph.index[made.shape], made.member) for made in narrower]
        above = self.graph.find_readers(old)
        for node, members in above.items():
            for member in members:
                self.graph.common.forget(self.graph.nodes[node].shape, member)
        ends = [(name, q.node, q.member) for name, q in self.queries.items()]
        ends += [(name, to.node, to.member) for name, to in self.switches.items()]
        late = [name for name, node, member in ends if member in above.get(node, ())]
        self.sharing.relaxations.late |= dict.fromkeys(late)

    def put(self, name: str, query: QueryPlan, shape: Shape, member: int) -> None:
        """Adds a query whose operators exist, with this member as its last one.

        Otherwise it equals ``query`` (``plan/sharing/template_instances``).
        """
        node = self.graph.index[shape]
        self.graph.count_use(node, member, 1)
        self.queries[name] = QueryPlan(name, node, member, query.manner)
        self.builder.came[name] = None

    def remove(self, name: str) -> None:
        """Removes a query and the members that no other query uses. The stream that it made keeps
        its number.
        """
        self.install()
        query = self.queries.pop(name)
        self.builder.remove_query(name)
        if (switch := self.switches.pop(name, None)) is not None:
            self.graph.count_use(switch.node, switch.member, -1)
        self.sharing.remove_query(name, self.version + 1)
        self.graph.count_use(query.node, query.member, -1)
        self.streams.remove_makers([name])

    def place(self, query: Query) -> Query:
        """Returns the query on the topology's streams: a stream that another query makes has its
        number here.
        """
        windows = tuple(
            replace(w, stream=self.streams.stream_of(self.queries[display_name(w.stream)]))
            if is_derived(w.stream)
            else w
            for w in query.windows
        )
        return replace(query, windows=windows)

    def intern(self, shape: Shape, member: Member) -> tuple[Shape, int]:
        """Returns the node's own shape and the member's number; adds them if they are missing."""
        return self.graph.intern(shape, member, self.version + 1)

    @collection_paused()
    def seal(self, had: int | None = None) -> Plan:
        """Returns the next version of the plan for workers.

        ``had``: the last version that an epoch has used; None: the previous one. ``change`` has the
        difference from the previous version afterwards.
        """
        self.install()
        had = self.version if had is None else had
        self.version += 1
        order = self.graph.order()
        nodes = self.builder.nodes(self.graph.nodes, order, self.streams.names, had)
        plan = Plan(
            self.version,
            nodes,
            order,
            self.streams.names,
            self.builder.queries(self.queries),
            max(max((nodes[n].stage for n in order), default=1), 1),
            dict(self.streams.made),
            tuple([(one.node, one.member) for one in self.switches.values()]),
        )
        plan = self.builder.settle(widen_windows(plan))
        self.change = self.builder.change(plan)
        return plan
