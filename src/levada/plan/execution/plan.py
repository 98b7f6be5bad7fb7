"""The sealed plan: a version of the topology as workers read it, with arrays instead of
dictionaries.

A version of the plan is written once and never changes. The driver keeps the topology from which it
is made. Facts that follow from a node alone, such as parameter tables and identities of constants,
are computed once and kept with the node (``PlanNode.compute_once``). They live as long as the plan
in a worker's memory and are not written.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, TypeVarTuple

import numpy as np
import numpy.typing as npt

from levada.core.array_types import Doubles, Ints, Longs
from levada.core.event_time import MAX, Window
from levada.core.frozen import frozen
from levada.core.query_model import Form, Output, StreamWindow, TriplePattern
from levada.core.size_thresholds import register
from levada.plan.execution.member_table import MemberTable
from levada.plan.execution.persistent_map import PersistentMap
from levada.plan.execution.report_schedules import Schedules
from levada.plan.execution.row_layout import Layout
from levada.plan.execution.shapes import Edge
from levada.plan.execution.steps import Step
from levada.plan.execution.window_table import WindowTable

if TYPE_CHECKING:
    from typing_extensions import TypeVar  # ``PlanNode`` alone is that of any step

    S_co = TypeVar("S_co", bound=Step, default=Step, covariant=True)
    Kind = TypeVar("Kind", bound=Step)
    Fact = TypeVar("Fact")
else:
    from typing import TypeVar

    S_co = TypeVar("S_co", covariant=True)
    Fact = TypeVar("Fact")
Parts = TypeVarTuple("Parts")
At = tuple[int, int]
"""A node and a member of it."""
Charges = dict[int, Doubles]
"""An amount for each member, by node."""
FULL = register(f"{__name__}.FULL", 2048)
"""The number of places from which a node takes no new members in later versions."""
_STREAMS, _UNTIL, _FORM = map(attrgetter, ("streams", "until", "form"))
_FORMERS = attrgetter("manner.formers")


@dataclass(frozen=True)
class FanOut:
    """Maps a producer's members to a consumer's: the consumers of member i are
    ``members[offsets[i]:offsets[i + 1]]``.
    """

    offsets: Ints
    members: Ints
    identity: bool


@dataclass(frozen=True)
class Consumer:
    """An edge from a producer to one input of a node."""

    node: int
    input: int
    edge: Edge
    fan: FanOut
    stage: int

    @cached_property
    def sources(self) -> dict[tuple[str, ...], tuple[dict[str, str], dict[str, Any]]]:
        """The sources of the input's columns, by the columns of the producer's rows
        (``operators/rows/route_rows``).
        """
        return {}


@dataclass(frozen=True)
class PlanNode(Generic[S_co]):
    """A node of the sealed plan. ``fresh``: members that no epoch had before this version.

    ``newest``: the latest start of a query that reads a member. Elements from before that start do
    not count for the query, so an earlier occurrence does not hide a later one from it.
    """

    id: int
    step: S_co
    stage: int
    layout: Layout
    inputs: tuple[int, ...]
    input_layouts: tuple[Layout, ...]
    consumers: tuple[Consumer, ...]
    members: MemberTable
    alive: npt.NDArray[np.bool_]
    windows: WindowTable
    schedules: Schedules
    fresh: npt.NDArray[np.bool_]
    newest: Longs
    # of each member, the number that decides its partition where all its rows are together; else -1
    home: Longs

    def as_step(self, kind: type[Kind]) -> PlanNode[Kind] | None:
        """Returns this node if its step is of this kind, else None."""
        node: Any = self
        return node if isinstance(self.step, kind) else None

    def compute_once(self, make: Callable[[PlanNode[S_co], *Parts], Fact], *args: *Parts) -> Fact:
        """Returns ``make(self, *args)`` and keeps the result with the node.

        The result must follow from the node and the (hashable) arguments alone.
        """
        key = (make, args)
        if key not in self._computed_facts:
            self._computed_facts[key] = make(self, *args)
        fact: Fact = self._computed_facts[key]
        return fact

    def compute_once_at(
        self, place: str, follows: tuple[Any, ...], make: Callable[[], Fact]
    ) -> Fact:
        """Returns ``make()`` and keeps the last result for each ``place``.

        The result is computed once for all versions of the plan in which this node has the same
        members and all other values that it ``follows`` from are equal.
        """
        key = (PlanNode.compute_once_at, (place,))
        entry = self._computed_facts.get(key)
        if entry is None or entry[0] != follows:
            entry = self._computed_facts[key] = follows, make()
        fact: Fact = entry[1]
        return fact

    @property
    def is_full(self) -> bool:
        """Whether later versions add no members to the node."""
        return len(self.alive) >= FULL

    @cached_property
    def _computed_facts(self) -> dict[tuple[object, tuple[object, ...]], Any]:
        return {}

    def __getstate__(self) -> dict[str, Any]:
        """Returns the fields alone; computed facts follow from them."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def same_members(self, other: PlanNode) -> bool:
        """Whether another version of the node has the same members.

        ``revise`` then makes this version from the other one.
        """
        return (
            self.members is other.members
            and self.windows is other.windows
            and self.schedules is other.schedules
        )

    def revise(
        self, consumers: tuple[Consumer, ...], fresh: npt.NDArray[np.bool_], newest: Longs
    ) -> PlanNode[S_co]:
        """Returns the node in another version of the plan, with the facts that follow from it."""
        node = replace(self, consumers=consumers, fresh=fresh, newest=newest)
        node._computed_facts.update(self._computed_facts)
        node.forget()
        return node

    def forget(self) -> None:
        """Drops the facts that depend on a version of the plan."""
        for key in [
            k for k in self._computed_facts if not all(isinstance(a, int | str) for a in k[1])
        ]:
            self._computed_facts.pop(key, None)

    def members_read_whole(
        self, first: bool, replaced: Collection[str | None]
    ) -> npt.NDArray[np.bool_]:
        """Returns the members that receive all their static rows and constants in an epoch.

        A query without windows is answered from these rows. ``first``: the epoch is the first of
        its plan, so its new members are among them. ``replaced``: the static graphs that the epoch
        replaces.
        """
        new = self.fresh if first else np.zeros(len(self.members), np.bool_)
        if replaced:
            new = new | np.array(
                [not frozenset(g).isdisjoint(replaced) for g in self.members.each_reread_graph()],
                np.bool_,
            )
        return new & self.alive


