"""A running migration, as the catalog of a plan version stores it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from levada.core.event_time import instant
from levada.core.frozen import frozen


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
