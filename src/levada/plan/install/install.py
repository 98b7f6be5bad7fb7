"""Physical operators -> shapes and members: names become slots, constants become parameters.

``install`` walks an ``Op`` tree with the facets that are needed of each output, and yields for
every operator its ``Shape`` and ``Member``; ``Topology`` finds or makes the node and the member.
Projections are no operators: they are in the edges.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import NamedTuple, assert_never

from levada.algebra.nodes import Query, Reporting
from levada.algebra.properties import Analysis
from levada.model.expression import Const, Expression, random
from levada.model.query import Output
from levada.model.time import WindowKind
from levada.plan.install.facets import Needs, add, emit_needs, input_needs, lift, read_of_all
from levada.plan.install.leaves import is_static, leaf, positions
from levada.plan.install.resolve_slots import by_slots, draw_slots, key_sides, parametrise
from levada.plan.install.template import Intern, Template
from levada.plan.install.timing import Timing
from levada.plan.lowering.levels import top
from levada.plan.lowering.merge import PLACES
from levada.plan.physical import operators as p
from levada.plan.physical.operators import HOME, Op
from levada.plan.sealed import steps as s
from levada.plan.sealed.layout import NOTHING, Facet, Layout, Span
from levada.plan.sealed.shapes import Edge, Member, Shape

_Border = p.Report | p.Deltas | p.Panes | p.Changes
_PerReport = p.ReportJoin | p.RGroup | p.RDistinct | p.RExcept | p.ROrder
_ByChanges = p.Running | p.Multiplicity | p.Net | p.Snapshot
_Above = _Border | _PerReport | _ByChanges


class Installed(NamedTuple):
    """An operator in the topology: its shape, its member, and the names of its output slots."""

    shape: Shape
    member: int
    names: tuple[str, ...]


class Installer:
    """Installs one query in plan version ``since``; ``intern`` makes of a (shape, member) pair what
    is missing.

    ``again``: the static graphs at whose replacement the query, which has no windows, is answered
    anew.

    It gives the topology's own shape, so that two shapes over equal inputs are over the same ones,
    and compare at once; and the index of the member.
    """

    def __init__(
        self,
        query: Query,
        name: str,
        start: int,
        intern: Intern,
        *,
        every: bool = False,
        since: int = 0,
        again: Collection[str | None] = (),
    ) -> None:
        self.q = query
        read = Analysis().of(query.pattern)
        by_changes = read.derived  # of these the outermost operator knows the policy, and no other
        self.every = every and not by_changes
        own = replace(query, reports=Reporting()) if by_changes else query
        self.timing = Timing(own, start, self.every, tuple(sorted(again, key=str)))
        self.since = since
        self.name = name
        self.intern = intern
        self.done: dict[tuple[int, tuple[tuple[str, Facet], ...]], Installed] = {}
        self.template: dict[tuple[int, tuple[tuple[str, Facet], ...]], Template] = {}
        self.rows: dict[tuple[int, ...], Member] = {}
        self.level = top(query)
        self.tuples = read.tuples

    @property
    def kinds(self) -> tuple[WindowKind, ...]:
        """The kinds of the windows whose reports are those of the level that is being installed."""
        return self.timing.kinds(self.level)

    def root(self, op: Op) -> Installed:
        """Installs the whole query; the root is its Emit."""
        return self.install(op, emit_needs(op))

    def install(self, op: Op, needs: Needs) -> Installed:
        """Finds or makes this operator and all below it."""
        key = (id(op), tuple(sorted(needs.items())))
        if key not in self.done:
            self.done[key] = (self._applied if isinstance(op.spec, p.Applied) else self._install)(
                op, needs
            )
        return self.done[key]

    def _applied(self, op: Op, needs: Needs) -> Installed:
        """What was template of the tree below where the same of it was read, with other terms.

        All identities are read of it: below they are compared anyway, and so fewer shapes do for
        more patterns.
        """
        assert isinstance(op.spec, p.Applied), "a tree and terms"
        (tree,) = op.inputs
        names = dict(zip(op.variables, tree.variables, strict=True))
        wants = {names[v]: needs.get(v, NOTHING) | Facet.ID for v in op.variables}
        key = (id(tree), tuple(sorted(wants.items())))
        if key not in self.template:
            outer = self.intern, self.done
            template = self.template[key] = Template()
            self.intern, self.done = template.intern, {}
            template.names = self.install(tree, wants).names
            self.intern, self.done = outer
        template = self.template[key]
        shown = dict(zip(tree.variables, op.variables, strict=True))
        return Installed(
            *template.again(self.intern, PLACES, op.spec.terms),
            tuple(shown[v] for v in template.names),
        )

    def _install(self, op: Op, needs: Needs) -> Installed:
        side_by_side = op.spec.side_by_side
        wanted = (
            [_union_needs(op, needs)] * len(op.inputs) if side_by_side else input_needs(op, needs)
        )
        inputs, edges, ins = [], [], []
        for i, (child, child_needs) in enumerate(zip(op.inputs, wanted, strict=True)):
            names = (
                tuple(child_needs)
                if side_by_side
                else tuple([v for v in child.variables if v in child_needs])
            )
            base, source = _through(child)
            wants: Needs = {}
            for v, f in child_needs.items():
                if v in source and f:
                    add(wants, source[v], f)
            installed = self._below(op, base, wants)
            edges.append(
                self._edge(
                    op, i, child, names, needs=child_needs, installed=installed, source=source
                )
            )
            inputs.append(installed)
            ins.append(names)
        if side_by_side:
            edges = _alike(edges)
        names = self._outputs(op, needs, ins)
        layout = self._layout(op, names, needs, edges)
        step, member = self._step(op, names, ins)
        shape = Shape(
            step,
            op.stage,
            tuple([(i.shape, e) for i, e in zip(inputs, edges, strict=True)]),
            layout,
        )
        member = member.over(tuple([i.member for i in inputs]))
        return Installed(*self.intern(shape, member), names)

    def _below(self, op: Op, base: Op, wants: Needs) -> Installed:
        """An input; what is below a lift belongs to a level of its own, and so does what is
        evaluated once: one without windows.
        """
        outer = self.level, self.timing
        if isinstance(op.spec, p.SubqueryWindow):
            self.level = op.spec.level
        elif isinstance(op.spec, p.StaticSubplan):
            self.level, self.timing = (), self.timing.windowless(op.spec.again)
        installed = self.install(base, wants)
        self.level, self.timing = outer
        return installed

    def _outputs(self, op: Op, needs: Needs, ins: list[tuple[str, ...]]) -> tuple[str, ...]:
        if is_static(op.spec):
            # a static graph is a set: whole rows are told apart where they are read
            return op.variables
        if op.spec.passes_slots:
            return ins[0]  # rows go through as they come
        return tuple([v for v in op.variables if v in needs])

    def _layout(self, op: Op, names: tuple[str, ...], needs: Needs, edges: list[Edge]) -> Layout:
        if op.spec.passes_slots:
            facets = list(edges[0].layout.slots)
        elif is_static(op.spec):
            facets = [needs.get(v, NOTHING) | Facet.ID for v in names]
        else:
            facets = [needs.get(v, Facet.ID) for v in names]
        if op.windows is None:
            return Layout(tuple(facets), (), op.weighted, True)
        if isinstance(op.spec, p.Union):
            return Layout(tuple(facets), edges[0].layout.windows, op.weighted, False)
        return Layout(
            tuple(facets), tuple([self._span(op, w, edges) for w in op.windows]), op.weighted, False
        )

    def _span(self, op: Op, window: int, edges: list[Edge]) -> Span:
        """Whether a window's rows need ``hi`` and ``prev``."""
        below = []
        for i, (child, edge) in enumerate(zip(op.inputs, edges, strict=True)):
            if child.windows is not None and window in child.windows:
                span = edge.layout.windows[child.windows.index(window)]
                below.append(Span(span.hi, span.prev or op.spec.makes_set(i)))
        if not below:
            return Span(False, False)
        several = isinstance(op.spec, p.Join) and len(below) > 1
        absent = isinstance(op.spec, p.Union) and len(below) < len(op.inputs)
        own = several or absent or op.spec.has_instants
        return Span(own or any(b.hi for b in below), any(b.prev for b in below))

    def _edge(
        self,
        op: Op,
        i: int,
        child: Op,
        names: tuple[str, ...],
        *,
        needs: Needs,
        installed: Installed,
        source: dict[str, str],
    ) -> Edge:
        places = {v: n for n, v in enumerate(installed.names)}
        slots = tuple([places.get(source.get(v, ""), -1) for v in names])
        base = installed.shape.layout
        spans = base.windows
        index: tuple[int, ...] = tuple(range(len(spans)))
        if isinstance(op.spec, p.Union) and op.windows is not None:
            assert child.windows is not None, "both inputs have event times"
            index = tuple(
                [child.windows.index(w) if w in child.windows else -1 for w in op.windows]
            )
            spans = tuple([base.windows[n] if n >= 0 else Span(True, False) for n in index])
        layout = Layout(tuple([needs[v] for v in names]), spans, base.weighted, base.report)
        exchange = op.exchange[i]
        by = (
            None
            if exchange is None
            else tuple([names.index(v) for v in exchange if v])
            if exchange != HOME
            else ()
        )
        return Edge(slots, index, layout, by)

    def _windows(self, op: Op) -> Member:
        windows = op.windows or ()
        if windows not in self.rows:
            self.rows[windows] = self.timing.of_rows(windows)
        return self.rows[windows]

    def _schedule(self, carried: tuple[int, ...] | None = None) -> Member:
        return self.timing.of_reports(self.level, carried or ())

    def _drawing(self, *expressions: Expression) -> str:
        """The query that random expressions belong to: its values are its own."""
        return self.name if any(map(random, expressions)) else ""

    def _step(
        self, op: Op, names: tuple[str, ...], ins: list[tuple[str, ...]]
    ) -> tuple[s.Step, Member]:
        spec = op.spec
        match spec:
            case p.Match() | p.Entailed() | p.Star() | p.Scan() | p.Constant():
                return leaf(spec, op.variables, names, self.since, self.timing.again)
            case p.CountWindow(_, _, keys, bag):
                return s.CountWindow(tuple(ins[0].index(k) for k in keys), bag), self._windows(op)
            case p.Session(_, ended, bag):
                return s.Session(bag, ended), self._windows(op)
            case p.SubqueryWindow(_, _, weighted):
                return s.SubqueryWindow(weighted), self._windows(op)
            case p.StaticSubplan(again):
                return s.StaticSubplan(op.weighted), self._windows(op)._replace(again=again)
            case p.Select(pattern, beside):
                places, constants = positions(pattern.positions, op.variables, names)
                every = (*places, *map(op.variables.index, beside))
                return s.Select(every, tuple(op.variables.index(v) for v in names)), Member(
                    constants=constants
                )
            case p.Filter(condition, draw):
                lifted, terms = parametrise(condition, ins[0])
                member = Member(constants=terms, query=self._drawing(condition))
                return s.Filter(
                    lifted, tuple(ins[0].index(v) for v in names), draw_slots(draw, ins[0])
                ), member
            case p.Extend(expression, draw):
                lifted, terms = parametrise(expression, ins[0])
                kept_ = tuple(ins[0].index(v) for v in names if v in ins[0])
                member = self._windows(op)._replace(
                    constants=terms, query=self._drawing(expression)
                )
                return s.Extend(lifted, kept_, draw_slots(draw, ins[0]), self.tuples), member
            case p.Closure(many, ends, seed):
                given = (ends[0] is not None, ends[1] is not None)
                shown = tuple(op.variables.index(v) for v in names)
                return s.Closure(many, given, shown, seed), Member(constants=ends)
            case p.Union():
                return s.Union(), Member()
            case p.Occur():
                return s.Occur(), self._windows(op)
            case p.Hold():
                return s.Hold(), self._windows(op)
            case p.Join():
                return self._join(op, spec, names, ins), self._windows(op)
            case p.Emit():
                member = (
                    self._schedule()._replace(query=self.name)
                    if self.every
                    else Member(query=self.name)
                )
                return s.Emit(
                    op.inputs[0].weighted, self.every, self.kinds if self.every else ()
                ), member
            case p.Rename() | p.Applied():
                raise AssertionError(f"a {type(spec).__name__} is in the edges, no step")
            case _:
                return self._above(op, spec, names, ins)

    def _join(
        self, op: Op, spec: p.Join, names: tuple[str, ...], ins: list[tuple[str, ...]]
    ) -> s.Join:
        left, right = op.inputs
        assert op.windows is not None and left.windows is not None and right.windows is not None, (
            "event times"
        )
        windows = tuple(
            (
                left.windows.index(w) if w in left.windows else -1,
                right.windows.index(w) if w in right.windows else -1,
            )
            for w in op.windows
        )
        sides, out, fills = key_sides(spec.keys, names, ins)
        return s.Join(*sides, out, fills, windows, spec.raw, spec.negative)

    def _above(
        self, op: Op, spec: _Above, names: tuple[str, ...], ins: list[tuple[str, ...]]
    ) -> tuple[s.Step, Member]:
        """The steps of the border and above it."""
        carried = op.inputs[0].windows
        rows = None if carried is None else self.timing.places(self.level, carried)
        match spec:
            case p.Report(listed, instant):
                return s.Report(self.kinds, rows or (), listed, instant), self._schedule(carried)
            case p.Deltas():
                return s.Deltas(self.kinds, rows or ()), self._schedule(carried)
            case p.Running(keys, aggregates):
                folded, kept = self._aggregates(op, keys, aggregates, names, ins[0])
                keyed = tuple(ins[0].index(k) for k in keys)
                return s.Running(keyed, folded, kept, self.tuples), Member()
            case p.Multiplicity(shown):
                return s.Multiplicity(shown), Member()
            case p.RExcept():
                return s.RExcept(), Member()
            case p.Net(output):
                return s.Net(output), Member()
            case p.Snapshot(output, windows, reports, listed, every):
                member = self.timing.of_snapshot(windows, reports, every=every)
                member = member._replace(query=self.name if every else "")
                kinds = self.timing.snapshot_kinds(windows, reports)
                return s.Snapshot(
                    output, kinds, reports.clock is not None, reports.nonempty, listed, every
                ), member
            case p.Panes(keys, aggregates, listed):
                folded, kept = self._aggregates(op, keys, aggregates, names, ins[0])
                slots = tuple(ins[0].index(k) for k in keys)
                return s.Panes(
                    self.kinds, rows or (), listed, slots, folded, kept, self.tuples
                ), self._schedule(carried)
            case p.RGroup(keys, aggregates, listed):
                folded, kept = self._aggregates(op, keys, aggregates, names, ins[0])
                slots = tuple(ins[0].index(k) for k in keys)
                return s.RGroup(
                    self.kinds, listed, slots, folded, kept, self.tuples
                ), self._schedule()
            case p.ReportJoin(kind, keys, _, condition, lasting):
                seen = names if kind.pairs else tuple(v for v in names if v in ins[0])
                sides, out, fills = key_sides(keys, seen, ins)
                lifted, member = self._condition(op, condition, ins)
                return s.ReportJoin(kind, *sides, out, fills, lifted, lasting), member
            case p.RDistinct():
                return s.RDistinct(), Member()
            case p.ROrder(keys, offset, limit, in_order):
                constants: list[Const] = []
                lifted_keys = tuple((by_slots(lift(e, constants), ins[0]), d) for e, d in keys)
                terms = tuple(c.term for c in constants)
                member = Member(constants=terms, query=self._drawing(*(e for e, _ in keys)))
                return s.ROrder(lifted_keys, offset, limit, in_order), member
            case p.Changes(output, listed):
                certain = not op.weighted and output is Output.ISTREAM
                return s.Changes(output, self.kinds, rows, listed, certain), self._schedule(carried)
            case _:
                assert_never(spec)

    def _condition(
        self, op: Op, condition: Expression | None, ins: list[tuple[str, ...]]
    ) -> tuple[Expression | None, Member]:
        """What pairs of rows must satisfy; a member has the windows of rows with event times."""
        member = self._windows(op) if op.windows else Member()
        if condition is None:
            return None, member
        lifted, terms = parametrise(condition, (*ins[0], *ins[1]))
        return lifted, member._replace(constants=terms, query=self._drawing(condition))

    def _aggregates(
        self,
        op: Op,
        keys: tuple[str, ...],
        specs: tuple[p.AggregateSpec, ...],
        names: tuple[str, ...],
        ins: tuple[str, ...],
    ) -> tuple[tuple[s.Aggregate, ...], tuple[int, ...]]:
        """Aggregates by slots, and which of (keys, aggregates) the output keeps."""
        folded = tuple(
            s.Aggregate(
                a.function, -1 if a.arg is None else ins.index(a.arg), a.distinct, a.separator
            )
            for a in specs
        )
        return folded, tuple(op.variables.index(v) for v in names)


