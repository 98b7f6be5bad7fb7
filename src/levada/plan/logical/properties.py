"""Analyzes the parts of a query: one walk, bottom-up, computes all properties that planning needs.

A part can be kept by changes, have rows with event times, or exist at an instant alone. It reads a
window, or static data answer it. It can have solutions without matches. Each property follows from
a node and the properties of its children. Most belong to one query level: a sub-query
(``SubQuery``) is a leaf there. Cost: linear in the tree, once for each ``Analysis``.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from levada.core.event_time import WindowKind
from levada.core.expressions import Aggregate, AggregateFunction, per_report
from levada.core.frozen import frozen
from levada.core.query_model import StreamWindow
from levada.plan.logical import nodes as a
from levada.plan.logical.traversal import children
from levada.plan.logical.variables import expressions

_ADD_UP = frozenset(
    (
        AggregateFunction.COUNT,
        AggregateFunction.SUM,
        AggregateFunction.AVG,
        AggregateFunction.SUM_REST,
        AggregateFunction.MIN,
        AggregateFunction.MAX,
        AggregateFunction.SAMPLE,
    )
)
_LEFT_DECIDES = (a.LeftJoin, a.Minus, a.Exists, a.Mark, a.Except)
_COMPARES = (*_LEFT_DECIDES, a.Group, a.Distinct, a.OrderBy, a.Slice, a.Number, a.Top)
HOISTED = (*(kind for kind in _COMPARES if kind is not a.Except), a.Closure)
"""Nodes that compare whole results or follow paths: over static data alone they run once."""
_KEPT_BY_REPORTS = (a.LeftJoin, a.Minus, a.Exists, a.OrderBy, a.Slice, a.Number, a.Top)


@frozen
class Properties:
    """The properties of a part of a query.

    ``reads_window``: some part of it, on any level, reads a window. The others belong to one level.
    ``per_report``: an expression depends on the report. ``snapshot``: whole results are compared.
    ``timeless``: some part has no window, so it exists at every report. ``free``: a solution can be
    made of static data and constants alone. ``matchless``: an aggregate without groups has a row
    even without matches. ``derived``: it reads a sub-query. ``tuples``: some row comes from a tuple
    stream; ``over_tuples``: every one does. ``monotone``: more rows below only mean more rows here.
    ``momentary``: each solution exists at one instant. ``reason``: an obstacle to evaluation by
    changes, in words; "": none. ``timed``: rows have event times, all of which follow from windows.
    ``kept_by_changes``: it has groups or DISTINCT, and all of it follows from the changes of its
    rows.
    """

    reads_window: bool = False
    per_report: bool = False
    snapshot: bool = False
    timeless: bool = False
    free: bool = False
    matchless: bool = False
    derived: bool = False
    tuples: bool = False
    over_tuples: bool = False
    monotone: bool = True
    momentary: bool = False
    reason: str = ""
    timed: bool = False
    kept_by_changes: bool = False

    @property
    def not_by_changes(self) -> str:
        """The obstacle in this level to evaluation by changes, in words; "": none."""
        return self.reason if self.over_tuples else "a pattern over RDF"


class Analysis:
    """The properties of the parts of a query; ``now``: its windows whose content is of one instant.

    >>> Analysis().properties_of(a.Union(a.Unit(), a.Bgp(a.InWindow(0), ()))).free
    True
    """

    def __init__(self, now: Collection[int] = ()) -> None:
        self._now = frozenset(now)
        self._entries: dict[
            int, tuple[a.Node, Properties]
        ] = {}  # by identity, which the node keeps

    @staticmethod
    def with_windows(windows: Sequence[StreamWindow]) -> Analysis:
        """Returns an analysis of nodes that read these windows."""
        return Analysis([i for i, w in enumerate(windows) if w.window.kind is WindowKind.NOW])

    def properties_of(self, node: a.Node) -> Properties:
        """Returns the properties of this part."""
        entry = self._entries.get(id(node))
        if entry is None:
            entry = (
                node,
                self._properties(node, [self.properties_of(child) for child in children(node)]),
            )
            self._entries[id(node)] = entry
        return entry[1]

    def _properties(self, node: a.Node, below: Sequence[Properties]) -> Properties:
        if isinstance(node, a.SubQuery):
            return Properties(
                reads_window=True,
                derived=True,
                tuples=True,
                over_tuples=True,
                momentary=node.source.index in self._now,
            )
        if not below:
            return self._leaf(node)
        late = any(map(per_report, expressions(node)))
        windowed = any(p.reads_window for p in below)
        return Properties(
            reads_window=windowed,
            per_report=late or any(p.per_report for p in below),
            snapshot=_is_snapshot(node, late, windowed) or any(p.snapshot for p in below),
            timeless=any(p.timeless for p in below),
            free=_is_free(node, below),
            matchless=any(p.matchless for p in below)
            or (isinstance(node, a.Group) and not node.keys),
            derived=any(p.derived for p in below),
            tuples=any(p.tuples for p in below),
            over_tuples=all(p.over_tuples for p in below),
            monotone=not isinstance(node, (a.Group, a.Distinct, a.Except, *_CUTS))
            and all(p.monotone for p in below),
            momentary=_is_momentary(node, below),
            reason=_reason(node, late) or next((p.reason for p in below if p.reason), ""),
            timed=_is_timed(node, late) and all(p.timed for p in below),
            kept_by_changes=not late and _is_kept(node, below),
        )

    def _leaf(self, node: a.Node) -> Properties:
        match node:
            case a.Bgp(source) | a.Entailed(source):
                static = reads_static(source)
                return Properties(
                    reads_window=not isinstance(source, a.InGraph),
                    timeless=static,
                    free=static,
                    timed=True,
                )
            case a.Scan(source, _, _, relation):
                return Properties(
                    reads_window=True,
                    tuples=True,
                    over_tuples=True,
                    monotone=not relation,
                    momentary=source.index in self._now,
                    timed=True,
                )
            case a.TripleArrivals():
                return Properties(reads_window=True, timed=True)
            case _:
                return Properties(timeless=True, free=True, timed=True)


_CUTS = (a.OrderBy, a.Slice, a.Number, a.Top)


def reads_static(source: a.Source) -> bool:
    """Whether static data alone can match a pattern over this source."""
    return isinstance(source, a.InGraph) or (isinstance(source, a.InMerge) and source.static)


def is_answered_once(node: a.Node, properties: Properties) -> bool:
    """Whether this part is best evaluated once.

    Static data alone answer it, and it compares whole results, which a join would repeat at every
    report.
    """
    return isinstance(node, HOISTED) and not properties.reads_window and not properties.per_report


def _is_snapshot(node: a.Node, late: bool, windowed: bool) -> bool:
    if isinstance(node, (a.Filter, a.Extend, a.Conjunction)):
        return late
    return isinstance(node, _COMPARES) or (isinstance(node, a.Closure) and windowed)


def _is_free(node: a.Node, below: Sequence[Properties]) -> bool:
    match node:
        case a.Join() | a.Conjunction() | a.Recent():
            return all(p.free for p in below)
        case a.Union() | a.Closure():
            return any(p.free for p in below)
        case _:
            return below[0].free  # the only one, or the left one, which decides


def _is_momentary(node: a.Node, below: Sequence[Properties]) -> bool:
    """Whether each solution contains a row of a window [Now]."""
    match node:
        case a.Join() | a.Conjunction() | a.Recent():
            return any(p.momentary for p in below)
        case a.Union():
            return all(p.momentary for p in below)
        case a.Filter() | a.Extend() | a.Project() | a.Distinct():
            return below[0].momentary
        case a.Group(_, keys, _):
            return bool(keys) and below[0].momentary
        case _:
            return False


def _is_timed(node: a.Node, late: bool) -> bool:
    """Whether the result has event times if the rows below have them."""
    kinds = (a.Join, a.Conjunction, a.Recent, a.Union, a.Filter, a.Extend, a.Project)
    return isinstance(node, kinds) and not late


def _is_kept(node: a.Node, below: Sequence[Properties]) -> bool:
    """Whether this part has groups (of incremental aggregates) or DISTINCT and follows from
    changes.
    """
    match node:
        case a.Group():
            follows = not _reason(node, late=False)
        case a.Distinct():
            follows = True
        case a.Union() | a.Filter() | a.Extend() | a.Project():
            follows = any(p.kept_by_changes for p in below)
        case _:
            return False
    return follows and all(p.kept_by_changes or p.timed for p in below)


def _reason(node: a.Node, late: bool) -> str:
    if isinstance(node, a.Group):
        words = (
            f"{'DISTINCT ' if aggregate.distinct else ''}{aggregate.function}"
            for _, aggregate in node.aggregates
            if not adds_up(aggregate)
        )
        return next(words, "")
    if isinstance(node, _KEPT_BY_REPORTS):
        return "ORDERBY" if isinstance(node, a.Top) else type(node).__name__.upper()
    return "a function of the report" if late else ""


def adds_up(aggregate: Aggregate) -> bool:
    """Whether an aggregate is incremental: its value follows from added and removed rows."""
    if aggregate.function not in _ADD_UP:
        return False
    return not aggregate.distinct if aggregate.arg is None else not per_report(aggregate.arg)