@frozen
class QuerySettings:
    """Settings that many queries share.

    ``clock``: the window that decides the reports in place of the query's windows. ``since``: the
    first plan version that has the query. ``until``: the last instant at which the query reports.
    ``formers``: the former Emits of the query as (version, node, member); that plan version is the
    first one without the Emit. ``order``: the join orders of its conjunctions
    (``plan/lowering/join_order.order_of``).
    """

    form: Form
    output: Output
    variables: tuple[str, ...]
    template: tuple[TriplePattern, ...]
    streams: tuple[str, ...]
    start: int
    empty_reports: bool
    windows: tuple[StreamWindow, ...] = ()
    clock: Window | None = None
    since: int = 0  # the first plan version that has it
    until: int = MAX
    formers: tuple[tuple[int, int, int], ...] = ()
    order: str = ""


@frozen
class QueryPlan:
    """The facts about a query that emission, sinks and status need.

    ``node`` and ``member`` are its Emit, the last of its operators. ``manner``: settings that
    queries which were added together share.
    """

    name: str
    node: int
    member: int
    manner: QuerySettings

    @property
    def form(self) -> Form:
        """The form of the results."""
        return self.manner.form

    @property
    def output(self) -> Output:
        """The relation-to-stream operator of its reports."""
        return self.manner.output

    @property
    def variables(self) -> tuple[str, ...]:
        """The columns of a solution."""
        return self.manner.variables

    @property
    def template(self) -> tuple[TriplePattern, ...]:
        """The triples that a CONSTRUCT makes."""
        return self.manner.template

    @property
    def streams(self) -> tuple[str, ...]:
        """The streams that the query reads."""
        return self.manner.streams

    @property
    def start(self) -> int:
        """The start of the query; earlier elements do not count."""
        return self.manner.start

    @property
    def empty_reports(self) -> bool:
        """Whether the query also writes empty reports."""
        return self.manner.empty_reports

    @property
    def windows(self) -> tuple[StreamWindow, ...]:
        """The windows of the query."""
        return self.manner.windows

    @property
    def clock(self) -> Window | None:
        """The window that decides the reports in place of the query's windows."""
        return self.manner.clock

    @property
    def since(self) -> int:
        """The first plan version that has the query."""
        return self.manner.since

    @property
    def until(self) -> int:
        """The last instant at which the query reports."""
        return self.manner.until

    @property
    def with_former_emits(self) -> tuple[QueryPlan, ...]:
        """The query with each Emit that it has had, the current one first."""
        formers = self.manner.formers
        return (self, *(replace(self, node=node, member=member) for _, node, member in formers))

    def at_version(self, version: int) -> QueryPlan:
        """Returns the query with the Emit that it has in a plan version.

        >>> formers = ((5, 7, 1),)
        >>> manner = QuerySettings(Form.ASK, Output.RSTREAM, (), (), (), 0, False, formers=formers)
        >>> [QueryPlan("q", 9, 0, manner).at_version(version).node for version in (4, 5)]
        [7, 9]
        """
        for until, node, member in self.manner.formers:
            if version < until:
                return replace(self, node=node, member=member)
        return self

    def with_emit(self, node: int, member: int, version: int, order: str) -> QueryPlan:
        """Returns the query with another Emit from a plan version on."""
        formers = (*self.manner.formers, (version, self.node, self.member))
        manner = replace(self.manner, formers=formers, order=order)
        return QueryPlan(self.name, node, member, manner)


