"""Turns physical operators into shapes and members: names become slots, constants become
parameters.

``Installer`` makes the ``Shape`` and the ``Member`` of an operator from its reads and its installed
inputs. ``Topology`` finds or makes the node and the member. Before that, ``Installer`` numbers the
operators of a query, so operators of several queries are installed once for all of them
(``share_equal_operators``, ``batch_install``). Projections are not operators: they are part of
edges.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from levada.core.rdf_terms import Literal, Term
from levada.plan.binding.edges import (
    Installed,
    Read,
    align_edges,
    base_of,
    collect_reads,
    edge_of,
    layout_of,
    look_through,
    outputs_of,
)
from levada.plan.binding.leaves import Timing, is_static
from levada.plan.binding.required_facets import Needs
from levada.plan.binding.slot_resolution import slots_of
from levada.plan.binding.steps import Steps
from levada.plan.execution import steps as s
from levada.plan.execution.row_layout import NOTHING, Facet
from levada.plan.execution.shapes import Member, Shape
from levada.plan.logical.nodes import Query
from levada.plan.lowering.rdf_merge import PLACES
from levada.plan.physical import operators as p
from levada.plan.physical.operators import HOME, Op
from levada.plan.physical.partitioning import ALL_PARTITIONS
from levada.plan.sharing.parameterize import is_number
from levada.plan.sharing.share_equal_operators import CommonSubexpressions, Form, Key, Numbered

# Records the installed operators of a tree, to install them again with other terms.
#
# Shapes stay, only constants differ. One pattern over the merge of two streams and static data is
# eleven operators, and a query has a dozen such patterns. Their shapes follow from the pattern's
# form and from its reads, not from its names and terms. So a second pattern of a form costs its
# members, not its planning.


Intern = Callable[[Shape, Member], tuple[Shape, int]]


@dataclass(slots=True)
class Template:
    """The operators of a tree in the order of installation; members refer to inputs by this order.

    ``names``: the names of the last operator's slots.
    """

    entries: list[tuple[Shape, Member]] = field(default_factory=list)
    names: tuple[str, ...] = ()

    def intern(self, shape: Shape, member: Member) -> tuple[Shape, int]:
        """Records an operator."""
        self.entries.append((shape, member))
        return shape, len(self.entries) - 1

    def renew(
        self, intern: Intern, places: Sequence[Term], terms: Sequence[Term]
    ) -> tuple[Shape, int]:
        """Installs all operators with these terms; returns the last one's shape and member."""
        term_at = dict(zip(places, terms, strict=False))
        made: list[tuple[Shape, int]] = []
        for i, (shape, member) in enumerate(self.entries):
            below = tuple(
                [
                    (made[at][0], edge)
                    for at, (_, edge) in zip(member.inputs, shape.inputs, strict=True)
                ]
            )
            if any(a is not b for (a, _), (b, _) in zip(below, shape.inputs, strict=True)):
                # an input may have another generation than the recorded one
                shape = replace(shape, inputs=below)
            inputs = tuple([made[at][1] for at in member.inputs])
            constants = tuple([None if t is None else term_at[t] for t in member.constants])
            interned, number = intern(shape, member.with_inputs(inputs, constants))
            # the topology's own shape compares faster
            self.entries[i] = (shape if interned.generation else interned, member)
            made.append((interned, number))
        return made[-1]


class Place(NamedTuple):
    """The place of an operator in its query: the windows of its level, and its times."""

    level: tuple[int, ...]
    timing: Timing


