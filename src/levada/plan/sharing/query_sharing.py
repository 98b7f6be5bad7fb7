"""The sharing choices for the queries of a topology: join orders, shared joins and arrangements,
and the sites of operators. The journal records them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial

from levada.plan.binding.installer import Installer
from levada.plan.execution.joins import JoinForm
from levada.plan.execution.plan import QueryPlan
from levada.plan.lowering.lower import Lowered
from levada.plan.physical.operators import Op
from levada.plan.sharing.batch_install import Batch
from levada.plan.sharing.containment import Families
from levada.plan.sharing.decision_log import Journal
from levada.plan.sharing.join_orders.running_subjoins import RunningSubjoins
from levada.plan.sharing.measured_cardinalities import Flows
from levada.plan.sharing.pending_queries import Newcomer, order_queries
from levada.plan.sharing.regions.operator_sites import Sites, marks_of
from levada.plan.sharing.relaxed_blocks import Relaxations
from levada.plan.sharing.share_relaxed_joins import with_wide_sets
from levada.plan.sharing.shared_join_sides import Sides
from levada.plan.sharing.sharing_modes import Planning, Sharing
from levada.plan.sharing.static_arrangements import with_arrangements
from levada.plan.sharing.unprofitable_joins import DEAR, UnprofitableJoins
from levada.plan.statistics.print_strategy import sentences
from levada.plan.topology.catalog_members import is_alive
from levada.plan.topology.operator_graph import OperatorGraph


class QuerySharing:
    """The choices for the queries over a graph of operators. ``mode``: the sharing mode of queries
    that are added from now on; ``joins``: their join form.
    """

    def __init__(self, graph: OperatorGraph, mode: Sharing, joins: JoinForm) -> None:
        self._graph, self.mode, self.joins = graph, mode, joins
        self.relaxations, self.dear = Relaxations(), UnprofitableJoins()
        self.flows, self.sides, self.families = Flows(), Sides(), Families()
        self.sites = Sites()
        self.orders = RunningSubjoins(partial(is_alive, graph.nodes), self.flows.rate)
        self.journal = Journal()

    def plan_by(self, planning: Planning) -> None:
        """Sets how queries are planned that are added from now on."""
        self.mode, self.joins = planning.sharing, planning.joins
        self.sites.regions = planning.regions
        self.orders.forced = planning.orders

    @property
    def is_choosing_orders(self) -> bool:
        """Whether join orders are chosen to share joins with other queries."""
        return self.mode is not Sharing.OFF and self.joins is JoinForm.BINARY

    @property
    def has_late(self) -> bool:
        """Whether running queries could share joins that others share by now, or share one that
        does not pay.
        """
        return bool(self.sides.late or self.relaxations.late or self.dear.joins)

    def with_wide_sets(self, installer: Installer, root: Op) -> Op:
        """Returns a query's last operator, with wide sets if its joins may be relaxed."""
        relaxes = self.mode is Sharing.RELAX
        return with_wide_sets(root, installer.timing.member_of_rows) if relaxes else root

    def choose_site(self, installer: Installer, root: Op, region: str) -> None:
        """Chooses the site of a query's operators."""
        if not (region or self.sites.has_regions) or self.mode is Sharing.OFF:
            return
        alike = self.mode is not Sharing.EXACT
        marks = marks_of(installer, root, alike=alike)
        streams = dict.fromkeys(w.stream for w in installer.timing.query.windows)
        installer.site = self.sites.choose(installer.name, region, marks, tuple(streams))

    def order_joins(self, newcomers: Sequence[Newcomer], version: int) -> list[Newcomer]:
        """Returns the added queries, each with the join order that adds the least cost."""
        self.orders.lifted = self.mode is Sharing.RELAX
        ordered, considered = order_queries(newcomers, self.orders)
        for name, orders in considered.items():
            self.journal.record_orders(version, name, orders)
        return ordered

    def share(
        self,
        newcomers: Sequence[Newcomer],
        queries: Mapping[str, QueryPlan],
        batch: Batch,
        *,
        again: bool = False,
        apart: str = "",
    ) -> dict[str, Op]:
        """Returns the last operators of added queries over what ``queries`` share, and asks the
        batch for them. ``again``: they run already, so no choice is recorded. ``apart``: the reason
        why they share no relaxed join.
        """
        roots = {one.name: self._note_root(one) for one in newcomers}
        for one in newcomers:
            why_refused = partial(self._why_refused, queries, apart)
            relaxed = self.relaxations.relax(one.name, roots[one.name], why_refused)
            roots[one.name] = with_arrangements(relaxed)
            if not again:
                self._record_choices(one.name, batch.version)
        self.sides.ask(batch, {one.name: one.installer for one in newcomers}, roots)
        return roots

    def _note_root(self, one: Newcomer) -> Op:
        """Returns the last operator of an added query, and registers the joins that others may
        share.
        """
        if self.mode is Sharing.RELAX:
            self.relaxations.note(one.name, one.installer, one.root)
        elif self.mode is Sharing.CONTAINMENT:
            return self.families.replace_blocks(one.name, one.installer, one.root)
        return one.root

    def _why_refused(self, queries: Mapping[str, QueryPlan], apart: str, name: str) -> str:
        """Returns why no more queries share the relaxed joins of a query; "": they may."""
        query = queries.get(name)
        dear = query is not None and self.dear.is_read_by(query, self._graph.nodes)
        return DEAR if dear else apart

    def record_strategies(self, query: str, lowered: Lowered, version: int) -> None:
        """Records the join forms of a query."""
        for sentence in sentences(lowered.wanted):
            self.journal.record(version, f"{query}: {sentence}")

    def _record_choices(self, query: str, version: int) -> None:
        """Records the sharing choices for an added query."""
        why = self.relaxations.apart.get(query, "")
        self.journal.record_choice(version, query, why, self.sites.chosen.get(query))
        if partners := self.relaxations.partners(query):
            message = f"{query} takes its part of a join of {partners + 1} queries"
            self.journal.record(version, message)

    def remove_query(self, name: str, version: int) -> None:
        """Removes a query."""
        self.orders.forget(name)
        if partners := self.relaxations.partners(name):
            message = (
                f"{name} leaves a join of {partners + 1} queries, which keeps what others want"
            )
            self.journal.record(version, message)
        self.journal.remove_query(name)
        self.sites.forget(name)
        self.forget_operators(name)

    def forget_operators(self, name: str) -> None:
        """Forgets the operators by which others share joins with a query."""
        self.relaxations.forget(name)
        self.families.forget(name)
        self.sides.forget(self._graph.common, name)
