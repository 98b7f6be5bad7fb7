"""A running migration, as the catalog of a plan version stores it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from levada.core.event_time import MAX, MIN, WindowKind, instant
from levada.core.expressions import Aggregate, AggregateFunction
from levada.core.frozen import frozen
from levada.core.query_model import Output
from levada.plan.execution.plan import QueryPlan
from levada.plan.logical import nodes as a
from levada.plan.logical.traversal import children
from levada.plan.logical.variables import draws_values, expressions
from levada.plan.lowering.scans import graphs_read


@frozen
class PlanMigration:
    """The second Emit (``node``, ``member``) of a query, which is muted.

    ``start``: elements count from here on. ``behind``: the Emit may replace the first one when all
    reports up to here are made (ms of event time). ``since``: the first plan version that has it.
    ``order``: its join orders.
    """

    name: str
    node: int
    member: int
    start: int
    behind: int
    since: int
    order: str


def show_switches(behind: Mapping[str, int]) -> Iterator[str]:
    """Yields lines with the queries that migrate, and the instants at which they have migrated.

    >>> list(show_switches({"q": 8000}))[1]
    '  q: once its reports up to 1970-01-01T00:00:08Z are made'
    """
    yield from ("go over to other operators",) if behind else ()
    for query, until in behind.items():
        yield f"  {query}: once its reports up to {instant(until)} are made"


# The instant from which a running query may use operators that started later (STREAMREUSE,
# section 5: a query migrates to a new plan without a gap).
#
#     start             the new operators receive all elements from here on, and no earlier ones
#     switch_instant    the last instant at which an element from before ``start`` leaves a window
#     reported_until    the old operators have made all reports up to here
#
# When ``reported_until`` has reached ``switch_instant``, all later reports are of windows that
# begin after ``start``. Old and new operators have the same result there, and at the last report
# too, to which IStream and DStream compare. With a clock, the switch is at its first close from
# ``switch_instant`` on. A query without such an instant is not switched. A query whose result may
# depend on more than its windows is not switched either (``why_not``).


UNBOUNDED = "time alone does not empty its windows"
_LEAVES = frozenset(
    (WindowKind.CLOSE_OPEN, WindowKind.CLOSE_CLOSED, WindowKind.CHANGE, WindowKind.RANGE,
     WindowKind.NOW)
)  # fmt: skip
_CHOICES = frozenset(
    (AggregateFunction.SAMPLE, AggregateFunction.GROUP_CONCAT, AggregateFunction.USER)
)


def why_not(query: a.Query, *, empty_reports: bool) -> str:
    """Returns why a query is not switched; "": it may be."""
    kinds = {on.window.kind for on in query.windows}
    differences = query.output is not Output.RSTREAM
    reasons = {
        "it reads no stream": not query.windows,
        UNBOUNDED: not kinds <= _LEAVES,
        "it has a query over windows within it": any(on.beneath for on in query.windows),
        "it reports the changes of a relation": query.output is Output.RELATION,
        "it shows empty reports": empty_reports,
        "it reads static data": bool(graphs_read(query, query.pattern))
        or _has_static_part(query.pattern),
        "it draws values by chance": draws_values(query.pattern),
        # the last report may have been of elements that have left since
        "it reports differences, and not where nothing is there": (
            differences and query.reports.nonempty
        ),
        "it reports differences of what an aggregate chooses": (
            differences and _has_choosing_aggregate(query.pattern)
        ),
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def switch_instant(query: QueryPlan, start: int) -> int:
    """Returns the instant up to which reports must be made before a query switches to ``start``.

    MAX: there is none.

    >>> from levada.core.query_model import Form, StreamWindow
    >>> from levada.core.event_time import Window
    >>> from levada.plan.execution.plan import QuerySettings
    >>> on = StreamWindow("w", "s", Window(WindowKind.CLOSE_OPEN, range=4000, step=2000))
    >>> manner = QuerySettings(Form.SELECT, Output.RSTREAM, (), (), ("s",), 0, False, (on,))
    >>> switch_instant(QueryPlan("q", 0, 0, manner), 2500)
    8000
    """
    leaves = max((on.window.leave(start - 1) for on in query.windows), default=MAX)
    if query.clock is None or leaves >= MAX:
        return leaves
    return query.clock.next_close(leaves - 1)


def reported_until(query: QueryPlan, watermarks: Mapping[str, int]) -> int:
    """Returns the instant up to which all reports of a query have been made."""
    w = min((watermarks.get(on.stream, MIN) for on in query.windows), default=MIN)
    windows = [on.window for on in query.windows] + [query.clock] * (query.clock is not None)
    closes = all(
        one is not None and one.kind in (WindowKind.CLOSE_OPEN, WindowKind.CLOCK) for one in windows
    )
    return w if closes or not MIN < w < MAX else w - 1


def _has_static_part(node: a.Node) -> bool:
    """Whether some part of a pattern is answered once."""
    return isinstance(node, a.Static | a.Values) or any(map(_has_static_part, children(node)))


def _has_choosing_aggregate(node: a.Node) -> bool:
    """Whether an aggregate chooses among values or depends on their order."""
    choices = (isinstance(e, Aggregate) and e.function in _CHOICES for e in expressions(node))
    return any(choices) or any(map(_has_choosing_aggregate, children(node)))
