"""One query in, one change of the dataflow out: which operators serve it, which are new, and where
these run (STREAMREUSE, sections 2.2 to 4).

*Modes*: ``off`` shares nothing, ``exact`` operators of the same definition, ``containment`` also
those that serve a query as they are, ``relax`` also those that can be made to. All give a query the
same rows.

The streams of a query are joined by dynamic programming over its connected parts: a part is had
from an operator that is there, or by a new join of two parts, at the node of one of these, at the
sink or in the middle of the sink's region. Each way is priced by what it adds
(``Dataflow.marginal``) over the query's remaining life: as long as other users stay the addition,
afterwards the whole. So what does not pay is not shared, and where the sink is decides, too. Ways
are kept by node, ``KEPT`` of a part.

Candidates are asked for region by region, the sink's own first (``candidates``).
Without *locality* choices are made as if all nodes were equally far from each other.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from itertools import combinations, islice
from typing import Literal, get_args

from bench.papers.streamreuse.model.background_merge import gather
from bench.papers.streamreuse.model.cost import Costs, Price
from bench.papers.streamreuse.model.dataflow import Dataflow, Demand, Operator, leaf, relay
from bench.papers.streamreuse.model.descriptor import (
    Descriptor,
    below,
    part,
    plain,
    rows,
    stream_of,
    usable,
)
from bench.papers.streamreuse.model.lattice import EVERYWHERE
from bench.papers.streamreuse.model.network import Network
from bench.papers.streamreuse.model.statistics import Statistics
from levada.core.frozen import frozen
from levada.errors import UsageError, near

Mode = Literal["off", "exact", "containment", "relax"]
USUAL = Costs()
LIMIT = 6
KEPT = 3
WIDEST = 8
"""A query of more streams is refused: parts are enumerated."""
Part = frozenset[str]


@frozen
class Query:
    """A query by name: its descriptor, the node where its results go, until when (in seconds)."""

    name: str
    wanted: Descriptor
    sink: int
    until: float


@frozen
class Way:
    """How a part is had: from an ``operator`` that is there, or newly from ``inputs`` at ``node``.
    ``price``: what it adds now; ``cost``: over the query's life, as one number.
    """

    definition: Descriptor
    node: int
    price: Price
    cost: float
    operator: int | None = None
    inputs: tuple[Way, ...] = ()
    parts: tuple[Part, ...] = ()
    kind: str = "new"


@dataclass(slots=True)
class Decision:
    """What was chosen for a query, and all ways for its whole that were priced."""

    query: Query
    chosen: Way
    ways: list[Way] = field(default_factory=list)


class Planner:
    """Queries come (``add``) and go (``remove``, ``expire``). Raises ``UsageError`` for a mode,
    stream, attribute, sink or life that cannot be.
    """

    def __init__(
        self,
        statistics: Statistics,
        network: Network,
        sources: dict[str, int],
        *,
        mode: str = "relax",
        locality: bool = True,
        costs: Costs = USUAL,
    ) -> None:
        if mode not in get_args(Mode):
            raise UsageError(f"There is no mode {mode}.", hint=near(mode, get_args(Mode)))
        self.mode, self.locality, self.sources = mode, locality, sources
        self.network, self.costs = network, costs
        even = None if locality else float(network.delay.mean())
        self.dataflow = Dataflow(statistics, network, costs, relaxing=mode == "relax", even=even)
        self.queries: dict[str, tuple[Query, int]] = {}

    def add(self, query: Query, now: float = 0.0) -> Decision:
        """The query is deployed."""
        self._check(query, now)
        ways = self._ways(query, now)
        chosen = min(ways, key=lambda way: (way.cost, way.kind == "new"))
        made = self._made(chosen, query)
        number = self._carried(made, chosen.definition, query.sink, query.until)
        demand = Demand(chosen.definition, query.sink, query.until)
        self.dataflow.attach(number, (query.name, 0), demand)
        self.queries[query.name] = query, number
        return Decision(query, chosen, ways)

    def remove(self, name: str) -> None:
        """The query is gone. Raises ``UsageError``."""
        if name not in self.queries:
            raise UsageError(f"There is no query {name}.", hint=near(name, self.queries))
        _, number = self.queries.pop(name)
        self.dataflow.detach(number, (name, 0))

    def expire(self, now: float) -> list[str]:
        """Queries whose life has ended go; their names."""
        ended = [name for name, (query, _) in self.queries.items() if query.until <= now]
        for name in ended:
            self.remove(name)
        return ended

    def gather(self) -> int:
        """In the background: operators of one kind in a region become one where that pays; how many
        did. Only the mode ``relax`` changes operators.
        """
        return gather(self.dataflow) if self.mode == "relax" else 0

    def latency(self, name: str) -> float:
        """Seconds on the longest way from a source of a query to its sink."""
        query, number = self.queries[name]
        node = self.dataflow.operators[number].node
        return self.dataflow.delay(number) + self.network.far(node, query.sink)

    def candidates(self, wanted: Descriptor, sink: int) -> list[int]:
        """The first operators that the mode lets serve a definition: ``LIMIT`` of the sink's
        region, of the nearer half of the others, and of the rest.
        """
        found: dict[int, None] = {}
        if self.mode != "off":
            for mask in self.network.masks(sink) if self.locality else [EVERYWHERE]:
                found |= dict.fromkeys(islice(self._served(wanted, mask), LIMIT))
        return list(found)

    def _served(self, wanted: Descriptor, mask: int) -> Iterator[int]:
        lattice, seen = self.dataflow.lattice, set[int]()
        searches = {"exact": 1, "containment": 2, "relax": 3}[self.mode]
        for search in (lattice.equal, lattice.containing, lattice.relaxable)[:searches]:
            for number in search(wanted, mask):
                if number not in seen:
                    seen.add(number)
                    yield number

    def _check(self, query: Query, now: float) -> None:
        self.dataflow.statistics.check(query.wanted)
        if query.name in self.queries:
            raise UsageError(f"There is a query {query.name} already.")
        if not 0 <= query.sink < len(self.network.delay):
            raise UsageError(
                f"The sink of {query.name} is node {query.sink}; nodes are 0 to "
                f"{len(self.network.delay) - 1}."
            )
        if not query.until > now:
            raise UsageError(
                f"The life of {query.name} ends at {query.until:g} s, which is not after its "
                f"start at {now:g} s."
            )
        if len(query.wanted.sources) > WIDEST:
            raise UsageError(
                f"{query.name} joins {len(query.wanted.sources)} streams; at most {WIDEST} are "
                "planned."
            )

    def _ways(self, query: Query, now: float) -> list[Way]:
        """All that was priced for the whole query, with the wire to its sink."""
        search = _Search(self, query, now)
        whole = rows(query.wanted) if query.wanted.group is None else query.wanted
        found = search.grouped(whole) if whole.group is not None else search.join(whole)
        if not found:
            raise UsageError(f"The streams of {query.name} are not connected by equal attributes.")
        return [search.wired(way, query.sink) for way in found]

    def _made(self, way: Way, query: Query) -> int:
        if way.operator is not None:
            return way.operator
        if not way.inputs:
            return self.dataflow.create(leaf(way.definition, way.node, query.until)).number
        inputs = tuple(
            self._carried(self._made(given, query), given.definition, way.node, query.until)
            for given in way.inputs
        )
        new = Operator(0, way.definition, way.node, inputs, way.parts, until=query.until)
        return self.dataflow.create(new).number

    def _carried(self, number: int, wanted: Descriptor, node: int, until: float) -> int:
        """Where rows go to another region, a relay there, which serves others in its turn."""
        region = self.network.region
        near = region[self.dataflow.operators[number].node] == region[node]
        if near or self.mode == "off":
            return number
        return self.dataflow.create(relay(wanted, node, number, until)).number


class _Search:
    """The ways to have each part of one query."""

    def __init__(self, planner: Planner, query: Query, now: float) -> None:
        self.planner, self.query, self.now = planner, query, now
        self.life = query.until - now
        self.known: dict[Part, list[Way]] = {}
        self.dataflow, self.costs = planner.dataflow, planner.costs

    def grouped(self, whole: Descriptor) -> list[Way]:
        """A grouping that is there, or a new one on its join's rows, at their node."""
        found = self._reused(whole)
        for way in self._kept(self.join(below(whole))):
            operator = Operator(0, whole, way.node, (-1,), (frozenset(whole.sources),))
            found.append(self._new(operator, (way,)))
        return found

    def join(self, whole: Descriptor) -> list[Way]:
        """All ways of the whole join."""
        return self._part(whole, frozenset(whole.sources), keep=False)

    def wired(self, way: Way, node: int) -> Way:
        """A way, with its rows sent to a node."""
        sent = self._wire(way.definition, way.node, node)
        cost = way.cost + self.costs.one(sent) * self.life
        return replace(way, price=way.price + sent, cost=cost)

    def _part(self, whole: Descriptor, sources: Part, *, keep: bool = True) -> list[Way]:
        if sources not in self.known:
            wanted = whole if len(sources) == len(whole.sources) > 1 else part(whole, sources)
            found = self._reused(wanted)
            if len(sources) == 1:
                found.append(self._leaf(wanted))
            elif len(wanted.sources) > 1:
                found += self._joined(whole, wanted, sources)
            self.known[sources] = self._kept(found) if keep else found
        return self.known[sources]

    def _kept(self, ways: list[Way]) -> list[Way]:
        """The best way at each node, of these the few that are best with a wire to the sink."""
        best: dict[int, Way] = {}
        for way in sorted(ways, key=lambda w: (w.cost, w.kind == "new")):
            best.setdefault(way.node, way)
        sink = self.query.sink
        return sorted(best.values(), key=lambda w: self.wired(w, sink).cost)[:KEPT]

    def _leaf(self, wanted: Descriptor) -> Way:
        node = self.planner.sources[stream_of(wanted.sources[0])]
        price = Price(0.0, self.dataflow.work(Operator(0, wanted, node), wanted))
        return Way(wanted, node, price, self.costs.one(price) * self.life)

    def _joined(self, whole: Descriptor, wanted: Descriptor, sources: Part) -> list[Way]:
        found: list[Way] = []
        names = plain(sources)
        for one, other in _splits(sources, whole):
            for left in self._part(whole, one):
                for right in self._part(whole, other):
                    for node in self._nodes(left, right):
                        parts = tuple(frozenset(names[s] for s in p) for p in (one, other))
                        operator = Operator(0, wanted, node, (-1, -1), parts)
                        found.append(self._new(operator, (left, right)))
        return found

    def _nodes(self, left: Way, right: Way) -> set[int]:
        network, sink = self.planner.network, self.query.sink
        if not self.planner.locality:
            return {left.node}
        ends = {left.node, right.node, sink}
        return ends | {int(network.medoid[network.region[sink]])}

    def _new(self, operator: Operator, inputs: tuple[Way, ...]) -> Way:
        price = Price(0.0, self.dataflow.work(operator, operator.definition))
        for way in inputs:
            price += self._wire(way.definition, way.node, operator.node)
        cost = self.costs.one(price) * self.life + sum(way.cost for way in inputs)
        whole = sum((way.price for way in inputs), start=price)
        return Way(operator.definition, operator.node, whole, cost, None, inputs, operator.parts)

    def _reused(self, wanted: Descriptor) -> list[Way]:
        candidates = self.planner.candidates(wanted, self.query.sink)
        return [self._from(n, wanted) for n in candidates if self.dataflow.can_serve(n, wanted)]

    def _from(self, number: int, wanted: Descriptor) -> Way:
        operator = self.dataflow.operators[number]
        price = self.dataflow.marginal(number, wanted)
        cost = self.dataflow.over_life(number, wanted, self.now, self.query.until)
        kind = "equal" if operator.definition == wanted else "contained"
        kind = kind if usable(operator.definition, wanted) else "relaxed"
        return Way(wanted, operator.node, price, cost, number, kind=kind)

    def _wire(self, wanted: Descriptor, source: int, target: int) -> Price:
        return self.dataflow.wire(wanted, source, target)


def _splits(sources: Part, whole: Descriptor) -> Iterator[tuple[Part, Part]]:
    """Two connected parts of a part, joined by equal attributes; each pair once."""
    first, *others = sorted(sources)
    for size in range(len(others)):
        for more in combinations(others, size):
            one = frozenset((first, *more))
            other = sources - one
            if _connected(one, whole) and _connected(other, whole) and _meet(one, other, whole):
                yield one, other


def _meet(one: Part, other: Part, whole: Descriptor) -> bool:
    return any(_touches(c, one) and _touches(c, other) for c in whole.joins)


def _touches(equal: frozenset[str], sources: Part) -> bool:
    return any(a.partition(".")[0] in sources for a in equal)


def _connected(sources: Part, whole: Descriptor) -> bool:
    reached = {min(sources)}
    while True:
        more = {s for s in sources - reached if _meet(frozenset((s,)), frozenset(reached), whole)}
        if not more:
            return len(reached) == len(sources)
        reached |= more