@dataclass(frozen=True)
class Plan:
    """A sealed version of the topology."""

    version: int
    nodes: Mapping[int, PlanNode]
    order: tuple[int, ...]  # node numbers, inputs before consumers
    streams: tuple[str, ...]
    queries: Mapping[str, QueryPlan]
    stages: int  # the greatest stage
    # the streams that queries make, and which one
    made: Mapping[str, str] = field(default_factory=dict)
    # Emits (node, member) whose rows are no results yet
    muted: tuple[tuple[int, int], ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "queries", PersistentMap.from_entries(self.queries))

    @cached_property
    def facts(self) -> dict[type, Any]:
        """Facts that were computed from the whole plan, by type; they are not written."""
        return {}

    @cached_property
    def read_streams(self) -> frozenset[str]:
        """The streams that queries read."""
        return frozenset(stream for streams in self.stream_sets for stream in streams)

    @property
    def stream_sets(self) -> Collection[tuple[str, ...]]:
        """The distinct sets of streams that queries read."""
        return self._query_map.kinds(_STREAMS)

    @property
    def forms(self) -> Collection[Form]:
        """The distinct result forms of the queries."""
        return self._query_map.kinds(_FORM)

    @cached_property
    def switched_queries(self) -> tuple[QueryPlan, ...]:
        """The queries that have former Emits."""
        if not any(self._query_map.kinds(_FORMERS)):
            return ()
        return tuple([query for query in self.queries.values() if query.manner.formers])

    @cached_property
    def first_end(self) -> int:
        """The earliest last report instant of all queries."""
        return min(self._query_map.kinds(_UNTIL), default=MAX)

    @property
    def _query_map(self) -> PersistentMap[QueryPlan]:
        assert isinstance(self.queries, PersistentMap), "since it was made"
        return self.queries

    def queries_after(
        self, came: Mapping[str, QueryPlan], gone: Collection[str]
    ) -> Mapping[str, QueryPlan]:
        """Returns the queries of the next version: without ``gone``, with those that ``came``.

        Raises ``LookupError`` if a removed query does not exist.
        """
        return self._query_map.with_changes(came, gone)

    @cached_property
    def read_stream_numbers(self) -> Longs:
        """The numbers of the streams that queries read; rows of other streams are not kept."""
        return np.array(
            [i for i, name in enumerate(self.streams) if name in self.read_streams], np.int64
        )


def home_number(node: int, op: Longs) -> Longs:
    """Returns the number of each (node, member) that decides its home; it fits an int32."""
    number: Longs = (op * 1_000_003 + node * 7_919) & 0x7FFFFFFF
    return number


def gather_up(plan: Plan, amounts: Mapping[int, Doubles], *, divided: bool = False) -> Charges:
    """Adds to the amount of each member the amounts of all members that it reads, by node.

    Nodes without an amount are left out. ``divided``: a member's amount is divided equally among
    its readers, so the total at the last operators equals the total of ``amounts``. Otherwise each
    reader gets the whole amount, and twice if it reads the member in two ways. Cost: a pass over
    all members, in arrays.
    """
    totals: dict[int, Doubles] = {}
    readers = _readers(plan) if divided else {}
    for number in plan.order:
        node = plan.nodes[number]
        parts = [amounts[number]] if number in amounts else []
        for below, members in zip(node.inputs, node.members.inputs, strict=True):
            if below in totals:
                parts.append(
                    (totals[below] / readers[below] if divided else totals[below])[members]
                )
        if parts:
            totals[number] = np.where(node.alive, sum(parts[1:], parts[0]), 0.0)
    return totals


def _readers(plan: Plan) -> Mapping[int, Doubles]:
    """Counts the living members that read each member, by node; at least 1."""
    counts = {number: np.zeros(len(node.members)) for number, node in plan.nodes.items()}
    for node in plan.nodes.values():
        for below, members in zip(node.inputs, node.members.inputs, strict=True):
            counts[below] += np.bincount(members[node.alive], minlength=len(counts[below]))
    return {number: np.maximum(each, 1.0) for number, each in counts.items()}


def queries_of_member(plan: Plan, node: int, member: int) -> list[str]:
    """The queries that a member of a node works for; -1: all members."""
    marks = np.zeros(len(plan.nodes[node].members))
    marks[member if member >= 0 else slice(None)] = 1.0
    up = gather_up(plan, {node: marks})

    def uses(at: int, member: int) -> bool:
        return at in up and bool(up[at][member])

    names = [name for name, query in plan.queries.items() if uses(query.node, query.member)]
    coming = [plan.nodes[n].members.query_at(marks) for n, marks in plan.muted if uses(n, marks)]
    return list(dict.fromkeys((*names, *coming)))
