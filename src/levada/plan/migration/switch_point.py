"""When a query that runs may go over to operators that have seen nothing from before an instant
(STREAMREUSE, 5: a query migrates to a new plan without a gap).

    start    the new operators have all elements from there on, and count no other
    behind   the last instant at which an element from before ``start`` leaves a window
    made     up to there all reports are made, by the old operators

Once ``made`` has reached ``behind``, each report that is still to come is of windows that lie
wholly behind ``start``, so both have the same result there; and both had it at the last report
already, which IStream and DStream are told by. With a clock this is its first close from
``behind`` on. A query without such an instant is not switched, nor one of which it is not known
that its result follows from its windows alone (``why_not``).
"""

from __future__ import annotations

from collections.abc import Mapping

from levada.core.event_time import MAX, MIN, WindowKind
from levada.core.expressions import Aggregate, AggregateFunction
from levada.core.query_model import Output
from levada.plan.execution.plan import QueryPlan
from levada.plan.logical import nodes as a
from levada.plan.logical.traversal import children
from levada.plan.logical.variables import draws, expressions
from levada.plan.lowering.scans import graphs_read

UNBOUNDED = "time alone does not empty its windows"
_LEAVES = frozenset(
    (WindowKind.CLOSE_OPEN, WindowKind.CLOSE_CLOSED, WindowKind.CHANGE, WindowKind.RANGE,
     WindowKind.NOW)
)  # fmt: skip
_CHOICES = frozenset((AggregateFunction.SAMPLE, AggregateFunction.GROUP_CONCAT))


def why_not(query: a.Query, *, empty_reports: bool) -> str:
    """Why a query is not switched; "": it may be."""
    kinds = {on.window.kind for on in query.windows}
    differences = query.output is not Output.RSTREAM
    reasons = {
        "it reads no stream": not query.windows,
        UNBOUNDED: not kinds <= _LEAVES,
        "it has a query over windows within it": any(on.beneath for on in query.windows),
        "it reports the changes of a relation": query.output is Output.RELATION,
        "it shows empty reports": empty_reports,
        "it reads static data": bool(graphs_read(query, query.pattern)) or _once(query.pattern),
        "it draws values by chance": draws(query.pattern),
        # the last report may have been of elements that have left since
        "it reports differences, and not where nothing is there": (
            differences and query.reports.nonempty
        ),
        "it reports differences of what an aggregate chooses": (
            differences and _chooses(query.pattern)
        ),
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def behind(query: QueryPlan, start: int) -> int:
    """The instant up to which reports must have been made before a query is switched to operators
    of this ``start``; MAX: there is none.

    >>> from levada.core.query_model import Form, StreamWindow
    >>> from levada.core.event_time import Window
    >>> from levada.plan.execution.plan import QuerySettings
    >>> on = StreamWindow("w", "s", Window(WindowKind.CLOSE_OPEN, range=4000, step=2000))
    >>> manner = QuerySettings(Form.SELECT, Output.RSTREAM, (), (), ("s",), 0, False, (on,))
    >>> behind(QueryPlan("q", 0, 0, manner), 2500)
    8000
    """
    leaves = max((on.window.leave(start - 1) for on in query.windows), default=MAX)
    if query.clock is None or leaves >= MAX:
        return leaves
    return query.clock.next_close(leaves - 1)


def made(query: QueryPlan, watermarks: Mapping[str, int]) -> int:
    """The instant up to which all reports of a query have been made (``windows/reports``)."""
    w = min((watermarks.get(on.stream, MIN) for on in query.windows), default=MIN)
    windows = [on.window for on in query.windows] + [query.clock] * (query.clock is not None)
    closes = all(
        one is not None and one.kind in (WindowKind.CLOSE_OPEN, WindowKind.CLOCK) for one in windows
    )
    return w if closes or not MIN < w < MAX else w - 1


def _once(node: a.Node) -> bool:
    """Whether some part of a pattern is answered once."""
    return isinstance(node, a.Static | a.Values) or any(map(_once, children(node)))


def _chooses(node: a.Node) -> bool:
    """Whether an aggregate chooses among values, or their order."""
    choices = (isinstance(e, Aggregate) and e.function in _CHOICES for e in expressions(node))
    return any(choices) or any(map(_chooses, children(node)))