class Installer(Steps):
    """Installs the operators of one query; ``intern`` adds a missing (shape, member) pair.

    ``intern`` returns the topology's own shape and the index of the member. So two shapes over
    equal inputs have identical inputs and compare at once.
    """

    def __init__(
        self,
        query: Query,
        name: str,
        start: int,
        intern: Intern,
        *,
        show_empty: bool = False,
        since: int = 0,
        data: int = 0,
        reread_graphs: Collection[str | None] = (),
        apart: bool = False,
    ) -> None:
        super().__init__(
            query,
            name,
            start,
            show_empty=show_empty,
            since=since,
            data=data,
            reread_graphs=reread_graphs,
            apart=apart,
        )
        self.intern = intern
        # returns the input below; None: it is recorded (a bound method would make a cycle)
        self.below: Callable[[Op, Needs], Installed] | None = None
        self.numbers: dict[int, int] = {}
        self.forms: dict[int, Form] = {}
        self.done: dict[tuple[int, tuple[tuple[str, Facet], ...]], Installed] = {}
        self.template: dict[tuple[int, tuple[tuple[str, Facet], ...]], Template] = {}

    # -- numbers --

    def number(
        self, op: Op, common: CommonSubexpressions, on_new: Callable[[Op, Numbered, Place], None]
    ) -> int:
        """Returns the number of an operator, after numbering all below; calls
        ``on_new`` for each.
        """
        if id(op) not in self.numbers:
            if isinstance(op.spec, p.Applied):
                form = self._form(op.inputs[0], common)
                form = common.form((form,), form.once)
                parameters: Key = op.spec.terms
                member = Member()
            else:
                outer = self._go_below(op)
                bases = [base_of(child) for child in op.inputs]
                below = [self.number(base, common, on_new) for base in bases]
                self.level, self.timing = outer
                form, member = self._form_over(op, [common.known[n].form for n in below], common)
                parameters = (self._versioned_member(op, member), *below)
            number = self.numbers[id(op)] = common.number(form, parameters)
            on_new(op, Numbered(number, form, member), Place(self.level, self.timing))
        return self.numbers[id(op)]

    def _form(self, op: Op, common: CommonSubexpressions) -> Form:
        """Returns the form of an operator in a tree that is installed with other terms.

        It is kept forever, since such trees are few.
        """
        if id(op) not in self.forms:
            outer = self._go_below(op)
            below = [self._form(base_of(child), common) for child in op.inputs]
            self.level, self.timing = outer
            form, member = self._form_over(op, below, common)
            self.forms[id(op)] = common.form((form, self._versioned_member(op, member)), form.once)
        return self.forms[id(op)]

    def _form_over(
        self, op: Op, below: list[Form], common: CommonSubexpressions
    ) -> tuple[Form, Member]:
        """Returns the form of an operator over inputs of these forms, and its member."""
        step, member = self.step(op, op.variables, [child.variables for child in op.inputs])
        if op.inputs:
            # an operator that requires no input has rows as long as any input has
            sides = step.starving(len(op.inputs)) or tuple((i,) for i in range(len(below)))
            once = all(any(below[i].once for i in side) for side in sides)
        else:
            once = is_static(op.spec) or isinstance(op.spec, p.Constant)
        read = tuple([(form, *reading_of_edge(op, i)) for i, form in enumerate(below)])
        typed = tuple([v in op.typed for v in op.variables]) if op.typed else ()
        width = len(op.variables)
        # the facets that an expression reads depend on the constants that are numbers
        constants = () if isinstance(step, s.Match) else member.constants
        numbers = tuple([isinstance(c, Literal) and is_number(c) for c in constants])
        key = (step, op.stage, read, width, typed, op.weighted, op.windows is None, numbers)
        return common.form(key, once, keeps=isinstance(step, s.Arrange)), member

    def signature(self, op: Op) -> Key:
        """Returns a value that equal operators of other queries share, regardless of variable
        names.

        It covers the operator and everything below it.
        """
        if isinstance(op.spec, p.Applied):
            return op.spec.terms, self.signature(op.inputs[0])
        outer = self._go_below(op)
        bases = [base_of(child) for child in op.inputs]
        below = [(self.signature(base), *reading_of_edge(op, i)) for i, base in enumerate(bases)]
        self.level, self.timing = outer
        step, member = self.step(op, op.variables, [child.variables for child in op.inputs])
        return step, self._versioned_member(op, member), op.stage, op.weighted, tuple(below)

    def _versioned_member(self, op: Op, member: Member) -> Member:
        """Returns the part of a member in which it differs from others.

        Static data that stay count by the version of their files, not of the plan.
        """
        stays = member.since and not op.weighted and not member.reread_graphs
        return member._replace(since=self.data) if stays else member

    # -- installing --

    def make(
        self,
        op: Op,
        place: Place,
        needs: Needs,
        below: Callable[[Op], Installed],
        input_reads: Sequence[Read],
    ) -> tuple[Installed, Shape]:
        """Installs an operator over the installed inputs ``below``, with these needs and
        ``input_reads``.

        Also returns the shape that was asked for.
        """
        self.level, self.timing = place
        self.below = lambda base, _: below(base)
        try:
            if isinstance(op.spec, p.Applied):
                installed = self._install_applied(op, needs)
                return installed, installed.shape
            shape, member, names = self._build_shape(op, needs, input_reads)
            return Installed(*self.intern(shape, member), names), shape
        finally:
            self.below = None

    def _record(self, op: Op, needs: Needs) -> Installed:
        """Installs an operator and all below it, once for each set of needs."""
        key = (id(op), tuple(sorted(needs.items())))
        if key not in self.done:
            self.done[key] = self._install(op, needs)
        return self.done[key]

    def _install_applied(self, op: Op, needs: Needs) -> Installed:
        """Installs the recorded tree below, with other terms, if the same needs were recorded.

        All identities of it are read: they are compared below anyway, so fewer shapes serve more
        patterns.
        """
        assert isinstance(op.spec, p.Applied), "a tree and terms"
        (tree,) = op.inputs
        names = dict(zip(op.variables, tree.variables, strict=True))
        wants = {names[v]: needs.get(v, NOTHING) | Facet.ID for v in op.variables}
        key = (id(tree), tuple(sorted(wants.items())))
        if key not in self.template:
            outer = self.intern, self.below
            template = self.template[key] = Template()
            self.intern, self.done, self.below = template.intern, {}, None
            template.names = self._record(tree, wants).names
            self.intern, self.below = outer
        template = self.template[key]
        shown = dict(zip(tree.variables, op.variables, strict=True))
        return Installed(
            *template.renew(self.intern, PLACES, op.spec.terms),
            tuple(shown[v] for v in template.names),
        )

    def _install(self, op: Op, needs: Needs) -> Installed:
        shape, member, names = self._build_shape(op, needs, collect_reads(op, needs))
        return Installed(*self.intern(shape, member), names)

    def _build_shape(
        self, op: Op, needs: Needs, input_reads: Sequence[Read]
    ) -> tuple[Shape, Member, tuple[str, ...]]:
        inputs, edges, ins = [], [], []
        outer, below = self._go_below(op), self.below or self._record
        for i, read in enumerate(input_reads):
            installed = below(read.base, read.wants)
            edges.append(edge_of(op, i, read, installed))
            inputs.append(installed)
            ins.append(read.names)
        self.level, self.timing = outer
        if op.spec.side_by_side:
            edges = align_edges(edges)
        names = outputs_of(op, needs, ins)
        layout = layout_of(op, names, needs, edges)
        step, member = self.step(op, names, ins)
        if isinstance(step, s.ArrangedJoin):
            step = replace(step, reads=edges[step.arranged].slots)
        elif isinstance(step, s.ArrangedReportJoin):
            step = replace(step, reads=edges[1].slots)
        shape = Shape(
            step,
            op.stage,
            tuple([(i.shape, e) for i, e in zip(inputs, edges, strict=True)]),
            layout,
        )
        return shape, member.with_inputs(tuple([i.member for i in inputs])), names

    def _go_below(self, op: Op) -> Place:
        """Moves to the level of an operator's inputs and returns the previous place.

        The operators below a sub-query window belong to its level. A part that is evaluated once
        belongs to a level without windows.
        """
        outer = Place(self.level, self.timing)
        if isinstance(op.spec, p.SubqueryWindow):
            self.level = op.spec.level
        elif isinstance(op.spec, p.StaticSubplan):
            self.level, self.timing = (), self.timing.without_windows(op.spec.reread_graphs)
        return outer


def reading_of_edge(op: Op, i: int) -> Key:
    """Returns how an operator reads an input: the places of variables, windows and
    exchange keys.
    """
    child = op.inputs[i]
    names = op.variables if op.spec.side_by_side else child.variables
    slots: tuple[int, ...] = ()  # unchanged
    if op.spec.side_by_side or isinstance(child.spec, p.Rename):
        base, source = look_through(child)
        places = {v: at for at, v in enumerate(base.variables)}
        slots = tuple([places.get(source.get(v, ""), -1) for v in names])
    windows: tuple[int, ...] = ()
    if isinstance(op.spec, p.Union) and op.windows is not None and child.windows is not None:
        windows = tuple([child.windows.index(w) if w in child.windows else -1 for w in op.windows])
    exchange = op.exchange[i]
    by = (
        exchange
        if exchange in (None, HOME, ALL_PARTITIONS)
        else slots_of(filter(None, exchange), names)
    )
    return slots, windows, by