def _union_needs(op: Op, needs: Needs) -> Needs:
    """What all inputs of a union must have: what is read above, and by what they are exchanged.

    With weights also all identities: those of a merge are joined by them, too, so that its parts
    are there once.
    """
    by = {v for exchange in op.exchange for v in exchange or () if v}
    if op.weighted or read_of_all(op):  # whole rows are compared
        by = set(op.variables)
    return {
        v: needs.get(v, NOTHING) | (Facet.ID if v in by else NOTHING)
        for v in op.variables
        if v in needs or v in by
    }


def _alike(edges: list[Edge]) -> list[Edge]:
    """The edges of a union, whose inputs must have the same columns."""
    if all(e.layout == edges[0].layout for e in edges):
        return edges
    spans = tuple(
        Span(any(w.hi for w in ws), any(w.prev for w in ws))
        for ws in zip(*(e.layout.windows for e in edges), strict=True)
    )
    weighted = any(e.layout.weighted for e in edges)
    layouts = [Layout(e.layout.slots, spans, weighted, e.layout.report) for e in edges]
    return [
        Edge(e.slots, e.windows, layout, e.exchange)
        for e, layout in zip(edges, layouts, strict=True)
    ]


def _through(op: Op) -> tuple[Op, dict[str, str]]:
    """The operator below projections, and for each name above its name there."""
    source = dict(zip(op.variables, op.variables, strict=True))
    while isinstance(op.spec, p.Rename):
        child = op.inputs[0]
        inner = dict(zip(op.variables, op.spec.sources, strict=True))
        source = {v: inner[n] for v, n in source.items() if inner.get(n) in child.variables}
        op = child
    return op, source
