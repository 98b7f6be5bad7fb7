"""The sealed plan: a version of the topology as workers have it, arrays for dictionaries.

It is written once per version and never changes; the topology that it comes from is the driver's.
What is worked out from a node alone (parameter tables, identities of constants) is kept with it, by
whoever needs it first (``PlanNode.known``): it lives as long as the plan in a worker's memory, and
is not written.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Generic, TypeVarTuple, cast

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
"""Places of a node that takes no new members in a version to come."""
_STREAMS, _UNTIL, _FORM = map(attrgetter, ("streams", "until", "form"))
_FORMERS = attrgetter("manner.formers")


@dataclass(frozen=True)
class FanOut:
    """From a producer's members to a consumer's: consumers of member i are
    ``members[offsets[i]:offsets[i + 1]]``.
    """

    offsets: Ints
    members: Ints
    identity: bool


@dataclass(frozen=True)
class Consumer:
    """An edge as the producer sees it."""

    node: int
    input: int
    edge: Edge
    fan: FanOut
    stage: int


@dataclass(frozen=True)
class PlanNode(Generic[S_co]):
    """A node as workers see it. ``fresh``: members that no epoch had before this version.

    ``newest``: the latest start of a query that reads a member; what came before it is nothing to
    that query, so an earlier coming hides no later one from it.
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

    def of(self, kind: type[Kind]) -> PlanNode[Kind] | None:
        """This node, if its step is of this kind."""
        return cast("PlanNode[Kind]", self) if isinstance(self.step, kind) else None

    def known(self, make: Callable[[PlanNode[S_co], *Parts], Fact], *args: *Parts) -> Fact:
        """``make(self, *args)``, worked out once: what follows from the node alone and these
        (hashable) arguments.
        """
        key = (make, args)
        if key not in self._known:
            self._known[key] = make(self, *args)
        return cast(Fact, self._known[key])

    def kept(self, place: str, follows: tuple[Any, ...], make: Callable[[], Fact]) -> Fact:
        """``make()``, worked out once for all versions of the plan in which this node has the same
        members, and all else that it ``follows`` from is equal; the last one at each ``place``.
        """
        key = (PlanNode.kept, (place,))
        entry = self._known.get(key)
        if entry is None or entry[0] != follows:
            entry = self._known[key] = follows, make()
        return cast(Fact, entry[1])

    @property
    def is_full(self) -> bool:
        """Whether it takes no new members in a version to come."""
        return len(self.alive) >= FULL

    @cached_property
    def _known(self) -> dict[tuple[object, tuple[object, ...]], Any]:
        return {}

    def __getstate__(self) -> dict[str, Any]:
        """The fields alone: what is known besides follows from them."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def same_members(self, other: PlanNode) -> bool:
        """Whether another version of the node has the same members, so that ``revised`` makes this
        one of it.
        """
        return (
            self.members is other.members
            and self.windows is other.windows
            and self.schedules is other.schedules
        )

    def revised(
        self, consumers: tuple[Consumer, ...], fresh: npt.NDArray[np.bool_], newest: Longs
    ) -> PlanNode[S_co]:
        """The same node in another version of the plan; what is known of it alone stays known."""
        node = replace(self, consumers=consumers, fresh=fresh, newest=newest)
        node._known.update(self._known)
        node.forget()
        return node

    def forget(self) -> None:
        """Forgets what is known of it and of a version of the plan."""
        for key in [k for k in self._known if not all(isinstance(a, int | str) for a in k[1])]:
            self._known.pop(key, None)

    def read_whole(self, first: bool, replaced: Collection[str | None]) -> npt.NDArray[np.bool_]:
        """The members that an epoch gives all their static rows and constants, and so the answer of
        a query without windows.

        ``first``: it is the first of its plan, so of those that are new in it. ``replaced``: the
        static graphs that it replaces.
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
    """What very many queries have in common; ``clock``: what says in place of its windows when a
    query reports. ``until``: the last instant at which it does. ``formers``: the Emits (node,
    member) that it had before others took their place, each behind the first plan version that has
    it no more. ``order``: how conjunctions are joined (``plan/lowering/join_order.order_of``).
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
    """What emission, sinks and status must know of a query: its name, the last of its operators,
    and its ``manner``, which queries that came together share.
    """

    name: str
    node: int
    member: int
    manner: QuerySettings

    @property
    def form(self) -> Form:
        """The form of its results."""
        return self.manner.form

    @property
    def output(self) -> Output:
        """What it reports of them."""
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
        """The streams that it reads."""
        return self.manner.streams

    @property
    def start(self) -> int:
        """Elements before it do not count."""
        return self.manner.start

    @property
    def empty_reports(self) -> bool:
        """Whether it reports what is empty, too."""
        return self.manner.empty_reports

    @property
    def windows(self) -> tuple[StreamWindow, ...]:
        """Its windows."""
        return self.manner.windows

    @property
    def clock(self) -> Window | None:
        """What says in place of these when it reports."""
        return self.manner.clock

    @property
    def since(self) -> int:
        """The first plan version that has it."""
        return self.manner.since

    @property
    def until(self) -> int:
        """The last instant at which it reports."""
        return self.manner.until

    @property
    def each(self) -> tuple[QueryPlan, ...]:
        """The query by each Emit that it has had, the present one first."""
        formers = self.manner.formers
        return (self, *(replace(self, node=node, member=member) for _, node, member in formers))

    def at(self, version: int) -> QueryPlan:
        """The query as a plan version has it, by its Emit there.

        >>> formers = ((5, 7, 1),)
        >>> manner = QuerySettings(Form.ASK, Output.RSTREAM, (), (), (), 0, False, formers=formers)
        >>> [QueryPlan("q", 9, 0, manner).at(version).node for version in (4, 5)]
        [7, 9]
        """
        for until, node, member in self.manner.formers:
            if version < until:
                return replace(self, node=node, member=member)
        return self

    def with_emit(self, node: int, member: int, version: int, order: str) -> QueryPlan:
        """The query from a plan version on in which it has another Emit."""
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
        object.__setattr__(self, "queries", PersistentMap.of(self.queries))

    @cached_property
    def facts(self) -> dict[type, Any]:
        """What has been worked out of the whole plan, by its type; it is not written."""
        return {}

    @cached_property
    def read(self) -> frozenset[str]:
        """The streams that queries read."""
        return frozenset(stream for streams in self.together for stream in streams)

    @property
    def together(self) -> Collection[tuple[str, ...]]:
        """The streams of each query, once for all that have the same."""
        return self._layered.kinds(_STREAMS)

    @property
    def forms(self) -> Collection[Form]:
        """The forms of results that queries have, each once."""
        return self._layered.kinds(_FORM)

    @cached_property
    def switched(self) -> tuple[QueryPlan, ...]:
        """The queries that have had other Emits."""
        if not any(self._layered.kinds(_FORMERS)):
            return ()
        return tuple([query for query in self.queries.values() if query.manner.formers])

    @cached_property
    def first_end(self) -> int:
        """The first instant after which a query reports no more."""
        return min(self._layered.kinds(_UNTIL), default=MAX)

    @property
    def _layered(self) -> PersistentMap[QueryPlan]:
        assert isinstance(self.queries, PersistentMap), "since it was made"
        return self.queries

    def queries_after(
        self, came: Mapping[str, QueryPlan], gone: Collection[str]
    ) -> Mapping[str, QueryPlan]:
        """The queries of the next version: without those that are gone, and with those that came.
        Raises ``LookupError`` if one that is gone is not here.
        """
        return self._layered.after(came, gone)

    @cached_property
    def heard(self) -> Longs:
        """The numbers of the streams that queries read: no other has rows that are kept."""
        return np.array([i for i, name in enumerate(self.streams) if name in self.read], np.int64)


def home_number(node: int, op: Longs) -> Longs:
    """A number per (node, member) that decides the home of the member; fits an int32."""
    number: Longs = (op * 1_000_003 + node * 7_919) & 0x7FFFFFFF
    return number


def gather_up(plan: Plan, amounts: Mapping[int, Doubles], *, divided: bool = False) -> Charges:
    """Adds to the ``amounts`` of each member those of all members that it reads, by node; a node
    without any is left out.

    ``divided``: a member's amount is divided equally among the members that read it, so the last
    operators of all queries have as much as there was. Else each of them has all of it, and what it
    reads in two ways twice. Cost: a pass over all members, in arrays.
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
    """How many living members read each member, by node; 1 of those that none reads."""
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
