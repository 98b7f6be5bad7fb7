"""Lowers the pattern of one level to operators, node by node.

An exchange is placed where an operator needs rows with equal values together and they are not yet
together. There are three physical forms: co-partitioned if the keys agree, staged if they do not,
and at the operator's home for a join without a key. ``report`` turns rows into report rows where an
operator needs them. A conjunction joins rows with event times first, in the cheapest order. Report
rows follow, then paths over windows, which are searched from bound ends, and static rows last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import field, replace
from itertools import count
from typing import TYPE_CHECKING

from levada.core.event_time import WindowKind
from levada.core.expressions import Expression, Var, per_report, random, variables
from levada.core.frozen import frozen
from levada.plan.logical import nodes as a
from levada.plan.logical.properties import Analysis, Properties, adds_up
from levada.plan.logical.traversal import level
from levada.plan.lowering.join_order import Orders, join_all
from levada.plan.lowering.query_levels import Level, Mode
from levada.plan.lowering.scans import Leaves, graphs_read
from levada.plan.physical import build, build_incremental, build_joins, build_reports
from levada.plan.physical import operators as p
from levada.plan.physical.operators import HOME, Op
from levada.plan.physical.partitioning import connected_groups, join_keys, place

if TYPE_CHECKING:
    from levada.plan.statistics.choose_join_strategy import JoinStrategyRequest

Grouped = tuple[tuple[str, ...], tuple[p.AggregateSpec, ...], tuple[str, ...]]
"""The keys of a group, its aggregates, and their names."""


@frozen
class Shared:
    """State that all levels of a query share: properties of its parts, and numbers of fresh
    variables and of random draws; ``joins``: the join form.
    """

    analysis: Analysis
    fresh: count[int] = field(default_factory=lambda: count(1))
    draws: count[int] = field(default_factory=lambda: count(1))
    joins: JoinStrategyRequest | None = None
    orders: Orders | None = None

    def join(
        self, parts: Sequence[Op], conditions: Sequence[Expression] = (), *, tuples: bool = False
    ) -> Op:
        """Joins all parts; ``tuples``: by columns of tuples, in which NULL equals nothing."""
        return join_all(parts, conditions, self.joins, self.orders, tuples=tuples)


@frozen
class PatternLowering:
    """Lowers the nodes of one level of a query.

    ``derived`` lowers a sub-query to rows that are the content of its window.
    """

    q: a.Query
    at: Level
    leaves: Leaves
    shared: Shared
    derived: Callable[[a.SubQuery, Level], Op]

    def node(self, node: a.Node) -> Op:
        """Returns the operators of a node."""
        match node:
            case a.Unit():
                return build.constant((), ((),))
            case a.Values(names, rows):
                return build.constant(names, rows)
            case a.Scan(source, columns, _, True):
                return build_incremental.hold(self.leaves.scan(source, columns, ()))
            case a.Scan():
                return self.leaves.rows(node)
            case a.SubQuery():
                return self._content(node)
            case a.Recent():
                return self._recent(node)
            case a.TripleArrivals():
                return self.leaves.occurrences(node)
            case a.Bgp(source, patterns):
                return self.shared.join(self.leaves.bgp(source, patterns))
            case a.Entailed():
                return self.leaves.entailed_pattern(node, node.source)
            case a.Join(left, right):
                return self._join((left, right))
            case a.Conjunction(parts, conditions):
                return self._join(parts, conditions)
            case a.LeftJoin(left, right, condition):
                return build_joins.left_join(*self._sides(left, right, condition), condition)
            case a.Minus(left, right):
                return build_joins.minus(*self._sides(left, right))
            case a.Exists(left, right, condition, negated):
                return build_joins.exists(
                    *self._sides(left, right, condition), condition, negated=negated
                )
            case a.Mark(left, right, condition, variable):
                return build_joins.mark(*self._sides(left, right, condition), condition, variable)
            case a.Closure():
                return self._closure(node)
            case a.Union(left, right):
                return self._union(self.node(left), self.node(right))
            case a.Except(left, right):
                return build_incremental.difference(
                    self.report(self.node(left)), self.report(self.node(right))
                )
            case a.Filter(child, condition):
                return self._filter(self.node(child), condition)
            case a.Extend(child, variable, expression):
                return self._extend(self.node(child), variable, expression)
            case a.Group():
                return self._group(node)
            case a.Project(child, names):
                return build.rename(self.node(child), names)
            case a.Distinct(child):
                return self._distinct(self.node(child), child)
            case a.OrderBy(child, keys):
                return self._order(child, keys)
            case a.Number():
                return self._number(node)
            case a.Slice(child, offset, limit):
                cut = self.report(self._cut(child))
                return build_reports.order(cut, (), offset, limit, in_order=_in_order(child))
            case a.Top(child, keys, offset, limit, shown):
                return build_reports.order(
                    self.report(self.node(child)), keys, offset, limit, shown
                )
            case a.Static(child):
                return self._static(child)

    def report(self, op: Op, by: tuple[str, ...] = (), stage: int = 0) -> Op:
        """Turns rows into report rows, or into changes if the level is kept by changes.

        ``by``, ``stage``: the variables and the stage of the next operator.
        """
        if self.at.mode is Mode.CHANGES:
            return build_incremental.deltas(op, op.variables)
        if op.by_changes:
            return build_incremental.standing(op, () if by == HOME else by, stage)
        return build_reports.report(
            op, self.at.enumerated, instant=self.at.mode is Mode.INSTANT, by=by, stage=stage
        )

    def nonempty_by(self) -> tuple[Op, ...]:
        """Returns for each window of this level, in order, a mark that it is not empty."""
        parts = level(self.at.asked.pattern)
        leaf_nodes = (part for part in parts if isinstance(part, (a.Scan, a.SubQuery)))
        leaves = sorted(leaf_nodes, key=lambda leaf: leaf.source.index)
        return tuple(build_incremental.nonempty_marks(self.node(leaf)) for leaf in leaves)

    def _content(self, node: a.SubQuery) -> Op:
        """Returns a sub-query as a window of this level."""
        rows, index = self.derived(node, self.at), node.source.index
        if self.q.windows[index].window.kind is WindowKind.COUNT:
            rows = self.leaves.count_window_changes(rows, index, node.partition)
        names, sources = tuple(v for _, v in node.columns), tuple(c for c, _ in node.columns)
        return build_incremental.rename_to_level(rows, names, sources)

    def _recent(self, node: a.Recent) -> Op:
        """Joins current rows with the last rows of their keys."""
        left, right = node.left, node.right
        if isinstance(left, a.Scan) and isinstance(right, a.Scan):
            columns = [c for c, _ in (*left.columns, *right.columns)]
            rows, variable = self.leaves.every_row(right, columns)
        else:
            assert isinstance(left, a.SubQuery) and isinstance(right, a.SubQuery), "two leaves"
            rows, variable = self.derived(right, self.at), str
        both = {v for _, v in right.columns}
        shown = [(v, variable(c), True) for c, v in right.columns]
        shown += [(v, variable(c), False) for c, v in left.columns if v not in both]
        windows = left.source.index, right.source.index
        count = self.q.windows[right.source.index].window.count
        return build.recent(rows, windows, count, tuple(map(variable, right.partition)), shown)

    def _static(self, node: a.Node) -> Op:
        """Lowers a part that reads static data alone, as a query without windows.

        Paths over unchanging data are rows without times.
        """
        stays = isinstance(node, a.Closure) and not self.leaves.replaceable
        if stays or not self.at.windows:
            return self.node(node)
        reread_graphs = self.leaves.replaceable & graphs_read(self.q, node)
        at = replace(self.at, windows=(), enumerated=True, turning=False)
        leaves = replace(self.leaves, q=replace(self.q, windows=()))
        apart = PatternLowering(self.q, at, leaves, self.shared, self.derived)
        return build_joins.static_subplan(
            apart.report(apart.node(node)), reread_graphs, len(self.q.windows)
        )

    def _sides(
        self, left: a.Node, right: a.Node, condition: Expression | None = None
    ) -> tuple[Op, Op]:
        """Returns two sides, one of which decides on the other, as report rows.

        Static rows on the right stay as they are.
        """
        one, other = self.node(left), self.node(right)
        if not self.at.windows or other.windows != () or one.windows == ():
            return self._meet_sides(one, other)
        late = condition is not None and per_report(condition)
        return self.report(one) if late or one.by_changes else one, other

    def _meet_sides(self, one: Op, other: Op) -> tuple[Op, Op]:
        """Returns two parts as report rows in the same place."""
        keys = join_keys(one, other)[2]
        raised = tuple(build.occur(op, keys if keys != HOME else ()) for op in (one, other))
        stage = place(raised, keys)[0] if keys != HOME else 0
        left, right = (self.report(op, keys, stage) for op in raised)
        return left, right

    def _extend(self, op: Op, variable: str, expression: Expression) -> Op:
        op = self.report(op) if per_report(expression) else op
        return build.extend(op, variable, expression, self._draw(op, expression))

    def _filter(self, op: Op, condition: Expression) -> Op:
        op = self.report(op) if per_report(condition) else op
        return build.filter_(op, condition, self._draw(op, condition))

    def _draw(self, op: Op, expression: Expression) -> p.Draw | None:
        return build.draw_source(op, next(self.shared.draws)) if random(expression) else None

    def _number(self, node: a.Number) -> Op:
        """Lowers numbers of rows: they take the place of a constant."""
        op = build.extend(self.report(self.node(node.child)), node.variable, build.ZERO)
        op = build.bind_missing(op, node.partition)
        return build_reports.number(op, node.variable, node.function, node.partition, node.keys)

    def _order(
        self, child: a.Node, keys: tuple[tuple[Expression, bool], ...], shown: Sequence[str] = ()
    ) -> Op:
        rows = self.report(self.node(child))
        return build_reports.order(rows, keys, 0, None, tuple(shown) or None)

    def _cut(self, node: a.Node) -> Op:
        """Lowers ORDER BY with LIMIT; equal rows are ordered by the shown variables."""
        if isinstance(node, a.Project) and isinstance(node.child, a.OrderBy):
            ordered = self._order(node.child.child, node.child.keys, node.variables)
            return build.rename(ordered, node.variables)
        return self.node(node)

    def _union(self, left: Op, right: Op) -> Op:
        if (left.windows is None, left.by_changes) != (right.windows is None, right.by_changes):
            left, right = self.report(left), self.report(right)
        return build.union(left, right)

    def _closure(self, node: a.Closure, beside: Op | None = None) -> Op:
        """Lowers paths: over unchanging static data once, as rows; over other data for each report.

        ``beside``: report rows that the paths are joined with; the search starts from an end that
        they bind.
        """
        inputs = [build.rename(self.node(node.child), (node.start, node.end))]
        if node.zero is not None:
            inputs.append(build.rename(self.node(node.zero), (node.start,)))
        if any(op.windows != () or op.weighted for op in inputs):
            inputs = [self.report(op) for op in inputs]
        bound = (
            () if beside is None else tuple(v for v in beside.variables if v not in beside.maybe)
        )
        seed = next((end for end, name in enumerate((node.start, node.end)) if name in bound), None)
        if beside is None or seed is None or node.ends != (None, None):
            return build_joins.closure(inputs, node.many, node.ends)
        seeds = build.rename(beside, ((node.start, node.end)[seed],))
        return build_joins.closure([*inputs, seeds], node.many, node.ends, seed)

    def _join(self, parts: Sequence[a.Node], conditions: Sequence[Expression] = ()) -> Op:
        """Joins all parts and applies each condition as early as possible."""
        paths = [part for part in parts if self._is_searched(part)]
        operators = [op for part in parts if part not in paths for op in self._operators(part)]
        tuples = self._properties.tuples
        if not paths and all(op.windows is not None for op in operators):
            return self.shared.join(operators, conditions, tuples=tuples)
        if tuples:
            operators = _require_keys(operators)
        timed = [op for op in operators if op.windows is not None]
        reported = [self.report(op) for op in operators if op.windows is None]
        static = [op for op in timed if self._is_static(op)]
        moving = [op for op in timed if op not in static]
        always = {v for op in moving for v in op.variables if v not in op.maybe}
        # a condition without variables is evaluated on any rows, if there are some here
        early = [c for c in conditions if moving and set(variables(c)) <= always]
        if moving:
            reported = [self.report(self.shared.join(moving, early)), *reported]
        whole = self._join_report_rows(reported, [n for n in paths if isinstance(n, a.Closure)])
        for group in connected_groups(static):
            whole = build_reports.rjoin(whole, join_all(group))
        for condition in conditions:
            whole = build.filter_(whole, condition) if condition not in early else whole
        return whole

    def _is_searched(self, node: a.Node) -> bool:
        """Whether a part is paths over a window, which are searched after the other parts are
        joined.
        """
        if not self.at.windows or not isinstance(node, a.Closure):
            return False
        return self.shared.analysis.properties_of(node).reads_window

    def _is_static(self, op: Op) -> bool:
        return bool(self.at.windows) and op.windows == () and not isinstance(op.spec, p.Constant)

    def _operators(self, node: a.Node) -> list[Op]:
        """Returns the parts of a conjunction; each pattern of a basic graph pattern is a separate
        part.
        """
        if isinstance(node, a.Bgp):
            return self.leaves.bgp(node.source, node.patterns)
        return [self.node(node)]

    def _join_report_rows(self, reported: Sequence[Op], paths: Sequence[a.Closure]) -> Op:
        """Joins report rows, and searches paths from the ends that they bind."""
        whole: Op | None = None
        for op in reported:
            whole = op if whole is None else build_reports.rjoin(whole, op)
        left = list(paths)
        while left:
            there = set() if whole is None else set(whole.variables)
            path = next((n for n in left if there & {n.start, n.end}), left[0])
            left.remove(path)
            op = self.report(self._closure(path, whole))
            whole = op if whole is None else build_reports.rjoin(whole, op)
        assert whole is not None, "rows or paths"
        return whole

    def _group(self, node: a.Group) -> Op:
        child = self.node(node.child)
        specs = []
        for _, aggregate in node.aggregates:
            arg: str | None = None
            if isinstance(aggregate.arg, Var):
                arg = aggregate.arg.name
            elif aggregate.arg is not None:
                arg = f".arg{next(self.shared.fresh)}"
                child = self._extend(child, arg, aggregate.arg)
            specs.append(
                p.AggregateSpec(aggregate.function, arg, aggregate.distinct, aggregate.separator)
            )
        child = build.bind_missing(
            child, [*node.keys, *(s.arg for s in specs if s.arg is not None)]
        )
        names = tuple(name for name, _ in node.aggregates)
        follows = all(adds_up(aggregate) for _, aggregate in node.aggregates)
        return self.group(child, node, (node.keys, tuple(specs), names), adds_up=follows)

    def group(self, rows: Op, part: a.Node, asked: Grouped, *, adds_up: bool = True) -> Op:
        """Lowers GROUP BY over the rows of a part; ``adds_up``: its aggregates are incremental."""
        keys, specs, names = asked
        if self.at.mode is Mode.CHANGES or (adds_up and self._is_kept_by_changes(rows, part)):
            on_rows = self.at.mode is Mode.CHANGES and self._properties.over_tuples
            marks = self.nonempty_by() if on_rows and not keys else ()
            rows = self._deltas(rows, keys)
            return build_incremental.running(
                rows, keys, specs, names, marks, enumerated=not on_rows
            )
        rows = self.report(rows) if self.at.mode is Mode.INSTANT or rows.by_changes else rows
        windows = self.q.windows if self.at.windows else ()
        return build_reports.group(rows, keys, specs, names, self.at.enumerated, windows=windows)

    def _distinct(self, rows: Op, part: a.Node) -> Op:
        if self.at.mode is Mode.CHANGES or self._is_kept_by_changes(rows, part):
            return build_incremental.distinct(self._deltas(rows, rows.variables))
        return build_reports.distinct(self.report(rows, rows.variables))

    def _is_kept_by_changes(self, rows: Op, part: a.Node) -> bool:
        """Whether comparing the rows of a part by changes is possible and better.

        It is possible if each row has instants at which it comes and goes.
        """
        timed = rows.windows is not None or rows.by_changes
        return self.at.turning and timed and not self.shared.analysis.properties_of(part).free

    def _deltas(self, rows: Op, keys: tuple[str, ...]) -> Op:
        """Returns rows as changes, in a level in which replaced data show at the next report."""
        return build_incremental.deltas(rows, keys, enumerated=self.at.asked.changing)

    @property
    def _properties(self) -> Properties:
        """The properties of this level."""
        return self.shared.analysis.properties_of(self.at.asked.pattern)


def _in_order(node: a.Node) -> bool:
    """Whether the solutions of a node come in a requested order."""
    if isinstance(node, (a.Project, a.Distinct, a.Slice)):
        return _in_order(node.child)
    return isinstance(node, (a.OrderBy, a.Top))


def _require_keys(parts: list[Op]) -> list[Op]:
    """Makes tuple columns that several parts share join keys: nulls do not join."""
    uses = Counter(v for op in parts for v in op.variables)
    return [build.require(op, [v for v in op.variables if uses[v] > 1]) for op in parts]
