"""Instances of a template: the template is planned once, and each instance is installed with its
own terms.

A template (``logical/query_template``) and its twin are planned outside the topology. If all their
operators have equal shapes and differ only in the marks, an instance is the template's members with
its terms and name. Members without either are common to all instances, and existing arrangements of
static rows are reused (``recover_arrangements``). Otherwise each instance is planned separately:
the planner's result decides, not a list of features. Cost: a plan of two queries for all, and some
µs for each own operator of an instance.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

from levada.core.event_time import MAX
from levada.core.gc_control import collection_paused
from levada.core.rdf_terms import Term
from levada.plan.execution.joins import Arrange
from levada.plan.execution.plan import At, QueryPlan
from levada.plan.execution.shapes import Member, Shape
from levada.plan.logical.nodes import Query
from levada.plan.logical.query_template import Template, TemplateInstance, substitute, terms_in
from levada.plan.sharing.join_orders.running_subjoins import RunningConjunction
from levada.plan.sharing.recover_arrangements import find_arrangement, note_arrangement
from levada.plan.sharing.relaxed_blocks import Relaxations
from levada.plan.sharing.sharing_modes import Sharing
from levada.plan.topology.topology import Topology

MARK, TWIN = "\0mark", "\0twin"  # names that no query has


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
def add_rows(
    topology: Topology,
    rows: Sequence[tuple[str, TemplateInstance]],
    start: int,
    *,
    empty_reports: bool = False,
    until: int = MAX,
    region: str = "",
) -> None:
    """Adds queries that are instances of one template and read no stream that other queries make.

    They hold at the next ``install``. Instances are relaxed if the sharing mode relaxes and two of
    them differ: then the template is, beside its twin. Operators shared with other queries are
    registered only for readers of the same columns (``share_equal_operators``), as after a restart.
    """
    template = rows[0][1].template
    one = partial(topology.add, empty_reports=empty_reports, until=until, region=region)
    # in regions each query is measured separately
    alone = bool(region) or topology.sharing.sites.has_regions or len(rows) == 1
    planned = None if alone else _plan_template(topology, rows, start, empty_reports)
    if planned is not None:
        planned.query = _with(planned.query, until=until)
    for name, row in rows:
        if planned is None:
            one(name, template.fill(row.terms), start)
        else:
            planned.install(topology, name, row.terms)
    if planned is not None:
        planned.follow(topology)


def expect_rows(
    topology: Topology, rows: Sequence[tuple[str, TemplateInstance]], start: int
) -> None:
    """Announces that instances of a template will be added with other queries, before
    any is added.
    """
    template = rows[0][1].template
    if len(rows) > 1 and topology.sharing.is_choosing_orders:
        beside = _trial_topology(topology, topology.sharing.mode)
        # both, since what has no mark is every row's
        beside.add(_template_name(template), template.query, start)
        beside.add(f"{_template_name(template)} {TWIN}", template.twin, start)
        topology.expect(beside)


def _template_name(template: Template) -> str:
    """Returns the name of a template among the announced queries."""
    return f"{MARK} {id(template)}"


def _differing_queries(
    template: Template, rows: Sequence[tuple[str, TemplateInstance]]
) -> Iterator[Query]:
    """Yields the template and its twin with one mark of the other.

    There is one pair for each mark in which instances differ that are otherwise equal. This
    difference is lifted, though others differ in more.
    """
    for i in range(len(template.marks)) if len(template.marks) > 1 else ():
        if len({(*row.terms[:i], *row.terms[i + 1 :]) for _, row in rows}) < len(rows):
            for marks, other in (
                (template.marks, template.others),
                (template.others, template.marks),
            ):
                yield template.fill((*marks[:i], other[i], *marks[i + 1 :]))


def _with(query: QueryPlan, **said: Any) -> QueryPlan:
    """Returns the query with other settings."""
    return replace(query, manner=replace(query.manner, **said))


def _plan_template(
    topology: Topology,
    rows: Sequence[tuple[str, TemplateInstance]],
    start: int,
    empty_reports: bool,
) -> _Planned | None:
    """Returns the plan of the template, if it equals that of its twin except for the marks."""
    template = rows[0][1].template
    # rows contain each other where they are equal, and then they share everything anyway
    contains = topology.sharing.mode is Sharing.CONTAINMENT
    sharing = Sharing.EXACT if contains else topology.sharing.mode
    beside = _trial_topology(topology, sharing)
    chosen = topology.sharing.orders.chosen_units(_template_name(template))
    beside.sharing.orders.forced = lambda _, number, __: chosen.get(number, ())
    for name, query in ((MARK, template.query), (TWIN, template.twin)):
        beside.add(name, query, start, empty_reports=empty_reports)
    if sharing is Sharing.RELAX:
        for i, query in enumerate(_differing_queries(template, rows)):
            beside.add(f"{MARK} {i}", query, start, empty_reports=empty_reports)
    beside.install()
    places: dict[At, int] = {}
    operators = _operators(beside, MARK, template.marks, places)
    twin = _operators(beside, TWIN, template.others, {})
    if operators != twin or operators is None:
        return None
    shapes = [operator.shape for operator in operators]
    planned = beside.queries[MARK]
    joins = [
        (each, {mask: places[at] for mask, at in each.places.items() if at in places})
        for each in beside.sharing.orders.new_conjunctions(MARK)
    ]
    kept = dict(_existing_arrangements(topology, operators))
    return _Planned(
        operators, shapes, planned, template.marks, beside.sharing.relaxations, joins, kept
    )


def _existing_arrangements(
    topology: Topology, operators: Sequence[_Operator]
) -> Iterator[tuple[int, tuple[Shape, int]]]:
    """Yields the existing arrangements of static rows that are the same for all instances.

    They have the places of the arrangements and of their patterns, which nothing else reads.
    """
    users = Counter(place for operator in operators for place in operator.member.inputs)
    for place, operator in enumerate(operators):
        if not isinstance(operator.shape.step, Arrange) or not operator.shared:
            continue
        (below,) = operator.member.inputs
        arrangement = find_arrangement(topology, operator.shape, operators[below].member)
        if arrangement is not None and users[below] == 1:
            node = topology.graph.nodes[topology.graph.index[arrangement[0]]]
            pattern = node.members[arrangement[1]].inputs[0]
            yield place, arrangement
            yield below, (topology.graph.nodes[node.inputs[0]].shape, pattern)


def _trial_topology(topology: Topology, sharing: Sharing) -> Topology:
    """Returns a topology without queries that plans like another one."""
    trial = Topology(topology.streams.facts, topology.replaceable, sharing, topology.sharing.joins)
    trial.version, trial.data = topology.version, topology.data
    trial.measures = topology.measures
    return trial


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
    """The operators of a template, and its query plan; ``shapes`` are over shapes of the topology.

    ``joins``: its conjunctions, and the places of their joins.
    """

    operators: list[_Operator]
    shapes: list[Shape]
    query: QueryPlan
    marks: tuple[Term, ...]
    relaxations: Relaxations
    joins: Sequence[tuple[RunningConjunction, Mapping[int, int]]] = ()
    shared: dict[int, tuple[Shape, int]] = field(default_factory=dict)

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
                if operator.shared:
                    self.shared[i] = installed
                    if isinstance(operator.shape.step, Arrange):
                        note_arrangement(topology, *installed)
            made.append(installed)
        query = self.query
        if query.template or topology.sharing.mode is Sharing.RELAX:
            by = dict(zip(self.marks, terms, strict=True))
            if query.template:
                query = _with(query, template=substitute(query.template, by))
            topology.sharing.relaxations.note_as(name, self.relaxations, MARK, by)
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
