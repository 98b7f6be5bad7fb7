"""Lowers the algebra of one query to physical operators: monotone operators below, snapshot
operators above.

Monotone operators (patterns, joins, filters, BIND, UNION, projection) work on rows with event
times. The first operator that is not monotone (OPTIONAL, MINUS, EXISTS, aggregates, DISTINCT,
ORDER/LIMIT, or an expression that reads the report time) turns its inputs into report rows. This
module lowers the levels of a query, each by the way its result is kept (``query_levels``).
``pattern`` lowers the nodes within a level.

This module rewrites nothing: each node keeps its meaning and place. Skipped optimizer rules
(``levada.plan.optimizer``) make a plan more expensive, not different in meaning.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from levada.core.expressions import (
    AggregateFunction,
    Call,
    Expression,
    Function,
    Var,
    random,
    variables,
)
from levada.core.frozen import frozen
from levada.core.query_model import Form, Output
from levada.core.stream_facts import StreamFacts as StreamFacts
from levada.plan.execution.joins import JoinForm
from levada.plan.logical import nodes as a
from levada.plan.logical.properties import Analysis
from levada.plan.logical.traversal import children
from levada.plan.lowering.join_order import Orders
from levada.plan.lowering.pattern import PatternLowering, Shared
from levada.plan.lowering.query_levels import Level, LevelQuery, Mode, level_of, top_windows
from levada.plan.lowering.scans import Leaves, graphs_read
from levada.plan.physical import build, build_incremental, build_reports
from levada.plan.physical import operators as p
from levada.plan.physical.column_lineage import time_variables
from levada.plan.physical.operators import Op

if TYPE_CHECKING:
    from levada.plan.statistics.choose_join_strategy import JoinStrategyRequest
    from levada.plan.statistics.statistics import Measures


# Finds the order of the rows of a difference: the query's ORDER BY, as far as it follows from
# shown variables.
#
# ISTREAM and DSTREAM compare solutions regardless of their order, and hidden variables are not part
# of a solution. So the first condition on a hidden variable ends the order. Cost: linear in the
# nodes above the pattern.


Keys = tuple[tuple[Expression, bool], ...]


def find_shown_order(node: a.Node, names: Collection[str]) -> Keys:
    """Returns the ORDER BY conditions on top of a pattern that use only shown variables.

    >>> find_shown_order(a.OrderBy(a.Unit(), ((Var("x"), True), (Var("y"), False))), ["x"])
    ((Var(name='x'), True),)
    """
    while isinstance(node, (a.Project, a.Distinct, a.Slice)):
        node = node.child
    if not isinstance(node, (a.OrderBy, a.Top)):
        return ()
    called = _names_of(node.child, names)
    keys = []
    for condition, descending in node.keys:
        if random(condition) or not all(v in called for v in variables(condition)):
            break
        keys.append((_rename(condition, called), descending))
    return tuple(keys)


def _names_of(node: a.Node, names: Collection[str]) -> dict[str, str]:
    """Returns the shown name of each variable: itself, or the name that SELECT gives it.

    An example is ``(COUNT(*) AS ?n)``.
    """
    called = {name: name for name in names}
    while isinstance(node, a.Extend):
        if node.variable in names and isinstance(node.expression, Var):
            called.setdefault(node.expression.name, node.variable)
        node = node.child
    return called


def _rename(expression: Expression, called: Mapping[str, str]) -> Expression:
    match expression:
        case Var(name):
            return Var(called[name])
        case Call(function, args):
            return Call(function, tuple(_rename(arg, called) for arg in args))
        case _:
            return expression


@frozen
class Lowered:
    """The physical query: its root is an Emit.

    ``enumerated``: its reports need the times of all elements. ``show_empty``: empty reports are
    written. ``wanted``: the requested join form, with the choices that were made.
    """

    root: Op
    enumerated: bool
    show_empty: bool = False
    wanted: JoinStrategyRequest | None = None


def lower(
    query: a.Query,
    streams: Mapping[str, StreamFacts],
    *,
    empty_reports: bool = False,
    replaceable: Collection[str | None] = (),
    joins: JoinForm = JoinForm.BINARY,
    measures: Measures | None = None,
    orders: Orders | None = None,
) -> Lowered:
    """Returns the physical operators of a query whose names are resolved against ``streams``.

    ``empty_reports``: empty reports are written; the single answer of a query without windows is
    always written. ``replaceable``: the static graphs that may be replaced while the engine runs.
    ``joins``: the join form where there is a choice, made by ``measures``. ``orders``: requested
    join orders.
    """
    show_empty = empty_reports or not query.windows
    leaves = Leaves(query, streams, frozenset(replaceable))
    wanted = _strategy_request(query, joins, measures)
    lowered = replace(_Lowering(query, leaves, wanted, orders).query(show_empty), wanted=wanted)
    if joins in (JoinForm.BINARY, JoinForm.REPLICATED):
        return lowered
    # imported here: other queries do not load it
    from levada.plan.physical.multiway_join import multiway

    return replace(lowered, root=multiway(lowered.root, adaptive=joins is JoinForm.AUTO))


def _strategy_request(
    query: a.Query, joins: JoinForm, measures: Measures | None
) -> JoinStrategyRequest | None:
    """Returns the requested join form; None: all joins are binary."""
    if joins is JoinForm.BINARY:
        return None
    # imported here: other queries do not load it
    from levada.plan.statistics.choose_join_strategy import JoinStrategyRequest

    return JoinStrategyRequest(joins, measures, [on.window for on in query.windows])


class _Lowering:
    """Lowers the levels of a query, one within the other."""

    def __init__(
        self,
        query: a.Query,
        leaves: Leaves,
        joins: JoinStrategyRequest | None,
        orders: Orders | None,
    ) -> None:
        self.q = query
        self.leaves = leaves
        self.shared = Shared(Analysis.with_windows(query.windows), joins=joins, orders=orders)

    def query(self, show_empty: bool) -> Lowered:
        """The whole query; ``show_empty``: with empty reports."""
        q = self.q
        changing = bool(q.windows) and not self.leaves.replaceable.isdisjoint(
            graphs_read(q, q.pattern)
        )
        at = self._at(
            LevelQuery(q.form, q.pattern, q.output, top_windows(q), q.reports, show_empty, changing)
        )
        if at.mode is Mode.REPORTS and (show_empty or not q.windows or changing):
            at = replace(at, enumerated=True)
        if q.form is Form.ASK:
            return Lowered(build_reports.emit(self._ask(self._within(at))), True, show_empty)
        return Lowered(build_reports.emit(self._level(at, q.variables)), at.enumerated, show_empty)

    def _at(self, asked: LevelQuery) -> Level:
        return level_of(asked, self.shared.analysis.properties_of(asked.pattern), self.q.windows)

    def _within(self, at: Level) -> PatternLowering:
        return PatternLowering(self.q, at, self.leaves, self.shared, self._lower_subquery)

    def _level(self, at: Level, names: Sequence[str]) -> Op:
        """The report rows of a level."""
        asked, inner = at.asked, self._within(at)
        body = build.rename(inner.node(asked.pattern), names)
        if at.whole:
            windows, level_windows, reports = inner.nonempty_by(), at.windows, asked.reports
            return build_incremental.snapshot(
                body,
                windows,
                asked.output,
                level_windows,
                reports,
                enumerated=at.enumerated,
                show_empty=asked.show_empty,
            )
        if at.mode is Mode.CHANGES and body.windows is None:
            return build_incremental.net(body, asked.output)
        free = self.shared.analysis.properties_of(asked.pattern).free
        free = free or body.by_changes
        if asked.output is Output.RSTREAM or asked.reports.nonempty or free:
            body = inner.report(body)
        if asked.output is not Output.RSTREAM:
            body = build_reports.changes(
                body, asked.output, at.enumerated, _has_equal_times(body, at.windows)
            )
            if self.q.form is Form.SELECT and (keys := find_shown_order(asked.pattern, names)):
                body = replace(build_reports.order(body, keys, 0, None), weighted=body.weighted)
        return body

    def _lower_subquery(self, node: a.SubQuery, outer: Level) -> Op:
        """Lowers a sub-query: its level by itself, then its rows as the content of the window."""
        at = self._at(LevelQuery(self.q.form, node.child, node.output, node.level, a.Reporting()))
        # a stream's elements are told apart by whole rows, and so are a relation's changes where
        # they are reports; else only what is read of a relation has to change
        seen = tuple(dict.fromkeys(c for c, _ in node.columns))
        names = seen if node.output is Output.RELATION and not outer.whole else _outputs(node.child)
        rows = self._level(at, names)
        return build_incremental.lift(
            rows, node.source.index, node.level, weighted=node.output is Output.RELATION
        )

    def _ask(self, inner: PatternLowering) -> Op:
        """Lowers ASK: a boolean for each report, also where nothing matches."""
        count = (p.AggregateSpec(AggregateFunction.COUNT, None, False),)
        part = self.q.pattern
        counted = inner.group(inner.node(part), part, ((), count, (".ask",)))
        one = build.extend(counted, ".answer", Call(Function.GREATER, (Var(".ask"), build.ZERO)))
        answer = inner.report(build.rename(one, (".answer",)))
        if self.q.output is Output.RSTREAM:
            return answer
        # under I and D alike: the boolean when it changes
        return build_reports.changes(answer, Output.ISTREAM, True, False)


def _has_equal_times(body: Op, level_windows: Sequence[int]) -> bool:
    """Whether equal solutions have equal times, so that none of them cancel.

    Over tuple streams the event time is a column (``ts``). If the result has the event time of
    every window, two equal solutions begin and end together. A row that begins after its end does
    not count.
    """
    if body.windows is None or body.weighted:
        return False
    times = time_variables(body)
    return all(w in times for w in level_windows)


def _outputs(node: a.Node) -> tuple[str, ...]:
    """Returns the columns of a sub-query, in order."""
    match node:
        case a.Project(_, names):
            return names
        case a.Scan(columns=columns) | a.SubQuery(columns=columns):
            return tuple(v for _, v in columns)
        case _:
            return _outputs(children(node)[0])
