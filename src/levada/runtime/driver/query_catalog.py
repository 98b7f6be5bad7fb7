"""The catalog of queries in the plan, and the next plan when it changes
(docs/semantics.md#queries-that-come-later).

    registered queries  --difference to the catalog-->  removals, additions
                        --seal-->  plan p + 1, from the next epoch

The catalog of a plan version is a file beside it. It is loaded after an open intention of a
previous run, if any, has run with its plan: the last manifest names the version to continue from. A
version that no epoch used may be written anew. A query that is added to existing data starts after
their largest time.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from levada.checkpoint.checkpoint_folder import Checkpoint
from levada.checkpoint.epoch_context import cached_plan
from levada.checkpoint.manifest import Manifest
from levada.connectors.config.stream_config import StreamConfig
from levada.core.cpu_guard import cpu_guard
from levada.core.event_time import MIN
from levada.core.names import derived_by, display_name, is_derived
from levada.errors import CheckpointError, EvaluationError, LevadaError
from levada.operators.rows.filter_extend import parameters
from levada.plan.execution.plan import Plan, QueryPlan
from levada.plan.execution.steps import Extend, Filter
from levada.plan.logical import nodes as a
from levada.plan.logical.query_options import QueryOptions
from levada.plan.logical.query_template import TemplateInstance
from levada.plan.sharing.recover_arrangements import recover_arrangements
from levada.plan.sharing.sharing_modes import Planning
from levada.plan.sharing.template_instances import TemplateRows, add_templates
from levada.plan.topology.prune import drop_queries
from levada.plan.topology.topology import Topology
from levada.runtime.cost_model import decision_log_file
from levada.runtime.cost_model import plan_migrations as seen
from levada.runtime.cost_model.plan_migrations import PlanMigrations, made_by, seen_in, start_of
from levada.runtime.driver.stream_progress import carry_over
from levada.runtime.publication.registered_query import (
    Identities,
    Lifetime,
    Registered,
    check_end,
    end_of,
)
from levada.runtime.task.operator_failures import as_failure

NO_QUERIES: Mapping[str, Registered] = {}


class Unsettled(NamedTuple):
    """A plan without an epoch yet: the names of queries that it removes, the queries that it adds,
    and the names of those that have migrated to other operators.
    """

    gone: Mapping[str, None] = {}
    new: Mapping[str, Registered] = {}
    done: Sequence[str] = ()


class Catalog:
    """The queries of a checkpoint's plan.

    ``configs`` are the streams, in the order of their numbers. ``replaceable`` are the static
    graphs that may be replaced. ``planning``: how new queries are planned.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        configs: Sequence[StreamConfig],
        replaceable: Collection[str | None] = (),
        planning: Planning = Planning(),  # noqa: B008 a frozen value
    ) -> None:
        self._checkpoint, self._planning = checkpoint, planning
        self._replaceable = frozenset(replaceable)
        self._facts = {c.name: c.facts for c in configs}
        self._regions = {c.name: c.region for c in configs}
        self._topology: Topology | None = None
        self._planned = False  # ``follow`` has completed in this run
        self._identities: Mapping[str, str] = {}  # of the previous run, as long as they are needed
        self._lifetime: dict[str, Lifetime] = {}
        self._left: set[str] = set()  # removed streams that the last plan contains
        self._new_streams = False  # the last plan has other streams
        self._dropped = 0  # a version without a manifest, whose number processes know
        self._saved = 0  # the last version that epochs have used, or that was loaded
        self._newest = 0  # the last version that this run has saved
        self._unsettled = Unsettled()
        self._margin = 0  # ms of event time
        self._altered: set[str] = set()  # streams with other facts in the last plan
        self._switching = PlanMigrations(planning.looks)
        # streams that differ from those of their names in the previous run
        self.edited: list[QueryPlan] = []
        self.goes_on = False  # a query does, from before the last call

    def name_streams(self, configs: Sequence[StreamConfig], removed: Collection[str]) -> None:
        """Sets the streams from the next plan on. ``removed``: names of removed streams, also if
        new streams have them now.
        """
        self._facts = {c.name: c.facts for c in configs}
        self._regions = {c.name: c.region for c in configs}
        self._left |= set(removed)

    def follow(
        self,
        queries: dict[str, Registered],
        dropped: Collection[str],
        last: Manifest | None,
        static: int = 0,
    ) -> Plan | None:
        """Returns the plan of the next epochs if it differs from that of ``last``; None: it stays.

        ``dropped``: names that have been unregistered since. A query that was registered again
        starts anew. ``static``: the version of the static files. If it has changed, new queries
        read the files again.
        """
        first = not self._planned
        topology = self._load_topology(last)
        if first:  # earlier attempts may have left later ones
            self._dropped = self._checkpoint.newest_plan()
        topology.version = max(topology.version, self._dropped)
        self._follow_streams(topology)
        plan = self._replan(topology, queries, dropped, last, static, first=first)
        self._left, self._planned = set(), True
        self.settle(queries, first=first)
        return plan

    def plan_ahead(
        self,
        queries: dict[str, Registered],
        dropped: Collection[str],
        last: Manifest,
        static: int,
        margin: int,
    ) -> Plan | None:
        """Plans like ``follow`` while epochs continue with the previous plan. New queries begin
        ``margin`` ms of event time later than they would after ``last``. The plan takes effect with
        ``settle``. Queries of a plan that has not taken effect are planned again.
        """
        assert self._topology is not None, "an engine plans ahead once it has a plan"
        self._margin = margin
        try:
            topology = self._topology
            anew = [*dropped, *self._unsettled.new]
            plan = self._replan(topology, queries, anew, last, static, ahead=True)
        finally:
            self._margin = 0
        if plan is not None:
            self._read_ahead(plan.version)
        return plan

    def _read_ahead(self, version: int) -> None:
        """Reads a plan version and its constants as tasks in this process do, before an epoch waits
        for that.
        """
        plan = cached_plan(str(self._checkpoint.plan_path(version)))
        for node in plan.nodes.values():
            if isinstance(node.step, Filter | Extend):
                node.compute_once(parameters)

    def _replan(
        self,
        topology: Topology,
        queries: dict[str, Registered],
        dropped: Collection[str],
        last: Manifest | None,
        static: int,
        *,
        first: bool = False,
        ahead: bool = False,
    ) -> Plan | None:
        """Returns the next plan of a topology; None: it stays. A plan that is made ``ahead``
        migrates no query to another join order.
        """
        anew, topology.data = not topology.version, static
        last = None if last is None else carry_over(last, topology.streams.names)
        removed = self._removed_queries(topology, queries, dropped, first=first)
        topology = self._remove(topology, removed, ahead=ahead)
        self.goes_on = bool(topology.queries)
        done = [] if ahead else self._switching.finish(topology, last, first=first)
        tables = self._checkpoint.tables
        seen.feed_measurements(
            topology, last, self._regions, tables.load(tables.current).partitions
        )
        new = _new(queries, topology.queries)
        if new:
            self._switching.recover_blocks(topology, queries)
        self._add(topology, new, last, first=first)
        topology.install()
        changed = bool(removed or new)
        begun = [] if ahead else self._switching.begin(topology, last, queries, changed=changed)
        others = [n for n in removed if first and n in queries and n not in dropped]
        self.edited = [topology.queries[name] for name in others]
        self._unsettled = Unsettled(
            dict.fromkeys([*self._unsettled.gone, *removed]), {q.name: q for q in new}, done
        )
        if not (changed or anew or self._new_streams or done or begun):
            return None
        return self._seal(topology, queries, 0 if last is None else last.plan)

    def settle(self, queries: Mapping[str, Registered] = NO_QUERIES, *, first: bool) -> None:
        """Puts the last plan into effect: removed and added queries are notified."""
        topology, unsettled = self._topology, self._unsettled
        assert topology is not None, "there is a plan"
        self._unsettled, self._saved = Unsettled(), self._newest
        for name in unsettled.gone:
            if name in self._lifetime:
                self._lifetime.pop(name).end(topology.version)
        self._begin(topology, queries if first else unsettled.new)
        for name in unsettled.done:
            self._lifetime[name].switch(topology.queries[name])

    def lag(self, last: Manifest) -> int:
        """Returns by how many ms of event time the queries that were planned ahead begin too early,
        because their streams have advanced; 0: they can begin.
        """
        topology, lag = self._topology, 0
        assert topology is not None, "there is a plan"
        last = carry_over(last, topology.streams.names)
        for name in self._unsettled.new:
            query = topology.queries[name]
            latest = max((seen_in(s, last, topology) for s in query.streams), default=MIN)
            if latest > MIN and query.start <= latest:
                lag = max(lag, 1 if query.start <= MIN else latest + 1 - query.start)
        return lag

    def _remove(self, topology: Topology, names: Sequence[str], *, ahead: bool) -> Topology:
        """Removes queries from the topology. If that fails, the topology is loaded again, and all
        operators that no other query uses are dropped.
        """
        try:
            for name in names:
                topology.remove(name)
        except BaseException as error:
            failure = as_failure(error)
            if failure is None:
                raise
            message = (
                f"Levada failed while it took queries out of the plan ({', '.join(names)}), and "
                f"has read the plan again without them: {failure} at {failure.place}. "
                "Please report this."
            )
            warnings.warn(message, stacklevel=2)
            version, data = topology.version, topology.data
            topology = self._topology = self._copy(self._newest, names)
            topology.version, topology.data = version, data
            if not ahead:
                self._follow_streams(topology)
        return topology

    def has_due_migrations(self, last: Manifest | None) -> bool:
        """Whether queries are due to migrate to other join orders, or to be examined."""
        return self._switching.is_due(self._topology, last)

    def _add(
        self, topology: Topology, new: Sequence[Registered], last: Manifest | None, *, first: bool
    ) -> None:
        """Adds queries to the topology. Rows of one template are added at once, with the other
        queries. They read no stream that a query makes, but may make one.
        """
        rows: dict[tuple[int, QueryOptions], list[Registered]] = {}
        readers = []
        for one in new:
            if isinstance(one.meaning, TemplateInstance):
                key = id(one.meaning.template), one.options
                rows.setdefault(key, []).append(one)
            elif any(is_derived(window.stream) for window in one.meaning.windows):
                readers.append(one)
            else:
                self._add_query(topology, one, one.meaning, last, first=first)
        groups = []
        for (_, options), alike in rows.items():
            start = self._start_of(alike[0].alike, last, topology)
            if first:
                _check_ends(alike, start)
            instances = [
                (r.name, r.meaning) for r in alike if isinstance(r.meaning, TemplateInstance)
            ]
            until = end_of(options, start)
            groups.append(
                TemplateRows(instances, start, options.empty_reports, until, options.region)
            )
        add_templates(topology, groups)
        for one in readers:
            if not isinstance(one.meaning, TemplateInstance):
                self._add_query(topology, one, topology.place(one.meaning), last, first=first)

    def _add_query(
        self,
        topology: Topology,
        one: Registered,
        query: a.Query,
        last: Manifest | None,
        *,
        first: bool,
    ) -> None:
        start = self._start_of(query, last, topology)
        if first:  # later the caller of the registration checks it
            _check_ends([one], start)
        until = end_of(one.options, start)
        topology.add(
            one.name, query, start, empty_reports=one.options.empty_reports, until=until,
            region=one.options.region,
        )  # fmt: skip

    def _start_of(self, query: a.Query, last: Manifest | None, topology: Topology) -> int:
        start = start_of(query, last, topology)
        return start + self._margin if start > MIN else start

    def begins(self, query: a.Query, last: Manifest) -> int:
        """Returns where a registered query would begin if it were added now; MIN: with the first
        element. Before the first plan, derived streams are looked up in the plan of the previous
        run.
        """
        topology = self._topology or self._previous_topology(query)
        times = (
            made_by(display_name(w.stream), last, topology)  # also if nothing has read it
            if is_derived(w.stream)
            else seen_in(w.stream, last, topology)
            for w in query.windows
        )
        latest = max(times, default=MIN)
        return latest + 1 if latest > MIN else MIN

    def _previous_topology(self, query: a.Query) -> Topology:
        """Returns the topology of the previous run, as far as a query can read it. The present one
        stays unchanged.
        """
        last = self._checkpoint.last
        if last is None or not any(is_derived(w.stream) for w in query.windows):
            return Topology({})
        return self._checkpoint.load_topology(last.plan)[0]

    def restore_lifetimes(self, queries: Mapping[str, Registered], last: Manifest) -> None:
        """Sets the lifetimes of queries from the last plan of a checkpoint that has ended. Other
        queries have none.
        """
        topology = self._load_topology(last)
        same = {
            n: queries[n] for n, query in topology.queries.items() if self._is_same(query, queries)
        }
        self._begin(topology, same)

    def _begin(self, topology: Topology, queries: Mapping[str, Registered]) -> None:
        for name, registered in queries.items():
            if name not in self._lifetime:
                query = topology.queries[name]
                registered.lifetime.begin(query, topology.graph.nodes[query.node].shape.layout)
                self._lifetime[name] = registered.lifetime

    def _removed_queries(
        self,
        topology: Topology,
        queries: Mapping[str, Registered],
        dropped: Collection[str],
        *,
        first: bool,
    ) -> list[str]:
        """Returns the queries of the plan that are removed, or have changed, or read a stream of
        such a query. At the ``first`` plan the remaining ones are compared; later ``dropped`` lists
        the changes.
        """
        removed = dict.fromkeys([n for n in dropped if n in topology.queries])
        if not all(map(queries.__contains__, topology.queries)):
            removed |= dict.fromkeys([n for n in topology.queries if n not in queries])
        if not first and removed.keys().isdisjoint(topology.streams.made.values()):
            return list(removed)
        for name, query in topology.queries.items():
            if (first and not self._is_same(query, queries)) or any(
                topology.streams.made.get(s) in removed or s in self._left for s in query.streams
            ):
                removed[name] = None
        return list(removed)

    def _is_same(self, query: QueryPlan, queries: Mapping[str, Registered]) -> bool:
        known = queries.get(query.name)
        if (
            known is None
            or known.identity != self._identities.get(query.name)
            or self._altered & set(query.streams)
        ):
            return False
        return {w.stream for w in known.alike.windows} == {_maker_of(s) for s in query.streams}

    def _load_topology(self, last: Manifest | None) -> Topology:
        if self._topology is None:
            if last is None:
                self._topology, self._left = Topology(self._facts, self._replaceable), set()
            else:
                self._topology = self._load(last)
                self._saved = self._newest = last.plan
            self._topology.plan_by(self._planning)
            self._topology.sharing.journal = decision_log_file.open_journal(self._checkpoint.root)
        return self._topology

    def _load(self, last: Manifest) -> Topology:
        topology, self._identities = self._checkpoint.load_topology(last.plan)
        self._altered = {
            n for n, facts in self._facts.items() if topology.streams.facts.get(n, facts) != facts
        }
        topology.streams.facts |= {
            n: f for n, f in self._facts.items() if n in topology.streams.names
        }
        self._check_replaceable(topology)
        topology.replaceable = self._replaceable
        recover_arrangements(topology)
        return topology

    def _follow_streams(self, topology: Topology) -> None:
        """Updates the streams of the topology. Streams keep their numbers, new ones are appended,
        and the numbers of removed ones stay.
        """
        known = [n for n in topology.streams.names if not is_derived(n)]
        removed = [n for n in known if n in self._left or n not in self._facts]
        for name in removed:
            topology.streams.remove(name)
        new = [n for n in self._facts if n in removed or n not in known]
        for name in new:
            topology.streams.add(name, self._facts[name])
        self._new_streams = self._new_streams or bool(removed or new)

    def _check_replaceable(self, topology: Topology) -> None:
        """Checks that the replaceable graphs are unchanged: the plan of the queries that read them
        depends on it.
        """
        for graph in sorted(
            (topology.replaceable ^ self._replaceable) & topology.graph.graphs(), key=str
        ):
            name = "the default graph" if graph is None else f"the static graph <{graph}>"
            was, now = ("not ", "") if graph in self._replaceable else ("", "not ")
            raise CheckpointError(
                f"On the checkpoint {self._checkpoint.root} {name} was {was}replaceable, "
                f"now it is {now}so.",
                hint="Name it as before, or use a new folder.",
            )

    def _seal(self, topology: Topology, queries: Mapping[str, Registered], had: int) -> Plan:
        self._new_streams, self._altered = False, set()
        self._identities = {}
        plan = topology.seal(had)
        # an earlier attempt, or an overtaken driver, may have left one of this number
        while not self._checkpoint.save_plan(plan, topology, Identities(queries)):
            plan = topology.seal(had)
        decision_log_file.write(self._checkpoint.root, topology.sharing.journal)
        self._newest = plan.version
        return plan

    def restore(self) -> None:
        """Returns to the last plan that took effect, after an attempt to plan failed."""
        self._unsettled = Unsettled()
        self.drop(self._newest)
        self._topology = self._copy(self._saved) if self._saved else None

    def newcomers(self, queries: Mapping[str, Registered]) -> list[str]:
        """Returns the names of the queries that the last saved plan does not have, or has in
        another version.
        """
        if not self._saved:
            return list(queries)
        topology, identities = self._checkpoint.load_topology(self._saved)
        same = {name for name in topology.queries if name in queries}
        same = {n for n in same if identities.get(n) in (None, queries[n].identity)}
        return [name for name in queries if name not in same]

    def stop_switching(self, failure: EvaluationError) -> bool:
        """Makes queries keep their operators after a failure of a migration, which is recorded.
        Returns False if they do already.
        """
        if not self._switching.every:
            return False
        self._switching = PlanMigrations(0)
        root = self._checkpoint.root
        message = (
            "Levada failed while it moved queries to other operators, and leaves queries where "
            f"they are in this run: {failure} at {failure.place}."
        )
        warnings.warn(f"{message} Please report this.", stacklevel=2)
        journal = decision_log_file.open_journal(root)
        journal.record(self._newest + 1, message)
        journal.kept.failed_migrations += 1
        decision_log_file.write(root, journal)
        if self._topology is not None:
            self._topology.sharing.journal = journal
        return True

    def _copy(self, version: int, without: Collection[str] = ()) -> Topology:
        """Loads the topology of a saved version (0: an empty one), separate from the catalog's own,
        and ``without`` some queries.
        """
        topology = Topology(self._facts, self._replaceable)
        if version:
            topology = self._checkpoint.load_topology(version)[0]
        if without:
            drop_queries(topology, without)
        topology.streams.facts |= {
            n: f for n, f in self._facts.items() if n in topology.streams.names
        }
        topology.replaceable = self._replaceable
        recover_arrangements(topology)
        topology.plan_by(self._planning)
        topology.sharing.journal = decision_log_file.open_journal(self._checkpoint.root)
        topology.version = max(topology.version, self._dropped)
        return topology

    def can_add(self, newcomers: Sequence[Registered], last: Manifest | None) -> bool:
        """Whether queries can be planned beside those of the last saved plan."""
        topology = self._copy(self._saved, [query.name for query in newcomers])
        before = self._new_streams
        try:
            self._follow_streams(topology)
            last = None if last is None else carry_over(last, topology.streams.names)
            with cpu_guard(len(newcomers)):
                self._add(topology, newcomers, last, first=False)
                topology.seal()
        except LevadaError:
            raise
        except Exception:
            return False
        finally:
            self._new_streams = before
        return True

    def without(self, version: int, names: Collection[str]) -> int:
        """Saves a plan for a trial and returns its number: a version without some queries, and
        without those that read their streams.
        """
        before, identities = self._checkpoint.load_topology(version)
        removed = {name for name in names if name in before.queries}
        for name, query in before.queries.items():  # producers precede readers
            if any(before.streams.made.get(stream) in removed for stream in query.streams):
                removed.add(name)
        topology = self._copy(version, removed)
        plan = topology.seal(version)
        while not self._checkpoint.save_plan(plan, topology, identities):
            plan = topology.seal(version)
        self.drop(plan.version)
        return plan.version

    def drop(self, version: int) -> None:
        """Drops the epoch of this plan. The next plan has another number, since processes cache
        plans by number.
        """
        self._dropped = max(self._dropped, version)

    def plan(self, version: int) -> Plan:
        """Loads a plan version of the checkpoint."""
        return self._checkpoint.load_plan(version)


def _new(queries: dict[str, Registered], known: Collection[str]) -> list[Registered]:
    """Returns the queries that are not in ``known``. All known ones are among ``queries``, and the
    others are the last ones, except some that were registered again. Producers precede readers.
    """
    registrations: list[Registered] = []
    left = len(queries) - len(known)
    for name in reversed(queries):
        if not left:
            break
        if name not in known:
            registrations.append(queries[name])
            left -= 1
    return registrations[::-1]


def _check_ends(queries: Sequence[Registered], start: int) -> None:
    """Checks that queries of these options can end if they begin here. Raises ``UsageError``."""
    for query in queries:
        if not query.lifetime.may_be_over:
            check_end(query.name, query.options, start)
            return


def _maker_of(stream: str) -> str:
    """Returns the name of a stream as a registered query has it."""
    return derived_by(display_name(stream)) if is_derived(stream) else stream
