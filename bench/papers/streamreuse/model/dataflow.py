"""Operators that run, who uses them, and what they cost: the paper's operator repository (section
2.2) as a network of operators.

An operator is a definition at a node; its inputs are others. A *leaf* filters a stream at its
source. A *relay* passes on rows of its one input, filtered, at another node: so a result that is
already carried to a far region serves others there. Each *user* (a query, or an operator's input)
has a *demand*: a definition that the operator's is usable for. What goes over a wire is the demand,
so an operator that is relaxed costs its inputs and not its users; if the demand is narrower than
the operator, a compensation stands before the wire.

To widen an operator widens its own demand on its inputs, down to the leaves (cascades, section
3.1); ``widened`` says what would become of all of them, and nothing is changed before it is priced.
Demands of others stay as they are. When users leave, an operator shrinks to the least that serves
the rest once that saves ``SLACK`` of its bytes; without users it goes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from bench.papers.streamreuse.model.cost import NOTHING, Costs, Price, over_life
from bench.papers.streamreuse.model.descriptor import Descriptor, below, part, rows, usable
from bench.papers.streamreuse.model.lattice import Lattice
from bench.papers.streamreuse.model.network import Network
from bench.papers.streamreuse.model.relaxation import least, relax, relaxable
from bench.papers.streamreuse.model.statistics import Statistics
from levada.core.frozen import frozen

SLACK = 0.2
User = tuple[str | int, int]
"""A query by name, or an operator by number, and which of its inputs."""


@frozen
class Demand:
    """What a user wants, at which node, until when (in seconds)."""

    definition: Descriptor
    node: int
    until: float


@dataclass(slots=True, eq=False)
class Operator:
    """``parts``: of each input its sources, by their names here. ``cpu``: its own work in
    processors; ``wires``: bytes in transit to its users.
    """

    number: int
    definition: Descriptor
    node: int
    inputs: tuple[int, ...] = ()
    parts: tuple[frozenset[str], ...] = ()
    relay: bool = False
    demands: dict[User, Demand] = field(default_factory=dict)
    until: float = 0.0
    cpu: float = 0.0
    wires: float = 0.0
    compensated: int = 0

    def wants(self, place: int, definition: Descriptor) -> Descriptor:
        """The demand on an input if this were its definition."""
        if self.relay:
            return definition
        if definition.group is not None:
            return below(definition)
        return part(definition, self.parts[place])


class Dataflow:
    """All operators, in a lattice. ``relaxing``: definitions may change. ``even``: in prices all
    nodes count as so far from each other; what is paid goes by their delays.
    """

    def __init__(
        self,
        statistics: Statistics,
        network: Network,
        costs: Costs,
        *,
        relaxing: bool,
        even: float | None = None,
    ) -> None:
        self.statistics, self.network, self.costs = statistics, network, costs
        self.relaxing, self.even = relaxing, even
        self.lattice = Lattice()
        self.operators: dict[int, Operator] = {}
        self.log: list[str] = []
        self._number = 0

    def create(self, new: Operator) -> Operator:
        """An operator that has no users yet; its inputs get it as theirs."""
        self._number += 1
        new.number = self._number
        self.operators[new.number] = new
        self.lattice.insert(new.number, new.definition, self.network.rid(new.node))
        new.cpu = self.work(new, new.definition)
        for place, number in enumerate(new.inputs):
            wanted = new.wants(place, new.definition)
            self.attach(number, (new.number, place), Demand(wanted, new.node, new.until))
        return new

    def attach(self, number: int, user: User, demand: Demand) -> None:
        """A user's demand, or its new one; the operator is widened if it does not serve it."""
        operator = self.operators[number]
        if not usable(operator.definition, demand.definition):
            assert self.relaxing, "without relaxation only what serves is chosen"
            self._redefine(operator, relax(operator.definition, demand.definition), "relaxed")
        before = operator.demands.get(user)
        if before is not None:
            operator.wires -= self._wire(operator, before)
        operator.demands[user] = demand
        operator.wires += self._wire(operator, demand)
        self._look(operator)

    def detach(self, number: int, user: User) -> None:
        """A user less; what nobody uses goes."""
        operator = self.operators[number]
        operator.wires -= self._wire(operator, operator.demands.pop(user))
        if not operator.demands:
            del self.operators[number]
            self.lattice.delete(number)
            for place, source in enumerate(operator.inputs):
                self.detach(source, (number, place))
            return
        if self.relaxing and operator.definition.group is None:
            self._shrink(operator)
        self._look(operator)

    def redirect(self, operator: Operator, target: Operator) -> None:
        """An operator becomes a relay of another one of its base; its users see nothing of it."""
        assert operator.number not in self.chain(target.number), "rows do not go in circles"
        before = operator.inputs
        operator.inputs, operator.relay = (target.number,), True
        operator.parts = (frozenset(operator.definition.sources),)
        demand = Demand(operator.definition, operator.node, operator.until)
        self.attach(target.number, (operator.number, 0), demand)
        operator.cpu = self.work(operator, operator.definition)
        for place, number in enumerate(before):
            self.detach(number, (operator.number, place))

    def can_serve(self, number: int, demand: Descriptor) -> bool:
        """Whether an operator serves a demand, or could be widened to with all below it: a relay of
        coarser groups cannot make the finer ones below report at other instants.
        """
        operator = self.operators[number]
        if usable(operator.definition, demand):
            return True
        if not self.relaxing or not relaxable(operator.definition, demand):
            return False
        new = relax(operator.definition, demand)
        return all(
            self.can_serve(source, operator.wants(place, new))
            for place, source in enumerate(operator.inputs)
        )

    def widened(self, number: int, demand: Descriptor) -> dict[int, Descriptor]:
        """What operators would become if one served a demand, down to the leaves."""
        operator = self.operators[number]
        if usable(operator.definition, demand):
            return {number: operator.definition}
        new = relax(operator.definition, demand)
        found = {number: new}
        for place, source in enumerate(operator.inputs):
            found |= self.widened(source, operator.wants(place, new))
        return found

    def marginal(self, number: int, demand: Descriptor) -> Price:
        """What it would cost more to serve a demand too, its wire apart."""
        found = NOTHING
        changes = self.widened(number, demand)
        for changed, new in changes.items():
            found += self._more(self.operators[changed], new, changes)
        definition = changes[number]
        if demand != definition:
            cpu = self.statistics.rate(definition) * self.costs.compensated
            found += Price(0.0, cpu)
        return found

    def over_life(self, number: int, demand: Descriptor, now: float, until: float) -> float:
        """What it would cost to serve a demand from now on, as one number: of each operator what it
        adds as long as that has other users, afterwards all that it needs for this demand.
        """
        changes, cost = self.widened(number, demand), self._seen(number, demand) * (until - now)
        for changed, wanted in self._chain(number, demand, until):
            operator = self.operators[changed]
            more = self._more(operator, changes.get(changed, operator.definition), changes)
            alone = NOTHING if operator.until >= until else self._alone(operator, wanted)
            one, others = self.costs.one, max(operator.until - now, 0.0)
            cost += over_life(one(more), one(alone), others, until - now)
        return cost

    def _chain(
        self, number: int, demand: Descriptor, until: float
    ) -> Iterator[tuple[int, Descriptor]]:
        """An operator and those below it, with what each had to be for this demand alone; those
        below one that stays anyway only if they have to change.
        """
        operator = self.operators[number]
        definition = demand
        if not self.relaxing or definition.group != operator.definition.group:
            definition = operator.definition
        yield number, definition
        if operator.until < until or not usable(operator.definition, demand):
            for place, source in enumerate(operator.inputs):
                yield from self._chain(source, operator.wants(place, definition), until)

    def _alone(self, operator: Operator, definition: Descriptor) -> Price:
        found = Price(0.0, self.work(operator, definition))
        for place, source in enumerate(operator.inputs):
            node = self.operators[source].node
            found += self.wire(operator.wants(place, definition), node, operator.node)
        return found

    def _seen(self, number: int, demand: Descriptor) -> float:
        """What a compensation for a demand would cost now, as one number."""
        definition = self.widened(number, demand)[number]
        cpu = self.statistics.rate(definition) * self.costs.compensated
        return self.costs.one(Price(0.0, cpu)) if demand != definition else 0.0

    def work(self, operator: Operator, definition: Descriptor) -> float:
        """Processors that an operator would need for its own work."""
        told, costs = self.statistics, self.costs
        if not operator.inputs:
            return told.taken(definition.sources[0]) * costs.filtered
        each = costs.compensated if operator.relay else costs.taken
        taken = sum(
            told.rate(operator.wants(place, definition)) for place in range(len(operator.inputs))
        )
        return taken * each + (0.0 if operator.relay else told.rate(definition) * costs.made)

    def wire(self, definition: Descriptor, source: int, target: int) -> Price:
        """What it is taken to cost to send rows from a node to another."""
        far = self.network.far(source, target) if self.even is None else self.even
        return Price(self.statistics.bytes(definition) * far, 0.0)

    def price(self) -> Price:
        """What all costs now."""
        network = sum(operator.wires for operator in self.operators.values())
        rate, each = self.statistics.rate, self.costs.compensated
        cpu = sum(
            o.cpu + (o.compensated * rate(o.definition) * each if o.compensated else 0.0)
            for o in self.operators.values()
        )
        return Price(network, cpu)

    def delay(self, number: int) -> float:
        """Seconds on the longest way from a source to an operator."""
        operator = self.operators[number]
        return max(
            (
                self.delay(source) + self.network.far(self.operators[source].node, operator.node)
                for source in operator.inputs
            ),
            default=0.0,
        )

    def chain(self, number: int) -> Iterator[int]:
        """An operator and all below it."""
        yield number
        for source in self.operators[number].inputs:
            yield from self.chain(source)

    def _wire(self, operator: Operator, demand: Demand) -> float:
        size = self.statistics.bytes(demand.definition)
        return size * self.network.far(operator.node, demand.node)

    def _more(self, operator: Operator, new: Descriptor, changes: dict[int, Descriptor]) -> Price:
        if new == operator.definition:
            return NOTHING
        rate = self.statistics.rate
        others = len(operator.demands) - sum(
            user[0] in changes and self._asked(user, changes) == new for user in operator.demands
        )
        before = operator.compensated * rate(operator.definition)
        found = Price(
            0.0,
            self.work(operator, new)
            - operator.cpu
            + (others * rate(new) - before) * self.costs.compensated,
        )
        for place, number in enumerate(operator.inputs):
            node = self.operators[number].node
            now = self.wire(operator.wants(place, operator.definition), node, operator.node)
            found += self.wire(operator.wants(place, new), node, operator.node) - now
        return found

    def _asked(self, user: User, changes: dict[int, Descriptor]) -> Descriptor:
        assert isinstance(user[0], int), "queries do not change"
        return self.operators[user[0]].wants(user[1], changes[user[0]])

    def _redefine(self, operator: Operator, new: Descriptor, why: str) -> None:
        self.log.append(
            f"operator {operator.number} {why}: {operator.definition.where} -> {new.where}"
        )
        operator.definition = new
        self.lattice.redefine(operator.number, new)
        operator.cpu = self.work(operator, new)
        for place, number in enumerate(operator.inputs):
            wanted = operator.wants(place, new)
            demand = Demand(wanted, operator.node, operator.until)
            self.attach(number, (operator.number, place), demand)
            self._fit(self.operators[number], why)

    def _fit(self, operator: Operator, why: str) -> None:
        if why == "shrank" and operator.definition.group is None:
            self._shrink(operator)
            self._look(operator)

    def _shrink(self, operator: Operator) -> None:
        new = least(demand.definition for demand in operator.demands.values())
        if new == operator.definition:
            return
        size = self.statistics.bytes
        if size(new) <= (1 - SLACK) * size(operator.definition):
            self._redefine(operator, new, "shrank")

    def _look(self, operator: Operator) -> None:
        """What follows from the demands: how many are compensated, until when it is needed."""
        demands = operator.demands.values()
        operator.compensated = sum(d.definition != operator.definition for d in demands)
        until = max((d.until for d in demands), default=operator.until)
        if until != operator.until:
            operator.until = until
            for place, number in enumerate(operator.inputs):
                user = (operator.number, place)
                known = self.operators[number].demands[user]
                self.operators[number].demands[user] = Demand(known.definition, known.node, until)
                self._look(self.operators[number])


def leaf(wanted: Descriptor, node: int, until: float) -> Operator:
    """A filter of a stream, at its source."""
    assert len(wanted.sources) == 1 and wanted == rows(wanted), "a leaf has one stream, no window"
    return Operator(0, wanted, node, until=until)


def relay(wanted: Descriptor, node: int, number: int, until: float) -> Operator:
    """Rows of another operator, passed on at a node."""
    sources = frozenset(wanted.sources)
    return Operator(0, wanted, node, (number,), (sources,), relay=True, until=until)
