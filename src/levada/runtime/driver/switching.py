"""When queries go over to better orders of joins (``plan/topology/switches``): asked between
epochs, of the last manifest.

    due     a switch has reached its instant, or it is time for a look
    finish  the switches that have: in the next plan they are done
    begin   at a look: the queries that are better off otherwise begin to go over

A look costs some ms, and is one where queries come or go, and otherwise each ``every`` epochs. At
most ``MOST`` are under way, since each costs twice what the query does until its windows have
passed. What is behind or ended waits.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from levada.algebra.nodes import Query
from levada.model.time import MIN
from levada.plan.topology.switches.instant import made, why_not
from levada.plan.topology.switches.looks import Better, Looks
from levada.plan.topology.switches.under_way import MOST_OF_A_QUERY, Begun, begin, finish
from levada.plan.topology.topology import Topology
from levada.runtime.driver.starts import start_of
from levada.runtime.store.manifest import Manifest

MOST = 16

Asked = Callable[[str], tuple[Query, bool]]
"""A query by its name: on the topology's streams, and whether it shows empty reports."""


@dataclass(slots=True)
class Switching:
    """The switches of a run; ``every``: so many epochs from look to look, 0: none."""

    every: int
    looks: Looks = field(default_factory=Looks)
    _begun: dict[str, Begun] = field(default_factory=dict)
    _next: int = 0
    _elements: int = 0

    def due(self, topology: Topology | None, last: Manifest | None) -> bool:
        """Whether there is anything to do."""
        if topology is None or last is None or last.behind or last.ended:
            return False
        return bool(_ready(topology, last)) or self._may_look(topology, last)

    def _may_look(self, topology: Topology, last: Manifest) -> bool:
        if not self.every or not topology.choosing or not topology.orders.standing:
            return False
        elements = sum(record.elements for record in last.streams.values())
        return last.epoch >= self._next and elements > self._elements

    def finish(self, topology: Topology, last: Manifest | None) -> list[str]:
        """The queries that have gone over with the next plan."""
        done = [] if last is None or last.behind or last.ended else _ready(topology, last)
        for name in done:
            finish(topology, name)
            topology.orders.forget(name)
            if (begun := self._begun.pop(name, None)) is not None:
                for each in begun.joins:
                    topology.orders.stand(each)
            topology.journal.tell(topology.version + 1, f"{name} has gone over to its new order")
        return done

    def begin(
        self, topology: Topology, last: Manifest | None, asked: Asked, *, changed: bool
    ) -> list[str]:
        """The queries that begin to go over with the next plan; ``changed``: others came or
        went.
        """
        self._begun = {name: b for name, b in self._begun.items() if name in topology.switches}
        if last is None or last.behind or last.ended or not self.every or not topology.choosing:
            return []
        if not (changed or self._may_look(topology, last)):
            return []
        self._next = last.epoch + self.every
        self._elements = sum(record.elements for record in last.streams.values())
        known: dict[str, tuple[Query, bool]] = {}

        def why(name: str) -> str:
            if name not in known:
                known[name] = asked(name)
            query, empty_reports = known[name]
            return why_not(query, empty_reports=empty_reports)

        return [
            one.name
            for one in self.looks.look(topology, why)
            if self._begin(topology, last, one, known[one.name][0])
        ]

    def _begin(self, topology: Topology, last: Manifest, one: Better, query: Query) -> bool:
        own, start = topology.queries[one.name], start_of(query, last, topology)
        full = len(topology.switches) >= MOST or len(own.manner.formers) >= MOST_OF_A_QUERY
        if start <= MIN or full or one.name in topology.switches:
            return False
        begun = begin(topology, one.name, query, start, one.units)
        self.looks.went(one.name)
        if begun is None:
            return False
        self._begun[one.name] = begun
        told = f"{one.name} begins to go over to {one.order}"
        if one.own:
            told += f", which adds {one.cost:,.0f} ns an element in place of {one.own:,.0f}"
        topology.journal.tell(topology.version + 1, told)
        return True


def _ready(topology: Topology, last: Manifest) -> list[str]:
    """The switches that have reached their instants."""
    if not topology.switches:
        return []
    watermarks: Mapping[str, int] = {name: s.watermark for name, s in last.streams.items()}
    return [
        name
        for name, switch in topology.switches.items()
        if switch.since <= last.plan and made(topology.queries[name], watermarks) >= switch.behind
    ]
