"""Algebra -> physical operators of one query (design, section 2: monotone below, snapshot above).

``lower`` walks the algebra bottom-up. As long as everything is monotone (patterns, joins, filters,
BIND, UNION, projection) operators work on rows with event times. The first operator that is not
(OPTIONAL, MINUS, EXISTS, aggregates, DISTINCT, ORDER/LIMIT, or an expression that sees the report
time) turns its inputs into report rows. Exchanges are placed where an operator needs rows with
equal values together and they are not yet (three physical forms: co-partitioned where the keys
agree, staged where they do not; a join without a key runs at the operator's home).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from levada.algebra import nodes as a
from levada.algebra.incremental import level
from levada.algebra.show import children
from levada.model.expression import (
    AggregateFunction,
    Call,
    Expression,
    Function,
    Var,
    random,
    variables,
)
from levada.model.query import Form, Output
from levada.model.time import WindowKind
from levada.plan.lowering.join_order import join_all
from levada.plan.lowering.levels import Mode, level_of, top
from levada.plan.lowering.listing import free_parts, per_report, reads_window
from levada.plan.lowering.one_row_values import beside
from levada.plan.lowering.ordering import shown_order
from levada.plan.lowering.scans import Leaves, graphs_read
from levada.plan.lowering.scans import StreamFacts as StreamFacts
from levada.plan.lowering.static_subplans import alone, connected
from levada.plan.physical import build
from levada.plan.physical import build_changes as build_deltas
from levada.plan.physical import build_joins as pairing
from levada.plan.physical import operators as p
from levada.plan.physical.lineage import time_variables
from levada.plan.physical.operators import Op


@dataclass(frozen=True, slots=True)
class Lowered:
    """The physical query: its root (an Emit), and whether its reports need the times of all
    elements (``listed``).
    """

    root: Op
    listed: bool


def lower(
    query: a.Query,
    streams: Mapping[str, StreamFacts],
    *,
    every: bool = False,
    replaceable: Collection[str | None] = (),
) -> Lowered:
    """The physical operators of a query whose names have been resolved against ``streams``;
    ``every``: empty reports, too.

    ``replaceable``: the static graphs that may be replaced while the engine runs.
    """
    return _Lowering(query, Leaves(query, streams, frozenset(replaceable)), every).query()


class _Lowering:
    """The walk; holds the query's facts and counts fresh variables."""

    def __init__(self, query: a.Query, leaves: Leaves, every: bool) -> None:
        self.q = query
        self.leaves = leaves
        self.changing = bool(query.windows) and not leaves.replaceable.isdisjoint(
            graphs_read(query, query.pattern)
        )
        self.at = level_of(
            query, query.pattern, query.output, top(query), query.reports, every=every
        )
        if self.at.mode is Mode.REPORTS and (every or not query.windows or self.changing):
            self.at = replace(self.at, listed=True)
        self.tuples = any(isinstance(part, (a.Scan, a.Derived)) for part in level(query.pattern))
        self.continuous = reads_window(
            query.pattern
        )  # else the whole is static, and its order is what ORDER BY says
        self.fresh = 0
        self.draws = 0

    def query(self) -> Lowered:
        if self.q.form is Form.ASK:
            return Lowered(build.emit(self._ask(self.node(self.q.pattern))), True)
        return Lowered(build.emit(self._level(self.q.variables, self.q.output)), self.at.listed)

    def _level(self, names: Sequence[str], output: Output) -> Op:
        """The report rows of the level that is being lowered."""
        body = build.rename(self.node(self.at.pattern), names)
        if self.at.whole:
            own, reports, every = self.at.own, self.at.reports, self.at.every
            windows = self._witnesses()
            return build_deltas.snapshot(
                body, windows, output, own, reports, listed=self.at.listed, every=every
            )
        if self.at.mode is Mode.CHANGES and body.windows is None:
            return build_deltas.net(body, output)
        if output is Output.RSTREAM or self.at.reports.nonempty or free_parts(self.at.pattern):
            body = self._r(body)
        if output is not Output.RSTREAM:
            body = build.changes(body, output, self.at.listed, self._timed(body))
            if self.q.form is Form.SELECT and (keys := shown_order(self.at.pattern, names)):
                body = replace(build.order(body, keys, 0, None), weighted=body.weighted)
        return body

    def _derived(self, node: a.Derived) -> Op:
        """A query within the query: its level by itself, then its rows as content of the window."""
        outer = self.at
        self.at = level_of(self.q, node.child, node.output, node.level, a.Reporting(), every=False)
        counted = self.q.windows[node.source.index].window.kind is WindowKind.COUNT
        # a stream's elements are told apart by whole rows, and so are a relation's changes where
        # they are reports; else only what is read of a relation has to change
        seen = tuple(dict.fromkeys(c for c, _ in node.columns))
        names = seen if node.output is Output.RELATION and not outer.whole else _outputs(node.child)
        rows = self._level(names, node.output)
        self.at = outer
        lifted = build_deltas.lift(
            rows, node.source.index, node.level, weighted=node.output is Output.RELATION
        )
        if counted:
            lifted = self.leaves.last(lifted, node.source.index, node.partition)
        return build_deltas.named(
            lifted, tuple(v for _, v in node.columns), tuple(c for c, _ in node.columns)
        )

    def _ask(self, body: Op) -> Op:
        """ASK is: are there any solutions; a boolean per report, also where nothing matches."""
        count = (p.AggregateSpec(AggregateFunction.COUNT, None, False),)
        counted = build.group(body, (), count, (".ask",), True, self.q.windows)
        one = build.extend(counted, ".answer", Call(Function.GREATER, (Var(".ask"), build.ZERO)))
        answer = build.rename(one, (".answer",))
        if self.q.output is Output.RSTREAM:
            return answer
        return build.changes(
            answer, Output.ISTREAM, True, False
        )  # under I and D alike: the boolean when it changes

    def _timed(self, body: Op) -> bool:
        """Whether equal solutions have equal times, so that nothing can cancel: all times are in
        the solution.

        Over tuple streams the event time is a column (``ts``); if every window's is in the result,
        two equal solutions begin and end together, and a row that begins after it ends does not
        count.
        """
        if body.windows is None or body.weighted:
            return False
        times = time_variables(body)
        return all(w in times for w in self.at.own)

    def node(self, node: a.Node) -> Op:
        """The operators of a part; what static data alone answer is a leaf."""
        if self.at.own and self.continuous and alone(node, changing=bool(self.leaves.replaceable)):
            return self._once(node)
        return self._node(node)

    def _node(self, node: a.Node) -> Op:
        match node:
            case a.Unit():
                return build.constant((), ((),))
            case a.Values(names, rows):
                return build.constant(names, rows)
            case a.Scan(source, columns, _, True):
                return build_deltas.held(self.leaves.scan(source, columns, ()))
            case a.Scan(source, columns, partition):
                return self.leaves.scan(source, columns, partition)
            case a.Derived():
                return self._derived(node)
            case a.Came():
                return self.leaves.came(node)
            case a.Bgp() | a.Entailed() | a.Join():
                return self._conjunction(node, ())
            case a.LeftJoin(left, right, condition):
                return pairing.left(*self._sides(left, right, condition), condition)
            case a.Minus(left, right):
                return pairing.minus(*self._sides(left, right))
            case a.Exists(left, right, condition, negated):
                return pairing.exists(
                    *self._sides(left, right, condition), condition, negated=negated
                )
            case a.Mark(left, right, condition, variable):
                return pairing.mark(*self._sides(left, right, condition), condition, variable)
            case a.Closure():
                return self._closure(node)
            case a.Union(left, right):
                return self._union(self.node(left), self.node(right))
            case a.Except(left, right):
                return build_deltas.difference(self._r(self.node(left)), self._r(self.node(right)))
            case a.Filter():
                return self._filter(node)
            case a.Extend(child, variable, expression):
                return self._extend(self.node(child), variable, expression)
            case a.Group():
                return self._group(node)
            case a.Project(child, names):
                return build.rename(self.node(child), names)
            case a.Distinct(child) if self.at.mode is Mode.CHANGES:
                return build_deltas.distinct(self.node(child))
            case a.Distinct(child):
                return build.distinct(self._r(self.node(child)))
            case a.OrderBy(child, keys):
                return build.order(self._r(self.node(child)), keys, 0, None)
            case a.Slice(child, offset, limit):
                return self._slice(child, offset, limit)

    def _once(self, node: a.Node) -> Op:
        """A part that reads static data alone: lowered as a query without windows."""
        again = self.leaves.replaceable & graphs_read(self.q, node)
        outer = self.at, self.leaves
        self.at, self.leaves = (
            replace(self.at, own=(), listed=True),
            replace(self.leaves, q=replace(self.q, windows=())),
        )
        rows = self._r(self.node(node))
        self.at, self.leaves = outer
        return pairing.once(rows, again, len(self.q.windows))

    def _sides(
        self, left: a.Node, right: a.Node, condition: Expression | None = None
    ) -> tuple[Op, Op]:
        """Two parts of which one decides on the other: report rows, but that static rows on the
        right stay what they are.
        """
        one, other = self.node(left), self.node(right)
        if not self.at.own or other.windows != () or one.windows == ():
            return self._r(one), self._r(other)
        late = condition is not None and per_report(condition)
        return self._r(one) if late else one, other

    def _r(self, op: Op) -> Op:
        if self.at.mode is Mode.CHANGES:
            return build_deltas.deltas(op, op.variables)
        return (
            build.report(op, self.at.listed, instant=self.at.mode is Mode.INSTANT)
            if op.windows is not None
            else op
        )

    def _extend(self, op: Op, variable: str, expression: Expression) -> Op:
        op = self._r(op) if per_report(expression) else op
        return build.extend(op, variable, expression, self._draw(op, expression))

    def _draw(self, op: Op, expression: Expression) -> p.Draw | None:
        if not random(expression):
            return None
        self.draws += 1
        return build.drawn(op, self.draws)

    def _slice(self, child: a.Node, offset: int, limit: int | None) -> Op:
        """OFFSET and LIMIT. ORDER BY right below is taken along: one sort; rows that are in order
        stay in order.
        """
        names: tuple[str, ...] | None = None
        inner = child
        if isinstance(inner, a.Project) and isinstance(inner.child, a.OrderBy):
            names, inner = inner.variables, inner.child
        if isinstance(inner, a.OrderBy):
            ordered = build.order(self._r(self.node(inner.child)), inner.keys, offset, limit, names)
            return ordered if names is None else build.rename(ordered, names)
        return build.order(self._r(self.node(child)), (), offset, limit, in_order=_in_order(child))

    def _union(self, left: Op, right: Op) -> Op:
        if (left.windows is None) != (right.windows is None):
            left, right = self._r(left), self._r(right)
        return build.union(left, right)

    def _closure(self, node: a.Closure, beside: Op | None = None) -> Op:
        """Paths over static data that stay are found once and kept as rows, others per report.

        ``beside``: report rows with which they will be joined; an end that these bind is where the
        search begins.
        """
        inputs = [build.rename(self.node(node.child), (node.start, node.end))]
        if node.zero is not None:
            inputs.append(build.rename(self.node(node.zero), (node.start,)))
        if any(op.windows != () or op.weighted for op in inputs):
            inputs = [self._r(op) for op in inputs]
        bound = (
            () if beside is None else tuple(v for v in beside.variables if v not in beside.maybe)
        )
        seed = next((end for end, name in enumerate((node.start, node.end)) if name in bound), None)
        if beside is None or seed is None or node.ends != (None, None):
            return pairing.closure(inputs, node.many, node.ends)
        seeds = build.rename(beside, ((node.start, node.end)[seed],))
        return pairing.closure([*inputs, seeds], node.many, node.ends, seed)

    def _filter(self, node: a.Filter) -> Op:
        """Filters above a conjunction go down into it, one conjunct at a time; others stay where
        they stand.
        """
        conjuncts: list[Expression] = []
        child: a.Node = node
        while isinstance(child, a.Filter):
            conjuncts = [*_conjuncts(child.condition), *conjuncts]
            child = child.child
        early = [c for c in conjuncts if not per_report(c)]
        late = [c for c in conjuncts if per_report(c)]
        if isinstance(child, (a.Bgp, a.Entailed, a.Join)):
            op = self._conjunction(child, early)
        else:
            op = self.node(child)
            for condition in early:
                op = build.filter_(op, condition)
        for condition in late:
            op = build.filter_(op := self._r(op), condition, self._draw(op, condition))
        return op

    def _conjunction(self, node: a.Node, conjuncts: Sequence[Expression]) -> Op:
        """A tree of joins as one flat conjunction, so that the order is free; report rows join
        last.
        """
        paths: list[a.Closure] = []
        parts = beside([op for op in self._parts(node, paths) if not build.is_unit(op)])
        if self.tuples:
            parts = _require_keys(parts)
        timed = [op for op in parts if op.windows is not None]
        reported = [op for op in parts if op.windows is None]
        if not reported and not paths:
            return join_all(timed, conjuncts) if timed else self._constants(conjuncts)
        static = [
            op
            for op in timed
            if self.at.own and op.windows == () and not isinstance(op.spec, p.Constant)
        ]
        moving = [op for op in timed if op not in static]
        always = {v for op in moving for v in op.variables if v not in op.maybe}
        early = [c for c in conjuncts if variables(c) and set(variables(c)) <= always]
        if moving:
            reported = [self._r(join_all(moving, early)), *reported]
        whole = self._joined(reported, paths)
        for group in connected(static):
            whole = build.rjoin(whole, join_all(group))
        for condition in conjuncts:
            whole = build.filter_(whole, condition) if condition not in early else whole
        return whole

    def _joined(self, reported: Sequence[Op], paths: Sequence[a.Closure]) -> Op:
        """Report rows, and paths that are searched from what these bind."""
        whole: Op | None = None
        for op in reported:
            whole = op if whole is None else build.rjoin(whole, op)
        left = list(paths)
        while left:
            there = set() if whole is None else set(whole.variables)
            path = next((n for n in left if there & {n.start, n.end}), left[0])
            left.remove(path)
            op = self._r(self._closure(path, whole))
            whole = op if whole is None else build.rjoin(whole, op)
        assert whole is not None, "rows or paths"
        return whole

    def _constants(self, conjuncts: Sequence[Expression]) -> Op:
        op = build.constant((), ((),))
        for condition in conjuncts:
            op = build.filter_(op, condition)
        return op

    def _parts(self, node: a.Node, paths: list[a.Closure]) -> list[Op]:
        """The parts of a conjunction but for paths over windows, which are searched when the others
        are known.
        """
        match node:
            case a.Join(left, right):
                return [*self._parts(left, paths), *self._parts(right, paths)]
            case a.Closure() if self.at.own and reads_window(node):
                paths.append(node)
                return []
            case a.Bgp(source, patterns):
                return self.leaves.bgp(source, patterns)
            case a.Entailed():
                return [self.leaves.entailed(node, node.source)]
            case _:
                return [self.node(node)]

    def _group(self, node: a.Group) -> Op:
        child = self.node(node.child)
        specs = []
        for _, aggregate in node.aggregates:
            arg: str | None = None
            if isinstance(aggregate.arg, Var):
                arg = aggregate.arg.name
            elif aggregate.arg is not None:
                arg = self._new("arg")
                child = self._extend(child, arg, aggregate.arg)
            specs.append(
                p.AggregateSpec(aggregate.function, arg, aggregate.distinct, aggregate.separator)
            )
        child = build.bind_missing(
            child, [*node.keys, *(s.arg for s in specs if s.arg is not None)]
        )
        names = tuple(name for name, _ in node.aggregates)
        if self.at.mode is Mode.CHANGES:
            return build_deltas.running(
                child, node.keys, tuple(specs), names, () if node.keys else self._witnesses()
            )
        child = self._r(child) if self.at.mode is Mode.INSTANT else child
        windows = self.q.windows if self.at.own else ()
        periodic = self.at.reports.clock is not None
        return build.group(
            child, node.keys, tuple(specs), names, self.at.listed, windows, periodic=periodic
        )

    def _witnesses(self) -> tuple[Op, ...]:
        """The windows of this level, each as that it holds something."""
        leaves = (part for part in level(self.at.pattern) if isinstance(part, (a.Scan, a.Derived)))
        return tuple(build_deltas.witness(self.node(leaf)) for leaf in leaves)

    def _new(self, stem: str) -> str:
        self.fresh += 1
        return f".{stem}{self.fresh}"


def _outputs(node: a.Node) -> tuple[str, ...]:
    """The columns of a query within the query, in order."""
    match node:
        case a.Project(_, names):
            return names
        case a.Scan(columns=columns) | a.Derived(columns=columns):
            return tuple(v for _, v in columns)
        case _:
            return _outputs(children(node)[0])


def _in_order(node: a.Node) -> bool:
    """Whether the solutions of a node come in an order that was asked for."""
    if isinstance(node, (a.Project, a.Distinct, a.Slice)):
        return _in_order(node.child)
    return isinstance(node, a.OrderBy)


def _require_keys(parts: list[Op]) -> list[Op]:
    """Tuple columns that several parts share are join keys: nulls do not join."""
    uses = Counter(v for op in parts for v in op.variables)
    return [build.require(op, [v for v in op.variables if uses[v] > 1]) for op in parts]


def _conjuncts(condition: Expression) -> list[Expression]:
    """The parts of a conjunction: a filter keeps a row iff all are true."""
    if isinstance(condition, Call) and condition.function is Function.AND:
        return [c for arg in condition.args for c in _conjuncts(arg)]
    return [condition]
