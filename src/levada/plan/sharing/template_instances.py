"""Instances of a template: the template is planned once, and each instance is installed with its
own terms.

A template (``logical/query_template``) and its twin are added as if they were queries, with all
queries that come at the same time, so they share with these and with running ones. If all their
operators have equal shapes and differ only in the marks, an instance is the template's members with
its terms and name. Members without either are common to all instances. Then the template and its
twin go. Otherwise each instance is planned separately: the planner's result decides, not a list of
features. Cost: a plan of two queries for all, and some µs for each own operator of an instance.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

from levada.core.event_time import MAX
from levada.core.frozen import frozen
from levada.core.gc_control import collection_paused
from levada.core.rdf_terms import Term
from levada.plan.execution.plan import At, QueryPlan
from levada.plan.execution.shapes import Member, Shape
from levada.plan.logical.nodes import Query
from levada.plan.logical.query_template import TemplateInstance, substitute, terms_in
from levada.plan.sharing.decision_log import HIDDEN
from levada.plan.sharing.join_orders.running_subjoins import RunningConjunction
from levada.plan.sharing.sharing_modes import Sharing
from levada.plan.topology.topology import Topology

MARK, TWIN = f"{HIDDEN}mark", f"{HIDDEN}twin"  # names that no query has


@frozen
class TemplateRows:
    """Queries that are instances of one template and read no stream that other queries make, with
    their common settings (``Topology.add``).
    """

    rows: Sequence[tuple[str, TemplateInstance]]
    start: int
    empty_reports: bool = False
    until: int = MAX
    region: str = ""

    def has_plan_of_template(self, topology: Topology) -> bool:
        """Whether the rows can have the plan of their template. In regions each query is measured
        separately, and rows that are equal contain each other.
        """
        if self.region or topology.sharing.sites.has_regions or len(self.rows) == 1:
            return False
        return topology.sharing.mode is not Sharing.CONTAINMENT


class _Operator(NamedTuple):
    """An operator of a template.

    Its member refers to inputs by their places among the operators. It lacks the values of
    instances: the terms at the ``holes`` (index of the mark, or -1), and the query's name if it is
    ``named``. ``shared``: it is the same for all instances.
    """

    shape: Shape
    member: Member
    holes: tuple[int, ...]
    named: bool
    shared: bool

    def member_of(
        self, name: str, terms: tuple[Term, ...], made: Sequence[tuple[Shape, int]]
    ) -> Member:
        """Returns the member of an instance over its installed inputs."""
        base = self.member
        constants = base.constants
        if self.holes:
            pairs = zip(constants, self.holes, strict=True)
            constants = tuple([t if hole < 0 else terms[hole] for t, hole in pairs])
        member = base.with_inputs(tuple([made[place][1] for place in base.inputs]), constants)
        return member._replace(query=name) if self.named else member


@collection_paused()
def add_templates(topology: Topology, groups: Sequence[TemplateRows]) -> None:
    """Adds the rows of templates, and installs all queries that were added since the last
    ``install``.

    Instances are relaxed if the sharing mode relaxes and two of them differ: then the template is,
    beside its twin.
    """
    planned = {i: group for i, group in enumerate(groups) if group.has_plan_of_template(topology)}
    hidden: list[str] = []
    for i, group in planned.items():
        for name, query in _stand_ins(topology, group):
            hidden.append(f"{name} {i}")
            topology.add(hidden[-1], query, group.start, empty_reports=group.empty_reports)
    if hidden:
        topology.install()
    for i, group in enumerate(groups):
        plan = _read_plan(topology, group, f"{MARK} {i}", f"{TWIN} {i}") if i in planned else None
        add = partial(
            topology.add, empty_reports=group.empty_reports, until=group.until, region=group.region
        )
        for name, row in group.rows:
            if plan is None:
                add(name, row.template.fill(row.terms), group.start)
            else:
                plan.install(topology, name, row.terms)
        if plan is not None:
            plan.follow(topology)
    for name in hidden:
        topology.remove(name)
    topology.sharing.journal.hide()


def _stand_ins(topology: Topology, group: TemplateRows) -> Iterator[tuple[str, Query]]:
    """Yields the template and its twin, by name. If joins are relaxed, there is a further one for
    each mark in which instances differ that are otherwise equal, so this difference is lifted even
    if others differ in more.
    """
    template = group.rows[0][1].template
    yield MARK, template.query
    yield TWIN, template.twin
    several = topology.sharing.mode is Sharing.RELAX and len(template.marks) > 1
    for i in range(len(template.marks)) if several else ():
        others = {(*row.terms[:i], *row.terms[i + 1 :]) for _, row in group.rows}
        if len(others) < len(group.rows):
            for marks, other in (
                (template.marks, template.others),
                (template.others, template.marks),
            ):
                query = template.fill((*marks[:i], other[i], *marks[i + 1 :]))
                yield f"{MARK} {i} {marks is template.others}", query


def _read_plan(topology: Topology, group: TemplateRows, mark: str, twin: str) -> _Planned | None:
    """Returns the plan of the template, if it equals that of its twin except for the marks."""
    template = group.rows[0][1].template
    places: dict[At, int] = {}
    operators = _operators(topology, mark, template.marks, places)
    if operators is None or operators != _operators(topology, twin, template.others, {}):
        return None
    query = topology.queries[mark]
    query = replace(query, manner=replace(query.manner, until=group.until))
    joins = [
        (each, {mask: places[at] for mask, at in each.places.items() if at in places})
        for each in topology.sharing.orders.new_conjunctions(mark)
    ]
    shared = {
        place: (operators[place].shape, member)
        for (_, member), place in places.items()
        if operators[place].shared
    }
    shapes = [operator.shape for operator in operators]
    return _Planned(mark, operators, shapes, query, template.marks, joins, shared)


def _operators(
    topology: Topology, name: str, marks: tuple[Term, ...], places: dict[At, int]
) -> list[_Operator] | None:
    """Returns the operators of a query, inputs first; None if a mark is anything but a constant of
    one.

    ``places``: receives the place of each.
    """
    operators: list[_Operator] = []
    number = {mark: i for i, mark in enumerate(marks)}

    def visit(node: int, at: int) -> int:
        if (node, at) not in places:
            entry = topology.graph.nodes[node]
            member = entry.members[at]
            pairs = zip(entry.inputs, member.inputs, strict=True)
            below = tuple([visit(i, m) for i, m in pairs])
            holes = tuple([-1 if t is None else number.get(t, -1) for t in member.constants])
            named = member.query == name
            shared = not named and max(holes, default=-1) < 0
            places[node, at] = len(operators)
            operators.append(
                _Operator(
                    entry.shape,
                    member.with_inputs(below, _without(member.constants, holes))._replace(
                        query="" if named else member.query
                    ),
                    holes,
                    named,
                    shared and all(operators[place].shared for place in below),
                )
            )
        return places[node, at]

    query = topology.queries[name]
    visit(query.node, query.member)
    plain = all(number.keys().isdisjoint(terms_in((o.shape, o.member))) for o in operators)
    return operators if plain else None


def _without(constants: tuple[Term | None, ...], holes: tuple[int, ...]) -> tuple[Term | None, ...]:
    return tuple([t if hole < 0 else None for t, hole in zip(constants, holes, strict=True)])


@dataclass(slots=True)
class _Planned:
    """The operators of a template with its ``name`` among the queries, and its query plan.

    ``joins``: its conjunctions, and the places of their joins. ``shared``: the operators that are
    the same for all instances, by place.
    """

    name: str
    operators: list[_Operator]
    shapes: list[Shape]
    query: QueryPlan
    marks: tuple[Term, ...]
    joins: Sequence[tuple[RunningConjunction, Mapping[int, int]]]
    shared: dict[int, tuple[Shape, int]]

    def install(self, topology: Topology, name: str, terms: tuple[Term, ...]) -> None:
        """Installs an instance."""
        made: list[tuple[Shape, int]] = []
        for i, operator in enumerate(self.operators):
            installed = self.shared.get(i)
            if installed is None:
                installed = topology.intern(
                    self._with_inputs(i, made), operator.member_of(name, terms, made)
                )
                if not installed[0].generation:
                    self.shapes[i] = installed[0]  # the topology's own is found faster
            made.append(installed)
        query = self.query
        if query.template or topology.sharing.mode is Sharing.RELAX:
            by = dict(zip(self.marks, terms, strict=True))
            if query.template:
                template = substitute(query.template, by)
                query = replace(query, manner=replace(query.manner, template=template))
            topology.sharing.relaxations.note_as(name, self.name, by)
        topology.put(name, query, *made[-1])

    def follow(self, topology: Topology) -> None:
        """Registers the joins that all instances share."""
        for each, places in self.joins:
            there = {
                mask: (topology.graph.index[self.shared[place][0]], self.shared[place][1])
                for mask, place in places.items()
                if place in self.shared
            }
            topology.sharing.orders.offer(replace(each, places=there))

    def _with_inputs(self, i: int, made: Sequence[tuple[Shape, int]]) -> Shape:
        """Returns the shape of an operator over the nodes of its inputs."""
        shape, places = self.shapes[i], self.operators[i].member.inputs
        for (below, _), place in zip(shape.inputs, places, strict=True):
            if below is not made[place][0]:
                pairs = zip(places, shape.inputs, strict=True)
                inputs = tuple([(made[at][0], edge) for at, (_, edge) in pairs])
                return replace(shape, inputs=inputs)
        return shape
