"""Builds the steps of operators and the fields of their members: names by slots, constants as
parameters.

A step follows from an operator, the names of its output slots and those of its inputs' slots. Steps
are built in two ways: from an operator's reads to install it (``installer``), and from all its
variables to compare it with other operators (``share_equal_operators``).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import assert_never

from levada.core.event_time import MIN, WindowKind
from levada.core.expressions import Const, Expression, random
from levada.core.query_model import Output
from levada.plan.binding.edges import places_of_windows
from levada.plan.binding.leaves import Leaf, Timing, by_range, is_static, leaf, positions
from levada.plan.binding.required_facets import lift
from levada.plan.binding.slot_resolution import (
    arranged_sides,
    draw_slots,
    key_sides,
    parameterize_expression,
    pick_step,
    resolve_slots,
    slots_of,
)
from levada.plan.execution import steps as s
from levada.plan.execution.shapes import Member
from levada.plan.execution.sharing_demand import with_widest_windows
from levada.plan.logical.nodes import Query, Reporting
from levada.plan.logical.properties import Analysis
from levada.plan.lowering.query_levels import top_windows
from levada.plan.physical import operators as p
from levada.plan.physical.operators import Op


def is_wide(op: Op) -> bool:
    """Whether an operator makes a set of rows for windows of any length."""
    return isinstance(op.spec, p.Occur) and op.spec.wide


def _windows_of(op: Op) -> tuple[int, ...] | None:
    """Returns the windows whose times an operator uses; for a pick of report rows, those of the
    rows.
    """
    if isinstance(op.spec, p.Pick) and op.windows is None:
        (report,) = op.inputs
        return report.inputs[0].windows
    return op.inputs[0].windows if isinstance(op.spec, p.Narrow) else op.windows


_Border = p.Report | p.Deltas | p.Panes | p.Changes
_PerReport = p.ReportJoin | p.RGroup | p.RDistinct | p.RExcept | p.ROrder | p.RNumber
_ByChanges = p.Running | p.Multiplicity | p.Net | p.Snapshot | p.Standing
_ByNumber = p.Numbered | p.Instants | p.Narrow | p.Recent
_Above = _Border | _PerReport | _ByChanges
# operators whose rows change if elements before the start count
_FROM_START = (
    p.CountWindow | p.UserOperator | p.Recent | p.Session | p.SubqueryWindow | p.StaticSubplan
)


class Steps:
    """Builds the steps of one query's operators in plan version ``since``, level by level.

    ``data``: the version of the static files. ``reread_graphs``: the static graphs at whose
    replacement the query, which has no windows, is answered again. ``apart``: the query shares no
    operators, because it has leaves of its own. ``site``: it shares none with operators of another
    region, by the same means.
    """

    def __init__(
        self,
        query: Query,
        name: str,
        start: int,
        *,
        show_empty: bool = False,
        since: int = 0,
        data: int = 0,
        reread_graphs: Collection[str | None] = (),
        apart: bool = False,
    ) -> None:
        read = Analysis().properties_of(query.pattern)
        by_changes = read.derived  # only the outermost operator of these knows the report policy
        self.show_empty = show_empty and not by_changes
        timed_query = replace(query, reports=Reporting()) if by_changes else query
        self.timing = Timing(
            timed_query, start, self.show_empty, tuple(sorted(reread_graphs, key=str))
        )
        self.since, self.data = since, data
        self.name, self.apart, self.site = name, apart, ""
        self.rows: dict[tuple[tuple[int, ...], bool, bool], Member] = {}
        self.level = top_windows(query)
        self.tuples = read.tuples

    @property
    def kinds(self) -> tuple[WindowKind, ...]:
        """The kinds of the windows that decide the reports of the current level."""
        return self.timing.kinds(self.level)

    def _windows(self, op: Op, family: str = "") -> Member:
        """Returns the member with the windows of an operator's rows.

        Rows from before the query's start are recognized by their least times where they are
        reported. So queries share rows regardless of their start. This does not hold for rows that
        other rows take back: those may be gone together.
        """
        timed = (
            op.weighted or any(i.weighted for i in op.inputs) or isinstance(op.spec, _FROM_START)
        )
        loose = (isinstance(op.spec, p.Join) and op.spec.relaxed) or is_wide(op)
        loose = loose or isinstance(op.spec, p.RelaxedStream | p.Numbered | p.Instants)
        member = self.rows_in(_windows_of(op) or (), timed=timed, loose=loose)
        return member._replace(query=family) if family else member

    def rows_in(
        self, windows: tuple[int, ...], *, timed: bool = False, loose: bool = False
    ) -> Member:
        """Returns the windows of rows.

        ``timed``: the start of the query matters. ``loose``: see ``sharing_demand``.
        """
        key = windows, timed, loose
        if key not in self.rows:
            member = self.timing.member_of_rows(windows)
            member = member if timed else member._replace(start=MIN)
            self.rows[key] = (
                member._replace(windows=with_widest_windows(member.windows)) if loose else member
            )
        return self.rows[key]

    def _schedule(self, carried: tuple[int, ...] | None = None) -> Member:
        return self.timing.member_of_reports(self.level, carried or ())

    def _drawing_query(self, *expressions: Expression) -> str:
        """Returns the query that owns random expressions; their values are its own."""
        return self.name if any(map(random, expressions)) else ""

    def _sort_keys(
        self, keys: tuple[tuple[Expression, bool], ...], names: tuple[str, ...]
    ) -> tuple[tuple[tuple[Expression, bool], ...], Member]:
        """Returns sort keys over slots, and the member with their constants."""
        constants: list[Const] = []
        lifted = tuple((resolve_slots(lift(e, constants), names), d) for e, d in keys)
        terms = tuple(c.term for c in constants)
        return lifted, Member(constants=terms, query=self._drawing_query(*(e for e, _ in keys)))

    def step(
        self, op: Op, names: tuple[str, ...], ins: list[tuple[str, ...]]
    ) -> tuple[s.Step, Member]:
        """Returns the step of an operator with output slots ``names`` over inputs with slots
        ``ins``.
        """
        spec = op.spec
        match spec:
            case p.Match() | p.Entailed() | p.Star() | p.Scan() | p.Constant():
                return self._leaf_step(spec, op.variables, names)
            case p.CountWindow(_, _, keys, bag):
                return s.CountWindow(slots_of(keys, ins[0]), bag), self._windows(op)
            case p.UserOperator():
                return self._user_operator_step(op, spec, names, ins[0]), self._windows(op)
            case p.Numbered() | p.Instants() | p.Narrow() | p.Recent():
                return self._numbered_step(op, spec, names, ins[0]), self._windows(op)
            case p.Session(_, ended, bag):
                return s.Session(bag, ended), self._windows(op)
            case p.SubqueryWindow(_, _, weighted):
                return s.SubqueryWindow(weighted), self._windows(op)
            case p.StaticSubplan(graphs):
                member = self._windows(op)._replace(reread_graphs=graphs)
                return s.StaticSubplan(op.weighted), member
            case p.Select(pattern, beside):
                places, constants = positions(pattern.positions, op.variables, names)
                slots = (*places, *map(op.variables.index, beside))
                kept_slots = slots_of(names, op.variables)
                return s.Select(slots, kept_slots), Member(constants=constants)
            case p.Filter(condition, draw):
                lifted, terms = parameterize_expression(condition, ins[0])
                member = Member(constants=terms, query=self._drawing_query(condition))
                kept_ = slots_of(names, ins[0])
                return s.Filter(lifted, kept_, draw_slots(draw, ins[0]), self.tuples), member
            case p.Pick():
                step, constants = pick_step(spec, names, ins[0], self.tuples)
                return step, self._windows(op)._replace(constants=constants)
            case p.ByWindow():
                return s.ByWindow(places_of_windows(op)), Member()
            case p.Extend(expression, draw):
                lifted, terms = parameterize_expression(expression, ins[0])
                kept_ = tuple(ins[0].index(v) for v in names if v in ins[0])
                drawing = self._drawing_query(expression)
                member = self._windows(op)._replace(constants=terms, query=drawing)
                return s.Extend(lifted, kept_, draw_slots(draw, ins[0]), self.tuples), member
            case p.Closure(many, ends, seed):
                bound_ends = (ends[0] is not None, ends[1] is not None)
                shown = slots_of(names, op.variables)
                return s.Closure(many, bound_ends, shown, seed), Member(constants=ends)
            case p.Union():
                return s.Union(), Member()
            case p.Occur(wide, relaxed):
                return s.Occur(wide, relaxed), self._windows(op)
            case p.Hold():
                return s.Hold(), self._windows(op)
            case p.Join() | p.MultiwayJoin() | p.LinkedJoin():
                family = spec.family if isinstance(spec, p.Join) else ""
                return self._join_step(op, spec, names, ins), self._windows(op, family)
            case p.Arrange():
                return self._arrange_step(op, spec, names, ins[0])
            case p.Emit():
                return self._emit_step(op)
            case p.Rename() | p.Applied():
                raise AssertionError(f"a {type(spec).__name__} is in the edges, no step")
            case _:
                return self._report_step(op, spec, names, ins)

    def _arrange_step(
        self, op: Op, spec: p.Arrange, names: tuple[str, ...], ins: tuple[str, ...]
    ) -> tuple[s.Step, Member]:
        by, kept = (tuple(map(ins.index, columns)) for columns in (spec.keys, names))
        if isinstance(spec, p.ArrangeStream):
            relaxed = isinstance(spec, p.RelaxedStream)
            made = s.RelaxedStream if relaxed else s.ArrangeStream
            return made(by, kept, spec.raw), self._windows(op)
        keeping: type[s.Arrange] = s.Arrange
        if isinstance(spec, p.ArrangeDistinct):
            keeping = s.ArrangeDistinct
        elif isinstance(spec, p.RelaxedStatic):
            keeping = s.RelaxedStatic
        return keeping(by, kept), Member(since=self.data)  # an arrangement is found by it

    def _emit_step(self, op: Op) -> tuple[s.Step, Member]:
        member = self._schedule() if self.show_empty else Member()
        kinds = self.kinds if self.show_empty else ()
        emit = s.Emit(op.inputs[0].weighted, self.show_empty, kinds)
        return emit, member._replace(query=self.name)

    def _leaf_step(
        self, spec: Leaf, variables: tuple[str, ...], names: tuple[str, ...]
    ) -> tuple[s.Step, Member]:
        """Returns the step of a leaf; its member belongs to the query if the query
        shares nothing.
        """
        step, member = leaf(spec, variables, names, self.since, self.timing.reread_graphs)
        owner = self.name if self.apart else ""
        if self.site and not owner and not is_static(spec):
            owner = f"+{self.site}"  # no query has such a name
        return step, member._replace(query=owner) if owner else member

    def _numbered_step(
        self, op: Op, spec: _ByNumber, names: tuple[str, ...], ins: tuple[str, ...]
    ) -> s.Step:
        """Returns the steps of operators that use the numbers of rows."""
        match spec:
            case p.Numbered(window, bag):
                return s.Numbered(self.timing.query.windows[window].stream, self.site, bag)
            case p.Instants():
                return s.Instants()
            case p.Narrow():
                return s.Narrow()
            case p.Recent():
                return self._recent_step(op, spec, names, ins)

    def _user_operator_step(
        self, op: Op, spec: p.UserOperator, names: tuple[str, ...], ins: tuple[str, ...]
    ) -> s.UserOperator:
        columns = dict(zip(op.variables, spec.columns, strict=True))
        passed = {v: spec.source(v, op.variables) for v in names}
        out = tuple([columns[v] if (by := passed[v]) is None else ins.index(by) for v in names])
        read = dict(spec.input_columns)
        reads = tuple([(column, ins.index(v)) for column, v in spec.input_columns])
        return s.UserOperator(spec.iri, tuple(ins.index(read[k]) for k in spec.keys), reads, out)

    def _recent_step(
        self, op: Op, spec: p.Recent, names: tuple[str, ...], ins: tuple[str, ...]
    ) -> s.Recent:
        assert op.windows is not None, "event times"
        columns = [(past, ins.index(v)) for past, v in zip(spec.past, spec.sources, strict=True)]
        out = tuple([columns[op.variables.index(v)] for v in names])
        return s.Recent(tuple(map(ins.index, spec.keys)), out, op.windows.index(spec.window))

    def _join_step(
        self,
        op: Op,
        spec: p.Join | p.MultiwayJoin | p.LinkedJoin,
        names: tuple[str, ...],
        ins: list[tuple[str, ...]],
    ) -> s.Join | s.MultiwayJoin | s.LinkedJoin:
        assert op.windows is not None, "event times"
        input_windows = [rows.windows or () for rows in op.inputs]
        windows = [tuple([o.index(w) if w in o else -1 for o in input_windows]) for w in op.windows]
        first = {v: (i, at) for i in range(len(ins))[::-1] for at, v in enumerate(ins[i])}
        if isinstance(spec, p.LinkedJoin):
            names_ = sorted(
                {v for input_windows in spec.shared for v in input_windows}, key=op.variables.index
            )
            linked = zip(spec.shared, ins, strict=True)
            shared = tuple(
                [
                    tuple([(names_.index(v), each.index(v)) for v in input_windows])
                    for input_windows, each in linked
                ]
            )
            out = tuple([first[v] for v in names])
            return s.LinkedJoin(shared, out, tuple(windows), spec.raw, spec.copied)
        if isinstance(spec, p.MultiwayJoin):
            keys = tuple([tuple(map(each.index, spec.keys)) for each in ins])
            step = s.AdaptiveJoin if isinstance(spec, p.AdaptiveJoin) else s.MultiwayJoin
            return step(keys, tuple([first[v] for v in names]), tuple(windows), spec.raw)
        pairs = tuple([(left, right) for left, right in windows])
        raw, sign, relaxed = spec.raw, spec.negative, spec.relaxed
        for i, rows in enumerate(op.inputs):
            if isinstance(rows.spec, p.Arrange):
                sides, out, fills = arranged_sides(rows.spec.keys, names, ins, i)
                streams = isinstance(rows.spec, p.ArrangeStream)
                made = s.StreamJoin if streams else s.ArrangedJoin
                return made(*sides, out, fills, pairs, raw, sign, relaxed, i)
        sides, out, fills = key_sides(spec.keys, names, ins)
        return s.Join(*sides, out, fills, pairs, raw, sign, relaxed)

    def _report_step(
        self, op: Op, spec: _Above, names: tuple[str, ...], ins: list[tuple[str, ...]]
    ) -> tuple[s.Step, Member]:
        """Returns the steps of report operators and those above them."""
        carried = op.inputs[0].windows
        rows = None if carried is None else self.timing.places(self.level, carried)
        match spec:
            case p.Report(enumerated, instant):
                return s.Report(self.kinds, rows or (), enumerated, instant), self._schedule(
                    carried
                )
            case p.Deltas(enumerated):
                return s.Deltas(self.kinds, rows or (), enumerated), self._schedule(carried)
            case p.Running() | p.Multiplicity() | p.Net() | p.Snapshot() | p.Standing():
                return self._change_step(op, spec, names, ins)
            case p.RExcept():
                return s.RExcept(), Member()
            case p.Panes(keys, aggregates, enumerated):
                folded, kept = self._aggregates(op, keys, aggregates, names, ins[0])
                slots = slots_of(keys, ins[0])
                return s.Panes(
                    self.kinds, rows or (), enumerated, slots, folded, kept, self.tuples
                ), self._schedule(carried)
            case p.RGroup(keys, aggregates, enumerated, apart):
                folded, kept = self._aggregates(op, keys, aggregates, names, ins[0])
                slots = slots_of(keys, ins[0])
                return s.RGroup(
                    self.kinds, enumerated, slots, folded, kept, self.tuples, apart
                ), self._schedule()
            case p.ReportJoin(kind, keys, _, condition, lasting):
                seen = names if kind.returns_pairs else tuple(v for v in names if v in ins[0])
                lifted, member = self._condition(op, condition, ins)
                if isinstance(right := op.inputs[1].spec, p.Arrange):
                    sides, out, fills = arranged_sides(right.keys, seen, ins, 1)
                    arguments = kind, *sides, out, fills, lifted, lasting
                    return s.ArrangedReportJoin(*arguments), member
                sides, out, fills = key_sides(keys, seen, ins)
                return s.ReportJoin(kind, *sides, out, fills, lifted, lasting), member
            case p.RDistinct():
                return s.RDistinct(), Member()
            case p.ROrder(keys, offset, limit, in_order):
                lifted_keys, member = self._sort_keys(keys, ins[0])
                return s.ROrder(lifted_keys, offset, limit, in_order), member
            case p.RNumber(variable, function, partition, keys):
                lifted_keys, member = self._sort_keys(keys, ins[0])
                by = slots_of(partition, ins[0])
                return s.RNumber(ins[0].index(variable), function, by, lifted_keys), member
            case p.Changes(output, enumerated, ranged):
                member = self._schedule(carried)
                if ranged and not enumerated and (step := by_range(self.kinds, rows, member)):
                    return step, member
                certain = not op.weighted and output is Output.ISTREAM
                return s.Changes(output, self.kinds, rows, enumerated, certain), member
            case _:
                assert_never(spec)

    def _change_step(
        self, op: Op, spec: _ByChanges, names: tuple[str, ...], ins: list[tuple[str, ...]]
    ) -> tuple[s.Step, Member]:
        """Returns the steps of operators that are kept by changes."""
        match spec:
            case p.Running(keys, aggregates, enumerated):
                folded, kept = self._aggregates(op, keys, aggregates, names, ins[0])
                keyed = slots_of(keys, ins[0])
                kinds = self.kinds if enumerated else ()
                member = self._schedule() if enumerated else Member()
                return s.Running(keyed, folded, kept, kinds, enumerated, self.tuples), member
            case p.Standing():
                return s.Standing(self.kinds), self._schedule()
            case p.Multiplicity(shown):
                return s.Multiplicity(shown), Member()
            case p.Net(output):
                return s.Net(output), Member()
            case p.Snapshot(output, windows, reports, enumerated, show_empty):
                member = self.timing.member_of_snapshot(windows, reports, show_empty=show_empty)
                member = member._replace(query=self.name if show_empty else "")
                kinds = self.timing.snapshot_kinds(windows, reports)
                return s.Snapshot(
                    output,
                    kinds,
                    reports.clock is not None,
                    reports.nonempty,
                    enumerated,
                    show_empty,
                ), member
            case _:
                assert_never(spec)

    def _condition(
        self, op: Op, condition: Expression | None, ins: list[tuple[str, ...]]
    ) -> tuple[Expression | None, Member]:
        """Returns the condition on pairs of rows; its member has the windows of rows with event
        times.
        """
        member = self._windows(op) if op.windows else Member()
        if condition is None:
            return None, member
        lifted, terms = parameterize_expression(condition, (*ins[0], *ins[1]))
        return lifted, member._replace(constants=terms, query=self._drawing_query(condition))

    def _aggregates(
        self,
        op: Op,
        keys: tuple[str, ...],
        specs: tuple[p.AggregateSpec, ...],
        names: tuple[str, ...],
        ins: tuple[str, ...],
    ) -> tuple[tuple[s.Aggregate, ...], tuple[int, ...]]:
        """Returns aggregates by slots, and the (keys, aggregates) that the output keeps."""
        folded = tuple(
            s.Aggregate(
                a.function, -1 if a.arg is None else ins.index(a.arg), a.distinct, a.separator
            )
            for a in specs
        )
        return folded, slots_of(names, op.variables)
