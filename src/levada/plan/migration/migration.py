"""A switch that is under way, as the catalog of a plan version has it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from levada.core.event_time import instant
from levada.core.frozen import frozen


@frozen
class PlanMigration:
    """A query's second Emit (``node``, ``member``), muted. ``start``: from there on it counts;
    ``behind``: once all reports up to there are made it may take the place of the first (ms of
    event time). ``since``: the first plan version that has it. ``order``: how it is joined.
    """

    name: str
    node: int
    member: int
    start: int
    behind: int
    since: int
    order: str


def show_switches(behind: Mapping[str, int]) -> Iterator[str]:
    """The queries that go over to other orders, and when they have, in lines.

    >>> list(show_switches({"q": 8000}))[1]
    '  q: once its reports up to 1970-01-01T00:00:08Z are made'
    """
    yield from ("go over to other operators",) if behind else ()
    for query, until in behind.items():
        yield f"  {query}: once its reports up to {instant(until)} are made"
